// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * Golden traces inside the kernel: runs one algorithm, compiled as the kernel
 * host compiles it, over the steps of a trace. Tests compare the result with the
 * same trace in user space, bit for bit.
 */
#include "kernel.h"
#include "../core/replay.h"

char _license[] SEC("license") = "Dual MIT/GPL";

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 20000);
	__type(key, u32);
	__type(value, struct nn_step);
} steps SEC(".maps");

/* not const: read as an algorithm's struct, it would be folded into its initial zeros */
u32 cfg[2][NN_PARAMS_MAX] SEC(".data.cfg");
struct nn_trace trace SEC(".data.trace");
struct nn_group_trace group SEC(".data.group");

static long one_step(u32 i, void *unused)
{
	const struct nn_step *step = bpf_map_lookup_elem(&steps, &i);

	if (!step)
		return 1;
	nn_trace_step(&trace, cfg[0], i, step);
	return 0;
}

static long one_group_step(u32 i, void *unused)
{
	const struct nn_step *step = bpf_map_lookup_elem(&steps, &i);

	if (!step)
		return 1;
	nn_trace_group_step(&group, cfg[0], cfg[1], i, step);
	return 0;
}

SEC("syscall")
int nn_replay(void *ctx)
{
	return (int)bpf_loop(20000, one_step, NULL, 0);
}

SEC("syscall")
int nn_replay_group(void *ctx)
{
	return (int)bpf_loop(20000, one_group_step, NULL, 0);
}
