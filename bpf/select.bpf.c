// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * The programs of run.bpf.c for a cgroup of any name, as a unit of systemd or a container has, and for
 * some of its connections only.
 *
 * A run inside of it decides for itself, as it is registered. So does another such cgroup inside: its
 * programs are called first, and leave their id in the storage of the socket.
 */
#include "kernel.h"
#include "nearest.h"
#include "peers.h"
#include "select.h"
#include "shared.h"
#include "the_run.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct nn_left_out);
} nn_left_out SEC(".maps");

nn_inline const struct nn_left_out *the_left_out(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&nn_left_out, &zero);
}

struct sock___marked {
	u32 sk_mark;
} __attribute__((preserve_access_index));

nn_inline u32 mark_of(const struct bpf_sock *sk)
{
	const struct sock___marked *socket;

	/* as in nn_run_of_socket() */
	bpf_probe_read_kernel(&socket, sizeof(socket), &sk);
	return BPF_CORE_READ(socket, sk_mark);
}

/* The run, if it is the one that decides on a socket. */
nn_inline struct nn_run *the_run_of(struct bpf_sock *sk)
{
	struct nn_run *run = the_run();
	const struct nn_flow *f;
	u64 nearest;

	if (!run || !sk)
		return NULL;
	if (run->ended) /* the cgroup is gone, and a socket that was made in it keeps its programs */
		return NULL;
	nearest = nn_run_of_socket(sk);
	if (nearest && nearest != run->settings.run)
		return NULL;
	f = bpf_sk_storage_get(&nn_flows, sk, 0, 0);
	if (f && f->settings.run && f->settings.run != run->settings.run)
		return NULL;
	return run;
}

/* Whether the run is for sockets with this one's mark. */
nn_inline int is_chosen(const struct bpf_sock *sk)
{
	const struct nn_left_out *out = the_left_out();

	return out && (!out->masked || mark_of(sk) == out->mark);
}

/* Whether the run is for connections with this peer; ports in host byte order. */
nn_inline int is_meant(const struct nn_run *run, const u32 peer[4], u32 theirs, u32 ours)
{
	const struct nn_left_out *out = the_left_out();

	if (run->n_peers && !is_among(run->peers, run->n_peers, peer, theirs, ours))
		return 0;
	return out && !is_among(out->peers, out->n_peers, peer, theirs, ours);
}

#include "run.h"
