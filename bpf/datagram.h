/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Datagrams of the background that come: they wait in the wait device's fq until the path has room
 * (core/host/down_datagram.h), and then come in on their device once more.
 */
#ifndef NN_DATAGRAM_H
#define NN_DATAGRAM_H

#include "packet.h"
#include "udp.h"

#define CAME (NN_TURNS | 2)		/* marks: a datagram that waited, and goes on */
#define DATAGRAM (NN_TURNS | 0x8000u)	/* one that waits, with its ticket */

/* A packet leaves that is none of TCP. If it is a datagram whose answers are to yield, their path is known from now on. */
nn_inline void expect(struct __sk_buff *skb, const struct nn_hold *hold, const struct nn_segment *s)
{
	const struct nn_udp *u = s->ends.udp ? udp_of(skb->sk) : NULL;
	struct nn_down_hop *h;
	u32 index = 0;

	if (!u || !u->down || !hop_number(skb, ETH_TO, &index, 1))
		return;
	h = bpf_map_lookup_elem(&nn_down_hops, &index);
	if (!h || h->used)
		return;
	lock(h, hold, bpf_ktime_get_ns());
	bpf_spin_unlock(&h->lock);
}

/* The socket of this host's that a datagram comes to, if it has such wait; else NULL. */
nn_inline struct nn_udp *pulled_by(struct __sk_buff *skb, const struct nn_segment *s)
{
	struct bpf_sock_tuple t = {};
	struct bpf_sock *sk;
	struct nn_udp *u;

	if (!s->ends.udp)
		return NULL;
	if (s->ends.v6) {
		__builtin_memcpy(t.ipv6.saddr, s->ends.from, sizeof(t.ipv6.saddr));
		__builtin_memcpy(t.ipv6.daddr, s->ends.to, sizeof(t.ipv6.daddr));
		t.ipv6.sport = s->ends.from_port;
		t.ipv6.dport = s->ends.to_port;
		sk = bpf_sk_lookup_udp(skb, &t, sizeof(t.ipv6), BPF_F_CURRENT_NETNS, 0);
	} else {
		t.ipv4.saddr = s->ends.from[0];
		t.ipv4.daddr = s->ends.to[0];
		t.ipv4.sport = s->ends.from_port;
		t.ipv4.dport = s->ends.to_port;
		sk = bpf_sk_lookup_udp(skb, &t, sizeof(t.ipv4), BPF_F_CURRENT_NETNS, 0);
	}
	if (!sk)
		return NULL;
	u = said_of(sk);
	bpf_sk_release(sk);
	return u && u->down ? u : NULL;
}

/* Any number that the datagrams of a connection have. */
nn_inline u32 flow_of(const struct nn_segment *s)
{
	return (s->ends.from[0] ^ s->ends.from[3] ^ s->ends.to[0] ^ s->ends.to[3] ^
		((u32)s->ends.from_port << 16 | s->ends.to_port)) * 0x9e3779b1u >> 16;
}

/* Has a datagram wait until that clock; 0: it cannot, and goes on. */
nn_inline int wait_until(struct __sk_buff *skb, u64 t, u32 ticket)
{
	if (bpf_skb_set_tstamp(skb, t, BPF_SKB_TSTAMP_DELIVERY_MONO))
		return 0;
	skb->mark = DATAGRAM | ticket;
	return 1;
}

/* Drops a datagram, and the run of its socket is to learn of it. */
nn_inline int drop(struct nn_udp *u, u32 bytes)
{
	if (u)
		__sync_fetch_and_add(&u->dropped, bytes);
	return TC_DROP;
}

/* A datagram that waited looks whether it may go on. */
nn_inline int look_again(struct __sk_buff *skb, const struct nn_hold *hold)
{
	u32 index = 0, ticket = skb->mark & NN_DATAGRAM_TICKET;
	struct nn_down_hop *h = NULL;
	struct nn_segment s = {};
	u64 now = bpf_ktime_get_ns(), t = 0;

	if (!hold)
		return TC_DROP;
	nn_read(skb, &s);
	if (hop_number(skb, ETH_FROM, &index, 0))
		h = bpf_map_lookup_elem(&nn_down_hops, &index);
	if (h) {
		lock(h, hold, now);
		h->fired = now;
		h->given = 0;
		if (is_open(h, hold, now))
			nn_datagram_gone(&h->path.datagrams, flow_of(&s), ticket);
		else
			t = nn_datagram_goes(&h->path, now, skb->len, flow_of(&s), 0, &ticket);
		h->dropped += t == NN_DATAGRAM_DROP;
		bpf_spin_unlock(&h->lock);
	}
	if (t == NN_DATAGRAM_DROP)
		return drop(pulled_by(skb, &s), skb->len);
	if (t && wait_until(skb, t, ticket))
		return (int)bpf_redirect(hold->wait, 0);
	skb->mark = hold->closing ? 0 : CAME; /* what takes the mark off may be gone */
	return (int)bpf_redirect(hold->device, BPF_F_INGRESS);
}

/* A datagram of the background came: when it goes on, as nn_datagram_goes() says. */
nn_inline u64 pull(struct nn_down_hop *h, const struct nn_hold *hold, u64 now, u32 bytes, u32 flow, u32 *ticket)
{
	h->came += bytes;
	if (h->given && now > h->given + BROKEN_NS) {
		h->open_until = now + OPEN_NS;
		h->fast = 0;
		h->given = 0;
	}
	open_if_fast(h, hold, now);
	nn_reload();
	return is_open(h, hold, now) ? 0 : nn_datagram_goes(&h->path, now, bytes, flow, 1, ticket);
}

/* A packet came that is none of TCP. */
nn_inline int other_came(struct __sk_buff *skb, struct nn_down_hop *h, const struct nn_hold *hold,
			 const struct nn_segment *s, u64 now, u32 bytes)
{
	struct nn_udp *u = pulled_by(skb, s);
	u32 ticket = 0, flow = flow_of(s);
	u64 until;

	if (u && !is_open(h, hold, now))
		u->pulled_us = now / 1000;
	lock(h, hold, now);
	nn_down_count(&h->path, now, bytes);
	h->came_all += bytes;
	if (!u) {
		nn_down_other(&h->path, now, bytes);
		bpf_spin_unlock(&h->lock);
		return TC_NEXT;
	}
	until = pull(h, hold, now, bytes, flow, &ticket);
	h->dropped += until == NN_DATAGRAM_DROP;
	if (until && until != NN_DATAGRAM_DROP && !h->given)
		h->given = until;
	bpf_spin_unlock(&h->lock);
	if (until == NN_DATAGRAM_DROP)
		return drop(u, skb->len);
	return until && wait_until(skb, until, ticket) ? (int)bpf_redirect(hold->wait, 0) : TC_NEXT;
}

#endif
