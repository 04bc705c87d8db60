/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The streams of the measurement of the available bandwidth (avail.h): its state; when a stream
 * leaves and at which spacing; and what the ACKs of its packets say of it.
 */
#ifndef NN_MEASURE_AVAIL_STREAM_H
#define NN_MEASURE_AVAIL_STREAM_H

#include "avail_fit.h"
#include "bounds.h"

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
	u32 pairs;		/* the receiver waits for pairs (rtt.h) */
	u32 recover;		/* end of what was sent before the last loss */
	u32 recovering;		/* that is not acknowledged yet */
	u32 full_us;		/* RTT of a full queue, known at the last loss; 0: no loss yet */
	struct nn_bounds bounds; /* of RTTs */

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
		if (nn_min(m->first_mean, m->last_mean) > m->bounds.base_us + m->bounds.base_us / 4)
			m->known |= 0x110u << i;
		m->slope[i] = nn_avail_slope(m->n, m->sum_t, m->sum_tt, m->sum_d, m->sum_td);
	}
	m->n = 0;
	m->groups = 0;
	m->reading++;
}

#endif
