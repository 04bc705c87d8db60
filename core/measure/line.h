/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The line of least squares through the RTTs of an interval, and their deviation:
 *
 *	RTT |          . /
 *	    |     .  /  .       rise: of the line, over the interval
 *	    |   . /  .          off: what RTTs are off it, squared, in the mean
 *	    |  / .              var: what they are off their mean
 *	    +--------------> t: when their packets left, in units of the interval
 *
 * Range: t < 2^9, RTTs within 2^19 us of the first, 2^12 of them.
 */
#ifndef NN_MEASURE_LINE_H
#define NN_MEASURE_LINE_H

#include "../netnice.h"

#define NN_LINE_UNITS 256u		/* of the interval; t may be twice that */
#define NN_LINE_SAMPLES 4096u
#define NN_LINE_SPREAD_US (1 << 19)

/* d is an RTT less the first one. */
struct nn_line {
	s64 t, tt, d, dd, td;
	u32 samples, first_us;
};

struct nn_line_fit {
	u64 rise_us, off, var;	/* us and us^2 */
	u32 falls, mean_us;
};

/* A packet that left `at_us` after the start of an interval of `lasts_us`. */
nn_inline void nn_line_add(struct nn_line *l, u64 at_us, u32 lasts_us, u32 rtt_us)
{
	s64 t, d;

	if (at_us >= 2 * (u64)lasts_us || l->samples >= NN_LINE_SAMPLES)
		return;
	if (!l->samples)
		l->first_us = rtt_us;
	t = (s64)(at_us * NN_LINE_UNITS / nn_max(lasts_us, 1));
	d = (s64)rtt_us - l->first_us;
	if (nn_abs(d) > NN_LINE_SPREAD_US)
		d = d < 0 ? -NN_LINE_SPREAD_US : NN_LINE_SPREAD_US;
	l->samples++;
	l->t += t;
	l->tt += t * t;
	l->d += d;
	l->dd += d * d;
	l->td += t * d;
}

/* 12 + 50, 12 + 30 and 12 + 40 bits; over n^2 38, 18 and 28. cov^2 <= var time. */
nn_inline struct nn_line_fit nn_line_fit(const struct nn_line *l)
{
	u64 n = nn_max(l->samples, 1), nn = n * n;
	u64 step = nn_abs(l->d) / n; /* 19 bits */
	u64 var = (n * (u64)l->dd - (u64)(l->d * l->d)) / nn;
	u64 time = nn_max((n * (u64)l->tt - (u64)(l->t * l->t)) / nn, 1);
	s64 both = (s64)n * l->td - l->t * l->d;
	u64 cov = nn_abs(both) / nn;

	return (struct nn_line_fit){
		.rise_us = nn_min(cov * NN_LINE_UNITS / time, 2 * NN_LINE_SPREAD_US),
		.off = var - nn_min(cov * cov / time, var),
		.var = var,
		.falls = both < 0,
		.mean_us = (u32)(l->d < 0 ? nn_max(l->first_us, step) - step : l->first_us + step),
	};
}

#endif
