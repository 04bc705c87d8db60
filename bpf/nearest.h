/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Which run a cgroup belongs to: a run may be in a cgroup of another one, and the inner one decides. */
#ifndef NN_NEAREST_H
#define NN_NEAREST_H

#include "kernel.h"
#include "flow.h"

#define LEVELS 32
#define RUNS 65536

/*
 * The ids of the cgroups of runs: the manager registers each before its programs are attached. A name
 * would not do. Whoever has a cgroup of his own inside a run can make another with any name, and would
 * be out of the run.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, RUNS);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, u64);
	__type(value, u32);
} nn_runs SEC(".maps");

/*
 * The id of the nearest run that a cgroup, by its address, is in, or is; 0: of none. Not static: so
 * the verifier walks it once, not for each call.
 */
__attribute__((noinline)) u64 nn_nearest_run(u64 cgroup)
{
	const struct cgroup *of = (const struct cgroup *)cgroup;
	struct cgroup *const *path = &of->ancestors[0];
	int level = BPF_CORE_READ(of, level);

	for (int i = 0; i < LEVELS && level >= 0; i++, level--) {
		struct cgroup *above;
		u64 id;

		if (bpf_probe_read_kernel(&above, sizeof(above), path + level))
			break;
		id = BPF_CORE_READ(above, kn, id);
		if (bpf_map_lookup_elem(&nn_runs, &id))
			return id;
	}
	return 0;
}

/* The id of the nearest run that a socket was made in. */
nn_inline u64 nn_run_of_socket(const struct bpf_sock *sk)
{
	const struct sock *socket;

	/* to the verifier a number: sockets of TCP, MPTCP and UDP have this part in common */
	bpf_probe_read_kernel(&socket, sizeof(socket), &sk);
	return nn_nearest_run((u64)BPF_CORE_READ(socket, sk_cgrp_data.cgroup));
}

#endif
