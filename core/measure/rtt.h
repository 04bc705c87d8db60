/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Which RTT may hold the receiver's timer.
 *
 * A receiver acknowledges every second packet at once, and may let the ACK of a lone one wait for a
 * second (RFC 1122, 4.2.3.2; RFC 5681, 4.2): for 500 ms at most, on Linux for 40 to 200 ms. With q
 * the time in queues, the RTT of the last packet that an ACK covers is
 *
 *	two packets or more:	RTT = base + q
 *	one:			RTT = base + q		or	base + q + timer
 *
 * The ACK of one packet had no timer if the next packet was there before it: something is in flight
 * behind it, and the receiver does not acknowledge in pairs, which the ACKs before have shown.
 */
#ifndef NN_MEASURE_RTT_H
#define NN_MEASURE_RTT_H

#include "../netnice.h"

/* Whether the ACK may be a delayed one, after pairs were acknowledged (`pairs` is not 0) or not. */
nn_inline int nn_rtt_late(const struct nn_ack *a, u32 pairs)
{
	return nn_acked(a) < NN_BURST && (!a->inflight || pairs);
}

/* Notes an ACK: after one for two packets or more, `pairs` is not 0 for so many ACKs of one. */
nn_inline void nn_rtt_note(u32 *pairs, const struct nn_ack *a, u32 acks)
{
	if (nn_acked(a))
		*pairs = nn_acked(a) >= NN_BURST ? acks : *pairs - !!*pairs;
}

#endif
