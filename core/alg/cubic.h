/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * CUBIC: the window is a cubic function of the time since the last loss.
 *
 * RFC 9438 (L. Xu, S. Ha, I. Rhee, V. Goel, L. Eggert, 2023); S. Ha, I. Rhee,
 * L. Xu, "CUBIC: A New TCP-Friendly High-Speed TCP Variant", ACM OSR 42(5), 2008.
 * It is what Linux does unless told otherwise, and so the foreground of the lab.
 * An epoch begins with the first growth after a loss, at t = 0 with W = W0:
 *
 *	W_cubic(t) = W_max + C (t - K)^3	K = cbrt((W_max - W0)/C), or 0
 *						with W_max = W0 if W0 is above W_max
 *	each packet:	W += (W_cubic(t + minRTT) - W)/W, at most 1/2
 *			W_est += 3 (1 - beta)/(1 + beta)/W, from W0
 *			W = max(W, W_est)	(Reno-friendly region, 4.3)
 *	on loss:	W_max = W, or (1 + beta)/2 W if W < W_max (fast convergence)
 *			W = ssthresh = max(beta W, 2)
 *	on timeout:	W = 1, W_max forgotten
 *
 *	slow start --- loss ---> concave, back up to W_max --- t = K ---> convex, to
 *	    |                      ^                                     | find more
 *	    |                      +--------------- loss ----------------+
 *	    +--- HyStart, or ssthresh after a timeout: K = 0 ------------^
 *
 * Slow start ends with HyStart (S. Ha, I. Rhee, "Taming the Elephants: New TCP
 * Slow Start", Computer Networks 55(9), 2011), before it loses half a window.
 * From 16 packets on, either of two signs in a round makes ssthresh the window:
 *
 *	delay:	min RTT of a round > minRTT + clamp(minRTT/8, 4 ms, 16 ms), from its
 *		ninth sample on
 *	train:	ACKs no more than 2 ms apart span more than the time one way, which
 *		is taken for (minRTT + 1 ms)/2: the bursts fill the path
 *
 * Thereafter, as long as no W_max is known, the window grows by 1/20 for each
 * packet at least.
 *
 * Deviations from RFC 9438, all of them as in Linux 6.1:
 * - W_max, W_cubic and the W that they are compared with are whole packets, the
 *   distance from W_max rounded down. So W is at W_max while less than a packet is
 *   missing, from 1.4 s before K on, and a flow on its own loses more often.
 * - t + minRTT, where the RFC has t + the smoothed RTT.
 * - HyStart, not HyStart++ (RFC 9406), and the 1/20 above.
 * - W_est does not speed up to Reno's 1/W once it is at the former window.
 * - Where W is far below W_est, after a rest, it grows by half a packet for each packet. The
 *   RFC takes it there with one ACK: a burst.
 *
 * Deviations from Linux 6.1:
 * - W_cubic is recomputed at each ACK, not for a new window or every 31 ms, and what
 *   counts towards the next packet is kept in W as a fraction.
 * - Time counts towards t only while the window is what limits the flow (RFC
 *   9438, 5.8). Linux leaves out only the time with nothing in flight.
 * - An undo restores the epoch and W_max (RFC 9438, 4.9), not only the window.
 * - minRTT is kept through a timeout, and learnt from every sample; Linux forgets
 *   it then, and leaves out the first second of an epoch.
 * - ACK trains are compared with half a round trip also when the host paces its
 *   packets; Linux then waits for a whole one.
 *
 * Range: times are kept in 1/1024 s below 2^19 (512 s), which is as long as the
 * largest window takes with the least C (0.01). (t - K)^3 has 57 bits, of which
 * 14 are dropped before the product with C (20 bits). See also the products.
 */
#ifndef NN_ALG_CUBIC_H
#define NN_ALG_CUBIC_H

#include "../window/window.h"

#define nn_cubic_summary \
	"CUBIC: grows with the time since the last loss, as Linux does; yields to nobody"

#define nn_cubic_traits (NN_GREEDY | NN_TIMED)

#define nn_cubic_params(P)                                                                         \
	P(c, 0.4, 0.01, 16.0, "packets/s^3", "RFC 9438 5.1",                                       \
	  "how fast the window grows away from where the last loss was")                           \
	P(beta, 0.7, 0.1, 0.9, "share of the window", "RFC 9438 4.6", "what a loss leaves")        \
	P(fast_convergence, 1.0, 0.0, 1.0, "switch", "RFC 9438 4.7",                               \
	  "aim below the last loss if it came below the one before, for newcomers; 0: do not")     \
	P(hystart, 1.0, 0.0, 1.0, "switch", "RFC 9438 4.10",                                       \
	  "end slow start when delays or trains of ACKs show that the path is full; 0: do not")

#define NN_CUBIC_TIME_MAX (1u << 19)	/* 1/1024 s */
#define NN_CUBIC_LEAST_STEP (NN_ONE / 20) /* for each packet while no W_max is known */

#define NN_HYSTART_LOW (16 * NN_ONE)	/* least window to leave slow start with */
#define NN_HYSTART_SAMPLES 8u
#define NN_HYSTART_DELAY_MIN_US 4000u
#define NN_HYSTART_DELAY_MAX_US 16000u
#define NN_HYSTART_SPACING_US 2000u	/* ACKs further apart are not of one train */
#define NN_HYSTART_HOST_US 1000u	/* what hosts add to the time of a train */

struct nn_cubic_cfg {
	nn_cubic_params(NN_FIELD)
};

/* What an undo restores beside the window. */
struct nn_cubic_epoch {
	u64 start_us;	/* clock of t = 0 */
	u64 friendly;	/* W_est, Q16 */
	u32 max;	/* W_max, packets; 0: none known */
	u32 plateau;	/* W_max, or W0 if that is above it, packets */
	u32 k;		/* K, 1/1024 s */
	u32 begun;	/* all but W_max are valid */
};

struct nn_cubic {
	struct nn_window window;
	struct nn_cubic_epoch epoch;
	struct nn_cubic_epoch undo; /* the epoch that the last loss ended */
	u64 last_us;	/* clock of the last ACK, or of a start from rest after it */
	u64 round_us;	/* HyStart: clock of the round's start */
	u64 train_us;	/* HyStart: clock of the last ACK of the round's train */
	u32 base_us;	/* minRTT; 0: no sample yet */
	u32 least_us;	/* HyStart: least RTT of this round */
	u32 samples;	/* HyStart: RTT samples of this round, up to NN_HYSTART_SAMPLES */
	u32 end;	/* HyStart: the round ends when data beyond this is acknowledged */
	u32 found;	/* HyStart has ended slow start already */
	u32 reserved;
};

/*
 * The integer cube root, for x < 2^60: bit by bit, from the highest one down. The
 * bit stays where the difference is not negative. No branch decides on it, since
 * the kernel's verifier would follow both ways of all twenty: a million paths.
 */
nn_inline u32 nn_cubic_root(u64 x)
{
	u64 root = 0;

	for (int bit = 19; bit >= 0; bit--) {
		u64 next = root + (1ull << bit);
		u64 negative = (x - next * next * next) >> 63;

		root = next - (negative << bit);
	}
	return (u32)root;
}

/* Microseconds in 1/1024 s. 29 + 10 bits. */
nn_inline u64 nn_cubic_time(u64 us)
{
	return nn_min(us, NN_CUBIC_TIME_MAX / 1024 * 1000000) * 1024 / 1000000;
}

/* W_cubic(t) in whole packets, the distance from the plateau rounded down. 57 - 14 + 20 bits. */
nn_inline u64 nn_cubic_window(const struct nn_cubic_epoch *e, u32 c, u64 t)
{
	u64 away = nn_min(t > e->k ? t - e->k : e->k - t, NN_CUBIC_TIME_MAX);
	u64 distance = (away * away * away >> 14) * c >> 32;

	if (t > e->k)
		return e->plateau + distance;
	return e->plateau > distance ? e->plateau - distance : 0;
}

/* The window in whole packets. */
nn_inline u32 nn_cubic_packets(const struct nn_cubic *s)
{
	return (u32)(s->window.cwnd / NN_ONE);
}

/* Begins an epoch with the present window as W0. */
nn_inline void nn_cubic_begin(struct nn_cubic *s, const struct nn_cubic_cfg *c, u64 now_us)
{
	struct nn_cubic_epoch *e = &s->epoch;
	u32 w0 = nn_cubic_packets(s);

	e->start_us = now_us;
	e->friendly = s->window.cwnd;
	e->plateau = (u32)nn_max(e->max, w0);
	/* K^3 is 2^30 (W_max - W0)/C; 20 + 43 bits, then divided by 655 or more */
	e->k = c->c ? nn_cubic_root(((u64)(e->plateau - w0) << 43) / c->c * 8) : 0;
	e->begun = 1;
}

/* The time since the last ACK does not count towards t. */
nn_inline void nn_cubic_rest(struct nn_cubic *s, u64 now_us)
{
	if (now_us > s->last_us)
		s->epoch.start_us += now_us - s->last_us;
	s->last_us = now_us;
}

/* The growth for each packet, Q16: a fraction of one is what was counted towards the next. */
nn_inline u64 nn_cubic_step(const struct nn_cubic *s, const struct nn_cubic_cfg *c, u64 now_us)
{
	const struct nn_cubic_epoch *e = &s->epoch;
	u64 since = now_us > e->start_us ? now_us - e->start_us : 0;
	u64 target = nn_cubic_window(e, c->c, nn_cubic_time(since + s->base_us));
	u64 packets = nn_max(nn_cubic_packets(s), 1);
	/* 32 + 16 bits */
	u64 step = target > packets ? (target - packets) * NN_ONE / packets : 0;

	return nn_min(nn_max(step, e->max ? 0 : NN_CUBIC_LEAST_STEP), NN_ONE / 2);
}

/* The growth of congestion avoidance for so many packets. */
nn_inline void nn_cubic_avoid(struct nn_cubic *s, const struct nn_cubic_cfg *c, u64 acked,
			      u64 now_us)
{
	struct nn_cubic_epoch *e = &s->epoch;
	u64 cwnd = nn_max(s->window.cwnd, NN_ONE);
	u64 most = cwnd + acked * (NN_ONE / 2);
	u64 beta = nn_min(c->beta, NN_ONE);
	/* 2 + 16 + 16 bits */
	u64 friendly = 3 * (NN_ONE - beta) * NN_ONE / (NN_ONE + beta);

	if (!acked)
		return;
	if (!e->begun)
		nn_cubic_begin(s, c, now_us);
	/* 20 + 18 + 16 bits */
	e->friendly = nn_clamp_cwnd(e->friendly + acked * friendly * NN_ONE / cwnd, 0);
	cwnd += acked * nn_cubic_step(s, c, now_us);
	s->window.cwnd = nn_clamp_cwnd(nn_max(cwnd, nn_min(e->friendly, most)), 0);
}

/* Begins a round of HyStart's. */
nn_inline void nn_cubic_next_round(struct nn_cubic *s, const struct nn_ack *a)
{
	s->round_us = a->now_us;
	s->train_us = a->now_us;
	s->least_us = NN_RTT_MAX;
	s->samples = 0;
}

/* In slow start, at each RTT sample: whether the path is full. */
nn_inline int nn_cubic_full(struct nn_cubic *s, const struct nn_ack *a, u32 rtt)
{
	u64 slack = nn_min(nn_max(s->base_us / 8, NN_HYSTART_DELAY_MIN_US),
			   NN_HYSTART_DELAY_MAX_US);

	if (nn_round_over(&s->end, a))
		nn_cubic_next_round(s, a);
	if (a->now_us - s->train_us <= NN_HYSTART_SPACING_US) {
		s->train_us = a->now_us;
		if (a->now_us - s->round_us > (s->base_us + NN_HYSTART_HOST_US) / 2)
			return 1;
	}
	s->least_us = (u32)nn_min(s->least_us, rtt);
	if (s->samples < NN_HYSTART_SAMPLES) {
		s->samples++;
		return 0;
	}
	return s->least_us > s->base_us + slack;
}

nn_inline void nn_cubic_sample(struct nn_cubic *s, const struct nn_cubic_cfg *c,
			       const struct nn_ack *a)
{
	u32 rtt = nn_rtt(a);

	if (!rtt)
		return;
	s->base_us = s->base_us ? (u32)nn_min(s->base_us, rtt) : rtt;
	if (!c->hystart || s->found || s->window.cwnd < NN_HYSTART_LOW ||
	    !nn_window_in_slow_start(&s->window))
		return;
	if (nn_cubic_full(s, a, rtt)) {
		s->found = 1;
		s->window.ssthresh = s->window.cwnd;
	}
}

/*
 * Multiplicative decrease, with fast convergence. 20 + 17 bits. The window is
 * rounded to 1/64 packet, since 0.7 is a bit less in Q16, and of 10 packets 7 shall
 * be left, not 6 and a fraction.
 */
nn_inline void nn_cubic_lose(struct nn_cubic *s, const struct nn_cubic_cfg *c)
{
	struct nn_cubic_epoch *e = &s->epoch;
	u64 packets = nn_cubic_packets(s);
	u64 beta = nn_min(c->beta, NN_ONE);
	u64 left = (packets * beta + 512) / 1024 * 1024;

	s->undo = *e;
	if (c->fast_convergence && packets < e->max)
		packets = packets * (NN_ONE + beta) / (2 * NN_ONE);
	e->max = (u32)packets;
	e->begun = 0;
	nn_window_lose(&s->window, nn_clamp_cwnd(left, 2 * NN_ONE));
}

nn_inline void nn_cubic_init(struct nn_cubic *s, const struct nn_cubic_cfg *c, struct nn_group *g,
			     const struct nn_ack *a, struct nn_ctl *ctl)
{
	nn_window_start(&s->window, ctl);
	s->last_us = a->now_us;
	s->end = a->nxt;
	nn_cubic_next_round(s, a);
	nn_window_answer(&s->window, ctl);
}

nn_inline void nn_cubic_ack(struct nn_cubic *s, const struct nn_cubic_cfg *c, struct nn_group *g,
			    const struct nn_ack *a, struct nn_ctl *ctl)
{
	if (a->flags & NN_ACK_APP_LIMITED)
		nn_cubic_rest(s, a->now_us);
	s->last_us = a->now_us;
	nn_cubic_sample(s, c, a);
	if (nn_may_grow(a))
		nn_cubic_avoid(s, c, nn_window_slow_start(&s->window, nn_acked(a)), a->now_us);
	nn_window_answer(&s->window, ctl);
}

nn_inline void nn_cubic_event(struct nn_cubic *s, const struct nn_cubic_cfg *c, struct nn_group *g,
			      enum nn_event event, const struct nn_ack *a, struct nn_ctl *ctl)
{
	switch (event) {
	case NN_LOSS:
	case NN_ECN:
		nn_cubic_lose(s, c);
		nn_window_answer(&s->window, ctl);
		return;
	case NN_TIMEOUT:
		s->epoch.begun = 0;
		s->epoch.max = 0;
		s->found = 0;
		break;
	case NN_UNDO:
		s->epoch = s->undo;
		break;
	case NN_IDLE:
		nn_cubic_rest(s, a->now_us);
		break;
	case NN_EVENTS:
	case NN_CLOSE:
		break;
	}
	nn_window_react(&s->window, event, 2 * NN_ONE, ctl);
	nn_window_answer(&s->window, ctl);
}

nn_inline void nn_cubic_send(struct nn_cubic *s, const struct nn_cubic_cfg *c, struct nn_group *g,
			     const struct nn_ack *a, struct nn_ctl *ctl)
{
	if (!a->inflight)
		nn_cubic_rest(s, a->now_us);
}

#define nn_cubic_shown(S, s, c) nn_show_base_rtt(S, (s)->base_us)

#endif
