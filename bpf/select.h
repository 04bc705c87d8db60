/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Which connections of a cgroup are left out, beside what struct nn_run says. */
#ifndef NN_SELECT_H
#define NN_SELECT_H

#include "flow.h"

struct nn_left_out {
	u64 run;			/* whose it is */
	u32 mark;			/* SO_MARK of the sockets that are meant */
	u32 masked;			/* whether only sockets with that mark are */
	u32 n_peers;
	u32 unused;
	struct nn_peer peers[NN_PEERS];	/* those with these peers are not */
};

#endif
