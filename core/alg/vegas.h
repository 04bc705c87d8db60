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
 * follows a path that becomes longer, and jitter is no queue (measure/bounds.h). That
 * is seen with two packets only. `doubt` lets the flow look: when the least RTT of its
 * rounds has been above 8/7 minRTT for 3 s, it keeps to two packets until rounds are
 * near minRTT again, for 8 s at most, or 24 s while the path seems longer or to vary.
 * After each look that finds nothing it waits twice as long, up to 192 s. Two packets that
 * are apart each wait for the receiver's timer (measure/rtt.h): where an RTT may hold it,
 * the first waits for the second. --set doubt=0 is Vegas as written.
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

#define nn_vegas_rule_params(P)                                                                    \
	P(alpha, 1.0, 0.0, 1000.0, "packets", "Nice 2.1, 2.3",                                     \
	  "grow while fewer packets of the flow are queued than this")                             \
	P(beta, 3.0, 0.0, 1000.0, "packets", "Nice 2.1, 2.3",                                      \
	  "shrink while more packets of the flow are queued than this")                            \
	P(gamma, 1.0, 0.0, 1000.0, "packets", "Vegas 3.3",                                         \
	  "leave slow start when more packets of the flow are queued than this")

#define nn_vegas_own_params(P)                                                                     \
	P(doubt, 3.0, 0.0, 3600.0, "seconds", "0 in Vegas",                                        \
	  "after so long without an RTT near minRTT the window is two packets, to look; 0: never")

#define nn_vegas_params(P) nn_vegas_rule_params(P) nn_vegas_own_params(P)

#define NN_VEGAS_LOOK_US ((NN_BOUNDS_RISE + 4) * NN_BOUNDS_BLOCK_US) /* long enough for minRTT to rise */
#define NN_VEGAS_LOOK_LONG_US (3 * NN_VEGAS_LOOK_US) /* the same where an RTT is half a second */
#define NN_VEGAS_LOOKS 6u /* the time between two looks doubles so often */

/* What Nice has of it too (alg/nice.h). */
struct nn_vegas_rule_cfg {
	nn_vegas_rule_params(NN_FIELD)
};

struct nn_vegas_cfg {
	struct nn_vegas_rule_cfg rule;
	nn_vegas_own_params(NN_FIELD)
};

/* What Nice keeps of it too. */
struct nn_vegas_rule {
	struct nn_window window;
	struct nn_bounds bounds; /* of RTTs: base is minRTT */
	u32 round_us;	/* least RTT of this round; 0: no sample yet */
	u32 samples;	/* RTT samples of this round */
	u32 end;	/* the round ends when data beyond this is acknowledged */
	u32 queue;	/* Diff of the last round, packets Q16, for info */
	u32 fixed;	/* slow start: the window is fixed in this round */
};

struct nn_vegas {
	struct nn_vegas_rule rule;
	u32 looks;	/* in a row that have not found minRTT */
	u64 far_us;	/* rounds whose least RTT was far above minRTT, less those in which it was not */
	u64 round_at_us; /* clock at which the round began */
	u64 look_us;	/* clock at which the look for minRTT began; 0: there is none */
};

/* Packets of a window that are queued, Q16: W (RTT - minRTT)/RTT. */
nn_inline u64 nn_vegas_diff(u64 cwnd, u32 rtt_us, u32 base_us)
{
	return nn_scale(cwnd, rtt_us > base_us ? rtt_us - base_us : 0, rtt_us);
}

/* Takes the RTT sample of an ACK, 0: none, as one of a flow with a window of cwnd_q16 (bounds.h). */
nn_inline void nn_vegas_sample(struct nn_vegas_rule *s, u64 now_us, u32 rtt, u64 cwnd_q16)
{
	if (!rtt)
		return;
	nn_bounds_sample(&s->bounds, now_us, rtt, cwnd_q16);
	s->round_us = s->round_us ? (u32)nn_min(s->round_us, rtt) : rtt;
	s->samples++;
}

/* At each ACK: grows in slow start, and where Reno's rule replaces Vegas'. */
nn_inline void nn_vegas_grow(struct nn_vegas_rule *s, const struct nn_ack *a)
{
	if (nn_window_in_slow_start(&s->window) && !s->fixed)
		nn_window_grow(&s->window, a);
}

/* At the end of a round: compares Diff with alpha, beta or gamma; grows only if it `may`. */
nn_inline void nn_vegas_avoid(struct nn_vegas_rule *s, const struct nn_vegas_rule_cfg *c, int may, u64 least)
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
nn_inline void nn_vegas_next_round(struct nn_vegas_rule *s)
{
	s->round_us = 0;
	s->samples = 0;
	s->fixed = !s->fixed;
}

/*
 * At the end of a round: whether minRTT is still true. If the path has become longer, Vegas takes
 * that for its own queue, and keeps a few packets for good. With two packets it has no queue.
 */
nn_inline void nn_vegas_look(struct nn_vegas *s, const struct nn_vegas_cfg *c, u64 now_us)
{
	u64 base = s->rule.bounds.base_us + nn_bounds_noise(&s->rule.bounds);
	u64 doubt_us = ((u64)c->doubt * 1000000 / NN_ONE) << s->looks; /* 28 + 20 bits, 32 + 6 then */
	u64 elapsed_us = nn_min(now_us - s->round_at_us, NN_BOUNDS_BLOCK_US);
	int finds = s->rule.bounds.above || s->rule.bounds.spread; /* blocks in a row that agree */
	u64 most_us = finds ? NN_VEGAS_LOOK_LONG_US : NN_VEGAS_LOOK_US;

	s->round_at_us = now_us;
	if (7 * (u64)s->rule.round_us > 8 * base)
		s->far_us = nn_min(s->far_us + elapsed_us, doubt_us);
	else
		s->far_us -= nn_min(elapsed_us, s->far_us);
	if (!s->look_us && c->doubt && s->far_us >= doubt_us) {
		s->look_us = now_us;
	} else if (s->look_us && s->far_us <= doubt_us / 16 * 15) {
		s->look_us = 0;
		s->looks = 0;
	} else if (s->look_us && now_us - s->look_us >= most_us) {
		s->look_us = 0;
		s->far_us = 0;
		s->looks = (u32)nn_min(s->looks + 1, NN_VEGAS_LOOKS);
	}
}

/* May the receiver's timer have kept the ACK of a packet that is not the last? */
nn_inline int nn_vegas_apart(const struct nn_vegas *s, const struct nn_ack *a)
{
	return a->inflight && nn_acked(a) < NN_BURST &&
	       nn_rtt(a) >= s->rule.bounds.base_us + NN_RTT_TIMER_US;
}

/* The window that the flow may use now. While it looks, packets that are apart wait for each other. */
nn_inline u64 nn_vegas_used(const struct nn_vegas *s, const struct nn_ack *a)
{
	u64 most = nn_vegas_apart(s, a) ? NN_ONE : NN_BURST * NN_ONE;

	return s->look_us ? nn_min(s->rule.window.cwnd, most) : s->rule.window.cwnd;
}

nn_inline void nn_vegas_answer(const struct nn_vegas *s, const struct nn_ack *a, struct nn_ctl *ctl)
{
	nn_window_answer(&s->rule.window, ctl);
	ctl->cwnd_q16 = nn_vegas_used(s, a);
}

nn_inline void nn_vegas_start(struct nn_vegas_rule *s, const struct nn_ack *a, struct nn_ctl *ctl)
{
	ctl->cwnd_q16 = nn_max(ctl->cwnd_q16, 2 * NN_ONE);
	nn_window_start(&s->window, ctl);
	s->end = a->nxt;
	nn_window_answer(&s->window, ctl);
}

nn_inline void nn_vegas_init(struct nn_vegas *s, const struct nn_vegas_cfg *c, struct nn_group *g,
			     const struct nn_ack *a, struct nn_ctl *ctl)
{
	nn_vegas_start(&s->rule, a, ctl);
	s->round_at_us = a->now_us;
}

nn_inline void nn_vegas_ack(struct nn_vegas *s, const struct nn_vegas_cfg *c, struct nn_group *g,
			    const struct nn_ack *a, struct nn_ctl *ctl)
{
	nn_vegas_sample(&s->rule, a->now_us, nn_rtt(a), nn_vegas_used(s, a));
	nn_vegas_grow(&s->rule, a);
	if (nn_round_over(&s->rule.end, a)) {
		if (!s->look_us)
			nn_vegas_avoid(&s->rule, &c->rule, nn_may_grow(a), 2 * NN_ONE);
		nn_vegas_look(s, c, a->now_us);
		nn_vegas_next_round(&s->rule);
	}
	nn_vegas_answer(s, a, ctl);
}

/* After a loss or a rest the round's samples speak of another state of the path. */
nn_inline void nn_vegas_react(struct nn_vegas_rule *s, enum nn_event event, u64 least,
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
	nn_vegas_react(&s->rule, event, 2 * NN_ONE, a, ctl);
	nn_vegas_answer(s, a, ctl);
}

#define nn_vegas_send nn_no_send

#define nn_vegas_rule_shown(S, s)                                                                  \
	nn_show_base_rtt(S, (s)->bounds.base_us)                                                   \
	S(queue, packets, "its own packets in the bottleneck's queue", (s)->queue)

#define nn_vegas_shown(S, s, c) nn_vegas_rule_shown(S, &(s)->rule)

#endif
