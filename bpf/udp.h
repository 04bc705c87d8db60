/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Sockets of UDP in a run. The run's programs find them, and a hold has their datagrams wait. */
#ifndef NN_UDP_H
#define NN_UDP_H

#include "kernel.h"

struct nn_udp {
	u64 held_us;	/* clock: a datagram last waited, or might have; 0: none did */
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct nn_udp);
} nn_udp SEC(".maps");

#endif
