// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * Host 1: one algorithm of core/ as a TCP congestion control of Linux,
 * nn_<name>. Compiled once per algorithm (core/flow.h), and once more
 * with NN_IN_GROUPS for connections that share a group, as nn_<name>_g: with
 * groups the verifier walks 397 thousand instructions of nice, without 17.
 *
 * How the kernel's callbacks become ACKs and events:
 *
 *	init           the flow begins; at the first cong_avoid if it did not here
 *	in_ack_event   ECN echo of this ACK
 *	pkts_acked     the RTT sample: assembles a struct nn_ack
 *	cong_avoid     the kernel allows growth: gives that ACK to the algorithm
 *	               and obeys. An ACK for which the kernel does not call it
 *	               (recovery, reordering) is given with NN_ACK_HOLD at the next
 *	               ACK or event, so the algorithm sees every RTT, in order
 *	ssthresh       NN_LOSS or NN_ECN; the answer is the window that the
 *	               kernel's recovery (PRR) heads for
 *	set_state      NN_TIMEOUT on entering TCP_CA_Loss, and the gap: the timer then
 *	               sends again without min_tso_segs
 *	undo_cwnd      NN_UNDO
 *	min_tso_segs   just before a write: the send hook, its window, and the gap
 *	release        NN_CLOSE to a member of a group: the connection has ended, or
 *	               has chosen another control. The kernel calls it once for
 *	               each init, however a connection ends
 *
 * A gap is enforced with the kernel's own pacing timer: the rate that makes the
 * burst last for the gap. The kernel forgives up to half of that when the flow
 * idled before, and scales it to the length of the packet: both are undone here.
 * What cannot be: a tail loss probe (RFC 8985) that repeats a packet, since there
 * is nothing new, asks no callback, and tcp_wstamp_ns may not be written. It is
 * followed by the last packet's gap once more, or twice if that left after idling:
 * when an application paused for a whole silence of FAIRBAT, and the packet before
 * it was lost, what it wrote next waited for 6 s.
 *
 * The state lives in sk_storage rather than in icsk_ca_priv: 104 bytes are too
 * few for what measures bandwidth, arrays indexed by a variable are rejected
 * there, and `netnice status` reads all of it through one iterator.
 *
 * The hooks of connections that share a group are called under its lock.
 */
#include "kernel.h"
#include "flow.h"
#define NN_LOCKS
#ifdef NN_IN_GROUPS
#define nn_outline __attribute__((noinline))
#endif
#include "../core/flow.h"
#include "flows.h"
#ifdef NN_IN_GROUPS
#include "groups.h"
#define NN_CONTROL NN_CAT(nn_, NN_ALG, _g)
#else
#define NN_CONTROL NN_CAT(nn_, NN_ALG, )
#endif

_Static_assert(sizeof(NN_STR(NN_CONTROL)) <= 16, "name longer than the kernel's 15 characters");

char _license[] SEC("license") = "Dual MIT/GPL";

/* The header's defaults, for connections outside any run. */
static const u32 defaults[NN_PARAMS_MAX] = { NN_PARAMS(NN_DEFAULT) };

/* Connections of this host that have begun under this control, and not ended. */
static u32 flows;

nn_inline struct tcp_sock *tcp_sk(struct sock *sk)
{
	return (struct tcp_sock *)sk;
}

/* NULL if it has not begun: its storage may be there before, with its settings. */
nn_inline struct nn_flow *flow_of(struct sock *sk)
{
	struct nn_flow *f = bpf_sk_storage_get(&nn_flows, sk, 0, 0);

	return f && f->begun ? f : NULL;
}

nn_inline NN_STATE *state_of(struct nn_flow *f)
{
	return (NN_STATE *)f->state;
}

nn_inline const NN_CFG *cfg_of(const struct nn_flow *f)
{
	return (const NN_CFG *)f->settings.cfg;
}

/* The fields of an ACK that do not belong to the ACK's sample. */
nn_inline void look(struct nn_flow *f, struct tcp_sock *tp)
{
	struct nn_ack *a = &f->ack;

	a->now_us = tp->tcp_mstamp;
	a->srtt_us = tp->srtt_us >> 3;
	a->inflight = tp->packets_out - (tp->sacked_out + tp->lost_out) + tp->retrans_out;
	a->una = tp->snd_una;
	a->nxt = tp->snd_nxt;
	a->mss = tp->mss_cache;
	a->flows = flows;
}

#ifdef NN_IN_GROUPS
nn_inline void nn_lock(struct nn_group *g)
{
	bpf_spin_lock(&((struct nn_slot *)g)->lock);
}

nn_inline void nn_unlock(struct nn_group *g)
{
	bpf_spin_unlock(&((struct nn_slot *)g)->lock);
}

nn_inline struct nn_group *group_of(const struct nn_flow *f)
{
	return (struct nn_group *)nn_slot_get(f);
}

/*
 * A connection joins its group when it first has more to send than its window allows; until then it
 * is on its own. One that never has, as for control beside one for data, is entitled to nothing: as a
 * member it would bring a window that the others fill. (iperf3 has such a second connection: five of
 * them took 2.3 times what five flows of Reno took.)
 */
nn_inline void join_group(struct nn_flow *f, struct tcp_sock *tp, const struct sock_common *sk)
{
	struct nn_group_key key = { .ca = NN_STR(NN_CONTROL) };
	struct nn_slot *slot;

	if (!f->settings.group[0] || f->asked)
		return;
	f->asked = 1;
	nn_group_key(&key, &f->settings, sk);
	f->slot = nn_group_enter(&key);
	slot = nn_slot_get(f);
	if (!slot)
		return;
	slot->group.apart = key.bits < 128; /* all members write the same */
	__builtin_memset(f->state, 0, sizeof(f->state));
	look(f, tp);
	nn_flow_init(state_of(f), cfg_of(f), &slot->group, &f->ack, &f->ctl);
}

nn_inline void leave_group(struct nn_flow *f)
{
	if (!f->slot)
		return;
	nn_flow_event(state_of(f), cfg_of(f), group_of(f), NN_CLOSE, &f->ack, &f->ctl);
	nn_group_exit(f);
}
#else
nn_inline void nn_lock(struct nn_group *g)
{
}

nn_inline void nn_unlock(struct nn_group *g)
{
}

nn_inline struct nn_group *group_of(const struct nn_flow *f)
{
	return NULL;
}

nn_inline void join_group(struct nn_flow *f, struct tcp_sock *tp, const struct sock_common *sk)
{
}

nn_inline void leave_group(struct nn_flow *f)
{
}
#endif

/* As tcp_is_cwnd_limited() sees it; within gaps the question is whether data waits. */
nn_inline int app_limited(const struct nn_flow *f, struct tcp_sock *tp)
{
	if (f->ctl.gap_us)
		return tp->write_seq == tp->snd_nxt;
	if (f->ctl.flags & NN_CTL_SLOW_START && tp->snd_cwnd < 2 * tp->max_packets_out)
		return 0;
	return !BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited);
}

/*
 * Sums the time spent yielding, that is with data to send and a flow that holds
 * back; called after each answer of the algorithm.
 */
nn_inline void account(struct nn_flow *f)
{
	u64 now = f->ack.now_us;
	int yields = f->ctl.flags & NN_CTL_YIELDING && !(f->ack.flags & NN_ACK_APP_LIMITED);

	if (f->since_us && now > f->since_us)
		f->yielding_us += now - f->since_us;
	f->since_us = yields ? now : 0;
}

/* Gives the assembled ACK to the algorithm. */
nn_inline void give_ack(struct nn_flow *f, u32 flags)
{
	f->ack.flags |= flags;
	nn_flow_ack(state_of(f), cfg_of(f), group_of(f), &f->ack, &f->ctl);
	account(f);
	f->pending = 0;
	f->ack.flags = 0;
	f->ack.rtt_us = 0;
	f->ack.acked = 0;
	f->ack.lost = 0;
}

nn_inline void give_event(struct nn_flow *f, struct tcp_sock *tp, enum nn_event event)
{
	if (f->pending)
		give_ack(f, NN_ACK_HOLD);
	look(f, tp);
	nn_flow_event(state_of(f), cfg_of(f), group_of(f), event, &f->ack, &f->ctl);
	account(f);
}

/* The window that the kernel shall have, in packets. */
nn_inline u32 window(const struct nn_flow *f)
{
	u64 packets = f->ctl.cwnd_q16 / NN_ONE;

	/* the kernel sends at most half a window at once, and a burst must leave at once */
	return (u32)nn_max(packets, f->ctl.gap_us ? nn_min(2 * f->ctl.burst, 64) : 1);
}

nn_inline u32 ca_state(struct tcp_sock *tp)
{
	return (u32)BPF_CORE_READ_BITFIELD(&tp->inet_conn, icsk_ca_state);
}

nn_inline void apply(struct nn_flow *f, struct tcp_sock *tp)
{
	f->applied = window(f);
	/* retransmissions leave whole, and no more of them than a burst */
	if (f->ctl.gap_us && ca_state(tp) == TCP_CA_LOSS)
		f->applied = f->ctl.burst;
	tp->snd_cwnd = f->applied;
	/* out of slow start, by the kernel's book too: it decides on CWR and metrics */
	if (!(f->ctl.flags & NN_CTL_SLOW_START) && tp->snd_ssthresh > f->applied)
		tp->snd_ssthresh = (u32)nn_max(f->applied, 2);
}

/* Returns 0 if memory for the flow's state is lacking: it has then not begun. */
nn_inline int begin(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct nn_flow *f = bpf_sk_storage_get(&nn_flows, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	struct nn_settings settings;

	if (!f)
		return 0;
	if (!f->begun)
		__sync_fetch_and_add(&flows, 1);
	settings = f->settings;
	__builtin_memset(f, 0, sizeof(*f));
	f->settings = settings;
	f->begun = 1;
	if (f->settings.n_params != NN_N_PARAMS)
		for (int i = 0; i < NN_PARAMS_MAX; i++)
			f->settings.cfg[i] = defaults[i];
	look(f, tp);
	f->lost = tp->lost;
	f->delivered = tp->delivered;
	f->was_cwnd = tp->snd_cwnd;
	f->was_ssthresh = tp->snd_ssthresh;
	f->was_us = tp->tcp_mstamp;
	f->ctl.cwnd_q16 = (u64)tp->snd_cwnd * NN_ONE;
	nn_flow_init(state_of(f), cfg_of(f), NULL, &f->ack, &f->ctl);
	apply(f, tp);
	return 1;
}

SEC("struct_ops")
void BPF_PROG(nn_init, struct sock *sk)
{
	begin(sk);
}

SEC("struct_ops")
void BPF_PROG(nn_in_ack_event, struct sock *sk, __u32 flags)
{
	struct nn_flow *f = flow_of(sk);

	if (!f || !(flags & CA_ACK_ECE))
		return;
	if (f->pending)
		give_ack(f, NN_ACK_HOLD); /* it had no such echo */
	f->ack.flags |= NN_ACK_ECE;
}

SEC("struct_ops")
void BPF_PROG(nn_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct nn_flow *f = flow_of(sk);

	if (!f)
		return;
	if (f->pending)
		give_ack(f, NN_ACK_HOLD);
	/* the kernel cut a window that was not used (RFC 2861): so does the algorithm */
	if (ca_state(tp) < TCP_CA_CWR && tp->snd_cwnd < f->applied) {
		f->ctl.cwnd_q16 = (u64)tp->snd_cwnd * NN_ONE;
		give_event(f, tp, NN_IDLE);
		apply(f, tp);
	}
	look(f, tp);
	f->ack.rtt_us = sample->rtt_us > 0 ? (u32)sample->rtt_us : 0;
	f->ack.acked = tp->delivered - f->delivered;
	f->ack.lost = tp->lost - f->lost;
	f->delivered = tp->delivered;
	f->lost = tp->lost;
	if (app_limited(f, tp))
		f->ack.flags |= NN_ACK_APP_LIMITED;
	f->pending = 1;
}

SEC("struct_ops")
void BPF_PROG(nn_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	struct nn_flow *f = flow_of(sk);
	int busy;

	/*
	 * Init found no memory; or it did not run: on 6.18 after one registration in thirty neither
	 * init nor pkts_acked runs for some of the first connections, though the kernel has them
	 * down as initialized.
	 */
	if (!f) {
		if (!begin(sk))
			tcp_sk(sk)->snd_cwnd = 1;
		return;
	}
	/* the ACK of a single packet, such as a SYN, does not show it */
	busy = f->pending && f->ack.acked + f->ack.inflight > 1 &&
	       !(f->ack.flags & NN_ACK_APP_LIMITED);
	if (f->pending)
		give_ack(f, 0);
	if (busy)
		join_group(f, tcp_sk(sk), &sk->__sk_common);
	apply(f, tcp_sk(sk));
}

SEC("struct_ops")
__u32 BPF_PROG(nn_ssthresh, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct nn_flow *f = flow_of(sk);

	if (!f)
		return 2;
	give_event(f, tp, f->ack.flags & NN_ACK_ECE && !tp->lost_out ? NN_ECN : NN_LOSS);
	f->applied = (u32)nn_max(window(f), 2);
	return f->applied;
}

SEC("struct_ops")
__u32 BPF_PROG(nn_undo_cwnd, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct nn_flow *f = flow_of(sk);

	if (!f)
		return tp->snd_cwnd;
	give_event(f, tp, NN_UNDO);
	f->applied = window(f);
	return f->applied;
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
	u64 credit = 0, length = (u64)f->ctl.burst * tp->mss_cache, rate;
	const struct sk_buff *sent = sk->sk_send_head;

	if (tp->tcp_clock_cache > tp->tcp_wstamp_ns)
		credit = nn_min(tp->tcp_clock_cache - tp->tcp_wstamp_ns, gap_ns);
	if (sent && sent->len < length)
		length = nn_max(sent->len, tp->mss_cache);
	rate = length * 1000000000 / (gap_ns + credit);
	sk->sk_pacing_status = SK_PACING_NEEDED;
	sk->sk_pacing_rate = nn_min(rate ? rate : 1, sk->sk_max_pacing_rate); /* 0 is unpaced */
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

SEC("struct_ops")
void BPF_PROG(nn_set_state, struct sock *sk, __u8 state)
{
	struct nn_flow *f = flow_of(sk);

	if (f && state == TCP_CA_LOSS) {
		give_event(f, tcp_sk(sk), NN_TIMEOUT);
		f->applied = window(f);
		set_gap(sk, f, tcp_sk(sk));
	}
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

SEC("struct_ops")
__u32 BPF_PROG(nn_min_tso_segs, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct nn_flow *f = flow_of(sk);
	u32 before;

	if (!f)
		return 1;
	look(f, tp);
	before = window(f);
	nn_flow_send(state_of(f), cfg_of(f), group_of(f), &f->ack, &f->ctl);
	/*
	 * Not at the next ACK: if what leaves now is lost, none comes before the gap is over. A
	 * window that the kernel cut is told of first (pkts_acked), but does not stand above the flow's.
	 */
	if (window(f) != before && ca_state(tp) < TCP_CA_CWR &&
	    (tp->snd_cwnd >= f->applied || tp->snd_cwnd > window(f)))
		apply(f, tp);
	if (drains(f, tp))
		tp->snd_cwnd = window(f);
	set_gap(sk, f, tp);
	return f->ctl.gap_us ? f->ctl.burst : 2; /* the kernel's default */
}

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

SEC("struct_ops")
void BPF_PROG(nn_release, struct sock *sk)
{
	struct nn_flow *f = flow_of(sk);

	if (f) {
		leave_group(f);
		f->begun = 0;
		__sync_fetch_and_sub(&flows, 1);
	}
	if (sk->__sk_common.skc_state != BPF_TCP_CLOSE)
		give_back(sk, f, tcp_sk(sk));
}

SEC(".struct_ops")
struct tcp_congestion_ops NN_CONTROL = {
	.init = (void *)nn_init,
	.in_ack_event = (void *)nn_in_ack_event,
	.pkts_acked = (void *)nn_pkts_acked,
	.cong_avoid = (void *)nn_cong_avoid,
	.ssthresh = (void *)nn_ssthresh,
	.set_state = (void *)nn_set_state,
	.undo_cwnd = (void *)nn_undo_cwnd,
	.min_tso_segs = (void *)nn_min_tso_segs,
	.release = (void *)nn_release,
	.name = NN_STR(NN_CONTROL),
};
