/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Sockets of UDP in a run. The run's programs find them, and a device has their datagrams wait. */
#ifndef NN_UDP_H
#define NN_UDP_H

#include "kernel.h"

struct nn_udp {
	u64 held_us;	/* clock: a datagram that left last waited, or might have; 0: none did */
	u64 pulled_us;	/* the same of one that came */
	u64 seen_us;	/* clock: the run last said the two below */
	u64 dropped;	/* bytes that came, were too many, and are in no sum yet */
	u32 up;		/* those that leave are to wait (hold.bpf.c) */
	u32 down;	/* those that come are to (down.bpf.c) */
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct nn_udp);
} nn_udp SEC(".maps");

#define SAID_US 5000000u	/* a socket that is in no run any more is known for so long */

/* What a run says of the socket; NULL: nothing. */
nn_inline struct nn_udp *said_of(struct bpf_sock *sk)
{
	struct nn_udp *u = bpf_sk_storage_get(&nn_udp, sk, 0, 0);

	return u && bpf_ktime_get_ns() / 1000 < u->seen_us + SAID_US ? u : NULL;
}

nn_inline struct nn_udp *udp_of(struct bpf_sock *sk)
{
	if (sk)
		sk = bpf_sk_fullsock(sk);
	return sk ? said_of(sk) : NULL;
}

#endif
