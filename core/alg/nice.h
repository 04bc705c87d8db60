/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * TCP Nice: take the bandwidth that nobody else wants.
 *
 * A. Venkataramani, R. Kokku, M. Dahlin, "TCP Nice: A Mechanism for Background
 * Transfers", OSDI 2002; sections below are those of its technical report,
 * "System Support for Background Replication". Three additions to Vegas (2.2):
 *
 * 1. Detection. minRTT estimates an empty queue, maxRTT a full one (2 minRTT
 *    until something longer is seen). A round signals congestion when more than
 *    a fraction of its packets met a queue above a threshold of the buffer:
 *
 *	at each ACK:	RTT > minRTT + threshold (maxRTT - minRTT):	numCong++
 *	once a round:	numCong > fraction W:	W = W/2
 *			else:			Vegas
 *
 * 2. Reaction: W is halved (`decrease`), whereas Vegas gives up one packet.
 *
 * 3. Windows below one. A window W < 2 is two packets every 2/W smoothed RTTs
 *    (two, so that the receiver acknowledges at once), down to 1/48 (2.3).
 *
 *	             congested round, W < 2: shrink W, not below least
 *	     +---------------------------------------------------+
 *	     |                                                   v
 *	W >= 2: Vegas inside, ACK-clocked       W < 2: 2 packets every 2/W RTT
 *	     ^  (congested round: W/2)                           |
 *	     +---------------- quiet round: W + 1 ---------------+
 *
 * On loss, Reno's rules, with the least window of Nice. The thresholds make
 * the interference with Reno flows fall exponentially with the bottleneck's
 * buffer, however many Nice flows there are (section 3, theorem 1).
 *
 * Deviations from the paper; docs/design/nice.md says why, and with which figures.
 * The paper without them is --set fraction=0.5 --set shrink=0.5 --set quiet=1
 * --set together=0 --set spread=0 --set early=0 --set age=0.
 *
 * - `fraction` is 1/3 instead of 1/2.
 * - `shrink`: a window below two packets is cut to 1/20 instead of 1/2.
 * - `quiet`: the window grows only after a round in which no packet met a queue above
 *   1/20 of the buffer (or 1 ms). Between `quiet` and `threshold` it stays.
 * - `together`: the flows of a host keep half a packet in all, however many they are.
 * - `spread`: packets leave one by one over 0.8 minRTT; a window below two sends its
 *   second packet minRTT after the first, 30 ms at most. Below a spacing of 0.25 ms ACKs
 *   clock the window.
 * - `early`: a round ends as soon as enough of its packets were delayed. The next round
 *   does not count packets that were sent before the cut.
 * - numCong is compared with the packets acknowledged in the round: right for
 *   application-limited rounds too.
 * - A full queue is at least 1 ms long: hosts and their timers jitter by that.
 * - An RTT that may hold the receiver's timer (measure/rtt.h) does not raise maxRTT and does
 *   not count as delayed.
 * - The flow starts with two packets: ten at once are a queue before anything is known.
 * - minRTT and maxRTT follow a path that changes, and jitter is no queue (measure/bounds.h; 2.2
 *   suggests it for route changes). maxRTT fades towards a round's greatest RTT (`age`), never
 *   below 2 minRTT. With `age` 0 they are the least and the greatest RTT of all time.
 * - The paper's listing compares with minRTT + t maxRTT; its text and slides have the form
 *   above, which is used.
 *
 * Range: threshold <= 1 in Q16 times an RTT difference: 16 + 27 bits. Counts of
 * a round are below 2^31 packets and are compared in Q16: 47 bits.
 */
#ifndef NN_ALG_NICE_H
#define NN_ALG_NICE_H

#include "../window/sparse.h"
#include "vegas.h"

#define nn_nice_summary \
	"TCP Nice: halves as soon as a queue builds, down to 1/48 packet; the background class"

#define nn_nice_traits (NN_YIELDS | NN_ROUNDS | NN_TIMED)

#define nn_nice_own_params(P)                                                                      \
	P(threshold, 0.2, 0.0, 1.0, "share of the buffer", "Nice 2.2, 2.3",                        \
	  "a packet counts as delayed when it met a queue above this share")                       \
	P(fraction, 1.0 / 3, 0.0, 1.0, "share of the packets", "0.5 in Nice 2.2",                  \
	  "a round is congested when more than this share of its packets was delayed")             \
	P(decrease, 0.5, 0.0, 1.0, "share of the window", "Nice 2.2; gamma in 3",                  \
	  "what a congested round leaves of two packets or more; 1: Vegas decides")                \
	P(least, 1.0 / 48, 1.0 / 4096, 1.0, "packets", "Nice 2.3",                                 \
	  "the window is never smaller than this")                                                 \
	P(quiet, 0.05, 0.0, 1.0, "share of the buffer", "1 in Nice 2.2",                           \
	  "the window grows only after a round whose packets all met a queue below this share")    \
	P(shrink, 0.05, 0.0, 1.0, "share of the window", "0.5 in Nice 2.2",                        \
	  "what a congested round leaves of a window below two packets")                           \
	P(early, 1.0, 0.0, 1.0, "0 or 1", "0 in Nice 2.2",                                         \
	  "1: a round ends as soon as enough of its packets were delayed; 0: after a round trip")  \
	P(together, 0.5, 0.0, 2.0, "packets", "0 in Nice 2.2",                                     \
	  "the flows of a host keep a window of this much in all, however long congestion lasts")  \
	P(spread, 0.8, 0.0, 1.0, "share of minRTT", "0 in Nice 2.2",                               \
	  "a window leaves packet by packet over this much of a round trip; 0: as ACKs come")      \
	P(age, 600.0, 0.0, 3600.0, "seconds", "0 in Nice 2.2",                                     \
	  "time constant of forgetting maxRTT; 0: the least and the greatest RTT of all time count")

#define nn_nice_params(P) nn_vegas_rule_params(P) nn_nice_own_params(P)

#define NN_NICE_JITTER_US 1000u	/* of hosts and their timers */
#define NN_NICE_TIMER_US 250u	/* below this a timer for each packet costs more than it spares */

struct nn_nice_cfg {
	struct nn_vegas_rule_cfg vegas;
	nn_nice_own_params(NN_FIELD)
};

struct nn_nice {
	struct nn_vegas_rule vegas;
	u64 aged_us;		/* clock of the last step of ageing */
	u64 burst_us;		/* a window below two: clock at which its next burst may begin */
	u32 round_max_us;	/* greatest RTT of this round; 0: no sample yet */
	u32 delayed;		/* numCong: packets of this round above the threshold */
	u32 packets;		/* packets of this round with an RTT sample */
	u32 congested;		/* the last round was congested */
	u32 pairs;		/* the receiver waits for pairs (rtt.h) */
};

/* Answers with the window, whose packets leave one by one (`spread`) or as ACKs come. */
nn_inline void nn_nice_answer(const struct nn_nice *s, const struct nn_nice_cfg *c,
			      const struct nn_ack *a, struct nn_ctl *ctl)
{
	u64 cwnd = s->vegas.window.cwnd;
	u64 apart = nn_min(s->vegas.bounds.base_us, NN_SPARSE_APART_US);

	nn_sparse_answer(&s->vegas.window, a, ctl);
	if (s->congested || ctl->gap_us)
		ctl->flags |= NN_CTL_YIELDING;
	if (!c->spread || !apart)
		return;
	if (!ctl->gap_us) {
		/* 27 + 16 bits */
		apart = nn_min((u64)s->vegas.bounds.base_us * c->spread / nn_max(cwnd, 1), apart);
		if (apart < NN_NICE_TIMER_US)
			return;
		ctl->gap_us = apart;
	}
	ctl->burst = 1;
}

/* The RTT of a packet that meets `share` (Q16) of a queue that is at least `least_us` long. */
nn_inline u32 nn_nice_limit(const struct nn_nice *s, u32 share, u64 least_us)
{
	const struct nn_bounds *b = &s->vegas.bounds;
	u64 base = b->base_us;
	u64 span = nn_max(b->top_us, base + least_us) - base;

	return (u32)(base + nn_bounds_noise(b) + span * nn_min(share, NN_ONE) / NN_ONE);
}

/* Whether a packet met a queue above the threshold, of a full one of 1 ms or more. */
nn_inline int nn_nice_delayed(const struct nn_nice *s, const struct nn_nice_cfg *c, u32 rtt)
{
	return rtt > nn_nice_limit(s, c->threshold, NN_NICE_JITTER_US);
}

nn_inline void nn_nice_sample(struct nn_nice *s, const struct nn_nice_cfg *c,
			      const struct nn_ack *a)
{
	u32 rtt = nn_rtt(a);
	u32 acked = nn_acked(a);
	int late = nn_rtt_late(a, s->pairs);
	struct nn_bounds *b = &s->vegas.bounds;
	int delayed;

	nn_rtt_note(&s->pairs, a);
	if (!rtt)
		return;
	if (!late || !b->base_us || rtt < b->base_us + NN_RTT_TIMER_US)
		nn_vegas_sample(&s->vegas, a->now_us, rtt, c->age ? s->vegas.window.cwnd : NN_CWND_MAX);
	if (!late)
		nn_bounds_fill(b, a->now_us, rtt, 2 * b->base_us);
	if (!c->age)
		nn_bounds_full(b, a->now_us);
	nn_reload();
	if (c->early && s->congested && (s32)(a->una - s->vegas.end) <= 0)
		return; /* sent before the cut */
	delayed = nn_nice_delayed(s, c, rtt);
	if (late && (delayed || rtt - b->base_us >= NN_RTT_TIMER_US))
		return;
	s->round_max_us = (u32)nn_max(s->round_max_us, rtt);
	if (s->packets >> 30) /* a round without end: keep the proportion, not the count */
		s->packets /= 2, s->delayed /= 2;
	s->packets += acked;
	s->delayed += delayed ? acked : 0;
}

/* Whether the round was, so far, one in which the window may grow. */
nn_inline int nn_nice_quiet(const struct nn_nice *s, const struct nn_nice_cfg *c)
{
	u64 jitter_us = nn_nice_limit(s, 0, 0) + NN_NICE_JITTER_US;
	u64 limit = nn_max(nn_nice_limit(s, c->quiet, 0), jitter_us);

	return s->packets && s->round_max_us <= limit;
}

/* Whether numCong exceeds the fraction of so many packets (Q16). 36 + 16 bits. */
nn_inline u32 nn_nice_exceeds(const struct nn_nice *s, const struct nn_nice_cfg *c, u64 packets)
{
	return (u64)s->delayed * NN_ONE > packets * nn_min(c->fraction, NN_ONE) / NN_ONE;
}

nn_inline void nn_nice_age(struct nn_nice *s, const struct nn_nice_cfg *c, const struct nn_ack *a)
{
	u64 age_us = (u64)c->age * 1000000 / NN_ONE;
	u64 elapsed_us = a->now_us - s->aged_us;

	if (!s->round_max_us || elapsed_us < age_us / 64)
		return;
	s->aged_us = a->now_us;
	nn_bounds_fade(&s->vegas.bounds, s->round_max_us, elapsed_us, age_us);
}

/* Starts the next round's counts. */
nn_inline void nn_nice_next_round(struct nn_nice *s)
{
	s->round_max_us = 0;
	s->delayed = 0;
	s->packets = 0;
}

/* The queue is above the threshold. */
nn_inline void nn_nice_yield(struct nn_nice *s, const struct nn_nice_cfg *c,
			     const struct nn_ack *a)
{
	u64 cwnd = s->vegas.window.cwnd;
	u64 share = nn_min(cwnd < NN_BURST * NN_ONE ? c->shrink : c->decrease, NN_ONE);
	u64 least = nn_sparse_least(c->least, c->together, a);

	/* 36 + 16 bits */
	nn_window_shrink(&s->vegas.window, nn_min(nn_max(cwnd * share / NN_ONE, least), cwnd));
}

/* The end of a round, or of as much of it as it took to see that it is congested. */
nn_inline void nn_nice_round(struct nn_nice *s, const struct nn_nice_cfg *c,
			     const struct nn_ack *a)
{
	int quiet = !s->congested && nn_nice_quiet(s, c);

	if (s->congested && c->decrease < NN_ONE)
		nn_nice_yield(s, c, a);
	else if (s->congested || quiet)
		nn_vegas_avoid(&s->vegas, &c->vegas, nn_may_grow(a),
			       nn_min(s->vegas.window.cwnd, NN_ONE));
	nn_nice_age(s, c, a);
	nn_vegas_next_round(&s->vegas);
	nn_nice_next_round(s);
}

nn_inline void nn_nice_init(struct nn_nice *s, const struct nn_nice_cfg *c, struct nn_group *g,
			    const struct nn_ack *a, struct nn_ctl *ctl)
{
	ctl->cwnd_q16 = nn_min(ctl->cwnd_q16, NN_BURST * NN_ONE);
	nn_vegas_start(&s->vegas, a, ctl);
	s->aged_us = a->now_us;
	nn_nice_answer(s, c, a, ctl);
}

nn_inline void nn_nice_ack(struct nn_nice *s, const struct nn_nice_cfg *c, struct nn_group *g,
			   const struct nn_ack *a, struct nn_ctl *ctl)
{
	u64 cwnd = s->vegas.window.cwnd;
	u32 early;

	nn_nice_sample(s, c, a);
	if (nn_nice_quiet(s, c))
		nn_vegas_grow(&s->vegas, a);
	early = c->early && cwnd >= NN_BURST * NN_ONE && nn_nice_exceeds(s, c, cwnd);
	if (nn_round_over(&s->vegas.end, a) || early) {
		s->vegas.end = a->nxt;
		s->congested = nn_nice_exceeds(s, c, (u64)s->packets * NN_ONE);
		nn_nice_round(s, c, a);
	}
	nn_nice_answer(s, c, a, ctl);
}

nn_inline void nn_nice_event(struct nn_nice *s, const struct nn_nice_cfg *c, struct nn_group *g,
			     enum nn_event event, const struct nn_ack *a, struct nn_ctl *ctl)
{
	u64 least = nn_min(s->vegas.window.cwnd, nn_sparse_least(c->least, c->together, a));

	nn_vegas_react(&s->vegas, event, least, a, ctl);
	nn_nice_next_round(s);
	nn_nice_answer(s, c, a, ctl);
}

nn_inline void nn_nice_send(struct nn_nice *s, const struct nn_nice_cfg *c, struct nn_group *g,
			    const struct nn_ack *a, struct nn_ctl *ctl)
{
	nn_nice_answer(s, c, a, ctl);
	if (s->vegas.window.cwnd >= NN_BURST * NN_ONE || ctl->burst != 1)
		return;
	nn_sparse_part(&s->burst_us, s->vegas.bounds.base_us, a, ctl);
}

#define nn_nice_shown(S, s, c)                                                                     \
	nn_vegas_rule_shown(S, &(s)->vegas)                                                        \
	nn_show_max_rtt(S, (s)->vegas.bounds.top_us)

#endif
