/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Which RTT may hold the receiver's timer.
 *
 * A receiver acknowledges every second packet at once, and may let the ACK of a lone one wait for a
 * second (RFC 1122, 4.2.3.2; RFC 5681, 4.2): for less than 500 ms, on Linux for 40 to 200 ms
 * (TCP_DELACK_MIN, TCP_DELACK_MAX). With q the time in queues, the RTT of the last packet that an ACK
 * covers is
 *
 *	two packets or more:	RTT = base + q
 *	one:			RTT = base + q + timer		timer = 0, or 40 ms or more
 *
 * There was no timer if the next packet was there before the ACK left. So it is possible only if
 *
 *	the ACK covers one packet
 *	and nothing is in flight behind that packet, or the receiver waits for pairs:
 *	    one of its last PAIRS ACKs was for two packets or more
 *
 * Without the last line, any queue of a receiver that acknowledges each packet would be taken for its
 * timer. PAIRS is two, since two packets that a delayed ACK has let go 40 ms apart wait for the timer
 * one by one.
 *
 * base + q is no longer than such an RTT: it may show that a queue is short, but not that it is long.
 * Where the receiver tells how long each ACK waited, as QUIC's does, its host takes that off (NN_ACK_EXACT):
 * no RTT holds the timer. Of a handshake it is not told (RFC 9002, 5.3), and keys take time to compute: such an
 * RTT is as one that holds the timer (NN_ACK_HANDSHAKE).
 * What takes the least of many RTTs (vegas.h, ledbat.h) needs no such rule.
 */
#ifndef NN_MEASURE_RTT_H
#define NN_MEASURE_RTT_H

#include "../netnice.h"

#define NN_RTT_TIMER_US 40000u	/* by which a receiver delays an ACK, at least */
#define NN_RTT_PAIRS 2u		/* ACKs of one packet, after one for two or more */

/* May the ACK's RTT hold a timer? `pairs` is what nn_rtt_note keeps. */
nn_inline int nn_rtt_late(const struct nn_ack *a, u32 pairs)
{
	if (a->flags & (NN_ACK_EXACT | NN_ACK_HANDSHAKE))
		return !!(a->flags & NN_ACK_HANDSHAKE);
	return nn_acked(a) < NN_BURST && (!a->inflight || pairs);
}

/* Notes an ACK, after the question above: `pairs` is not 0 while the receiver waits for pairs. */
nn_inline void nn_rtt_note(u32 *pairs, const struct nn_ack *a)
{
	if (nn_acked(a))
		*pairs = nn_acked(a) >= NN_BURST ? NN_RTT_PAIRS : *pairs - !!*pairs;
}

#endif
