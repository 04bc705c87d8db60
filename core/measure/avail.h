/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Inline measurement of the available bandwidth: what others leave of the path, from the
 * spacing of the packets that a flow sends anyway. An algorithm holds it as a part of its
 * state. It sends no packet of its own.
 *
 * C. Man, G. Hasegawa, M. Murata, "ImTCP: TCP with an inline measurement mechanism for
 * available bandwidth", Computer Communications 29, 2006. A stream of N packets at a rate
 * R meets a queue that grows while R exceeds the available bandwidth A, by (R - A)/C of
 * the time that passes (C: capacity):
 *
 *	RTT of the stream's packets
 *	   |            ,'  R > A: increases		search range
 *	   |     - ,' - - - - - - -			[--4--|--3--|--2--|--1--]
 *	   |  - '		R < A: stays		low         A         high
 *	   +------------------------> time
 *
 *	1. first range: [A0/2, A0], A0 the rate at which a train of packets arrives
 *	2. k sub-ranges, 1 the fastest; a stream for each, whose rate climbs through it
 *	3. trend T_i of each stream's RTTs: 1 increasing, -1 not, 0 neither (Pathload)
 *	4. A is in the sub-range a that has most of sum_{i<a} T_i - sum_{i>a} T_i
 *	5. where the line through the streams' rates of increase is zero
 *	6. next range: A - max(1.96 S/sqrt(q), A/5) to 2A, of the last q results; if A
 *	   is outside: widen the range on that side by half of it
 *
 *	      window >= 16, no recovery          room for N packets
 *	idle ---------------------------> hold ----------------------> stream
 *	  ^                                ^                             |
 *	  |  all acknowledged              +---- N packets have left ----+
 *	  +----------------------- wait <------- k streams have left ----+
 *
 * To send faster than ACKs come in, a stream needs room in the window: in `hold` ACKs let
 * nothing leave until there is enough of it. Between measurements packets leave at 5/4 of
 * the rate of ACKs (in slow start at twice that rate), lest that room become a burst.
 *
 * Deviations from the paper, and what it leaves open (docs/design/available-bandwidth.md
 * says why). Sizes:
 * - k is 4 from a window of 32 packets, 3 from 24, 2 from 16; below nothing is measured.
 *   N is a third of the window, even, 10 to 32.
 * - A stream lasts two round trips at most, which bounds the range from below. It is asked
 *   for no more than twice the rate that did leave, which bounds the range from above.
 *
 * A stream (step 3):
 * - Trends are of RTTs, in eight groups of neighbours, whose means are compared
 *   (Pathload: medians). PCT is the share of pairs of groups that increase, PDT the
 *   increase from first to last over the sum of all steps. One of them suffices if the
 *   other is undecided; T = 0 if they disagree.
 * - Its rate is the one at which it left, by its packets' own times. If that is not within
 *   its sub-range, T = 0.
 * - An RTT that may hold the receiver's timer is left out (rtt.h).
 * - If it ended within four packets of a full queue it does not count. Full is the
 *   greatest RTT seen before the last loss.
 *
 * The line (step 5):
 * - Its inclination is 1/C: the least-squares fit of the slopes of RTT over all
 *   measurements, older ones fading with 63/64.
 * - A is the mean of R - C slope over the faster half of the streams. Until C is known it
 *   is the middle of sub-range a.
 * - Where the queue stood throughout a measurement (RTT over 5/4 of the least), all its
 *   streams are on the line. Elsewhere those are that were faster than A and the last
 *   result (before there is one, those that increase), if the fastest increases.
 *
 * The result (step 6):
 * - Until C is known the trends decide; then each measurement has a result.
 * - The range reaches up to 2A (the paper: A + max(1.96 S/sqrt(q), B/2)), but not beyond
 *   6/5 C.
 * - A is the mean of the last q results, 16 at most (the paper: the last one). A result
 *   further from that than 3 S and A/16 is left out. Two in a row on the same side,
 *   further than sqrt(2) S and A/16, are of another bandwidth: the mean starts from these.
 *   An algorithm that smoothes by itself takes the last result instead.
 * - No result is further from the mean than 3/4 of it. The first is between half of the
 *   range's lower and 5/4 of its upper bound.
 * - After four measurements in a row without a result the next range is half to double of
 *   the flow's rate.
 * - A loss abandons the measurement; the next begins after recovery.
 *
 * Range: rates are packets per second in Q8, below 2^25; see the products.
 */
#ifndef NN_MEASURE_AVAIL_H
#define NN_MEASURE_AVAIL_H

#include "avail_estimate.h"

#define NN_ALONE	/* what it spaces and measures are the flow's own packets (core/flow.h) */

nn_inline void nn_avail_start(struct nn_avail *m, const struct nn_ack *a)
{
	m->una = a->una;
	m->start[0] = a->nxt;
}

/* A packet met a full queue. */
nn_inline void nn_avail_lose(struct nn_avail *m, u64 now_us)
{
	nn_bounds_lose(&m->bounds, now_us);
	m->full_us = m->bounds.top_us;
}

/* Packets were lost, or the flow rested: nothing is measured until what was sent is through. */
nn_inline void nn_avail_interrupt(struct nn_avail *m, const struct nn_ack *a)
{
	nn_avail_abandon(m);
	m->recover = a->nxt;
	m->recovering = 1;
}

/* Takes an ACK of a flow with a window of cwnd_q16; whether there is a new result. */
nn_inline int nn_avail_ack(struct nn_avail *m, const struct nn_ack *a, u64 cwnd_q16)
{
	u32 acked = nn_acked(a), moved = a->una - m->una;
	int late = nn_rtt_late(a, m->pairs);
	int over;
	u32 end;

	if (acked && moved && !a->lost && !(a->flags & NN_ACK_HOLD))
		m->unit = (u32)nn_max(moved / acked, 1);
	m->una = a->una;
	nn_bounds_ack(&m->bounds, a, cwnd_q16, late);
	nn_rtt_note(&m->pairs, a);
	if ((s32)(a->una - m->recover) >= 0)
		m->recovering = 0;
	if (!m->high) {
		nn_avail_train(m, a);
		return 0;
	}
	if (m->phase == NN_AVAIL_IDLE)
		return 0;
	if (a->flags & NN_ACK_HOLD || a->now_us > m->deadline_us) {
		m->fails++;
		nn_avail_abandon(m);
		return 0;
	}
	end = m->start[(m->reading + 1) & 7];
	/* an ACK of packets of two streams ends the first; it is no sample of either */
	over = m->reading < m->sending && (s32)(a->una - end) >= 0;
	if (!late && (!over || a->una == end))
		nn_avail_sample(m, a);
	if (over)
		nn_avail_read(m);
	return m->reading >= m->streams && nn_avail_evaluate(m);
}

/* Adds the gap, and while it holds, keeps the host from sending. */
nn_inline void nn_avail_answer(const struct nn_avail *m, const struct nn_ack *a, struct nn_ctl *ctl)
{
	if (nn_avail_holds(m, a, ctl->cwnd_q16))
		ctl->cwnd_q16 = nn_min(ctl->cwnd_q16, (u64)a->inflight * NN_ONE);
	if (m->gap_us) {
		ctl->gap_us = m->gap_us;
		ctl->burst = 1;
	}
}

nn_inline struct nn_value nn_avail_value(const struct nn_avail *m)
{
	struct nn_value v = { .results = m->results };
	u32 half;

	if (!m->results)
		return v;
	v.value = m->mean / NN_AVAIL_ONE;
	half = nn_avail_half(m);
	v.low = (m->mean - (u32)nn_min(half, m->mean)) / NN_AVAIL_ONE;
	v.high = (m->mean + half) / NN_AVAIL_ONE;
	return v;
}

#define nn_avail_shown(S, m) \
	S(available, pps, "what others leave of the path, as measured", nn_avail_value(m))

#endif
