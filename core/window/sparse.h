/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Windows that ACKs cannot clock: a window below two packets is a burst of two every 2/W
 * round trips (A. Venkataramani, R. Kokku, M. Dahlin, "TCP Nice", OSDI 2002, section 2.3),
 * and a paced window is a burst every so often.
 */
#ifndef NN_SPARSE_H
#define NN_SPARSE_H

#include "window.h"

#define NN_SPARSE_APART_US 30000u	/* sooner than a receiver delays its ACK, by 40 ms */

/* Answers with the window, below two packets with a burst of two every 2/W RTTs (Nice 2.3). */
nn_inline void nn_sparse_answer(const struct nn_window *s, const struct nn_ack *a,
				     struct nn_ctl *ctl)
{
	nn_window_answer(s, ctl);
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
nn_inline u64 nn_sparse_least(u64 least, u64 together, const struct nn_ack *a)
{
	return a->flows ? nn_max(least, together / a->flows) : least;
}

/*
 * Before a packet leaves, of a window below two. A burst's gap has two parts: from its first packet
 * to the second, which must not meet the first one in a queue, and from there to the next burst, at
 * `burst_us`. (A packet that is sent again leaves without this, and has the whole gap after it; so does
 * any before the first RTT.)
 */
nn_inline void nn_sparse_part(u64 *burst_us, u64 base_us, const struct nn_ack *a, struct nn_ctl *ctl)
{
	if (!base_us)
		return;
	ctl->burst = 1;
	if (a->now_us < *burst_us) {
		ctl->gap_us = nn_min(ctl->gap_us, *burst_us - a->now_us);
	} else {
		*burst_us = a->now_us + ctl->gap_us;
		ctl->gap_us = nn_min(base_us, NN_SPARSE_APART_US);
	}
}

/*
 * The gap that lets so many packets (Q16) leave in a smoothed RTT, in bursts of a millisecond, but
 * at least four in that time, and of `least` packets.
 */
nn_inline void nn_sparse_pace(u64 rate_q16, u32 least, u64 srtt_us, struct nn_ctl *ctl)
{
	/* 44 + 10 bits */
	u64 burst = nn_min(rate_q16 * 1000 / nn_max(srtt_us, 1), rate_q16 / 4) / NN_ONE;

	ctl->burst = (u32)nn_max(nn_min(burst, NN_BURST_MAX), least);
	/* 6 + 27 + 16 bits */
	ctl->gap_us = nn_min(ctl->burst * srtt_us * NN_ONE / nn_max(rate_q16, 1), NN_GAP_MAX);
}

#endif
