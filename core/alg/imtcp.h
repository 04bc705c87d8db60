/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * ImTCP: Reno that measures the available bandwidth with its own packets.
 *
 * C. Man, G. Hasegawa, M. Murata, "ImTCP: TCP with an inline measurement
 * mechanism for available bandwidth", Computer Communications 29, 2006. The window
 * is Reno's (window/window.h); the measurement (core/measure/avail.h) decides when the packets
 * that it allows leave. It is there to see what the measurement is worth, and as
 * the base of imtcp_bg.h, which obeys it.
 *
 * Deviations from the paper: the window grows in a round trip only if more than
 * half of it was in use in this round trip or the last one (RFC 7661, 4.3): the
 * measurement may ask for streams slower than the window, which must not grow
 * unused until something loses it.
 */
#ifndef NN_ALG_IMTCP_H
#define NN_ALG_IMTCP_H

#include "../measure/avail.h"
#include "../window/window.h"

#define nn_imtcp_summary \
	"ImTCP: Reno that measures the available bandwidth with its packets; yields to nobody"

#define nn_imtcp_traits (NN_TIMED)

#define nn_imtcp_params(P)

struct nn_imtcp_cfg {
	nn_imtcp_params(NN_FIELD)
};

struct nn_imtcp {
	struct nn_window window;
	struct nn_avail avail;
	u32 used, was_used;	/* more than half of the window, in this round and in the last */
	u32 end;		/* the round ends when data beyond this is acknowledged */
	u32 reserved;
};

nn_inline void nn_imtcp_answer(const struct nn_imtcp *s, const struct nn_ack *a, struct nn_ctl *ctl)
{
	nn_window_answer(&s->window, ctl);
	nn_avail_answer(&s->avail, a, ctl);
}

/* Before a packet leaves: the measurement's gap after it. */
nn_inline void nn_imtcp_space(struct nn_imtcp *s, const struct nn_ack *a)
{
	if (((u64)a->inflight + 1) * 2 * NN_ONE > s->window.cwnd)
		s->used = 1;
	nn_avail_send(&s->avail, a, s->window.cwnd, nn_window_in_slow_start(&s->window));
}

/* Reno's growth of a window that is used. */
nn_inline void nn_imtcp_grow(struct nn_imtcp *s, const struct nn_ack *a)
{
	if (s->used || s->was_used || !s->avail.gap_us)
		nn_window_grow(&s->window, a);
	if (nn_round_over(&s->end, a)) {
		s->was_used = s->used;
		s->used = 0;
	}
}

nn_inline void nn_imtcp_start(struct nn_imtcp *s, const struct nn_ack *a, const struct nn_ctl *ctl)
{
	nn_window_start(&s->window, ctl);
	nn_avail_start(&s->avail, a);
	s->end = a->nxt;
}

nn_inline void nn_imtcp_react(struct nn_imtcp *s, enum nn_event event, u64 least,
			      const struct nn_ack *a, const struct nn_ctl *ctl)
{
	nn_window_react(&s->window, event, least, ctl);
	if (event == NN_LOSS)
		nn_avail_lose(&s->avail, a->now_us);
	if (event != NN_UNDO)
		nn_avail_interrupt(&s->avail, a);
}

nn_inline void nn_imtcp_init(struct nn_imtcp *s, const struct nn_imtcp_cfg *c, struct nn_group *g,
			     const struct nn_ack *a, struct nn_ctl *ctl)
{
	nn_imtcp_start(s, a, ctl);
	nn_imtcp_answer(s, a, ctl);
}

nn_inline void nn_imtcp_ack(struct nn_imtcp *s, const struct nn_imtcp_cfg *c, struct nn_group *g,
			    const struct nn_ack *a, struct nn_ctl *ctl)
{
	nn_avail_ack(&s->avail, a, s->window.cwnd);
	nn_imtcp_grow(s, a);
	nn_imtcp_answer(s, a, ctl);
}

nn_inline void nn_imtcp_event(struct nn_imtcp *s, const struct nn_imtcp_cfg *c, struct nn_group *g,
			      enum nn_event event, const struct nn_ack *a, struct nn_ctl *ctl)
{
	nn_imtcp_react(s, event, 2 * NN_ONE, a, ctl);
	nn_imtcp_answer(s, a, ctl);
}

nn_inline void nn_imtcp_send(struct nn_imtcp *s, const struct nn_imtcp_cfg *c, struct nn_group *g,
			     const struct nn_ack *a, struct nn_ctl *ctl)
{
	nn_imtcp_space(s, a);
	nn_imtcp_answer(s, a, ctl);
}

#define nn_imtcp_shown(S, s, c) nn_avail_shown(S, &(s)->avail)

#endif
