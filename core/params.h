/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * A parameter list names each parameter once:
 *
 *	#define nn_vegas_params(P) \
 *		P(alpha, 1.0, 0.0, 1000.0, "packets", "Nice 2.1", "help ...")
 *
 * with default, least and greatest value, unit, source and help text. It makes
 * the fields of the configuration (here), its defaults, and the help, ranges
 * and --set of the tools. A parameter with the unit "this|that" is a choice: the
 * names stand for 0, 1, ..., and --set takes them.
 */
#ifndef NN_PARAMS_H
#define NN_PARAMS_H

#include "arith.h"

#define NN_PARAMS_MAX 16	/* parameters of one algorithm */

#define NN_FIELD(name, def, least, most, unit, source, help) u32 name;
#define NN_DEFAULT(name, def, least, most, unit, source, help) NN_Q16(def),

#define NN_CAT_(a, b, c) a##b##c
#define NN_CAT(a, b, c) NN_CAT_(a, b, c)

#endif
