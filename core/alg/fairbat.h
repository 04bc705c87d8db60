/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * FAIRBAT: a background flow that neither starves nor intrudes. This file is what
 * fairbat1.h and fairbat2.h share, which is all but R. Before they include it they define
 * NN_FAIRBAT, the algorithm's name, and nn_fairbat_ratio(y0, gamma), its R.
 *
 * C. Courcoubetis, A. Dimakis, M. Kanakakis, "Fair Congestion Control for
 * Long-lived Background Flows". The flow takes the share w of what a TCP flow would get
 * on its path. It moves w until the two throughputs, averaged over the coming and going
 * of short flows, stand in the ratio R:
 *
 *	y0/y = R(y0)	y0: TCP's throughput; y = w y0: the flow's own; Mbit/s of payload
 *
 * Three blocks (figure 1), in this order below:
 *
 *	                     slow loop, once in T
 *	        w    +---------------------------+    y0
 *	    +--------| 3 weight adaptation (III.D) |<-------+
 *	    v        +---------------------------+        |
 *	+------------------------+          +------------------------------+
 *	| 1 weighted TCP         |          | 2 throughput estimator       |
 *	|   (III.A, III.B)       |          |   (III.C)                    |
 *	+------------------------+          +------------------------------+
 *	    |   ^  fast loop, each ACK                    ^
 *	    v   |                                         |
 *	   network ---------------------------------------+
 *
 * 1. Weighted TCP is Reno (window/window.h) at the weight w, in one of two ways (`mode`):
 *
 *	alpha	increase by alpha/W for each packet, alpha = w^2; else Reno
 *	tau	Reno, for the share w of each period D = d_c + a random part of d_r
 *
 *	            D w over                nothing is outstanding: one packet,
 *	            (tau)                   with the gap until the end of D
 *	active ---------------> draining ------------------------------------> silent
 *	  ^                                                                      |
 *	  +---------- D over: the next period, slow start to the last window ----+
 *
 * 2. The estimator takes a sample x of the flow's throughput in active phases once in T
 *    (tau: at the first end of a period after it), and averages what TCP would have got:
 *
 *	alpha	y0 = (1 - g_e) y0 + g_e x/w
 *	tau	y0 = (1 - g_e) y0 + g_e x	(an active flow is a TCP flow)
 *
 * 3. The weight moves along the gradient of the welfare (2), which for both
 *    algorithms is (1 - w R)/y:
 *
 *	step=paper	w += g_w (1 - w R)/y
 *	step=scaled	w += g_w (1/R - w)
 *
 * In steady state both stand at w = 1/R, whatever T, the gains and the periods. The loop
 * is stable for any gains with step=scaled, and with step=paper below g_w = 2 w^2 y0.
 * T/g_e is the memory of y0, T/g_w the time constant of w.
 *
 * Deviations from the paper, and what it leaves open (docs/design/fairbat.md says why):
 * - The default step is the scaled one: the paper's gradient times y/R.
 * - Each sample is divided by the weight at which it was measured. (5) divides the
 *   average by the newest weight.
 * - The first sample is discarded: slow start is in it.
 * - Time in which the application had nothing to send is not counted.
 * - alpha: a window is two packets or more, so w is at least 2/W beside a TCP flow of W
 *   packets.
 * - tau: a sample of n T counts with n times the gains, but one half at most.
 * - tau: when the active phase ends the window is one packet, so that what is in flight
 *   drains; losses are answered. Then one packet leaves and carries the gap. With it the
 *   window opens again, so the flow wakes on time even if that packet is lost.
 * - tau: after the silence the window restarts in slow start, up to where it was.
 * - tau: a flow that had nothing to send when its active phase ended sends one packet
 *   when it next has.
 *
 * Ranges and errors. The weight is Q32 and at most 1; y0 and R are Q16, R <= 2^13.
 * Throughputs are below 2^20 Mbit/s.
 * - w = 1/R to a relative 2^-16: R >= 1 is rounded to 2^-16.
 * - y0 is rounded to 2^-16 Mbit/s, and its average stops within 2^-17/g_e of it: 1e-4
 *   Mbit/s for g_e = 0.1.
 * - alpha: x and w are rounded down to 2^-16 before x/w. That makes x/w too low by
 *   2^-16/w Mbit/s at most, and too great by the share 2^-16/w: by 0.08 % at the default
 *   least weight, by 1.5 % at 0.001.
 */
#ifndef NN_ALG_FAIRBAT_H
#define NN_ALG_FAIRBAT_H

#include "../window/window.h"

#define NN_ALONE	/* it measures what its own window gets, in phases of its own (core/flow.h) */

/* (1 - w)D <= NN_GAP_MAX for the greatest d_c and d_r. */
#define nn_fairbat_params(P)                                                                       \
	P(mode, 0.0, 0.0, 1.0, "alpha|tau", "FAIRBAT III.A, III.B",                                \
	  "how the weight is enforced: by slower growth, or by sending for a share of the time")   \
	P(T, 10.0, 0.1, 600.0, "seconds", "FAIRBAT III.C",                                         \
	  "time between two samples of the throughput and steps of the weight")                    \
	P(g_e, 0.2, 0.001, 1.0, "share of the difference", "FAIRBAT (5)",                          \
	  "gain of the average throughput; T/g_e is its memory")                                   \
	P(g_w, 0.1, 0.0, 1.0, "share of the weight", "FAIRBAT (2)",                                \
	  "gain of the weight; T/g_w is its time constant. With step=paper: Mbit/s")               \
	P(step, 0.0, 0.0, 1.0, "scaled|paper", "FAIRBAT III.D",                                    \
	  "the step of the weight: relative to the weight, or as the paper has it")                \
	P(start, 0.5, 0.001, 1.0, "share of TCP's throughput", "FAIRBAT III.D",                    \
	  "the weight to begin with")                                                              \
	P(least_weight, 0.02, 0.001, 1.0, "share of TCP's throughput", "FAIRBAT III.D",            \
	  "the weight is never smaller than this")                                                 \
	P(d_c, 20.0, 1.0, 60.0, "seconds", "FAIRBAT III.B",                                        \
	  "constant part of a period (mode=tau); well above a round trip")                         \
	P(d_r, 20.0, 0.0, 40.0, "seconds", "FAIRBAT III.B",                                        \
	  "greatest random part of a period (mode=tau), uniform from 0, so that flows do not "     \
	  "keep step")

#define NN_FAIRBAT_ONE ((u64)1 << 32)		/* the weight 1 */
#define NN_FAIRBAT_MBIT_MAX ((u64)1 << 36)	/* Q16 */
#define NN_FAIRBAT_RATIO_MAX ((u64)1 << 29)	/* Q16; above 1/least_weight */
#define NN_FAIRBAT_BITS_MAX ((u64)1 << 47)	/* of one sample */

struct nn_fairbat_cfg {
	u32 gamma;
	nn_fairbat_params(NN_FIELD)
};

struct nn_fairbat {
	struct nn_window window;
	u64 weight;	/* w, Q32 */
	u64 credit;	/* growth earned that is less than 2^-16 packets: alpha Q32 per packet */

	/* mode=tau */
	u64 random;	/* state of the flow's own generator */
	u64 until_us;	/* clock of the end of the phase */
	u64 restart;	/* greatest window after a silence, packets Q16 */
	u32 rest_us;	/* length of the silent phase of this period */
	u32 silent;	/* 0: active; draining counts as silent */
	u32 drained;	/* the packet that carries the gap may leave or has left */

	u32 begun;	/* the first sample is over; slow start was in it, and it does not count */
	u64 sample_us;	/* clock of the start of this sample */
	u64 seen_us;	/* clock of the last ACK */
	u64 busy_us;	/* active time of this sample */
	u64 bits;	/* payload delivered in this sample */
	u64 y0;		/* average throughput of TCP, Mbit/s Q16 */
};

/* A parameter in seconds as microseconds. 26 + 20 bits. */
nn_inline u64 nn_fairbat_us(u32 seconds_q16)
{
	return (u64)seconds_q16 * 1000000 / NN_ONE;
}

/* The weight in Q16. */
nn_inline u64 nn_fairbat_weight(const struct nn_fairbat *s)
{
	return s->weight >> 16;
}

/* ---- 1. Weighted TCP ---------------------------------------------------- */

/* alpha, Q32: w^2, or 1 where time does the weighting. 31 + 31 bits. */
nn_inline u64 nn_fairbat_alpha(const struct nn_fairbat *s, const struct nn_fairbat_cfg *c)
{
	return c->mode ? NN_FAIRBAT_ONE : (s->weight >> 1) * (s->weight >> 1) >> 30;
}

/*
 * Reno's growth, alpha/W for a packet in avoidance. A small alpha over a great window
 * is less than the window's resolution: the rest is kept. 20 + 32 bits and 36.
 */
nn_inline void nn_fairbat_grow(struct nn_fairbat *s, const struct nn_fairbat_cfg *c,
			       const struct nn_ack *a)
{
	struct nn_window *w = &s->window;
	u64 acked = nn_acked(a);
	u64 grown;

	if (!acked || !nn_may_grow(a) || s->silent)
		return;
	s->credit += nn_window_slow_start(w, acked) * nn_fairbat_alpha(s, c);
	if (!w->cwnd)
		return;
	grown = s->credit / w->cwnd;
	s->credit -= grown * w->cwnd;
	w->cwnd = nn_clamp_cwnd(w->cwnd + grown, 0);
}

/* Begins a period, active for the share w of it. 32 + 26 and 27 + 27 bits. */
nn_inline void nn_fairbat_period(struct nn_fairbat *s, const struct nn_fairbat_cfg *c, u64 now_us)
{
	u64 random = (nn_random(&s->random) >> 32) * nn_fairbat_us(c->d_r) >> 32;
	u64 period = nn_fairbat_us(c->d_c) + random;
	u64 active = (s->weight >> 5) * period >> 27;

	s->silent = 0;
	s->drained = 0;
	s->until_us = now_us + active;
	s->rest_us = (u32)(period - active);
}

/* What is left of the phase, at most NN_GAP_MAX; what seems more is over (the clock was set back). */
nn_inline u64 nn_fairbat_left(const struct nn_fairbat *s, u64 now_us)
{
	u64 left = s->until_us - now_us;

	return left <= NN_GAP_MAX ? left : 0;
}

/* Whether the period is over; in an idle flow the active phase may have ended long ago. */
nn_inline int nn_fairbat_period_over(const struct nn_fairbat *s, u64 now_us)
{
	return !nn_fairbat_left(s, now_us) &&
	       (s->silent || now_us - s->until_us >= s->rest_us);
}

/* Ends a phase whose time is over. */
nn_inline void nn_fairbat_clock(struct nn_fairbat *s, const struct nn_fairbat_cfg *c, u64 now_us)
{
	if (!c->mode || nn_fairbat_left(s, now_us))
		return;
	if (nn_fairbat_period_over(s, now_us)) {
		nn_fairbat_period(s, c, now_us);
		return;
	}
	s->silent = 1;
	s->until_us += s->rest_us;
}

/* Just before a packet leaves in the silent phase with nothing outstanding: it carries the gap. */
nn_inline void nn_fairbat_drained(struct nn_fairbat *s, const struct nn_ack *a)
{
	struct nn_ctl idle = { .cwnd_q16 = s->restart };

	if (!s->silent || s->drained || a->una != a->nxt)
		return;
	s->drained = 1;
	s->window.ssthresh = nn_max(s->window.ssthresh, s->window.cwnd);
	nn_window_react(&s->window, NN_IDLE, 2 * NN_ONE, &idle);
}

nn_inline void nn_fairbat_answer(const struct nn_fairbat *s, const struct nn_ack *a,
				 struct nn_ctl *ctl)
{
	nn_window_answer(&s->window, ctl);
	if (!s->silent)
		return;
	ctl->flags |= NN_CTL_YIELDING;
	if (s->drained) {
		ctl->gap_us = nn_fairbat_left(s, a->now_us);
		ctl->burst = 1;
	} else {
		ctl->cwnd_q16 = NN_ONE;
	}
}

/* ---- 2. Throughput estimator -------------------------------------------- */

/* Counts what an ACK delivers, and the time since the last one if the flow was active. */
nn_inline void nn_fairbat_count(struct nn_fairbat *s, const struct nn_ack *a)
{
	u64 elapsed = nn_min(a->now_us - s->seen_us, NN_RTT_MAX);

	s->seen_us = a->now_us;
	if (a->flags & NN_ACK_APP_LIMITED)
		return;
	if (!s->silent)
		s->busy_us += elapsed;
	/* 20 + 16 + 3 bits and 47 */
	s->bits = nn_min(s->bits + (u64)nn_acked(a) * nn_mss(a) * 8, NN_FAIRBAT_BITS_MAX);
}

/*
 * The length of a complete sample in units of T, Q16: T of sending, or whole periods of
 * T or more; else 0. 63 bits at most: times are below 2^47 us.
 */
nn_inline u64 nn_fairbat_sample_over(const struct nn_fairbat *s, const struct nn_fairbat_cfg *c,
				     u64 now_us)
{
	u64 passed = nn_min(c->mode ? now_us - s->sample_us : s->busy_us, (u64)1 << 47);
	u64 t_us = nn_max(nn_fairbat_us(c->T), 1);

	if (!s->busy_us || passed < t_us || (c->mode && !nn_fairbat_period_over(s, now_us)))
		return 0;
	return passed * NN_ONE / t_us;
}

/* A gain for a sample of so many T: once for each T, but no more than one half for all. */
nn_inline u64 nn_fairbat_gain(u32 gain, u64 length)
{
	u64 all = nn_min(gain, NN_ONE) * nn_min(length, (u64)NN_ONE * NN_ONE) / NN_ONE;

	return nn_max(nn_min(gain, NN_ONE), nn_min(all, NN_ONE / 2));
}

/* At the end of a sample averages y0; returns the sample's length, or 0 if y0 has no value. */
nn_inline u64 nn_fairbat_estimate(struct nn_fairbat *s, const struct nn_fairbat_cfg *c, u64 now_us)
{
	u64 length = nn_fairbat_sample_over(s, c, now_us);
	u64 gain = nn_fairbat_gain(c->g_e, length);
	u64 sample;

	if (!length || !s->busy_us)
		return 0;
	/* bits/us are Mbit/s. 47 + 16 and 36 + 16 bits */
	sample = nn_min(s->bits * NN_ONE / s->busy_us, NN_FAIRBAT_MBIT_MAX);
	if (!c->mode && nn_fairbat_weight(s))
		sample = nn_min(sample * NN_ONE / nn_fairbat_weight(s), NN_FAIRBAT_MBIT_MAX);
	/* 36 + 16 bits, rounded to nearest */
	if (s->y0)
		sample = (s->y0 * (NN_ONE - gain) + sample * gain + NN_ONE / 2) / NN_ONE;
	s->y0 = s->begun ? nn_max(sample, 1) : 0;
	s->begun = 1;
	s->sample_us = now_us;
	s->busy_us = 0;
	s->bits = 0;
	return s->y0 ? length : 0;
}

/* ---- 3. Weight adaptation ----------------------------------------------- */

/* Moves the weight towards 1/R, R in Q16, after a sample of so many T. */
nn_inline void nn_fairbat_adapt(struct nn_fairbat *s, const struct nn_fairbat_cfg *c, u64 ratio,
				u64 length)
{
	u64 gain = nn_fairbat_gain(c->g_w, length);
	u64 wanted, distance, step, y;
	int down;

	ratio = nn_min(nn_max(ratio, NN_ONE), NN_FAIRBAT_RATIO_MAX);
	if (c->step) {
		/* the paper's, in units of 1/y: w R, Q32: 32 + 29 bits */
		wanted = NN_FAIRBAT_ONE;
		distance = s->weight * ratio / NN_ONE;
		down = distance > wanted;
		distance = down ? distance - wanted : wanted - distance;
		/* y, Q16: 36 + 16 bits; g_w (1 - w R)/y, Q32: 16 + 45 and 45 + 16 bits */
		y = nn_max(s->y0 * nn_fairbat_weight(s) / NN_ONE, 1);
		step = gain * distance / NN_ONE * NN_ONE / y;
	} else {
		wanted = NN_FAIRBAT_ONE * NN_ONE / ratio;
		down = s->weight > wanted;
		distance = down ? s->weight - wanted : wanted - s->weight;
		step = gain * distance / NN_ONE;
	}
	s->weight = down ? s->weight - nn_min(s->weight, step) :
			   nn_min(s->weight + step, NN_FAIRBAT_ONE);
	s->weight = nn_max(s->weight, (u64)nn_min(c->least_weight, NN_ONE) * NN_ONE);
}

/* The slow loop, where it is due, and then the phases. */
nn_inline void nn_fairbat_slow(struct nn_fairbat *s, const struct nn_fairbat_cfg *c, u64 now_us)
{
	u64 length = nn_fairbat_estimate(s, c, now_us);

	if (length)
		nn_fairbat_adapt(s, c, nn_fairbat_ratio(s->y0, c->gamma), length);
	nn_fairbat_clock(s, c, now_us);
}

/* ---- What the host calls, by the name NN_FAIRBAT ------------------------- */

#define NN_FAIRBAT_CFG struct NN_CAT(nn_, NN_FAIRBAT, _cfg)
#define NN_FAIRBAT_STATE struct NN_CAT(nn_, NN_FAIRBAT, )
#define NN_FAIRBAT_OP(op) NN_CAT(nn_, NN_FAIRBAT, _##op)

NN_FAIRBAT_CFG {
	struct nn_fairbat_cfg fairbat;
};

NN_FAIRBAT_STATE {
	struct nn_fairbat fairbat;
};

nn_inline void NN_FAIRBAT_OP(init)(NN_FAIRBAT_STATE *flow, const NN_FAIRBAT_CFG *cfg,
				   struct nn_group *g, const struct nn_ack *a, struct nn_ctl *ctl)
{
	const struct nn_fairbat_cfg *c = &cfg->fairbat;
	struct nn_fairbat *s = &flow->fairbat;

	nn_window_start(&s->window, ctl);
	s->restart = s->window.cwnd;
	s->weight = nn_min(nn_max(c->start, c->least_weight), NN_ONE) * NN_ONE;
	s->random = a->now_us ^ (u64)a->nxt << 32;
	s->seen_us = a->now_us;
	s->sample_us = a->now_us;
	nn_fairbat_period(s, c, a->now_us);
	nn_fairbat_answer(s, a, ctl);
}

nn_inline void NN_FAIRBAT_OP(ack)(NN_FAIRBAT_STATE *flow, const NN_FAIRBAT_CFG *cfg,
				  struct nn_group *g, const struct nn_ack *a, struct nn_ctl *ctl)
{
	const struct nn_fairbat_cfg *c = &cfg->fairbat;
	struct nn_fairbat *s = &flow->fairbat;

	nn_fairbat_count(s, a);
	nn_fairbat_slow(s, c, a->now_us);
	nn_fairbat_grow(s, c, a);
	nn_fairbat_answer(s, a, ctl);
}

nn_inline void NN_FAIRBAT_OP(event)(NN_FAIRBAT_STATE *flow, const NN_FAIRBAT_CFG *cfg,
				    struct nn_group *g, enum nn_event event,
				    const struct nn_ack *a, struct nn_ctl *ctl)
{
	const struct nn_fairbat_cfg *c = &cfg->fairbat;
	struct nn_fairbat *s = &flow->fairbat;

	nn_fairbat_slow(s, c, a->now_us);
	nn_window_react(&s->window, event, 2 * NN_ONE, ctl);
	nn_fairbat_answer(s, a, ctl);
}

nn_inline void NN_FAIRBAT_OP(send)(NN_FAIRBAT_STATE *flow, const NN_FAIRBAT_CFG *cfg,
				   struct nn_group *g, const struct nn_ack *a, struct nn_ctl *ctl)
{
	const struct nn_fairbat_cfg *c = &cfg->fairbat;
	struct nn_fairbat *s = &flow->fairbat;

	nn_fairbat_slow(s, c, a->now_us);
	if (a->una == a->nxt)
		s->seen_us = a->now_us; /* nothing was outstanding: that time was idle */
	nn_fairbat_drained(s, a);
	nn_fairbat_answer(s, a, ctl);
}

#define nn_fairbat_shown(S, s)                                                                     \
	S(weight, share, "share that it means to take of a TCP flow's throughput",                 \
	  nn_fairbat_weight(s))                                                                    \
	S(tcp, mbit, "what a TCP flow gets on its path, as it estimates that", (s)->y0)

#endif
