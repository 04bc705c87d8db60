/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * How long a packet waited at the bottleneck, from its RTT: RTT - base - jitter.
 *
 *	base	the least RTT of the connection in two windows of 5 s. A handshake's is none:
 *		small packets are faster on a slow link.
 *	jitter	what delays vary by though nothing waits: 3/2 of the greatest unexplained delay of the
 *		quietest round (32 ACKs and a round trip at least) in two windows of 5 s; 15 ms at most.
 *		The slack of v explains none: as v drains later, the queue is empty before it
 *
 * One's own standing queue looks like either. So when a base or the jitter rises, three rounds
 * go at half the rate: one's own queue drains then, the path's delay stays.
 */
#ifndef NN_PATH_DELAY_H
#define NN_PATH_DELAY_H

#include "path_state.h"

#define NN_PATH_WINDOW (5 * NN_PATH_S)
#define NN_PATH_JITTER_MAX 15000000ull
#define NN_PATH_ROUND 32u	/* ACKs */
#define NN_PATH_QUIET 3u	/* rounds at half the rate */

/* The RTT's part above the least, ns. */
nn_inline u64 nn_path_delay(struct nn_path *p, struct nn_path_base *base, u64 now,
			    const struct nn_path_sent *sent)
{
	/* one that left although v was long says nothing of an empty path */
	int queued = p->mu && sent->v > 2 * nn_path_slack(p);
	u64 rtt = now - nn_min(sent->at, now);
	u64 least;

	rtt = nn_min(nn_max(rtt, 1), NN_PATH_DELAY_MAX);
	if (!base->least[0])
		base->since = now;
	if (now >= base->since + NN_PATH_WINDOW && !queued) {
		if (base->least[1] && nn_min(base->least[0], rtt) > base->least[1] + NN_PATH_S / 1000)
			p->moved = 1;
		base->least[1] = base->least[0];
		base->least[0] = rtt;
		base->since = now;
	}
	if (!base->least[0] || rtt < base->least[0])
		base->least[0] = rtt;
	least = base->least[1] ? nn_min(base->least[0], base->least[1]) : base->least[0];
	p->rtt = !p->rtt || rtt < p->rtt ? rtt : p->rtt + (rtt - p->rtt) / 256;
	return rtt - least;
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
