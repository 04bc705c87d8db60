/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * A list of what a flow shows of itself names each value once:
 *
 *	#define nn_vegas_shown(S, s, c) \
 *		nn_show_base_rtt(S, (s)->base_us) \
 *		S(queue, packets, "help ...", (s)->queue)
 *
 * with name, unit, help text, and the value from the state s and the configuration c. It makes
 * the columns and the legend of `netnice status`, its JSON, and the lines of a simulator's trace.
 */
#ifndef NN_SHOWN_H
#define NN_SHOWN_H

#include "arith.h"

#define NN_SHOWN_MAX 16		/* values of one algorithm */

/* A unit: how the number of a value is kept. */
enum nn_unit {
	NN_UNIT_us,		/* microseconds; 0: not known */
	NN_UNIT_packets,	/* Q16 */
	NN_UNIT_share,		/* 1.0 is all, Q16; 0: not known */
	NN_UNIT_mbit,		/* Mbit/s of payload, Q16; 0: not known */
	NN_UNIT_pps,		/* full packets per second, measured: with interval and results */
};

/* A value, in its unit. */
struct nn_value {
	u64 value;
	u32 low, high;	/* its confidence interval, if it is measured */
	u32 results;	/* measurements that had a result, since the start; 0: not known */
};

nn_inline struct nn_value nn_value_number(u64 value)
{
	struct nn_value v = { .value = value };

	return v;
}

nn_inline struct nn_value nn_value_measured(struct nn_value v)
{
	return v;
}

/* The value of a line: a number, or a struct nn_value where it was measured. */
#define NN_VALUE(value) \
	_Generic((value), struct nn_value: nn_value_measured, default: nn_value_number)(value)

/* Lines of several algorithms. */
#define nn_show_base_rtt(S, value) \
	S(base_rtt, us, "RTT of the empty path, as the algorithm sees it", value)
#define nn_show_max_rtt(S, value) \
	S(max_rtt, us, "RTT with a full queue, as the algorithm sees it", value)

#endif
