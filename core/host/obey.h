/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What every host does with an algorithm's answer (struct nn_ctl), so that the kernel, the
 * simulator and others obey alike. Hosts call these; algorithms do not.
 *
 *	gap 0	ACKs clock the window: up to `window` packets are in flight
 *	gap > 0	a burst of ctl.burst packets, then nothing until gap_us after its start
 *
 * Range: a burst is NN_BURST_MAX packets at most, of 2^16 bytes: 21 + 30 bits in the rate.
 */
#ifndef NN_OBEY_H
#define NN_OBEY_H

#include "../netnice.h"

/* Packets of one burst, where there is a gap. */
nn_inline u32 nn_obey_burst(const struct nn_ctl *ctl)
{
	return (u32)nn_min(nn_max(ctl->burst, 1), NN_BURST_MAX);
}

/*
 * The window in whole packets. With a gap, two bursts at least: TCP hands out half a window at
 * once, and a burst must leave at once.
 */
nn_inline u32 nn_obey_window(const struct nn_ctl *ctl)
{
	return (u32)nn_max(nn_packets(ctl->cwnd_q16), ctl->gap_us ? 2 * nn_obey_burst(ctl) : 1);
}

/* The window after a timeout: what is sent again leaves whole, and no more of it than a burst. */
nn_inline u32 nn_obey_window_in_loss(const struct nn_ctl *ctl)
{
	return ctl->gap_us ? nn_obey_burst(ctl) : nn_obey_window(ctl);
}

/* The window that a recovery heads for: at least two packets (RFC 5681). */
nn_inline u32 nn_obey_target(const struct nn_ctl *ctl)
{
	return (u32)nn_max(nn_obey_window(ctl), 2);
}

/* The host's ssthresh, with a window of `cwnd` packets: an algorithm out of slow start ends it. */
nn_inline u32 nn_obey_ssthresh(const struct nn_ctl *ctl, u32 cwnd, u32 ssthresh)
{
	if (ctl->flags & NN_CTL_SLOW_START)
		return ssthresh;
	return (u32)nn_min(ssthresh, nn_max(cwnd, 2));
}

/*
 * Whether the sender has less to send than the window of `cwnd` packets allows (RFC 7661): then the
 * window must not grow. Within gaps the question is whether data waits to be sent; in slow start
 * half of the window must have been out; else the window must have been used up in the last round
 * trip (`limited`). `most_out` is the greatest number of packets in flight in that time.
 */
nn_inline int nn_obey_app_limited(const struct nn_ctl *ctl, int data_waits, u32 cwnd, u32 most_out,
				  int limited)
{
	if (ctl->gap_us)
		return !data_waits;
	if (ctl->flags & NN_CTL_SLOW_START && cwnd < 2 * (u64)most_out)
		return 0;
	return !limited;
}

/* The rate that makes so many bytes last for a gap, bytes/s; at least 1, since 0 is unpaced. */
nn_inline u64 nn_obey_rate(u64 bytes, u64 gap_ns)
{
	return gap_ns ? nn_max(bytes * 1000000000 / gap_ns, 1) : ~(u64)0;
}

/*
 * Sums the time spent yielding: holding back while there is data to send. To be called after each
 * answer. `since_us` is the host's: the clock of the last addition, 0 while not yielding.
 */
nn_inline void nn_obey_count_yielding(const struct nn_ctl *ctl, const struct nn_ack *a,
				      u64 *yielding_us, u64 *since_us)
{
	int yields = ctl->flags & NN_CTL_YIELDING && !(a->flags & NN_ACK_APP_LIMITED);

	if (*since_us && a->now_us > *since_us)
		*yielding_us += a->now_us - *since_us;
	*since_us = yields ? a->now_us : 0;
}

#endif
