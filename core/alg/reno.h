/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Reno congestion avoidance (RFC 5681), on top of the host's loss recovery.
 *
 * V. Jacobson, "Congestion Avoidance and Control", SIGCOMM 1988; the paper on
 * TCP Nice, section 2.1, calls it AIMD:
 *
 *	W < ssthresh:	W += 1 for each packet acknowledged	(slow start)
 *	else:		W += 1/W for each packet acknowledged
 *	on loss:	ssthresh = max(W/2, 2), W = ssthresh
 *	on timeout:	W = 1
 *
 *	          loss                  W >= ssthresh
 *	 +------------------+  +------------------------------+
 *	 v                  |  |                              v
 *	congestion avoidance    slow start <--- timeout --- any
 *
 * It is the base of the other window-based algorithms: they hold a struct
 * nn_reno as their window and fall back on its rules when packets are lost.
 *
 * Deviations from RFC 5681: the growth of 1/W is added at each ACK in Q16
 * rather than a whole packet once a round; over a round of W packets the sum is
 * 1 - O(1/W).
 *
 * Range: see netnice.h; acked * 2^32 / W has a dividend of at most 52 bits.
 */
#ifndef NN_ALG_RENO_H
#define NN_ALG_RENO_H

#include "../netnice.h"

#define NN_APART_US 30000u	/* sooner than a receiver delays its ACK, by 40 ms */

#define nn_reno_summary \
	"Reno: one packet more each round trip, half on loss; yields to nobody"

#define nn_reno_params(P)

struct nn_reno_cfg {
	nn_reno_params(NN_FIELD)
};

struct nn_reno {
	u64 cwnd;	/* packets, Q16 */
	u64 ssthresh;	/* packets, Q16 */
	u64 prior;	/* window before the last reduction, for NN_UNDO */
	u64 prior_ssthresh; /* and ssthresh before it */
};

nn_inline int nn_reno_in_slow_start(const struct nn_reno *s)
{
	return s->cwnd < s->ssthresh;
}

/* Answers with the window; ACKs clock it. */
nn_inline void nn_reno_answer(const struct nn_reno *s, struct nn_ctl *ctl)
{
	ctl->cwnd_q16 = s->cwnd;
	ctl->gap_us = 0;
	ctl->burst = NN_BURST;
	ctl->flags = nn_reno_in_slow_start(s) ? NN_CTL_SLOW_START : 0;
}

/* Answers with the window, below two packets with a burst of two every 2/W RTTs (Nice 2.3). */
nn_inline void nn_reno_answer_spread(const struct nn_reno *s, const struct nn_ack *a,
				     struct nn_ctl *ctl)
{
	nn_reno_answer(s, ctl);
	if (s->cwnd < NN_BURST * NN_ONE && s->cwnd) {
		/* 2 * 2^27 * 2^16: 44 bits */
		u64 gap = NN_BURST * nn_min(a->srtt_us, NN_RTT_MAX) * NN_ONE / s->cwnd;

		ctl->gap_us = nn_min(gap, NN_GAP_MAX);
	}
}

/*
 * The least window that congestion or a loss leaves, Q16: `together` in all for the flows that the
 * host has under this algorithm. Those that others have at the bottleneck are not known.
 */
nn_inline u64 nn_reno_least(u64 least, u64 together, const struct nn_ack *a)
{
	return a->flows ? nn_max(least, together / a->flows) : least;
}

/*
 * Before a packet leaves, of a window below two. A burst's gap has two parts: from its first packet
 * to the second, which must not meet the first one in a queue, and from there to the next burst, at
 * `burst_us`. (A packet that is sent again leaves without this, and has the whole gap after it; so does
 * any before the first RTT.)
 */
nn_inline void nn_reno_part(u64 *burst_us, u64 base_us, const struct nn_ack *a, struct nn_ctl *ctl)
{
	if (!base_us)
		return;
	ctl->burst = 1;
	if (a->now_us < *burst_us) {
		ctl->gap_us = nn_min(ctl->gap_us, *burst_us - a->now_us);
	} else {
		*burst_us = a->now_us + ctl->gap_us;
		ctl->gap_us = nn_min(base_us, NN_APART_US);
	}
}

/* Grows by slow start for so many packets; returns those that it leaves for avoidance. */
nn_inline u64 nn_reno_slow_start(struct nn_reno *s, u64 acked)
{
	u64 grown = s->cwnd + acked * NN_ONE;

	if (!nn_reno_in_slow_start(s))
		return acked;
	if (grown <= s->ssthresh) {
		s->cwnd = nn_clamp_cwnd(grown, 0);
		return 0;
	}
	s->cwnd = s->ssthresh;
	return (grown - s->ssthresh) / NN_ONE;
}

/* Grows for packets newly acknowledged, unless the host or the application forbids. */
nn_inline void nn_reno_grow(struct nn_reno *s, const struct nn_ack *a)
{
	u64 acked = nn_acked(a);

	if (!acked || !nn_may_grow(a))
		return;
	acked = nn_reno_slow_start(s, acked);
	if (s->cwnd)
		s->cwnd += acked * NN_ONE * NN_ONE / s->cwnd;
	s->cwnd = nn_clamp_cwnd(s->cwnd, 0);
}

/* Shrinks the window and leaves slow start. */
nn_inline void nn_reno_shrink(struct nn_reno *s, u64 cwnd)
{
	s->cwnd = cwnd;
	s->ssthresh = cwnd;
}

/* Shrinks the window for a loss, which may turn out to be spurious. */
nn_inline void nn_reno_lose(struct nn_reno *s, u64 cwnd)
{
	s->prior = s->cwnd;
	s->prior_ssthresh = s->ssthresh;
	nn_reno_shrink(s, cwnd);
}

/*
 * Loss, ECN, timeout, undo and idle restart, for any algorithm whose window
 * this is. `least` is the least window after a halving; a timeout never raises
 * a window that was below one packet already.
 */
nn_inline void nn_reno_react(struct nn_reno *s, enum nn_event event, u64 least,
			     const struct nn_ctl *ctl)
{
	switch (event) {
	case NN_LOSS:
	case NN_ECN:
		nn_reno_lose(s, nn_clamp_cwnd(s->cwnd / 2, least));
		break;
	case NN_TIMEOUT:
		s->cwnd = nn_min(s->cwnd, NN_ONE);
		break;
	case NN_UNDO:
		s->cwnd = nn_max(s->cwnd, s->prior);
		s->ssthresh = nn_max(s->ssthresh, s->prior_ssthresh);
		break;
	case NN_IDLE:
		/* what the path carried before is remembered in ssthresh (RFC 2861) */
		s->ssthresh = nn_max(s->ssthresh, s->cwnd / 4 * 3);
		s->cwnd = nn_clamp_cwnd(nn_min(s->cwnd, ctl->cwnd_q16), least);
		break;
	case NN_EVENTS:
	case NN_CLOSE:
		break;
	}
}

/* Starts with the host's initial window, in slow start. */
nn_inline void nn_reno_start(struct nn_reno *s, const struct nn_ctl *ctl)
{
	s->cwnd = nn_clamp_cwnd(ctl->cwnd_q16, NN_ONE);
	s->ssthresh = NN_CWND_MAX;
	s->prior = s->cwnd;
	s->prior_ssthresh = s->ssthresh;
}

nn_inline void nn_reno_init(struct nn_reno *s, const struct nn_reno_cfg *c, struct nn_group *g,
			    const struct nn_ack *a, struct nn_ctl *ctl)
{
	(void)c, (void)g, (void)a;
	nn_reno_start(s, ctl);
	nn_reno_answer(s, ctl);
}

nn_inline void nn_reno_ack(struct nn_reno *s, const struct nn_reno_cfg *c, struct nn_group *g,
			   const struct nn_ack *a, struct nn_ctl *ctl)
{
	(void)c, (void)g;
	nn_reno_grow(s, a);
	nn_reno_answer(s, ctl);
}

nn_inline void nn_reno_event(struct nn_reno *s, const struct nn_reno_cfg *c, struct nn_group *g,
			     enum nn_event event, const struct nn_ack *a, struct nn_ctl *ctl)
{
	(void)c, (void)g, (void)a;
	nn_reno_react(s, event, 2 * NN_ONE, ctl);
	nn_reno_answer(s, ctl);
}

nn_inline void nn_reno_send(struct nn_reno *s, const struct nn_reno_cfg *c, struct nn_group *g,
			    const struct nn_ack *a, struct nn_ctl *ctl)
{
	(void)s, (void)c, (void)g, (void)a, (void)ctl;
}

nn_inline void nn_reno_info(const struct nn_reno *s, const struct nn_reno_cfg *c,
			    struct nn_info *info)
{
	(void)s, (void)c, (void)info;
}

#endif
