/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Reads a packet of Ethernet, IPv4 or IPv6, and TCP or UDP.
 */
#ifndef NN_PACKET_H
#define NN_PACKET_H

#include "kernel.h"
#include "hold.h"

#include <bpf/bpf_endian.h>

#define ETH_HEADER 14
#define ETH_P_IP 0x0800
#define ETH_P_IPV6 0x86dd
#define IPPROTO_TCP 6
#define IPPROTO_UDP 17
#define IP_FRAGMENT 0x3fff
#define DSCP_LE 1	/* RFC 8622 */
#define TCP_FIN 0x01
#define TCP_SYN 0x02
#define TCP_RST 0x04
#define TCP_PSH 0x08
#define TCP_ACK 0x10
#define TCP_FLAGS_NO_DATA 0x07	/* FIN, SYN, RST */
#define TCP_OPTIONS 40
#define TCPOPT_NOP 1
#define TCPOPT_SCALE 3
#define TCPOPT_SACK 5
#define TCPOPT_TIMESTAMP 8
#define TCPOPT_MD5 19	/* RFC 2385 */
#define TCPOPT_AO 29	/* RFC 5925 */

struct ethernet {
	u8 to[6], from[6];
	__be16 protocol;
} __attribute__((packed));

struct ipv4 {
	u8 version_ihl, tos;
	__be16 length, id, fragment;
	u8 ttl, protocol;
	__be16 checksum;
	__be32 from, to;
};

struct ipv6 {
	__be32 version_class_flow;
	__be16 length;
	u8 next, limit;
	__be32 from[4], to[4];
};

struct tcp {
	__be16 from, to;
	__be32 seq, ack;
	u8 offset, flags;
	__be16 window, checksum, urgent;
};

struct udp {
	__be16 from, to, length, checksum;
};

/* A segment of TCP; zero where the packet has none. Of a datagram of UDP the first three, with ends.udp. */
struct nn_segment {
	struct nn_ends ends;
	u32 headers;		/* bytes, Ethernet's included */
	u32 payload;
	u32 end;		/* sequence number behind the payload */
	u32 ack;
	u32 flags;
	u32 window;		/* as it stands there */
	u32 options;		/* bytes */
	u32 options_at;
	u32 le;			/* marked Lower Effort; of packets that are no TCP too */
};

/*
 * Reads it into zeros; 0: no segment of TCP, or not one that can be told. Not static: so the
 * verifier walks it once, and knows nothing of the result but its type.
 */
__attribute__((noinline)) int nn_read(struct __sk_buff *skb, struct nn_segment *s)
{
	u32 at = ETH_HEADER, length, protocol;
	struct tcp tcp;

	if (!s)
		return 0;
	if (skb->protocol == bpf_htons(ETH_P_IP)) {
		struct ipv4 ip;

		if (bpf_skb_load_bytes(skb, at, &ip, sizeof(ip)))
			return 0;
		s->le = ip.tos >> 2 == DSCP_LE;
		if (ip.fragment & bpf_htons(IP_FRAGMENT))
			return 0;
		protocol = ip.protocol;
		s->ends.from[0] = ip.from;
		s->ends.to[0] = ip.to;
		length = bpf_ntohs(ip.length);
		if (length)
			length -= 4 * (ip.version_ihl & 15u);
		at += 4 * (ip.version_ihl & 15u);
	} else if (skb->protocol == bpf_htons(ETH_P_IPV6)) {
		struct ipv6 ip;

		if (bpf_skb_load_bytes(skb, at, &ip, sizeof(ip)))
			return 0;
		s->le = (bpf_ntohl(ip.version_class_flow) >> 22 & 63) == DSCP_LE;
		protocol = ip.next;
		__builtin_memcpy(s->ends.from, ip.from, sizeof(ip.from));
		__builtin_memcpy(s->ends.to, ip.to, sizeof(ip.to));
		s->ends.v6 = 1;
		length = bpf_ntohs(ip.length);
		at += sizeof(ip);
	} else {
		return 0;
	}
	if (protocol == IPPROTO_UDP) {
		struct udp udp;

		if (bpf_skb_load_bytes(skb, at, &udp, sizeof(udp)))
			return 0;
		s->ends.from_port = udp.from;
		s->ends.to_port = udp.to;
		s->ends.udp = 1;
		s->headers = at + sizeof(udp);
		s->payload = length > sizeof(udp) ? length - (u32)sizeof(udp) : 0;
		return 0;
	}
	if (protocol != IPPROTO_TCP || bpf_skb_load_bytes(skb, at, &tcp, sizeof(tcp)))
		return 0;
	s->options_at = at + sizeof(tcp);
	s->options = 4 * (u32)(tcp.offset >> 4) - sizeof(tcp);
	s->headers = at + 4 * (u32)(tcp.offset >> 4);
	s->ends.from_port = tcp.from;
	s->ends.to_port = tcp.to;
	/* BIG TCP has no length in its header: skb->len has */
	s->payload = length > s->headers - at ? length - (s->headers - at) : 0;
	if (!length && skb->len > s->headers)
		s->payload = skb->len - s->headers;
	s->end = bpf_ntohl(tcp.seq) + s->payload;
	s->ack = bpf_ntohl(tcp.ack);
	s->flags = tcp.flags;
	s->window = bpf_ntohs(tcp.window);
	return 1;
}

/* The ends as the other one's packets name them. */
nn_inline struct nn_ends nn_turned(const struct nn_ends *e)
{
	struct nn_ends other = {
		.from_port = e->to_port, .to_port = e->from_port, .v6 = e->v6, .udp = e->udp,
	};

	__builtin_memcpy(other.from, e->to, sizeof(other.from));
	__builtin_memcpy(other.to, e->from, sizeof(other.to));
	return other;
}

struct nn_options {
	u32 stamp, echo;	/* TSval, TSecr; 0: none */
	u8 scale;		/* of windows, plus 1; 0: none */
	u8 sack;
	u8 odd;			/* others than these, or stamps that do not stand first, behind two NOPs */
	u8 sealed;		/* a signature: nothing may be changed */
};

/* A walk over options, from one to the next. */
struct nn_walk {
	u8 byte[64];
	u32 at, length;
	struct nn_options found;
};

/* Four bytes in network order. */
nn_inline u32 nn_be32(const struct nn_walk *w, u32 i)
{
	return (u32)w->byte[i & 63] << 24 | (u32)w->byte[(i + 1) & 63] << 16 |
	       (u32)w->byte[(i + 2) & 63] << 8 | w->byte[(i + 3) & 63];
}

static long nn_read_option(u32 n, void *walk)
{
	struct nn_walk *w = walk;
	u32 at = w->at, kind = w->byte[at & 63], size = w->byte[(at + 1) & 63];

	if (at + 1 >= w->length)
		return 1;
	if (kind == TCPOPT_NOP) {
		w->at = at + 1;
		return 0;
	}
	if (!kind || size < 2)
		return 1;
	if (kind == TCPOPT_SACK)
		w->found.sack = 1;
	else if (kind != TCPOPT_TIMESTAMP || at != 2)
		w->found.odd = 1;
	if (kind == TCPOPT_MD5 || kind == TCPOPT_AO)
		w->found.sealed = 1;
	if (kind == TCPOPT_SCALE && size == 3)
		w->found.scale = (u8)(w->byte[(at + 2) & 63] + 1);
	if (kind == TCPOPT_TIMESTAMP && size == 10) {
		w->found.stamp = nn_be32(w, at + 2);
		w->found.echo = nn_be32(w, at + 6);
	}
	w->at = at + size;
	return 0;
}

/* Reads `length` bytes of options from `from` on, in whatever order. Not static: as above. */
__attribute__((noinline)) int nn_read_options(struct __sk_buff *skb, u32 from, u32 length,
					      struct nn_options *o)
{
	struct nn_walk w = { .length = length };

	if (!o)
		return 0;
	/* a word at a time: the verifier of Linux 6.1 wants a length that is constant */
	for (u32 n = 0; n < TCP_OPTIONS; n += 4)
		if (n < length && bpf_skb_load_bytes(skb, from + n, w.byte + n, 4))
			return 0;
	bpf_loop(TCP_OPTIONS, nn_read_option, &w, 0);
	*o = w.found;
	return 1;
}

/*
 * What the packet takes on the wire, as often as it has segments: an egress hook sees GSO packets also
 * where the device has no segmentation offload, since they are cut below it.
 */
nn_inline u32 nn_wire(struct __sk_buff *skb, u32 headers)
{
	u32 segments = skb->gso_segs;

	return skb->len + (segments > 1 ? (segments - 1) * headers : 0);
}

#endif
