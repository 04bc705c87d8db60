/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What the programs that let downloads yield keep, and the tool in user space reads.
 */
#ifndef NN_DOWN_KEPT_H
#define NN_DOWN_KEPT_H

#include "hold.h"
#include "../core/host/down_datagram.h"

/* The path from a next hop, and what all that comes from there in the background is told. */
struct nn_down_hop {
	struct nn_down path;
	u64 state[NN_STATE_MAX / 8];	/* the algorithm's */
	u64 fired;		/* an ACK that waited came back then */
	u64 open_until;		/* none came back, or the path is fast; until then windows are the kernel's */
	u64 came;		/* bytes of the background */
	u64 came_all;		/* and of all */
	u64 kept;		/* windows that were made smaller */
	u64 dropped;		/* datagrams of the background that were too many */
	u64 given;		/* when the first of those that wait was to come back, and none did; 0: they come */
	struct bpf_spin_lock lock;
	u32 used;
	u32 fast;		/* if they are, it is because the path is fast */
	u32 reserved;
	struct nn_hold hold;	/* whose it is */
};

/* What an ACK says, but for its window. */
struct nn_numbers {
	u32 seq, ack;
	u32 stamp, echo;	/* TSval, TSecr; 0: none */
};

/* A connection of the background, by its ends as its own packets name them. */
struct nn_pulled {
	struct nn_down_flow flow;
	u64 waits_until;	/* one of its ACKs waits until then; 0: none does */
	u64 began_at;		/* clock: began was set */
	u32 hop;
	u32 began;		/* its window is known */
	struct nn_numbers newest;	/* that it sent */
	u32 told;		/* bytes that its SYN allowed; 0: its SYN was not seen */
	u32 scale;		/* of its windows, plus 1; 0: not known */
	u32 offered;		/* scale in its SYN, plus 1; 0: none */
	u32 answered;		/* the other end's SYN was seen */
	u32 spared;		/* it is left alone (NN_ONLY_UP) */
	u32 cannot;		/* it cannot yield (cannot_yield()) */
	u32 largest;		/* segment that came, bytes */
	u32 reserved;
};

/* One of the foreground. */
struct nn_fetched {
	struct nn_down_user user;
	u32 largest;		/* segment that came, bytes */
	u32 hop;
};

#endif
