/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Groups of connections that share their windows (core/aggregate/): what the
 * programs in the kernel keep of them, and the tool in user space reads.
 *
 * A directory says which slot a group has; the slot holds what its connections
 * share. Slots are never freed, and a slot that all have left is empty again:
 * so no program can be left with a pointer to what has become another group.
 */
#ifndef NN_KERNEL_GROUP_H
#define NN_KERNEL_GROUP_H

#include <linux/bpf.h>

#include "flow.h"
#include "../core/aggregate/group.h"

#define NN_SLOTS 64		/* groups at a time, 16 MB; connections beyond that are on their own */

/* Which connections share: those of one name, owner and algorithm, to one place. */
struct nn_group_key {
	char name[NN_GROUP_NAME];
	char ca[16];		/* congestion control */
	u32 owner;		/* uid of the user who started the runs */
	u32 bits;		/* of `addr` that count */
	u32 addr[4];		/* remote, network byte order; IPv4 as ::ffff:a.b.c.d */
};

/* One group; its slot has the same index. */
struct nn_entry {
	struct nn_group_key key;
	u32 flows;		/* connections; 0: the slot is free, and the rest 0 too */
	u32 reserved;
};

struct nn_directory {
	struct bpf_spin_lock lock;
	u32 found, free;	/* results of a search, plus 1; see nn_group_enter() */
	u32 reserved;
	struct nn_entry entry[NN_SLOTS];
};

struct nn_slot {
	struct nn_group group;		/* first: a pointer to it is one to the slot */
	struct bpf_spin_lock lock;
	u32 reserved;
};

#endif
