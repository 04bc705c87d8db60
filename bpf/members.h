/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * A connection's place in a group. The hooks of connections that share a group are called under
 * its lock. Without NN_IN_GROUPS each connection is on its own.
 */
#ifndef NN_MEMBERS_H
#define NN_MEMBERS_H

#include "connection.h"

#ifdef NN_IN_GROUPS

#include <bpf/bpf_endian.h>

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

nn_inline void nn_lock(struct nn_group *g)
{
	bpf_spin_lock(&((struct nn_slot *)g)->lock);
}

nn_inline void nn_unlock(struct nn_group *g)
{
	bpf_spin_unlock(&((struct nn_slot *)g)->lock);
}

nn_inline struct nn_group *group_of(const struct nn_flow *f)
{
	return (struct nn_group *)nn_slot_get(f);
}

/*
 * A connection joins its group when it first has more to send than its window allows; until then it
 * is on its own. One that never has, as for control beside one for data, is entitled to nothing: as a
 * member it would bring a window that the others fill. (iperf3 has such a second connection: five of
 * them took 2.3 times what five flows of Reno took.)
 */
nn_inline void join_group(struct nn_flow *f, struct tcp_sock *tp, const struct sock_common *sk)
{
	struct nn_group_key key = { .ca = NN_STR(NN_CONTROL) };
	struct nn_slot *slot;

	if (!f->settings.group[0] || f->asked)
		return;
	f->asked = 1;
	nn_group_key(&key, &f->settings, sk);
	f->slot = nn_group_enter(&key);
	slot = nn_slot_get(f);
	if (!slot)
		return;
	slot->group.apart = key.bits < 128; /* all members write the same */
	__builtin_memset(f->state, 0, sizeof(f->state));
	look(f, tp);
	nn_flow_init(state_of(f), cfg_of(f), &slot->group, &f->ack, &f->ctl);
}

nn_inline void leave_group(struct nn_flow *f)
{
	if (!f->slot)
		return;
	nn_flow_event(state_of(f), cfg_of(f), group_of(f), NN_CLOSE, &f->ack, &f->ctl);
	nn_group_exit(f);
}

#else

nn_inline void nn_lock(struct nn_group *g)
{
}

nn_inline void nn_unlock(struct nn_group *g)
{
}

nn_inline struct nn_group *group_of(const struct nn_flow *f)
{
	return NULL;
}

nn_inline void join_group(struct nn_flow *f, struct tcp_sock *tp, const struct sock_common *sk)
{
}

nn_inline void leave_group(struct nn_flow *f)
{
}

#endif

#endif
