/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What another congestion control finds when it takes a connection over from this one.
 */
#ifndef NN_GIVE_BACK_H
#define NN_GIVE_BACK_H

#include "connection.h"

/*
 * A connection that goes on under another control knows of the path what it knew before this one
 * took over, as it would after idling for as long: its window is halved for each retransmission
 * timeout (taken as two RTTs, 200 ms at least), down to an initial one, and slow start leads back
 * to three quarters of it at least (RFC 2861). What this control held back is no measure for it.
 */
nn_inline void give_back(struct sock *sk, const struct nn_flow *f, struct tcp_sock *tp)
{
	u32 cwnd = TCP_INIT_CWND, ssthresh = TCP_INFINITE_SSTHRESH;

	if (f) { /* else there was no memory for it, and a window of 1 */
		u64 timeout_us = nn_max((u64)tp->srtt_us / 8 * 2, 200000);
		u64 timeouts = (tp->tcp_mstamp - f->was_us) / timeout_us;

		cwnd = (u32)nn_max(cwnd, f->was_cwnd >> nn_min(timeouts, 31));
		ssthresh = (u32)nn_max(f->was_ssthresh, f->was_cwnd / 4 * 3);
	}
	if (sk->sk_pacing_status == SK_PACING_NEEDED && sk->sk_max_pacing_rate == ~0UL)
		sk->sk_pacing_status = SK_PACING_NONE;
	if (ca_state(tp) >= TCP_CA_CWR)
		return; /* a recovery under way heads for these */
	tp->snd_cwnd = (u32)nn_max(tp->snd_cwnd, cwnd);
	tp->snd_ssthresh = ssthresh;
}

#endif
