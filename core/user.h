/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The algorithms as a table of functions, for hosts in user space. (In the
 * kernel the verifier allows no calls through pointers; the host there is
 * compiled once per algorithm.)
 */
#ifndef NETNICE_USER_H
#define NETNICE_USER_H

#include "aggregate/windows.h"

struct nn_param {
	const char *name;
	double def, least, most;	/* in `unit` */
	const char *unit;
	const char *source;		/* paper and section */
	const char *help;
};

struct nn_shown {
	const char *name;
	enum nn_unit unit;
	const char *help;
};

struct nn_algorithm {
	const char *name;
	const char *summary;
	const struct nn_param *params;
	u32 n_params;
	u32 n_shown;
	const struct nn_shown *shown;
	u32 state_size;			/* bytes, <= NN_STATE_MAX */
	/* Its flows share a struct nn_group; it has a parameter `share`. 2: it divides that itself. */
	u32 grouped;
	/* `s` points to state_size zeroed bytes aligned to 8, `cfg` to n_params values in Q16. */
	void (*init)(void *s, const u32 *cfg, struct nn_group *g, const struct nn_ack *a,
		     struct nn_ctl *ctl);
	void (*ack)(void *s, const u32 *cfg, struct nn_group *g, const struct nn_ack *a,
		    struct nn_ctl *ctl);
	void (*event)(void *s, const u32 *cfg, struct nn_group *g, enum nn_event event,
		      const struct nn_ack *a, struct nn_ctl *ctl);
	void (*send)(void *s, const u32 *cfg, struct nn_group *g, const struct nn_ack *a,
		     struct nn_ctl *ctl);
	/* Writes n_shown values. */
	void (*show)(const void *s, const u32 *cfg, struct nn_value *to);
	/* The member of its group that the flow is, plus 1; 0: it is in none. */
	u32 (*place)(const void *s);
};

/*
 * For a host that tags its packets (aggregate/windows.h), and has set nn_group.tags: while
 * nn_group.rule is not 0, each packet gets the tag of the window that it is sent through. Each tag is
 * given back once, by one of the others.
 */

/* A packet leaves; `last` is the tag of the flow's last one, 0: it is the first. Returns its tag. */
u32 nn_group_send(struct nn_group *g, u32 last);
/* It was delivered. */
void nn_group_acked(struct nn_group *g, u32 tag);
/* It is taken for lost; of `a` the time and the smoothed RTT count. */
void nn_group_lost(struct nn_group *g, u32 tag, const struct nn_ack *a);
/* Nobody knows, and nobody will: its connection has ended. */
void nn_group_gone(struct nn_group *g, u32 tag);

/* What hosts do with an answer: host/obey.h, by the same names there with nn_obey_. */
u32 nn_host_window(const struct nn_ctl *ctl);
u32 nn_host_window_in_loss(const struct nn_ctl *ctl);
u32 nn_host_target(const struct nn_ctl *ctl);
u32 nn_host_ssthresh(const struct nn_ctl *ctl, u32 cwnd, u32 ssthresh);
int nn_host_app_limited(const struct nn_ctl *ctl, int data_waits, u32 cwnd, u32 most_out, int limited);

/* The path out of a host: host/path.h, by the same names there without host_. */
struct nn_path;
struct nn_path_base;
struct nn_path_sent;

void nn_host_path_init(struct nn_path *p, u64 now);
void nn_host_path_left(struct nn_path *p, u64 now, u32 bytes, struct nn_path_sent *sent);
void nn_host_path_left_unread(struct nn_path *p, u64 now, u32 bytes);
u64 nn_host_path_gate(struct nn_path *p, u64 now);
void nn_host_path_again(struct nn_path *p, u64 now);
void nn_host_path_delivered(struct nn_path *p, u64 bytes);
void nn_host_path_ack(struct nn_path *p, struct nn_path_base *base, u64 now,
		      const struct nn_path_sent *sent, u64 acked, u32 stamp);
int nn_host_path_away(const struct nn_path *p, u64 now);

/* The line before that path: host/line.h, by the same names there without host_. */
struct nn_line;
struct nn_line_place;

void nn_host_line_join(struct nn_line *l, struct nn_line_place *c);
void nn_host_line_wait(struct nn_line *l, struct nn_line_place *c);
void nn_host_line_leave(struct nn_line *l, struct nn_line_place *c, int waited);
void nn_host_line_lose(struct nn_line *l, struct nn_line_place *c);
u32 nn_host_line_before(const struct nn_line *l, const struct nn_line_place *c);

/* The path into a host: host/down.h and down_datagram.h, by the same names there without host_. */
struct nn_down;
struct nn_down_flow;
struct nn_down_user;

void nn_host_down_init(struct nn_down *d, u64 now);
void nn_host_down_count(struct nn_down *d, u64 now, u32 bytes);
void nn_host_down_other(struct nn_down *d, u64 now, u32 bytes);
void nn_host_down_user_leaves(struct nn_down *d, struct nn_down_user *u, u64 now, u32 payload,
			      int acks, u32 ack);
void nn_host_down_user_came(struct nn_down *d, struct nn_down_user *u, u64 now, u32 payload, int last,
			    int fin);
void nn_host_down_begin(struct nn_down *d, struct nn_down_flow *f, u64 now, u32 ack, u32 edge,
			u32 scale);
void nn_host_down_end(struct nn_down *d, struct nn_down_flow *f);
u32 nn_host_down_offer(struct nn_down *d, struct nn_down_flow *f, u64 now, u32 ack);
u64 nn_host_down_again(struct nn_down *d, const struct nn_down_flow *f, u64 now, u32 random);
int nn_host_down_came(struct nn_down *d, struct nn_down_flow *f, u64 now, u32 segment, u32 end, u32 stamp,
		      int last, struct nn_ack *a);
u64 nn_host_datagram_goes(struct nn_down *d, u64 now, u32 bytes, u32 flow, int fresh, u32 *ticket);

/* A line of classes.def. */
struct nn_class {
	const char *name;
	const struct nn_algorithm *algorithm;
	u32 dscp;	/* 0: left alone */
	const char *summary;
};

/* The tables of algorithms.def and classes.def, in their order. */
extern const struct nn_algorithm *const nn_algorithms[];
extern const u32 nn_n_algorithms;
extern const struct nn_class nn_classes[];
extern const u32 nn_n_classes;
/* That of NN_MEASURES in classes.def. */
extern const struct nn_algorithm *const nn_measures;
/* That of NN_GROUPED there. */
extern const struct nn_algorithm *const nn_grouped;

#endif
