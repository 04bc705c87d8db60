/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The congestion window that window-based algorithms hold: cwnd and ssthresh, slow start
 * (RFC 5681), and Reno's answers to losses, timeouts, undo and idling.
 *
 *	W < ssthresh:	W += 1 for each packet acknowledged	(slow start)
 *	else:		W += 1/W for each packet acknowledged	(congestion avoidance)
 *
 * Deviations from RFC 5681: the growth of 1/W is added at each ACK in Q16
 * rather than a whole packet once a round; over a round of W packets the sum is
 * 1 - O(1/W).
 *
 * Range: see interface.h; acked * 2^32 / W has a dividend of at most 52 bits.
 */
#ifndef NN_WINDOW_H
#define NN_WINDOW_H

#include "../netnice.h"

struct nn_window {
	u64 cwnd;	/* packets, Q16 */
	u64 ssthresh;	/* packets, Q16 */
	u64 prior;	/* window before the last reduction, for NN_UNDO */
	u64 prior_ssthresh; /* and ssthresh before it */
};

nn_inline int nn_window_in_slow_start(const struct nn_window *s)
{
	return s->cwnd < s->ssthresh;
}

/* Answers with the window; ACKs clock it. */
nn_inline void nn_window_answer(const struct nn_window *s, struct nn_ctl *ctl)
{
	ctl->cwnd_q16 = s->cwnd;
	ctl->gap_us = 0;
	ctl->burst = NN_BURST;
	ctl->flags = nn_window_in_slow_start(s) ? NN_CTL_SLOW_START : 0;
}

/* Grows by slow start for so many packets; returns those that it leaves for avoidance. */
nn_inline u64 nn_window_slow_start(struct nn_window *s, u64 acked)
{
	u64 grown = s->cwnd + acked * NN_ONE;

	if (!nn_window_in_slow_start(s))
		return acked;
	if (grown <= s->ssthresh) {
		s->cwnd = nn_clamp_cwnd(grown, 0);
		return 0;
	}
	s->cwnd = s->ssthresh;
	return (grown - s->ssthresh) / NN_ONE;
}

/* Grows for packets newly acknowledged, unless the host or the application forbids. */
nn_inline void nn_window_grow(struct nn_window *s, const struct nn_ack *a)
{
	u64 acked = nn_acked(a);

	if (!acked || !nn_may_grow(a))
		return;
	acked = nn_window_slow_start(s, acked);
	if (s->cwnd)
		s->cwnd += acked * NN_ONE * NN_ONE / s->cwnd;
	s->cwnd = nn_clamp_cwnd(s->cwnd, 0);
}

/* Shrinks the window and leaves slow start. */
nn_inline void nn_window_shrink(struct nn_window *s, u64 cwnd)
{
	s->cwnd = cwnd;
	s->ssthresh = cwnd;
}

/* Shrinks the window for a loss, which may turn out to be spurious. */
nn_inline void nn_window_lose(struct nn_window *s, u64 cwnd)
{
	s->prior = s->cwnd;
	s->prior_ssthresh = s->ssthresh;
	nn_window_shrink(s, cwnd);
}

/*
 * Loss, ECN, timeout, undo and idle restart, for any algorithm whose window
 * this is. `least` is the least window after a halving; a timeout never raises
 * a window that was below one packet already.
 */
nn_inline void nn_window_react(struct nn_window *s, enum nn_event event, u64 least,
			     const struct nn_ctl *ctl)
{
	switch (event) {
	case NN_LOSS:
	case NN_ECN:
		nn_window_lose(s, nn_clamp_cwnd(s->cwnd / 2, least));
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
nn_inline void nn_window_start(struct nn_window *s, const struct nn_ctl *ctl)
{
	s->cwnd = nn_clamp_cwnd(ctl->cwnd_q16, NN_ONE);
	s->ssthresh = NN_CWND_MAX;
	s->prior = s->cwnd;
	s->prior_ssthresh = s->ssthresh;
}

#endif
