/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What is known of the path into this host (down.h), and how time passes for it.
 */
#ifndef NN_DOWN_STATE_H
#define NN_DOWN_STATE_H

#include "obey.h"
#include "path_delay.h"

#define NN_DOWN_DRAIN 980u			/* of 1000 */
#define NN_DOWN_RATE 150000ull			/* bytes/s, at first */
#define NN_DOWN_SPAN (NN_PATH_S / 20)		/* arrivals are counted for so long */
#define NN_DOWN_REQUEST 15000ull		/* what a request brings at once, bytes */
#define NN_DOWN_EARLY 60000ull			/* the same at most, of a window that has grown */
#define NN_DOWN_LATE (6 * NN_PATH_MS)		/* a queue, for which edges wait and mu falls */
#define NN_DOWN_SHORT (10 * NN_PATH_MS)		/* one of packets that met by chance, at most */
#define NN_DOWN_CALM (NN_PATH_S / 5)		/* after the foreground's last sign mu may be probed */
#define NN_DOWN_WAIT (NN_PATH_S / 5)		/* for a queue of others, at most */
#define NN_DOWN_SILENT (NN_PATH_S / 5)		/* and four RTTs: nothing comes of what was allowed */
#define NN_DOWN_STARVED (10 * NN_PATH_S)
#define NN_DOWN_MEMORY (5 * NN_PATH_S)
#define NN_DOWN_MSS 1448u			/* of IPv4 with time stamps */
#define NN_DOWN_MSS_MAX 16384u
#define NN_DOWN_HEADERS (NN_PATH_PACKET - NN_DOWN_MSS)
#define NN_DOWN_WINDOW 10u			/* packets, of which an algorithm begins with fewer */
#define NN_DOWN_GAIN_MIN 5u			/* of 1000 */
#define NN_DOWN_GAIN_MAX 500u
#define NN_DOWN_GAP_MAX NN_PATH_S		/* a server that had nothing to send shows a long RTT */
#define NN_DOWN_MARKS 8u
#define NN_DOWN_EDGES 32u			/* told last, that are remembered */
#define NN_DOWN_SLOT (2 * NN_PATH_MS)
#define NN_DOWN_SLOTS 64u
#define NN_DATAGRAM_FLOWS 64u
#define NN_DOWN_AGAIN_MIN (3 * NN_PATH_MS / 10)
#define NN_DOWN_AGAIN_MAX (40 * NN_PATH_MS)

/* A move of the edge whose RTT is measured. */
struct nn_down_mark {
	u64 at;		/* clock */
	u64 v;		/* the virtual queue that its bytes meet */
	u32 edge;	/* the one before */
	u32 reserved;
};

/* A connection of the background; all zero before nn_down_begin(). Sequence numbers wrap. */
struct nn_down_flow {
	struct nn_path_base base;	/* the least RTT, and the server's clock */
	u64 calm_at;	/* no RTT is measured before */
	u64 moved_at;	/* when the edge last moved */
	u64 owed_at;	/* when it did so and nothing more had been allowed: from then on something is */
	u32 edge;	/* as it was told */
	u32 wanted;	/* as far as its own TCP would go */
	u32 end;	/* of what has come */
	u32 headers;	/* of its packets, bytes, as the host says; 0: those of IPv4 with time stamps */
	u32 mss;	/* greatest payload that came; at first what the headers leave of a packet */
	u32 scale;	/* windows are told in units of 2^scale bytes */
	u32 open;	/* it began, and has not ended */
	u32 period;	/* in which it last told something */
	u32 rests;	/* its response has ended, and the next has not begun */
	u32 marks, mark; /* how many there are; the oldest */
	u32 edges;	/* the next of `told` that is replaced; it wraps */
	u32 tells;	/* what offer() last returned is to be told, if no ACK tells it */
	u32 reserved;
	struct nn_down_mark of[NN_DOWN_MARKS];
	u32 told[NN_DOWN_EDGES]; /* edges */
};

/* A connection of the foreground; all zero before its first packet. */
struct nn_down_user {
	u64 announced;	/* bytes that will come */
	u64 until;	/* when they will have drained */
	u64 got;	/* bytes of payload of this response */
	u64 usual;	/* mean of the responses before, bytes */
	u32 acked;
	u32 seen;	/* acked is set */
	u32 asked;	/* a request left, and nothing came since */
	u32 ended;	/* a response, as far as one can see: nothing follows its ACKs */
	u32 closed;	/* its FIN came */
	u32 reserved;
};

/* Datagrams of the background (down_datagram.h). */
struct nn_down_datagrams {
	u64 at;			/* clock at which one last came */
	u64 floor;		/* that before which none behind the first looks again */
	u64 tail;		/* the last clock that was given to one */
	u64 went_at;		/* clock at which one last went on */
	u64 room_at;		/* the same of one that had room */
	u64 span_at, came;	/* a span began then; bytes that came since, of all */
	u64 last;		/* rate of the span before, bytes/s */
	u64 rate;		/* R, bytes/s */
	u64 shown;		/* the same in a probe */
	u64 probed_at;		/* when it began */
	u32 probes;		/* spans that it lasts yet */
	u32 gain;		/* by which R is probed, of 1000 */
	u32 same;		/* spans in which R has not grown */
	u32 full;		/* R is the link's */
	u32 head, next;		/* tickets: the first that waits, the next to be given */
	u32 waits[NN_DATAGRAM_FLOWS]; /* how many wait of a connection, by any hash of its ends */
	u32 newest[NN_DATAGRAM_FLOWS]; /* whose datagram began to wait there last */
};

struct nn_down {
	u64 at;			/* clock of the last pass */
	u64 v, mu, drain;
	u64 allowed;		/* I */
	u64 rtt;		/* least RTT of any flow ever; 0: none yet */
	u64 user_at;		/* when the foreground last gave a sign */
	u64 limited_at;		/* when the algorithm's window or gap last kept an edge */
	u64 burst_at;		/* when the next burst may begin, if there is a gap */
	u64 span_at, span, last; /* bytes that came since; rate of the span before */
	u64 turned_at;		/* when mu last changed */
	u64 una;		/* bytes that came, since the beginning */
	u64 slot;		/* number of the last of `slots` that has begun */
	u64 tcp_at;		/* clock at which data of the background last came over TCP */
	u64 period_at, moved;	/* a period of 5 s began then; bytes by which edges moved since */
	struct nn_ctl ctl;
	u32 period;		/* its number */
	u32 told_by;		/* flows that told something in it */
	u32 flows;		/* that are open */
	u32 burst;		/* packets of the burst that have left */
	u32 kept;		/* v kept an edge without any foreground */
	u32 gain;		/* of the next probe, of 1000 */
	u32 told;		/* bytes that came and were not told of yet, less than a packet */
	u32 srtt_us;
	u32 users;		/* bytes that came for the foreground; they wrap */
	struct nn_down_datagrams datagrams;
	u32 slots[NN_DOWN_SLOTS]; /* the same, when each 2 ms began */
};

nn_inline void nn_down_init(struct nn_down *d, u64 now)
{
	d->at = d->span_at = d->turned_at = d->burst_at = d->limited_at = d->user_at = now;
	d->period_at = now;
	d->period = 1;
	d->mu = NN_DOWN_RATE;
	d->gain = NN_DOWN_GAIN_MAX;
	d->drain = d->mu * NN_DOWN_DRAIN / 1000;
}

/* The slots up to now begin, those too in which nothing came. */
nn_inline void nn_down_pass_slots(struct nn_down *d, u64 now)
{
	u64 to = now / NN_DOWN_SLOT;
	u32 i;

	d->slot = nn_max(d->slot, to - nn_min(to, NN_DOWN_SLOTS));
	for (i = 0; i < NN_DOWN_SLOTS && d->slot < to; i++)
		d->slots[++d->slot % NN_DOWN_SLOTS] = d->users;
}

/* Data of the foreground came. */
nn_inline void nn_down_add_users(struct nn_down *d, u64 now, u32 bytes)
{
	nn_down_pass_slots(d, now);
	d->users += bytes;
}

/* What came for the foreground in a time before now, bytes. Of a long one, the last 126 ms. */
nn_inline u32 nn_down_users_in(struct nn_down *d, u64 now, u64 ns)
{
	u64 from = now - nn_min(now, ns);

	nn_down_pass_slots(d, now);
	from = nn_max(from / NN_DOWN_SLOT, d->slot - nn_min(d->slot, NN_DOWN_SLOTS - 1));
	return d->users - d->slots[from % NN_DOWN_SLOTS];
}

nn_inline int nn_down_after(u32 a, u32 b)
{
	return (s32)(a - b) > 0;
}

/* It begins there: no other was told. */
nn_inline void nn_down_tell_first(struct nn_down_flow *f, u32 edge)
{
	u32 i;

	f->edge = edge;
	for (i = 0; i < NN_DOWN_EDGES; i++)
		f->told[i] = edge;
}

/* The edge moves there. */
nn_inline void nn_down_tell(struct nn_down_flow *f, u32 edge)
{
	f->edge = edge;
	f->told[f->edges++ % NN_DOWN_EDGES] = edge;
}

/* Was a segment cut short by a window? It ends at an edge, not at the end of what its server had. */
nn_inline int nn_down_cut(const struct nn_down_flow *f, u32 end)
{
	u64 cut = 0;
	u32 i;

	/* without a branch: a verifier would walk both ways of each */
	for (i = 0; i < NN_DOWN_EDGES; i++)
		cut |= (u64)(f->told[i] ^ end) - 1;
	return (int)(cut >> 63);
}

/* What the edge allows and has not come, bytes. */
nn_inline u32 nn_down_left(const struct nn_down_flow *f)
{
	return nn_down_after(f->edge, f->end) ? f->edge - f->end : 0;
}

/* The same, of full packets that will come. */
nn_inline u32 nn_down_open(const struct nn_down_flow *f)
{
	u32 left = f->open && !f->rests ? nn_down_left(f) : 0;

	return left - left % (u32)nn_max(f->mss, 1);
}

/* It was so much, and is what it is now. */
nn_inline void nn_down_reckon(struct nn_down *d, const struct nn_down_flow *f, u32 was)
{
	d->allowed += nn_down_open(f);
	d->allowed -= nn_min(d->allowed, was);
}

nn_inline void nn_down_pass(struct nn_down *d, u64 now)
{
	u64 dt = now > d->at ? nn_min(now - d->at, NN_PATH_S) : 0;

	d->at = nn_max(now, d->at);
	d->v -= nn_min(d->v, d->drain * dt);
}

nn_inline void nn_down_add(struct nn_down *d, u64 now, u64 bytes)
{
	nn_down_pass(d, now);
	d->v = nn_min(d->v + nn_min(bytes, 1ull << 30) * NN_PATH_S, NN_PATH_V_MAX);
}

nn_inline void nn_down_set_rate(struct nn_down *d, u64 now, u64 mu)
{
	nn_down_pass(d, now);
	d->mu = nn_min(nn_max(mu, NN_PATH_PACKET), NN_PATH_MU_MAX);
	d->drain = d->mu * NN_DOWN_DRAIN / 1000;
}

#endif
