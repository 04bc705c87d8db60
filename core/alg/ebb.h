/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * ebb: the window of a flow whose packets its host holds until its path has room.
 *
 * Where the host holds them (core/host/path.h), it is the host that yields, for all its flows at
 * once, and before a queue builds. A window need only be large enough that a packet always waits:
 * CUBIC's. Where it does not, the flow yields on its own: TCP Nice's.
 *
 *	            a packet was held: W as it is, slow start
 *	TCP Nice ------------------------------------------------> CUBIC
 *	         <------------------------------------------------
 *	            none was for a second: W = min(W, 2), all RTTs forgotten
 *
 * RTTs of held packets have their wait in this host. That is no queue of the path's, so Nice
 * begins anew. CUBIC takes it for none either: it reacts to losses alone, but for HyStart, which ends
 * slow start early; a window that waits in the host already is large enough.
 *
 * The parameters are TCP Nice's. CUBIC has its defaults.
 */
#ifndef NN_ALG_EBB_H
#define NN_ALG_EBB_H

#include "cubic.h"
#include "nice.h"

#define NN_ALONE

#define nn_ebb_summary \
	"TCP Nice, and CUBIC while the host holds the flow's packets until its path has room"

#define nn_ebb_traits nn_nice_traits

#define nn_ebb_params(P) nn_nice_params(P)

struct nn_ebb_cfg {
	struct nn_nice_cfg nice;
};

struct nn_ebb {
	union {
		struct nn_nice nice;
		struct nn_cubic cubic;	/* while held */
	};
	u64 held;
};

static const struct nn_cubic_cfg nn_ebb_cubic = { nn_cubic_params(NN_DEFAULT) };

/* Begins anew, with the window that it has, where the host began or ceased to hold its packets. */
nn_inline void nn_ebb_turn(struct nn_ebb *s, const struct nn_ebb_cfg *c, struct nn_group *g,
			   const struct nn_ack *a, struct nn_ctl *ctl)
{
	u64 held = a->flags & NN_ACK_HELD;

	if (held == s->held || (held && !nn_may_grow(a)))
		return;
	*s = (struct nn_ebb){ .held = held };
	*ctl = (struct nn_ctl){ .cwnd_q16 = nn_max(ctl->cwnd_q16, NN_ONE) };
	if (held)
		nn_cubic_init(&s->cubic, &nn_ebb_cubic, g, a, ctl);
	else
		nn_nice_init(&s->nice, &c->nice, g, a, ctl);
}

nn_inline void nn_ebb_init(struct nn_ebb *s, const struct nn_ebb_cfg *c, struct nn_group *g,
			   const struct nn_ack *a, struct nn_ctl *ctl)
{
	nn_nice_init(&s->nice, &c->nice, g, a, ctl);
}

nn_inline void nn_ebb_ack(struct nn_ebb *s, const struct nn_ebb_cfg *c, struct nn_group *g,
			  const struct nn_ack *a, struct nn_ctl *ctl)
{
	nn_ebb_turn(s, c, g, a, ctl);
	if (s->held)
		nn_cubic_ack(&s->cubic, &nn_ebb_cubic, g, a, ctl);
	else
		nn_nice_ack(&s->nice, &c->nice, g, a, ctl);
}

nn_inline void nn_ebb_event(struct nn_ebb *s, const struct nn_ebb_cfg *c, struct nn_group *g,
			    enum nn_event event, const struct nn_ack *a, struct nn_ctl *ctl)
{
	if (s->held)
		nn_cubic_event(&s->cubic, &nn_ebb_cubic, g, event, a, ctl);
	else
		nn_nice_event(&s->nice, &c->nice, g, event, a, ctl);
}

nn_inline void nn_ebb_send(struct nn_ebb *s, const struct nn_ebb_cfg *c, struct nn_group *g,
			   const struct nn_ack *a, struct nn_ctl *ctl)
{
	if (s->held)
		nn_cubic_send(&s->cubic, &nn_ebb_cubic, g, a, ctl);
	else
		nn_nice_send(&s->nice, &c->nice, g, a, ctl);
}

#define nn_ebb_shown(S, s, c)                                                                      \
	S(held, share, "1: this host holds its packets until its path has room",                   \
	  (s)->held ? NN_ONE : 0)                                                                  \
	nn_show_base_rtt(S, (s)->held ? 0 : (s)->nice.vegas.bounds.base_us)                        \
	nn_show_max_rtt(S, (s)->held ? 0 : (s)->nice.vegas.bounds.top_us)

#endif
