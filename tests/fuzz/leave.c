/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Fuzzes the path out of a host (core/host/path.h). The input chooses what the
 * host sends, and when ACKs come, of any RTT. Two hosts, whose clocks begin
 * elsewhere, see the same; their gates must open alike.
 */
#include <string.h>

#include "../../core/host/path.h"
#include "input.h"

#define HOSTS 2
#define FLOWS 4u
#define MOST_OUT 64u		/* packets of the background whose ACKs are to come */
#define LONGEST (100 * NN_PATH_S)
/* what the greatest rate carries in the longest round trip, and two packets */
#define CREDIT_MAX (NN_PATH_MU_MAX / NN_PATH_S * (NN_PATH_DELAY_MAX + 2 * NN_PATH_PACKET))
#define MOST_ASKED 2000		/* each wait is 10 ms at least, and all of them 6.4 s at most */

static const u64 starts[HOSTS] = { 1, 1ull << 60 };
static const u64 ticks[] = { 0, 1000, 1000 * 1000, 10 * 1000 * 1000 };

struct host {
	struct nn_path path;
	struct nn_path_base base[FLOWS];
	struct nn_path_sent sent[MOST_OUT];
	u32 bytes[MOST_OUT];
	u32 first, out;		/* the oldest packet that is out; how many are */
	u64 now;
};

static void check(const struct host *h)
{
	const struct nn_path *p = &h->path;

	HOLDS("queues are bounded", p->v <= NN_PATH_V_MAX && p->b <= NN_PATH_V_MAX);
	HOLDS("the rate is one that can be", p->mu <= NN_PATH_MU_MAX);
	HOLDS("a path whose rate is known drains", !p->mu || p->drain);
	HOLDS("what may leave beside others is bounded", p->credit <= CREDIT_MAX);
	HOLDS("the background has no more than all", p->part <= NN_ONE);
	HOLDS("jitter is bounded", p->jitter <= NN_PATH_JITTER_MAX);
}

/* Whether a packet may leave; if not, when to ask again. */
static u64 ask(struct host *h)
{
	u64 at = nn_path_gate(&h->path, h->now);

	HOLDS("a gate never asks for a clock in the past, nor for one far away",
	      !at || (at > h->now && at <= h->now + LONGEST));
	return at;
}

static void leave(struct host *h, u32 bytes, int again)
{
	u32 at = (h->first + h->out) % MOST_OUT;

	if (h->out == MOST_OUT)
		return;
	h->bytes[at] = bytes;
	nn_path_left(&h->path, h->now, bytes, &h->sent[at]);
	if (again)
		nn_path_again(&h->path, h->now);
	h->out++;
}

/* What the receiver's clock shows, which goes on in ticks of so many ns; 0: it has none. */
static u32 stamp(const struct host *h, u64 start, u64 tick)
{
	return tick ? (u32)((h->now - start) / tick) - 1000 : 0;
}

/* The ACK of so many packets. */
static void acknowledge(struct host *h, u32 flow, u32 packets, u32 stamp)
{
	const struct nn_path_sent *last = NULL;
	u64 acked = 0;

	for (; packets && h->out; packets--, h->out--) {
		last = &h->sent[h->first];
		acked += h->bytes[h->first];
		h->first = (h->first + 1) % MOST_OUT;
	}
	nn_path_delivered(&h->path, acked);
	if (last)
		nn_path_ack(&h->path, &h->base[flow], h->now, last, acked, stamp);
}

/* From here, a packet of the foreground opens no gate. */
static void check_foreground(const struct host *h, u32 bytes)
{
	static struct host g, f;
	u64 without, with;

	g = f = *h;
	nn_path_left(&f.path, f.now, bytes, NULL);
	without = ask(&g);
	with = ask(&f);
	HOLDS("more of the foreground never opens the gate earlier",
	      (with ? with : h->now) >= (without ? without : h->now));
}

/* From here, an ACK that shows a longer queue of others lets no more leave. */
static void check_others(const struct host *h, u64 bytes)
{
	static struct nn_path less, more;
	u64 queue = bytes * NN_PATH_S;

	less = more = h->path;
	nn_path_hear_others(&less, h->now, queue);
	nn_path_hear_others(&more, h->now, 2 * queue);
	HOLDS("a longer queue of others lets no more leave", more.credit <= less.credit);
}

/* From here, one who asks when he is told to may leave at last. */
static void check_opens(const struct host *h)
{
	static struct host g;
	int asked = 0;

	g = *h;
	for (u64 at = ask(&g); at; at = ask(&g)) {
		HOLDS("a gate opens for one who asks when he is told to", ++asked < MOST_ASKED);
		g.now = at;
	}
	HOLDS("no packet waits for longer than a second, or three round trips",
	      g.now <= h->now + nn_path_rest(&g.path) + NN_PATH_S / 100);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);
int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	static struct host hosts[HOSTS];
	struct fuzz_input in = { data, size };
	/* the unit of its times: from 1 us, on a link of 10 Gbit/s, to 16 ms */
	u64 unit = 1000ull << fuzz_take(&in, 1) % 15;
	u64 tick = ticks[fuzz_take(&in, 1) % (sizeof(ticks) / sizeof(ticks[0]))];

	memset(hosts, 0, sizeof(hosts));
	for (int i = 0; i < HOSTS; i++) {
		hosts[i].now = starts[i];
		nn_path_init(&hosts[i].path, hosts[i].now);
	}
	while (in.left) {
		u32 choice = (u32)fuzz_take(&in, 1), more = (u32)fuzz_take(&in, 1);
		u64 later = unit * (more & 15) * (more & 128 ? 16 : 1);
		u64 at[HOSTS];

		for (int i = 0; i < HOSTS; i++) {
			struct host *h = &hosts[i];

			h->now += later;
			at[i] = 0;
			if (choice < 8 && more & 64) {
				nn_path_left_unread(&h->path, h->now, 60 + 180 * choice);
			} else if (choice < 64) {
				nn_path_left(&h->path, h->now, 60 + 23 * (choice & 63), NULL);
			} else if (choice < 160) {
				at[i] = ask(h);
				if (!at[i])
					leave(h, choice & 1 ? 1514 : 1514 * (1 + (choice & 6)),
					      choice >= 144);
			} else {
				acknowledge(h, choice % FLOWS, 1 + (choice / FLOWS & 3),
					    stamp(h, starts[i], tick));
			}
			check(h);
			if (i)
				HOLDS("where the clock begins changes no answer",
				      (at[i] ? at[i] - h->now : 0) ==
					      (at[0] ? at[0] - hosts[0].now : 0));
		}
		if (choice < 4)
			check_foreground(&hosts[0], 60 + 6 * more);
		else if (choice < 8)
			check_opens(&hosts[0]);
		else if (choice >= 250)
			check_others(&hosts[0], 100 * more);
	}
	return 0;
}
