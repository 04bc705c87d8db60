/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Groups for any algorithm: one copy of the algorithm for each connection, and
 * connections that share the sum of the windows.
 *
 * The group keeps one state of the algorithm per member. C_j is the window that state j
 * answered last, and C their sum. An ACK of any member is given to the state of one
 * window, drawn with probability C_j / C. So each state sees as many ACKs in a round trip
 * as its own window has packets, whoever sent them: as it would alone. Member i may have
 * its share of the sum in flight, A_i = x_i C.
 *
 *	ACKs of member i --+                    +--> state 1 --> C_1 --+
 *	                   +--> drawn: C_j/C ---+--> state j --> C_j --+--> C
 *	ACKs of member k --+                    +--> state n --> C_n --+
 *	                                             A_i = x_i C <-----+
 *
 * aggregate/group.h divides C; aggregate/windows.h draws the window, as for Reno's in MPAT.
 * A group is in the background if its algorithm is. docs/design/groups.md says why the
 * rules below are as they are, with figures.
 *
 * What a state is told in such an ACK:
 * - una, nxt: the time, and the time a smoothed RTT later, in units of 64 us. So a round
 *   of any window lasts a smoothed RTT. A rest of the group counts as 19 hours at most;
 * - acked: at most the window and 1, so that a run of a large member does not lift a small
 *   window;
 * - inflight: times C_j / A_i, since the member fills A_i;
 * - app-limited: if no member has data. An idle member's window stays.
 *
 * Events. A window loses at most once in a smoothed RTT. Losses are also heard at each ACK
 * that counts some. A timeout goes to the window charged at present, an undo to the one
 * cut last, a member's rest to none.
 *
 * Pace. Members let NN_ANY_PACE A_i packets leave in a smoothed RTT.
 *
 * Lag. The virtual time of a member is its packets over its share, that of the group all
 * packets over all shares (P. Goyal, H. Vin, H. Cheng, "Start-time Fair Queueing", SIGCOMM
 * 1996). What a member is behind is added to A_i, which at most doubles. Half of what it is
 * ahead is taken from A_i, which at most halves.
 *
 * Different paths. If members go to different hosts (`apart`):
 * - A state is told RTTs as if every member had the least RTT of all: what an RTT is above
 *   the member's own least counts. Otherwise the longer path of one member is a queue to
 *   the window of another.
 * - A member also keeps a state for its own packets on its own path (`own`). It never has
 *   more in flight than that window times its share over the mean share, and times one at
 *   least. So users of its path notice no more of it than of so many connections. Others
 *   use what it leaves.
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
#define NN_ANY_ROUND_SHIFT 6	/* us to what rounds are counted in */
#define NN_ANY_REST (1u << 30)	/* of that, at most in a rest: rounds compare within 2^31 */
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

/* The time as the windows are told it. */
nn_inline u32 nn_any_time(struct nn_group *g, u64 now_us)
{
	u64 now = now_us >> NN_ANY_ROUND_SHIFT;
	u64 passed = now - g->seen;

	if (0 - passed > NN_ANY_REST) { /* else it is 0, or a processor's clock that is a little behind */
		g->rested += nn_max(passed, NN_ANY_REST) - NN_ANY_REST;
		g->seen = now;
	}
	return (u32)(g->seen - g->rested);
}

/* What an algorithm is told for the window of `m`, of what the host says of member `from`. */
nn_inline struct nn_ack nn_any_told(struct nn_group *g, const struct nn_member *m,
				    const struct nn_member *from, const struct nn_ack *a,
				    const struct nn_ctl *ctl)
{
	u64 most = nn_max(m->window.cwnd / NN_ONE + 1, NN_BURST);
	u32 srtt = (u32)nn_min(a->srtt_us, NN_RTT_MAX) >> NN_ANY_ROUND_SHIFT;
	struct nn_ack told = *a;

	if (a->rtt_us && from->base_us)
		told.rtt_us = (u32)(nn_max(a->rtt_us, from->base_us) - from->base_us + g->base_us);
	told.una = nn_any_time(g, a->now_us);
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
		cwnd = nn_max(nn_packets(cwnd), 1) * NN_ONE;
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
