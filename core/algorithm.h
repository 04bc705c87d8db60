/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Includes the algorithm that a template is compiled for, NN_ALG (a name of
 * algorithms.def), and checks it against the limits of netnice.h.
 */
#ifndef NN_ALG
#error "compile with -DNN_ALG=<name of algorithms.def>"
#endif

#include "netnice.h"

#ifdef NN_GROUP_H
#error "include algorithm.h before aggregate/: it looks whether the algorithm does"
#endif

#define NN_STR_(x) #x
#define NN_STR(x) NN_STR_(x)
#define NN_HEADER_(x) NN_STR(alg/x.h)
#include NN_HEADER_(NN_ALG)

/* 1: the algorithm's flows share a struct nn_group, if their host puts them into one. */
#ifdef NN_GROUP_H
#define NN_GROUPED 1
#else
#define NN_GROUPED 0
#endif

#define NN_OP(op) NN_CAT(nn_, NN_ALG, _##op)
#define NN_STATE struct NN_CAT(nn_, NN_ALG, )
#define NN_CFG struct NN_OP(cfg)

#define NN_COUNT(name, def, least, most, unit, source, help) +1
enum { NN_N_PARAMS = 0 NN_OP(params)(NN_COUNT) };

_Static_assert(sizeof(NN_STATE) <= NN_STATE_MAX, "state larger than NN_STATE_MAX");
_Static_assert(NN_N_PARAMS <= NN_PARAMS_MAX, "more parameters than NN_PARAMS_MAX");
_Static_assert(sizeof(NN_CFG) == NN_N_PARAMS * sizeof(u32),
	       "the configuration must hold exactly the parameters, a u32 each");
