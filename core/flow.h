/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Includes the algorithm that a template is compiled for, NN_ALG (a name of
 * algorithms.def), checks it against the limits of interface.h, and gives its hooks as
 * hosts call them: nn_flow_<hook>(). In a group they are one of three kinds:
 *
 *	the header includes aggregate/	the algorithm sees the group, and divides it
 *	the header defines NN_ALONE	no groups: the flow is on its own
 *	else				its windows are divided by aggregate/any.h
 */
#ifndef NETNICE_FLOW_H
#define NETNICE_FLOW_H

#ifndef NN_ALG
#error "compile with -DNN_ALG=<name of algorithms.def>"
#endif

#include "netnice.h"

#ifdef NN_GROUP_H
#error "include flow.h before aggregate/: it looks whether the algorithm does"
#endif

#define NN_STR_(x) #x
#define NN_STR(x) NN_STR_(x)
#define NN_HEADER_(x) NN_STR(alg/x.h)
#include NN_HEADER_(NN_ALG)

/* NN_GROUPED: flows share a struct nn_group, if their host puts them into one. */
#if defined(NN_ALONE)
#define NN_GROUPED 0
#define NN_ANY 0
#elif defined(NN_GROUP_H)
#define NN_GROUPED 1
#define NN_ANY 0
#else
#define NN_GROUPED 1
#define NN_ANY 1
#include "aggregate/any.h"
#endif

/* Keep others out of a group: for a host to define in which hooks can meet, with NN_LOCKS. */
nn_inline void nn_lock(struct nn_group *g);
nn_inline void nn_unlock(struct nn_group *g);
#ifndef NN_LOCKS
nn_inline void nn_lock(struct nn_group *g)
{
}

nn_inline void nn_unlock(struct nn_group *g)
{
}
#endif

/* What the host compiles as a function by itself, if it can. */
#ifndef nn_outline
#define nn_outline nn_inline
#endif

#define NN_OP(op) NN_CAT(nn_, NN_ALG, _##op)

/* What a host keeps of a flow, and its parameters: P is as in params.h. */
#if NN_ANY
#define NN_PARAMS(P) NN_OP(params)(P) nn_group_params(P)

struct nn_flow_state {
	struct NN_CAT(nn_, NN_ALG, ) alg;
	struct nn_any any;
};

struct nn_flow_cfg {
	struct NN_OP(cfg) alg;
	nn_group_params(NN_FIELD)
};

#define NN_STATE struct nn_flow_state
#define NN_CFG struct nn_flow_cfg

#define NN_SHOWN(S, s, c) NN_OP(shown)(S, &(s)->alg, &(c)->alg)
#define NN_PLACE(s) ((s)->any.place.at)
#else
#define NN_PARAMS(P) NN_OP(params)(P)
#define NN_STATE struct NN_CAT(nn_, NN_ALG, )
#define NN_CFG struct NN_OP(cfg)
#define NN_SHOWN(S, s, c) NN_OP(shown)(S, s, c)
#if NN_GROUPED
#define NN_PLACE(s) ((s)->place.at)
#else
#define NN_PLACE(s) 0u
#endif
#endif

#define NN_COUNT(name, def, least, most, unit, source, help) +1
enum { NN_N_PARAMS = 0 NN_PARAMS(NN_COUNT) };

#define NN_COUNT_SHOWN(name, unit, help, value) +1
enum { NN_N_SHOWN = 0 NN_SHOWN(NN_COUNT_SHOWN, s, c) };

_Static_assert(sizeof(NN_STATE) <= NN_STATE_MAX, "state larger than NN_STATE_MAX");
#if NN_ANY
_Static_assert(sizeof(((NN_STATE *)0)->alg) <= NN_GROUP_STATE,
	       "state larger than NN_GROUP_STATE: more there, or define NN_ALONE");
#endif
_Static_assert(NN_N_PARAMS <= NN_PARAMS_MAX, "more parameters than NN_PARAMS_MAX");
_Static_assert(sizeof(NN_CFG) == NN_N_PARAMS * sizeof(u32),
	       "the configuration must hold exactly the parameters, a u32 each");
_Static_assert(NN_N_SHOWN <= NN_SHOWN_MAX, "more values than NN_SHOWN_MAX");

#define NN_SHOW(name, unit, help, value) *to++ = NN_VALUE(value);

/* Writes what the flow shows, NN_N_SHOWN values. */
nn_inline void nn_flow_show(const NN_STATE *s, const NN_CFG *c, struct nn_value *to)
{
	NN_SHOWN(NN_SHOW, s, c)
}

/* The member of its group that the flow is, plus 1; 0: it is in none. */
nn_inline u32 nn_flow_place(const NN_STATE *s)
{
	return NN_PLACE(s);
}

#if NN_ANY
#include "aggregate/hooks.h"
#else

/* Calls a hook of the algorithm with the group, if there is one, while nobody else has it. */
#define NN_FLOW_CALL(g, call)                                                                      \
	do {                                                                                       \
		if (NN_GROUPED && (g)) {                                                           \
			nn_lock(g);                                                                \
			call;                                                                      \
			nn_unlock(g);                                                              \
		} else {                                                                           \
			(g) = (struct nn_group *)0;                                                \
			call;                                                                      \
		}                                                                                  \
	} while (0)

nn_inline void nn_flow_init(NN_STATE *s, const NN_CFG *c, struct nn_group *g,
			    const struct nn_ack *a, struct nn_ctl *ctl)
{
	NN_FLOW_CALL(g, NN_OP(init)(s, c, g, a, ctl));
}

nn_inline void nn_flow_ack(NN_STATE *s, const NN_CFG *c, struct nn_group *g,
			   const struct nn_ack *a, struct nn_ctl *ctl)
{
	NN_FLOW_CALL(g, NN_OP(ack)(s, c, g, a, ctl));
}

nn_inline void nn_flow_event(NN_STATE *s, const NN_CFG *c, struct nn_group *g, enum nn_event event,
			     const struct nn_ack *a, struct nn_ctl *ctl)
{
	NN_FLOW_CALL(g, NN_OP(event)(s, c, g, event, a, ctl));
}

nn_inline void nn_flow_send(NN_STATE *s, const NN_CFG *c, struct nn_group *g,
			    const struct nn_ack *a, struct nn_ctl *ctl)
{
	NN_FLOW_CALL(g, NN_OP(send)(s, c, g, a, ctl));
}

#endif /* NN_ANY */

#endif
