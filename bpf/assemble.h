/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * From the kernel's callbacks to the algorithm's ACKs and events.
 */
#ifndef NN_ASSEMBLE_H
#define NN_ASSEMBLE_H

#include "members.h"

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

#endif
