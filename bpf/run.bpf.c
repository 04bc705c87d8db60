// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * Puts every TCP connection of one cgroup into the background: the programs of
 * one `netnice run`, loaded and attached for it, gone with its cgroup.
 *
 * The kernel calls the programs of every run that a socket's cgroup is in. Those of the nearest act.
 */
#include "kernel.h"
#include "nearest.h"
#include "the_run.h"

#include <bpf/bpf_endian.h>

/* The run, if it is the one that decides on a socket. */
nn_inline struct nn_run *the_run_of(const struct bpf_sock *sk)
{
	struct nn_run *run = the_run();

	return run && sk && nn_run_of_socket(sk) == run->settings.run ? run : NULL;
}

/* Whether the run is for connections with this peer; ports in host byte order. */
nn_inline int is_meant(const struct nn_run *run, const u32 peer[4], u32 theirs, u32 ours)
{
	u32 v4 = !peer[0] && !peer[1] && peer[2] == bpf_htonl(0xffff);

	if (!run->n_peers)
		return 1;
	for (u32 i = 0; i < NN_PEERS && i < run->n_peers; i++) {
		const struct nn_peer *p = &run->peers[i];
		u32 differs = p->v4 ^ v4;

		for (u32 w = 0; w < 4; w++)
			differs |= (peer[w] ^ p->address[w]) & p->mask[w];
		if (!differs && (!p->port || p->port == theirs || p->port == ours))
			return 1;
	}
	return 0;
}

#include "run.h"
