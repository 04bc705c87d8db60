/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * ImTCP-bg: fill the available bandwidth, which is measured, and no more.
 *
 * T. Tsugawa, G. Hasegawa, M. Murata, "Background TCP Data Transfer with Inline
 * Network Measurement", APCC 2005. ImTCP (imtcp.h) with two mechanisms:
 *
 * A. Bandwidth: each result A_cur of the measurement bounds the window (III-A, (1)):
 *
 *	A = (1 - gamma) A + gamma A_cur
 *	W <= maxcwnd = A RTTmin
 *
 * B. RTT: a queue that builds all the same is taken down by as much as it is too
 *    long, once a round trip (III-B, (3)):
 *
 *	sRTT/RTTmin > delta:	W = W RTTmin/sRTT
 *
 * In between the window grows by Reno's rules; on loss it is Reno.
 *
 *	   W < maxcwnd: grows             sRTT > delta RTTmin, once a round trip
 *	        +------+                        +---------------------+
 *	        v      |                        |                     v
 *	        W <= maxcwnd -------------------+             W RTTmin/sRTT
 *	             ^                                                |
 *	             +------------------------------------------------+
 *
 * One flow stays at the available bandwidth, where Nice halves its window whenever a queue
 * shows. Of many flows each measures what all others leave. Below 16 packets a window
 * cannot measure, and only mechanism B is left.
 *
 * Deviations from the paper, and what it leaves open (docs/design/imtcp-bg.md says why).
 * The paper without those that are parameters, but for windows below two packets, is
 * --set delta=1.2 --set gamma=0.125 --set swell=0 --set drain=1 --set climb=0.
 *
 * - delta is 1.35 instead of 1.2, gamma 1/32 instead of 1/8.
 * - `swell`: maxcwnd is delta A RTTmin.
 * - `drain`: once A is known, (3) is W = W delta RTTmin/sRTT.
 * - `climb`: below maxcwnd the window grows by two packets a round trip besides Reno's.
 * - maxcwnd is 16 packets or more, the least window that measures. B still goes below.
 * - The first result is taken whole. It ends slow start, if B has not.
 * - sRTT has TCP's gain of 1/8, but is of the last packet of each ACK, and leaves delayed
 *   ACKs out.
 * - "Immediately" (III-B) is once in a round trip.
 * - A window W < 2 is two packets every 2/W round trips, as in Nice, 2.3 (`least`; the
 *   paper's windows are two packets or more). The flows of a host keep half a packet in
 *   all (`together`). The second packet of the two leaves RTTmin after the first, 30 ms
 *   at most. There,
 *	- sRTT is the latest RTT;
 *	- (3) is applied once for each round trip since the last burst, eight times at most;
 *	- the window grows by a packet after a burst that met no queue above RTTmin/20;
 *	- what was measured is forgotten.
 * - RTTmin follows a path that changes, and jitter is tolerated beside delta
 *   (measure/bounds.h). Where jitter is half of RTTmin or more, A bounds nothing.
 * - The flow starts with two packets.
 *
 * Range: a rate of 25 bits times RTTmin of 27; W RTTmin: 36 + 27 bits.
 */
#ifndef NN_ALG_IMTCP_BG_H
#define NN_ALG_IMTCP_BG_H

#include "../window/sparse.h"
#include "imtcp.h"

#define nn_imtcp_bg_summary \
	"ImTCP-bg: fills the available bandwidth, which it measures, and no more"

#define nn_imtcp_bg_traits (NN_YIELDS | NN_GREEDY | NN_ROUNDS | NN_TIMED)

#define nn_imtcp_bg_params(P)                                                                      \
	P(gamma, 1.0 / 32, 0.0, 1.0, "weight", "1/8 in ImTCP-bg III-A, (1)",                       \
	  "weight of a new result in the smoothed available bandwidth")                            \
	P(delta, 1.35, 1.0, 100.0, "times the least RTT", "1.2 in ImTCP-bg III-B, (3)",            \
	  "the path is congested when the smoothed RTT is longer than this")                       \
	P(bandwidth, 1.0, 0.0, 1.0, "0 or 1", "ImTCP-bg III-A",                                    \
	  "1: the smoothed available bandwidth bounds the window")                                 \
	P(rtt, 1.0, 0.0, 1.0, "0 or 1", "ImTCP-bg III-B",                                          \
	  "1: the window shrinks when the path is congested")                                      \
	P(climb, 2.0, 0.0, 64.0, "packets", "0 in ImTCP-bg",                                       \
	  "below its bound the window grows by this much in a round trip, besides Reno's packet")  \
	P(swell, 1.0, 0.0, 1.0, "0 or 1", "0 in ImTCP-bg",                                         \
	  "1: the bound is the bandwidth times delta least RTTs; 0: times the least RTT")          \
	P(drain, 0.0, 0.0, 1.0, "0 or 1", "1 in ImTCP-bg",                                         \
	  "1: a decrease takes the whole queue; 0: what delta does not tolerate")                  \
	P(least, 1.0 / 48, 1.0 / 4096, 2.0, "packets", "2 in ImTCP-bg",                            \
	  "the window is never smaller than this")                                                 \
	P(together, 0.5, 0.0, 2.0, "packets", "0 in ImTCP-bg",                                     \
	  "the flows of a host keep a window of this much in all, however long congestion lasts")

struct nn_imtcp_bg_cfg {
	nn_imtcp_bg_params(NN_FIELD)
};

struct nn_imtcp_bg {
	struct nn_imtcp imtcp;
	u32 srtt8_us;		/* 8 sRTT; 0: no sample yet */
	u32 smoothed;		/* A, rate as in avail.h; 0: none yet */
	u32 end;		/* end of what was sent before the last decrease */
	u32 congested;		/* sRTT is above delta RTTmin */
	u64 burst_us;		/* a window below two: clock at which its next burst may begin */
};

/* RTTmin, us; 0: no sample yet. */
nn_inline u32 nn_imtcp_bg_base(const struct nn_imtcp_bg *s)
{
	return s->imtcp.avail.bounds.base_us;
}

/* Whether the window is below two packets: too small for the ACK clock. */
nn_inline int nn_imtcp_bg_sparse(const struct nn_imtcp_bg *s)
{
	return s->imtcp.window.cwnd < NN_BURST * NN_ONE;
}

nn_inline void nn_imtcp_bg_answer(const struct nn_imtcp_bg *s, const struct nn_ack *a,
				  struct nn_ctl *ctl)
{
	if (nn_imtcp_bg_sparse(s))
		nn_sparse_answer(&s->imtcp.window, a, ctl);
	else
		nn_imtcp_answer(&s->imtcp, a, ctl);
	if (s->congested)
		ctl->flags |= NN_CTL_YIELDING;
}

/* Takes the RTT sample of an ACK. */
nn_inline void nn_imtcp_bg_sample(struct nn_imtcp_bg *s, const struct nn_ack *a)
{
	u32 rtt = nn_rtt(a);
	int late = nn_rtt_late(a, s->imtcp.avail.pairs);

	if (!rtt)
		return;
	if (!s->srtt8_us)
		s->srtt8_us = 8 * rtt;
	else if (nn_imtcp_bg_sparse(s) && (!late || 8 * rtt < s->srtt8_us))
		s->srtt8_us = 8 * rtt;
	else if (!late)
		s->srtt8_us += rtt - s->srtt8_us / 8;
}

/* The RTT with the longest queue that is tolerated, us. 27 + 23 bits. */
nn_inline u64 nn_imtcp_bg_tolerated(const struct nn_imtcp_bg *s, const struct nn_imtcp_bg_cfg *c)
{
	u64 tolerated = (u64)nn_imtcp_bg_base(s) * c->delta / NN_ONE;

	return nn_min(tolerated + nn_bounds_noise(&s->imtcp.avail.bounds), NN_RTT_MAX);
}

/* maxcwnd, Q16. 25 + 27 bits. */
nn_inline u64 nn_imtcp_bg_most(const struct nn_imtcp_bg *s, const struct nn_imtcp_bg_cfg *c)
{
	u64 rtt = c->swell ? nn_imtcp_bg_tolerated(s, c) : nn_imtcp_bg_base(s);
	u64 most = s->smoothed * nn_min(rtt, NN_RTT_MAX) / 1000000 * (NN_ONE / NN_AVAIL_ONE);

	return nn_clamp_cwnd(most, NN_AVAIL_WINDOW * NN_ONE);
}

/* A new result of the measurement. 25 + 16 bits. */
nn_inline void nn_imtcp_bg_smooth(struct nn_imtcp_bg *s, const struct nn_imtcp_bg_cfg *c)
{
	u64 gamma = nn_min(c->gamma, NN_ONE);
	u64 result = s->imtcp.avail.latest;

	if (!s->smoothed)
		s->smoothed = (u32)result;
	else
		s->smoothed = (u32)((s->smoothed * (NN_ONE - gamma) + result * gamma) / NN_ONE);
}

/* Grows the window towards its bound. 22 + 31 bits. */
nn_inline void nn_imtcp_bg_climb(struct nn_imtcp_bg *s, const struct nn_imtcp_bg_cfg *c,
				 const struct nn_ack *a)
{
	struct nn_window *w = &s->imtcp.window;
	u64 cwnd = w->cwnd, most = nn_imtcp_bg_most(s, c);

	if (cwnd < most && nn_may_grow(a))
		cwnd += (u64)c->climb * nn_acked(a) / nn_max(cwnd / NN_ONE, 1);
	nn_window_shrink(w, nn_min(cwnd, nn_max(most, w->cwnd)));
}

/* The queue is too long: the window shrinks by as much, not below `least`. */
nn_inline u64 nn_imtcp_bg_shrunk(const struct nn_imtcp_bg *s, const struct nn_imtcp_bg_cfg *c,
				 const struct nn_ack *a, u64 cwnd)
{
	u32 rtt = s->srtt8_us / 8;
	u64 left = c->drain || !s->smoothed ? nn_imtcp_bg_base(s) : nn_imtcp_bg_tolerated(s, c);

	return nn_clamp_cwnd(nn_scale(cwnd, (u32)nn_min(left, rtt), rtt),
			     nn_min(cwnd, nn_sparse_least(c->least, c->together, a)));
}

/* Whether A bounds the window. Jitter of half of RTTmin spoils what streams of packets measure. */
nn_inline int nn_imtcp_bg_bounded(const struct nn_imtcp_bg *s, const struct nn_imtcp_bg_cfg *c)
{
	return c->bandwidth && s->smoothed &&
	       2 * s->imtcp.avail.bounds.noise_us < nn_imtcp_bg_base(s);
}

/* Less than two packets: once a burst, which is every 2/W round trips. */
nn_inline void nn_imtcp_bg_burst(struct nn_imtcp_bg *s, const struct nn_imtcp_bg_cfg *c,
				 const struct nn_ack *a)
{
	struct nn_window *w = &s->imtcp.window;
	u64 cwnd = w->cwnd;

	nn_avail_abandon(&s->imtcp.avail);
	s->smoothed = 0;
	if (!nn_round_over(&s->end, a))
		return;
	/* a queue of RTTmin/20 at most, beside jitter; 8 + 30 bits */
	if (20 * (s->srtt8_us - 8ull * nn_imtcp_bg_base(s)) <=
		    8ull * nn_imtcp_bg_base(s) + 160ull * nn_bounds_noise(&s->imtcp.avail.bounds) &&
	    nn_may_grow(a))
		cwnd += NN_ONE;
	/* for each of these round trips */
	for (u32 i = 0; i < 8; i++)
		if (s->congested && i * w->cwnd < NN_BURST * NN_ONE)
			cwnd = nn_imtcp_bg_shrunk(s, c, a, cwnd);
	nn_window_shrink(w, cwnd);
}

/* Two packets and more: growth, and both mechanisms. */
nn_inline void nn_imtcp_bg_steer(struct nn_imtcp_bg *s, const struct nn_imtcp_bg_cfg *c,
				 const struct nn_ack *a)
{
	struct nn_window *w = &s->imtcp.window;

	if (nn_imtcp_bg_bounded(s, c) && c->climb && !s->congested && !s->imtcp.avail.recovering)
		nn_imtcp_bg_climb(s, c, a);
	nn_imtcp_grow(&s->imtcp, a);
	if (nn_imtcp_bg_bounded(s, c) && w->cwnd > nn_imtcp_bg_most(s, c))
		nn_window_shrink(w, nn_imtcp_bg_most(s, c));
	if (s->congested && nn_round_over(&s->end, a))
		nn_window_shrink(w, nn_imtcp_bg_shrunk(s, c, a, w->cwnd));
}

nn_inline void nn_imtcp_bg_init(struct nn_imtcp_bg *s, const struct nn_imtcp_bg_cfg *c,
				struct nn_group *g, const struct nn_ack *a, struct nn_ctl *ctl)
{
	ctl->cwnd_q16 = nn_min(ctl->cwnd_q16, NN_BURST * NN_ONE);
	nn_imtcp_start(&s->imtcp, a, ctl);
	s->end = a->nxt;
	nn_imtcp_bg_answer(s, a, ctl);
}

nn_inline void nn_imtcp_bg_ack(struct nn_imtcp_bg *s, const struct nn_imtcp_bg_cfg *c,
			       struct nn_group *g, const struct nn_ack *a, struct nn_ctl *ctl)
{
	nn_imtcp_bg_sample(s, a);
	if (nn_avail_ack(&s->imtcp.avail, a, s->imtcp.window.cwnd))
		nn_imtcp_bg_smooth(s, c);
	s->congested = c->rtt && s->srtt8_us > 8 * nn_imtcp_bg_tolerated(s, c);
	if (nn_imtcp_bg_sparse(s))
		nn_imtcp_bg_burst(s, c, a);
	else
		nn_imtcp_bg_steer(s, c, a);
	nn_imtcp_bg_answer(s, a, ctl);
}

nn_inline void nn_imtcp_bg_event(struct nn_imtcp_bg *s, const struct nn_imtcp_bg_cfg *c,
				 struct nn_group *g, enum nn_event event, const struct nn_ack *a,
				 struct nn_ctl *ctl)
{
	u64 least = nn_sparse_least(c->least, c->together, a);

	nn_imtcp_react(&s->imtcp, event, nn_min(least, s->imtcp.window.cwnd), a, ctl);
	s->end = a->nxt;
	nn_imtcp_bg_answer(s, a, ctl);
}

nn_inline void nn_imtcp_bg_send(struct nn_imtcp_bg *s, const struct nn_imtcp_bg_cfg *c,
				struct nn_group *g, const struct nn_ack *a, struct nn_ctl *ctl)
{
	if (!nn_imtcp_bg_sparse(s))
		nn_imtcp_space(&s->imtcp, a);
	nn_imtcp_bg_answer(s, a, ctl);
	if (nn_imtcp_bg_sparse(s))
		nn_sparse_part(&s->burst_us, nn_imtcp_bg_base(s), a, ctl);
}

#define nn_imtcp_bg_shown(S, s, c)                                                                 \
	nn_show_base_rtt(S, nn_imtcp_bg_base(s))                                                   \
	nn_imtcp_shown(S, &(s)->imtcp, c)

#endif
