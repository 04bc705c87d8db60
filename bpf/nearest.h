/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Which run a cgroup belongs to: a run may be in a cgroup of another one, and the inner one decides. */
#ifndef NN_NEAREST_H
#define NN_NEAREST_H

#include "kernel.h"
#include "flow.h"

#define LEVELS 32

/*
 * The id of the nearest run that a cgroup, by its address, is in, or is; 0: of none. Not static: so
 * the verifier walks it once, not for each call.
 */
__attribute__((noinline)) u64 nn_nearest_run(u64 cgroup)
{
	static const char prefix[] = NN_RUN_PREFIX;
	const struct cgroup *of = (const struct cgroup *)cgroup;
	struct cgroup *const *path = &of->ancestors[0];
	int level = BPF_CORE_READ(of, level);

	for (int i = 0; i < LEVELS && level >= 0; i++, level--) {
		char name[sizeof(prefix)] = {};
		struct kernfs_node *node;
		struct cgroup *above;
		u32 differs = 0;

		if (bpf_probe_read_kernel(&above, sizeof(above), path + level))
			break;
		node = BPF_CORE_READ(above, kn);
		bpf_probe_read_kernel_str(name, sizeof(name), BPF_CORE_READ(node, name));
		for (u32 c = 0; c < sizeof(prefix) - 1; c++)
			differs |= name[c] ^ prefix[c];
		if (!differs)
			return BPF_CORE_READ(node, id);
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
