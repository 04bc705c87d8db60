/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * From the algorithm's answer to the kernel's window, ssthresh and pacing rate.
 *
 * A gap is enforced with the kernel's own pacing timer: the rate that makes the
 * burst last for the gap. The kernel forgives up to half of that when the flow
 * idled before, and scales it to the length of the packet: both are undone here.
 * What cannot be: a tail loss probe (RFC 8985) that repeats a packet, since there
 * is nothing new, asks no callback, and tcp_wstamp_ns may not be written. It is
 * followed by the last packet's gap once more, or twice if that left after idling:
 * when an application paused for a whole silence of FAIRBAT, and the packet before
 * it was lost, what it wrote next waited for 6 s.
 */
#ifndef NN_PACE_H
#define NN_PACE_H

#include "../core/host/obey.h"
#include "connection.h"

nn_inline u32 window(const struct nn_flow *f)
{
	return nn_obey_window(&f->ctl);
}

nn_inline void apply(struct nn_flow *f, struct tcp_sock *tp)
{
	f->applied = ca_state(tp) == TCP_CA_LOSS ? nn_obey_window_in_loss(&f->ctl) : window(f);
	tp->snd_cwnd = f->applied;
	/* out of slow start, by the kernel's book too: it decides on CWR and metrics */
	tp->snd_ssthresh = nn_obey_ssthresh(&f->ctl, f->applied, tp->snd_ssthresh);
}

/*
 * Sets the pacing rate so that the next burst is followed by gap_us.
 *
 * A burst may leave in parts: then the next is taken to be as long as one in flight. (TCP keeps
 * the root of its retransmit queue where other sockets have sk_send_head.) A packet shorter
 * than a segment, such as a header, says nothing of the next.
 *
 * The kernel computes its wait as length/rate, less up to half of that for the
 * time since the last wait ended (tcp_update_skb_after_send). The rate is in whole
 * bytes/s, so that the wait is too long by gap^2/length at most, four times that after
 * idling: for one segment by 3 ms for 2 s, by 1.1 s for 40 s. 2^27 us * 1000 and
 * a burst of 2 * 64 KiB * 10^9: 37 and 47 bits.
 */
nn_inline void pace(struct sock *sk, const struct nn_flow *f, struct tcp_sock *tp)
{
	u64 gap_ns = f->ctl.gap_us * 1000;
	u64 credit = 0, length = (u64)nn_obey_burst(&f->ctl) * tp->mss_cache, rate;
	const struct sk_buff *sent = sk->sk_send_head;

	if (tp->tcp_clock_cache > tp->tcp_wstamp_ns)
		credit = nn_min(tp->tcp_clock_cache - tp->tcp_wstamp_ns, gap_ns);
	if (sent && sent->len < length)
		length = nn_max(sent->len, tp->mss_cache);
	rate = nn_obey_rate(length, gap_ns + credit);
	sk->sk_pacing_status = SK_PACING_NEEDED;
	sk->sk_pacing_rate = nn_min(rate, sk->sk_max_pacing_rate);
}

/*
 * Back to the clocking of ACKs, and to the kernel's own rate, which sizes TSO
 * packets. A gap that is still armed runs out first: its end is the time stamp
 * of the next packet, and a packet that left before it would measure a false RTT.
 */
nn_inline void unpace(struct sock *sk, struct tcp_sock *tp)
{
	if (sk->sk_pacing_status != SK_PACING_NEEDED || sk->sk_max_pacing_rate != ~0UL)
		return; /* never paced, or the application chose a rate */
	if (tp->tcp_wstamp_ns > tp->tcp_clock_cache)
		sk->sk_pacing_rate = ~0UL;
	else
		sk->sk_pacing_status = SK_PACING_NONE;
}

/* Makes what leaves next be followed by the gap that the algorithm asks for now, if any. */
nn_inline void set_gap(struct sock *sk, const struct nn_flow *f, struct tcp_sock *tp)
{
	if (f->ctl.gap_us)
		pace(sk, f, tp);
	else
		unpace(sk, tp);
}

/*
 * Whether the flow lets what it has in flight drain during a recovery that has sent all losses again.
 * PRR heads for two packets or more: from a window of one it sends two for each that arrives.
 */
nn_inline int drains(const struct nn_flow *f, struct tcp_sock *tp)
{
	u32 state = ca_state(tp);

	return state >= TCP_CA_CWR && state < TCP_CA_LOSS && tp->lost_out <= tp->retrans_out &&
	       f->ctl.flags & NN_CTL_YIELDING && !f->ctl.gap_us && window(f) < 2;
}

#endif
