/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Changes a segment of TCP, and its checksum by what that changes.
 */
#ifndef NN_REWRITE_H
#define NN_REWRITE_H

#include "packet.h"
#include "down.h"

#define AT_SEQ 4
#define AT_ACK 8
#define AT_WINDOW 14
#define AT_CHECKSUM 16
#define AT_OPTIONS 20
#define AT_STAMP 24	/* after two NOPs, as Linux writes it */
#define WITH_STAMPS 12u	/* bytes of options up to their end */
#define NOPS 0x01010101u

/* Each writes a field, and what that changes of the checksum: numbers in host order. */
nn_inline void put_window(struct __sk_buff *skb, u32 tcp, u32 was, u32 is)
{
	__be16 from = bpf_htons((u16)was), to = bpf_htons((u16)is);

	if (from == to)
		return;
	bpf_l4_csum_replace(skb, tcp + AT_CHECKSUM, from, to, 2);
	bpf_skb_store_bytes(skb, tcp + AT_WINDOW, &to, 2, 0);
}

nn_inline void put32(struct __sk_buff *skb, u32 tcp, u32 at, u32 was, u32 is)
{
	__be32 from = bpf_htonl(was), to = bpf_htonl(is);

	if (from == to)
		return;
	bpf_l4_csum_replace(skb, tcp + AT_CHECKSUM, from, to, 4);
	bpf_skb_store_bytes(skb, tcp + at, &to, 4, 0);
}

nn_inline u32 tcp_of(const struct nn_segment *s)
{
	return s->options_at - (u32)sizeof(struct tcp);
}

/* A copy tells of no gaps, which may be filled by now: NOPs from there on, where SACK is all that stands. */
nn_inline void put_nops(struct __sk_buff *skb, const struct nn_segment *s, u32 from)
{
	__be32 word;

	for (u32 n = 0; n < TCP_OPTIONS; n += 4)
		if (n >= from && n < s->options && !bpf_skb_load_bytes(skb, s->options_at + n, &word, 4))
			put32(skb, tcp_of(s), AT_OPTIONS + n, bpf_ntohl(word), NOPS);
}

/* Makes a copy say what is newest. */
nn_inline void put_numbers(struct __sk_buff *skb, const struct nn_segment *s, const struct nn_options *o,
			   const struct nn_numbers *newest)
{
	put32(skb, tcp_of(s), AT_SEQ, s->end - s->payload, newest->seq);
	put32(skb, tcp_of(s), AT_ACK, s->ack, newest->ack);
	if (o->stamp) {
		put32(skb, tcp_of(s), AT_STAMP, o->stamp, newest->stamp);
		put32(skb, tcp_of(s), AT_STAMP + 4, o->echo, newest->echo);
	}
	if (o->sack)
		put_nops(skb, s, o->stamp ? WITH_STAMPS : 0);
}

#endif
