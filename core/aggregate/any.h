/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * A group whose windows are those of any algorithm: aggregate/group.h divides their
 * sum C, aggregate/windows.h draws the window that an ACK or a loss is charged to, as
 * for Reno's windows in MPAT. A group is in the background where its algorithm is.
 *
 * Each member brings a window, which is the algorithm's state for a flow (`state` of
 * struct nn_member) and what it answered last, C_j. An ACK of member i is given to the
 * algorithm with the state of window j, drawn with probability C_j / C: each window is
 * told of C_j packets in a round trip, whoever sent them, as it would be alone.
 *
 *	ACKs of member i --+                    +--> state 1 --> C_1 --+
 *	                   +--> drawn: C_j/C ---+--> state j --> C_j --+--> C
 *	ACKs of member k --+                    +--> state n --> C_n --+
 *	                                             A_i = x_i C <-----+
 *
 * (Members that run the algorithm on their own ACKs alone, as a group without shared
 * states would, react late: a window of six packets, whose owner sends two of them,
 * hears of a third of the congestion. Beside web-like fetches, four flows of Nice in
 * such a group were as much in the way as six to seven on their own.)
 *
 * What the algorithm is told in such an ACK:
 * - Rounds: una is the time, nxt the time a smoothed RTT later, in 64 us.
 * - acked: as it is, but no more than the window and 1, lest a run of a large member
 *   lifts a small window.
 * - inflight: scaled by C_j / A_i, since it is A_i that the member fills.
 * - app-limited: if no member has data. An idle member's window stays (aggregate/group.h).
 * Events likewise: a loss at most once in a smoothed RTT for a window, a timeout to the
 * window charged at present, an undo to the one cut last. A rest of a member is none of
 * the windows. Losses are also heard at each ACK that counts some (aggregate/windows.h): a
 * host gives NN_LOSS once for each window of a member's data, though its losses are of
 * several windows.
 *
 * Pace. Members let 1.5 A_i packets leave in a smoothed RTT (aggregate/group.h).
 *
 * Of windows of Reno at 1:2:3:4:5 beside five flows of Reno (33.5 Mbit/s, 70 ms), over what
 * five flows of Reno have there, ten seeds:
 *
 *						one way			both ways
 *	NN_LOSS alone, not paced		1.16 [1.13, 1.18]	0.91 [0.88, 0.94]
 *	losses at each ACK			1.04 [1.01, 1.06]	0.87 [0.83, 0.90]
 *	paced at 2				1.10 [1.07, 1.12]	1.10 [1.06, 1.14]
 *	both					0.97 [0.94, 1.00]	1.01 [0.97, 1.05]
 *	and all lags mended			0.94 [0.91, 0.96]	0.97 [0.94, 0.99]
 *	and runs of 0.6, not 0.3		0.95 [0.93, 0.97]	0.98 [0.94, 1.02]
 *	and paced at 1.5: as it is		0.97 [0.94, 1.00]	1.03 [0.99, 1.06]
 *
 * Runs of one mean window, paced at 2, had 0.98 both ways and one way. But a window is then
 * charged so seldom that one of Nice grows by 0.84 in a quiet RTT.
 *
 * Lag. What a member got is compared with its share of what all had: both in virtual
 * time, packets over shares (P. Goyal, H. Vin, H. Cheng, "Start-time Fair Queueing",
 * SIGCOMM 1996). The difference is added to A_i, which it halves or doubles at most. Without,
 * members of a few packets fall behind: of five windows of Reno as above the first had 0.96
 * of its part, 1.00 with it; two at 1:4 on a path of 0.1 ms were at 1:4.3, 1:4.0 with it. If
 * members are not paced, what ACKs of others add leaves as a burst: the group above had 0.68
 * of five flows and lost twice as many packets.
 *
 * Paths apart. If members go to different hosts, two things more (`apart`):
 * - RTTs are told as if all members had the least RTT of them: what is above the
 *   member's own least RTT counts. A window is told of all members' packets, and would
 *   take the longer path of another for a queue. Of four flows of Nice at 30 to 130 ms
 *   behind 8 Mbit/s each had 0.008 Mbit/s without this, and 0.03 to 0.26 with both.
 * - A member also keeps the algorithm's state for its own packets, on its own path, and
 *   never has more than this allows as many connections as its share is over the mean
 *   of the shares, and at least one. Elsewhere than at the bottleneck that is shared,
 *   others see no more of a member than of that. (Without: users of a modem's link,
 *   beside one of four members that had links of their own, took 3.3 times as long as
 *   without any; with: 1.04 to 1.06, and 1.02 beside a flow on its own.) What a member may not
 *   use is lent. The price is paid by small members of a shared bottleneck, who are told
 *   of congestion twice, and by members of a short path: docs/reproduction/mpat.md has figures.
 *
 * An algorithm that measures what its own packets get cannot do that in a group. Its
 * header defines NN_ALONE (core/flow.h), and its flows are on their own.
 *
 * Range: virtual time is 2^40 packets over shares of Q16, and wraps around; a packet
 * over the sum of the greatest shares is 2^4 of it. 20 + 40 bits. A share in units of the
 * mean share: 26 + 10 + 8 bits; that of a window: 36 + 18.
 */
#ifndef NN_ANY_H
#define NN_ANY_H

#include "windows.h"

#define NN_ANY_RUN NN_Q16(0.6)	/* times the mean window; see `run` of mpat.h */
#define NN_ANY_PACE NN_Q16(1.5)	/* times A_i; see `pace` of mpat.h */
#define NN_ANY_ROUND_SHIFT 6	/* us to what rounds are counted in: 2^31 of it are a day and a half */
#define NN_ANY_LAG 32u		/* packets at most that a member lacks or has beyond its share */
#define NN_ANY_FADE 8		/* a lag loses 1/2^8 with each ACK */
#define NN_ANY_LAG_SHIFT 40

/* A flow's part in its group. */
struct nn_any {
	struct nn_place place;
	struct nn_charge charge;
	/* if paths are apart: */
	u64 own;	/* the window that the algorithm allows the member on its own path, Q16 */
	u32 apart;	/* they are */
	u32 loose;	/* that window did not hold the member back at the last ACK */
};

/* What an algorithm is told for the window of `m`, of what the host says of member `from`. */
nn_inline struct nn_ack nn_any_told(const struct nn_group *g, const struct nn_member *m,
				    const struct nn_member *from, const struct nn_ack *a,
				    const struct nn_ctl *ctl)
{
	u64 most = nn_max(m->window.cwnd / NN_ONE + 1, NN_BURST);
	u32 srtt = (u32)nn_min(a->srtt_us, NN_RTT_MAX) >> NN_ANY_ROUND_SHIFT;
	struct nn_ack told = *a;

	if (a->rtt_us && from->base_us)
		told.rtt_us = (u32)(nn_max(a->rtt_us, from->base_us) - from->base_us + g->base_us);
	told.una = (u32)(a->now_us >> NN_ANY_ROUND_SHIFT);
	told.nxt = told.una + srtt - !!srtt; /* the round is over once that has passed, not after it */
	told.acked = (u32)nn_min(nn_acked(a), most);
	/* 20 + 36 bits */
	if (a->inflight && ctl->cwnd_q16)
		told.inflight = (u32)nn_max(nn_min(nn_min(a->inflight, NN_ACKED_MAX) * m->window.cwnd /
							   ctl->cwnd_q16, NN_ACKED_MAX), 1);
	told.flags &= ~NN_ACK_APP_LIMITED;
	told.flags |= g->eager ? 0 : NN_ACK_APP_LIMITED;
	return told;
}

/* The algorithm has answered for a window: C_j is that, from two packets on in whole ones. */
nn_inline void nn_any_answered(struct nn_group *g, u32 index, const struct nn_ctl *own)
{
	struct nn_member *m = nn_group_at(g, index);
	u64 before = m->window.cwnd, cwnd = nn_clamp_cwnd(own->cwnd_q16, 1);

	m->flags = own->flags;
	if (!own->gap_us || cwnd >= NN_BURST * NN_ONE)
		cwnd = nn_max(cwnd / NN_ONE, 1) * NN_ONE;
	m->window.cwnd = cwnd;
	nn_windows_mend(g, index, before);
}

/* Whether a loss is one of this window: at most one in a smoothed round trip is. */
nn_inline int nn_any_loses(struct nn_any *s, struct nn_group *g, u32 index, const struct nn_ack *a)
{
	struct nn_member *m = nn_group_at(g, index);

	if (nn_windows_held(m, a))
		return 0;
	m->held_us = a->now_us + nn_min(a->srtt_us, NN_RTT_MAX);
	s->charge.cut = index + 1;
	return 1;
}

/* Notes the RTT of an ACK, if paths are apart. */
nn_inline void nn_any_sample(struct nn_group *g, struct nn_member *m, const struct nn_ack *a)
{
	u32 rtt = nn_rtt(a);

	if (!g->apart || !rtt)
		return;
	m->base_us = m->base_us ? (u32)nn_min(m->base_us, rtt) : rtt;
	g->base_us = g->base_us ? (u32)nn_min(g->base_us, rtt) : rtt;
}

/* What a member may have in flight on its own path, Q16. */
nn_inline u64 nn_any_most(struct nn_any *s, const struct nn_group *g, const struct nn_member *m)
{
	u64 times = g->busy ? (u64)m->weight * g->eager * 256 / g->busy : 0;
	u64 most;

	if (!s->apart)
		return NN_CWND_MAX;
	times = nn_min(nn_max(times, 256), 256 * NN_GROUP_MAX);
	most = nn_min(s->own, NN_CWND_MAX) * times / 256;
	s->loose = most > nn_group_share(g, m, g->sum) + NN_ONE;
	return nn_min(most, NN_CWND_MAX);
}

/* A member got so many packets: virtual time passes, for all and for it. */
nn_inline void nn_any_got(struct nn_group *g, struct nn_member *m, u64 acked)
{
	u64 packets = acked << NN_ANY_LAG_SHIFT;
	u64 busy = g->busy + (m->limited == NN_LIMITED_IDLE ? m->weight : 0);
	s64 lag;
	u64 most = ((u64)NN_ANY_LAG << NN_ANY_LAG_SHIFT) / nn_max(m->weight, 1);

	g->virtual_time += packets / nn_max(busy, 1);
	m->virtual_time += packets / nn_max(m->weight, 1);
	/* Forgotten in time: members that come, go and rest leave lags that nobody makes up for. */
	lag = (s64)(g->virtual_time - m->virtual_time);
	if (lag > (s64)most)
		lag = (s64)most; /* what it left to others for long is theirs */
	else if (lag < -(s64)most)
		lag = -(s64)most;
	m->virtual_time = g->virtual_time - (u64)(lag - (lag >> NN_ANY_FADE));
}

/* A_i (Q16), with what the member lacks or has beyond its share. */
nn_inline u64 nn_any_mend(const struct nn_group *g, const struct nn_member *m, u64 share)
{
	s64 lag = (s64)(g->virtual_time - m->virtual_time);
	u64 most = (share << (NN_ANY_LAG_SHIFT - 16)) / nn_max(m->weight, 1); /* 36 + 24 bits */
	u64 part = nn_min(lag < 0 ? 0 - (u64)lag : (u64)lag, most) * m->weight >>
		   (NN_ANY_LAG_SHIFT - 16);

	return lag < 0 ? share - part / 2 : nn_min(share + part, NN_CWND_MAX);
}

#endif
