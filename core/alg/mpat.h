/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * MPAT: N flows of one path are entitled to N fair shares; divide them as you like.
 *
 * M. Singh, P. Pradhan, P. Francis, "MPAT: Aggregate TCP Congestion Management
 * as a Building Block for Internet QoS", IWQoS 2004. Each flow of a group brings
 * a congestion window, which is run as Reno's (3.2):
 *
 *	packet acknowledged, charged to window j:	C_j += 1/C_j (1 in slow start)
 *	loss charged to window j:			C_j = C_j / 2, once a round
 *	timeout charged to window j:			C_j = 1
 *
 * and may have A_i = x_i C in flight, of the sum C of all windows, whose flow's
 * packets whichever window is charged with: the network sees N flows of Reno, as
 * many AIMD loops as there are flows, each with the loss rate of the path.
 *
 *	member i	 C_1   C_2  ...  C_N		each an AIMD loop
 *	   |		   \    |        /
 *	   +-- A_i <-- x_i * C = sum
 *
 * aggregate/group.h divides C, aggregate/windows.h has the windows and says to
 * which of them a packet is charged. Without a group, or in one that is full, the
 * flow is one of Reno.
 *
 * Deviations from the paper, and what it leaves open (see also those two headers):
 * - Packets are charged to windows in runs (aggregate/windows.h), the paper's three
 *   rules being there for comparison: a random window for each packet spreads the
 *   losses of one burst over many windows, each of which is cut.
 * - Members are paced (aggregate/group.h), which flows of TCP are not.
 * - A timeout of member i is charged as a loss, and cuts that window to one packet
 *   (the paper counts timeouts, and does not say whose window they cut).
 * - An undo restores the last window that was cut because of the member.
 * - ECN: an echo is heard once in a round trip of the member, however many of its
 *   packets were marked: it cuts one window.
 *
 * Range: see aggregate/group.h.
 */
#ifndef NN_ALG_MPAT_H
#define NN_ALG_MPAT_H

#include "../aggregate/windows.h"

#define nn_mpat_summary \
	"MPAT: the flows of a group divide the fair shares of as many Reno flows by their weights"

#define nn_mpat_params(P)                                                                          \
	nn_group_params(P)                                                                         \
	P(run, 0.3, 0.0, 16.0, "mean windows", "-",                                                \
	  "so many packets of the flow in a row are charged to the same window; 0: each ACK anew") \
	P(pace, 2.0, 0.0, 16.0, "A_i", "-",                                                       \
	  "packets that may leave in a smoothed RTT, over the window; 0: as ACKs come")            \
	P(mapping, 0.0, 0.0, 3.0, "run|same|other|any", "MPAT 3.3.3",                              \
	  "run: as above; where the host can tag packets, each is sent through its flow's last "   \
	  "window, another one, or any, if that is open")

struct nn_mpat_cfg {
	nn_mpat_params(NN_FIELD)
};

struct nn_mpat {
	struct nn_window alone;	/* without a group */
	struct nn_place place;
	struct nn_charge charge;
};

/* A member's answer. */
nn_inline void nn_mpat_answer(struct nn_mpat *s, const struct nn_mpat_cfg *c, struct nn_group *g,
			      const struct nn_ack *a, struct nn_ctl *ctl)
{
	struct nn_member *m = nn_group_member(g, &s->place);

	if (m->weight != c->share)
		nn_group_weigh(g, m, c->share);
	nn_group_answer(m, &s->place, nn_group_divide(g, m, nn_windows_c(g)), c->pace, a, ctl);
}

/* Charges a loss. */
nn_inline void nn_mpat_lose(struct nn_mpat *s, const struct nn_mpat_cfg *c, struct nn_group *g,
			    const struct nn_ack *a)
{
	u32 index = nn_windows_charged(g, &s->charge, c->run);

	if (nn_windows_lose(g, index, a))
		s->charge.cut = index + 1;
}

/* Charges what an ACK says. Windows grow only if somebody fills them (RFC 7661). */
nn_inline void nn_mpat_charge(struct nn_mpat *s, const struct nn_mpat_cfg *c, struct nn_group *g,
			      const struct nn_ack *a)
{
	u32 acked = nn_acked(a);
	u32 index = nn_windows_charged(g, &s->charge, c->run);

	if (nn_charge_counted(&s->charge, a))
		nn_mpat_lose(s, c, g, a);
	if (acked && g->eager && !nn_windows_held(nn_group_at(g, index), a))
		nn_windows_grow(g, index, acked);
	s->charge.left -= (u32)nn_min(s->charge.left, acked);
}

/* Gives an event to a window. */
nn_inline void nn_mpat_tell(struct nn_group *g, u32 index, enum nn_event event,
			    const struct nn_ctl *ctl)
{
	struct nn_window *w = &nn_group_at(g, index)->window;
	u64 before = w->cwnd;

	nn_window_react(w, event, 0, ctl);
	nn_windows_mend(g, index, before);
}

/* An event of a member. */
nn_inline void nn_mpat_react(struct nn_mpat *s, const struct nn_mpat_cfg *c, struct nn_group *g,
			     enum nn_event event, const struct nn_ack *a, const struct nn_ctl *ctl)
{
	struct nn_member *m = nn_group_member(g, &s->place);

	switch (event) {
	case NN_LOSS:
		/* unless it was charged to its tag, or by the ACK that it comes with */
		if (!g->rule && nn_charge_told(&s->charge, a))
			nn_mpat_lose(s, c, g, a);
		break;
	case NN_ECN:
		nn_mpat_lose(s, c, g, a);
		break;
	case NN_TIMEOUT:
		nn_mpat_lose(s, c, g, a);
		nn_mpat_tell(g, s->charge.window, event, ctl);
		nn_group_restart(g, m, NN_ONE);
		break;
	case NN_UNDO:
		if (s->charge.cut && nn_group_at(g, s->charge.cut - 1)->weight)
			nn_mpat_tell(g, s->charge.cut - 1, event, ctl);
		s->charge.cut = 0;
		nn_group_restart(g, m, NN_CWND_MAX);
		break;
	case NN_IDLE:
		nn_group_restart(g, m, nn_clamp_cwnd(ctl->cwnd_q16, NN_ONE));
		break;
	case NN_EVENTS:
	case NN_CLOSE:
		break;
	}
}

nn_inline void nn_mpat_init(struct nn_mpat *s, const struct nn_mpat_cfg *c, struct nn_group *g,
			    const struct nn_ack *a, struct nn_ctl *ctl)
{
	if (g) {
		u64 start = nn_clamp_cwnd(ctl->cwnd_q16, NN_ONE);

		g->rule = g->tags ? c->mapping / NN_ONE : NN_RULE_RUN;
		nn_group_join(g, &s->place, c->share, start);
	}
	s->place.end = a->nxt;
	if (g && s->place.at) {
		nn_windows_join(g, s->place.at - 1, ctl);
		nn_mpat_answer(s, c, g, a, ctl);
	} else {
		nn_window_start(&s->alone, ctl);
		nn_window_answer(&s->alone, ctl);
	}
}

nn_inline void nn_mpat_ack(struct nn_mpat *s, const struct nn_mpat_cfg *c, struct nn_group *g,
			   const struct nn_ack *a, struct nn_ctl *ctl)
{
	if (g && s->place.at) {
		nn_group_use(g, nn_group_member(g, &s->place), a, nn_windows_c(g), NN_CWND_MAX);
		if (!g->rule)
			nn_mpat_charge(s, c, g, a);
		nn_mpat_answer(s, c, g, a, ctl);
	} else {
		nn_window_grow(&s->alone, a);
		nn_window_answer(&s->alone, ctl);
	}
}

nn_inline void nn_mpat_event(struct nn_mpat *s, const struct nn_mpat_cfg *c, struct nn_group *g,
			     enum nn_event event, const struct nn_ack *a, struct nn_ctl *ctl)
{
	if (g && s->place.at && event == NN_CLOSE) {
		nn_windows_leave(g, s->place.at - 1);
		nn_group_leave(g, &s->place);
	} else if (g && s->place.at) {
		nn_mpat_react(s, c, g, event, a, ctl);
		nn_mpat_answer(s, c, g, a, ctl);
	} else {
		nn_window_react(&s->alone, event, NN_BURST * NN_ONE, ctl);
		nn_window_answer(&s->alone, ctl);
	}
}

/* A share changed meanwhile counts from the next packet on. */
nn_inline void nn_mpat_send(struct nn_mpat *s, const struct nn_mpat_cfg *c, struct nn_group *g,
			    const struct nn_ack *a, struct nn_ctl *ctl)
{
	if (g && s->place.at)
		nn_mpat_answer(s, c, g, a, ctl);
}

#define nn_mpat_shown(S, s, c)

#endif
