/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * FAIRBAT-II: TCP's throughput where it is scarce, no more than is needed where there
 * is plenty.
 *
 * Utilities log y, and a constant cost gamma of the delay impact on short flows. In
 * steady state (4):
 *
 *	R = y0/y = 1 + gamma y0
 *
 * so that y < 1/gamma however great y0 is. See fairbat.h for all else.
 */
#ifndef NN_ALG_FAIRBAT2_H
#define NN_ALG_FAIRBAT2_H

#include "../netnice.h"

#define nn_fairbat2_summary \
	"FAIRBAT-II: TCP's throughput where it is scarce, at most 1/gamma where there is plenty"

#define nn_fairbat2_traits (NN_SILENT | NN_TIMED)

#define nn_fairbat2_gamma(P)                                                                       \
	P(gamma, 1.0, 0.0, 1000.0, "1/(Mbit/s)", "FAIRBAT (4)",                                    \
	  "1/gamma is the most that the flow takes, and half of it at a TCP throughput of that")

#define nn_fairbat2_params(P) nn_fairbat2_gamma(P) nn_fairbat_params(P)
#define nn_fairbat2_shown(S, s, c) nn_fairbat_shown(S, &(s)->fairbat)

/* R, Q16. 26 + 36 bits. */
nn_inline u64 nn_fairbat_ratio(u64 y0, u32 gamma)
{
	return NN_ONE + gamma * y0 / NN_ONE;
}

#define NN_FAIRBAT fairbat2
#include "fairbat.h"

#endif
