// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * What libnetnice says to every misuse: a documented error, and the flow goes on as if nothing had been
 * asked. Compiled with sanitizers.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../libnetnice/netnice.h"

#define IS(expected, call)                                                                         \
	do {                                                                                       \
		int got = (call);                                                                  \
		if (got != (expected)) {                                                           \
			fprintf(stderr, "%s:%d: %s is %d, not %s\n", __FILE__, __LINE__, #call,    \
				got, #expected);                                                   \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

static struct netnice_now now = { .now_us = 1000, .mss = 1200 };
static struct netnice_answer answer;

/* A flow in memory of exactly its size, for the sanitizers. */
static void *memory(size_t size)
{
	return calloc(1, size);
}

static void *started(const char *algorithm)
{
	void *flow = memory(netnice_flow_size());

	IS(0, netnice_init(flow, netnice_flow_size(), algorithm));
	IS(0, netnice_start(flow, &now, 10, &answer));
	return flow;
}

static void before_the_start(void)
{
	void *flow = memory(netnice_flow_size());
	uint32_t result;
	struct netnice_shown shown;

	for (int initialised = 0; initialised < 2; initialised++) {
		IS(NETNICE_E_STATE, netnice_ack(flow, &now, &answer));
		IS(NETNICE_E_STATE, netnice_event(flow, NETNICE_LOSS, &now, &answer));
		IS(NETNICE_E_STATE, netnice_send(flow, &now, &answer));
		IS(NETNICE_E_STATE, netnice_idle(flow, 1, &now, &answer));
		IS(NETNICE_E_STATE, netnice_shown(flow, 0, &shown));
		IS(NETNICE_E_STATE, netnice_ssthresh(flow, 1, 1, &result));
		IS(NETNICE_E_STATE, netnice_app_limited(flow, 1, 1, 1, 1));
		if (!initialised) {
			IS(NETNICE_E_STATE, netnice_start(flow, &now, 10, &answer));
			IS(NETNICE_E_STATE, netnice_set(flow, "threshold=0.1"));
			IS(NETNICE_E_STATE, netnice_close(flow, &now));
		}
		IS(0, netnice_init(flow, netnice_flow_size(), "nice"));
	}
	IS(NETNICE_E_RANGE, netnice_start(flow, &now, 0, &answer));
	IS(NETNICE_E_RANGE, netnice_start(flow, &now, (1 << 20) + 1, &answer));
	IS(0, netnice_start(flow, &now, 10, &answer));
	IS(NETNICE_E_STATE, netnice_start(flow, &now, 10, &answer));
	IS(0, netnice_close(flow, &now));
	IS(NETNICE_E_STATE, netnice_close(flow, &now));
	IS(NETNICE_E_STATE, netnice_ack(flow, &now, &answer));
	IS(0, netnice_init(flow, netnice_flow_size(), "reno"));
	free(flow);
}

static void pointers_and_sizes(void)
{
	void *flow = started("nice");
	struct netnice_parameter p;
	char *off = memory(netnice_flow_size() + 8);
	size_t size = netnice_flow_size();

	IS(NETNICE_E_ARGUMENT, netnice_init(NULL, size, "nice"));
	IS(NETNICE_E_ARGUMENT, netnice_init(off + 1, size, "nice"));
	IS(NETNICE_E_SIZE, netnice_init(off, size - 1, "nice"));
	IS(NETNICE_E_ALGORITHM, netnice_init(off, size, "nicer"));
	IS(NETNICE_E_ALGORITHM, netnice_init(off, size, ""));
	IS(NETNICE_E_ALGORITHM, netnice_init(off, size, NULL));
	IS(NETNICE_E_ARGUMENT, netnice_ack(NULL, &now, &answer));
	IS(NETNICE_E_ARGUMENT, netnice_ack(flow, NULL, &answer));
	IS(NETNICE_E_ARGUMENT, netnice_ack(flow, &now, NULL));
	IS(NETNICE_E_ARGUMENT, netnice_close(flow, NULL));
	IS(NETNICE_E_ARGUMENT, netnice_set(flow, NULL));
	IS(NETNICE_E_ARGUMENT, netnice_ssthresh(flow, 1, 1, NULL));
	IS(NETNICE_E_ARGUMENT, netnice_shown(flow, 0, NULL));
	IS(NETNICE_E_ARGUMENT, netnice_group_init(NULL, netnice_group_size()));
	IS(NETNICE_E_SIZE, netnice_group_init(off, 8));
	IS(NETNICE_E_ARGUMENT, netnice_members(NULL));
	IS(NETNICE_E_STATE, netnice_members(off));
	IS(NETNICE_E_ARGUMENT, netnice_parameter("nice", 0, NULL));
	IS(NETNICE_E_ALGORITHM, netnice_parameter("nicer", 0, &p));
	IS(NETNICE_E_PARAMETER, netnice_parameter("nice", 99, &p));
	if (netnice_algorithm(999) || netnice_class("best") || netnice_class(NULL))
		exit(fprintf(stderr, "a name of nothing\n"));
	free(flow);
	free(off);
}

static void numbers(void)
{
	void *flow = started("nice");
	struct netnice_now other = now;
	struct netnice_answer before;

	other.flags = 8; /* of the host alone */
	IS(NETNICE_E_ARGUMENT, netnice_ack(flow, &other, &answer));
	IS(NETNICE_E_ARGUMENT, netnice_event(flow, (enum netnice_event)4, &now, &answer));
	IS(NETNICE_E_ARGUMENT, netnice_event(flow, (enum netnice_event)-1, &now, &answer));
	IS(NETNICE_E_RANGE, netnice_idle(flow, 0, &now, &answer));
	IS(NETNICE_E_RANGE, netnice_idle(flow, ~0ull, &now, &answer));

	IS(0, netnice_send(flow, &now, &before));
	other = now;
	other.now_us--;
	IS(NETNICE_E_TIME, netnice_ack(flow, &other, &answer));
	IS(NETNICE_E_TIME, netnice_event(flow, NETNICE_LOSS, &other, &answer));
	IS(NETNICE_E_TIME, netnice_close(flow, &other));
	IS(0, netnice_send(flow, &now, &answer)); /* the same time again is none that went back */
	if (memcmp(&before, &answer, sizeof(before)))
		exit(fprintf(stderr, "an error has changed the flow\n"));
	free(flow);
}

static void settings(void)
{
	void *flow = started("nice");
	char longest[300];

	memset(longest, '1', sizeof(longest));
	memcpy(longest, "threshold=", 10);
	longest[sizeof(longest) - 1] = 0;
	IS(0, netnice_set(flow, "threshold=0.2"));
	IS(0, netnice_set(flow, "threshold=.2"));
	IS(NETNICE_E_SETTING, netnice_set(flow, ""));
	IS(NETNICE_E_SETTING, netnice_set(flow, "threshold"));
	IS(NETNICE_E_SETTING, netnice_set(flow, "=1"));
	IS(NETNICE_E_SETTING, netnice_set(flow, "threshold="));
	IS(NETNICE_E_SETTING, netnice_set(flow, "threshold=."));
	IS(NETNICE_E_SETTING, netnice_set(flow, "threshold=-1"));
	IS(NETNICE_E_SETTING, netnice_set(flow, "threshold=nan"));
	IS(NETNICE_E_SETTING, netnice_set(flow, "threshold=inf"));
	IS(NETNICE_E_SETTING, netnice_set(flow, "threshold=1e3"));
	IS(NETNICE_E_SETTING, netnice_set(flow, longest));
	IS(NETNICE_E_RANGE, netnice_set(flow, "threshold=1000000"));
	IS(NETNICE_E_RANGE, netnice_set(flow, "threshold=99999999999999999999999999999999"));
	IS(NETNICE_E_PARAMETER, netnice_set(flow, "treshold=0.1"));
	IS(NETNICE_E_PARAMETER, netnice_set(flow, "thres=0.1"));
	free(flow);
}

static void groups(void)
{
	size_t size = netnice_group_size();
	void *group = memory(size), *alone = started("imtcp"), *flow = memory(netnice_flow_size());
	void *other = memory(netnice_flow_size());

	IS(0, netnice_init(flow, netnice_flow_size(), "mpat"));
	IS(NETNICE_E_STATE, netnice_join(flow, group));
	IS(NETNICE_E_STATE, netnice_group_apart(group));
	IS(NETNICE_E_ARGUMENT, netnice_group_apart(NULL));
	IS(0, netnice_group_init(group, size));
	IS(0, netnice_group_apart(group));
	IS(0, netnice_join(flow, group));
	IS(NETNICE_E_STATE, netnice_group_apart(group));
	IS(NETNICE_E_STATE, netnice_join(flow, group));
	IS(NETNICE_E_GROUP, netnice_group_init(group, size));
	IS(NETNICE_E_GROUP, netnice_init(flow, netnice_flow_size(), "mpat")); /* it would stay a member */
	IS(0, netnice_members(group));
	IS(0, netnice_start(flow, &now, 10, &answer));
	IS(1, netnice_members(group));
	IS(NETNICE_E_STATE, netnice_join(alone, group));
	IS(0, netnice_init(other, netnice_flow_size(), "nice"));
	IS(NETNICE_E_GROUP, netnice_join(other, group));
	IS(0, netnice_close(flow, &now));
	IS(0, netnice_members(group));
	IS(0, netnice_join(other, group)); /* the first of the next ones decides */
	IS(0, netnice_close(other, &now)); /* it never started */
	IS(0, netnice_group_init(group, size));
	IS(0, netnice_init(alone, netnice_flow_size(), "imtcp"));
	IS(NETNICE_E_GROUP, netnice_join(alone, group)); /* that has no groups */
	if (!strstr(netnice_strerror(NETNICE_E_GROUP), "has no groups"))
		exit(fprintf(stderr, "nothing says why it did not join\n"));
	free(group);
	free(alone);
	free(flow);
	free(other);
}

int main(void)
{
	before_the_start();
	pointers_and_sizes();
	numbers();
	settings();
	groups();
	for (int error = 0; error > -12; error--)
		if (!netnice_strerror(error)[0])
			return 1;
	puts("every misuse has its error");
	return 0;
}
