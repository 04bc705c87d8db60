// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * The golden steps through libnetnice give the answers of the core, for every algorithm with its standard
 * parameters and with others, which are set as text.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../core/user.h"
#include "../../libnetnice/netnice.h"
#include "../golden/steps.h"

static struct netnice_now told(const struct nn_ack *a)
{
	return (struct netnice_now){ a->now_us, a->rtt_us, a->srtt_us, a->acked, a->lost, a->inflight,
				     a->una,    a->nxt,    a->flags,   a->mss,   a->flows };
}

/* Sets a parameter to the middle of its range, in both, to nine digits. */
static void set(void *flow, const char *algorithm, u32 index, u32 *cfg)
{
	struct netnice_parameter p;
	char text[64];
	u32 value;

	if (netnice_parameter(algorithm, index, &p))
		abort();
	value = p.least + (p.most - p.least) / 3;
	snprintf(text, sizeof(text), "%s=%.9f", p.name, value / 65536.0);
	if (netnice_set(flow, text))
		exit(fprintf(stderr, "%s: %s\n", algorithm, text));
	cfg[index] = value;
}

static u32 compare(const struct nn_algorithm *a, int others)
{
	static nn_word state[NN_STATE_MAX / 8];
	static uint64_t flow[NETNICE_FLOW_WORDS];
	struct path path = path_at_start;
	struct netnice_answer answer;
	struct nn_ctl ctl = { .cwnd_q16 = 10 * NN_ONE };
	u32 cfg[NN_PARAMS_MAX], smaller = 0;
	u64 before = 0;

	memset(state, 0, sizeof(state));
	netnice_init(flow, sizeof(flow), a->name);
	for (u32 i = 0; i < a->n_params; i++) {
		cfg[i] = NN_Q16(a->params[i].def);
		if (others)
			set(flow, a->name, i, cfg);
	}
	for (u32 i = 0; i < N_STEPS / 4 * 3; i++) {
		struct nn_step s = path_step(&path, i);
		struct netnice_now now = told(&s.ack);
		int error;

		if (!i) {
			a->init(state, cfg, NULL, &s.ack, &ctl);
			error = netnice_start(flow, &now, 10, &answer);
		} else if (s.event == NN_IDLE) {
			a->event(state, cfg, NULL, NN_IDLE, &s.ack, &ctl);
			error = netnice_idle(flow, answer.cwnd_q16, &now, &answer);
		} else if (s.event < NN_EVENTS) {
			a->event(state, cfg, NULL, (enum nn_event)s.event, &s.ack, &ctl);
			error = netnice_event(flow, (enum netnice_event)s.event, &now, &answer);
		} else {
			a->ack(state, cfg, NULL, &s.ack, &ctl);
			a->send(state, cfg, NULL, &s.ack, &ctl);
			error = netnice_ack(flow, &now, &answer);
			error = error ? error : netnice_send(flow, &now, &answer);
		}
		if (error || answer.cwnd_q16 != ctl.cwnd_q16 || answer.gap_us != ctl.gap_us ||
		    answer.flags != ctl.flags || answer.window != nn_host_window(&ctl))
			exit(fprintf(stderr, "%s differs at step %u: %s\n", a->name, i,
				     netnice_strerror(error)));
		smaller += ctl.cwnd_q16 < before;
		before = ctl.cwnd_q16;
	}
	return smaller;
}

int main(void)
{
	u32 smaller = 0;

	for (u32 i = 0; i < nn_n_algorithms; i++)
		smaller += compare(nn_algorithms[i], 0) + compare(nn_algorithms[i], 1);
	printf("%u algorithms, %u smaller windows\n", nn_n_algorithms, smaller);
	return smaller < 1000;
}
