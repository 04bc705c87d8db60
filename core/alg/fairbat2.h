/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * FAIRBAT-II: TCP's throughput where it is scarce, no more than is needed where there
 * is plenty.
 *
 * Utilities log y, and a constant cost gamma of the delay impact on short flows. In
 * steady state (4):
 *
 *	R = y0/y = 1 + gamma y0
 *
 * so that y < 1/gamma however great y0 is. See fairbat.h for all else.
 */
#ifndef NN_ALG_FAIRBAT2_H
#define NN_ALG_FAIRBAT2_H

#include "fairbat.h"

#define nn_fairbat2_summary \
	"FAIRBAT-II: TCP's throughput where it is scarce, at most 1/gamma where there is plenty"

#define nn_fairbat2_own_params(P)                                                                  \
	P(gamma, 1.0, 0.0, 1000.0, "1/(Mbit/s)", "FAIRBAT (4)",                                    \
	  "1/gamma is the most that the flow takes, and half of it at a TCP throughput of that")

#define nn_fairbat2_params(P) nn_fairbat2_own_params(P) nn_fairbat_params(P)

struct nn_fairbat2_cfg {
	nn_fairbat2_own_params(NN_FIELD)
	struct nn_fairbat_cfg fairbat;
};

struct nn_fairbat2 {
	struct nn_fairbat fairbat;
};

/* R, Q16. 26 + 36 bits. */
nn_inline u64 nn_fairbat2_ratio(const struct nn_fairbat2 *s, const struct nn_fairbat2_cfg *c)
{
	return NN_ONE + (u64)c->gamma * s->fairbat.y0 / NN_ONE;
}

/* The slow loop, where it is due, and the phases. */
nn_inline void nn_fairbat2_step(struct nn_fairbat2 *s, const struct nn_fairbat2_cfg *c, u64 now_us)
{
	if (nn_fairbat_estimate(&s->fairbat, &c->fairbat, now_us))
		nn_fairbat_adapt(&s->fairbat, &c->fairbat, nn_fairbat2_ratio(s, c));
	nn_fairbat_clock(&s->fairbat, &c->fairbat, now_us);
}

nn_inline void nn_fairbat2_init(struct nn_fairbat2 *s, const struct nn_fairbat2_cfg *c,
			      struct nn_group *g, const struct nn_ack *a, struct nn_ctl *ctl)
{
	(void)g;
	nn_fairbat_init(&s->fairbat, &c->fairbat, a, ctl);
}

nn_inline void nn_fairbat2_ack(struct nn_fairbat2 *s, const struct nn_fairbat2_cfg *c,
			     struct nn_group *g, const struct nn_ack *a, struct nn_ctl *ctl)
{
	(void)g;
	nn_fairbat_count(&s->fairbat, a);
	nn_fairbat2_step(s, c, a->now_us);
	nn_fairbat_grow(&s->fairbat, &c->fairbat, a);
	nn_fairbat_answer(&s->fairbat, a, ctl);
}

nn_inline void nn_fairbat2_event(struct nn_fairbat2 *s, const struct nn_fairbat2_cfg *c,
			       struct nn_group *g, enum nn_event event, const struct nn_ack *a,
			       struct nn_ctl *ctl)
{
	(void)g;
	nn_fairbat2_step(s, c, a->now_us);
	nn_fairbat_event(&s->fairbat, event, a, ctl);
}

nn_inline void nn_fairbat2_send(struct nn_fairbat2 *s, const struct nn_fairbat2_cfg *c,
			      struct nn_group *g, const struct nn_ack *a, struct nn_ctl *ctl)
{
	(void)g;
	nn_fairbat2_step(s, c, a->now_us);
	nn_fairbat_send(&s->fairbat, a, ctl);
}

nn_inline void nn_fairbat2_info(const struct nn_fairbat2 *s, const struct nn_fairbat2_cfg *c,
			      struct nn_info *info)
{
	(void)c;
	nn_fairbat_info(&s->fairbat, info);
}

#endif
