/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * FAIRBAT-I: TCP's throughput where there is plenty, less where the path is crowded.
 *
 * Utilities log y, and a cost gamma delta^2 of the delay impact delta = 1/y0 on
 * short flows. In steady state (3):
 *
 *	R = y0/y = 1 + gamma/y0
 *
 * See fairbat.h for all else.
 */
#ifndef NN_ALG_FAIRBAT1_H
#define NN_ALG_FAIRBAT1_H

#include "fairbat.h"

#define nn_fairbat1_summary \
	"FAIRBAT-I: a share of TCP's throughput that falls as the path gets crowded"

#define nn_fairbat1_own_params(P)                                                                  \
	P(gamma, 1.0, 0.0, 1000.0, "Mbit/s", "FAIRBAT (3)",                                        \
	  "price of delay: at a TCP throughput of gamma the flow takes half of TCP's")

#define nn_fairbat1_params(P) nn_fairbat1_own_params(P) nn_fairbat_params(P)

struct nn_fairbat1_cfg {
	nn_fairbat1_own_params(NN_FIELD)
	struct nn_fairbat_cfg fairbat;
};

struct nn_fairbat1 {
	struct nn_fairbat fairbat;
};

/* R, Q16. 26 + 16 bits; y0 is not zero once it was sampled. */
nn_inline u64 nn_fairbat1_ratio(const struct nn_fairbat1 *s, const struct nn_fairbat1_cfg *c)
{
	return NN_ONE + (s->fairbat.y0 ? (u64)c->gamma * NN_ONE / s->fairbat.y0 : 0);
}

/* The slow loop, where it is due, and the phases. */
nn_inline void nn_fairbat1_step(struct nn_fairbat1 *s, const struct nn_fairbat1_cfg *c, u64 now_us)
{
	if (nn_fairbat_estimate(&s->fairbat, &c->fairbat, now_us))
		nn_fairbat_adapt(&s->fairbat, &c->fairbat, nn_fairbat1_ratio(s, c));
	nn_fairbat_clock(&s->fairbat, &c->fairbat, now_us);
}

nn_inline void nn_fairbat1_init(struct nn_fairbat1 *s, const struct nn_fairbat1_cfg *c,
			      struct nn_group *g, const struct nn_ack *a, struct nn_ctl *ctl)
{
	(void)g;
	nn_fairbat_init(&s->fairbat, &c->fairbat, a, ctl);
}

nn_inline void nn_fairbat1_ack(struct nn_fairbat1 *s, const struct nn_fairbat1_cfg *c,
			     struct nn_group *g, const struct nn_ack *a, struct nn_ctl *ctl)
{
	(void)g;
	nn_fairbat_count(&s->fairbat, a);
	nn_fairbat1_step(s, c, a->now_us);
	nn_fairbat_grow(&s->fairbat, &c->fairbat, a);
	nn_fairbat_answer(&s->fairbat, a, ctl);
}

nn_inline void nn_fairbat1_event(struct nn_fairbat1 *s, const struct nn_fairbat1_cfg *c,
			       struct nn_group *g, enum nn_event event, const struct nn_ack *a,
			       struct nn_ctl *ctl)
{
	(void)g;
	nn_fairbat1_step(s, c, a->now_us);
	nn_fairbat_event(&s->fairbat, event, a, ctl);
}

nn_inline void nn_fairbat1_send(struct nn_fairbat1 *s, const struct nn_fairbat1_cfg *c,
			      struct nn_group *g, const struct nn_ack *a, struct nn_ctl *ctl)
{
	(void)g;
	nn_fairbat1_step(s, c, a->now_us);
	nn_fairbat_send(&s->fairbat, a, ctl);
}

nn_inline void nn_fairbat1_info(const struct nn_fairbat1 *s, const struct nn_fairbat1_cfg *c,
			      struct nn_info *info)
{
	(void)c;
	nn_fairbat_info(&s->fairbat, info);
}

#endif
