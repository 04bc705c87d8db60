/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What is known of a path (path.h), its units, and how time passes for it.
 */
#ifndef NN_PATH_STATE_H
#define NN_PATH_STATE_H

#include "../arith.h"

#define NN_PATH_S 1000000000ull			/* ns in a second; bytes are counted in parts of it */
#define NN_PATH_PACKET 1514ull			/* bytes of a full packet with its Ethernet header */
#define NN_PATH_SLACK (NN_PATH_PACKET * 3 / 2)	/* waking late by 0.1 ms is 5 % of a packet at 8 Mbit/s */
#define NN_PATH_SLACK_NS 300000ull		/* ... or what leaves in this time: GSO on fast links */
#define NN_PATH_MU_MAX 4000000000ull
#define NN_PATH_DELAY_MAX ((1ull << 31) - 1)
#define NN_PATH_V_MAX (1ull << 62)
#define NN_PATH_TRAIN 10u			/* packets of the first train */
#define NN_PATH_DRAIN 990u			/* of 1000: a virtual queue that drains later stays ahead */
#define NN_PATH_GAIN_MIN 10u			/* of 1000 */
#define NN_PATH_GAIN_MAX 500u
#define NN_PATH_PROBE_EACH 8u			/* a probe begins after so many times its length */
#define NN_PATH_OTHERS (2 * NN_PATH_S)	/* others are there for so long after a queue of theirs */
#define NN_PATH_GROW 8u			/* an eighth of what mu carries is what a quiet ACK adds */
#define NN_PATH_SHORTEST (NN_PATH_S / 40) /* a round is no shorter, nor grows faster */
#define NN_PATH_LEAST 4u		/* rounds after which one packet leaves */
#define NN_PATH_MENDING 8u		/* rounds without growth after a loss beside others */
#define NN_PATH_THEIRS_NS (NN_PATH_S / 2000) /* so long, and two packets, is a queue of others */
#define NN_PATH_SPAN (2 * NN_PATH_S)
#define NN_PATH_REFUTED 4u
#define NN_PATH_AWAY (60 * NN_PATH_S)	/* doubles up to 64 times */
#define NN_PATH_LOWERS 5u			/* v too high so often in a row: the rate is not known */
/* A single packet's ACK that comes so long after the one before may be a delayed one: 40 ms on Linux. */
#define NN_PATH_LATE_NS 38000000ull
#define NN_PATH_POINTS 256u			/* ACKs remembered */
#define NN_PATH_RING 7u				/* rate samples of which mu is the median */

/* A packet of the background that left, as its host remembers it until its ACK. */
struct nn_path_sent {
	u64 at;		/* when */
	u64 c, f;	/* C and F then, without it */
	u64 v, z, k;
	u64 unread;	/* what had left whose ACKs nobody can read, bytes */
};

/* The least of a quantity in two windows of 5 s: this one, and the one before; 0: none. */
struct nn_path_least {
	u64 of[2];
};

/* What ACKs of one connection tell of its way. */
struct nn_path_base {
	struct nn_path_least rtt, out;	/* the whole way, and the way out by the receiver's clock */
	u64 since;	/* the window began */
	u64 at;		/* the last ACK */
	/* the receiver's clock, set by ours when it showed its first stamp (began); 0: it has none */
	u64 clock, began;
	u64 tick;	/* ns; 0: it ticks otherwise */
	u32 stamp;	/* what it showed last */
	u32 known;	/* tick was compared with our clock */
};

/* An ACK, as rates are measured from. */
struct nn_path_point {
	u64 at, sent;	/* its arrival, less its wait on the way back; when its packet left */
	u64 c, f, d;
	u64 q;		/* the delay that its packet met, ns */
};

struct nn_path {
	u64 at;			/* clock of the last pass */
	u64 v, z, k, b;
	u64 mu, drain;
	u64 c, f, d;
	u64 rtt;		/* typical least RTT; 0: none yet */
	u64 left_at;		/* when the background last left */
	u64 lowered;		/* when v was last found too high */
	u32 lowers;		/* how often in a row */
	u64 span_at, span_f;	/* when F was last looked at, and what it was */
	u64 away_until;		/* nothing is held until then */
	u32 refuted;		/* spans in which F was more than mu can carry, less others */
	u32 aways;		/* how often in a row nothing was held */
	u64 fair_until;		/* what was not met may wait in a fair queue until then, and slow runs */
	u32 started;		/* packets of the train that left */
	u64 train;		/* C when it began */
	u32 unanswered;		/* trains in a row that showed no rate */
	u64 lost;		/* of what left, what will not be delivered: the least in flight */
	/* path_others.h */
	u64 credit;		/* what of the background may leave while others are there, bytes */
	u64 returned;		/* what the last ACK added to it */
	u64 unread, unread_back; /* what left whose ACKs nobody can read; of that, what was added again */
	u64 others;		/* an ACK last showed a queue of theirs */
	u64 heard;		/* the last ACK that may have shown one */
	u64 lost_at;		/* one was last lost in such a queue */
	u64 part_at, part_c;	/* when C was last looked at, and what it was */
	u32 part;		/* of mu that this host had lately beside others, Q16 */
	/* path_rate.h */
	u64 points, low;	/* how many there were; the newest that is far enough back */
	u64 busy_at;		/* a sample was last taken, or the path was last seen to be free */
	u64 fell_at;		/* a sample was last below mu */
	struct nn_path_point run; /* the first ACK of a run of packets that all met a queue */
	u64 most_c;		/* the greatest C of them */
	u32 running;
	u32 overtaken;		/* by a packet of the run */
	u32 calm;		/* packets in a row that met no queue */
	u32 samples, sample_at;	/* in the ring */
	u32 probing;
	u32 gain;		/* of 1000 */
	u32 quiet_rounds;	/* still to go at half the rate */
	u64 least_mu;		/* was too low */
	u64 cycle, cycle_mu;	/* the last probe began then, at that mu */
	/* path_delay.h */
	u64 jitter;		/* ns by which delays vary though nothing waits */
	u64 floor[2], floor_at;	/* the least of rounds' greatest unexplained delays, in two windows */
	u64 round_at, round_max;
	u32 round_n;
	u32 moved;		/* a connection's least RTT rose */
	u64 ring[NN_PATH_RING + 1];
	struct nn_path_point point[NN_PATH_POINTS];
};

/* Whether nothing is to be held now. */
nn_inline int nn_path_away(const struct nn_path *p, u64 now)
{
	return now < p->away_until;
}

/* Whether packets of other hosts wait at the bottleneck, or did lately. */
nn_inline int nn_path_crowded(const struct nn_path *p, u64 now)
{
	return now < p->others + NN_PATH_OTHERS;
}

/* What the background's bucket drains by while the virtual queue drains by `out`. */
nn_inline u64 nn_path_quietly(const struct nn_path *p, u64 out)
{
	return p->quiet_rounds ? out / 2 : out;
}

/* Time passes. */
nn_inline void nn_path_pass(struct nn_path *p, u64 now)
{
	u64 dt = now > p->at ? nn_min(now - p->at, NN_PATH_S) : 0;
	u64 out = p->drain * dt;

	p->at = nn_max(now, p->at);
	p->b -= nn_min(p->b, nn_path_quietly(p, out));
	if (out > p->v) {
		p->z += out - p->v;
		p->v = 0;
	} else {
		p->v -= out;
	}
}

nn_inline void nn_path_set_drain(struct nn_path *p)
{
	p->drain = nn_max(p->mu * (p->probing ? 1000 + p->gain : NN_PATH_DRAIN) / 1000, 1);
}

nn_inline void nn_path_set_rate(struct nn_path *p, u64 now, u64 mu)
{
	nn_path_pass(p, now);
	p->mu = nn_min(mu, NN_PATH_MU_MAX);
	nn_path_set_drain(p);
}

nn_inline u64 nn_path_slack(const struct nn_path *p)
{
	return nn_max(NN_PATH_SLACK * NN_PATH_S, p->mu * NN_PATH_SLACK_NS);
}

/* How long the background rests at most: for an answer to a train, or for the queue to drain. */
nn_inline u64 nn_path_rest(const struct nn_path *p)
{
	return nn_max(NN_PATH_S, 3 * p->rtt);
}

#endif
