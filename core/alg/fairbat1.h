/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * FAIRBAT-I: TCP's throughput where there is plenty, less where the path is crowded.
 *
 * Utilities log y, and a cost gamma delta^2 of the delay impact delta = 1/y0 on
 * short flows. In steady state (3):
 *
 *	R = y0/y = 1 + gamma/y0
 *
 * See fairbat.h for all else.
 */
#ifndef NN_ALG_FAIRBAT1_H
#define NN_ALG_FAIRBAT1_H

#include "../netnice.h"

#define nn_fairbat1_summary \
	"FAIRBAT-I: a share of TCP's throughput that falls as the path gets crowded"

#define nn_fairbat1_traits (NN_SILENT | NN_TIMED)

#define nn_fairbat1_gamma(P)                                                                       \
	P(gamma, 1.0, 0.0, 1000.0, "Mbit/s", "FAIRBAT (3)",                                        \
	  "price of delay: at a TCP throughput of gamma the flow takes half of TCP's")

#define nn_fairbat1_params(P) nn_fairbat1_gamma(P) nn_fairbat_params(P)
#define nn_fairbat1_shown(S, s, c) nn_fairbat_shown(S, &(s)->fairbat)

/* R, Q16. 26 + 16 bits; y0 is not zero once it was sampled. */
nn_inline u64 nn_fairbat_ratio(u64 y0, u32 gamma)
{
	return NN_ONE + (y0 ? (u64)gamma * NN_ONE / y0 : 0);
}

#define NN_FAIRBAT fairbat1
#include "fairbat.h"

#endif
