/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What of the RTTs of intervals is as it was before (Proteus, SIGCOMM 2020): the trend of their means
 * over the last six, and their standard deviation. Each has a mean and a mean deviation, with TCP's
 * gain of 1/8; what is beyond so many mean deviations does not enter them.
 *
 * Range: 35 times a slope of means below 2^27 us is 31 bits.
 */
#ifndef NN_MEASURE_TREND_H
#define NN_MEASURE_TREND_H

#include "line.h"

#define NN_TREND_MEANS 6u

struct nn_trend {
	s64 slope35, slope35_dev; /* us for each interval, times 35 */
	u32 means[NN_TREND_MEANS]; /* the last one first, us */
	u32 known;		/* how many there are */
	u32 sigma16, mean16, dev16; /* of the last interval, their mean, its deviation: us/16 */
};

/* A new mean. Whether the trend is beyond those before by `gain` (Q16) mean deviations; 32 + 23 bits. */
nn_inline int nn_trend_mean(struct nn_trend *s, u32 mean_us, u32 gain)
{
	u32 *m = s->means;
	s64 slope, off;

	for (u32 i = NN_TREND_MEANS - 1; i > 0; i--)
		m[i] = m[i - 1];
	m[0] = mean_us;
	if (s->known < NN_TREND_MEANS && ++s->known < NN_TREND_MEANS)
		return 0;
	/* least squares of six: the sum of (2i - 5) m over 35 */
	slope = 5 * ((s64)m[0] - m[5]) + 3 * ((s64)m[1] - m[4]) + ((s64)m[2] - m[3]);
	if (!s->slope35_dev) {
		s->slope35_dev = (s64)nn_abs(slope);
		return slope > 0;
	}
	off = (s64)nn_abs(slope - s->slope35);
	if ((u64)off > (u64)s->slope35_dev * gain >> 16)
		return 1;
	s->slope35_dev += (off - s->slope35_dev) >> 3;
	s->slope35 += (slope - s->slope35) >> 3;
	return 0;
}

/* A new variance. Whether sigma is beyond those before. 38 + 8 bits, then 23 + 23. */
nn_inline int nn_trend_deviation(struct nn_trend *s, u64 var, u32 gain)
{
	s64 off;

	s->sigma16 = (u32)nn_root(var << 8);
	off = (s64)s->sigma16 - s->mean16;
	if (!s->mean16) {
		s->mean16 = s->sigma16;
		s->dev16 = s->sigma16 / 2;
		return 0;
	}
	if (off > (s64)((u64)s->dev16 * gain >> 16))
		return 1;
	s->dev16 = (u32)(s->dev16 + (((s64)nn_abs(off) - s->dev16) >> 3));
	s->mean16 = (u32)(s->mean16 + (off >> 3));
	return 0;
}

#endif
