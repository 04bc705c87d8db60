/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * TCP Vegas: keep between alpha and beta packets in the bottleneck's queue.
 *
 * L. Brakmo, L. Peterson, "TCP Vegas: End to End Congestion Avoidance on a
 * Global Internet", IEEE JSAC 13(8), 1995; as the paper on TCP Nice writes it
 * in section 2.1, with W the window, E the expected and A the actual rate:
 *
 *	E = W/minRTT	A = W/RTT	Diff = (E - A) minRTT = W (RTT - minRTT)/RTT
 *
 *	once a round:	Diff < alpha:	W += 1
 *			Diff > beta:	W -= 1
 *	slow start:	W doubles every other round, so that a round with a fixed
 *			window comes between in which Diff can be compared;
 *			Diff > gamma:	W = min(W, W minRTT/RTT + 1), avoidance
 *	on loss:	as Reno
 *
 *	             Diff > gamma, W >= ssthresh
 *	slow start ------------------------------> avoidance: +1, 0 or -1 a round
 *	     ^                                        |
 *	     +--------------- timeout ----------------+
 *
 * RTT is the least of the round: the one that the receiver's delayed ACKs and
 * bursts distort least.
 *
 * Deviations from the paper: with fewer than three RTT samples in a round,
 * Reno's rule applies, since all of them can be from delayed ACKs; the finer
 * retransmission of Vegas is left to the host, whose SACK and RACK do better. minRTT
 * follows a path that becomes longer, and jitter is no queue (measure/bounds.h).
 *
 * Range: W (RTT - minRTT) has at most 36 + 27 = 63 bits.
 */
#ifndef NN_ALG_VEGAS_H
#define NN_ALG_VEGAS_H

#include "../measure/bounds.h"
#include "../window/window.h"

#define nn_vegas_summary \
	"Vegas: keeps alpha to beta packets queued; gives way a little, not to many of its kind"

#define nn_vegas_traits (NN_ROUNDS | NN_TIMED)

#define nn_vegas_params(P)                                                                         \
	P(alpha, 1.0, 0.0, 1000.0, "packets", "Nice 2.1, 2.3",                                     \
	  "grow while fewer packets of the flow are queued than this")                             \
	P(beta, 3.0, 0.0, 1000.0, "packets", "Nice 2.1, 2.3",                                      \
	  "shrink while more packets of the flow are queued than this")                            \
	P(gamma, 1.0, 0.0, 1000.0, "packets", "Vegas 3.3",                                         \
	  "leave slow start when more packets of the flow are queued than this")

struct nn_vegas_cfg {
	nn_vegas_params(NN_FIELD)
};

struct nn_vegas {
	struct nn_window window;
	struct nn_bounds bounds; /* of RTTs: base is minRTT */
	u32 round_us;	/* least RTT of this round; 0: no sample yet */
	u32 samples;	/* RTT samples of this round */
	u32 end;	/* the round ends when data beyond this is acknowledged */
	u32 queue;	/* Diff of the last round, packets Q16, for info */
	u32 fixed;	/* slow start: the window is fixed in this round */
};

/* Packets of a window that are queued, Q16: W (RTT - minRTT)/RTT. */
nn_inline u64 nn_vegas_diff(u64 cwnd, u32 rtt_us, u32 base_us)
{
	return nn_scale(cwnd, rtt_us > base_us ? rtt_us - base_us : 0, rtt_us);
}

/* Takes the RTT sample of an ACK, 0: none, as one of a flow with a window of cwnd_q16 (bounds.h). */
nn_inline void nn_vegas_sample(struct nn_vegas *s, u64 now_us, u32 rtt, u64 cwnd_q16)
{
	if (!rtt)
		return;
	nn_bounds_sample(&s->bounds, now_us, rtt, cwnd_q16);
	s->round_us = s->round_us ? (u32)nn_min(s->round_us, rtt) : rtt;
	s->samples++;
}

/* At each ACK: grows in slow start, and where Reno's rule replaces Vegas'. */
nn_inline void nn_vegas_grow(struct nn_vegas *s, const struct nn_ack *a)
{
	if (nn_window_in_slow_start(&s->window) && !s->fixed)
		nn_window_grow(&s->window, a);
}

/* At the end of a round: compares Diff with alpha, beta or gamma; grows only if it `may`. */
nn_inline void nn_vegas_avoid(struct nn_vegas *s, const struct nn_vegas_cfg *c, int may, u64 least)
{
	struct nn_window *w = &s->window;
	u64 diff;

	if (s->samples < 3) {
		if (!nn_window_in_slow_start(w) && may)
			w->cwnd = nn_clamp_cwnd(w->cwnd + NN_ONE, least);
		return;
	}
	/* the least RTT of a few packets is about half of the jitter above the empty path's */
	diff = nn_vegas_diff(w->cwnd, s->round_us, s->bounds.base_us + s->bounds.noise_us / 2);
	s->queue = (u32)nn_min(diff, ~0u);
	if (nn_window_in_slow_start(w)) {
		if (diff > c->gamma) {
			u64 carried = nn_scale(w->cwnd, s->bounds.base_us, s->round_us);

			w->cwnd = nn_clamp_cwnd(nn_min(w->cwnd, carried + NN_ONE), least);
			w->ssthresh = w->cwnd;
		}
	} else if (diff > c->beta) {
		w->cwnd = nn_clamp_cwnd(w->cwnd - nn_min(w->cwnd, NN_ONE), least);
		w->ssthresh = nn_min(w->ssthresh, w->cwnd);
	} else if (diff < c->alpha && may) {
		w->cwnd = nn_clamp_cwnd(w->cwnd + NN_ONE, least);
	}
}

/* Starts the next round's measurement. */
nn_inline void nn_vegas_next_round(struct nn_vegas *s)
{
	s->round_us = 0;
	s->samples = 0;
	s->fixed = !s->fixed;
}

nn_inline void nn_vegas_init(struct nn_vegas *s, const struct nn_vegas_cfg *c, struct nn_group *g,
			     const struct nn_ack *a, struct nn_ctl *ctl)
{
	ctl->cwnd_q16 = nn_max(ctl->cwnd_q16, 2 * NN_ONE);
	nn_window_start(&s->window, ctl);
	s->end = a->nxt;
	nn_window_answer(&s->window, ctl);
}

nn_inline void nn_vegas_ack(struct nn_vegas *s, const struct nn_vegas_cfg *c, struct nn_group *g,
			    const struct nn_ack *a, struct nn_ctl *ctl)
{
	nn_vegas_sample(s, a->now_us, nn_rtt(a), s->window.cwnd);
	nn_vegas_grow(s, a);
	if (nn_round_over(&s->end, a)) {
		nn_vegas_avoid(s, c, nn_may_grow(a), 2 * NN_ONE);
		nn_vegas_next_round(s);
	}
	nn_window_answer(&s->window, ctl);
}

/* After a loss or a rest the round's samples speak of another state of the path. */
nn_inline void nn_vegas_react(struct nn_vegas *s, enum nn_event event, u64 least,
			      const struct nn_ack *a, const struct nn_ctl *ctl)
{
	nn_window_react(&s->window, event, least, ctl);
	if (event == NN_LOSS)
		nn_bounds_lose(&s->bounds, a->now_us);
	s->end = a->nxt;
	s->round_us = 0;
	s->samples = 0;
}

nn_inline void nn_vegas_event(struct nn_vegas *s, const struct nn_vegas_cfg *c, struct nn_group *g,
			      enum nn_event event, const struct nn_ack *a, struct nn_ctl *ctl)
{
	nn_vegas_react(s, event, 2 * NN_ONE, a, ctl);
	nn_window_answer(&s->window, ctl);
}

#define nn_vegas_send nn_no_send

#define nn_vegas_shown(S, s, c)                                                                    \
	nn_show_base_rtt(S, (s)->bounds.base_us)                                                          \
	S(queue, packets, "its own packets in the bottleneck's queue", (s)->queue)

#endif
