/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Inline measurement of the available bandwidth: what others leave of the path,
 * from the spacing of the packets that a flow sends anyway. A part that an
 * algorithm holds; it sends no packet of its own.
 *
 * C. Man, G. Hasegawa, M. Murata, "ImTCP: TCP with an inline measurement
 * mechanism for available bandwidth", Computer Communications 29, 2006. A stream
 * of N packets at a rate R meets a queue that grows while R exceeds the available
 * bandwidth A, by (R - A)/C of the time that passes (C: capacity):
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
 * To send faster than ACKs come in, a stream needs room in the window: in `hold`
 * ACKs let nothing leave until there is enough of it. Between measurements packets
 * leave at 5/4 of the rate of ACKs (in slow start at twice that rate), lest that
 * room become a burst.
 *
 * What was decided where the papers are silent:
 * - Trends are of RTTs, not of the spacing of ACKs: an ACK for several packets and
 *   one that met another on its way back still has the RTT of its last packet. A
 *   stream is taken in eight groups of neighbours, whose means are compared
 *   (Pathload: medians of groups): PCT is the share of pairs of groups that
 *   increase, PDT the increase from first to last over the sum of all steps.
 *   One of them suffices if the other is undecided; if they disagree T = 0.
 * - The ACK of a lone packet can be a delayed one, and is left out, if nothing is in
 *   flight behind it or the receiver's last ACK was for several.
 * - The rates of a stream are those at which it left, by its packets' own times.
 *   A stream that could not leave within its sub-range counts as T = 0.
 * - The line of step 5 has the inclination 1/C, whatever A is, and that is the
 *   least-squares fit of the slopes of RTT over all measurements, older ones fading
 *   with 63/64. Its level is that of the faster half of the streams: A is the mean
 *   of R - C slope over these. Where others send in bursts, slower streams meet a
 *   queue that grows though R < A (its mean grows with the load), and the slopes of
 *   those that a test finds increasing are the greatest by chance: either way the
 *   result is off by more than half where little is available.
 * - Which streams are on that line: all of a measurement throughout which the queue
 *   stood (RTT over 5/4 of the least). Where it runs empty the line is flat below A: there
 *   those that were faster than A and the last result (before there is one, those that show
 *   an increase), if the fastest shows one. To choose by that wherever the queue stands, too,
 *   would choose by noise: beside bursts C would be a third of what it is. Until C is known
 *   the result is the middle of sub-range a.
 * - A stream that ended within four packets of a full queue is none: its RTTs stop
 *   growing, whatever its rate. Full is the greatest RTT seen before the last loss.
 * - Hence the range, in the paper A +- max(1.96 S/sqrt(q), B/2), reaches up to 2A, but
 *   not beyond 6/5 C. The trends decide until C is known; then every measurement has a
 *   result, since those left out would be the high or the low ones: streams that show
 *   no increase are as much of one as their rate, by which the range moves on.
 * - A is the mean of the last q results (the paper: the last one). A result further
 *   from that than 3 S and a sixteenth is left out. Two in a row on the same side, further
 *   than sqrt(2) S and a sixteenth, are of another bandwidth: the mean starts from these.
 *   (A step widens S at once: with 3 S here one from 30 to 10 Mbit/s took 3.3 s instead of
 *   1.3.) What obeys the measurement and smoothes for itself takes the last one.
 * - k: 4 from a window of 32 packets, 3 from 24, 2 from 16, none below.
 *   N: a third of the window, even, 10 to 32.
 * - No stream lasts longer than two round trips, which bounds the range from below;
 *   no faster one is asked for than twice what did leave, which bounds it from above.
 * - q is 16 at most, older results fade; no result is further from their mean than 3/4
 *   of it, the first not outside half of the range's lower and 5/4 of its upper bound.
 * - Four measurements in a row without a result, for streams that were stretched or
 *   contradict each other: the next range is half to double of the flow's rate.
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
	int lone = acked < NN_BURST && (!a->inflight || m->several);
	int over;
	u32 end;

	if (acked && moved && !a->lost && !(a->flags & NN_ACK_HOLD))
		m->unit = (u32)nn_max(moved / acked, 1);
	m->una = a->una;
	nn_bounds_ack(&m->bounds, a, cwnd_q16, lone);
	if (acked)
		m->several = acked >= NN_BURST;
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
	if (!lone && (!over || a->una == end))
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
