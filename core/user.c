// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* One algorithm as an entry of the table in user.h; compiled once per algorithm. */
#include "flow.h"
#include "user.h"

static void init(void *s, const u32 *cfg, struct nn_group *g, const struct nn_ack *a,
		 struct nn_ctl *ctl)
{
	nn_flow_init(s, (const NN_CFG *)(const void *)cfg, g, a, ctl);
}

static void ack(void *s, const u32 *cfg, struct nn_group *g, const struct nn_ack *a,
		struct nn_ctl *ctl)
{
	nn_flow_ack(s, (const NN_CFG *)(const void *)cfg, g, a, ctl);
}

static void event(void *s, const u32 *cfg, struct nn_group *g, enum nn_event e,
		  const struct nn_ack *a, struct nn_ctl *ctl)
{
	nn_flow_event(s, (const NN_CFG *)(const void *)cfg, g, e, a, ctl);
}

static void send(void *s, const u32 *cfg, struct nn_group *g, const struct nn_ack *a,
		 struct nn_ctl *ctl)
{
	nn_flow_send(s, (const NN_CFG *)(const void *)cfg, g, a, ctl);
}

static void info(const void *s, const u32 *cfg, struct nn_info *i)
{
	nn_flow_info(s, (const NN_CFG *)(const void *)cfg, i);
}

#define NN_PARAM(name, def, least, most, unit, source, help)                                       \
	{ #name, def, least, most, unit, source, help },
/* the last entry keeps the array from being empty, which C11 forbids */
static const struct nn_param params[] = { NN_PARAMS(NN_PARAM) { 0 } };

extern const struct nn_algorithm NN_CAT(nn_algorithm_, NN_ALG, );
const struct nn_algorithm NN_CAT(nn_algorithm_, NN_ALG, ) = {
	.name = NN_STR(NN_ALG),
	.summary = NN_OP(summary),
	.params = params,
	.n_params = NN_N_PARAMS,
	.state_size = sizeof(NN_STATE),
	.grouped = NN_GROUPED + (NN_GROUPED && !NN_ANY),
	.init = init,
	.ack = ack,
	.event = event,
	.send = send,
	.info = info,
};
