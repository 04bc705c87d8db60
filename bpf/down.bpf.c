// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * Lets downloads yield, whoever sends: the windows that connections of the background tell are made
 * smaller, as their path has room (core/host/down.h). In the background is what is marked Lower Effort
 * (RFC 8622): `netnice run` marks what leaves, ACKs too. Where the socket is this host's, its settings say
 * more (enum nn_only): it is in the background without marks, or in spite of them it is not.
 *
 *	egress of the device: ask
 *		foreground	its requests and ACKs announce what will come
 *		background	its ACK goes on with our window. If its own TCP allows more, a copy waits in
 *				the wait device's fq until the path has room
 *	far end of the wait device: turn
 *		the copy comes back: if the path has room it leaves, with the newest numbers, as a
 *		window update; else it waits again
 *	ingress of the device: came
 *		what came of either, the RTTs of windows, and the link's rate. Datagrams of a run that
 *		asks for it wait in the same fq until the path has room (down_datagram.h)
 *
 * Of a packet the window is the one thing that is changed, and only downwards. A peer ignores an update whose numbers
 * are older than what it has: so a copy has those of the newest packet.
 *
 * Fail open. If copies do not come back, the windows are the kernel's for ten seconds; for a minute where
 * the path is faster than asked for. Without these programs they are from the next ACK on.
 */
#include "kernel.h"
#include "flow.h"
#include "../core/flow.h"
#include "hop.h"
#include "packet.h"
#include "pulled.h"
#include "rewrite.h"
#include "shared.h"
#include "down.h"

char _license[] SEC("license") = "Dual MIT/GPL";

#define LEAVES (NN_TURNS | 1)	/* marks: a window update of ours; a copy that waits */
#define WAITS NN_TURNS
#define BROKEN_NS (NN_PATH_S / 5)
#define OPEN_NS (10 * NN_PATH_S)
#define FAST_NS (60 * NN_PATH_S)
#define NOT_SEEN (-1)

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct nn_hold);
} nn_down_hold SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, NN_HOPS);
	__type(key, u32);
	__type(value, struct nn_down_hop);
} nn_down_hops SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct nn_ends);
	__type(value, struct nn_fetched);
} nn_fetched SEC(".maps");

/* not const: read as an algorithm's struct, it would be folded into its initial zeros */
u32 cfg[NN_PARAMS_MAX] SEC(".data.cfg");

nn_inline const struct nn_hold *the_hold(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&nn_down_hold, &zero);
}

nn_inline void lock(struct nn_down_hop *h, const struct nn_hold *hold, u64 now)
{
	bpf_spin_lock(&h->lock);
	if (!h->used) {
		struct nn_ack a = { .now_us = now / 1000, .mss = NN_DOWN_MSS };

		h->used = 1;
		h->hold = *hold;
		nn_down_init(&h->path, now);
		h->path.ctl.cwnd_q16 = NN_DOWN_WINDOW * NN_ONE;
		nn_flow_init((NN_STATE *)h->state, (const NN_CFG *)cfg, NULL, &a, &h->path.ctl);
	}
}

/* Which direction is in the background, by the settings of its socket; NOT_SEEN: that is none of this host's. */
nn_inline int only_of(struct __sk_buff *skb)
{
	struct bpf_sock *sk = skb->sk;
	const struct nn_flow *f;

	if (sk)
		sk = bpf_sk_fullsock(sk);
	if (!sk)
		return NOT_SEEN;
	f = bpf_sk_storage_get(&nn_flows, sk, 0, 0);
	return f ? f->settings.only : NN_ONLY_BOTH;
}

/* Whether windows are the kernel's now. */
nn_inline int is_open(const struct nn_down_hop *h, const struct nn_hold *hold, u64 now)
{
	return hold->closing || now < h->open_until;
}

/* What comes may be faster than is asked for: not a probe of more. */
nn_inline void open_if_fast(struct nn_down_hop *h, const struct nn_hold *hold, u64 now)
{
	if (nn_min(h->path.mu, h->path.last) > hold->fastest) {
		h->open_until = now + FAST_NS;
		h->fast = 1;
	}
}

#include "datagram.h"

/* A packet of the foreground leaves. */
nn_inline void announce(struct nn_down_hop *h, const struct nn_hold *hold, const struct nn_segment *s,
			u64 now, u32 index)
{
	struct nn_fetched *u;

	if (s->flags & (TCP_SYN | TCP_RST)) {
		bpf_map_delete_elem(&nn_fetched, &s->ends);
		return;
	}
	u = bpf_map_lookup_elem(&nn_fetched, &s->ends);
	if (!u) {
		struct nn_fetched fresh = {};

		bpf_map_update_elem(&nn_fetched, &s->ends, &fresh, BPF_ANY);
		u = bpf_map_lookup_elem(&nn_fetched, &s->ends);
		if (!u)
			return;
	}
	u->hop = index;
	lock(h, hold, now);
	nn_down_user_leaves(&h->path, &u->user, now, s->payload, (s->flags & TCP_ACK) != 0, s->ack);
	bpf_spin_unlock(&h->lock);
}

/* The downloads of a connection are left alone from now on. */
nn_inline void spare(struct nn_down_hop *h, const struct nn_hold *hold, struct nn_pulled *p, u64 now)
{
	if (p->began) {
		lock(h, hold, now);
		nn_down_end(&h->path, &p->flow);
		bpf_spin_unlock(&h->lock);
		p->began = p->told = 0;
	}
	p->spared = 1;
}

SEC("tc")
int nn_ask(struct __sk_buff *skb)
{
	const struct nn_hold *hold = the_hold();
	struct nn_options o = {};
	struct nn_segment s = {};
	struct nn_down_hop *h;
	struct nn_pulled *p;
	u32 index = 0, window, scale, random;
	int may_wait, open, only;
	u64 now, again;

	if (!hold)
		return TC_NEXT;
	if (skb->mark == LEAVES) {
		skb->mark = 0;
		return TC_NEXT;
	}
	if (!nn_read(skb, &s)) {
		expect(skb, hold, &s);
		return TC_NEXT;
	}
	only = only_of(skb);
	if (only == NN_ONLY_DOWN)
		s.le = 1;
	if (!hop_number(skb, ETH_TO, &index, s.le))
		return TC_NEXT;
	h = bpf_map_lookup_elem(&nn_down_hops, &index);
	if (!h)
		return TC_NEXT;
	now = bpf_ktime_get_ns();
	if (!s.le) {
		announce(h, hold, &s, now, index);
		return TC_NEXT;
	}
	if (s.flags & TCP_SYN && only != NN_ONLY_UP) {
		greet(skb, &s, index, is_open(h, hold, now));
		return TC_NEXT;
	}
	p = bpf_map_lookup_elem(&nn_pulled, &s.ends);
	if (!p)
		p = new_pulled(&s.ends, index);
	if (!p)
		return TC_NEXT;
	nn_read_options(skb, s.options_at, s.options, &o);
	if (cannot_yield(p, &s, &o, now) || only == NN_ONLY_UP || (only == NOT_SEEN && p->spared)) {
		spare(h, hold, p, now);
		announce(h, hold, &s, now, index);
		return TC_NEXT;
	}
	p->spared = 0;
	if (!p->scale)
		p->scale = scale_of(skb);
	if (!p->scale && p->answered) /* of a container, or a virtual machine */
		p->scale = p->offered ? p->offered : 1;
	if (s.flags & TCP_RST) {
		lock(h, hold, now);
		nn_down_end(&h->path, &p->flow);
		bpf_spin_unlock(&h->lock);
		return TC_NEXT;
	}
	if (!p->scale || !(s.flags & TCP_ACK))
		return TC_NEXT;
	scale = (p->scale - 1) & 15;
	random = bpf_get_prandom_u32();
	may_wait = !s.payload && !(s.flags & TCP_FIN);

	lock(h, hold, now);
	if (p->waits_until && now > p->waits_until + BROKEN_NS) {
		p->waits_until = 0;
		if (now > h->fired + BROKEN_NS) {
			h->open_until = now + OPEN_NS;
			h->fast = 0;
		}
	}
	open_if_fast(h, hold, now);
	open = is_open(h, hold, now);
	renew(p, &s, &o);
	if (open && p->began) {
		/* taken over anew afterwards: its TCP tells wider windows meanwhile */
		nn_down_end(&h->path, &p->flow);
		p->began = p->told = 0;
	} else if (!open && !p->began) {
		p->began = 1;
		p->began_at = now;
		p->flow.headers = s.headers; /* until its peer's are seen */
		nn_down_begin(&h->path, &p->flow, now, s.ack,
			      s.ack + (p->told ? p->told : s.window << scale), scale);
	}
	if (nn_down_after(s.ack + (s.window << scale), p->flow.wanted))
		p->flow.wanted = s.ack + (s.window << scale);
	window = open ? s.window : nn_down_offer(&h->path, &p->flow, now, s.ack);
	again = may_wait && !p->waits_until && !open ? nn_down_again(&h->path, &p->flow, now, random) : 0;
	if (again)
		p->waits_until = again;
	h->kept += window < s.window;
	bpf_spin_unlock(&h->lock);

	if (window < s.window)
		put_window(skb, tcp_of(&s), s.window, window);
	if (again && !bpf_skb_set_tstamp(skb, again, BPF_SKB_TSTAMP_DELIVERY_MONO)) {
		u32 mark = skb->mark;

		skb->mark = WAITS;
		if (bpf_clone_redirect(skb, hold->wait, 0) < 0) { /* nobody would open the window later */
			lock(h, hold, now);
			p->waits_until = 0;
			h->open_until = now + OPEN_NS;
			h->fast = 0;
			bpf_spin_unlock(&h->lock);
			put_window(skb, tcp_of(&s), window, s.window);
		}
		skb->mark = mark;
		bpf_skb_set_tstamp(skb, 0, BPF_SKB_TSTAMP_UNSPEC);
	}
	return TC_NEXT;
}

SEC("tc")
int nn_turn(struct __sk_buff *skb)
{
	const struct nn_hold *hold = the_hold();
	u32 window = 0, random = bpf_get_prandom_u32();
	struct nn_numbers newest;
	struct nn_options o = {};
	struct nn_segment s = {};
	struct nn_down_hop *h;
	struct nn_pulled *p;
	u64 now, again = 0;
	int tells = 0;

	if ((skb->mark & ~NN_DATAGRAM_TICKET) == DATAGRAM)
		return look_again(skb, hold);
	if (skb->mark != WAITS)
		return TC_NEXT;
	if (!hold || !nn_read(skb, &s))
		return TC_DROP;
	p = bpf_map_lookup_elem(&nn_pulled, &s.ends);
	if (!p)
		return TC_DROP;
	h = bpf_map_lookup_elem(&nn_down_hops, &p->hop);
	if (!h)
		return TC_DROP;
	nn_read_options(skb, s.options_at, s.options, &o);
	now = bpf_ktime_get_ns();

	lock(h, hold, now);
	h->fired = now;
	p->waits_until = 0;
	if (is_open(h, hold, now)) {
		window = (u32)nn_min((p->flow.wanted - p->newest.ack) >> (p->flow.scale & 15), 65535);
		tells = nn_down_after(p->flow.wanted, p->newest.ack);
	} else if (p->flow.open) {
		window = nn_down_offer(&h->path, &p->flow, now, p->newest.ack);
		tells = p->flow.tells != 0;
		again = nn_down_again(&h->path, &p->flow, now, random);
		p->waits_until = again;
	}
	newest = p->newest;
	bpf_spin_unlock(&h->lock);

	if (tells) {
		put_numbers(skb, &s, &o, &newest);
		put_window(skb, tcp_of(&s), s.window, window);
		skb->mark = LEAVES;
		bpf_skb_set_tstamp(skb, 0, BPF_SKB_TSTAMP_UNSPEC);
		if (!again)
			return (int)bpf_redirect(hold->device, 0);
		bpf_clone_redirect(skb, hold->device, 0);
	}
	if (!again || bpf_skb_set_tstamp(skb, again, BPF_SKB_TSTAMP_DELIVERY_MONO))
		return TC_DROP;
	skb->mark = WAITS;
	return (int)bpf_redirect(hold->wait, 0);
}

/*
 * Whether a packet is the last of a response, as far as one can see: it is short, and has PSH. `largest` is
 * of the segments of its connection, bytes.
 */
nn_inline int is_last(const struct nn_segment *s, u32 segment, u32 *largest)
{
	*largest = (u32)nn_max(*largest, segment);
	return s->payload && s->flags & TCP_PSH && s->payload % nn_max(*largest, 1);
}

/* Data of the background came. */
nn_inline void pulled(struct nn_down_hop *h, const struct nn_hold *hold, struct nn_pulled *p,
		      const struct nn_segment *s, u64 now, u32 segment, u32 stamp)
{
	int last = is_last(s, segment, &p->largest);
	struct nn_ack a = {};

	lock(h, hold, now);
	h->came += s->payload;
	if (s->payload)
		p->flow.headers = s->headers;
	if (s->payload && p->began &&
	    nn_down_came(&h->path, &p->flow, now, segment, s->end, stamp, last, &a))
		nn_flow_ack((NN_STATE *)h->state, (const NN_CFG *)cfg, NULL, &a, &h->path.ctl);
	if (s->flags & (TCP_FIN | TCP_RST))
		nn_down_end(&h->path, &p->flow);
	bpf_spin_unlock(&h->lock);
}

/* The number of the hop that a packet comes from, of such a connection; 0: there is none. */
nn_inline int hop_from(struct __sk_buff *skb, const struct nn_pulled *p, const struct nn_fetched *u, u32 *index)
{
	int is_known = hop_number(skb, ETH_FROM, index, 0);

	if (p)
		*index = p->hop;
	else if (u)
		*index = u->hop;
	else
		return is_known;
	if (!is_known)
		hop_also(skb, ETH_FROM, *index);
	return 1;
}

SEC("tc")
int nn_came(struct __sk_buff *skb)
{
	const struct nn_hold *hold = the_hold();
	struct nn_segment s = {};
	struct nn_options o = {};
	struct nn_ends ours;
	struct nn_down_hop *h;
	struct nn_fetched *u;
	struct nn_pulled *p;
	u32 index = 0, bytes, segment;
	int is_tcp, last;
	u64 now;

	if (skb->mark == CAME) {
		skb->mark = 0;
		return TC_NEXT;
	}
	if (!hold)
		return TC_NEXT;
	is_tcp = nn_read(skb, &s);
	ours = nn_turned(&s.ends);
	p = bpf_map_lookup_elem(&nn_pulled, &ours);
	u = bpf_map_lookup_elem(&nn_fetched, &ours);
	if (!hop_from(skb, p, u, &index))
		return TC_NEXT;
	h = bpf_map_lookup_elem(&nn_down_hops, &index);
	if (!h || !h->used)
		return TC_NEXT;
	now = bpf_ktime_get_ns();
	bytes = nn_wire(skb, s.headers ? s.headers : ETH_HEADER + 28);
	if (!is_tcp)
		return other_came(skb, h, hold, &s, now, bytes);
	segment = skb->gso_segs > 1 ? skb->gso_size : s.payload;
	lock(h, hold, now);
	nn_down_count(&h->path, now, bytes);
	h->came_all += bytes;
	bpf_spin_unlock(&h->lock);
	if (p && !p->spared) {
		if (s.flags & TCP_SYN)
			answer(skb, &s, p);
		nn_read_options(skb, s.options_at, s.options, &o);
		pulled(h, hold, p, &s, now, segment, o.stamp);
		return TC_NEXT;
	}
	if (!u)
		return TC_NEXT;
	last = is_last(&s, segment, &u->largest);
	lock(h, hold, now);
	nn_down_user_came(&h->path, &u->user, now, s.payload, last, s.flags & (TCP_FIN | TCP_RST));
	bpf_spin_unlock(&h->lock);
	return TC_NEXT;
}
