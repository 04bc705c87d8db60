/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * State shared by the flows of a group: their windows, and how the sum of these
 * is divided among them.
 *
 * M. Singh, P. Pradhan, P. Francis, "MPAT: Aggregate TCP Congestion Management
 * as a Building Block for Internet QoS", IWQoS 2004; sections below are its own.
 * A flow that joins becomes a member: it brings a congestion window C_j
 * (aggregate/windows.h) and a share. C is the sum of the windows, x_i the
 * member's share of the sum of the shares (3.2), and member i may have in flight
 *
 *	A_i = x_i C
 *
 * A member that has less to send, or whose receiver takes less, lends what it
 * leaves idle (3.4, "work-conserving"). With U what such members use, and W the
 * shares of the others, who have data:
 *
 *	A_i = x_i (C - U) / W
 *
 * A member of the former kind is answered with what it would have if it had data.
 *
 *	              data           A_i reached
 *	join --> IDLE -----> RAMP -------------> NOT	(enum nn_limited)
 *	          ^            | ^                |
 *	          |            | +--- timeout ----+
 *	          +- no data --+----- no data ----+
 *
 * A host keeps the structure zeroed before its first use, one for each group. It
 * passes it to every hook of a member, keeps other hooks of the group out
 * meanwhile (a spin lock in the kernel: nothing here calls a helper, follows a
 * stored pointer or loops without a bound), and gives NN_CLOSE when a member's
 * connection ends. After the last one the structure may be given up.
 *
 * What the paper leaves open, and is so here (docs/design/groups.md says why):
 * - Joining. A flow brings the host's initial window, in slow start, as on its own.
 * - Leaving. A flow takes its own window along: C falls by C_j, on average C/N.
 * - A member's own start. It reaches A_i by slow start: from the host's initial
 *   window, from one packet after a timeout, and after it had little to send from twice
 *   what that was, ten packets at least. What is missing to A_i is lent. A
 *   member with data follows any change of shares or windows at once.
 * - Whole packets. C is the sum of the windows each rounded down, as N flows would
 *   send it. A_i is rounded by a threshold that moves each round, so that it is
 *   right on average.
 * - Pace. Members let `pace` A_i packets at most leave in a smoothed RTT (twice A_i
 *   while they start), in bursts of what that is in a millisecond, two packets at least
 *   (one of an A_i below four). What waits for its gap is not in flight: half a packet of
 *   each A_i.
 * - Under two packets A_i is a burst of two every 2/A_i smoothed RTTs, as in TCP
 *   Nice (the paper needs a packet each round trip, and plans this, 4.2).
 * - An idle member's window stays, and its share is lent: the group has as many
 *   windows as it has connections, whether or not each has data (3.4).
 *
 * Range: C is cut to 2^22 packets where it is divided (2^38 in Q16), a share is
 * below 2^26 in Q16: their product has 64 bits. The sum of 2^10 windows is below
 * 2^46, that of the shares below 2^36.
 */
#ifndef NN_GROUP_H
#define NN_GROUP_H

#include "../window/sparse.h"

/* The parameter of all algorithms that have groups. */
#define nn_group_params(P)                                                                         \
	P(share, 1.0, 0.001, 1000.0, "parts", "MPAT 3.2",                                          \
	  "the flow's part of what its group has, against the other members' parts")

#define NN_GROUP_LEVELS 10
#define NN_GROUP_MAX (1u << NN_GROUP_LEVELS)	/* members; a flow beyond that is on its own */
#define NN_GROUP_C_MAX (((u64)1 << 38) - 1)	/* 2^22 packets */
#define NN_GROUP_START (10 * NN_ONE)		/* least window to go on with after a rest */
#define NN_GROUP_LEAST 16u			/* 1/4096 packet: the gap's limit comes before it */
#define NN_GROUP_STATE 192			/* bytes of an algorithm's state for a window */
#define NN_GROUP_STEP 40503u			/* 65536 / golden ratio: thresholds well apart */

/* Why a member does not use A_i. */
enum nn_limited {
	NN_LIMITED_NOT,
	NN_LIMITED_RAMP,	/* it has data, and starts (again) */
	NN_LIMITED_IDLE,	/* it has less to send; or it is new, and has not shown that it has data */
};

/* A place for a member, and for the window with its number, in which others may send too. */
struct nn_member {
	struct nn_window window;	/* C_j */
	u64 tree;		/* see aggregate/windows.h */
	u64 held_us;		/* clock until which the window is neither cut again nor grows */
	u64 ramp;		/* the member's own slow start, Q16 */
	u64 use;		/* what it uses, Q16, if it is limited; else 0 */
	u32 weight;		/* its share, Q16; 0: the place is free */
	u32 limited;		/* it does not reach A_i: enum nn_limited */
	u32 next;		/* the next free place, plus 1 */
	u32 out;		/* packets in flight that were sent through the window (tags only) */
	u32 round;		/* counts the window's reductions, and the members of the place */
	u32 joined;		/* `round` when this member came */
	/* aggregate/any.h: */
	u32 flags;		/* of the algorithm's last answer for the window, NN_CTL_* */
	u32 base_us;		/* the member's least RTT, if paths are apart; 0: no sample yet */
	u64 virtual_time;	/* passes as the member gets packets, the slower the greater its share */
	nn_word state[NN_GROUP_STATE / 8]; /* the algorithm's, for the window */
};

struct nn_group {
	u64 random;		/* state of nn_random() */
	u64 sum;		/* of the windows, Q16 */
	u64 packets;		/* sum of the windows rounded down, packets: C */
	u64 weight;		/* sum of the shares, Q16 */
	u64 backlogged;		/* the part of this of members that are not limited */
	u64 busy;		/* the part of members that have data: not NN_LIMITED_IDLE */
	u64 used;		/* sum of `use`, Q16: U */
	u64 window;		/* C as it was last divided, Q16 */
	u64 virtual_time;	/* as in struct nn_member: passes as members with data get packets */
	u64 seen;		/* when windows were told of something last; see nn_any_time() */
	u64 rested;		/* the time since then that they are not told of, in all */
	struct nn_window loop;	/* the one window of algorithms that share one (multcp) */
	u64 loop_held_us;	/* as in struct nn_member */
	u32 members;
	u32 eager;		/* of these, with data: those that are not NN_LIMITED_IDLE */
	u32 free;		/* the first free place that was used before, plus 1 */
	u32 fresh;		/* places from here on were never used */
	u32 tags;		/* set by a host that tags packets with windows */
	u32 rule;		/* how it is to do so; 0: not at all */
	u32 apart;		/* set by a host: members' paths may differ; see aggregate/any.h */
	u32 base_us;		/* the least of all members' base_us */
	struct nn_member member[NN_GROUP_MAX];
};

/* A flow's part, in its state. */
struct nn_place {
	u32 at;			/* its place plus 1; 0: it is on its own */
	u32 end;		/* of its round: see nn_round_over() */
	u32 threshold;		/* for rounding A_i, below NN_ONE */
	u32 reserved;
};

nn_inline struct nn_member *nn_group_at(struct nn_group *g, u32 index)
{
	return &g->member[index & (NN_GROUP_MAX - 1)];
}

/* The member that a flow is. Only if p->at. */
nn_inline struct nn_member *nn_group_member(struct nn_group *g, const struct nn_place *p)
{
	return nn_group_at(g, p->at - 1);
}

/* Counts a member with what it uses and whether it is limited; or not at all: before a change. */
nn_inline void nn_group_count(struct nn_group *g, const struct nn_member *m)
{
	g->weight += m->weight;
	g->backlogged += m->limited ? 0 : m->weight;
	g->busy += m->limited != NN_LIMITED_IDLE ? m->weight : 0;
	g->eager += m->limited != NN_LIMITED_IDLE;
	g->used += m->use;
}

nn_inline void nn_group_discount(struct nn_group *g, const struct nn_member *m)
{
	g->weight -= m->weight;
	g->backlogged -= m->limited ? 0 : m->weight;
	g->busy -= m->limited != NN_LIMITED_IDLE ? m->weight : 0;
	g->eager -= m->limited != NN_LIMITED_IDLE;
	g->used -= m->use;
}

/* x * part / whole; 38 + 26 bits. */
nn_inline u64 nn_group_part(u64 x_q16, u32 part, u64 whole)
{
	return whole ? nn_min(x_q16, NN_GROUP_C_MAX) * part / whole : 0;
}

/* A_i of a window C (Q16), as if the member had data. */
nn_inline u64 nn_group_share(const struct nn_group *g, const struct nn_member *m, u64 c_q16)
{
	u64 used = g->used - m->use;
	u64 weight = g->backlogged + (m->limited ? m->weight : 0);
	u64 left = c_q16 > used ? c_q16 - used : 0;

	/* never less than its part of all shares, even where others use more than theirs */
	return nn_min(nn_max(nn_group_part(left, m->weight, weight),
			     nn_group_part(c_q16, m->weight, g->weight)),
		      NN_CWND_MAX);
}

/* Takes a place for a flow with that share; without one the flow is on its own. */
nn_inline void nn_group_join(struct nn_group *g, struct nn_place *p, u32 weight, u64 start_q16)
{
	struct nn_member *m;
	u32 index;

	if (g->free) {
		index = g->free - 1;
		g->free = nn_group_at(g, index)->next;
	} else if (g->fresh < NN_GROUP_MAX) {
		index = g->fresh++;
	} else {
		return;
	}
	m = nn_group_at(g, index);
	m->weight = (u32)nn_max(weight, 1);
	m->ramp = start_q16;
	m->use = 0;
	m->limited = NN_LIMITED_IDLE;
	m->held_us = 0;
	m->out = 0;
	m->joined = ++m->round;
	nn_group_count(g, m);
	g->members++;
	p->at = index + 1;
	p->threshold = (u32)(nn_random(&g->random) & (NN_ONE - 1));
}

/* Gives the place back. */
nn_inline void nn_group_leave(struct nn_group *g, struct nn_place *p)
{
	struct nn_member *m = nn_group_member(g, p);

	nn_group_discount(g, m);
	m->weight = 0;
	m->use = 0;
	m->next = g->free;
	g->free = p->at;
	g->members--;
	p->at = 0;
}

/* The member's share may have changed. */
nn_inline void nn_group_weigh(struct nn_group *g, struct nn_member *m, u32 weight)
{
	nn_group_discount(g, m);
	m->weight = (u32)nn_max(weight, 1);
	nn_group_count(g, m);
}

/* What an ACK says of the member's own use of C (Q16), of which it may have `most` (Q16). */
nn_inline void nn_group_use(struct nn_group *g, struct nn_member *m, const struct nn_ack *a,
			    u64 c_q16, u64 most)
{
	u64 share = nn_group_share(g, m, c_q16);
	u64 flight = nn_min((u64)a->inflight + nn_acked(a), NN_CWND_MAX / NN_ONE) * NN_ONE;
	int idle = !!(a->flags & NN_ACK_APP_LIMITED);

	nn_group_discount(g, m);
	if (idle)
		m->ramp = nn_max(2 * flight, NN_GROUP_START);
	else if (m->ramp < share)
		m->ramp += (u64)nn_acked(a) * NN_ONE;
	else
		m->ramp = NN_CWND_MAX;
	m->ramp = nn_min(m->ramp, most);
	m->limited = idle ? NN_LIMITED_IDLE :
		     m->ramp < share ? NN_LIMITED_RAMP : NN_LIMITED_NOT;
	m->use = !m->limited ? 0 : nn_min(share, !idle ? m->ramp : a->inflight ? flight : 0);
	nn_group_count(g, m);
}

/* The member starts again from so much, after a timeout or a rest; NN_CWND_MAX: at once. */
nn_inline void nn_group_restart(struct nn_group *g, struct nn_member *m, u64 ramp_q16)
{
	nn_group_discount(g, m);
	m->ramp = ramp_q16;
	m->limited = ramp_q16 < NN_CWND_MAX ? NN_LIMITED_RAMP : NN_LIMITED_NOT;
	m->use = m->limited ? ramp_q16 : 0;
	nn_group_count(g, m);
}

/* Divides a window C (Q16): A_i. */
nn_inline u64 nn_group_divide(struct nn_group *g, const struct nn_member *m, u64 c_q16)
{
	g->window = c_q16;
	return nn_group_share(g, m, c_q16);
}

/* Answers with A_i = `share`, paced at so many times that (Q16; 0: by ACKs alone). */
nn_inline void nn_group_answer(const struct nn_member *m, struct nn_place *p, u64 share, u32 pace,
			       const struct nn_ack *a, struct nn_ctl *ctl)
{
	u64 cwnd = nn_clamp_cwnd(nn_min(share, m->ramp), NN_GROUP_LEAST);
	u64 srtt = nn_min(a->srtt_us, NN_RTT_MAX);

	if (nn_round_over(&p->end, a))
		p->threshold = (p->threshold + NN_GROUP_STEP) & (NN_ONE - 1);
	ctl->gap_us = 0;
	ctl->burst = NN_BURST;
	ctl->flags = m->ramp < share ? NN_CTL_SLOW_START : 0;
	if (cwnd < NN_BURST * NN_ONE) {
		nn_sparse_pace(cwnd, NN_BURST, srtt, ctl);
	} else {
		if (m->ramp < share)
			pace = (u32)nn_max(pace, pace ? 2 * NN_ONE : 0);
		/* a host has two bursts in flight at least; 38 + 20 bits */
		if (pace)
			nn_sparse_pace(cwnd * pace / NN_ONE,
				      cwnd < 2 * NN_BURST * NN_ONE ? 1 : NN_BURST, srtt, ctl);
		cwnd = nn_min((cwnd + p->threshold) / NN_ONE * NN_ONE, NN_CWND_MAX);
	}
	ctl->cwnd_q16 = cwnd;
}

#endif
