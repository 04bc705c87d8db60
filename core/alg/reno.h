/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Reno congestion avoidance (RFC 5681), on top of the host's loss recovery.
 *
 * V. Jacobson, "Congestion Avoidance and Control", SIGCOMM 1988; the paper on
 * TCP Nice, section 2.1, calls it AIMD:
 *
 *	W < ssthresh:	W += 1 for each packet acknowledged	(slow start)
 *	else:		W += 1/W for each packet acknowledged
 *	on loss:	ssthresh = max(W/2, 2), W = ssthresh
 *	on timeout:	W = 1
 *
 *	          loss                  W >= ssthresh
 *	 +------------------+  +------------------------------+
 *	 v                  |  |                              v
 *	congestion avoidance    slow start <--- timeout --- any
 *
 * All of it is the window that other algorithms start from: window/window.h.
 *
 * Deviations and range: see there.
 */
#ifndef NN_ALG_RENO_H
#define NN_ALG_RENO_H

#include "../window/window.h"

#define nn_reno_summary \
	"Reno: one packet more each round trip, half on loss; yields to nobody"

#define nn_reno_params(P)

struct nn_reno_cfg {
	nn_reno_params(NN_FIELD)
};

struct nn_reno {
	struct nn_window window;
};

nn_inline void nn_reno_init(struct nn_reno *s, const struct nn_reno_cfg *c, struct nn_group *g,
			    const struct nn_ack *a, struct nn_ctl *ctl)
{
	nn_window_start(&s->window, ctl);
	nn_window_answer(&s->window, ctl);
}

nn_inline void nn_reno_ack(struct nn_reno *s, const struct nn_reno_cfg *c, struct nn_group *g,
			   const struct nn_ack *a, struct nn_ctl *ctl)
{
	nn_window_grow(&s->window, a);
	nn_window_answer(&s->window, ctl);
}

nn_inline void nn_reno_event(struct nn_reno *s, const struct nn_reno_cfg *c, struct nn_group *g,
			     enum nn_event event, const struct nn_ack *a, struct nn_ctl *ctl)
{
	nn_window_react(&s->window, event, 2 * NN_ONE, ctl);
	nn_window_answer(&s->window, ctl);
}

#define nn_reno_send nn_no_send
#define nn_reno_shown(S, s, c)

#endif
