/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Other hosts at the bottleneck, whose packets this host does not see.
 *
 * An ACK that shows no queue of theirs lets as much leave as it acknowledges, and a little more. One that
 * shows a queue lets next to nothing leave. So each packet of the background follows one that found the link
 * free a round trip before: bursts of a transfer come a round trip apart, and it leaves between them. A
 * part of mu at even distances does twice the harm for the same share (docs/design/ebb-tried.md).
 *
 *	u	what a packet met that v does not explain (path.h), less what a probe adds, bytes
 *	T	a round: a round trip, 25 ms at least
 *
 *	n bytes delivered:		credit += n; mu RTT and two packets at most
 *	  u is less than two packets,	credit += mu dt/8 min(RTT / 25 ms, 1); dt since the last ACK, T at most
 *	  or .5 ms of mu:
 *	  u is more:			credit -= 7/8 n. For 2 s from now others are there
 *	  one packet, its ACK late:	credit += dt/T of a quarter packet. Where one packet is in flight, its
 *					receiver delays each ACK, and none tells whether there is a queue
 *	a packet leaves again, and	it was lost in their queue, and met the longest: mu dt/8 is not added for 8 T
 *	there was a queue in 2 T:
 *	a packet leaves:		credit -= its bytes
 *	gate, while others are there:	credit >= a packet, or none left for 4 T
 *
 * What is lost returns no credit. Packets whose ACKs nobody can read return it with the next ACK of one that
 * left later.
 *
 * Range: mu RTT and mu dt <= 4 * 10^9 * 2^31 = 8.6 * 10^18 before they are divided by 10^9.
 */
#ifndef NN_PATH_OTHERS_H
#define NN_PATH_OTHERS_H

#include "path_rate.h"

/* How long a round is, ns. */
nn_inline u64 nn_path_a_round(const struct nn_path *p)
{
	return nn_min(nn_max(p->rtt, NN_PATH_SHORTEST), NN_PATH_DELAY_MAX);
}

nn_inline void nn_path_give(struct nn_path *p, u64 bytes)
{
	u64 most = p->mu * nn_min(p->rtt, NN_PATH_DELAY_MAX) / NN_PATH_S + 2 * NN_PATH_PACKET;

	p->credit = nn_min(p->credit + bytes, most);
}

nn_inline void nn_path_take(struct nn_path *p, u64 bytes)
{
	p->credit -= nn_min(p->credit, bytes);
}

/* How long until the next look, ns; 0: a packet may leave. Nobody knows when an ACK will come. */
nn_inline u64 nn_path_wait_for_others(const struct nn_path *p, u64 now, u64 rested)
{
	u64 least = NN_PATH_LEAST * nn_path_a_round(p);
	u64 look = nn_max(NN_PATH_PACKET * NN_PATH_S / nn_max(p->mu, 1), NN_PATH_S / 1000);

	if (!nn_path_crowded(p, now) || p->credit >= NN_PATH_PACKET || rested >= least)
		return 0;
	return nn_min(look, least - rested);
}

/* Whether a packet was lost beside others lately. */
nn_inline int nn_path_mends(const struct nn_path *p, u64 now)
{
	return p->lost_at && now < p->lost_at + NN_PATH_MENDING * nn_path_a_round(p);
}

/* So many bytes of the background were delivered, headers included. */
nn_inline void nn_path_delivered(struct nn_path *p, u64 bytes)
{
	p->d += bytes;
	p->returned = bytes;
	nn_path_give(p, bytes);
}

/* Of what no ACK tells, so much had left when a packet did that is acknowledged now. */
nn_inline void nn_path_unread_returns(struct nn_path *p, u64 unread)
{
	u64 bytes = (s64)(unread - p->unread_back) > 0 ? unread - p->unread_back : 0;

	p->unread_back += bytes;
	p->returned += bytes;
	nn_path_give(p, bytes);
}

/* A packet of the background leaves that left before: it was lost. */
nn_inline void nn_path_again(struct nn_path *p, u64 now)
{
	int theirs = nn_path_crowded(p, now) && now < p->others + 2 * nn_path_a_round(p);

	if (theirs)
		p->lost_at = now;
}

/* Time since the last ACK that may have shown a queue, ns. */
nn_inline u64 nn_path_hear(struct nn_path *p, u64 now)
{
	u64 since = nn_min(now - nn_min(p->heard, now), nn_path_a_round(p));

	p->heard = now;
	return since;
}

/* An ACK that may be late, or may show a queue. */
nn_inline void nn_path_unsure(struct nn_path *p, u64 now)
{
	nn_path_give(p, nn_path_hear(p, now) * (NN_PATH_PACKET / 4) / nn_path_a_round(p));
}

/* What of mu this host had lately, of which users are told. */
nn_inline void nn_path_note_part(struct nn_path *p, u64 now)
{
	u64 since = now - nn_min(p->part_at, now);
	u64 seconds = (p->c - p->part_c) * NN_ONE / nn_max(p->mu, 1);	/* that mu takes for it, Q16 */

	if (nn_path_crowded(p, now)) {
		if (since < NN_PATH_S)
			return;
		p->part = (u32)nn_min(nn_path_per(seconds, since), NN_ONE);
	} else {
		p->part = NN_ONE;
	}
	p->part_at = now;
	p->part_c = p->c;
}

/* An ACK shows so much of a queue of others, bytes * 10^9. */
nn_inline void nn_path_hear_others(struct nn_path *p, u64 now, u64 unexplained)
{
	u64 more = p->mu * nn_path_hear(p, now) / NN_PATH_S / NN_PATH_GROW;

	if (unexplained > nn_max(2 * NN_PATH_PACKET * NN_PATH_S, p->mu * NN_PATH_THEIRS_NS)) {
		nn_path_take(p, p->returned / 8 * 7);
		p->others = now;
	} else if (!nn_path_mends(p, now)) {
		if (p->rtt < NN_PATH_SHORTEST)
			more = more * p->rtt / NN_PATH_SHORTEST;
		nn_path_give(p, more);
	}
	nn_path_note_part(p, now);
}

#endif
