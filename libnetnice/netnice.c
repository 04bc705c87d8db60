// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* Flows and groups of netnice.h, over the tables of core/user.h. */
#include "lists.h"

#define FLOW_MAGIC 0x6e65746e69636531ull
#define GROUP_MAGIC 0x6e65746e69636567ull
#define SETTING_MAX 256u	/* characters of a setting */

enum phase {
	READY = 1,
	RUNNING,
	CLOSED,
};

struct netnice_group {
	u64 magic;
	const struct nn_algorithm *algorithm;	/* of its members; NULL: none has come */
	u64 joined;				/* flows that will be members, or are */
	struct nn_group group;
};

struct netnice_flow {
	u64 magic;
	const struct nn_algorithm *algorithm;
	struct netnice_group *group;
	u64 now_us;
	struct nn_ctl ctl;
	u32 phase;
	u32 reserved;
	u32 cfg[NN_PARAMS_MAX];
	nn_word state[NN_STATE_MAX / 8];
};

_Static_assert(sizeof(struct netnice_flow) <= 8 * NETNICE_FLOW_WORDS, "a flow has grown");
_Static_assert(sizeof(struct netnice_group) <= 8 * NETNICE_GROUP_WORDS, "a group has grown");
_Static_assert((u32)NETNICE_PACKET == NN_ONE, "Q16");
_Static_assert((u32)NETNICE_ACK_HOLD == NN_ACK_HOLD, "flags of an ACK");
_Static_assert((u32)NETNICE_ACK_EXACT == NN_ACK_EXACT, "flags of an ACK");
_Static_assert((u32)NETNICE_ACK_HANDSHAKE == NN_ACK_HANDSHAKE, "flags of an ACK");
_Static_assert((u32)NETNICE_YIELDING == NN_CTL_YIELDING, "flags of an answer");
_Static_assert((u32)NETNICE_UNDO == NN_UNDO, "events");

static int aligned(const void *p)
{
	return p && !((uintptr_t)p & 7);
}

/* A flow in one of two phases; else why not. */
static int check(const struct netnice_flow *f, u32 phase, u32 other)
{
	if (!aligned(f))
		return NETNICE_E_ARGUMENT;
	if (f->magic != FLOW_MAGIC || (f->phase != phase && f->phase != other))
		return NETNICE_E_STATE;
	return 0;
}

/* A flow that runs, and what it is told; else why not. */
static int check_now(const struct netnice_flow *f, u32 phase, const struct netnice_now *now,
		     const void *answer)
{
	const u32 known = NN_ACK_ECE | NN_ACK_APP_LIMITED | NN_ACK_HOLD | NN_ACK_EXACT |
			  NN_ACK_HANDSHAKE;
	int error = check(f, phase, phase);

	if (error)
		return error;
	if (!now || !answer || now->flags & ~known)
		return NETNICE_E_ARGUMENT;
	return now->now_us < f->now_us ? NETNICE_E_TIME : 0;
}

static struct nn_ack told(struct netnice_flow *f, const struct netnice_now *now)
{
	f->now_us = now->now_us;
	return (struct nn_ack){
		.now_us = now->now_us,
		.rtt_us = now->rtt_us,
		.srtt_us = now->srtt_us,
		.acked = now->acked,
		.lost = now->lost,
		.inflight = now->inflight,
		.una = now->una,
		.nxt = now->nxt,
		.flags = now->flags,
		.mss = now->mss,
		.flows = now->flows,
	};
}

static struct nn_group *group_of(struct netnice_flow *f)
{
	return f->group ? &f->group->group : NULL;
}

static int answered(const struct netnice_flow *f, struct netnice_answer *answer)
{
	*answer = (struct netnice_answer){
		.cwnd_q16 = f->ctl.cwnd_q16,
		.gap_us = f->ctl.gap_us,
		.burst = f->ctl.gap_us ? f->ctl.burst : 0,
		.flags = f->ctl.flags,
		.window = nn_host_window(&f->ctl),
		.recovery = nn_host_target(&f->ctl),
		.timeout = nn_host_window_in_loss(&f->ctl),
	};
	return 0;
}

EXPORT size_t netnice_flow_size(void)
{
	return sizeof(struct netnice_flow);
}

EXPORT size_t netnice_group_size(void)
{
	return sizeof(struct netnice_group);
}

EXPORT int netnice_init(void *flow, size_t size, const char *algorithm)
{
	const struct nn_algorithm *a = nn_named(algorithm);
	struct netnice_flow *f = flow;

	if (!aligned(flow))
		return NETNICE_E_ARGUMENT;
	if (size < sizeof(*f))
		return NETNICE_E_SIZE;
	if (!a)
		return NETNICE_E_ALGORITHM;
	if (f->magic == FLOW_MAGIC && f->group)
		return NETNICE_E_GROUP;
	*f = (struct netnice_flow){ .magic = FLOW_MAGIC, .algorithm = a, .phase = READY };
	for (u32 i = 0; i < a->n_params; i++)
		f->cfg[i] = nn_q16(a->params[i].def);
	return 0;
}

EXPORT int netnice_set(void *flow, const char *setting)
{
	struct netnice_flow *f = flow;
	int error = check(f, READY, RUNNING);
	size_t name = 0, length = 0;
	u32 value = 0;

	if (error)
		return error;
	if (!setting)
		return NETNICE_E_ARGUMENT;
	while (length < SETTING_MAX && setting[length])
		length++;
	while (name < length && setting[name] != '=')
		name++;
	if (length == SETTING_MAX || name == length || !name)
		return NETNICE_E_SETTING;
	for (u32 i = 0; i < f->algorithm->n_params; i++) {
		const struct nn_param *p = &f->algorithm->params[i];

		if (!nn_is(p->name, setting, name))
			continue;
		error = nn_value_of(p, setting + name + 1, &value);
		if (!error)
			f->cfg[i] = value;
		return error;
	}
	return NETNICE_E_PARAMETER;
}

EXPORT int netnice_start(void *flow, const struct netnice_now *now, uint32_t window,
			 struct netnice_answer *answer)
{
	struct netnice_flow *f = flow;
	int error = check_now(f, READY, now, answer);
	struct nn_ack a;

	if (error)
		return error;
	if (!window || window > NN_CWND_MAX / NN_ONE)
		return NETNICE_E_RANGE;
	a = told(f, now);
	f->ctl = (struct nn_ctl){ .cwnd_q16 = (u64)window * NN_ONE };
	f->algorithm->init(f->state, f->cfg, group_of(f), &a, &f->ctl);
	f->phase = RUNNING;
	return answered(f, answer);
}

EXPORT int netnice_ack(void *flow, const struct netnice_now *ack, struct netnice_answer *answer)
{
	struct netnice_flow *f = flow;
	int error = check_now(f, RUNNING, ack, answer);
	struct nn_ack a;

	if (error)
		return error;
	a = told(f, ack);
	f->algorithm->ack(f->state, f->cfg, group_of(f), &a, &f->ctl);
	return answered(f, answer);
}

static int event(struct netnice_flow *f, enum nn_event which, const struct netnice_now *now,
		 struct netnice_answer *answer)
{
	struct nn_ack a = told(f, now);

	f->algorithm->event(f->state, f->cfg, group_of(f), which, &a, &f->ctl);
	return answered(f, answer);
}

EXPORT int netnice_event(void *flow, enum netnice_event which, const struct netnice_now *now,
			 struct netnice_answer *answer)
{
	struct netnice_flow *f = flow;
	int error = check_now(f, RUNNING, now, answer);

	if (error)
		return error;
	if ((u32)which > NETNICE_UNDO)
		return NETNICE_E_ARGUMENT;
	return event(f, (enum nn_event)which, now, answer);
}

EXPORT int netnice_idle(void *flow, uint64_t cwnd_q16, const struct netnice_now *now,
			struct netnice_answer *answer)
{
	struct netnice_flow *f = flow;
	int error = check_now(f, RUNNING, now, answer);

	if (error)
		return error;
	if (!cwnd_q16 || cwnd_q16 > f->ctl.cwnd_q16)
		return NETNICE_E_RANGE;
	f->ctl.cwnd_q16 = cwnd_q16;
	return event(f, NN_IDLE, now, answer);
}

EXPORT int netnice_send(void *flow, const struct netnice_now *now, struct netnice_answer *answer)
{
	struct netnice_flow *f = flow;
	int error = check_now(f, RUNNING, now, answer);
	struct nn_ack a;

	if (error)
		return error;
	a = told(f, now);
	f->algorithm->send(f->state, f->cfg, group_of(f), &a, &f->ctl);
	return answered(f, answer);
}

EXPORT int netnice_close(void *flow, const struct netnice_now *now)
{
	struct netnice_flow *f = flow;
	int error = check(f, READY, RUNNING);
	struct nn_ack a;

	if (error)
		return error;
	if (!now)
		return NETNICE_E_ARGUMENT;
	if (now->now_us < f->now_us)
		return NETNICE_E_TIME;
	a = told(f, now);
	if (f->group) {
		if (f->phase == RUNNING)
			f->algorithm->event(f->state, f->cfg, group_of(f), NN_CLOSE, &a, &f->ctl);
		f->group->joined--;
		f->group = NULL;
	}
	f->phase = CLOSED;
	return 0;
}

EXPORT int netnice_ssthresh(const void *flow, uint32_t cwnd, uint32_t ssthresh, uint32_t *result)
{
	const struct netnice_flow *f = flow;
	int error = check(f, RUNNING, RUNNING);

	if (error)
		return error;
	if (!result)
		return NETNICE_E_ARGUMENT;
	*result = nn_host_ssthresh(&f->ctl, cwnd, ssthresh);
	return 0;
}

EXPORT int netnice_app_limited(const void *flow, int data_waits, uint32_t cwnd, uint32_t most_out,
			       int limited)
{
	const struct netnice_flow *f = flow;
	int error = check(f, RUNNING, RUNNING);

	return error ? error : nn_host_app_limited(&f->ctl, data_waits, cwnd, most_out, limited);
}

static int check_group(const struct netnice_group *g)
{
	if (!aligned(g))
		return NETNICE_E_ARGUMENT;
	return g->magic == GROUP_MAGIC ? 0 : NETNICE_E_STATE;
}

EXPORT int netnice_group_init(void *group, size_t size)
{
	struct netnice_group *g = group;

	if (!aligned(group))
		return NETNICE_E_ARGUMENT;
	if (size < sizeof(*g))
		return NETNICE_E_SIZE;
	if (g->magic == GROUP_MAGIC && g->joined)
		return NETNICE_E_GROUP;
	__builtin_memset(g, 0, sizeof(*g));
	g->magic = GROUP_MAGIC;
	return 0;
}

EXPORT int netnice_group_apart(void *group)
{
	struct netnice_group *g = group;
	int error = check_group(g);

	if (error)
		return error;
	if (g->joined)
		return NETNICE_E_STATE;
	g->group.apart = 1;
	return 0;
}

EXPORT int netnice_join(void *flow, void *group)
{
	struct netnice_group *g = group;
	struct netnice_flow *f = flow;
	int error = check(f, READY, READY);

	error = error ? error : check_group(g);
	if (error)
		return error;
	if (f->group)
		return NETNICE_E_STATE;
	if (!f->algorithm->grouped || (g->joined && g->algorithm != f->algorithm))
		return NETNICE_E_GROUP;
	g->algorithm = f->algorithm;
	g->joined++;
	f->group = g;
	return 0;
}

EXPORT int netnice_members(const void *group)
{
	const struct netnice_group *g = group;
	int error = check_group(g);

	return error ? error : (int)g->group.members;
}

EXPORT int netnice_shown(const void *flow, size_t index, struct netnice_shown *shown)
{
	static const char *const units[] = { "us", "packets", "share", "mbit", "pps" };
	const struct netnice_flow *f = flow;
	struct nn_value values[NN_SHOWN_MAX];
	int error = check(f, RUNNING, RUNNING);

	if (error)
		return error;
	if (!shown)
		return NETNICE_E_ARGUMENT;
	if (index >= f->algorithm->n_shown)
		return NETNICE_E_PARAMETER;
	f->algorithm->show(f->state, f->cfg, values);
	*shown = (struct netnice_shown){
		.name = f->algorithm->shown[index].name,
		.help = f->algorithm->shown[index].help,
		.value = values[index].value,
		.unit = units[f->algorithm->shown[index].unit],
	};
	return 0;
}
