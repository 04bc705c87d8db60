/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Reno whose window is never above a fixed number of packets: the rate limit
 * that an administrator might set, of window/RTT at most.
 *
 * The report on TCP Nice compares with it in its appendix on rate limiting
 * (experiment 4, figures 11 to 13), with windows of 1, 2, 4, 8 and 16 packets:
 *
 *	W = min(Reno, window)		Reno's slow start ends there too
 *
 *	slow start --- W = window ---> the limit <--- growth --- avoidance
 *	                                   |                         ^
 *	                                   +---------- loss ---------+
 *
 * It shows what no fixed limit can do: several flows of one packet each load the
 * path whoever else is there, and one of them leaves most of an idle path unused.
 *
 * Deviations from the paper: none known; it leaves open whether the sender or the
 * receiver's offered window limits the flow, which is the same but for the
 * window that a loss halves. With a window of one each packet waits for the
 * receiver's delayed ACK (40 ms and more on Linux), which the simulations of 2002
 * did not have.
 *
 * Range: that of Reno.
 */
#ifndef NN_ALG_FIXED_H
#define NN_ALG_FIXED_H

#include "../window/window.h"

#define nn_fixed_summary \
	"Reno with a fixed greatest window: a rate limit; takes no more, whether others send or not"

#define nn_fixed_params(P)                                                                         \
	P(window, 1.0, 1.0, 10000.0, "packets", "Nice 10.1", "the window is never above this")

struct nn_fixed_cfg {
	nn_fixed_params(NN_FIELD)
};

struct nn_fixed {
	struct nn_window window;
};

/* Answers with Reno's window, cut to the limit. */
nn_inline void nn_fixed_answer(struct nn_fixed *s, const struct nn_fixed_cfg *c,
			       struct nn_ctl *ctl)
{
	u64 limit = nn_max(c->window, NN_ONE);

	s->window.cwnd = nn_min(s->window.cwnd, limit);
	s->window.ssthresh = nn_min(s->window.ssthresh, limit);
	nn_window_answer(&s->window, ctl);
}

nn_inline void nn_fixed_init(struct nn_fixed *s, const struct nn_fixed_cfg *c, struct nn_group *g,
			     const struct nn_ack *a, struct nn_ctl *ctl)
{
	nn_window_start(&s->window, ctl);
	nn_fixed_answer(s, c, ctl);
}

nn_inline void nn_fixed_ack(struct nn_fixed *s, const struct nn_fixed_cfg *c, struct nn_group *g,
			    const struct nn_ack *a, struct nn_ctl *ctl)
{
	nn_window_grow(&s->window, a);
	nn_fixed_answer(s, c, ctl);
}

nn_inline void nn_fixed_event(struct nn_fixed *s, const struct nn_fixed_cfg *c, struct nn_group *g,
			      enum nn_event event, const struct nn_ack *a, struct nn_ctl *ctl)
{
	nn_window_react(&s->window, event, 2 * NN_ONE, ctl);
	nn_fixed_answer(s, c, ctl);
}

#define nn_fixed_send nn_no_send
#define nn_fixed_shown(S, s, c)

#endif
