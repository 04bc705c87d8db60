/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The one map that all programs share: the flows, in their sockets' storage. */
#ifndef NN_FLOWS_H
#define NN_FLOWS_H

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC | BPF_F_CLONE); /* accepted sockets inherit */
	__type(key, int);
	__type(value, struct nn_flow);
} nn_flows SEC(".maps");

#endif
