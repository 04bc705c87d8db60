/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * LEDBAT++: LEDBAT that empties the queue from time to time, to see the empty path.
 *
 * P. Balasubramanian, O. Ertugay, D. Havey, "LEDBAT++: Congestion Control for Background
 * Traffic" (draft-irtf-iccrg-ledbat-plus-plus-01, 2020), which Windows has. Its delays are
 * RTTs. With base and queue as in ledbat.h:
 *
 *	GAIN	= 1 / min(16, ceil(2 target/base))		(4.2)
 *
 *	slow start, each packet:	W += GAIN		(4.1)
 *	each round trip:					(4.2, 4.3)
 *	  queue <= target:	W += GAIN
 *	  queue > target:	W += max(GAIN - C W (queue/target - 1), -W/2)
 *	W is 2 packets at least
 *
 * Growth by addition and decrease by a share of the window make flows converge. Flows that know
 * different empty paths do not: one that comes late takes the others' queue for the empty path. So
 * each flow slows down (4.4), and all see the empty path when they do so together:
 *
 *	slow start --- queue > 3/4 target, or a loss ---> steering
 *	                                                   |   ^
 *	     2 RTTs after slow start; later 9 T after the  |   |  W = ssthresh; T: what the
 *	                   end of a slowdown that took T   |   |  slowdown took
 *	                                                   v   |
 *	                     W stays 2 for 2 RTTs, ssthresh = W; then slow start
 *
 * T is a tenth of the time, and a slowdown costs less than that. Its slow start does not end by
 * delay (4.1).
 *
 * Like LEDBAT's, the target is a queue that others wait in, and a buffer below the target never
 * shows it.
 *
 * Deviations from the draft, and what it leaves open:
 * - What a round trip changes is changed at each ACK, by its packets' part of it.
 * - A round trip of a slowdown is the host's smoothed RTT at its start, which has the queue in it:
 *   so the second one meets a queue that is gone.
 * - No slowdown begins in slow start, as after a timeout.
 * - Slowdowns are 10 minutes apart at most, the age of base. An application that sends little can
 *   make slow start, and by that T, as long as it likes.
 * - A loss in a slowdown halves the window to return to. A timeout begins the return at once.
 * - Slow start is initial as long as there was no loss, or only a spurious one.
 * - What it does not say is LEDBAT's: losses, timeouts, idling, ALLOWED_INCREASE, two packets at
 *   the start, minutes of base, the least of four samples.
 *
 * Range: see the products. A packet's growth is 1/(16 W) in Q16 at the least: above 4096 packets W
 * grows only by ACKs of several.
 */
#ifndef NN_ALG_LEDBATPP_H
#define NN_ALG_LEDBATPP_H

#include "ledbat.h"

#define nn_ledbatpp_summary \
	"LEDBAT++: keeps the queue at 60 ms, and empties it from time to time"

#define nn_ledbatpp_traits (NN_TIMED)

#define nn_ledbatpp_params(P)                                                                      \
	P(target, 60.0, 1.0, 1000.0, "ms", "LEDBAT++ 4.5",                                         \
	  "the delay in the queue above which the window shrinks")                                 \
	P(slowest, 16.0, 1.0, 32.0, "round trips", "LEDBAT++ 4.2",                                 \
	  "growth by a packet takes 2 target/base round trips, and never more than this")          \
	P(decrease, 1.0, 0.0, 16.0, "share of the window", "LEDBAT++ 4.3, Constant",               \
	  "by how much a queue of two targets makes the window shrink in a round trip")            \
	P(leave, 0.75, 0.0, 1.0, "share of the target", "LEDBAT++ 4.1",                            \
	  "the first slow start ends when the queue is above this")                                \
	P(wait, 2.0, 0.0, 1000.0, "round trips", "LEDBAT++ 4.4",                                   \
	  "from the end of the first slow start to the first slowdown")                            \
	P(frozen, 2.0, 0.0, 100.0, "round trips", "LEDBAT++ 4.4",                                  \
	  "how long the window is two packets in a slowdown")                                      \
	P(interval, 9.0, 1.0, 1000.0, "times its duration", "LEDBAT++ 4.4",                        \
	  "from the end of a slowdown to the next")

struct nn_ledbatpp_cfg {
	nn_ledbatpp_params(NN_FIELD)
};

enum nn_ledbatpp_phase {
	NN_LEDBATPP_START,	/* the first slow start */
	NN_LEDBATPP_STEER,	/* and slow start after a timeout or a rest */
	NN_LEDBATPP_FROZEN,	/* two packets; the window is kept as it was */
	NN_LEDBATPP_RAMP,	/* back to it by slow start */
};

struct nn_ledbatpp {
	struct nn_ledbat ledbat;
	u64 since_us;	/* clock since which it steers, or at which the slowdown began */
	u64 lasts_us;	/* how long it steers, or is frozen */
	u32 phase;	/* enum nn_ledbatpp_phase */
};

/* 1/GAIN: 1 or more. */
nn_inline u64 nn_ledbatpp_rounds(const struct nn_ledbatpp *s, const struct nn_ledbatpp_cfg *c)
{
	u64 base = nn_ledbat_base(&s->ledbat);
	u64 most = nn_max(c->slowest / NN_ONE, 1);

	if (!base)
		return most;
	/* rounded up */
	return nn_min((2 * nn_ledbat_target(c->target) + base - 1) / base, most);
}

/* So many smoothed RTTs, us. 32 + 27 bits. */
nn_inline u64 nn_ledbatpp_time(u32 rounds, const struct nn_ack *a)
{
	return nn_min(a->srtt_us, NN_RTT_MAX) * rounds / NN_ONE;
}

nn_inline void nn_ledbatpp_steer(struct nn_ledbatpp *s, u64 lasts_us, const struct nn_ack *a)
{
	s->phase = NN_LEDBATPP_STEER;
	s->since_us = a->now_us;
	s->lasts_us = lasts_us;
}

/* From one phase to the next. */
nn_inline void nn_ledbatpp_turn(struct nn_ledbatpp *s, const struct nn_ledbatpp_cfg *c, u64 queue,
				const struct nn_ack *a)
{
	const u64 most_us = (u64)NN_LEDBAT_HISTORY * NN_LEDBAT_MINUTE_US;
	struct nn_window *w = &s->ledbat.window;
	u64 passed_us = a->now_us - s->since_us;
	/* 26 + 32 bits */
	u64 leave = nn_ledbat_target(c->target) * c->leave / NN_ONE;

	if (w->ssthresh == NN_CWND_MAX && queue > leave)
		w->ssthresh = nn_max(w->cwnd, NN_LEDBAT_LEAST);
	switch (s->phase) {
	case NN_LEDBATPP_START:
		if (!nn_window_in_slow_start(w))
			nn_ledbatpp_steer(s, nn_ledbatpp_time(c->wait, a), a);
		break;
	case NN_LEDBATPP_STEER:
		if (passed_us < s->lasts_us || nn_window_in_slow_start(w))
			break;
		s->phase = NN_LEDBATPP_FROZEN;
		s->since_us = a->now_us;
		s->lasts_us = nn_ledbatpp_time(c->frozen, a);
		break;
	case NN_LEDBATPP_FROZEN:
		if (passed_us < s->lasts_us)
			break;
		s->phase = NN_LEDBATPP_RAMP;
		if (!nn_window_in_slow_start(w))
			w->ssthresh = w->cwnd;
		w->cwnd = nn_min(w->cwnd, NN_LEDBAT_LEAST);
		/* an undo from here on gives the window to return to, not that window at once */
		w->prior_ssthresh = w->prior;
		w->prior = w->cwnd;
		break;
	case NN_LEDBATPP_RAMP:
		if (nn_window_in_slow_start(w))
			break;
		/* 30 + 32 bits */
		passed_us = nn_min(passed_us, most_us) * c->interval / NN_ONE;
		nn_ledbatpp_steer(s, nn_min(passed_us, most_us), a);
		break;
	}
}

/* The window's change for so many packets, with so long a queue. */
nn_inline void nn_ledbatpp_change(struct nn_ledbatpp *s, const struct nn_ledbatpp_cfg *c, u64 queue,
				  const struct nn_ack *a)
{
	struct nn_window *w = &s->ledbat.window;
	u64 acked = nn_acked(a);
	u64 cwnd = nn_max(w->cwnd, NN_ONE);
	u64 target = nn_ledbat_target(c->target);
	/* 20 + 16 bits */
	u64 gain = acked * NN_ONE / nn_ledbatpp_rounds(s, c);
	/* 27 + 16 bits over 1 ms or more, times the parameter: 34 + 20 */
	u64 above = queue > target ? (queue - target) * NN_ONE / target * c->decrease / NN_ONE : 0;
	u64 grow, take;

	if (nn_window_in_slow_start(w)) {
		if (nn_may_grow(a))
			w->cwnd = nn_clamp_cwnd(nn_min(w->cwnd + gain, w->ssthresh), 0);
		return;
	}
	/* 36 + 16 bits */
	grow = gain * NN_ONE / cwnd;
	/* 20 + 18 bits: of a packet's share half counts at most, and it grows by one at most */
	take = acked * nn_min(above, 2 * NN_ONE);
	if (take > grow)
		take = nn_min(take - grow, nn_min(acked * NN_ONE, cwnd) / 2);
	else
		grow -= take, take = 0;
	nn_ledbat_move(&s->ledbat, take > 0, take ? take : grow, acked, a);
	/* what it gave up does not come back by slow start */
	w->ssthresh = nn_min(w->ssthresh, w->cwnd);
}

nn_inline void nn_ledbatpp_answer(const struct nn_ledbatpp *s, struct nn_ctl *ctl)
{
	nn_window_answer(&s->ledbat.window, ctl);
	if (s->phase == NN_LEDBATPP_FROZEN) {
		ctl->cwnd_q16 = nn_min(ctl->cwnd_q16, NN_LEDBAT_LEAST);
		ctl->flags |= NN_CTL_YIELDING;
	}
}

nn_inline void nn_ledbatpp_init(struct nn_ledbatpp *s, const struct nn_ledbatpp_cfg *c,
				struct nn_group *g, const struct nn_ack *a, struct nn_ctl *ctl)
{
	const struct nn_ledbat_cfg unused = { 0 };

	nn_ledbat_init(&s->ledbat, &unused, g, a, ctl);
}

nn_inline void nn_ledbatpp_ack(struct nn_ledbatpp *s, const struct nn_ledbatpp_cfg *c,
			       struct nn_group *g, const struct nn_ack *a, struct nn_ctl *ctl)
{
	u64 queue;

	nn_ledbat_sample(&s->ledbat, a);
	nn_reload();
	queue = nn_ledbat_queue(&s->ledbat);
	nn_ledbatpp_turn(s, c, queue, a);
	nn_reload();
	if (s->phase != NN_LEDBATPP_FROZEN && nn_acked(a))
		nn_ledbatpp_change(s, c, queue, a);
	nn_ledbatpp_answer(s, ctl);
}

nn_inline void nn_ledbatpp_event(struct nn_ledbatpp *s, const struct nn_ledbatpp_cfg *c,
				 struct nn_group *g, enum nn_event event, const struct nn_ack *a,
				 struct nn_ctl *ctl)
{
	nn_window_react(&s->ledbat.window, event, NN_LEDBAT_LEAST, ctl);
	if (event == NN_TIMEOUT && s->phase == NN_LEDBATPP_FROZEN)
		s->lasts_us = 0; /* slow start from one packet empties the queue as well */
	nn_ledbatpp_answer(s, ctl);
}

#define nn_ledbatpp_send nn_no_send

#define nn_ledbatpp_shown(S, s, c)                                                                 \
	nn_show_base_rtt(S, nn_ledbat_base(&(s)->ledbat))                                          \
	S(gain, packets, "growth of the window in a round trip, but for what the queue takes",    \
	  NN_ONE / nn_ledbatpp_rounds(s, c))

#endif
