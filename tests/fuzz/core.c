/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Fuzzes one algorithm, NN_ALG (libFuzzer; see run). The input chooses the
 * parameters within their ranges, the host's initial window and a list of ACKs
 * and events, plausible or absurd. After each of them the answer must be one
 * that a host can obey, and must depend on the inputs only; at the end, clean
 * rounds must bring the flow back from wherever it got.
 *
 * What a host promises, and this keeps: una <= nxt, and neither goes back.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../core/flow.h"

#define ROUNDS 64	/* from 1/4096 up to two packets: 12 doublings and a few more */
#define CHECK(what)                                                                                \
	do {                                                                                       \
		if (!(what)) {                                                                     \
			fprintf(stderr, "violated: %s\n", #what);                                  \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

struct range {
	const char *name;
	u32 def, least, most; /* Q16 */
};

#define RANGE(name, def, least, most, unit, source, help)                                          \
	{ #name, NN_Q16(def), NN_Q16(least), NN_Q16(most) },
static const struct range ranges[] = { NN_PARAMS(RANGE) { 0 } };

/* A flow that is driven twice, in memory of its own each time. */
struct flow {
	NN_STATE *s[2];
	struct nn_ctl ctl[2];
	u32 *cfg;
	u64 least_q16, most_q16; /* of its window */
	struct nn_ack ack;
};

struct input {
	const u8 *data;
	size_t left;
};

/* A number of `bytes` bytes; zero where the input has ended. */
static u64 take(struct input *in, size_t bytes)
{
	u64 x = 0;

	for (; bytes && in->left; bytes--, in->left--)
		x = x << 8 | *in->data++;
	return x;
}

static void check(const struct flow *f)
{
	const struct nn_ctl *ctl = &f->ctl[0];
	struct nn_info info = { 0 };

	CHECK(ctl->cwnd_q16 >= f->least_q16);
	CHECK(ctl->cwnd_q16 <= f->most_q16);
	CHECK(ctl->gap_us <= NN_GAP_MAX);
	CHECK(!ctl->gap_us || ctl->burst >= 1);
	CHECK(ctl->burst <= 32); /* the kernel's host allows twice that at once */
	CHECK(!(ctl->flags & ~(NN_CTL_SLOW_START | NN_CTL_YIELDING)));
	/* only a gap can enforce a window that is smaller than any packet */
	CHECK(ctl->cwnd_q16 >= NN_ONE || ctl->gap_us || !f->ack.srtt_us);

	nn_flow_info(f->s[0], (const NN_CFG *)f->cfg, &info);
	CHECK(info.base_rtt_us <= NN_RTT_MAX);
	CHECK(!info.max_rtt_us || info.max_rtt_us >= info.base_rtt_us);

	CHECK(!memcmp(f->s[0], f->s[1], sizeof(NN_STATE)));
	CHECK(!memcmp(&f->ctl[0], &f->ctl[1], sizeof(f->ctl[0])));
}

static void start(struct flow *f, struct input *in)
{
	u64 window = take(in, 1) & 1 ? take(in, 4) * 64 : 10 * NN_ONE;

	/* not a byte more than the algorithm asks for: the sanitizer sees what is beyond */
	f->cfg = malloc(sizeof(NN_CFG) + 1);
	f->least_q16 = NN_ONE;
	f->most_q16 = NN_CWND_MAX;
	for (int i = 0; i < NN_N_PARAMS; i++) {
		const struct range *r = &ranges[i];
		u64 x = take(in, 1) & 1 ? take(in, 4) : ~0ull;

		f->cfg[i] = x == ~0ull ? r->def :
					 (u32)(r->least + x % (r->most - r->least + 1ull));
		if (!strcmp(r->name, "least"))
			f->least_q16 = nn_min(f->cfg[i], NN_ONE);
		if (!strcmp(r->name, "window"))
			f->most_q16 = f->cfg[i];
	}
	f->ack.una = f->ack.nxt = (u32)take(in, 4);
	for (int i = 0; i < 2; i++) {
		f->s[i] = calloc(1, sizeof(NN_STATE));
		f->ctl[i] = (struct nn_ctl){ .cwnd_q16 = window };
		nn_flow_init(f->s[i], (const NN_CFG *)f->cfg, NULL, &f->ack, &f->ctl[i]);
	}
	check(f);
}

static void give_ack(struct flow *f)
{
	for (int i = 0; i < 2; i++) {
		nn_flow_ack(f->s[i], (const NN_CFG *)f->cfg, NULL, &f->ack, &f->ctl[i]);
		nn_flow_send(f->s[i], (const NN_CFG *)f->cfg, NULL, &f->ack, &f->ctl[i]);
	}
	check(f);
}

static void give_event(struct flow *f, enum nn_event event, u64 left_q16)
{
	for (int i = 0; i < 2; i++) {
		if (event == NN_IDLE)
			f->ctl[i].cwnd_q16 = nn_min(f->ctl[i].cwnd_q16, left_q16);
		nn_flow_event(f->s[i], (const NN_CFG *)f->cfg, NULL, event, &f->ack, &f->ctl[i]);
	}
	check(f);
}

/* Any fields, each of a size that the input chooses. */
static void absurd(struct flow *f, struct input *in)
{
	struct nn_ack *a = &f->ack;
	u64 sizes = take(in, 2);

	a->now_us = take(in, 2 * (sizes & 3) + 2);
	a->rtt_us = (u32)take(in, 1 + (sizes >> 2 & 3));
	a->srtt_us = (u32)take(in, 1 + (sizes >> 4 & 3));
	a->acked = (u32)take(in, 1 + (sizes >> 6 & 3));
	a->lost = (u32)take(in, 1 + (sizes >> 8 & 3));
	a->inflight = (u32)take(in, 1 + (sizes >> 10 & 3));
	a->flags = (u32)take(in, 1 + (sizes >> 12 & 3));
	a->una += (u32)nn_min(take(in, 1 + (sizes >> 14 & 3)), a->nxt - a->una);
	a->nxt += (u32)nn_min(take(in, 3), (1u << 30) - (a->nxt - a->una));
	a->mss = (u32)take(in, 1 + (sizes >> 14 & 3));
	a->flows = a->mss;
}

/* A round trip of `rtt_us`, each packet acknowledged. */
static void round_trip(struct flow *f, u32 rtt_us, u32 flags)
{
	struct nn_ack *a = &f->ack;
	u32 packets = (u32)nn_max(nn_min(f->ctl[0].cwnd_q16 / NN_ONE, 64), 1);

	a->rtt_us = rtt_us;
	a->srtt_us = rtt_us;
	a->acked = 1;
	a->lost = 0;
	a->inflight = packets - 1;
	a->flags = flags;
	a->mss = 1448;
	a->now_us += f->ctl[0].gap_us + rtt_us;
	a->una = a->nxt;
	a->nxt += packets;
	for (u32 i = 0; i < packets; i++) {
		a->una++;
		give_ack(f);
		a->nxt++;
	}
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);
int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct input in = { data, size };
	struct nn_info info = { 0 };
	struct flow f = { 0 };
	int rounds = 0;

	start(&f, &in);
	while (in.left) {
		u64 choice = take(&in, 1);

		if (choice < 32) {
			give_event(&f, (enum nn_event)(choice % NN_EVENTS), take(&in, 3));
		} else if (choice < 128) {
			absurd(&f, &in);
			give_ack(&f);
		} else {
			round_trip(&f, 1000 * (1 + (u32)take(&in, 1)), choice < 160 ? choice & 7 : 0);
		}
	}

	/* nobody else sends any more: the least round trip there was, or some */
	nn_flow_info(f.s[0], (const NN_CFG *)f.cfg, &info);
	while (f.ctl[0].cwnd_q16 < nn_min(2 * NN_ONE, f.most_q16)) {
		CHECK(rounds++ < ROUNDS);
		round_trip(&f, info.base_rtt_us ? info.base_rtt_us : 50000, 0);
	}
	for (int i = 0; i < 2; i++)
		free(f.s[i]);
	free(f.cfg);
	return 0;
}
