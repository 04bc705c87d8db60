/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The maps of groups, shared by all algorithms that have groups; entering and leaving. */
#ifndef NN_GROUPS_H
#define NN_GROUPS_H

#include <bpf/bpf_endian.h>

#include "group.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct nn_directory);
} nn_directory SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, NN_SLOTS);
	__type(key, u32);
	__type(value, struct nn_slot);
} nn_slots SEC(".maps");

nn_inline struct nn_directory *nn_directory_get(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&nn_directory, &zero);
}

/* The slot that a flow has; NULL: none. */
nn_inline struct nn_slot *nn_slot_get(const struct nn_flow *f)
{
	u32 index = f->slot - 1;

	return f->slot ? bpf_map_lookup_elem(&nn_slots, &index) : NULL;
}

/* The first `bits` of an address, which is made zero behind them. */
nn_inline void nn_group_mask(u32 addr[4], u32 bits)
{
	for (u32 i = 0; i < 4; i++) {
		u32 here = bits > 32 * i ? (u32)nn_min(bits - 32 * i, 32) : 0;

		addr[i] &= here ? bpf_htonl(~0u << (32 - here)) : 0;
	}
}

/* Which group a connection belongs to by its settings. */
nn_inline void nn_group_key(struct nn_group_key *key, const struct nn_settings *s,
			    const struct sock_common *sk)
{
	key->owner = s->owner;
	key->bits = (u32)nn_min(s->bits, 128);
	for (int i = 0; i < NN_GROUP_NAME; i++)
		key->name[i] = s->group[i];
	if (sk->skc_family == AF_INET6) {
		for (int i = 0; i < 4; i++)
			key->addr[i] = sk->skc_v6_daddr.in6_u.u6_addr32[i];
	} else {
		key->addr[2] = bpf_htonl(0xffff);
		key->addr[3] = sk->skc_daddr;
	}
	/* IPv4, in a socket of IPv6 too: the bits are those of its 32 */
	if (key->bits && !key->addr[0] && !key->addr[1] && key->addr[2] == bpf_htonl(0xffff))
		key->bits = 96 + (u32)nn_min(key->bits, 32);
	nn_group_mask(key->addr, key->bits);
}

nn_inline u64 nn_key_differs(const struct nn_group_key *a, const struct nn_group_key *b)
{
	const nn_word *x = (const nn_word *)a, *y = (const nn_word *)b;
	u64 bits = 0;

	for (u32 i = 0; i < sizeof(*a) / sizeof(*x); i++)
		bits |= x[i] ^ y[i];
	return bits;
}

/*
 * Counts a connection into its group; returns the index of its slot plus 1, 0: there is none left.
 *
 * The results of the search are kept in the map, where the verifier knows nothing of their values:
 * in registers it would follow the rest of the program with each of them.
 */
nn_inline u32 nn_group_enter(const struct nn_group_key *key)
{
	struct nn_directory *d = nn_directory_get();
	volatile u32 *found, *free;
	u32 slot;

	if (!d)
		return 0;
	found = &d->found;
	free = &d->free;
	bpf_spin_lock(&d->lock);
	*found = *free = 0;
	for (u32 i = 0; i < NN_SLOTS; i++) {
		if (!d->entry[i].flows)
			*free = i + 1;
		else if (!nn_key_differs(&d->entry[i].key, key))
			*found = i + 1;
	}
	slot = *found ? *found : *free;
	if (slot - 1 < NN_SLOTS && !d->entry[slot - 1].flows++)
		d->entry[slot - 1].key = *key;
	bpf_spin_unlock(&d->lock);
	return slot;
}

/* A connection has left its group; the last one leaves nothing. */
nn_inline void nn_group_exit(struct nn_flow *f)
{
	struct nn_directory *d = nn_directory_get();
	u32 index = f->slot - 1;

	f->slot = 0;
	if (!d || index >= NN_SLOTS)
		return;
	bpf_spin_lock(&d->lock);
	if (d->entry[index].flows && !--d->entry[index].flows)
		__builtin_memset(&d->entry[index], 0, sizeof(d->entry[index]));
	bpf_spin_unlock(&d->lock);
}

#endif
