// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * Holds what is in the background in this host until its path has room (core/host/path.h). After
 * TCP: whatever congestion control, container or virtual machine a packet is from. In the background
 * is a segment of TCP with data that is marked Lower Effort (RFC 8622), as `netnice run` marks them; and a
 * datagram of UDP that is marked so, or is of a run.
 *
 *	                 new: background            cut into segments
 *	egress of the ------------------> cut device -----------------+
 *	device: leave                                                 v
 *	     ^  ^                                             gate shut: back
 *	     |  +----------- gate open: it leaves -------------------+   |
 *	     |                                                        |   | departure time
 *	  foreground: counted, goes on                                +---+ wait device: fq
 *
 *	ingress of the device: ack	reads the ACKs of what left
 *
 * Each next hop (the Ethernet address that a packet is sent to) has a path of its own: what goes to
 * the LAN does not pass the uplink.
 *
 * Order. Connections leave in turns (core/host/line.h). A packet that waits has a ticket, in its mark. fq
 * keeps a flow for each connection, and a throttled flow stays throttled although an earlier packet joins
 * it. So all that wait of a connection have the time of its first packet, look again together, and only the
 * first may leave. A departure time cannot be taken back, and the rate may rise: those behind look again early.
 *
 * Requests. While no rate is known, a small packet of a connection of which nothing else is under way leaves as
 * the foreground does. Trains of such show no rate, and each would be answered before the next: downloads
 * waited for seconds until they were asked for.
 *
 * UDP. Its ACKs cannot be read, so it shows no rate. It waits while TCP of the background does, and passes
 * else. A connection that has more than 50 ms of the rate waiting loses the rest: so QUIC learns of it.
 *
 * Fail open. If nothing comes back for a second, someone took the devices away: then packets pass
 * for ten seconds, counted as before. Without these programs packets go as ever.
 */
#include "kernel.h"
#include "shared.h"
#include "packet.h"
#include "hop.h"
#include "udp.h"

char _license[] SEC("license") = "Dual MIT/GPL";

#define PASSED 0x4e4e0000u	/* marks: it may leave; it has the ticket of the lower 16 bits */
#define WAITS 0x4e4f0000u
#define NEW 0x4e510000u		/* it goes to be cut, and comes back as it is */
#define TICKET 0xffffu
#define EARLY 6 / 8	/* of its wait after which one behind looks again */
#define LONGEST_NS NN_PATH_S	/* fq drops what is to leave beyond its horizon of 10 s */
#define BROKEN_NS NN_PATH_S
#define OPEN_NS (10 * NN_PATH_S)
#define REQUEST 512u		/* bytes of payload, or less */
#define FULL_PAYLOAD 1448u	/* of a full packet, with time stamps */
#define LOST_NS (NN_PATH_S / 10)	/* a packet that is so late was lost */
#define RATE_NS (10 * NN_PATH_S)	/* for so long a rate holds that nothing shows any more */
#define UDP_NS (NN_PATH_S / 20)		/* of the rate, that may wait of a connection */

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct nn_hold);
} nn_hold SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, NN_HOPS);
	__type(key, u32);
	__type(value, struct nn_hop);
} nn_hops SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct nn_ends);
	__type(value, struct nn_held);
} nn_held SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct nn_packet);
	__type(value, struct nn_left);
} nn_left SEC(".maps");

nn_inline const struct nn_hold *the_hold(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&nn_hold, &zero);
}

/* The path to where a packet is sent; NULL: nothing in the background goes there, or there are too many. */
nn_inline struct nn_hop *hop_of(struct __sk_buff *skb, u32 *index, int make)
{
	if (!hop_number(skb, ETH_TO, index, make))
		return NULL;
	return bpf_map_lookup_elem(&nn_hops, index);
}

/* The control of the packet's connection learns that it is held, or the run of a socket of UDP. */
nn_inline void tell(struct __sk_buff *skb, u64 now)
{
	struct bpf_sock *sk = skb->sk;
	struct nn_flow *f;
	struct nn_udp *u;

	if (sk)
		sk = bpf_sk_fullsock(sk);
	if (!sk)
		return;
	f = bpf_sk_storage_get(&nn_flows, sk, 0, 0);
	if (f)
		f->held_us = now / 1000;
	u = udp_of(sk);
	if (u)
		u->held_us = now / 1000;
}

/* Whether the packet is a datagram of the background. */
nn_inline int is_datagram(struct __sk_buff *skb, const struct nn_segment *s)
{
	const struct nn_udp *u;

	if (!s->ends.udp || s->le)
		return s->ends.udp;
	u = udp_of(skb->sk);
	return u && u->up;
}

nn_inline int is_rate_known(const struct nn_hop *h, u64 now)
{
	return h->path.mu && now < h->path.busy_at + RATE_NS;
}

nn_inline void lock(struct nn_hop *h, const struct nn_hold *hold, u64 now)
{
	bpf_spin_lock(&h->lock);
	if (!h->used) {
		h->used = 1;
		h->hold = *hold;
		nn_path_init(&h->path, now);
	}
}

/* Also one that is sent again, perhaps for nothing: if that waited, so would the next. */
nn_inline int is_request(const struct nn_held *c, const struct nn_segment *s)
{
	return s->payload <= REQUEST && !c->place.waits && (s32)(s->end - s->payload - c->acked) <= 0;
}

SEC("tc")
int nn_leave(struct __sk_buff *skb)
{
	const struct nn_hold *hold = the_hold();
	struct nn_segment s = {};
	struct nn_held *c;
	struct nn_hop *h;
	u64 now;
	u32 index = 0;
	int ours;

	if (!hold || skb->mark == PASSED)
		return TC_NEXT;
	now = bpf_ktime_get_ns();
	ours = nn_read(skb, &s) && s.le;
	h = hop_of(skb, &index, ours && s.payload);
	if (!h)
		return TC_NEXT;
	ours |= is_datagram(skb, &s) && is_rate_known(h, now);
	if (ours && s.flags & TCP_SYN)
		bpf_map_delete_elem(&nn_held, &s.ends); /* another one had these ends */
	if (!ours || !s.payload || now < h->open_until || nn_path_away(&h->path, now))
		goto pass;
	if (h->asked && now > h->asked + BROKEN_NS) {
		h->asked = 0;
		h->open_until = now + OPEN_NS;
		goto pass;
	}
	c = bpf_map_lookup_elem(&nn_held, &s.ends);
	if (!c) {
		struct nn_held fresh = {
			.place.id = (u64)bpf_get_prandom_u32() << 32 | bpf_get_prandom_u32(),
			.acked = s.end - s.payload,
			.most = s.end - s.payload,
		};

		bpf_map_update_elem(&nn_held, &s.ends, &fresh, BPF_ANY);
		c = bpf_map_lookup_elem(&nn_held, &s.ends);
	}
	if (c) {
		c->hop = index;
		if (!h->path.mu && is_request(c, &s)) {
			if ((s32)(s.end - c->most) > 0)
				c->most = s.end;
			c->seen = 1;
			goto pass;
		}
	}
	tell(skb, now);
	skb->mark = NEW;
	if (!h->asked)
		h->asked = now;
	return (int)bpf_redirect(hold->cut, 0);
pass:
	lock(h, hold, now);
	nn_path_left(&h->path, now, nn_wire(skb, s.headers ? s.headers : ETH_HEADER + 28), NULL);
	if (ours && s.payload && now < h->open_until)
		h->unheld++;
	bpf_spin_unlock(&h->lock);
	return TC_NEXT;
}

/* Where a packet stands in the line: 0: it leaves now; else the clock at which it looks again. */
nn_inline u64 line(struct nn_hop *h, struct nn_held *c, u64 now, u32 bytes, int fresh, u32 *ticket)
{
	u32 me = 0x10000 | (fresh ? h->ticket & TICKET : *ticket), before;
	u64 each, t;
	int first;

	if (fresh) {
		if (now > h->tail + LOST_NS)
			h->waiting = 0; /* they were lost */
		first = !c->place.waits;
		nn_line_join(&h->line, &c->place);
	} else {
		first = !c->first || c->first == me || now > c->when + LOST_NS;
	}
	*ticket = me & TICKET;
	if (!first) {
		t = c->when;
	} else {
		before = nn_line_before(&h->line, &c->place);
		if (now > (fresh ? h->tail : h->floor) + LOST_NS)
			before = 0; /* those were lost, and are not waited for */
		t = nn_path_gate(&h->path, now);
		each = h->path.drain ? bytes * NN_PATH_S / h->path.drain : NN_PATH_S / 1000;
		if (before && h->path.mu) /* a train leaves together: whoever looks first */
			t = nn_min(nn_max(h->floor, now) + before * each * EARLY, now + LONGEST_NS);
		if (!t) {
			nn_line_leave(&h->line, &c->place, !fresh);
			if (!fresh) {
				h->floor = now + each;
				c->first = 0;
				h->waiting -= h->waiting > 0;
			}
			return 0;
		}
		c->when = t;
		c->first = me;
		if (!before)
			h->floor = t;
		h->tail = nn_max(h->tail, t + each);
	}
	if (fresh) {
		h->ticket++;
		h->held++;
		h->waiting++;
		nn_line_wait(&h->line, &c->place);
	}
	return t;
}

/* A packet comes from one of the two devices. */
SEC("tc")
int nn_back(struct __sk_buff *skb)
{
	int fresh = (skb->mark & ~TICKET) != WAITS;
	u32 ticket = skb->mark & TICKET, bytes = skb->len, index = 0;
	u64 now = bpf_ktime_get_ns(), t = 0;
	const struct nn_hold *hold = the_hold();
	struct nn_options o = {};
	struct nn_packet name = {};
	struct nn_segment s = {};
	struct nn_left left = {};
	struct nn_held *c;
	struct nn_hop *h;
	int drop = 0;

	if ((skb->mark & ~TICKET) == NN_TURNS)
		return TC_NEXT;
	if (!hold || (fresh && skb->mark != NEW))
		return TC_DROP; /* of a DHCP client, say: nothing else is sent from here */
	if (!nn_read(skb, &s) && !s.ends.udp)
		return TC_DROP;
	c = bpf_map_lookup_elem(&nn_held, &s.ends);
	index = c ? c->hop : 0;
	h = bpf_map_lookup_elem(&nn_hops, &index);
	if (!c || !h) {
		skb->mark = PASSED; /* its connection ended */
		return (int)bpf_redirect(hold->device, 0);
	}
	nn_read_options(skb, s.options_at, s.options, &o);
	left.stamp = o.stamp;
	c->largest = (u32)nn_max(c->largest, s.payload);
	left.full = s.payload == c->largest; /* whatever the MSS of its path */
	name.id = c->place.id;
	name.end = s.end;

	lock(h, hold, now);
	if (fresh)
		h->asked = 0;
	else
		h->given = 0;
	if (fresh && c->place.waits && now > c->when + 2 * LOST_NS) {
		nn_line_lose(&h->line, &c->place); /* or they left while the line was broken */
		c->first = 0;
	}
	if (h->given && now > h->given + BROKEN_NS) {
		h->given = 0;
		h->open_until = now + OPEN_NS;
	}
	if (now < h->open_until)
		h->unheld++;
	else if (fresh && s.ends.udp && (u64)c->place.waits * bytes * NN_PATH_S > h->path.mu * UDP_NS)
		drop = 1;
	else
		t = line(h, c, now, bytes, fresh, &ticket);
	h->dropped += drop;
	if (t) {
		if (!h->given)
			h->given = nn_max(h->tail, t);
	} else if (s.ends.udp) {
		if (!drop) {
			nn_path_left_unread(&h->path, now, bytes);
			h->datagrams += bytes;
		}
	} else {
		nn_path_left(&h->path, now, bytes, &left.sent);
		/* Karn: which of the two would its ACK be for? */
		if (c->seen && (s32)(s.end - c->most) <= 0) {
			left.sent.at = 0;
			nn_path_again(&h->path, now);
		} else {
			c->most = s.end;
		}
		c->seen = 1;
	}
	bpf_spin_unlock(&h->lock);

	if (t) {
		skb->mark = WAITS | ticket;
		bpf_skb_set_tstamp(skb, t, BPF_SKB_TSTAMP_DELIVERY_MONO);
		return (int)bpf_redirect(hold->wait, 0);
	}
	if (drop)
		return TC_DROP;
	if (!s.ends.udp)
		bpf_map_update_elem(&nn_left, &name, &left, BPF_ANY);
	skb->mark = PASSED;
	return (int)bpf_redirect(hold->device, 0);
}

/* A packet comes in on the device: is it the ACK of one that left? */
SEC("tc")
int nn_ack(struct __sk_buff *skb)
{
	const struct nn_hold *hold = the_hold();
	struct nn_ends theirs;
	struct nn_packet name = {};
	struct nn_segment s = {};
	struct nn_options o = {};
	struct nn_left *found, left;
	struct nn_held *c;
	struct nn_hop *h;
	u32 acked, known, gap;
	u64 now;

	if (!hold || !nn_read(skb, &s) || s.flags & TCP_FLAGS_NO_DATA)
		return TC_NEXT;
	theirs = nn_turned(&s.ends);
	c = bpf_map_lookup_elem(&nn_held, &theirs);
	if (!c)
		return TC_NEXT;
	h = bpf_map_lookup_elem(&nn_hops, &c->hop);
	if (!h)
		return TC_NEXT;
	now = bpf_ktime_get_ns();
	nn_read_options(skb, s.options_at, s.options, &o);
	acked = s.ack - c->acked;
	gap = c->gap | o.sack;
	if ((s32)acked <= 0) {
		if (s.payload)
			return TC_NEXT;
		c->gap = 1;
		if (o.sack) { /* one more behind the gap, which the ACK that fills it acknowledges once more */
			c->beyond += FULL_PAYLOAD;
			lock(h, hold, now);
			nn_path_delivered(&h->path, NN_PATH_PACKET);
			bpf_spin_unlock(&h->lock);
		}
		return TC_NEXT;
	}
	known = (u32)nn_min(c->beyond, acked);
	c->beyond = o.sack ? c->beyond - known : 0;
	c->acked = s.ack;
	c->gap = o.sack;
	name.id = c->place.id;
	name.end = s.ack;
	found = bpf_map_lookup_elem(&nn_left, &name);
	if (found) {
		left = *found;
		bpf_map_delete_elem(&nn_left, &name);
	}
	lock(h, hold, now);
	/* with the headers of full packets */
	nn_path_delivered(&h->path, (u64)(acked - known) * NN_PATH_PACKET / FULL_PAYLOAD);
	/*
	 * No sample: of a small packet; of one that left twice; of one that waited for a gap to be filled.
	 * The ACK of a filled gap names a packet that came long ago, and echoes the retransmission's stamp.
	 */
	if (found && left.full && left.sent.at && !gap &&
	    !(o.echo && (s32)(left.stamp - o.echo) < 0)) {
		nn_path_ack(&h->path, &c->base, now, &left.sent, acked, o.stamp);
		if (h->path.mu > hold->fastest)
			nn_path_leave_alone(&h->path, now);
	}
	bpf_spin_unlock(&h->lock);
	return TC_NEXT;
}
