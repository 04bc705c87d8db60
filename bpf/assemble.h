/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * From the kernel's callbacks to the algorithm's ACKs and events.
 */
#ifndef NN_ASSEMBLE_H
#define NN_ASSEMBLE_H

#include "../core/host/obey.h"
#include "members.h"

nn_inline int app_limited(const struct nn_flow *f, struct tcp_sock *tp)
{
	return nn_obey_app_limited(&f->ctl, tp->write_seq != tp->snd_nxt, tp->snd_cwnd,
				   tp->max_packets_out, BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited));
}

nn_inline void account(struct nn_flow *f)
{
	nn_obey_count_yielding(&f->ctl, &f->ack, &f->yielding_us, &f->since_us);
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
