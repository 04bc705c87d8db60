/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Golden traces: the algorithm of the template driven by a list of steps, with
 * every state and answer hashed on the way. C, Rust and the kernel must agree.
 */
#ifndef NN_TRACE_H
#define NN_TRACE_H

#include "algorithm.h"

nn_inline u64 nn_hash(u64 hash, u64 word)
{
	return (hash ^ word) * 0x100000001b3;
}

/* Step 0 starts the flow with the host's usual initial window. */
nn_inline void nn_trace_step(struct nn_trace *t, const u32 *cfg, u32 i, const struct nn_step *step)
{
	NN_STATE *s = (NN_STATE *)t->state;
	const NN_CFG *c = (const NN_CFG *)cfg;

	if (!i) {
		t->hash = 0xcbf29ce484222325;
		t->ctl.cwnd_q16 = 10 * NN_ONE;
		NN_OP(init)(s, c, NULL, &step->ack, &t->ctl);
	} else if (step->event < NN_EVENTS) {
		NN_OP(event)(s, c, NULL, (enum nn_event)step->event, &step->ack, &t->ctl);
	} else {
		NN_OP(ack)(s, c, NULL, &step->ack, &t->ctl);
		NN_OP(send)(s, c, NULL, &step->ack, &t->ctl);
	}
	t->hash = nn_hash(t->hash, t->ctl.cwnd_q16);
	t->hash = nn_hash(t->hash, t->ctl.gap_us);
	t->hash = nn_hash(t->hash, (u64)t->ctl.burst << 32 | t->ctl.flags);
	for (u32 w = 0; w < sizeof(NN_STATE) / 8; w++)
		t->hash = nn_hash(t->hash, t->state[w]);
}

#endif
