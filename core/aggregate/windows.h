/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The congestion windows of a group (aggregate/group.h), one for each member:
 * which of them an acknowledged or a lost packet is charged to. Each window is
 * one of Reno; the identity of the flow whose packets drive it does not matter
 * (MPAT, 3.2).
 *
 * Two kinds of host:
 *
 * 1. A host that sees ACKs only (the kernel) charges a run of packets of one flow,
 *    acknowledged or lost, to one window. Then it draws the next:
 *
 *	probability of window j:	C_j / C
 *	length of a run:		`run` C/N packets	(a part of the mean window)
 *
 *    So window j is charged with C_j of the C packets of a round trip on average, as
 *    if they had been sent through it. In congestion avoidance it grows by 1 in a round
 *    trip. It is cut at most once in a smoothed round trip, and does not grow in it
 *    (fast recovery).
 *
 *    Runs keep together what a flow loses together: queues that overflow drop several
 *    packets of a burst, which cut one window of TCP, not one each (MPAT, 3.3.3).
 *
 * 2. A host that can tag its packets (the simulator) maps each packet to a window
 *    when it is sent, as in the paper (3.3.1), by one of the rules of 3.3.3:
 *
 *	1	the window of the flow's last packet, if it is open
 *	2	any open window but that one
 *	3	any open window, each as likely: the paper's choice
 *
 *    A window is open if fewer packets are out through it than it allows. Where none is,
 *    the window is drawn as above: A_i decides that the member may send at all. The tag
 *    has the window's number and counts its reductions. So a packet sent before the last
 *    one neither cuts it again nor makes it grow.
 *
 * Deviation from the paper: what the flow's own recovery takes for lost is charged as
 * lost. The paper waits for three later ACKs of the same window, which come in the same
 * round trip.
 *
 * The draw and the change of a window take NN_GROUP_LEVELS steps: `tree` is a
 * Fenwick tree. With places counted from 1, that of place k has the sum of the
 * windows of the last `k & -k` places up to k. The steps have no branches: the
 * kernel's verifier would follow each combination of them.
 */
#ifndef NN_WINDOWS_H
#define NN_WINDOWS_H

#include "group.h"

enum nn_rule {
	NN_RULE_RUN,		/* no tags: runs, when ACKs come */
	NN_RULE_SAME,
	NN_RULE_OTHER,
	NN_RULE_ANY,
};

/* A packet's window, and how often that had been cut: 10 and 22 bits. */
#define NN_TAG_ROUND(tag) ((tag) >> NN_GROUP_LEVELS)
#define NN_TAG_ROUNDS (~0u >> NN_GROUP_LEVELS)

/* What a member's packets are charged to. */
struct nn_charge {
	u32 window;	/* that the present run is charged to */
	u32 left;	/* packets that the run still has */
	u32 cut;	/* the last window cut because of this member, plus 1 */
	u32 told;	/* NN_LOSS came, and no ACK since that counts the loss */
	u64 lost_us;	/* when an ACK last counted losses */
};

/* C (Q16): what as many flows would send with these windows. */
nn_inline u64 nn_windows_c(const struct nn_group *g)
{
	return g->packets * NN_ONE;
}

/* A window was `before`: mends all sums. */
nn_inline void nn_windows_mend(struct nn_group *g, u32 index, u64 before)
{
	u64 now = nn_group_at(g, index)->window.cwnd;
	u64 change = now - before; /* may wrap: so do the sums */

	g->sum += change;
	g->packets += nn_packets(now) - nn_packets(before);
	for (u32 level = 0; level <= NN_GROUP_LEVELS; level++) {
		u32 block = (index & (NN_GROUP_MAX - 1)) >> level;

		/* only the first of each pair of blocks has a sum of its own */
		nn_group_at(g, ((block + 1) << level) - 1)->tree += change & ((u64)(block & 1) - 1);
	}
}

/* The window to which `drawn` of the sum belongs, of all laid end to end. 46 bits. */
nn_inline u32 nn_windows_find(struct nn_group *g, u64 drawn)
{
	u32 index = 0;

	for (u32 step = NN_GROUP_MAX / 2; step; step /= 2) {
		u32 last = (index | step) - 1;
		u64 below, beyond;

		/* a compiler that knows its bits would leave away the bound that the verifier wants */
		__asm__("" : "+r"(last));
		below = nn_group_at(g, last)->tree;
		beyond = (drawn - below) >> 63 ^ 1; /* 1: drawn >= below */

		index |= step * (u32)beyond;
		drawn -= below * beyond;
	}
	return index;
}

/* A window drawn with probability C_j / C. */
nn_inline u32 nn_windows_draw(struct nn_group *g)
{
	u64 bits = nn_random(&g->random);

	return nn_windows_find(g, g->sum ? bits % g->sum : 0);
}

/* Packets were acknowledged that are charged to a window; no more of them than it has. */
nn_inline void nn_windows_grow(struct nn_group *g, u32 index, u64 acked)
{
	struct nn_window *w = &nn_group_at(g, index)->window;
	u64 before = w->cwnd;
	struct nn_ack one = { .acked = (u32)nn_min(acked, before / NN_ONE + 1) };

	nn_window_grow(w, &one);
	nn_windows_mend(g, index, before);
}

/* A loss is charged to a window. */
nn_inline void nn_windows_cut(struct nn_group *g, u32 index, const struct nn_ack *a)
{
	struct nn_member *m = nn_group_at(g, index);
	u64 before = m->window.cwnd;

	nn_window_lose(&m->window, nn_clamp_cwnd(before / 2, NN_BURST * NN_ONE));
	m->held_us = a->now_us + nn_min(a->srtt_us, NN_RTT_MAX);
	m->round++;
	nn_windows_mend(g, index, before);
}

/* Whether the window was cut less than a round trip ago. */
nn_inline int nn_windows_held(const struct nn_member *m, const struct nn_ack *a)
{
	/* a clock that jumped back does not hold it for longer than that */
	return m->held_us - a->now_us - 1 < NN_RTT_MAX;
}

/* Charges a loss to a window, unless it was cut less than a round trip ago; returns whether so. */
nn_inline int nn_windows_lose(struct nn_group *g, u32 index, const struct nn_ack *a)
{
	if (nn_windows_held(nn_group_at(g, index), a))
		return 0;
	nn_windows_cut(g, index, a);
	return 1;
}

/* The length of a run, in packets: so many times the mean window. */
nn_inline u32 nn_windows_run(const struct nn_group *g, u32 times_q16)
{
	u64 mean = g->members ? g->packets / g->members : 0;

	/* 20 + 21 bits */
	return (u32)nn_max(nn_min(mean, NN_ACKED_MAX) * times_q16 / NN_ONE, 1);
}

/* The window that is charged now; a run is so many times the mean window. */
nn_inline u32 nn_windows_charged(struct nn_group *g, struct nn_charge *r, u32 times_q16)
{
	if (!r->left || !nn_group_at(g, r->window)->weight) {
		r->window = nn_windows_draw(g);
		r->left = nn_windows_run(g, times_q16);
	}
	/* read anew: the kernel's verifier then goes on with one window, not with each that it may be */
	return *(volatile u32 *)&r->window;
}

/*
 * A host tells of losses by NN_LOSS once for each window of a member's data, and counts all of them
 * in ACKs, of which one comes with the event or after it.
 */

/* Whether an ACK counts losses that no event told of. */
nn_inline int nn_charge_counted(struct nn_charge *r, const struct nn_ack *a)
{
	int news = a->lost && !r->told;

	if (a->lost)
		r->lost_us = a->now_us;
	r->told = 0;
	return news;
}

/* Whether NN_LOSS tells of losses that the ACK that it comes with did not count. */
nn_inline int nn_charge_told(struct nn_charge *r, const struct nn_ack *a)
{
	r->told = r->lost_us != a->now_us;
	return (int)r->told;
}

/* A new member's window, as the host would start it. */
nn_inline void nn_windows_join(struct nn_group *g, u32 index, const struct nn_ctl *ctl)
{
	nn_window_start(&nn_group_at(g, index)->window, ctl);
	nn_windows_mend(g, index, 0);
}

nn_inline void nn_windows_leave(struct nn_group *g, u32 index)
{
	struct nn_window *w = &nn_group_at(g, index)->window;
	u64 before = w->cwnd;

	w->cwnd = 0;
	nn_windows_mend(g, index, before);
}

/* Whether a place has a window that allows another packet. */
nn_inline int nn_windows_open(const struct nn_member *m)
{
	return m->weight && m->out < nn_packets(m->window.cwnd);
}

/*
 * Below: for a host that tags packets. Linear in the places; not for the kernel.
 */

/* The open window with number `skip` after `but` others; NN_GROUP_MAX: there are too few. */
nn_inline u32 nn_windows_nth_open(struct nn_group *g, u32 but, u32 *n)
{
	for (u32 i = 0; i < g->fresh; i++)
		if (i != but && nn_windows_open(&g->member[i]) && !(*n)--)
			return i;
	return NN_GROUP_MAX;
}

/* Any open window but one, each as likely; NN_GROUP_MAX: there is none. */
nn_inline u32 nn_windows_any_open(struct nn_group *g, u32 but)
{
	u32 many = NN_GROUP_MAX, n = many;

	nn_windows_nth_open(g, but, &n);
	if (many == n)
		return NN_GROUP_MAX;
	n = (u32)(nn_random(&g->random) % (many - n));
	return nn_windows_nth_open(g, but, &n);
}

/* Chooses the window of a packet that leaves; `last` is the one of the flow's last packet. */
nn_inline u32 nn_windows_choose(struct nn_group *g, u32 last)
{
	u32 index;

	if (g->rule == NN_RULE_SAME && nn_windows_open(nn_group_at(g, last)))
		return last;
	index = nn_windows_any_open(g, g->rule == NN_RULE_OTHER ? last : NN_GROUP_MAX);
	return index < NN_GROUP_MAX ? index : nn_windows_draw(g);
}

/* The member whose window a tag means; NULL: it has left. */
nn_inline struct nn_member *nn_windows_tagged(struct nn_group *g, u32 tag)
{
	struct nn_member *m = nn_group_at(g, tag);
	u32 since = (NN_TAG_ROUND(tag) - m->joined) & NN_TAG_ROUNDS;

	return m->weight && since <= m->round - m->joined ? m : (struct nn_member *)0;
}

/* Whether the window was not cut since the packet was sent. */
nn_inline int nn_windows_current(const struct nn_member *m, u32 tag)
{
	return !((NN_TAG_ROUND(tag) ^ m->round) & NN_TAG_ROUNDS);
}

#endif
