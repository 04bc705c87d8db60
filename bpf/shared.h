/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The maps that all programs share: whichever is loaded first makes them, the others find them
 * by name. Groups' are in programs that have groups only.
 */
#ifndef NN_SHARED_H
#define NN_SHARED_H

#include "flow.h"

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC | BPF_F_CLONE); /* accepted sockets inherit */
	__type(key, int);
	__type(value, struct nn_flow);
} nn_flows SEC(".maps");

#ifdef NN_IN_GROUPS

#include "group.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct nn_directory);
} nn_directory SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, NN_SLOTS);
	__type(key, u32);
	__type(value, struct nn_slot);
} nn_slots SEC(".maps");

#endif

#endif
