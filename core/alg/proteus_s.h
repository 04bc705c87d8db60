/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Proteus-S: tries a little more and a little less, and goes where its utility is greater. The
 * RTT's deviation lowers the utility, and others' packets make RTTs deviate.
 *
 * T. Meng, N. Rozen Schiff, P. B. Godfrey, M. Schapira, "PCC Proteus: Scavenger Transport And
 * Beyond", SIGCOMM 2020, with the rate control of M. Dong and others, "PCC Vivace", NSDI 2018.
 * Time is parted into monitor intervals (MI) of an RTT. What is acknowledged of an MI that sent x
 * Mbit/s makes its utility:
 *
 *	u = x^0.9 - x (b max(0, dRTT/dT) + c L + d sigma)
 *
 * with the slope of a line through its RTTs, the share L of its packets lost, and the deviation
 * sigma of its RTTs. Noise is tolerated: where the line rises or falls by no more than RTTs are
 * off it, slope and sigma are 0 -- unless the means of the last six MIs have a trend that is
 * beyond 2 mean deviations of trends before, or sigma is above its own mean by 4.
 *
 *	starting --- u has fallen: the rate before ---> probing <------ u has fallen: the rate
 *	 rate x 2 in each step                            |             before -----+
 *	                                                  v                         |
 *	   three pairs of MIs at r (1 + eps), r (1 - eps): where most have the greater u
 *	                                                  |                         |
 *	                                                  +------> moving ----------+
 *	                           r +- min(theta m(t) |du/dr|, w r), t = 1, 2, 3, 4: m = 1, 2, 3, 5
 *
 * w is `bound`, and `widen` more for each step in a row that it cut. A step is an MI, and another
 * one at the same rate in which the first is acknowledged.
 *
 * RTTs do not count, either, from an ACK on that is 50 times as far from the last one as that from
 * the one before, or the other way round, until an RTT is no longer than their mean.
 *
 * What each of two flows sees of the other's probes hides what its own do. With 20 Mbit/s for each
 * they share; with 10, one may have five times as much as the other for a minute.
 *
 * Deviations from the papers, and what they leave open:
 * - A packet is of the MI in which it left, now - RTT. A loss is of the MI whose ACK tells of it.
 * - x is the rate that the flow set out to send. An MI says nothing in which the application had
 *   less to send. Where less than 3/4 of x left, as in TCP's recovery, the rate is what left, and
 *   it begins to probe.
 * - Integers: Q16, the RTT of an MI within half a second of its first, 4096 samples at most.
 * - A packet is paced with a second one, which saves it the delay of a receiver's ACK, and above
 *   3000 packets/s with what leaves in a millisecond. An MI has ten packets at least.
 * - ACKs that may be delayed (measure/rtt.h) say nothing of the RTT.
 * - Four MIs are known at most; the last one goes on until the first is acknowledged.
 * - sigma is judged by its own mean, and both means have TCP's gain of 1/8; what is not tolerated
 *   does not enter them.
 * - The rate is `slowest` or more. Two of three pairs decide; in the authors' code, all three do
 *   before a scavenger sends more (two flows on 20 Mbit/s: Jain .58, not .81). m, w are Vivace's.
 * - A window bounds what is in flight to 2 x RTT, four packets at least; it grows by what is
 *   acknowledged. A timeout makes it one packet, halves the rate, and begins to probe.
 * - An ECN mark is a loss. No other event (a loss, an undo, a rest) changes the rate by itself.
 * - The flow starts with TCP's initial window, and with the rate that this is in the first RTT.
 *
 * Range: rates are Q16 Mbit/s, below 2^31. See the products.
 */
#ifndef NN_ALG_PROTEUS_S_H
#define NN_ALG_PROTEUS_S_H

#include "../measure/rtt.h"
#include "../measure/trend.h"
#include "../window/window.h"

#define NN_ALONE	/* it measures what its own packets do (core/flow.h) */

#define nn_proteus_s_summary \
	"Proteus-S: sends at the rate of the greatest utility, which RTTs that deviate lower"

#define nn_proteus_s_traits (NN_TIMED)

#define nn_proteus_s_params(P)                                                                     \
	P(b, 900.0, 0.0, 10000.0, "per unit of slope", "Vivace, Proteus",                              \
	  "how much an RTT that rises lowers the utility of each Mbit/s")                          \
	P(c, 11.35, 0.0, 1000.0, "per share lost", "Vivace, Proteus",                                  \
	  "how much losses lower it")                                                              \
	P(d, 1500.0, 0.0, 10000.0, "per second", "Proteus",                                    \
	  "how much the RTT's standard deviation lowers it; 0: Proteus-P")                         \
	P(eps, 0.05, 0.01, 0.5, "share of the rate", "Vivace",                                 \
	  "probes are so much above and below the rate")                                           \
	P(theta, 1.0, 0.01, 100.0, "Mbit/s", "Vivace",                                         \
	  "step for a utility that grows by 1 for each Mbit/s")                                    \
	P(bound, 0.05, 0.0, 1.0, "share of the rate", "Vivace, omega",                         \
	  "the first step is no longer than this")                                                 \
	P(widen, 0.1, 0.0, 1.0, "share of the rate", "Vivace, delta",                          \
	  "by how much the bound grows with each step that it cuts")                               \
	P(trend, 2.0, 0.0, 100.0, "mean deviations", "Proteus",                              \
	  "trends of the RTT that are tolerated")                                                  \
	P(deviates, 4.0, 0.0, 100.0, "mean deviations", "Proteus",                           \
	  "deviations of the RTT that are tolerated")                                              \
	P(slowest, 0.1, 0.01, 10.0, "Mbit/s", "not in Proteus",                                    \
	  "the rate is never below this")

#define NN_PROTEUS_S_MIS 4u
#define NN_PROTEUS_S_PROBES 6u		/* three pairs */
#define NN_PROTEUS_S_PACKETS 10u
#define NN_PROTEUS_S_APART 50u		/* times as far from the next ACK as from the last: noise */
#define NN_PROTEUS_S_RATE_MAX ((u64)1 << 31)
#define NN_PROTEUS_S_UTILITY_MAX ((u64)1 << 46)

struct nn_proteus_s_cfg {
	nn_proteus_s_params(NN_FIELD)
};

enum nn_proteus_s_phase {
	NN_PROTEUS_S_START,
	NN_PROTEUS_S_PROBE,
	NN_PROTEUS_S_MOVE,
};

struct nn_proteus_s_mi {
	u64 start_us;
	u32 rate;
	u32 lasts_us;
	u32 role;	/* 0: its utility is not asked for; else 1 + its place in `utility` */
	u32 before;	/* packets sent before it */
};

/* What is acknowledged of one MI. */
struct nn_proteus_s_sums {
	struct nn_line line;
	u32 acked, lost;
	u32 useless;	/* the application had less to send */
	u32 reserved;
};

struct nn_proteus_s {
	struct nn_window window;	/* ssthresh: what the rate allows */
	struct nn_proteus_s_mi mi[NN_PROTEUS_S_MIS];
	struct nn_proteus_s_sums sums;	/* of mi[head] */
	s64 utility[NN_PROTEUS_S_PROBES]; /* of each pair, the slower one's first */
	s64 last;		/* starting, moving: the utility before, at last_rate */
	struct nn_trend trend;
	u64 random;		/* state of the flow's own generator */
	u64 ack_us;		/* clock of the last ACK */
	u32 rate, last_rate;	/* Mbit/s of payload, Q16; 0: not yet */
	u32 head, count;	/* MIs that are known: the last one is being sent */
	u32 phase;		/* enum nn_proteus_s_phase */
	u32 sent, got;		/* MIs whose utility is asked for; and known */
	u32 order;		/* which of a pair is the faster one: a bit for each */
	u32 down, turns, wider;	/* direction, t, and steps in a row that were cut */
	u32 apart_us;		/* the last ACK came so long after the one before */
	u32 noisy;		/* no RTTs until one is below their mean */
	u32 rtt8_us;		/* 8 times that */
	u32 pairs;		/* measure/rtt.h */
	u32 ended;		/* packets acknowledged or lost */
};

/* ---- 1. The utility of an MI -------------------------------------------- */

/* x^0.9 is x over the tenth root of x, found bit by bit: below 4. 17 + 17 and 32 + 21 bits. */
nn_inline u64 nn_proteus_s_power(u64 x)
{
	u64 root = 0;

	for (int bit = 17; bit >= 0; bit--) {
		u64 next = root + (1ull << bit);
		u64 to_2 = next * next >> 16, to_4 = to_2 * to_2 >> 16;

		root = next - (nn_negative(x - ((to_4 * to_4 >> 16) * to_2 >> 16)) << bit);
	}
	return (x << 16) / nn_max(root, 1);
}

/* What an Mbit/s of the MI costs, Q16. */
nn_inline u64 nn_proteus_s_cost(struct nn_proteus_s *s, const struct nn_proteus_s_cfg *c,
				const struct nn_proteus_s_mi *mi)
{
	const struct nn_proteus_s_sums *m = &s->sums;
	struct nn_line_fit fit = nn_line_fit(&m->line);
	int steep = fit.rise_us * fit.rise_us > fit.off;
	int trends = nn_trend_mean(&s->trend, fit.mean_us, c->trend);
	int deviates = nn_trend_deviation(&s->trend, fit.var, c->deviates);
	u64 cost;

	/* 24 + 20 bits */
	cost = (u64)c->c * m->lost / nn_max(m->acked + (u64)m->lost, 1);
	/* 30 + 20 bits */
	if (!fit.falls && (steep || trends))
		cost += c->b * fit.rise_us / nn_max(mi->lasts_us, 1);
	/* 30 + 23 bits */
	if (steep || trends || deviates)
		cost += (u64)c->d * s->trend.sigma16 / 16000000;
	return nn_min(cost, ~0u);
}

/* 31 + 32 bits. */
nn_inline s64 nn_proteus_s_utility(struct nn_proteus_s *s, const struct nn_proteus_s_cfg *c,
				   const struct nn_proteus_s_mi *mi)
{
	u64 cost = mi->rate * nn_proteus_s_cost(s, c, mi) >> 16;

	return (s64)nn_proteus_s_power(mi->rate) - (s64)nn_min(cost, NN_PROTEUS_S_UTILITY_MAX);
}

/* ---- 2. The rate -------------------------------------------------------- */

nn_inline void nn_proteus_s_set(struct nn_proteus_s *s, const struct nn_proteus_s_cfg *c, u64 rate)
{
	s->rate = (u32)nn_min(nn_max(rate, c->slowest), NN_PROTEUS_S_RATE_MAX);
}

/* Begins a phase: what was asked of MIs before is asked no more. */
nn_inline void nn_proteus_s_enter(struct nn_proteus_s *s, enum nn_proteus_s_phase phase)
{
	s->phase = phase;
	s->sent = s->got = 0;
	for (u32 i = 0; i < NN_PROTEUS_S_MIS; i++)
		s->mi[i].role = 0;
	if (phase == NN_PROTEUS_S_PROBE) {
		s->order = (u32)(nn_random(&s->random) >> 61);
		s->wider = 0;
	}
}

/* A step from `last_rate`, for a utility that differs by `more` over `apart`. */
nn_inline void nn_proteus_s_step(struct nn_proteus_s *s, const struct nn_proteus_s_cfg *c, u64 more,
				 u64 apart)
{
	u64 times = s->turns <= 3 ? s->turns : 2 * s->turns - 3;
	/* 46 + 16 bits, then 32; 32 + 23 and + 7 */
	u64 slope = nn_min(nn_min(more, NN_PROTEUS_S_UTILITY_MAX) * NN_ONE / nn_max(apart, 1), ~0u);
	u64 step = (slope * c->theta >> 16) * times;
	/* 31 + 20 bits */
	u64 most = (u64)s->last_rate * (c->bound + s->wider * (u64)c->widen) >> 16;

	if (step > most) {
		step = most;
		s->wider = (u32)nn_min(s->wider + 1, 10);
	} else if (s->wider) {
		s->wider--;
	}
	nn_proteus_s_set(s, c, s->down ? s->last_rate - nn_min(step, s->last_rate) :
					 s->last_rate + step);
	s->turns = (u32)nn_min(s->turns + 1, 64);
	s->sent = 0;
}

/* The rate of a probe, Q16. 31 + 17 bits. */
nn_inline u64 nn_proteus_s_probe(const struct nn_proteus_s *s, const struct nn_proteus_s_cfg *c,
				 int faster)
{
	u64 rate = (u64)s->rate * (faster ? NN_ONE + c->eps : NN_ONE - nn_min(c->eps, NN_ONE)) >> 16;

	return nn_min(nn_max(rate, 1), NN_PROTEUS_S_RATE_MAX);
}

/* All probes are known: where most pairs have the greater utility. */
nn_inline void nn_proteus_s_decide(struct nn_proteus_s *s, const struct nn_proteus_s_cfg *c)
{
	u64 apart = nn_proteus_s_probe(s, c, 1) - nn_proteus_s_probe(s, c, 0);
	u64 more = 0, agree = 0;
	u32 rise = 0;

	for (u32 i = 0; i < NN_PROTEUS_S_PROBES; i += 2)
		rise += s->utility[i + 1] > s->utility[i];
	s->down = rise < 2;
	s->last_rate = (u32)nn_proteus_s_probe(s, c, !s->down);
	for (u32 i = 0; i < NN_PROTEUS_S_PROBES; i += 2) {
		s64 slow = s->utility[i], fast = s->utility[i + 1];

		if ((fast > slow) == s->down)
			continue;
		s->last = s->down ? slow : fast;
		more += nn_min(nn_abs(fast - slow), NN_PROTEUS_S_UTILITY_MAX);
		agree++;
	}
	s->turns = 1;
	nn_proteus_s_enter(s, NN_PROTEUS_S_MOVE);
	nn_proteus_s_step(s, c, more / nn_max(agree, 1), apart);
}

/* The utility of a step. */
nn_inline void nn_proteus_s_move(struct nn_proteus_s *s, const struct nn_proteus_s_cfg *c,
				 s64 utility, u32 rate)
{
	u64 apart = nn_abs((s64)rate - s->last_rate);
	u64 more = nn_abs(utility - s->last);
	u32 falls = (utility < s->last) != (rate < s->last_rate); /* with a greater rate */

	if (!more || !apart || falls != s->down) {
		nn_proteus_s_set(s, c, s->last_rate);
		nn_proteus_s_enter(s, NN_PROTEUS_S_PROBE);
		return;
	}
	s->last = utility;
	s->last_rate = rate;
	nn_proteus_s_step(s, c, more, apart);
}

nn_inline void nn_proteus_s_start(struct nn_proteus_s *s, const struct nn_proteus_s_cfg *c,
				  s64 utility, u32 rate)
{
	if (s->last_rate && utility <= s->last) {
		nn_proteus_s_set(s, c, s->last_rate);
		nn_proteus_s_enter(s, NN_PROTEUS_S_PROBE);
		return;
	}
	s->last = utility;
	s->last_rate = rate;
	nn_proteus_s_set(s, c, 2 * (u64)rate);
	s->sent = 0;
}

/* ---- 3. Monitor intervals ----------------------------------------------- */

/* All of the first MI is acknowledged. */
nn_inline void nn_proteus_s_finish(struct nn_proteus_s *s, const struct nn_proteus_s_cfg *c,
				   const struct nn_ack *a)
{
	const struct nn_proteus_s_mi mi = s->mi[s->head & (NN_PROTEUS_S_MIS - 1)];
	const struct nn_proteus_s_mi *next = &s->mi[(s->head + 1) & (NN_PROTEUS_S_MIS - 1)];
	u64 lasted = nn_min(nn_max(next->start_us - mi.start_us, 1), NN_RTT_MAX);
	/* 21 + 16 + 19 bits */
	u64 sent = nn_min(next->before - mi.before, 2 * NN_ACKED_MAX) * nn_mss(a) * 8 * NN_ONE / lasted;
	/* one that a decision cut short may have sent nothing */
	int slow = !s->sums.useless && lasted >= mi.lasts_us && sent < mi.rate / 4 * 3;
	int useless = s->sums.useless || slow || !(s->sums.acked | s->sums.lost);
	s64 utility = 0;

	if (!useless)
		utility = nn_proteus_s_utility(s, c, &mi);
	s->sums = (struct nn_proteus_s_sums){ 0 };
	s->head = (s->head + 1) & (NN_PROTEUS_S_MIS - 1);
	s->count--;
	if (slow && sent < s->rate) {
		nn_proteus_s_set(s, c, sent);
		nn_proteus_s_enter(s, NN_PROTEUS_S_PROBE);
	}
	if (!mi.role || slow)
		return;
	if (useless) {
		nn_proteus_s_enter(s, s->phase);
	} else if (s->phase == NN_PROTEUS_S_START) {
		nn_proteus_s_start(s, c, utility, mi.rate);
	} else if (s->phase == NN_PROTEUS_S_MOVE) {
		nn_proteus_s_move(s, c, utility, mi.rate);
	} else {
		u32 at = mi.role - 1;

		if (at < NN_PROTEUS_S_PROBES)
			s->utility[at] = utility;
		if (++s->got == NN_PROTEUS_S_PROBES)
			nn_proteus_s_decide(s, c);
	}
}

/* The next MI begins. 4 + 16 + 19 bits. */
nn_inline void nn_proteus_s_begin(struct nn_proteus_s *s, const struct nn_proteus_s_cfg *c,
				  const struct nn_ack *a)
{
	struct nn_proteus_s_mi *mi = &s->mi[(s->head + s->count) & (NN_PROTEUS_S_MIS - 1)];
	u64 packets_us, srtt = nn_min(a->srtt_us, NN_RTT_MAX);

	mi->start_us = a->now_us;
	mi->rate = s->rate;
	mi->before = s->ended + (u32)nn_min(a->inflight, NN_ACKED_MAX);
	mi->role = 0;
	if (s->phase == NN_PROTEUS_S_PROBE && s->sent < NN_PROTEUS_S_PROBES) {
		u32 pair = s->sent / 2, faster = (s->order >> pair ^ s->sent) & 1;

		mi->rate = (u32)nn_proteus_s_probe(s, c, (int)faster);
		mi->role = 1 + 2 * pair + faster;
		s->sent++;
	} else if (!s->sent) {
		mi->role = ++s->sent;
	}
	packets_us = NN_PROTEUS_S_PACKETS * 8 * (u64)NN_ONE * nn_mss(a) / nn_max(mi->rate, 1);
	mi->lasts_us = (u32)nn_min(nn_max(srtt, packets_us), NN_RTT_MAX);
	s->count++;
	/* 31 + 27 bits, over 4 */
	s->window.ssthresh = nn_clamp_cwnd(mi->rate * srtt / (4 * (u64)nn_mss(a)),
					   2 * NN_BURST * NN_ONE);
}

nn_inline const struct nn_proteus_s_mi *nn_proteus_s_sending(const struct nn_proteus_s *s)
{
	return &s->mi[(s->head + s->count - 1) & (NN_PROTEUS_S_MIS - 1)];
}

/* Whether the next MI is due: the time of this one is over, or it waits for what is known by now. */
nn_inline int nn_proteus_s_due(struct nn_proteus_s *s, const struct nn_ack *a)
{
	const struct nn_proteus_s_mi *mi = nn_proteus_s_sending(s);

	if (s->count >= NN_PROTEUS_S_MIS)
		return 0;
	return !s->count || (!mi->role && !s->sent) || a->now_us - mi->start_us >= mi->lasts_us;
}

/* Whether the RTT of the ACK tells of the path, and not of when ACKs come. */
nn_inline int nn_proteus_s_reliable(struct nn_proteus_s *s, const struct nn_ack *a, u32 rtt)
{
	u64 apart = nn_max(nn_min(a->now_us - s->ack_us, NN_RTT_MAX), 1);
	int late = nn_rtt_late(a, s->pairs);

	nn_rtt_note(&s->pairs, a);
	if (s->apart_us && (apart > NN_PROTEUS_S_APART * (u64)s->apart_us ||
			    s->apart_us > NN_PROTEUS_S_APART * apart))
		s->noisy = 1;
	s->apart_us = (u32)apart;
	s->ack_us = a->now_us;
	if (!rtt || late)
		return 0;
	s->rtt8_us = s->rtt8_us ? s->rtt8_us + rtt - s->rtt8_us / 8 : 8 * rtt;
	if (rtt <= s->rtt8_us / 8)
		s->noisy = 0;
	return !s->noisy;
}

/* Counts an ACK for the MI in which its packet left. */
nn_inline void nn_proteus_s_count(struct nn_proteus_s *s, const struct nn_ack *a, u32 rtt,
				  int reliable)
{
	const struct nn_proteus_s_mi *mi = &s->mi[s->head & (NN_PROTEUS_S_MIS - 1)];
	struct nn_proteus_s_sums *m = &s->sums;

	m->acked = (u32)nn_min((u64)m->acked + nn_acked(a), NN_ACKED_MAX);
	m->lost = (u32)nn_min((u64)m->lost + a->lost, NN_ACKED_MAX);
	if (a->flags & NN_ACK_APP_LIMITED)
		m->useless = 1;
	if (reliable)
		nn_line_add(&m->line, a->now_us - rtt - mi->start_us, mi->lasts_us, rtt);
}

/* ---- 4. The answer ------------------------------------------------------ */

/* Pairs, or what leaves in a millisecond or an eighth of the MI. 31 + 10 bits; 6 + 16 + 19. */
nn_inline void nn_proteus_s_answer(struct nn_proteus_s *s, const struct nn_ack *a, struct nn_ctl *ctl)
{
	const struct nn_proteus_s_mi *mi = nn_proteus_s_sending(s);
	u64 rate = nn_max(mi->rate, 1), packet = 8 * (u64)NN_ONE * nn_mss(a);

	s->window.cwnd = nn_min(s->window.cwnd, s->window.ssthresh);
	nn_window_answer(&s->window, ctl);
	if (!s->count)
		return;
	ctl->burst = (u32)nn_min(rate * nn_min(mi->lasts_us / 8, 1000) / packet, NN_BURST_MAX);
	ctl->burst = (u32)nn_max(ctl->burst, NN_BURST);
	ctl->gap_us = nn_min(nn_max(ctl->burst * packet / rate, 1), NN_GAP_MAX);
	if (s->phase == NN_PROTEUS_S_MOVE && s->down)
		ctl->flags |= NN_CTL_YIELDING;
}

nn_inline void nn_proteus_s_init(struct nn_proteus_s *s, const struct nn_proteus_s_cfg *c,
				 struct nn_group *g, const struct nn_ack *a, struct nn_ctl *ctl)
{
	nn_window_start(&s->window, ctl);
	s->ack_us = a->now_us;
	nn_proteus_s_answer(s, a, ctl);
}

nn_inline void nn_proteus_s_ack(struct nn_proteus_s *s, const struct nn_proteus_s_cfg *c,
				struct nn_group *g, const struct nn_ack *a, struct nn_ctl *ctl)
{
	u32 rtt = nn_rtt(a), srtt = (u32)nn_min(a->srtt_us, NN_RTT_MAX);
	int reliable = nn_proteus_s_reliable(s, a, rtt);
	const struct nn_proteus_s_mi *next = &s->mi[(s->head + 1) & (NN_PROTEUS_S_MIS - 1)];

	if (!s->rate && srtt) /* 36 + 19 bits */
		nn_proteus_s_set(s, c, s->window.cwnd * 8 * nn_mss(a) / srtt);
	if (s->count > 1 && rtt && (s64)(a->now_us - rtt - next->start_us) >= 0)
		nn_proteus_s_finish(s, c, a);
	nn_reload();
	s->ended += nn_acked(a) + (u32)nn_min(a->lost, NN_ACKED_MAX);
	if (s->count)
		nn_proteus_s_count(s, a, rtt, reliable);
	nn_reload();
	if (s->rate && srtt && nn_proteus_s_due(s, a))
		nn_proteus_s_begin(s, c, a);
	if (nn_may_grow(a))
		nn_window_slow_start(&s->window, nn_acked(a));
	nn_proteus_s_answer(s, a, ctl);
}

nn_inline void nn_proteus_s_event(struct nn_proteus_s *s, const struct nn_proteus_s_cfg *c,
				  struct nn_group *g, enum nn_event event, const struct nn_ack *a,
				  struct nn_ctl *ctl)
{
	if (event == NN_ECN)
		s->sums.lost = (u32)nn_min((u64)s->sums.lost + 1, NN_ACKED_MAX);
	if (event == NN_TIMEOUT || event == NN_IDLE)
		s->sums.useless = 1;
	if (event == NN_IDLE)
		s->window.cwnd = nn_clamp_cwnd(nn_min(s->window.cwnd, ctl->cwnd_q16), NN_ONE);
	if (event == NN_TIMEOUT) {
		s->window.cwnd = nn_min(s->window.cwnd, NN_ONE);
		if (s->rate)
			nn_proteus_s_set(s, c, s->rate / 2);
		nn_proteus_s_enter(s, NN_PROTEUS_S_PROBE);
	}
	nn_proteus_s_answer(s, a, ctl);
}

#define nn_proteus_s_send nn_no_send

#define nn_proteus_s_shown(S, s, c)                                                                \
	S(rate, mbit, "rate around which it looks for a better one", (s)->rate)                    \
	S(deviation, us, "standard deviation of the RTT in the last interval", (s)->trend.sigma16 / 16)

#endif
