/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Drives the algorithm of the template by the steps of a golden trace (trace.h), with every
 * state and answer hashed on the way.
 */
#ifndef NN_REPLAY_H
#define NN_REPLAY_H

#include "flow.h"
#include "aggregate/group.h"
#include "trace.h"

#define NN_HASH_START 0xcbf29ce484222325

struct nn_group_trace {
	u64 hash;
	struct nn_trace flow[NN_TRACE_FLOWS];
	struct nn_group group;
};

nn_inline u64 nn_hash(u64 hash, u64 word)
{
	return (hash ^ word) * 0x100000001b3;
}

/* A flow starts with the host's usual initial window; its state is zeroed. */
nn_inline void nn_trace_start(struct nn_trace *t, const u32 *cfg, struct nn_group *g,
			      const struct nn_step *step)
{
	t->ctl = (struct nn_ctl){ .cwnd_q16 = 10 * NN_ONE };
	nn_flow_init((NN_STATE *)t->state, (const NN_CFG *)cfg, g, &step->ack, &t->ctl);
}

nn_inline void nn_trace_give(struct nn_trace *t, const u32 *cfg, struct nn_group *g,
			     const struct nn_step *step)
{
	NN_STATE *s = (NN_STATE *)t->state;
	const NN_CFG *c = (const NN_CFG *)cfg;

	if (step->event < NN_EVENTS) {
		nn_flow_event(s, c, g, (enum nn_event)step->event, &step->ack, &t->ctl);
	} else {
		nn_flow_ack(s, c, g, &step->ack, &t->ctl);
		nn_flow_send(s, c, g, &step->ack, &t->ctl);
	}
}

nn_inline void nn_trace_hash(struct nn_trace *t)
{
	t->hash = nn_hash(t->hash, t->ctl.cwnd_q16);
	t->hash = nn_hash(t->hash, t->ctl.gap_us);
	t->hash = nn_hash(t->hash, (u64)t->ctl.burst << 32 | t->ctl.flags);
	for (u32 w = 0; w < sizeof(NN_STATE) / 8; w++)
		t->hash = nn_hash(t->hash, t->state[w]);
}

/* A flow on its own. */
nn_inline void nn_trace_step(struct nn_trace *t, const u32 *cfg, u32 i, const struct nn_step *step)
{
	if (!i) {
		t->hash = NN_HASH_START;
		nn_trace_start(t, cfg, NULL, step);
	} else {
		nn_trace_give(t, cfg, NULL, step);
	}
	nn_trace_hash(t);
}

/*
 * NN_TRACE_FLOWS flows of a group, the steps dealt out in turn, the parameters in `cfg` and those
 * in `other` too. Each flow starts with its first step, and now and then one ends and starts anew.
 * The hash is one chain over all of them.
 */
nn_inline void nn_trace_group_step(struct nn_group_trace *t, const u32 *cfg, const u32 *other,
				   u32 i, const struct nn_step *step)
{
	u32 turn = i % NN_TRACE_FLOWS;
	struct nn_trace *f = &t->flow[turn];
	struct nn_group *g = &t->group;

	if (turn & 1)
		cfg = other;
	f->hash = i ? t->hash : NN_HASH_START;
	if (i < NN_TRACE_FLOWS) {
		nn_trace_start(f, cfg, g, step);
	} else if (i / NN_TRACE_FLOWS % NN_TRACE_LIFE == turn * 7) {
		nn_flow_event((NN_STATE *)f->state, (const NN_CFG *)cfg, g, NN_CLOSE, &step->ack,
			     &f->ctl);
		__builtin_memset(f->state, 0, sizeof(f->state));
		nn_trace_start(f, cfg, g, step);
	} else {
		nn_trace_give(f, cfg, g, step);
	}
	nn_trace_hash(f);
	t->hash = nn_hash(nn_hash(f->hash, g->window), g->used);
}

#endif
