/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Fuzzes libnetnice through its public interface (libFuzzer; see run): any calls in any order, of
 * three flows and a group. Each must return 0 or a documented error; after an error nothing has changed;
 * an answer must be one that a caller can obey.
 */
#include <string.h>

#include "../../core/interface.h"
#include "../../libnetnice/netnice.h"
#include "input.h"

#define FLOWS 3

static uint64_t flows[FLOWS][NETNICE_FLOW_WORDS], group[NETNICE_GROUP_WORDS], copy[NETNICE_FLOW_WORDS];

static struct netnice_now take_now(struct fuzz_input *in, uint64_t *clock)
{
	struct netnice_now now = { 0 };
	u8 shape = (u8)fuzz_take(in, 1);

	/* mostly forward, now and then back, or anywhere */
	*clock = shape & 16 ? fuzz_take(in, 8) : *clock + fuzz_take(in, 3) - (shape & 32 ? 100 : 0);
	now.now_us = *clock;
	now.rtt_us = (u32)fuzz_take(in, shape & 1 ? 4 : 2);
	now.srtt_us = (u32)fuzz_take(in, shape & 1 ? 4 : 2);
	now.acked = (u32)fuzz_take(in, shape & 2 ? 4 : 1);
	now.lost = (u32)fuzz_take(in, shape & 2 ? 4 : 1);
	now.inflight = (u32)fuzz_take(in, shape & 2 ? 4 : 1);
	now.una = (u32)fuzz_take(in, shape & 4 ? 4 : 2);
	now.nxt = now.una + (u32)fuzz_take(in, shape & 4 ? 4 : 1);
	now.flags = (u32)fuzz_take(in, 1) & (shape & 8 ? 255 : 7 | NN_ACK_EXACT);
	now.mss = (u32)fuzz_take(in, shape & 8 ? 4 : 2);
	now.flows = (u32)fuzz_take(in, 1);
	return now;
}

static void obeyable(const struct netnice_answer *a)
{
	HOLDS("a window has a packet", a->window >= 1 && a->timeout >= 1 && a->recovery >= 2);
	HOLDS("a window is within its bounds", a->cwnd_q16 <= NN_CWND_MAX);
	HOLDS("a gap is no longer than a host waits", a->gap_us <= NN_GAP_MAX);
	HOLDS("a burst has a packet", !a->gap_us || (a->burst >= 1 && a->burst <= NN_BURST_MAX));
	HOLDS("flags are known ones", !(a->flags & ~3u));
}

static int call(struct fuzz_input *in, void *flow, uint64_t *clock, struct netnice_answer *answer)
{
	struct netnice_now now;
	struct netnice_shown shown;
	char setting[24] = { 0 };
	u32 result;

	switch (fuzz_take(in, 1) % 16) {
	case 0:
		return netnice_init(flow, sizeof(flows[0]), netnice_algorithm(fuzz_take(in, 1)));
	case 1:
		now = take_now(in, clock);
		return netnice_start(flow, &now, (u32)fuzz_take(in, 3), answer);
	case 2:
		for (size_t i = 0; i < sizeof(setting) - 1; i++)
			setting[i] = (char)fuzz_take(in, 1);
		return netnice_set(flow, setting);
	case 3:
		now = take_now(in, clock);
		return netnice_close(flow, &now);
	case 4:
		now = take_now(in, clock);
		return netnice_idle(flow, fuzz_take(in, 5), &now, answer);
	case 5:
		return netnice_join(flow, group);
	case 6:
		netnice_shown(flow, fuzz_take(in, 1), &shown);
		netnice_app_limited(flow, (int)fuzz_take(in, 1), (u32)fuzz_take(in, 4), 1, 0);
		return netnice_ssthresh(flow, (u32)fuzz_take(in, 4), (u32)fuzz_take(in, 4), &result);
	case 7:
		result = (u32)fuzz_take(in, 1);
		now = take_now(in, clock);
		return netnice_event(flow, (enum netnice_event)result, &now, answer);
	case 8:
	case 9:
		now = take_now(in, clock);
		return netnice_send(flow, &now, answer);
	case 10:
		return netnice_group_apart(group);
	default:
		now = take_now(in, clock);
		return netnice_ack(flow, &now, answer);
	}
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);
int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct fuzz_input in = { data, size };
	uint64_t clock = 0;

	memset(flows, 0, sizeof(flows));
	group[0] = 0;
	netnice_group_init(group, sizeof(group));
	while (in.left) {
		void *flow = flows[fuzz_take(&in, 1) % FLOWS];
		struct netnice_answer answer = { .window = ~0u };
		int error;

		memcpy(copy, flow, sizeof(copy));
		error = call(&in, flow, &clock, &answer);
		HOLDS("an error is a documented one", error <= 1 && error >= NETNICE_E_GROUP);
		HOLDS("an error changes nothing", error >= 0 || !memcmp(copy, flow, sizeof(copy)));
		HOLDS("an error answers nothing", error >= 0 || answer.window == ~0u);
		if (!error && answer.window != ~0u)
			obeyable(&answer);
		HOLDS("a group knows its members", netnice_members(group) >= 0 &&
							   netnice_members(group) <= FLOWS);
	}
	return 0;
}
