/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Least squares in integers, for the measurement of the available bandwidth (avail.h).
 */
#ifndef NN_MEASURE_AVAIL_FIT_H
#define NN_MEASURE_AVAIL_FIT_H

#include "../netnice.h"

#define NN_AVAIL_SLOPE_MAX (1u << 20)		/* 16, Q16 */

/* The square root, by Newton's method from above: no branches, which the verifier would count. */
nn_inline u32 nn_avail_sqrt(u64 x)
{
	u64 root = 1ull << 32;

	for (int i = 0; i < 36; i++)
		root = (root + x / (root | 1)) / 2;
	return (u32)nn_min(root, ~0u);
}

/*
 * The slope of y over x by least squares, Q16, from the sums of n points: 6 + 53 bits above, 12 + 40
 * below.
 */
nn_inline s32 nn_avail_slope(u32 n, u64 sum_x, u64 sum_xx, s64 sum_y, s64 sum_xy)
{
	s64 above = (s64)n * sum_xy - (s64)sum_x * sum_y;
	u64 below = (n * sum_xx - sum_x * sum_x) / NN_ONE;
	u64 size = below ? nn_min((u64)(above < 0 ? -above : above) / below, NN_AVAIL_SLOPE_MAX) : 0;

	return above < 0 ? -(s32)size : (s32)size;
}

/* The product of sums over the square of a rate (packets per second), Q16: 42 + 16 bits. */
nn_inline s64 nn_avail_over(s64 product, u64 rate)
{
	u64 size = (u64)(product < 0 ? -product : product) * NN_ONE / (rate * rate | 1);

	return product < 0 ? -(s64)size : (s64)size;
}

#endif
