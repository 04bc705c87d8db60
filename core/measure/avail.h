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

#include "../netnice.h"

#define NN_ALONE	/* what it spaces and measures are the flow's own packets (core/flow.h) */

#define NN_AVAIL_ONE 256u			/* one packet per second */
#define NN_AVAIL_RATE_MIN (2 * NN_AVAIL_ONE)
#define NN_AVAIL_RATE_MAX (125000 * NN_AVAIL_ONE) /* a packet every 8 us: timers do no better */
#define NN_AVAIL_WINDOW 16u			/* packets: the least window that measures */
#define NN_AVAIL_STREAMS 4u			/* k, at most */
#define NN_AVAIL_PACKETS_MIN 10u			/* N: four ACKs of pairs, and one of two streams */
#define NN_AVAIL_PACKETS_MAX 32u
#define NN_AVAIL_GROUPS 8u			/* of a stream's packets */
#define NN_AVAIL_STORED 16u			/* q, at most */
#define NN_AVAIL_FAILS 4u			/* measurements in a row without a result */
#define NN_AVAIL_TIME_MAX ((1u << 20) - 1)	/* us, of a stream */
#define NN_AVAIL_SLOPE_MAX (1u << 20)		/* 16, Q16 */

enum nn_avail_phase {
	NN_AVAIL_IDLE,
	NN_AVAIL_HOLD,
	NN_AVAIL_STREAM,
	NN_AVAIL_WAIT,
};

struct nn_avail {
	/* the estimate */
	u32 latest;		/* the last result, rate */
	u32 results;		/* results since the start */
	u32 low, high;		/* search range, rates; 0: none yet */
	u64 variance;		/* S^2 */
	u32 mean;		/* A, rate: mean of the stored results; 0: none yet */
	u32 stored;		/* q */
	u32 fails;		/* measurements in a row without a result */

	/* what the ACKs tell at any time */
	u32 una;		/* that of the last ACK */
	u32 unit;		/* sequence numbers of a packet; 0: not known yet */
	u32 several;		/* the last ACK was for several packets: the receiver delays ACKs */
	u32 recover;		/* end of what was sent before the last loss */
	u32 recovering;		/* that is not acknowledged yet */
	u32 base_us;		/* least RTT; 0: no sample yet */
	u32 top_us;		/* greatest RTT */
	u32 full_us;		/* greatest RTT before the last loss: the queue was full; 0: no loss yet */

	/* the measurement under way */
	u32 phase;		/* enum nn_avail_phase */
	u32 gap_us;		/* between the next packet and the one after it; 0: none */
	u32 known;		/* bit i: stream i left within its sub-range; i + 4: and the queue stood, or
				   it was faster than A; i + 8: and the queue stood */
	u64 deadline_us;	/* clock at which it is given up */
	u32 streams, packets;	/* k, N */
	u32 sending, reading;	/* streams of which all was sent, and acknowledged */
	u32 start[8];		/* where each begins, and the last ends; [0] the end of the train's round */
	u32 rate[4];		/* at which each left; 0: unusable */
	s32 slope[4];		/* of RTT over time, Q16 */
	s32 trend[4];		/* T: 1, 0 or -1 */
	s64 spread, rise;	/* sums of squares and products of rates and slopes */

	/* the stream that is being acknowledged; before the first range: the train */
	u64 first_us;		/* clock at which its first sampled packet left; first ACK */
	u64 last_us;		/* clock of the train's last ACK */
	u64 sum_t, sum_tt;	/* over the samples: time since first_us */
	s64 sum_d, sum_td;	/* RTT beyond first_rtt, us; times that time */
	u64 sum_rtt;		/* of this group, us */
	u32 n;			/* samples; packets of the train after its first ACK */
	u32 first_rtt;		/* us */
	u32 first, last;	/* indexes of the first and the last packet sampled */
	u32 last_t;		/* us */
	u32 group, members;	/* number of this group, samples in it */
	u32 groups;		/* complete ones */
	u32 first_mean, last_mean; /* RTT of the first and the last complete group, us */
	u32 rises;		/* groups above the one before */
	u32 steps;		/* sum of the distances between neighbours, us */
};

nn_inline u32 nn_avail_clamp(u64 rate)
{
	return (u32)nn_min(nn_max(rate, NN_AVAIL_RATE_MIN), NN_AVAIL_RATE_MAX);
}

/* The rate of so many packets in a time. 21 + 20 + 8 bits. */
nn_inline u64 nn_avail_rate(u32 packets, u64 us)
{
	return us ? nn_min(packets, NN_ACKED_MAX) * 1000000ull * NN_AVAIL_ONE / us : 0;
}

/* The time between packets at a rate, ns. */
nn_inline u64 nn_avail_gap_ns(u32 rate)
{
	return rate ? 1000000000ull * NN_AVAIL_ONE / rate : 0;
}

/* The mean time between packets that ACKs allow, ns. 27 + 10 + 16 bits. */
nn_inline u64 nn_avail_clock_ns(const struct nn_ack *a, u64 cwnd)
{
	return cwnd ? nn_min(a->srtt_us, NN_RTT_MAX) * 1000 * NN_ONE / cwnd : 0;
}

/* The square root, by Newton's method from above: no branches, which the verifier would count. */
nn_inline u32 nn_avail_sqrt(u64 x)
{
	u64 root = 1ull << 32;

	for (int i = 0; i < 36; i++)
		root = (root + x / (root | 1)) / 2;
	return (u32)nn_min(root, ~0u);
}

/* The bounds of sub-range i (0 the fastest). */
nn_inline u32 nn_avail_bottom(const struct nn_avail *m, u32 i)
{
	u32 k = (u32)nn_max(m->streams, 1);

	return m->high - (m->high - m->low) / k * (u32)nn_min(i + 1, k);
}

nn_inline u32 nn_avail_top(const struct nn_avail *m, u32 i)
{
	return i ? nn_avail_bottom(m, i - 1) : m->high;
}

/* Forgets the stored results. */
nn_inline void nn_avail_discard(struct nn_avail *m)
{
	m->stored = 0;
	m->variance = 0;
}

/* Gives up the measurement under way. */
nn_inline void nn_avail_abandon(struct nn_avail *m)
{
	m->phase = NN_AVAIL_IDLE;
	m->gap_us = 0;
}

/* Packets were lost, or the flow rested: nothing is measured until what was sent is through. */
nn_inline void nn_avail_interrupt(struct nn_avail *m, const struct nn_ack *a)
{
	nn_avail_abandon(m);
	m->recover = a->nxt;
	m->recovering = 1;
}

/* A packet met a full queue. */
nn_inline void nn_avail_lose(struct nn_avail *m)
{
	m->full_us = m->top_us;
}

nn_inline void nn_avail_start(struct nn_avail *m, const struct nn_ack *a)
{
	m->una = a->una;
	m->start[0] = a->nxt;
}

/* ---- sending ---- */

/* Begins a measurement if the window allows one. */
nn_inline void nn_avail_begin(struct nn_avail *m, const struct nn_ack *a, u64 cwnd)
{
	u64 window = cwnd / NN_ONE;
	u64 srtt = nn_min(a->srtt_us, NN_RTT_MAX);

	if (!m->high || !m->unit || m->recovering || !srtt || window < NN_AVAIL_WINDOW)
		return;
	if (m->fails >= NN_AVAIL_FAILS) {
		m->fails = 0;
		nn_avail_discard(m);
		m->low = nn_avail_clamp(nn_avail_rate((u32)window, 2 * srtt));
		m->high = nn_avail_clamp(4ull * m->low);
	}
	m->streams = window < 24 ? 2 : window < 32 ? 3 : NN_AVAIL_STREAMS;
	m->packets = (u32)nn_min(nn_max(window / 3, NN_AVAIL_PACKETS_MIN), NN_AVAIL_PACKETS_MAX);
	m->packets &= ~1u;
	m->low = nn_avail_clamp(nn_max(m->low, nn_avail_rate(m->packets, 2 * srtt)));
	m->high = nn_avail_clamp(nn_max(m->high, m->low + m->low / 2));
	m->deadline_us = a->now_us + 16 * srtt;
	m->sending = 0;
	m->reading = 0;
	for (u32 i = 0; i < NN_AVAIL_STREAMS; i++)
		m->rate[i] = 0, m->trend[i] = 0;
	m->known = 0;
	m->start[0] = a->nxt;
	m->n = 0;
	m->phase = NN_AVAIL_HOLD;
}

/*
 * Packets that must be free in the window before the next stream leaves: those for which no ACK
 * will come in while it does, if no more than 3/4 of them come that are due.
 */
nn_inline u64 nn_avail_need(const struct nn_avail *m, const struct nn_ack *a, u64 cwnd)
{
	u32 middle = (nn_avail_bottom(m, m->sending) + nn_avail_top(m, m->sending)) / 2;
	u64 clock = nn_avail_clock_ns(a, cwnd);
	u64 due = clock ? m->packets * nn_avail_gap_ns(middle) / clock : 0;

	return m->packets - nn_min(due, m->packets) * 3 / 4 + NN_BURST;
}

/* Whether nothing may leave now, for lack of room for a stream. */
nn_inline int nn_avail_holds(const struct nn_avail *m, const struct nn_ack *a, u64 cwnd)
{
	u64 window = cwnd / NN_ONE;

	return m->phase == NN_AVAIL_HOLD && a->inflight &&
	       a->inflight + nn_min(nn_avail_need(m, a, cwnd), window) > window;
}

/* Just before a packet leaves: chooses the gap after it. */
nn_inline void nn_avail_send(struct nn_avail *m, const struct nn_ack *a, u64 cwnd, int slow_start)
{
	u32 index, bottom, width;

	if (m->phase == NN_AVAIL_IDLE)
		nn_avail_begin(m, a, cwnd);
	index = m->unit ? (a->nxt - m->start[m->sending & 7]) / m->unit : 0;
	if (m->phase == NN_AVAIL_STREAM && index >= m->packets) {
		m->sending++;
		m->start[m->sending & 7] = a->nxt;
		m->phase = m->sending < m->streams ? NN_AVAIL_HOLD : NN_AVAIL_WAIT;
	}
	if (m->phase == NN_AVAIL_HOLD && !nn_avail_holds(m, a, cwnd)) {
		m->start[m->sending & 7] = a->nxt;
		m->phase = NN_AVAIL_STREAM;
		index = 0;
	}
	if (m->phase != NN_AVAIL_STREAM) {
		/* before the first range bursts are wanted, in recovery it is the host's business */
		u64 clock_ns = m->high && !m->recovering ? nn_avail_clock_ns(a, cwnd) : 0;

		m->gap_us = (u32)nn_min(clock_ns / (slow_start ? 2000 : 1250), NN_GAP_MAX);
		return;
	}
	bottom = nn_avail_bottom(m, m->sending);
	width = nn_avail_top(m, m->sending) - bottom;
	/* 25 + 6 bits */
	m->gap_us = (u32)((nn_avail_gap_ns(bottom + (u32)((u64)width * index / m->packets)) + 500) /
			  1000);
}

/* ---- acknowledgements ---- */

/* The mean RTT of a group of neighbours is complete. */
nn_inline void nn_avail_group(struct nn_avail *m)
{
	u32 mean;

	if (!m->members)
		return;
	mean = (u32)(m->sum_rtt / m->members);
	if (!m->groups) {
		m->first_mean = mean;
	} else {
		u32 step = mean > m->last_mean ? mean - m->last_mean : m->last_mean - mean;

		m->steps = (u32)nn_min((u64)m->steps + step, NN_RTT_MAX * 8ull);
		m->rises += mean > m->last_mean;
	}
	m->last_mean = mean;
	m->groups++;
	m->members = 0;
	m->sum_rtt = 0;
}

/* Takes the RTT of a packet of the stream that is being acknowledged. */
nn_inline void nn_avail_sample(struct nn_avail *m, const struct nn_ack *a)
{
	u32 rtt = nn_rtt(a);
	u32 start = m->start[m->reading & 7];
	u32 index, group;
	u64 t;
	s64 d;

	if (!rtt || !m->unit || !m->packets || (s32)(a->una - start) <= 0)
		return;
	index = (a->una - start) / m->unit - 1;
	if (index >= m->packets)
		return; /* it left before the next stream was held back */
	if (!m->n) {
		m->first_us = a->now_us - rtt;
		m->first_rtt = rtt;
		m->first = index;
		m->sum_t = m->sum_tt = m->sum_rtt = 0;
		m->sum_d = m->sum_td = 0;
		m->groups = m->members = m->rises = m->steps = 0;
	}
	group = index * NN_AVAIL_GROUPS / m->packets;
	if (group != m->group)
		nn_avail_group(m);
	m->group = group;
	m->members++;
	m->sum_rtt += rtt;
	/* no more than 32 samples: the sums have 5 bits more than their terms */
	if (m->n >= NN_AVAIL_PACKETS_MAX)
		return;
	t = nn_min(a->now_us - rtt - m->first_us, NN_AVAIL_TIME_MAX);
	d = (s64)rtt - (s64)m->first_rtt;
	m->sum_t += t;
	m->sum_tt += t * t;
	m->sum_d += d;
	m->sum_td += d * (s64)t; /* 28 + 20 bits */
	m->last_t = (u32)t;
	m->last = index;
	m->n++;
}

/* The slope of the RTTs over time by least squares, Q16: 6 + 53 bits above, 12 + 40 below. */
nn_inline s32 nn_avail_slope(const struct nn_avail *m)
{
	s64 above = (s64)m->n * m->sum_td - (s64)m->sum_t * m->sum_d;
	u64 below = (m->n * m->sum_tt - m->sum_t * m->sum_t) / NN_ONE;
	u64 size = below ? nn_min((u64)(above < 0 ? -above : above) / below, NN_AVAIL_SLOPE_MAX) : 0;

	return above < 0 ? -(s32)size : (s32)size;
}

/* T by PCT and PDT in percent, with Pathload's bounds. */
nn_inline s32 nn_avail_trend(const struct nn_avail *m, u64 pdt)
{
	u64 pct = m->groups > 1 ? 100ull * m->rises / (m->groups - 1) : 0;
	int yes = (pdt > 55) + (pct > 66);
	int no = (pdt < 45) + (pct < 54);

	return (yes && !no) - (no && !yes);
}

/* C, packets per second, below 2^20: 44 + 16 bits; 0: not known. */
nn_inline u64 nn_avail_capacity(const struct nn_avail *m)
{
	if (m->rise <= 0 || m->spread <= 0)
		return 0;
	return nn_min((u64)m->spread * NN_ONE / (u64)m->rise, 1u << 20);
}

/* Whether the queue was full when the stream ended, but for four packets: no RTT tells A then. */
nn_inline int nn_avail_full(const struct nn_avail *m)
{
	u64 capacity = nn_avail_capacity(m);
	u32 distance = m->last_mean > m->full_us ? m->last_mean - m->full_us :
						   m->full_us - m->last_mean;

	return m->full_us && distance * nn_max(capacity, m->high / NN_AVAIL_ONE) <= 4 * 1000000;
}

/* All of a stream is acknowledged. */
nn_inline void nn_avail_read(struct nn_avail *m)
{
	u32 i = m->reading & 3;
	u32 top = nn_avail_top(m, m->reading), bottom = nn_avail_bottom(m, m->reading);
	u64 rate = m->n ? nn_avail_rate(m->last - m->first, m->last_t) : 0;
	u32 up;

	nn_avail_group(m);
	up = m->last_mean > m->first_mean ? m->last_mean - m->first_mean : 0;
	m->rate[i] = 0;
	m->trend[i] = 0;
	if (m->groups >= 4 && !nn_avail_full(m) && rate >= nn_min(bottom, (top + bottom) / 8 * 3ull) &&
	    rate <= top + top / 4) {
		u64 pdt = m->steps ? 100ull * up / m->steps : 0;

		m->rate[i] = nn_avail_clamp(rate);
		m->trend[i] = nn_avail_trend(m, pdt);
		m->known |= 1u << i;
		if (m->mean ? m->rate[i] >= nn_max(m->mean, m->latest) : m->trend[i] > 0)
			m->known |= 0x10u << i;
		if (nn_min(m->first_mean, m->last_mean) > m->base_us + m->base_us / 4)
			m->known |= 0x110u << i;
		m->slope[i] = nn_avail_slope(m);
	}
	m->n = 0;
	m->groups = 0;
	m->reading++;
}

/* The product of sums over the square of a rate (packets per second), Q16: 42 + 16 bits. */
nn_inline s64 nn_avail_over(s64 product, u64 rate)
{
	u64 size = (u64)(product < 0 ? -product : product) * NN_ONE / (rate * rate | 1);

	return product < 0 ? -(s64)size : (s64)size;
}

/* Sums over streams; rates x in packets per second and slopes y, 17 and 21 bits. */
struct nn_avail_sums {
	s64 n, x, y, xx, xy;
};

/* Sums over the streams whose bits are set. No branches, which the verifier would count. */
nn_inline void nn_avail_sum(const struct nn_avail *m, u32 bits, struct nn_avail_sums *s)
{
	for (u32 i = 0; i < NN_AVAIL_STREAMS; i++) {
		s64 one = bits >> i & 1;
		s64 x = one * (s64)(m->rate[i] / NN_AVAIL_ONE);
		s64 y = one * m->slope[i];

		s->n += one;
		s->x += x;
		s->y += y;
		s->xx += x * x;
		s->xy += x * y;
	}
}

/*
 * The rate at which the line through the slopes of the faster half of the streams is zero (step 5);
 * 0: its inclination is not known yet. Where the queue grows that is 1/C, whatever A is at
 * present: it is taken from all measurements, of which older ones fade; in units of the fastest
 * rate, lest one of high rates outweigh all that follow.
 */
nn_inline u32 nn_avail_knee(struct nn_avail *m)
{
	struct nn_avail_sums line = { 0 }, level = { 0 };
	u64 unit = m->rate[0] / NN_AVAIL_ONE;
	u64 capacity;
	s64 zero;

	nn_avail_sum(m, m->known >> 4, &line);
	nn_avail_sum(m, m->known & ((1u << ((m->streams + 1) / 2 & 3)) - 1), &level);
	if (line.n > 1 && (m->trend[0] > 0 || m->known >> 8 == (m->known & 0xf))) {
		/* n^2 times variance and covariance: 38 and 42 bits */
		m->spread += nn_avail_over(line.n * line.xx - line.x * line.x, unit);
		m->rise += nn_avail_over(line.n * line.xy - line.x * line.y, unit);
		m->spread -= m->spread >> 6;
		m->rise -= m->rise >> 6;
	}
	capacity = nn_avail_capacity(m);
	if (!capacity || !level.n)
		return 0;
	/* n times mean x - mean y C: 23 + 20 bits */
	zero = level.x * (s64)NN_ONE - level.y * (s64)capacity;
	if (zero <= 0)
		return NN_AVAIL_RATE_MIN;
	return nn_avail_clamp((u64)zero / NN_ONE * NN_AVAIL_ONE / (u64)level.n);
}

/* Half of the confidence interval of the mean: max(1.96 S/sqrt(q), A/5). 50 + 9 bits. */
nn_inline u32 nn_avail_half(const struct nn_avail *m)
{
	u64 square = m->stored ? m->variance * 384 / 100 / m->stored : 0;

	return (u32)nn_max(nn_avail_sqrt(square), m->mean / 5);
}

/* Whether the square of a result's distance from the mean exceeds so many S^2 and (A/16)^2. */
nn_inline int nn_avail_strange(const struct nn_avail *m, u32 rate, u32 squares)
{
	u64 distance = rate > m->mean ? rate - m->mean : m->mean - rate;

	/* 50 + 4 bits */
	return distance * distance > squares * m->variance + (u64)m->mean * m->mean / 256;
}

/* Takes a result into the mean and S^2 of the last q. */
nn_inline void nn_avail_mean(struct nn_avail *m, u32 rate)
{
	u64 distance = rate > m->mean ? rate - m->mean : m->mean - rate;
	u64 q = nn_min(m->stored + 1, NN_AVAIL_STORED);

	if (!m->stored) {
		m->mean = rate;
	} else {
		/* 50 + 3 bits */
		m->variance = (m->variance + distance * distance / q) * (q - 1) / q;
		m->mean = rate > m->mean ? m->mean + (u32)(distance / q) :
					   m->mean - (u32)(distance / q);
	}
	m->stored = (u32)q;
}

/* Stores a result and sets the next range around the mean. */
nn_inline int nn_avail_store(struct nn_avail *m, u32 rate)
{
	u64 capacity = nn_avail_capacity(m) * NN_AVAIL_ONE;
	u64 half, high;

	if (m->stored > 1 && nn_avail_strange(m, rate, 2) && nn_avail_strange(m, m->latest, 2) &&
	    (rate > m->mean) == (m->latest > m->mean)) {
		nn_avail_discard(m);
		nn_avail_mean(m, m->latest);
	}
	if (m->stored < 4 || !nn_avail_strange(m, rate, 9))
		nn_avail_mean(m, rate);
	half = nn_avail_half(m);
	m->low = nn_avail_clamp(m->mean > half ? m->mean - half : 0);
	high = nn_max(m->mean + half, 2ull * m->mean);
	if (capacity)
		high = nn_min(high, nn_max(capacity, m->mean) * 6 / 5);
	m->high = nn_avail_clamp(high);
	m->latest = rate;
	m->results++;
	return 1;
}

/* A is outside the range: widens that side of it. */
nn_inline void nn_avail_widen(struct nn_avail *m, int above)
{
	u32 more = (m->high - m->low) / 2;

	if (above)
		m->high = nn_avail_clamp(nn_min((u64)m->high + more, 2ull * m->rate[0]));
	else
		m->low = nn_avail_clamp(m->low - nn_min(m->low, more));
}

/* sum_{i<a} T_i - sum_{i>a} T_i, for a from 0 (above the range) to k + 1 (below). */
nn_inline s32 nn_avail_score(const struct nn_avail *m, u32 a)
{
	s32 score = 0;

	for (u32 i = 1; i <= NN_AVAIL_STREAMS; i++)
		score += i < a ? m->trend[i - 1] : i > a ? -m->trend[i - 1] : 0;
	return score;
}

/* Whether enough streams are usable; fills in the rates of those that are not. */
nn_inline int nn_avail_usable(struct nn_avail *m)
{
	u32 usable = 0, ordered = 1;

	for (u32 i = 0; i < NN_AVAIL_STREAMS; i++) {
		if (i >= m->streams)
			continue;
		if (m->rate[i])
			usable++;
		else
			m->rate[i] = (nn_avail_top(m, i) + nn_avail_bottom(m, i)) / 2;
		ordered &= !i || m->rate[i] < m->rate[i - 1];
	}
	return ordered && 2 * usable > m->streams;
}

/* All streams are acknowledged: whether there is a result. */
nn_inline int nn_avail_evaluate(struct nn_avail *m)
{
	u32 k = m->streams, first = 0, last = 0, upper, lower, knee;
	u64 least, most;
	s32 best = -100;

	m->phase = NN_AVAIL_IDLE;
	m->fails++;
	if (!nn_avail_usable(m))
		return 0;
	/* of equal ones the middle: a boundary between two */
	for (u32 a = 0; a <= NN_AVAIL_STREAMS + 1; a++) {
		s32 score = nn_avail_score(m, a);

		if (a > k + 1 || score < best)
			continue;
		if (score > best)
			first = a;
		best = score;
		last = a;
	}
	knee = nn_avail_knee(m);
	if (!knee && nn_avail_capacity(m)) {
		m->fails--;
		return 0;
	}
	if (!knee) {
		if (!first && last > k)
			return 0; /* as many say so as say the opposite */
		if (!last || first > k) {
			nn_avail_widen(m, !last);
			m->fails = 0;
			return 0;
		}
		upper = first ? m->rate[(first - 1) & 3] : m->rate[0];
		lower = m->rate[((u32)nn_min(last, k) - 1) & 3];
		knee = (upper + lower) / 2;
	}
	m->fails = 0;
	/* by as much above the mean as below: else noise that is cut would raise the mean */
	least = m->stored ? m->mean / 4 : m->low / 2;
	most = m->stored ? 7ull * m->mean / 4 : m->high + m->high / 4;
	return nn_avail_store(m, nn_avail_clamp(nn_max(nn_min(knee, most), least)));
}

/* Before there is a range: times the ACKs of a round's packets, which left in bursts (step 1). */
nn_inline void nn_avail_train(struct nn_avail *m, const struct nn_ack *a)
{
	u64 rate;

	if (!nn_round_over(&m->start[0], a)) {
		m->n = (u32)nn_min(m->n + nn_acked(a), NN_ACKED_MAX);
		m->last_us = a->now_us;
		return;
	}
	rate = m->last_us > m->first_us ? nn_avail_rate(m->n, m->last_us - m->first_us) : 0;
	if (m->n >= NN_AVAIL_PACKETS_MIN && rate) {
		m->high = nn_avail_clamp(rate);
		m->low = nn_avail_clamp(rate / 2);
	}
	m->n = 0;
	m->first_us = a->now_us;
	m->last_us = a->now_us;
}

/* Takes an RTT, us; 0: none. The ACK of a lone packet may be a delayed one: it shows a short RTT only. */
nn_inline void nn_avail_bounds(struct nn_avail *m, u32 rtt, int lone)
{
	if (!rtt)
		return;
	m->base_us = m->base_us ? (u32)nn_min(m->base_us, rtt) : rtt;
	if (!lone)
		m->top_us = (u32)nn_max(m->top_us, rtt);
}

/* Takes an ACK; whether there is a new result. */
nn_inline int nn_avail_ack(struct nn_avail *m, const struct nn_ack *a)
{
	u32 acked = nn_acked(a), moved = a->una - m->una;
	int lone = acked < NN_BURST && (!a->inflight || m->several);
	int over;
	u32 end;

	if (acked && moved && !a->lost && !(a->flags & NN_ACK_HOLD))
		m->unit = (u32)nn_max(moved / acked, 1);
	m->una = a->una;
	nn_avail_bounds(m, nn_rtt(a), lone);
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

nn_inline void nn_avail_info(const struct nn_avail *m, struct nn_info *info)
{
	u32 half;

	info->avail_window = NN_AVAIL_WINDOW;
	if (!m->results)
		return;
	info->avail_pps = m->mean / NN_AVAIL_ONE;
	half = nn_avail_half(m);
	info->avail_low_pps = (m->mean - (u32)nn_min(half, m->mean)) / NN_AVAIL_ONE;
	info->avail_high_pps = (m->mean + half) / NN_AVAIL_ONE;
	info->avail_results = m->results;
}

#endif
