/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Golden traces: what an algorithm is driven with, step by step, and what is kept of it.
 * C, Rust and the kernel must agree. core/replay.h takes the steps.
 */
#ifndef NN_TRACE_H
#define NN_TRACE_H

#include "netnice.h"

#define NN_TRACE_FLOWS 4	/* flows of the trace of a group */
#define NN_TRACE_LIFE 64	/* steps of one of them between two ends */

/* One step: an ACK, or an event if `event` is below NN_EVENTS. */
struct nn_step {
	u32 event;
	u32 reserved;
	struct nn_ack ack;
};

struct nn_trace {
	u64 hash;	/* FNV-1a over the 64-bit words of each state and answer */
	struct nn_ctl ctl;
	nn_word state[NN_STATE_MAX / 8];
};

#endif
