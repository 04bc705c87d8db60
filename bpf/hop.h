/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Next hops: the Ethernet addresses behind a device, each with a number. What goes to the LAN does not
 * pass the uplink.
 */
#ifndef NN_HOP_H
#define NN_HOP_H

#include "kernel.h"
#include "hold.h"

#define TC_NEXT (-1)	/* TC_ACT_UNSPEC: the next program of the device, or the packet goes on */
#define TC_DROP 2	/* TC_ACT_SHOT */

/* Where a frame has the addresses that it goes to, and comes from. */
#define ETH_TO 0
#define ETH_FROM 6

struct hop_address {
	u8 of[6];
	u8 reserved[2];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 2 * NN_HOPS);
	__type(key, struct hop_address);
	__type(value, u32);
} nn_hop_index SEC(".maps");

static u32 hops;

/* The number of the hop at that place of a frame; 0: it has none, unless one shall be made and there is room. */
nn_inline int hop_number(struct __sk_buff *skb, u32 place, u32 *index, int make)
{
	struct hop_address hop = {};
	u32 *found, fresh;

	if (bpf_skb_load_bytes(skb, place, hop.of, sizeof(hop.of)))
		return 0;
	found = bpf_map_lookup_elem(&nn_hop_index, &hop);
	if (!found) {
		if (!make || hops >= NN_HOPS)
			return 0;
		fresh = __sync_fetch_and_add(&hops, 1);
		if (fresh >= NN_HOPS || bpf_map_update_elem(&nn_hop_index, &hop, &fresh, BPF_NOEXIST))
			return 0; /* another processor was first: the next packet finds it */
		found = &fresh;
	}
	*index = *found;
	return 1;
}

/* The hop has the address at that place, too: a router sends from its own one, and is sent to at a shared one (VRRP). */
nn_inline void hop_also(struct __sk_buff *skb, u32 place, u32 index)
{
	struct hop_address hop = {};

	if (!bpf_skb_load_bytes(skb, place, hop.of, sizeof(hop.of)))
		bpf_map_update_elem(&nn_hop_index, &hop, &index, BPF_NOEXIST);
}

#endif
