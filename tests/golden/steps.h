/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The steps of the golden traces, the same as in steps.rs: 20,000 ACKs and
 * events from a fixed seed. The first three quarters are a path with a base
 * round trip of 50 ms and a queue that others fill and empty; the last quarter
 * has any bits in any field.
 */
#ifndef NN_STEPS_H
#define NN_STEPS_H

#include "../../core/trace.h"

#define N_STEPS 20000
#define MSS 1448u

struct path {
	u64 random;	/* state of nn_random() */
	u64 now_us;
	u32 una;	/* starts below 2^32, to wrap around */
	u32 window;	/* packets in flight */
	u32 queue_us;
	u32 target_us;	/* where the queue moves to */
	u32 srtt_us;
};

static const struct path path_at_start = {
	.random = 20021209, .una = 0u - 500 * MSS, .window = 10, .srtt_us = 50000,
};

nn_inline u32 below(struct path *p, u32 n)
{
	return (u32)(nn_random(&p->random) % n);
}

/* Any number of bits: small numbers and great ones alike. */
nn_inline u32 any(struct path *p)
{
	u64 bits = nn_random(&p->random);

	return (u32)(bits >> below(p, 64));
}

nn_inline struct nn_step path_step(struct path *p, u32 i)
{
	struct nn_step s = { 0 };

	/* for 256 steps nobody else sends, for 256 there is a queue of up to 40 ms */
	if (i % 256 == 0)
		p->target_us = i / 256 % 2 ? below(p, 40000) : 0;
	if (i % 64 == 0)
		p->window = below(p, 48); /* after the ACK */
	p->queue_us = (p->queue_us * 15 + p->target_us) / 16;
	p->now_us += 500 + below(p, 3000);

	s.event = (u32)nn_min(below(p, 1000), NN_EVENTS);
	s.ack.now_us = p->now_us;
	if (below(p, 16)) /* others have no RTT sample */
		s.ack.rtt_us = 50000 + p->queue_us + below(p, 300);
	s.ack.acked = below(p, 64) ? 1 + below(p, 2) : below(p, 20);
	s.ack.lost = below(p, 100) / 98;
	s.ack.flags = below(p, 60);
	if (s.ack.flags > (NN_ACK_ECE | NN_ACK_APP_LIMITED | NN_ACK_HOLD))
		s.ack.flags = 0;
	if (s.ack.rtt_us)
		p->srtt_us = (7 * p->srtt_us + s.ack.rtt_us) / 8;
	p->una += s.ack.acked * MSS;
	s.ack.srtt_us = p->srtt_us;
	s.ack.inflight = p->window;
	s.ack.una = p->una;
	s.ack.nxt = p->una + p->window * MSS;
	s.ack.mss = MSS;
	s.ack.flows = i / 256 % 64;
	return s;
}

nn_inline struct nn_step hostile_step(struct path *p)
{
	struct nn_step s = { 0 };

	s.event = below(p, 4 * NN_EVENTS);
	s.ack.now_us = nn_random(&p->random);
	s.ack.rtt_us = any(p);
	s.ack.srtt_us = any(p);
	s.ack.acked = any(p);
	s.ack.lost = any(p);
	s.ack.inflight = any(p);
	s.ack.una = any(p);
	s.ack.nxt = any(p);
	s.ack.flags = any(p);
	s.ack.mss = any(p);
	s.ack.flows = any(p);
	return s;
}

nn_inline struct nn_step next_step(struct path *p, u32 i)
{
	return i < N_STEPS / 4 * 3 ? path_step(p, i) : hostile_step(p);
}

#endif
