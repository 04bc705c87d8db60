/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * A flow of NN_ALG over a path with a bottleneck, as far as an algorithm can
 * tell it from a real one:
 *
 *	window, gap --> [ queue: own packets, others' ] --> rate --> delay --> ACK
 *
 * A host that tells other numbers for the same path is a `struct path_host`: its
 * clock and sequence numbers begin elsewhere, or its microseconds are shorter.
 */
#ifndef NN_FUZZ_PATH_H
#define NN_FUZZ_PATH_H

#include "fuzz.h"

#define PATH_DELAYED_US 40000 /* by which the receiver delays an ACK of fewer packets */
#define PATH_MOST 256	/* packets in flight; a larger window waits for the application */

struct path {
	u32 base_us;	/* round trip of an empty path, without the packet's own time */
	u32 packet_us;	/* time that a packet takes at the bottleneck */
	u32 buffer;	/* packets that may wait */
	u32 others_us;	/* how long others' packets in the queue take */
	u32 every;	/* the receiver acknowledges so many packets at once */
};

struct path_host {
	u64 clock_us;	/* what its clock shows at the start */
	u32 sequence;	/* the first sequence number */
	u32 scale;	/* its microseconds are so many times shorter */
};

struct path_flow {
	const struct path_host *host;
	const u32 *cfg;
	NN_STATE s;
	struct nn_ctl ctl;
	u64 now_us, send_us;	/* the clock; when the next packet may leave */
	u64 free_us, last_us;	/* when the link is free; when the last packet comes back */
	u32 una, nxt, burst;
	u32 recover;		/* losses up to here are of one window; 0: none */
	u32 srtt_us, acked, lost;
	u32 first_us, least_us, most_us; /* RTTs that were told */
	u64 most_q16;		/* the largest window */
	u64 sent_us[PATH_MOST], back_us[PATH_MOST]; /* back_us 0: dropped */
};

static inline struct nn_ack path_told(const struct path_flow *f, u32 rtt_us, u32 flags)
{
	const struct path_host *h = f->host;

	return (struct nn_ack){
		.now_us = h->clock_us + f->now_us * h->scale,
		.rtt_us = rtt_us * h->scale,
		.srtt_us = f->srtt_us * h->scale,
		.acked = f->acked,
		.lost = f->lost,
		.inflight = f->nxt - f->una,
		.una = h->sequence + f->una,
		.nxt = h->sequence + f->nxt,
		.flags = flags,
		.mss = 1448,
	};
}

static inline void path_start(struct path_flow *f, const struct path_host *host, const u32 *cfg)
{
	struct nn_ack a;

	memset(f, 0, sizeof(*f));
	f->host = host;
	f->cfg = cfg;
	f->ctl.cwnd_q16 = 10 * NN_ONE;
	a = path_told(f, 0, 0);
	nn_flow_init(&f->s, (const NN_CFG *)cfg, NULL, &a, &f->ctl);
}

static inline void path_event(struct path_flow *f, enum nn_event event)
{
	struct nn_ack a = path_told(f, 0, 0);

	if (event == NN_IDLE)
		f->ctl.cwnd_q16 = nn_min(f->ctl.cwnd_q16, 10 * NN_ONE);
	nn_flow_event(&f->s, (const NN_CFG *)f->cfg, NULL, event, &a, &f->ctl);
}

/* How many packets may be in flight: where gaps enforce a small window, two. */
static inline u32 path_window(const struct path_flow *f)
{
	u32 least = f->ctl.gap_us ? NN_BURST : 1;

	return (u32)nn_min(nn_max(f->ctl.cwnd_q16 / NN_ONE, least), PATH_MOST - 1);
}

/* When a packet in flight is acknowledged, or its loss found. */
static inline u64 path_back(const struct path_flow *f, const struct path *p, u32 packet)
{
	u32 at = packet % PATH_MOST;

	return f->back_us[at] ? f->back_us[at] : f->sent_us[at] + 2ull * p->base_us;
}

static inline void path_send(struct path_flow *f, const struct path *p)
{
	u32 at = f->nxt++ % PATH_MOST;
	u64 free_us = nn_max(f->free_us, f->now_us);

	f->sent_us[at] = f->now_us;
	f->back_us[at] = 0;
	if (free_us - f->now_us + p->others_us <= (u64)p->buffer * p->packet_us) {
		f->free_us = free_us + p->packet_us;
		/* first in, first out, also while others' queue gets shorter */
		f->back_us[at] = nn_max(f->free_us + p->others_us + p->base_us,
					f->last_us + p->packet_us);
		f->last_us = f->back_us[at];
	}
}

/* When the next ACK comes, if nothing more is sent. */
static inline u64 path_next(const struct path_flow *f, const struct path *p)
{
	u32 flying = f->nxt - f->una;

	if (!flying)
		return ~0ull;
	if (flying >= p->every)
		return path_back(f, p, f->una + p->every - 1);
	return path_back(f, p, f->nxt - 1) + PATH_DELAYED_US;
}

/* Sends what the window and the gap allow until the next ACK comes. */
static inline void path_fill(struct path_flow *f, const struct path *p)
{
	while (f->nxt - f->una < path_window(f)) {
		u64 next_us = nn_max(f->send_us, f->now_us);
		struct nn_ack a;

		if (next_us > path_next(f, p))
			return;
		f->now_us = next_us;
		a = path_told(f, 0, 0);
		nn_flow_send(&f->s, (const NN_CFG *)f->cfg, NULL, &a, &f->ctl);
		path_send(f, p);
		if (!f->ctl.gap_us || ++f->burst < f->ctl.burst)
			continue;
		f->burst = 0;
		f->send_us = f->now_us + f->ctl.gap_us / f->host->scale;
	}
}

/* Takes the packets that the next ACK covers; their last one's RTT, 0 if one of them was lost. */
static inline u32 path_arrive(struct path_flow *f, const struct path *p)
{
	u32 packets = (u32)nn_min(p->every, f->nxt - f->una), at = 0;

	f->now_us = nn_max(f->now_us, path_next(f, p));
	f->acked = packets;
	f->lost = 0;
	for (u32 i = 0; i < packets; i++) {
		at = f->una++ % PATH_MOST;
		f->lost += !f->back_us[at];
	}
	return f->lost ? 0 : (u32)(f->now_us - f->sent_us[at]);
}

/* The next ACK, after what may leave before it. */
static inline void path_step(struct path_flow *f, const struct path *p, u32 flags)
{
	struct nn_ack a;
	u32 rtt_us;

	path_fill(f, p);
	rtt_us = path_arrive(f, p);
	if (rtt_us) {
		f->srtt_us = f->srtt_us ? f->srtt_us - f->srtt_us / 8 + rtt_us / 8 : rtt_us;
		f->first_us = f->first_us ? f->first_us : rtt_us;
		f->least_us = f->least_us ? (u32)nn_min(f->least_us, rtt_us) : rtt_us;
		f->most_us = (u32)nn_max(f->most_us, rtt_us);
	}
	if (f->lost && (!f->recover || (s32)(f->una - f->recover) > 0)) {
		f->recover = f->nxt;
		path_event(f, NN_LOSS);
	}
	if (f->recover && (s32)(f->una - f->recover) <= 0)
		flags |= NN_ACK_HOLD;
	else
		f->recover = 0;
	a = path_told(f, rtt_us, flags);
	nn_flow_ack(&f->s, (const NN_CFG *)f->cfg, NULL, &a, &f->ctl);
	f->most_q16 = nn_max(f->most_q16, f->ctl.cwnd_q16);
}

/* A round trip: what is in flight now is acknowledged. */
static inline void path_round(struct path_flow *f, const struct path *p)
{
	u32 end = f->nxt;

	do
		path_step(f, p, 0);
	while ((s32)(f->una - end) <= 0);
}

#endif
