/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Fuzzes what one algorithm, NN_ALG, does over a path (libFuzzer; see run). The
 * input chooses a path, and what happens on it: others' queues, losses, marks,
 * rests, an application that has nothing to send. Four hosts, whose numbers
 * differ, see the same; their windows must be the same. What the algorithm
 * shows of the path must be true of it; and one that yields must yield.
 */
#include "../../core/flow.h"
#include "../../core/measure/bounds.h"
#include "fuzz.h"
#include "path.h"

#define FULL_ROUNDS 64	/* of a full queue, after which a flow that yields has yielded */
#define EMPTY_ROUNDS 64
/* no path can have become longer, and nothing is known of jitter (bounds.h) */
#define YOUNG_US (NN_BOUNDS_RISE * NN_BOUNDS_BLOCK_US)
#define HOSTS 4

/* Whether it judges each round by itself, so that a longer one can be compared. */
#define BY_ROUNDS (FACT(NN_YIELDS) && FACT(NN_ROUNDS) && !FACT(NN_GREEDY))

static const struct path_host hosts[HOSTS] = {
	{ 1, 1, 1 },
	{ (1ull << 32) - 1000000, 1, 1 },	/* a second before its clock passes 2^32 us */
	{ 1, ~0u - 100, 1 },			/* a hundred packets before the numbers begin anew */
	{ 1, 1, 2 },
};

static const char *const same[HOSTS] = {
	"",
	"where the clock begins changes no answer",
	"where sequence numbers begin changes no answer",
	"twice the round trips and twice the clock change no answer",
};

static void compare(const struct path_flow *f, const struct path_flow *g, const char *sentence)
{
	HOLDS(sentence, f->ctl.cwnd_q16 == g->ctl.cwnd_q16);
	HOLDS(sentence, f->ctl.gap_us == g->ctl.gap_us / g->host->scale);
	HOLDS(sentence, f->ctl.burst == g->ctl.burst && f->ctl.flags == g->ctl.flags);
}

/* RTT of the empty path, as it is shown. */
static u64 empty_us(const struct path_flow *f)
{
	return fuzz_shown(&f->s, f->cfg, "base_rtt").value;
}

/* RTT of a full queue, as it is shown; 0: it is not. */
static u64 full_us(const struct path_flow *f)
{
	return fuzz_shown(&f->s, f->cfg, "max_rtt").value;
}

/* What a person is shown of the path. */
static void check_shown(const struct path_flow *f, const struct path *p)
{
	u64 base_us = empty_us(f);
	struct nn_value available = fuzz_shown(&f->s, f->cfg, "available");
	u64 link_pps = 1000000 / p->packet_us;

	HOLDS("the least RTT is one that was told, and none was shorter, before a path can rise",
	      f->now_us >= YOUNG_US || !base_us || base_us == f->least_us);
	HOLDS("the RTT of the empty path is between the least and the greatest that were told",
	      !base_us ||
		      (f->least_us <= base_us && base_us <= f->most_us));
	/* a path that can rise may have done so up to the longest RTT */
	HOLDS("the greatest RTT is one that was told, or twice the path's, and what that has risen",
	      full_us(f) <= (f->now_us < YOUNG_US ? nn_max(f->most_us, 2 * f->first_us) :
						    3 * (u64)f->most_us));
	HOLDS("the interval of the available bandwidth is around it",
	      available.low <= available.value && available.value <= available.high);
	HOLDS("no more bandwidth is available than the link has",
	      available.value <= link_pps + link_pps / 4 + 1);
	HOLDS("a weight is a share of TCP", fuzz_shown(&f->s, f->cfg, "weight").value <= NN_ONE);
	HOLDS("a flow has no more packets in the queue than in its largest window",
	      fuzz_shown(&f->s, f->cfg, "queue").value <= f->most_q16);
}

/*
 * The path is empty for a while, and then others keep its queue full, which is twice as long as the
 * path that the flow knows: a flow that yields loses a packet, and then its window.
 */
static void check_yields(struct path_flow *f, struct path *p)
{
	u64 base_us = 0;

	p->others_us = 0;
	for (int i = 0; !base_us || base_us > p->base_us + 4 * p->packet_us; i++) {
		if (i >= EMPTY_ROUNDS)
			return; /* it has its own packets in the queue, and cannot know the path */
		path_round(f, p);
		base_us = empty_us(f);
	}
	p->buffer = (u32)nn_max(p->buffer, 2 * base_us / p->packet_us + 1);
	p->others_us = p->buffer * p->packet_us;
	path_round(f, p);
	path_event(f, NN_LOSS);
	for (int i = 0; i < FULL_ROUNDS && f->ctl.cwnd_q16 >= 2 * NN_ONE; i++) {
		u64 before = f->ctl.flags & NN_CTL_YIELDING ? f->ctl.cwnd_q16 : NN_CWND_MAX;

		path_round(f, p);
		if (FACT(NN_GREEDY)) /* Reno's packet in a round goes on (ImTCP-bg III) */
			before += NN_ONE;
		HOLDS("a full queue never raises the window of a flow that yields already",
		      f->ctl.cwnd_q16 <= before);
	}
	HOLDS("a full queue brings a flow that yields below two packets",
	      f->ctl.cwnd_q16 < 2 * NN_ONE);
}

/*
 * From here, a longer round trip never lets the window grow where a shorter one does not; unless a full
 * queue is longer by it, or the shorter one shows that the path is shorter than was known.
 */
static void check_longer(const struct path_flow *f, const struct path *p, u32 longer_us)
{
	static struct path_flow g, h;
	struct path q = *p;

	q.others_us = (u32)nn_min(q.others_us + (u64)longer_us, (u64)q.buffer * q.packet_us);
	if (q.others_us < p->others_us + NN_BOUNDS_HOST_US)
		return; /* that is jitter */
	g = *f;
	h = *f;
	path_round(&g, p);
	path_round(&h, &q);
	/* a round with some packets that wait neither grows nor yields, where a shorter one may */
	HOLDS("a longer round trip never lets a flow that yields grow, unless a shorter one does",
	      h.ctl.cwnd_q16 <= nn_max(g.ctl.cwnd_q16, f->ctl.cwnd_q16) ||
		      full_us(&h) > full_us(f) || empty_us(&g) < empty_us(f));
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);
int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	static struct path_flow flow[HOSTS];
	static u32 cfg[NN_N_PARAMS + 1];
	struct fuzz_input in = { data, size };
	int set = (int)fuzz_take(&in, 1) & 1;
	struct path p = {
		.base_us = 1000 * (1 + (u32)fuzz_take(&in, 1)),
		.packet_us = 10 * (1 + (u32)fuzz_take(&in, 1)),
		.buffer = 4 + (u32)fuzz_take(&in, 1) / 4,
		.every = 1 + ((u32)fuzz_take(&in, 1) & 1),
	};

	fuzz_defaults(cfg);
	if (set)
		fuzz_config(cfg, &in);
	if (FACT(NN_SILENT)) /* periods drawn at random, from the clock */
		cfg[fuzz_index("mode")] = 0;
	for (int i = 0; i < HOSTS; i++)
		path_start(&flow[i], &hosts[i], cfg);
	while (in.left) {
		u32 choice = (u32)fuzz_take(&in, 1), more = (u32)fuzz_take(&in, 1);
		u32 flags = choice & 16 ? NN_ACK_APP_LIMITED : 0;

		if (choice >= 224)
			p.others_us = (u32)((u64)p.buffer * p.packet_us * more / 256);
		if (BY_ROUNDS && !set && flow[0].now_us < YOUNG_US &&
		    flow[0].ctl.cwnd_q16 >= 2 * NN_ONE && choice >= 192 && choice < 224)
			check_longer(&flow[0], &p, p.packet_us * more);
		for (int i = 0; i < HOSTS; i++) {
			if (choice < 8)
				path_event(&flow[i], (enum nn_event)(choice % NN_EVENTS));
			for (u32 n = 0; n <= more / 4; n++)
				path_step(&flow[i], &p, flags);
			if (i && !(FACT(NN_TIMED) && hosts[i].scale > 1))
				compare(&flow[0], &flow[i], same[i]);
		}
		check_shown(&flow[0], &p);
	}
	if (FACT(NN_YIELDS) && !set)
		check_yields(&flow[0], &p);
	return 0;
}
