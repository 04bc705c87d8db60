/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Connections of the background whose downloads yield: what their own packets say of them.
 */
#ifndef NN_PULLED_H
#define NN_PULLED_H

#include "packet.h"
#include "rewrite.h"
#include "down.h"

#define SYN_SEGMENTS 1u		/* what a server may send before it is known */
#define UNSEEN_NS NN_PATH_S	/* what came before these programs were there is acknowledged by then */

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct nn_ends);
	__type(value, struct nn_pulled);
} nn_pulled SEC(".maps");

static const struct nn_pulled unseen;	/* too large for the stack */

/* The scale of its windows, where it is a socket of this host's: plus 1; 0: it is not. */
nn_inline u32 scale_of(struct __sk_buff *skb)
{
	struct bpf_sock *sk = skb->sk;
	struct tcp_sock *tp;

	if (!sk)
		return 0;
	tp = bpf_skc_to_tcp_sock(sk);
	return tp ? (u32)BPF_CORE_READ_BITFIELD(tp, rx_opt.rcv_wscale) + 1 : 0;
}

/* A connection of the background that has not been seen; NULL: there is no room. */
nn_inline struct nn_pulled *new_pulled(const struct nn_ends *ends, u32 index)
{
	struct nn_pulled *p;

	bpf_map_update_elem(&nn_pulled, ends, &unseen, BPF_ANY);
	p = bpf_map_lookup_elem(&nn_pulled, ends);
	if (p)
		p->hop = index;
	return p;
}

/* A SYN of the background: what it allows is small. */
nn_inline void greet(struct __sk_buff *skb, const struct nn_segment *s, u32 index, int is_open)
{
	u32 most = is_open ? s->window : (u32)nn_min(s->window, SYN_SEGMENTS * NN_DOWN_MSS);
	struct nn_pulled *p = new_pulled(&s->ends, index);
	struct nn_options o = {};

	if (!p)
		return;
	nn_read_options(skb, s->options_at, s->options, &o);
	p->offered = o.scale;
	p->answered = !!(s->flags & TCP_ACK); /* whose SYN came before: it has no scale if that had none */
	p->cannot = o.sealed;
	if (o.sealed)
		return;
	put_window(skb, tcp_of(s), s->window, most);
	p->told = most;
}

/* The other end's SYN. Windows are scaled if both offer it (RFC 7323, 1.3). */
nn_inline void answer(struct __sk_buff *skb, const struct nn_segment *s, struct nn_pulled *p)
{
	struct nn_options o = {};

	nn_read_options(skb, s->options_at, s->options, &o);
	p->answered = 1;
	p->offered = o.scale ? p->offered : 0;
}

/* What a packet says may be older than what was said: of a retransmission, or where nothing is new (keepalive). */
nn_inline void renew(struct nn_pulled *p, const struct nn_segment *s, const struct nn_options *o)
{
	struct nn_numbers *n = &p->newest;
	u32 end = s->end + (s->flags & TCP_FIN ? 1 : 0);

	if (!p->began || nn_down_after(end, n->seq))
		n->seq = end;
	if (!p->began || nn_down_after(s->ack, n->ack))
		n->ack = s->ack;
	if (o->stamp) {
		n->stamp = o->stamp;
		n->echo = o->echo;
	}
}

/*
 * Whether a connection cannot yield, and never will: a window that was narrowed would not be opened again.
 * Of one with other options (MPTCP, signatures) no copy can be made. What comes of another is not seen here:
 * on another device, or in fragments.
 */
nn_inline int cannot_yield(struct nn_pulled *p, const struct nn_segment *s, const struct nn_options *o,
			   u64 now)
{
	int unseen = p->began && now > p->began_at + UNSEEN_NS && nn_down_after(s->ack, p->flow.end);

	p->cannot |= (u32)(o->odd || unseen);
	return (int)p->cannot;
}

#endif
