/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What the programs that hold the background back keep, and the tool in user space reads.
 */
#ifndef NN_HOLD_H
#define NN_HOLD_H

#include <linux/bpf.h>

#include "../core/host/line.h"
#include "../core/host/path.h"

#define NN_TURNS 0x4e500000u	/* mark: an ACK that waits to tell of more (down.bpf.c) */
#define NN_HOPS 16		/* next hops of a device that have a path; what goes to others is not held */

/* The devices of one hold, for its programs. */
struct nn_hold {
	u64 netns;		/* inode of their network namespace */
	u32 device;		/* ifindex of the device that leads out */
	u32 wait;		/* into this one goes what waits: its fq keeps it until its time */
	u32 cut;		/* into this one goes what is new: it cuts GSO packets into segments */
	u32 closing;		/* windows of downloads are the kernel's from now on (down.bpf.c) */
	u64 fastest;		/* paths above this rate, bytes/s, are left alone: each packet costs */
};

/* The path to a next hop, and the line of the packets that wait for it. */
struct nn_hop {
	struct nn_path path;
	u64 tail, floor;	/* the last clock that was given to a packet; that of the first in the line */
	u64 asked;		/* since then new packets go into the line, and none came; 0: they come */
	u64 given;		/* when the first of those that wait was to come back, and none did; 0: they come */
	u64 open_until;		/* the line is broken, and until then nothing is held */
	u64 held, unheld;	/* packets that waited; that did not, since the line was broken */
	u64 datagrams, dropped;	/* bytes of UDP of the background; its packets that were too many */
	struct nn_line line;	/* of its connections */
	u32 waiting;		/* packets */
	u32 ticket;		/* the next to be given */
	struct bpf_spin_lock lock;
	u32 used;		/* path is initialised */
	struct nn_hold hold;	/* whose it is */
};

/* A connection's ends, as its own packets name them. An address of IPv4 is in the first word. */
struct nn_ends {
	u32 from[4], to[4];	/* network byte order */
	u16 from_port, to_port;
	u16 v6, udp;
};

/* A connection that is held. */
struct nn_held {
	struct nn_line_place place; /* its id names it in the records of its packets */
	u64 when;		/* the clock given to its first packet in the line */
	struct nn_path_base base;
	u32 hop;		/* its path */
	u32 first;		/* ticket of its first packet in the line, plus 0x10000; 0: none */
	u32 most;		/* highest sequence number that left */
	u32 acked;		/* highest acknowledgement */
	u32 gap;		/* the last ACK did not advance it, or told of a gap */
	u32 beyond;		/* bytes behind a gap that are known to be delivered */
	u32 seen;		/* most is set */
	u32 largest;		/* payload of a packet, bytes */
};

/* Names a packet by its last byte. */
struct nn_packet {
	u64 id;
	u32 end;
	u32 reserved;
};

/* One that left. */
struct nn_left {
	struct nn_path_sent sent;
	u32 stamp;		/* its TSval */
	u32 full;
};

#endif
