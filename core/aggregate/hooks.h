/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The hooks as hosts call them (core/flow.h, which includes this) of an algorithm whose windows
 * are divided by aggregate/any.h: a flow in no group calls the algorithm, one in a group charges
 * what it is told to the windows of the group.
 */
#ifndef NN_HOOKS_H
#define NN_HOOKS_H

#include "any.h"

/* The state of a member's window. */
nn_inline struct NN_CAT(nn_, NN_ALG, ) *nn_flow_window(struct nn_member *m)
{
	return (struct NN_CAT(nn_, NN_ALG, ) *)m->state;
}

/* A member's answer. */
nn_inline void nn_flow_answer(NN_STATE *s, const NN_CFG *c, struct nn_group *g,
			      const struct nn_ack *a, struct nn_ctl *ctl)
{
	struct nn_member *m = nn_group_member(g, &s->any.place);
	u64 share;

	if (m->weight != c->share)
		nn_group_weigh(g, m, c->share);
	share = nn_any_mend(g, m, nn_group_divide(g, m, g->sum));
	nn_group_answer(m, &s->any.place, share, NN_ANY_PACE, a, ctl);
	ctl->flags |= m->flags & NN_CTL_YIELDING;
}

/* Takes a place with a window that starts as the flow would, unless the group is full. */
nn_inline void nn_flow_enter(NN_STATE *s, const NN_CFG *c, struct nn_group *g,
			     const struct nn_ack *a, struct nn_ctl *ctl)
{
	struct nn_member *m;
	struct nn_ack told;

	nn_group_join(g, &s->any.place, c->share, nn_clamp_cwnd(ctl->cwnd_q16, NN_ONE));
	if (!s->any.place.at)
		return;
	m = nn_group_member(g, &s->any.place);
	m->virtual_time = g->virtual_time;
	m->base_us = 0;
	s->any.apart = g->apart;
	if (g->members == 1) {
		g->base_us = 0;
		g->seen = a->now_us >> NN_ANY_ROUND_SHIFT;
	}
	__builtin_memset(m->state, 0, sizeof(m->state));
	told = nn_any_told(g, m, m, a, ctl);
	NN_OP(init)(nn_flow_window(m), &c->alg, (struct nn_group *)0, &told, ctl);
	nn_any_answered(g, s->any.place.at - 1, ctl);
	s->any.place.end = a->nxt;
	nn_flow_answer(s, c, g, a, ctl);
}

/*
 * Tells the member's own state of its own packets. A window that does not hold it back has nothing
 * to grow for. A function of its own to the kernel's verifier, which would walk the rest of
 * nn_flow_ack() for each way through this; so it is called without the lock.
 */
nn_outline int nn_flow_own_ack(NN_STATE *s, const NN_CFG *c, const struct nn_ack *a)
{
	struct nn_ctl own = { 0 };
	struct nn_ack told;

	if (!s || !c || !a)
		return 0;
	own.cwnd_q16 = s->any.own;
	told = *a;
	told.flags |= s->any.loose ? NN_ACK_APP_LIMITED : 0;
	NN_OP(ack)(&s->alg, &c->alg, (struct nn_group *)0, &told, &own);
	s->any.own = own.cwnd_q16;
	return 0;
}

/* The same of an event. */
nn_outline int nn_flow_own_event(NN_STATE *s, const NN_CFG *c, u32 event, const struct nn_ack *a,
				 u64 cwnd_q16)
{
	struct nn_ctl own = { 0 };

	if (!s || !c || !a)
		return 0;
	own.cwnd_q16 = cwnd_q16;
	NN_OP(event)(&s->alg, &c->alg, (struct nn_group *)0, (enum nn_event)event, a, &own);
	s->any.own = own.cwnd_q16;
	return 0;
}

/* Charges an ACK of member `from` to a window. */
nn_inline void nn_flow_charge(const NN_CFG *c, struct nn_group *g, const struct nn_member *from,
			      u32 index, const struct nn_ack *a, const struct nn_ctl *ctl)
{
	struct nn_member *m = nn_group_at(g, index);
	struct nn_ack told = nn_any_told(g, m, from, a, ctl);
	struct nn_ctl own = { .cwnd_q16 = m->window.cwnd };

	NN_OP(ack)(nn_flow_window(m), &c->alg, (struct nn_group *)0, &told, &own);
	nn_any_answered(g, index, &own);
}

/* Charges an event of member `from` to a window. */
nn_inline void nn_flow_tell(const NN_CFG *c, struct nn_group *g, const struct nn_member *from,
			    u32 index, enum nn_event event, const struct nn_ack *a,
			    const struct nn_ctl *ctl)
{
	struct nn_member *m = nn_group_at(g, index);
	struct nn_ack told = nn_any_told(g, m, from, a, ctl);
	struct nn_ctl own = { .cwnd_q16 = m->window.cwnd };

	NN_OP(event)(nn_flow_window(m), &c->alg, (struct nn_group *)0, event, &told, &own);
	nn_any_answered(g, index, &own);
}

/* An event of a member. */
nn_inline void nn_flow_react(NN_STATE *s, const NN_CFG *c, struct nn_group *g, enum nn_event event,
			     const struct nn_ack *a, struct nn_ctl *ctl)
{
	struct nn_member *m = nn_group_member(g, &s->any.place);
	int undo = event == NN_UNDO;
	u32 index = undo ? s->any.charge.cut - 1 : nn_windows_charged(g, &s->any.charge, NN_ANY_RUN);
	int tell = event != NN_IDLE && nn_group_at(g, index)->weight && (!undo || s->any.charge.cut);

	if (event == NN_LOSS)
		tell = nn_charge_told(&s->any.charge, a);
	if (event == NN_LOSS || event == NN_ECN)
		tell = tell && nn_any_loses(&s->any, g, index, a);
	if (tell)
		nn_flow_tell(c, g, m, index, event, a, ctl);
	if (undo)
		s->any.charge.cut = 0;
	if (event == NN_TIMEOUT || undo || event == NN_IDLE)
		nn_group_restart(g, m, event == NN_TIMEOUT ? NN_ONE : undo ? NN_CWND_MAX :
					nn_clamp_cwnd(ctl->cwnd_q16, NN_ONE));
	nn_flow_answer(s, c, g, a, ctl);
}

nn_inline void nn_flow_init(NN_STATE *s, const NN_CFG *c, struct nn_group *g,
			    const struct nn_ack *a, struct nn_ctl *ctl)
{
	u64 start = ctl->cwnd_q16;

	if (g) {
		nn_lock(g);
		nn_flow_enter(s, c, g, a, ctl);
		nn_unlock(g);
	}
	if (!s->any.place.at || s->any.apart) {
		struct nn_ctl own = { .cwnd_q16 = start };

		NN_OP(init)(&s->alg, &c->alg, (struct nn_group *)0, a, &own);
		s->any.own = own.cwnd_q16;
		if (!s->any.place.at)
			*ctl = own;
	}
}

nn_inline void nn_flow_ack(NN_STATE *s, const NN_CFG *c, struct nn_group *g,
			   const struct nn_ack *a, struct nn_ctl *ctl)
{
	struct nn_member *m;
	u32 index;

	if (!g || !s->any.place.at) {
		NN_OP(ack)(&s->alg, &c->alg, (struct nn_group *)0, a, ctl);
		return;
	}
	if (s->any.apart)
		nn_flow_own_ack(s, c, a);
	nn_lock(g);
	m = nn_group_member(g, &s->any.place);
	nn_group_use(g, m, a, g->sum, nn_any_most(&s->any, g, m));
	nn_any_got(g, m, nn_acked(a));
	nn_any_sample(g, m, a);
	index = nn_windows_charged(g, &s->any.charge, NN_ANY_RUN);
	/* nothing grows with an ACK that counts a loss */
	if (nn_charge_counted(&s->any.charge, a)) {
		if (nn_any_loses(&s->any, g, index, a))
			nn_flow_tell(c, g, m, index, NN_LOSS, a, ctl);
	} else if (nn_acked(a)) {
		nn_flow_charge(c, g, m, index, a, ctl);
	}
	s->any.charge.left -= (u32)nn_min(s->any.charge.left, nn_acked(a));
	nn_flow_answer(s, c, g, a, ctl);
	nn_unlock(g);
}

nn_inline void nn_flow_event(NN_STATE *s, const NN_CFG *c, struct nn_group *g, enum nn_event event,
			     const struct nn_ack *a, struct nn_ctl *ctl)
{
	if (!g || !s->any.place.at) {
		NN_OP(event)(&s->alg, &c->alg, (struct nn_group *)0, event, a, ctl);
		return;
	}
	if (s->any.apart)
		nn_flow_own_event(s, c, event, a, ctl->cwnd_q16);
	nn_lock(g);
	if (event == NN_CLOSE) {
		nn_windows_leave(g, s->any.place.at - 1);
		nn_group_leave(g, &s->any.place);
	} else {
		nn_flow_react(s, c, g, event, a, ctl);
	}
	nn_unlock(g);
}

/* A share or a window changed meanwhile counts from the next packet on. */
nn_inline void nn_flow_send(NN_STATE *s, const NN_CFG *c, struct nn_group *g,
			    const struct nn_ack *a, struct nn_ctl *ctl)
{
	if (!g || !s->any.place.at) {
		NN_OP(send)(&s->alg, &c->alg, (struct nn_group *)0, a, ctl);
		return;
	}
	nn_lock(g);
	nn_flow_answer(s, c, g, a, ctl);
	nn_unlock(g);
}

#endif
