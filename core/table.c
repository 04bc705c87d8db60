// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* The tables of user.h, from algorithms.def and classes.def, and its functions. */
#include <stddef.h>

#include "host/obey.h"
#include "host/down_datagram.h"
#include "host/line.h"
#include "host/path.h"
#include "user.h"

#define NN_ALGORITHM(name) extern const struct nn_algorithm nn_algorithm_##name;
#include "algorithms.def"
#undef NN_ALGORITHM

#define NN_ALGORITHM(name) &nn_algorithm_##name,
const struct nn_algorithm *const nn_algorithms[] = {
#include "algorithms.def"
};
#undef NN_ALGORITHM

const u32 nn_n_algorithms = sizeof(nn_algorithms) / sizeof(nn_algorithms[0]);

#define NN_CLASS(name, algorithm, dscp, summary) \
	{ #name, &nn_algorithm_##algorithm, dscp, summary },
#define NN_MEASURES(algorithm)
#define NN_GROUPED(algorithm)
const struct nn_class nn_classes[] = {
#include "classes.def"
};
#undef NN_CLASS
#undef NN_MEASURES
#undef NN_GROUPED

#define NN_CLASS(name, algorithm, dscp, summary)
#define NN_MEASURES(algorithm) const struct nn_algorithm *const nn_measures = &nn_algorithm_##algorithm;
#define NN_GROUPED(algorithm) const struct nn_algorithm *const nn_grouped = &nn_algorithm_##algorithm;
#include "classes.def"
#undef NN_CLASS
#undef NN_MEASURES
#undef NN_GROUPED

const u32 nn_n_classes = sizeof(nn_classes) / sizeof(nn_classes[0]);

u32 nn_group_send(struct nn_group *g, u32 last)
{
	u32 index = nn_windows_choose(g, last & (NN_GROUP_MAX - 1));
	struct nn_member *m = nn_group_at(g, index);

	m->out++;
	return index | m->round << NN_GROUP_LEVELS;
}

/* The packet of that tag is no longer out. Returns its window if that was not cut meanwhile. */
static struct nn_member *returned(struct nn_group *g, u32 tag)
{
	struct nn_member *m = nn_windows_tagged(g, tag);

	if (!m || !m->out)
		return NULL;
	m->out--;
	return nn_windows_current(m, tag) ? m : NULL;
}

void nn_group_acked(struct nn_group *g, u32 tag)
{
	if (returned(g, tag) && g->eager)
		nn_windows_grow(g, tag, 1);
}

void nn_group_lost(struct nn_group *g, u32 tag, const struct nn_ack *a)
{
	if (returned(g, tag))
		nn_windows_cut(g, tag, a);
}

void nn_group_gone(struct nn_group *g, u32 tag)
{
	returned(g, tag);
}

u32 nn_host_window(const struct nn_ctl *ctl)
{
	return nn_obey_window(ctl);
}

u32 nn_host_window_in_loss(const struct nn_ctl *ctl)
{
	return nn_obey_window_in_loss(ctl);
}

u32 nn_host_target(const struct nn_ctl *ctl)
{
	return nn_obey_target(ctl);
}

u32 nn_host_ssthresh(const struct nn_ctl *ctl, u32 cwnd, u32 ssthresh)
{
	return nn_obey_ssthresh(ctl, cwnd, ssthresh);
}

int nn_host_app_limited(const struct nn_ctl *ctl, int data_waits, u32 cwnd, u32 most_out, int limited)
{
	return nn_obey_app_limited(ctl, data_waits, cwnd, most_out, limited);
}

void nn_host_path_init(struct nn_path *p, u64 now)
{
	nn_path_init(p, now);
}

void nn_host_path_left(struct nn_path *p, u64 now, u32 bytes, struct nn_path_sent *sent)
{
	nn_path_left(p, now, bytes, sent);
}

void nn_host_path_left_unread(struct nn_path *p, u64 now, u32 bytes)
{
	nn_path_left_unread(p, now, bytes);
}

u64 nn_host_path_gate(struct nn_path *p, u64 now)
{
	return nn_path_gate(p, now);
}

void nn_host_path_again(struct nn_path *p, u64 now)
{
	nn_path_again(p, now);
}

void nn_host_path_delivered(struct nn_path *p, u64 bytes)
{
	nn_path_delivered(p, bytes);
}

void nn_host_path_ack(struct nn_path *p, struct nn_path_base *base, u64 now,
		      const struct nn_path_sent *sent, u64 acked, u32 stamp)
{
	nn_path_ack(p, base, now, sent, acked, stamp);
}

int nn_host_path_away(const struct nn_path *p, u64 now)
{
	return nn_path_away(p, now);
}

void nn_host_line_join(struct nn_line *l, struct nn_line_place *c)
{
	nn_line_join(l, c);
}

void nn_host_line_wait(struct nn_line *l, struct nn_line_place *c)
{
	nn_line_wait(l, c);
}

void nn_host_line_leave(struct nn_line *l, struct nn_line_place *c, int waited)
{
	nn_line_leave(l, c, waited);
}

void nn_host_line_lose(struct nn_line *l, struct nn_line_place *c)
{
	nn_line_lose(l, c);
}

u32 nn_host_line_before(const struct nn_line *l, const struct nn_line_place *c)
{
	return nn_line_before(l, c);
}

void nn_host_down_init(struct nn_down *d, u64 now)
{
	nn_down_init(d, now);
}

void nn_host_down_count(struct nn_down *d, u64 now, u32 bytes)
{
	nn_down_count(d, now, bytes);
}

void nn_host_down_other(struct nn_down *d, u64 now, u32 bytes)
{
	nn_down_other(d, now, bytes);
}

void nn_host_down_user_leaves(struct nn_down *d, struct nn_down_user *u, u64 now, u32 payload,
			      int acks, u32 ack)
{
	nn_down_user_leaves(d, u, now, payload, acks, ack);
}

void nn_host_down_user_came(struct nn_down *d, struct nn_down_user *u, u64 now, u32 payload, int last,
			    int fin)
{
	nn_down_user_came(d, u, now, payload, last, fin);
}

void nn_host_down_begin(struct nn_down *d, struct nn_down_flow *f, u64 now, u32 ack, u32 edge,
			u32 scale)
{
	nn_down_begin(d, f, now, ack, edge, scale);
}

void nn_host_down_end(struct nn_down *d, struct nn_down_flow *f)
{
	nn_down_end(d, f);
}

u32 nn_host_down_offer(struct nn_down *d, struct nn_down_flow *f, u64 now, u32 ack)
{
	return nn_down_offer(d, f, now, ack);
}

u64 nn_host_down_again(struct nn_down *d, const struct nn_down_flow *f, u64 now, u32 random)
{
	return nn_down_again(d, f, now, random);
}

int nn_host_down_came(struct nn_down *d, struct nn_down_flow *f, u64 now, u32 segment, u32 end, u32 stamp,
		      int last, struct nn_ack *a)
{
	return nn_down_came(d, f, now, segment, end, stamp, last, a);
}

u64 nn_host_datagram_goes(struct nn_down *d, u64 now, u32 bytes, u32 flow, int fresh, u32 *ticket)
{
	return nn_datagram_goes(d, now, bytes, flow, fresh, ticket);
}
