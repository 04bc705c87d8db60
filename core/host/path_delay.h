/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * How long a packet waited at the bottleneck: RTT - base - jitter, and not on its way back.
 *
 *	base	the least RTT of the connection in two windows of 5 s. A handshake's is none:
 *		small packets are faster on a slow link.
 *	back	ACKs wait too, where others load the way back. The receiver's time stamps (RFC 7323) show
 *		when an ACK left, by its clock: out = stamp - departure, and a constant.
 *		wait = min(RTT - least RTT, out - least out); the ACK's wait back is the rest of the RTT's.
 *		A stamp is rounded down: out - least out is too high by up to a tick. So if both are less
 *		than a tick apart, it is the RTT's. A tick is taken for 1 ms, Linux's and Windows', until after
 *		a second it is known whether it is 1 us instead. Another clock, or none: RTTs alone
 *	jitter	what delays vary by though nothing waits: 3/2 of the greatest unexplained delay of the
 *		quietest round (8 ACKs and a round trip at least) in two windows of 5 s; 15 ms at most. Of
 *		more ACKs, one would always meet the queue of others: where it is at most 15 ms, nothing
 *		would be left to show them. The first ACK of a connection shows no delay.
 *		The slack of v explains none: as v drains later, the queue is empty before it
 *
 * One's own standing queue looks like either. So when a base or the jitter rises, three rounds
 * go at half the rate: one's own queue drains then, the path's delay stays.
 */
#ifndef NN_PATH_DELAY_H
#define NN_PATH_DELAY_H

#include "path_state.h"

#define NN_PATH_MS (NN_PATH_S / 1000)
#define NN_PATH_WINDOW (5 * NN_PATH_S)
#define NN_PATH_JITTER_MAX 15000000ull
#define NN_PATH_ROUND 8u	/* ACKs */
#define NN_PATH_QUIET 3u	/* rounds at half the rate */
#define NN_PATH_CLOCK (1000 * NN_PATH_S) /* after such a rest stamps of 32 bits may have wrapped */

/* Values wrap, as clocks that drift apart make their differences do. */
nn_inline u64 nn_path_lesser(u64 a, u64 b)
{
	return (s64)(a - b) < 0 ? a : b;
}

/* A window ends with this value; 1: the least rose by more than a millisecond. */
nn_inline int nn_path_turn(struct nn_path_least *l, u64 value)
{
	int rose = l->of[1] && (s64)(nn_path_lesser(l->of[0], value) - l->of[1]) > (s64)NN_PATH_MS;

	l->of[1] = l->of[0];
	l->of[0] = value;
	return rose;
}

/* How far a value is above the least. */
nn_inline u64 nn_path_above(struct nn_path_least *l, u64 value)
{
	l->of[0] = l->of[0] ? nn_path_lesser(l->of[0], value) : value;
	return value - (l->of[1] ? nn_path_lesser(l->of[0], l->of[1]) : l->of[0]);
}

/* Whether the receiver's clock goes as ours does. */
nn_inline int nn_path_in_step(u64 theirs, u64 ours)
{
	return theirs > ours / 2 && theirs < ours * 2;
}

/* Is a tick a millisecond, as was assumed, or a microsecond? */
nn_inline void nn_path_know_tick(struct nn_path_base *base, u64 now)
{
	u64 theirs = base->clock - base->began, ours = now - base->began;

	base->known = 1;
	if (nn_path_in_step(theirs, ours))
		return;
	base->tick = nn_path_in_step(theirs / 1000, ours) ? base->tick / 1000 : 0;
	base->out = (struct nn_path_least){};
}

/* The receiver's clock when it sent an ACK with this stamp; 0: not known. */
nn_inline u64 nn_path_clock(struct nn_path_base *base, u64 now, u32 stamp)
{
	u32 ticks = stamp - base->stamp;

	if (!stamp)
		return 0;
	if (!base->began || now > base->at + NN_PATH_CLOCK) {
		base->clock = base->began = now;
		base->tick = NN_PATH_MS;
		base->out = (struct nn_path_least){};
		base->known = ticks = 0;
	}
	if (ticks >> 31)
		return base->clock; /* this ACK was overtaken */
	base->clock += ticks * base->tick;
	base->stamp = stamp;
	if (!base->known && now >= base->began + NN_PATH_S)
		nn_path_know_tick(base, now);
	return base->tick ? base->clock : 0;
}

/*
 * How long a packet waited on its way out, ns: what of its RTT, or of its way out if the receiver's
 * clock is known, is above the least. `back` is what its ACK waited, as soon as that is sure.
 */
nn_inline u64 nn_path_delay(struct nn_path *p, struct nn_path_base *base, u64 now,
			    const struct nn_path_sent *sent, u32 stamp, u64 *back)
{
	/* one that left although v was long says nothing of an empty path */
	int queued = p->mu && sent->v > 2 * nn_path_slack(p);
	u64 rtt = nn_min(nn_max(now - nn_min(sent->at, now), 1), NN_PATH_DELAY_MAX);
	u64 clock = nn_path_clock(base, now, stamp);
	u64 out = clock ? clock - sent->at : 0, wait;

	if (!base->rtt.of[0])
		base->since = now;
	if (now >= base->since + NN_PATH_WINDOW && !queued) {
		int rose = nn_path_turn(&base->rtt, rtt);
		int rose_out = !out || nn_path_turn(&base->out, out);

		p->moved |= rose && rose_out;
		base->since = now;
	}
	p->rtt = !p->rtt || rtt < p->rtt ? rtt : p->rtt + (rtt - p->rtt) / 256;
	rtt = wait = nn_path_above(&base->rtt, rtt);
	if (out) {
		out = nn_path_above(&base->out, out);
		/* less than a tick apart is alike */
		wait = out + base->tick < rtt ? out : rtt;
	}
	*back = base->known ? rtt - wait : 0;
	return wait;
}

/* The jitter, of a path whose rate is known. `v` is what the packet met of the virtual queue. */
nn_inline u64 nn_path_jitter(struct nn_path *p, u64 now, u64 q, u64 v)
{
	u64 known = (v - nn_min(v, nn_path_slack(p))) / p->mu;
	u64 floor;

	p->round_n++;
	p->round_max = nn_max(p->round_max, q > known ? q - known : 0);
	if (p->round_n >= NN_PATH_ROUND && now >= p->round_at + p->rtt) {
		if (now >= p->floor_at + NN_PATH_WINDOW) {
			u64 was = p->floor[0];

			if (p->moved || (was != ~0ull &&
					 was * p->mu > NN_PATH_PACKET * NN_PATH_S * 3 / 10))
				p->quiet_rounds = NN_PATH_QUIET;
			p->moved = 0;
			p->floor[1] = was;
			p->floor[0] = ~0ull;
			p->floor_at = now;
		} else if (p->quiet_rounds) {
			nn_path_pass(p, now);
			p->quiet_rounds--;
		}
		p->floor[0] = nn_min(p->floor[0], p->round_max);
		p->round_at = now;
		p->round_n = 0;
		p->round_max = 0;
	}
	floor = nn_min(p->floor[0], p->floor[1]);
	p->jitter = floor == ~0ull ? 0 : nn_min(floor / 2 * 3, NN_PATH_JITTER_MAX);
	return p->jitter;
}

#endif
