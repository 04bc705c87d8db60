/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * LEDBAT: keep the queue's delay at a target, as far as it is one's own.
 *
 * RFC 6817 (S. Shalunov, G. Hazel, J. Iyengar, M. Kuehlewind, "Low Extra Delay
 * Background Transport", 2012), known from file sharing and software updates:
 *
 *	base	= min of the delays of 10 minutes	(BASE_HISTORY, 3.4.2)
 *	queue	= min of the last 4 delays - base	(CURRENT_FILTER)
 *	off	= (target - queue)/target		at most 1
 *
 *	each packet:	W += gain off/W, while it grows no higher than the packets in
 *			flight + 1 (ALLOWED_INCREASE); at least 2 packets
 *	on loss:	W = max(W/2, 2)
 *	on timeout:	W = 1
 *
 *	             queue > 3/4 target, or a loss             queue < target: W grows
 *	slow start --------------------------------> steering  queue = target: stays
 *	     ^                                          |      queue > target: shrinks
 *	     +--------- timeout, after idling ----------+
 *
 * It gives way to whoever fills the queue beyond the target, but a path whose
 * buffer holds less than that never shows it: there it is a Reno flow. A queue of
 * the target is there for everyone, and a flow that comes late takes it for the
 * empty path ("latecomer's advantage").
 *
 * Deviations from RFC 6817, and what it leaves open:
 * - RTTs stand in for one-way delays, which hosts do not give. A queue on the way
 *   back counts too, and so does the receiver's delayed ACK where a packet is
 *   alone; the least of four samples takes out most of that.
 * - Slow start (the RFC allows it, and to skip it) is Reno's from INIT_CWND = 2
 *   until the queue is above 3/4 of the target, which is from its successor,
 *   LEDBAT++ (ledbatpp.h).
 * - The packets in flight limit growth. They do not cut a window that is there
 *   already: the host does that after idling (RFC 2861).
 * - The window shrinks, but does not grow, in recovery and where the application
 *   is what limits the flow.
 * - The ten minima are of minutes in which there were samples, as in the RFC's
 *   pseudocode; a minute begins with the first sample after the last one's end.
 *
 * Range: a delay below 2^27 us over a target of 1 ms or more is below 2^34 in
 * Q16. See the products.
 */
#ifndef NN_ALG_LEDBAT_H
#define NN_ALG_LEDBAT_H

#include "../window/window.h"

#define nn_ledbat_summary \
	"LEDBAT (RFC 6817): keeps the queue at a target of 100 ms; gives way beyond, not below"

#define nn_ledbat_traits (NN_TIMED)

#define nn_ledbat_params(P)                                                                        \
	P(target, 100.0, 1.0, 100.0, "ms", "RFC 6817 3.5",                                         \
	  "the delay in the queue that the flow steers to; the RFC allows no more")                \
	P(gain, 1.0, 0.01, 1.0, "packets", "RFC 6817 3.5",                                         \
	  "how much the window grows in a round trip over an empty queue")

#define NN_LEDBAT_HISTORY 10	/* minutes: BASE_HISTORY */
#define NN_LEDBAT_MINUTE_US 60000000u
#define NN_LEDBAT_FILTER 4	/* samples: CURRENT_FILTER */
#define NN_LEDBAT_LEAST (2 * NN_ONE) /* INIT_CWND and MIN_CWND */

struct nn_ledbat_cfg {
	nn_ledbat_params(NN_FIELD)
};

struct nn_ledbat {
	struct nn_window window;
	u64 minute_us;			/* clock of the start of the present minute */
	u32 base[NN_LEDBAT_HISTORY];	/* least RTT of each minute, present one first; 0: none */
	u32 recent[NN_LEDBAT_FILTER];	/* last RTT samples, newest first; 0: none */
};

/* The lesser of two RTTs, of which 0 is none. */
nn_inline u32 nn_ledbat_least(u32 a, u32 b)
{
	return a && (!b || a < b) ? a : b;
}

nn_inline u32 nn_ledbat_base(const struct nn_ledbat *s)
{
	u32 least = 0;

	for (int i = 0; i < NN_LEDBAT_HISTORY; i++)
		least = nn_ledbat_least(least, s->base[i]);
	return least;
}

/* The delay in the queue: how far the least of the recent samples is above the base. */
nn_inline u32 nn_ledbat_queue(const struct nn_ledbat *s)
{
	u32 base = nn_ledbat_base(s);
	u32 least = 0;

	for (int i = 0; i < NN_LEDBAT_FILTER; i++)
		least = nn_ledbat_least(least, s->recent[i]);
	return least > base ? least - base : 0;
}

nn_inline void nn_ledbat_sample(struct nn_ledbat *s, const struct nn_ack *a)
{
	u32 rtt = nn_rtt(a);

	if (!rtt)
		return;
	if (a->now_us - s->minute_us >= NN_LEDBAT_MINUTE_US) {
		s->minute_us = a->now_us;
		for (int i = NN_LEDBAT_HISTORY - 1; i > 0; i--)
			s->base[i] = s->base[i - 1];
		s->base[0] = 0;
	}
	s->base[0] = nn_ledbat_least(s->base[0], rtt);
	for (int i = NN_LEDBAT_FILTER - 1; i > 0; i--)
		s->recent[i] = s->recent[i - 1];
	s->recent[0] = rtt;
}

/* A target of so many ms (Q16), us; not zero. 26 + 10 bits. */
nn_inline u64 nn_ledbat_target(u32 target)
{
	return nn_max((u64)target * 1000 / NN_ONE, 1);
}

/* The window shrinks, or grows where it may, by so much (Q16), for so many packets acknowledged. */
nn_inline void nn_ledbat_move(struct nn_ledbat *s, int shrinks, u64 change, u64 acked,
			      const struct nn_ack *a)
{
	u64 cwnd = nn_max(s->window.cwnd, NN_ONE);

	if (shrinks) {
		cwnd -= nn_min(cwnd, change);
		s->window.cwnd = nn_clamp_cwnd(cwnd, nn_min(s->window.cwnd, NN_LEDBAT_LEAST));
	} else if (nn_may_grow(a)) {
		/* what was in flight before this ACK, and ALLOWED_INCREASE */
		u64 allowed = ((u64)a->inflight + acked + 1) * NN_ONE;

		cwnd = nn_max(nn_min(cwnd + change, allowed), cwnd);
		s->window.cwnd = nn_clamp_cwnd(cwnd, NN_LEDBAT_LEAST);
	}
}

/* Steers the window for so many packets, with the queue below or above the target. */
nn_inline void nn_ledbat_steer(struct nn_ledbat *s, const struct nn_ledbat_cfg *c, u64 acked,
			       const struct nn_ack *a)
{
	u64 target = nn_ledbat_target(c->target);
	u64 queue = nn_ledbat_queue(s);
	u64 cwnd = nn_max(s->window.cwnd, NN_ONE);
	u64 distance = queue < target ? target - queue : queue - target;
	/* 27 + 16 bits over the target, times the gain: 34 + 16; over W, which is one or more */
	u64 step = distance * NN_ONE / target * nn_min(c->gain, NN_ONE) / cwnd;

	/* 34 + 20 bits */
	nn_ledbat_move(s, queue > target, acked * step, acked, a);
}

nn_inline void nn_ledbat_init(struct nn_ledbat *s, const struct nn_ledbat_cfg *c,
			      struct nn_group *g, const struct nn_ack *a, struct nn_ctl *ctl)
{
	ctl->cwnd_q16 = nn_min(ctl->cwnd_q16, NN_LEDBAT_LEAST);
	nn_window_start(&s->window, ctl);
	s->minute_us = a->now_us;
	nn_window_answer(&s->window, ctl);
}

nn_inline void nn_ledbat_ack(struct nn_ledbat *s, const struct nn_ledbat_cfg *c,
			     struct nn_group *g, const struct nn_ack *a, struct nn_ctl *ctl)
{
	struct nn_window *w = &s->window;
	u64 acked = nn_acked(a);

	nn_ledbat_sample(s, a);
	if (nn_window_in_slow_start(w) && nn_ledbat_queue(s) > nn_ledbat_target(c->target) / 4 * 3)
		w->ssthresh = w->cwnd;
	if (nn_window_in_slow_start(w))
		acked = nn_may_grow(a) ? nn_window_slow_start(w, acked) : 0;
	if (acked)
		nn_ledbat_steer(s, c, acked, a);
	nn_window_answer(w, ctl);
}

nn_inline void nn_ledbat_event(struct nn_ledbat *s, const struct nn_ledbat_cfg *c,
			       struct nn_group *g, enum nn_event event, const struct nn_ack *a,
			       struct nn_ctl *ctl)
{
	nn_window_react(&s->window, event, NN_LEDBAT_LEAST, ctl);
	nn_window_answer(&s->window, ctl);
}

#define nn_ledbat_send nn_no_send

#define nn_ledbat_shown(S, s, c) nn_show_base_rtt(S, nn_ledbat_base(s))

#endif
