/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * TFRC: the window that TCP's throughput equation gives for the losses that are met.
 *
 * RFC 5348 (S. Floyd, M. Handley, J. Padhye, J. Widmer, 2008), with b = 1 and t_RTO = 4R
 * as it recommends (3.1). A rate of X packets in a second is a window of W = X R:
 *
 *	1/W = sqrt(2p/3) + 12 sqrt(3p/8) p (1 + 32 p^2)
 *
 * p is the loss event rate. A loss event is a loss, or an ECN mark, more than a smoothed
 * RTT after the start of the one before (5.2). Between two of them lie I packets:
 *
 *	event    event       event     event      now
 *	  |- I_3 -|--- I_2 ---|-- I_1 --|--- I_0 --->
 *
 *	p = 1 / max(mean of I_0..I_7, mean of I_1..I_8)
 *
 * each weighted 1, 1, 1, 1, .8, .6, .4, .2 from the latest on, of as many as there were
 * (5.4). I_0 counts once it makes the mean greater: W falls by events alone, and grows by
 * about a tenth of a packet in a round trip.
 *
 *	slow start ---first event: I_1 = 1/p of W/2---> equation <---timeout: W = 1---+
 *	                                                   +--------------------------+
 *
 * Whatever the equation says, W grows by what is acknowledged at most, so that the rate
 * doubles in a round trip at most (4.3), and only while the flow fills it.
 *
 * In a group (aggregate/any.h) it is MPAT's TFRC variant (MPAT, 3.3.4): a loop for each
 * window, which counts the packets and losses charged to that window, whichever flow's
 * they are.
 *
 * Deviations from RFC 5348, a protocol of its own, as a control of TCP:
 * - ACKs clock the window: the rate is W over the RTT of the moment, not over a smoothed
 *   one. That damps what 4.5 is there for.
 * - The sender counts, packets as they are delivered: of what is lost, the first of an event.
 * - The host says when a packet is lost, at most once for each window of data.
 * - After a timeout W is one packet, as TCP's is, and grows back as in slow start; the RFC
 *   halves the rate when it has heard nothing for four RTTs (4.4).
 * - An undo makes one interval of the two that the event parted.
 * - No history discounting, which is optional (5.5).
 * - W is a packet at least, as TCP's is, below which there are its timeouts; the RFC's rate
 *   falls to a packet in 64 seconds. That is where p is above 0.146.
 *
 * Range: intervals are below 2^32 packets, which is a window of 80,249. sqrt(p) is Q32; see
 * also the products.
 */
#ifndef NN_ALG_TFRC_H
#define NN_ALG_TFRC_H

#include "../window/sparse.h"

#define nn_tfrc_summary \
	"TFRC: what TCP would have at the same losses, but smoothly; yields to nobody"

#define nn_tfrc_params(P)

#define NN_TFRC_INTERVALS 8
#define NN_TFRC_SQRT_P_MAX ((1ull << 32) - 1)	/* Q32: 1 */
#define NN_TFRC_A 53510u	/* sqrt(2/3), Q16 */
#define NN_TFRC_B 481590u	/* 12 sqrt(3/8), Q16 */

struct nn_tfrc_cfg {
	nn_tfrc_params(NN_FIELD)
};

struct nn_tfrc {
	struct nn_window window;	/* ssthresh: what the equation allows; prior 0: the last loss began no event */
	u64 held_us;		/* clock until which losses belong to the last event */
	/* I_0 to I_8, packets; 0: there were fewer. The last was forgotten for the last event: for an undo. */
	u32 interval[NN_TFRC_INTERVALS + 2];
};

/* The weight of I_(i) in fifths. */
nn_inline u32 nn_tfrc_weight(u32 i)
{
	return (u32)nn_min(5, NN_TFRC_INTERVALS - i);
}

/* 1/W (Q32) for the square root of p (Q32, up to NN_TFRC_SQRT_P_MAX). */
nn_inline u64 nn_tfrc_inverse(u64 sqrt_p)
{
	u64 p = sqrt_p * sqrt_p >> 32;
	/* 19 + 32 bits */
	u64 timeouts = (p * sqrt_p >> 32) * NN_TFRC_B >> 16;
	/* Q16, 22 bits */
	u64 more = ((1ull << 32) + 32 * (p * p >> 32)) >> 16;

	/* 16 + 32 bits; 35 + 22 bits */
	return (NN_TFRC_A * sqrt_p >> 16) + (timeouts * more >> 16);
}

/* W (Q16) for a mean interval of sum/weight packets. 37 + 24 bits. */
nn_inline u64 nn_tfrc_equation(u64 sum, u64 weight)
{
	u64 root = nn_root((sum << 24) / nn_max(weight, 1)); /* Q12 */
	u64 sqrt_p = nn_min((1ull << 44) / nn_max(root, 1), NN_TFRC_SQRT_P_MAX);

	return (1ull << 48) / nn_max(nn_tfrc_inverse(sqrt_p), 1);
}

/* The interval at which the equation gives W (Q16), packets: bit by bit, from the highest one down. */
nn_inline u32 nn_tfrc_interval(u64 cwnd)
{
	u64 inverse = (1ull << 48) / nn_max(cwnd, 1);
	u64 sqrt_p = 0, root;

	for (int bit = 31; bit >= 0; bit--) {
		u64 next = sqrt_p + (1ull << bit);

		sqrt_p = next - (nn_negative(inverse - nn_tfrc_inverse(next)) << bit);
	}
	root = nn_min((1ull << 48) / nn_max(sqrt_p, 1), NN_TFRC_SQRT_P_MAX); /* Q16 */
	return (u32)nn_max(root * root >> 32, 1);
}

/* What the equation allows (Q16); before the first event, anything. */
nn_inline u64 nn_tfrc_window(const struct nn_tfrc *s)
{
	u64 with = 0, without = 0, weight = 0;

	if (!s->interval[1])
		return NN_CWND_MAX;
	for (u32 i = 0; i < NN_TFRC_INTERVALS; i++) {
		u64 w = nn_tfrc_weight(i) * nn_negative(0 - (u64)s->interval[i + 1]);

		with += w * s->interval[i];
		without += w * s->interval[i + 1];
		weight += w;
	}
	return nn_clamp_cwnd(nn_tfrc_equation(nn_max(with, without), weight), NN_ONE);
}

/* The window is what the equation allows at most. */
nn_inline void nn_tfrc_obey(struct nn_tfrc *s)
{
	s->window.ssthresh = nn_tfrc_window(s);
	s->window.cwnd = nn_min(s->window.cwnd, s->window.ssthresh);
}

/* A loss event begins. */
nn_inline void nn_tfrc_lose(struct nn_tfrc *s)
{
	if (!s->interval[1]) /* 6.3.1: what was counted in slow start says nothing of p */
		s->interval[0] = nn_tfrc_interval(s->window.cwnd / 2);
	for (int i = NN_TFRC_INTERVALS + 1; i > 0; i--)
		s->interval[i] = s->interval[i - 1];
	s->interval[0] = 1; /* the packet that was lost */
	s->window.prior = s->window.cwnd;
}

/* The last loss event was none. */
nn_inline void nn_tfrc_undo(struct nn_tfrc *s)
{
	u64 open = (u64)s->interval[0] + s->interval[1];

	for (int i = 1; i <= NN_TFRC_INTERVALS; i++)
		s->interval[i] = s->interval[i + 1];
	s->interval[0] = (u32)nn_min(open, ~0u);
	s->interval[NN_TFRC_INTERVALS + 1] = 0;
	s->window.cwnd = nn_max(s->window.cwnd, s->window.prior);
}

nn_inline void nn_tfrc_init(struct nn_tfrc *s, const struct nn_tfrc_cfg *c, struct nn_group *g,
			    const struct nn_ack *a, struct nn_ctl *ctl)
{
	nn_window_start(&s->window, ctl);
	s->window.prior = 0;
	nn_window_answer(&s->window, ctl);
}

nn_inline void nn_tfrc_ack(struct nn_tfrc *s, const struct nn_tfrc_cfg *c, struct nn_group *g,
			   const struct nn_ack *a, struct nn_ctl *ctl)
{
	s->interval[0] = (u32)nn_min((u64)s->interval[0] + nn_acked(a), ~0u);
	nn_tfrc_obey(s);
	if (nn_may_grow(a))
		nn_window_slow_start(&s->window, nn_acked(a));
	nn_sparse_answer(&s->window, a, ctl);
}

nn_inline void nn_tfrc_event(struct nn_tfrc *s, const struct nn_tfrc_cfg *c, struct nn_group *g,
			     enum nn_event event, const struct nn_ack *a, struct nn_ctl *ctl)
{
	switch (event) {
	case NN_LOSS:
	case NN_ECN:
		/* 5.2; a clock that jumped back does not hold it for longer than an RTT */
		s->window.prior = 0;
		if (s->held_us - a->now_us - 1 < NN_RTT_MAX)
			break;
		s->held_us = a->now_us + nn_min(a->srtt_us, NN_RTT_MAX);
		nn_tfrc_lose(s);
		break;
	case NN_UNDO:
		if (s->window.prior)
			nn_tfrc_undo(s);
		s->window.prior = 0;
		break;
	case NN_TIMEOUT:
	case NN_IDLE:
		nn_window_react(&s->window, event, NN_ONE, ctl);
		break;
	case NN_EVENTS:
	case NN_CLOSE:
		break;
	}
	nn_tfrc_obey(s);
	nn_sparse_answer(&s->window, a, ctl);
}

#define nn_tfrc_send nn_no_send
#define nn_tfrc_shown(S, s, c)

#endif
