// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * A group of two flows to different hosts, 10 and 100 ms away, for 20 s. Nothing queues and nothing is lost.
 * Prints the sum of both windows at the end; with an argument the group is apart.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "../../libnetnice/netnice.h"

#define START_US 1000000u
#define STEP_US 500u
#define MOST_OUT 2000u
#define SENT 4096u

struct sender {
	uint64_t flow[NETNICE_FLOW_WORDS];
	struct netnice_now now;
	struct netnice_answer answer;
	uint64_t next_burst_us;
	uint32_t burst, rtt_us;
	uint64_t sent_us[SENT];
};

static uint64_t group[NETNICE_GROUP_WORDS];
static struct sender senders[2];

static void must(int error)
{
	if (error)
		exit(fprintf(stderr, "%s\n", netnice_strerror(error)));
}

static void acknowledged(struct sender *s)
{
	struct netnice_now *now = &s->now;

	while (now->una < now->nxt && s->sent_us[now->una % SENT] + s->rtt_us <= now->now_us) {
		struct netnice_now ack;

		now->una++;
		now->inflight = now->nxt - now->una;
		ack = *now;
		ack.rtt_us = s->rtt_us;
		ack.acked = 1;
		ack.flags = NETNICE_ACK_EXACT;
		must(netnice_ack(s->flow, &ack, &s->answer));
		now->srtt_us = s->rtt_us;
	}
}

static void send(struct sender *s)
{
	struct netnice_now *now = &s->now;

	while (now->inflight < s->answer.window && now->inflight < MOST_OUT) {
		if (!s->burst) {
			if (now->now_us < s->next_burst_us)
				return;
			must(netnice_send(s->flow, now, &s->answer));
			s->burst = s->answer.gap_us ? s->answer.burst : 1;
			s->next_burst_us = now->now_us + s->answer.gap_us;
		}
		s->burst--;
		s->sent_us[now->nxt++ % SENT] = now->now_us;
		now->inflight++;
	}
}

int main(int argc, char **argv)
{
	must(netnice_group_init(group, sizeof(group)));
	if (argc > 1)
		must(netnice_group_apart(group));
	for (int i = 0; i < 2; i++) {
		struct sender *s = &senders[i];

		s->rtt_us = i ? 100000 : 10000;
		s->now = (struct netnice_now){ .now_us = START_US, .mss = 1200, .flows = 2 };
		must(netnice_init(s->flow, sizeof(s->flow), "nice"));
		must(netnice_join(s->flow, group));
		must(netnice_start(s->flow, &s->now, 10, &s->answer));
	}
	for (uint64_t time = START_US; time < START_US + 20000000; time += STEP_US)
		for (int i = 0; i < 2; i++) {
			senders[i].now.now_us = time;
			acknowledged(&senders[i]);
			send(&senders[i]);
		}
	printf("%u\n", senders[0].answer.window + senders[1].answer.window);
	return 0;
}
