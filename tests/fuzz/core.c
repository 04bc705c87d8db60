/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Fuzzes one algorithm, NN_ALG (libFuzzer; see run), with whatever a host may
 * report, plausible or absurd. The input chooses the parameters within their
 * ranges, the initial window and a list of ACKs and events. After each of them
 * the answer must be one that a host can obey, must depend on the inputs only,
 * and must not be a larger window than the step gives reason for; at the end,
 * clean rounds must bring the flow back from wherever it got.
 *
 * What a host promises, and this keeps: una <= nxt, and neither goes back.
 */
#include "../../core/flow.h"
#include "fuzz.h"

#define ROUNDS 64	/* from 1/4096 up to two packets: 12 doublings and a few more */

/* A flow that is driven twice, in memory of its own each time. */
struct flow {
	NN_STATE *s[2];
	struct nn_ctl ctl[2];
	u32 *cfg;
	u64 least_q16, most_q16; /* of its window */
	u64 awake_q16; /* its last window outside of a silence */
	u64 peak_q16; /* its largest one */
	u64 lost_q16; /* its window before the last loss or mark */
	u32 held; /* its host holds its packets, and ebb has begun anew for that */
	u32 una; /* of the last ACK */
	struct nn_ack ack;
};

static void check(const struct flow *f)
{
	const struct nn_ctl *ctl = &f->ctl[0];
	u64 base_us = fuzz_shown(f->s[0], f->cfg, "base_rtt").value;
	u64 max_us = fuzz_shown(f->s[0], f->cfg, "max_rtt").value;

	HOLDS("a window is within its bounds",
	      ctl->cwnd_q16 >= f->least_q16 && ctl->cwnd_q16 <= f->most_q16);
	HOLDS("a gap is no longer than a host waits", ctl->gap_us <= NN_GAP_MAX);
	HOLDS("a burst has a packet", !ctl->gap_us || ctl->burst >= 1);
	HOLDS("a burst is short", ctl->burst <= NN_BURST_MAX);
	HOLDS("flags are known ones", !(ctl->flags & ~(NN_CTL_SLOW_START | NN_CTL_YIELDING)));
	HOLDS("only a gap enforces a window that is smaller than any packet",
	      ctl->cwnd_q16 >= NN_ONE || ctl->gap_us || !f->ack.srtt_us);

	HOLDS("a least RTT is one that was told", base_us <= NN_RTT_MAX);
	HOLDS("the greatest RTT is not below the least", !max_us || max_us >= base_us);

	HOLDS("equal inputs give equal states", !memcmp(f->s[0], f->s[1], sizeof(NN_STATE)));
	HOLDS("equal inputs give equal answers", !memcmp(&f->ctl[0], &f->ctl[1], sizeof(f->ctl[0])));
}

/*
 * The window that the flow has where no gap keeps it from sending, and outside of a silence: that
 * it comes back to it is no growth.
 */
static u64 window(const struct flow *f)
{
	NN_STATE s = *f->s[0];
	struct nn_ctl ctl = f->ctl[0];
	struct nn_ack full = f->ack;

	if (FACT(NN_SILENT))
		return ctl.flags & NN_CTL_YIELDING ? nn_max(ctl.cwnd_q16, f->awake_q16) :
						     ctl.cwnd_q16;
	full.inflight = ~0u;
	nn_flow_send(&s, (const NN_CFG *)f->cfg, NULL, &full, &ctl);
	return ctl.cwnd_q16;
}

/* Whether phases, or looks for minRTT, begin and end by the clock, with another window each. */
static int by_clock(const struct flow *f)
{
	return (FACT(NN_SILENT) && fuzz_param(f->cfg, "mode", 0)) || fuzz_param(f->cfg, "doubt", 0);
}

/* Whether all parameters have their defaults. */
static int plain(const struct flow *f)
{
	for (int i = 0; i < NN_N_PARAMS; i++)
		if (f->cfg[i] != fuzz_ranges[i].def)
			return 0;
	return 1;
}

/* Remembers the window, unless this is a silence. */
static void settle(struct flow *f)
{
	check(f);
	f->awake_q16 = window(f);
	f->peak_q16 = nn_max(f->peak_q16, f->awake_q16);
}

static void start(struct flow *f, struct fuzz_input *in)
{
	u64 choice = fuzz_take(in, 1);
	u64 window = choice & 1 ? fuzz_take(in, 4) * 64 : 10 * NN_ONE;

	/* not a byte more than the algorithm asks for: the sanitizer sees what is beyond */
	f->cfg = malloc(sizeof(NN_CFG) + 1);
	fuzz_config(f->cfg, in);
	if (choice & 2 && fuzz_param(f->cfg, "doubt", 0))
		f->cfg[fuzz_index("doubt")] = 0;
	f->least_q16 = nn_min(fuzz_param(f->cfg, "least", NN_ONE), NN_ONE);
	f->most_q16 = fuzz_param(f->cfg, "window", NN_CWND_MAX);
	f->una = f->ack.una = f->ack.nxt = (u32)fuzz_take(in, 4);
	for (int i = 0; i < 2; i++) {
		f->s[i] = calloc(1, sizeof(NN_STATE));
		f->ctl[i] = (struct nn_ctl){ .cwnd_q16 = window };
		nn_flow_init(f->s[i], (const NN_CFG *)f->cfg, NULL, &f->ack, &f->ctl[i]);
	}
	f->lost_q16 = f->ctl[0].cwnd_q16;
	settle(f);
}

/*
 * Below it a loss or a rest may raise a window: to two packets (RFC 5681 (4)), unless it yields. ebb is
 * CUBIC where its host holds its packets.
 */
static u64 floor_q16(const struct flow *f)
{
	return FACT(NN_YIELDS) && !f->held ? 0 : nn_min(2 * NN_ONE, f->most_q16);
}

/* By how much an ACK may let the window grow. */
static u64 growth(const struct flow *f)
{
	u64 acked = (u64)nn_acked(&f->ack) * NN_ONE;

	if (FACT(NN_GREEDY))
		acked = plain(f) ? 2 * acked : NN_CWND_MAX;
	/* FAIRBAT's rest of growth, below 2^-16 of a window, is not cut when that is */
	if (FACT(NN_SILENT))
		acked += f->peak_q16 / nn_max(window(f), 1) + 1;
	return acked + (FACT(NN_ROUNDS) && f->ack.una != f->una ? NN_ONE : 0);
}

static void give_ack(struct flow *f)
{
	u64 before = window(f), grows = growth(f), grown;

	/* where a host ceases to hold its packets, or begins to and may grow, ebb begins anew */
	if (f->held ? !(f->ack.flags & NN_ACK_HELD) : f->ack.flags & NN_ACK_HELD && nn_may_grow(&f->ack)) {
		f->held = !f->held;
		before = nn_max(before, 2 * NN_ONE);
		f->lost_q16 = nn_max(f->lost_q16, before);
	}
	for (int i = 0; i < 2; i++) {
		nn_flow_ack(f->s[i], (const NN_CFG *)f->cfg, NULL, &f->ack, &f->ctl[i]);
		nn_flow_send(f->s[i], (const NN_CFG *)f->cfg, NULL, &f->ack, &f->ctl[i]);
	}
	grown = window(f);
	if (by_clock(f))
		; /* it may grow or shrink with any ACK */
	else if (f->ack.flags & (NN_ACK_HOLD | NN_ACK_APP_LIMITED))
		HOLDS("recovery or an idle application never raises a window", grown <= before);
	else
		HOLDS("a window grows by no more than was acknowledged",
		      grown <= before + grows);
	f->una = f->ack.una;
	settle(f);
}

static void tell(struct flow *f, enum nn_event event, u64 left_q16)
{
	for (int i = 0; i < 2; i++) {
		if (event == NN_IDLE)
			f->ctl[i].cwnd_q16 = nn_min(f->ctl[i].cwnd_q16, left_q16);
		nn_flow_event(f->s[i], (const NN_CFG *)f->cfg, NULL, event, &f->ack, &f->ctl[i]);
	}
}

static void give_event(struct flow *f, enum nn_event event, u64 left_q16)
{
	u64 before = window(f);

	tell(f, event, left_q16);
	if (event == NN_UNDO && fuzz_param(f->cfg, "doubt", 0))
		; /* a loss during a look is undone after it */
	else if (event == NN_UNDO)
		HOLDS("an undo restores no more than a loss took",
		      window(f) <= nn_max(before, f->lost_q16));
	else
		HOLDS("a loss, a mark, a timeout or a rest never raises a window",
		      window(f) <= nn_max(before, floor_q16(f)));
	/* a loss that cut nothing belongs to the one before (RFC 5348 5.2, MulTCP), or is undone with
	   the timeout that followed it */
	if (event == NN_LOSS || event == NN_ECN)
		f->lost_q16 = window(f) < before ? before : nn_max(f->lost_q16, before);
	settle(f);
}

/* What would follow, in copies of the state. */
static void suppose(const struct flow *f, enum nn_event event, u64 left_q16)
{
	NN_STATE s[2] = { *f->s[0], *f->s[1] };
	u64 before = window(f);
	struct flow g = *f;
	struct nn_ctl once;

	g.s[0] = &s[0];
	g.s[1] = &s[1];
	tell(&g, event, left_q16);
	if ((event == NN_LOSS || event == NN_ECN) && window(&g) < before) {
		tell(&g, NN_UNDO, 0);
		HOLDS("an undo takes a loss back whole", window(&g) == before);
		event = NN_UNDO;
	}
	if (event != NN_IDLE && event != NN_UNDO)
		return;
	once = g.ctl[0];
	tell(&g, event, left_q16);
	HOLDS("the same rest or undo again changes nothing", !memcmp(&once, &g.ctl[0], sizeof(once)));
}

/* Any fields, each of a size that the input chooses. */
static void absurd(struct flow *f, struct fuzz_input *in)
{
	struct nn_ack *a = &f->ack;
	u64 sizes = fuzz_take(in, 2);

	a->now_us = fuzz_take(in, 2 * (sizes & 3) + 2);
	a->rtt_us = (u32)fuzz_take(in, 1 + (sizes >> 2 & 3));
	a->srtt_us = (u32)fuzz_take(in, 1 + (sizes >> 4 & 3));
	a->acked = (u32)fuzz_take(in, 1 + (sizes >> 6 & 3));
	a->lost = (u32)fuzz_take(in, 1 + (sizes >> 8 & 3));
	a->inflight = (u32)fuzz_take(in, 1 + (sizes >> 10 & 3));
	a->flags = (u32)fuzz_take(in, 1 + (sizes >> 12 & 3));
	a->una += (u32)nn_min(fuzz_take(in, 1 + (sizes >> 14 & 3)), a->nxt - a->una);
	a->nxt += (u32)nn_min(fuzz_take(in, 3), (1u << 30) - (a->nxt - a->una));
	a->mss = (u32)fuzz_take(in, 1 + (sizes >> 14 & 3));
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
	struct fuzz_input in = { data, size };
	struct flow f = { 0 };
	u32 base_us;
	int rounds = 0;

	start(&f, &in);
	while (in.left) {
		u64 choice = fuzz_take(&in, 1);

		if (choice < 16) {
			suppose(&f, (enum nn_event)(choice % NN_EVENTS), fuzz_take(&in, 3));
		} else if (choice < 32) {
			give_event(&f, (enum nn_event)(choice % NN_EVENTS), fuzz_take(&in, 3));
		} else if (choice < 128) {
			absurd(&f, &in);
			give_ack(&f);
		} else {
			round_trip(&f, 1000 * (1 + (u32)fuzz_take(&in, 1)), choice < 160 ? choice & 7 : 0);
		}
	}

	/* nobody else sends any more: the least round trip there was, or some */
	base_us = (u32)fuzz_shown(f.s[0], f.cfg, "base_rtt").value;
	while (f.ctl[0].cwnd_q16 < nn_min(2 * NN_ONE, f.most_q16)) {
		HOLDS("clean rounds bring a window back", rounds++ < ROUNDS);
		round_trip(&f, base_us ? base_us : 50000, 0);
	}
	for (int i = 0; i < 2; i++)
		free(f.s[i]);
	free(f.cfg);
	return 0;
}
