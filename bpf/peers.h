/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Which peers a run is for, or leaves out. */
#ifndef NN_PEERS_H
#define NN_PEERS_H

#include "kernel.h"
#include "flow.h"

#include <bpf/bpf_endian.h>

/* Whether one of n `peers` has this address (IPv4 as ::ffff:a.b.c.d) and port, of either end, in host byte order. */
nn_inline int is_among(const struct nn_peer *peers, u32 n, const u32 peer[4], u32 theirs, u32 ours)
{
	u32 v4 = !peer[0] && !peer[1] && peer[2] == bpf_htonl(0xffff);

	for (u32 i = 0; i < NN_PEERS && i < n; i++) {
		const struct nn_peer *p = &peers[i];
		u32 differs = p->v4 ^ v4;

		for (u32 w = 0; w < 4; w++)
			differs |= (peer[w] ^ p->address[w]) & p->mask[w];
		if (!differs && (!p->port || p->port == theirs || p->port == ours))
			return 1;
	}
	return 0;
}

#endif
