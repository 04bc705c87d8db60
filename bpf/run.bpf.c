// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * Puts every TCP connection of one cgroup into the background: the programs of
 * one `netnice run`, loaded and attached for it, gone with its cgroup.
 *
 * The kernel calls the programs of every run that a socket's cgroup is in. Those of the nearest act.
 */
#include "kernel.h"
#include "nearest.h"
#include "peers.h"
#include "the_run.h"

/* The run, if it is the one that decides on a socket. */
nn_inline struct nn_run *the_run_of(const struct bpf_sock *sk)
{
	struct nn_run *run = the_run();

	return run && sk && nn_run_of_socket(sk) == run->settings.run ? run : NULL;
}

/* Of sockets, the run is for all. */
nn_inline int is_chosen(const struct bpf_sock *sk)
{
	return 1;
}

/* Whether the run is for connections with this peer; ports in host byte order. */
nn_inline int is_meant(const struct nn_run *run, const u32 peer[4], u32 theirs, u32 ours)
{
	return !run->n_peers || is_among(run->peers, run->n_peers, peer, theirs, ours);
}

#include "run.h"
