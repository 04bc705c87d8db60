/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Fuzzes a group of flows of one algorithm, NN_ALG (libFuzzer; see run). The
 * input is a list of flows that join, leave, change their shares, get ACKs,
 * lose packets and time out. After each step the group's sums must be those of
 * its members, no place may be lost, and the answer must be one that a host can
 * obey; after the last flow has left nothing may be left behind.
 */
#include "../../core/flow.h"
#include "../../core/aggregate/windows.h" /* an algorithm with a loop for all has none */
#include "fuzz.h"

#define FLOWS 64
#define SUMS(what) HOLDS("a group is the sum of its members", what)
#define OBEYS(what) HOLDS("a host can obey the answer", what)

struct flow {
	int joined;
	struct nn_ctl ctl;
	u32 cfg[NN_N_PARAMS + 1];
	NN_STATE s;
};

static struct nn_group group;

/* The sum of the windows of all places below `end`, as the tree has it. */
static u64 tree_sum(const struct nn_group *g, u32 end)
{
	u64 sum = 0;

	for (; end; end &= end - 1)
		sum += g->member[end - 1].tree;
	return sum;
}

static void check_group(const struct nn_group *g)
{
	u64 sum = 0, packets = 0, weight = 0, backlogged = 0, busy = 0, used = 0;
	u32 members = 0, eager = 0, free = 0;

	for (u32 i = 0; i < g->fresh; i++) {
		const struct nn_member *m = &g->member[i];

		SUMS(tree_sum(g, i) == sum);
		sum += m->window.cwnd;
		packets += m->window.cwnd / NN_ONE;
		if (!m->weight) {
			SUMS(!m->window.cwnd);
			continue;
		}
		members++;
		weight += m->weight;
		backlogged += m->limited ? 0 : m->weight;
		used += m->use;
		eager += m->limited != NN_LIMITED_IDLE;
		busy += m->limited != NN_LIMITED_IDLE ? m->weight : 0;
		SUMS(NN_ANY ? m->window.cwnd : !m->window.cwnd || m->window.cwnd >= NN_ONE);
		SUMS(m->window.cwnd <= NN_CWND_MAX);
		SUMS(m->use <= NN_CWND_MAX);
	}
	for (u32 at = g->free; at; at = g->member[at - 1].next)
		SUMS(++free <= g->fresh && !g->member[at - 1].weight);
	SUMS(g->sum == sum && tree_sum(g, NN_GROUP_MAX) == sum);
	SUMS(g->packets == packets);
	SUMS(g->weight == weight);
	SUMS(g->backlogged == backlogged);
	SUMS(g->used == used);
	SUMS(g->eager == eager);
	SUMS(g->busy == busy);
	SUMS(g->members == members && members + free == g->fresh);
}

static void check_answer(const struct flow *f, const struct nn_ack *a)
{
	const struct nn_ctl *ctl = &f->ctl;

	OBEYS(ctl->cwnd_q16 >= NN_GROUP_LEAST && ctl->cwnd_q16 <= NN_CWND_MAX);
	OBEYS(ctl->gap_us <= NN_GAP_MAX);
	OBEYS(ctl->burst >= 1 && ctl->burst <= NN_BURST_MAX);
	OBEYS(!(ctl->flags & ~(NN_CTL_SLOW_START | NN_CTL_YIELDING)));
	OBEYS(ctl->cwnd_q16 >= NN_ONE || ctl->gap_us || !a->srtt_us);
}

static void join(struct flow *f, struct fuzz_input *in, const struct nn_ack *a)
{
	memset(f, 0, sizeof(*f));
	fuzz_config(f->cfg, in);
	f->ctl.cwnd_q16 = fuzz_take(in, 1) & 1 ? fuzz_take(in, 4) * 64 : 10 * NN_ONE;
	nn_flow_init(&f->s, (const NN_CFG *)f->cfg, &group, a, &f->ctl);
	f->joined = 1;
}

static void leave(struct flow *f, const struct nn_ack *a)
{
	nn_flow_event(&f->s, (const NN_CFG *)f->cfg, &group, NN_CLOSE, a, &f->ctl);
	f->joined = 0;
}

static void step(struct flow *f, struct fuzz_input *in, struct nn_ack *a)
{
	u32 choice = (u32)fuzz_take(in, 1);

	a->now_us += fuzz_take(in, 1) * 1000;
	a->flags = choice & 7;
	a->acked = (u32)fuzz_take(in, 1 + (choice & 1));
	a->lost = choice & 64 ? (u32)fuzz_take(in, 1 + (choice & 1)) : 0;
	a->inflight = (u32)fuzz_take(in, 2);
	a->una += a->acked;
	a->nxt = a->una + a->inflight;
	a->srtt_us = a->rtt_us = 1000 * (u32)fuzz_take(in, 1);
	if (!f->joined) {
		join(f, in, a);
	} else if (choice < 16) {
		leave(f, a);
		return;
	} else if (choice < 32) {
		f->ctl.cwnd_q16 = nn_min(f->ctl.cwnd_q16, (fuzz_take(in, 2) + 1) * NN_ONE);
		nn_flow_event(&f->s, (const NN_CFG *)f->cfg, &group,
			     (enum nn_event)(choice % NN_EVENTS), a, &f->ctl);
	} else if (choice < 40) {
		int share = fuzz_index("share"); /* may change while the flow goes on */

		f->cfg[share] = fuzz_value(&fuzz_ranges[share], in);
		nn_flow_send(&f->s, (const NN_CFG *)f->cfg, &group, a, &f->ctl);
	} else {
		nn_flow_ack(&f->s, (const NN_CFG *)f->cfg, &group, a, &f->ctl);
	}
	check_answer(f, a);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);
int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	static struct flow flows[FLOWS];
	struct fuzz_input in = { data, size };
	struct nn_ack a = { 0 };

	memset(&group, 0, sizeof(group));
	memset(flows, 0, sizeof(flows));
	group.apart = (u32)fuzz_take(&in, 1) & 1;
	while (in.left) {
		step(&flows[fuzz_take(&in, 1) % FLOWS], &in, &a);
		check_group(&group);
	}
	for (int i = 0; i < FLOWS; i++)
		if (flows[i].joined)
			leave(&flows[i], &a);
	check_group(&group);
	HOLDS("an empty group has nothing", !group.members && !group.sum && !group.used &&
						    !group.weight && !group.backlogged);
	return 0;
}
