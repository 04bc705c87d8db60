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

static void show(const void *s, const u32 *cfg, struct nn_value *to)
{
	nn_flow_show(s, (const NN_CFG *)(const void *)cfg, to);
}

static u32 place(const void *s)
{
	return nn_flow_place(s);
}

#define NN_PARAM(name, def, least, most, unit, source, help)                                       \
	{ #name, def, least, most, unit, source, help },
#define NN_LINE(name, unit, help, value) { #name, NN_UNIT_##unit, help },
/* the last entries keep the arrays from being empty, which C11 forbids */
static const struct nn_param params[] = { NN_PARAMS(NN_PARAM) { 0 } };
static const struct nn_shown shown[] = { NN_SHOWN(NN_LINE, s, c) { 0 } };

extern const struct nn_algorithm NN_CAT(nn_algorithm_, NN_ALG, );
const struct nn_algorithm NN_CAT(nn_algorithm_, NN_ALG, ) = {
	.name = NN_STR(NN_ALG),
	.summary = NN_OP(summary),
	.params = params,
	.n_params = NN_N_PARAMS,
	.shown = shown,
	.n_shown = NN_N_SHOWN,
	.state_size = sizeof(NN_STATE),
	.grouped = NN_GROUPED + (NN_GROUPED && !NN_ANY),
	.init = init,
	.ack = ack,
	.event = event,
	.send = send,
	.show = show,
	.place = place,
};
