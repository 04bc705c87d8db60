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
 * connection.h has what this host keeps of a connection, members.h its place in a group,
 * assemble.h how an ACK is put together and given, pace.h how the answer is obeyed, and
 * give_back.h what another control finds afterwards.
 */
#include "kernel.h"
#include "flow.h"
#define NN_LOCKS
#ifdef NN_IN_GROUPS
#define nn_outline __attribute__((noinline))
#define NN_CONTROL NN_CAT(nn_, NN_ALG, _g)
#else
#define NN_CONTROL NN_CAT(nn_, NN_ALG, )
#endif
#include "../core/flow.h"
#include "connection.h"
#include "members.h"
#include "assemble.h"
#include "pace.h"
#include "give_back.h"

_Static_assert(sizeof(NN_STR(NN_CONTROL)) <= 16, "name longer than the kernel's 15 characters");

char _license[] SEC("license") = "Dual MIT/GPL";

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
	f->applied = nn_obey_target(&f->ctl);
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
	return f->ctl.gap_us ? nn_obey_burst(&f->ctl) : 2; /* the kernel's default */
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
