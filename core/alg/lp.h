/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * TCP-LP: give way at the first sign of a queue, to one packet if it persists.
 *
 * A. Kuzmanovic, E. Knightly, "TCP-LP: A Distributed Algorithm for Low Priority
 * Data Transfer", INFOCOM 2003; "TCP-LP: Low-Priority Service via End-Point
 * Congestion Control", IEEE/ACM ToN 14(4), 2006. With d a packet's delay:
 *
 *	sd = (1 - gamma) sd + gamma d			gamma = 1/8
 *	early congestion:	sd > dmin + delta (dmax - dmin)
 *
 *	early congestion:	W = W/2, and an inference phase of 3 RTTs begins,
 *				through which W does not grow
 *	  within such a phase:	W = 1, and the phase begins anew
 *	otherwise:		Reno
 *
 *	slow start ----- first loss, which also shows dmax ----+
 *	                                                       v
 *	       early congestion: W/2            +------- avoidance: Reno
 *	     +----------------------------------+              ^
 *	     v                                                 |
 *	inference: W stays ---------- 3 RTTs ------------------+
 *	     ^         |
 *	     +---------+ early congestion: W = 1
 *
 * In the first slow start delays are only learnt: until a loss nobody knows what
 * a full queue is. So each flow begins with a full buffer.
 *
 * Deviations from the papers, and what they leave open:
 * - RTTs stand in for one-way delays, which hosts do not give (Linux' module takes
 *   them from time stamps). A queue on the way back counts too. An RTT that may hold
 *   the receiver's timer (measure/rtt.h) shows a short delay but not a long one.
 * - One reaction a round, to early congestion or a loss: what is in flight when W
 *   shrinks tells of the same queue. By the letter of the paper's listing the next
 *   ACK would find the inference phase and reduce W to one.
 * - After a reaction sd starts anew, with the first packet sent thereafter, lest
 *   small windows hear of the old queue for several rounds.
 * - dmin and dmax follow a path that changes, and the limit stands above its jitter
 *   (measure/bounds.h). Jitter still costs: an average that starts anew has few samples.
 * - The inference phase is counted in rounds, each of a window of data.
 *
 * Range: delta <= 1 in Q16 times a difference of RTTs: 17 + 27 bits; 8 sd has 30.
 */
#ifndef NN_ALG_LP_H
#define NN_ALG_LP_H

#include "../measure/bounds.h"
#include "../window/window.h"

#define nn_lp_summary "TCP-LP: halves when a queue builds, one packet if it persists"

#define nn_lp_traits (NN_YIELDS | NN_TIMED)

#define nn_lp_params(P)                                                                            \
	P(delta, 0.15, 0.0, 1.0, "share of the buffer", "TCP-LP III",                              \
	  "the smoothed delay above which there is early congestion")                              \
	P(inference, 3.0, 1.0, 16.0, "round trips", "TCP-LP III",                                 \
	  "how long the window does not grow after early congestion")

struct nn_lp_cfg {
	nn_lp_params(NN_FIELD)
};

struct nn_lp {
	struct nn_window window;
	struct nn_bounds bounds; /* of RTTs: base is dmin, top is dmax */
	u32 smooth_8us;	/* 8 sd; 0: no sample yet */
	u32 end;	/* the round ends when data beyond this is acknowledged */
	u32 inferring;	/* rounds of the inference phase that are left */
	u32 reacted;	/* W was reduced in this round */
	u32 lost;	/* there was a loss: dmax is that of a full queue */
	u32 pairs;	/* the receiver waits for pairs (rtt.h) */
};

nn_inline void nn_lp_answer(const struct nn_lp *s, struct nn_ctl *ctl)
{
	nn_window_answer(&s->window, ctl);
	if (s->inferring)
		ctl->flags |= NN_CTL_YIELDING;
}

/* The delay above which there is early congestion. */
nn_inline u32 nn_lp_limit(const struct nn_lp *s, const struct nn_lp_cfg *c)
{
	const struct nn_bounds *b = &s->bounds;
	u64 queue = nn_max(b->top_us, b->base_us) - b->base_us;

	return (u32)(b->base_us + nn_bounds_noise(b) + queue * nn_min(c->delta, NN_ONE) / NN_ONE);
}

nn_inline void nn_lp_sample(struct nn_lp *s, const struct nn_lp_cfg *c, const struct nn_ack *a)
{
	u32 rtt = nn_rtt(a);
	int late = nn_rtt_late(a, s->pairs);

	nn_rtt_note(&s->pairs, a);
	if (!rtt)
		return;
	nn_bounds_ack(&s->bounds, a, s->window.cwnd, late);
	if (s->reacted || (late && rtt > nn_lp_limit(s, c)))
		return;
	if (s->smooth_8us)
		s->smooth_8us += rtt - s->smooth_8us / 8;
	else
		s->smooth_8us = 8 * rtt;
}

/* What was sent before now is not heard any more. */
nn_inline void nn_lp_deafen(struct nn_lp *s, const struct nn_ack *a)
{
	s->reacted = 1;
	s->end = a->nxt;
	s->smooth_8us = 0;
}

/* Early congestion. */
nn_inline void nn_lp_yield(struct nn_lp *s, const struct nn_lp_cfg *c, const struct nn_ack *a)
{
	nn_window_shrink(&s->window, s->inferring ? NN_ONE : nn_max(s->window.cwnd / 2, NN_ONE));
	s->inferring = c->inference / NN_ONE;
	nn_lp_deafen(s, a);
}

nn_inline void nn_lp_init(struct nn_lp *s, const struct nn_lp_cfg *c, struct nn_group *g,
			  const struct nn_ack *a, struct nn_ctl *ctl)
{
	nn_window_start(&s->window, ctl);
	s->end = a->nxt;
	nn_lp_answer(s, ctl);
}

nn_inline void nn_lp_ack(struct nn_lp *s, const struct nn_lp_cfg *c, struct nn_group *g,
			 const struct nn_ack *a, struct nn_ctl *ctl)
{
	if (nn_round_over(&s->end, a)) {
		s->reacted = 0;
		if (s->inferring)
			s->inferring--;
	}
	nn_lp_sample(s, c, a);
	if (s->lost && !s->reacted && s->smooth_8us / 8 > nn_lp_limit(s, c))
		nn_lp_yield(s, c, a);
	else if (!s->inferring)
		nn_window_grow(&s->window, a);
	nn_lp_answer(s, ctl);
}

nn_inline void nn_lp_event(struct nn_lp *s, const struct nn_lp_cfg *c, struct nn_group *g,
			   enum nn_event event, const struct nn_ack *a, struct nn_ctl *ctl)
{
	if (event == NN_LOSS) {
		s->lost = 1;
		nn_bounds_lose(&s->bounds, a->now_us);
	}
	nn_window_react(&s->window, event, NN_ONE, ctl);
	nn_lp_deafen(s, a);
	nn_lp_answer(s, ctl);
}

#define nn_lp_send nn_no_send

#define nn_lp_shown(S, s, c)                                                                       \
	nn_show_base_rtt(S, (s)->bounds.base_us)                                                           \
	nn_show_max_rtt(S, (s)->bounds.top_us)

#endif
