/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * From the streams of a measurement to the available bandwidth and the next search range
 * (avail.h, steps 1 and 4 to 6).
 */
#ifndef NN_MEASURE_AVAIL_ESTIMATE_H
#define NN_MEASURE_AVAIL_ESTIMATE_H

#include "avail_stream.h"

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

#endif
