/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * MulTCP: one AIMD loop that is to behave as N; what MPAT is compared with.
 *
 * J. Crowcroft, P. Oechslin, "Differentiated End-to-End Internet Services using
 * a Weighted Proportional Fair Sharing TCP", ACM CCR 28(3), 1998; as the paper on
 * MPAT, section 2, describes it, with one loop for a group of flows:
 *
 *	each packet acknowledged:	C += N/C		(1 in slow start)
 *	loss, once a round:		C -= C / 2N
 *	timeout:			C = 1
 *
 * divided among the flows by their shares (aggregate/group.h). N is the number of
 * flows, or a fixed one. With `loops` 1 it is the one shared loop of the Congestion
 * Manager (Balakrishnan, Rahul, Seshan, SIGCOMM 1999) and of TCP trunks, which is
 * entitled to the share of one flow. Without a group the loop is the flow's own.
 *
 * Deviation: slow start doubles C in a round trip, from the host's initial window;
 * Crowcroft and Oechslin start faster the larger N is.
 *
 * Range: N <= 2^10; 2N C: 47 bits; acked N 2^32: 62 bits.
 */
#ifndef NN_ALG_MULTCP_H
#define NN_ALG_MULTCP_H

#include "../aggregate/group.h"

#define nn_multcp_summary \
	"MulTCP: one AIMD loop as aggressive as N for the flows of a group; falls off beyond a few"

#define nn_multcp_traits (NN_GREEDY)

#define nn_multcp_params(P)                                                                        \
	nn_group_params(P)                                                                         \
	P(pace, 2.0, 0.0, 16.0, "A_i", "-",                                                       \
	  "packets that may leave in a smoothed RTT, over the window; 0: as ACKs come")            \
	P(loops, 0.0, 0.0, 1024.0, "loops", "MPAT 2",                                              \
	  "N, the AIMD loops that it stands for; 0: as many as there are flows; "                  \
	  "1: Congestion Manager, TCP trunk")

struct nn_multcp_cfg {
	nn_multcp_params(NN_FIELD)
};

struct nn_multcp {
	struct nn_window alone;	/* without a group */
	u64 held_us;		/* as in struct nn_group, without one */
	struct nn_place place;
};

/* The loop, wherever it is. */
struct nn_multcp_loop {
	struct nn_window *w;
	u64 *held_us;
	u64 n;
};

nn_inline struct nn_multcp_loop nn_multcp_loop(struct nn_multcp *s, const struct nn_multcp_cfg *c,
					       struct nn_group *g)
{
	u32 n = c->loops / NN_ONE;

	if (g && s->place.at)
		return (struct nn_multcp_loop){ &g->loop, &g->loop_held_us,
						nn_min(n ? n : g->members, NN_GROUP_MAX) };
	return (struct nn_multcp_loop){ &s->alone, &s->held_us,
					nn_min(nn_max(n, 1), NN_GROUP_MAX) };
}

nn_inline void nn_multcp_answer(struct nn_multcp *s, const struct nn_multcp_cfg *c,
				struct nn_group *g, const struct nn_ack *a, struct nn_ctl *ctl)
{
	if (g && s->place.at) {
		struct nn_member *m = nn_group_member(g, &s->place);

		if (m->weight != c->share)
			nn_group_weigh(g, m, c->share);
		nn_group_answer(m, &s->place,
				nn_group_divide(g, m, g->loop.cwnd / NN_ONE * NN_ONE), c->pace, a,
				ctl);
	} else {
		nn_window_answer(&s->alone, ctl);
	}
}

/* One loop of N: a round of growth is N packets. */
nn_inline void nn_multcp_grow(const struct nn_multcp_loop *l, const struct nn_ack *a)
{
	u64 acked = nn_window_slow_start(l->w, nn_acked(a));

	if (l->w->cwnd)
		l->w->cwnd += acked * l->n * NN_ONE * NN_ONE / l->w->cwnd;
	l->w->cwnd = nn_clamp_cwnd(l->w->cwnd, 0);
}

nn_inline int nn_multcp_held(const struct nn_multcp_loop *l, const struct nn_ack *a)
{
	return *l->held_us - a->now_us - 1 < NN_RTT_MAX;
}

/* One of N windows is halved, at most one in a smoothed round trip. */
nn_inline void nn_multcp_lose(const struct nn_multcp_loop *l, const struct nn_ack *a)
{
	u64 cwnd = l->w->cwnd;

	if (nn_multcp_held(l, a))
		return;
	nn_window_lose(l->w, nn_clamp_cwnd(cwnd - cwnd / (2 * nn_max(l->n, 1)), NN_BURST * NN_ONE));
	*l->held_us = a->now_us + nn_min(a->srtt_us, NN_RTT_MAX);
}

nn_inline void nn_multcp_init(struct nn_multcp *s, const struct nn_multcp_cfg *c,
			      struct nn_group *g, const struct nn_ack *a, struct nn_ctl *ctl)
{
	if (g) {
		if (!g->members)
			nn_window_start(&g->loop, ctl);
		nn_group_join(g, &s->place, c->share, nn_clamp_cwnd(ctl->cwnd_q16, NN_ONE));
	}
	s->place.end = a->nxt;
	nn_window_start(&s->alone, ctl);
	nn_multcp_answer(s, c, g, a, ctl);
}

nn_inline void nn_multcp_ack(struct nn_multcp *s, const struct nn_multcp_cfg *c,
			     struct nn_group *g, const struct nn_ack *a, struct nn_ctl *ctl)
{
	struct nn_multcp_loop l = nn_multcp_loop(s, c, g);
	int grows = nn_may_grow(a);

	if (g && s->place.at) {
		nn_group_use(g, nn_group_member(g, &s->place), a, l.w->cwnd, NN_CWND_MAX);
		if (a->lost)
			nn_multcp_lose(&l, a);
		grows = g->eager && !nn_multcp_held(&l, a);
	}
	if (grows)
		nn_multcp_grow(&l, a);
	nn_multcp_answer(s, c, g, a, ctl);
}

nn_inline void nn_multcp_event(struct nn_multcp *s, const struct nn_multcp_cfg *c,
			       struct nn_group *g, enum nn_event event, const struct nn_ack *a,
			       struct nn_ctl *ctl)
{
	struct nn_multcp_loop l = nn_multcp_loop(s, c, g);

	if (g && s->place.at && event == NN_CLOSE) {
		nn_group_leave(g, &s->place);
		return;
	}
	if (event == NN_LOSS || event == NN_ECN)
		nn_multcp_lose(&l, a);
	else if (event != NN_IDLE || !g || !s->place.at)
		nn_window_react(l.w, event, NN_BURST * NN_ONE, ctl);
	if (g && s->place.at && (event == NN_TIMEOUT || event == NN_IDLE))
		nn_group_restart(g, nn_group_member(g, &s->place),
				 event == NN_IDLE ? nn_clamp_cwnd(ctl->cwnd_q16, NN_ONE) : NN_ONE);
	nn_multcp_answer(s, c, g, a, ctl);
}

nn_inline void nn_multcp_send(struct nn_multcp *s, const struct nn_multcp_cfg *c,
			      struct nn_group *g, const struct nn_ack *a, struct nn_ctl *ctl)
{
	if (g && s->place.at)
		nn_multcp_answer(s, c, g, a, ctl);
}

#define nn_multcp_shown(S, s, c)

#endif
