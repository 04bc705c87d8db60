/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * One connection under the algorithm of the template: its state, parameters, and the fields of
 * tcp_sock that an ACK is assembled from.
 *
 * The state lives in sk_storage rather than in icsk_ca_priv: 104 bytes are too
 * few for what measures bandwidth, arrays indexed by a variable are rejected
 * there, and `netnice status` reads all of it through one iterator.
 */
#ifndef NN_CONNECTION_H
#define NN_CONNECTION_H

#include "shared.h"

/* The header's defaults, for connections outside any run. */
static const u32 defaults[NN_PARAMS_MAX] = { NN_PARAMS(NN_DEFAULT) };

/* Connections of this host that have begun under this control, and not ended. */
static u32 flows;

#define HELD_US 1000000	/* without a held packet for so long, nothing holds the flow */

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
	if (f->held_us && (s64)(a->now_us - f->held_us) < HELD_US)
		a->flags |= NN_ACK_HELD;
	else
		a->flags &= ~NN_ACK_HELD;
}

nn_inline u32 ca_state(struct tcp_sock *tp)
{
	return (u32)BPF_CORE_READ_BITFIELD(&tp->inet_conn, icsk_ca_state);
}

#endif
