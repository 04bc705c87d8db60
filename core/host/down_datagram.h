/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Datagrams of the background that come into this host: downloads over QUIC, say. Their receivers tell
 * no window that could be made smaller. So each datagram waits here, behind the bottleneck, until
 * the path has room for what it brings: it is acknowledged when it goes on, and a round trip later its
 * sender sends as much again. In v (down.h) it stands where an ACK of so many bytes would.
 *
 *	one comes		none waits and v < slack: it goes on, v += its bytes
 *				50 ms of the rate wait, two of its own connection: it is dropped, and its
 *				sender's window shrinks
 *				else it waits behind those that do
 *	the first looks		as above, or if none went on for .1 s (or 50 packets' time): so connections
 *				live. Else again when v will be that low. Those behind follow in order
 *	no room for .5 s	only two of a connection wait, and the others are dropped: an RTT of many
 *				seconds would have QUIC wait for longer than its peer does
 *
 * What waits here is a part of the senders' windows, so it is not in the queue at the bottleneck. The
 * windows are short of this host's foreground at once: nothing goes on while its responses are due.
 * A window that is larger than path and line hold would come at once where the line has emptied: that is
 * why 50 ms and no more wait.
 *
 * The rate. No RTT can be read, so no queue is told of (q in down.h). While no data of the background comes over TCP,
 * of R bytes/s that came, in the lesser of two spans of 100 ms in a row, the greatest yet:
 *
 *	at first	all go on, until R has not grown by a quarter in five spans. Then 100 ms of R
 *			are waited: slow start has filled the bottleneck's queue
 *	then		.95 R drain. Less comes than the link carries: its queue is empty
 *	came > .985 R	the link is busy, and may have a queue: v is 25 ms of R or more
 *	every 5 s	if no foreground loads: for five spans 1.07 R drain, and R is what came then;
 *			where none waits, no less than 3/4 of the old R. More than 1.04 of the old R: once
 *			more, by twice as much. Else what was too much is waited for
 *
 * An R below 64 kB/s is no link's: what comes so slowly goes on.
 *
 * Why it does no harm: it only delays and drops, as a router behind the bottleneck could. Where R is too
 * high the sender's own congestion control remains.
 *
 * Connections are told apart by a hash, modulo 64. Those that share a number share two places, and take turns.
 *
 * Limit: BBR does not slow down for drops, only for ACKs that come late: it yields much less
 * (docs/downloads.md).
 *
 * Limit: a sender with a rate of its own (a call, live video) is taken for a link of that rate. It gets
 * .95 to 1.07 of it in turns, and loses what is too much.
 */
#ifndef NN_DOWN_DATAGRAM_H
#define NN_DOWN_DATAGRAM_H

#include "down.h"

#define NN_DATAGRAM_TICKET 0x7fffu		/* tickets wrap there */
#define NN_DATAGRAM_DROP (~0ull)
#define NN_DATAGRAM_MOST (NN_DATAGRAM_TICKET / 4) /* that may wait */
#define NN_DATAGRAM_WAIT (NN_PATH_S / 20)	/* of the rate, that may wait */
#define NN_DATAGRAM_OWN 2u			/* of a connection, that may wait in any case */
#define NN_DATAGRAM_STARVED (NN_PATH_S / 10)	/* without one that goes on */
#define NN_DATAGRAM_STARVED_PACKETS 50u		/* in the time of so many, if that is more */
#define NN_DATAGRAM_BARRED (NN_PATH_S / 2)	/* without room */
#define NN_DATAGRAM_LOST (NN_PATH_S / 10)	/* one that is so late does not come back */
#define NN_DATAGRAM_SPAN (NN_PATH_S / 10)
#define NN_DATAGRAM_SAME 5u			/* spans in which R has not grown */
#define NN_DATAGRAM_LEAST 64000ull		/* bytes/s */
#define NN_DATAGRAM_PART 970u			/* of R in 1000, of which NN_DOWN_DRAIN drains */
#define NN_DATAGRAM_BUSY 985u			/* of R in 1000 */
#define NN_DATAGRAM_GAIN 90u			/* of R in 1000, by which it is probed at first */
#define NN_DATAGRAM_GAIN_MAX 1000u
#define NN_DATAGRAM_GREW 1040u			/* of the old R in 1000 */
#define NN_DATAGRAM_PROBES 5u			/* spans */
#define NN_DATAGRAM_PERIOD (5 * NN_PATH_S)

/* Nothing leaves for so many parts (one / part) of a second of R, at least. */
nn_inline void nn_datagram_pause(struct nn_down *d, u64 now, u64 part)
{
	nn_down_pass(d, now);
	d->v = nn_max(d->v, nn_min(d->datagrams.rate / part * NN_PATH_S, NN_PATH_V_MAX));
}

/* A probe has ended: whether there is more, R is what it showed. */
nn_inline void nn_datagram_probed(struct nn_down *d, u64 now)
{
	struct nn_down_datagrams *g = &d->datagrams;
	int more = g->shown > g->rate / 1000 * NN_DATAGRAM_GREW;

	/* where none waits their sender may be what is slow */
	g->rate = g->next == g->head ? nn_max(g->shown, g->rate - g->rate / 4) : g->shown;
	g->rate = nn_max(g->rate, NN_DATAGRAM_LEAST);
	g->gain = more ? (u32)nn_min(2 * g->gain, NN_DATAGRAM_GAIN_MAX) : NN_DATAGRAM_GAIN;
	if (more)
		g->probed_at = 0;
	else
		nn_datagram_pause(d, now, 20);
}

/* A span has ended, in which so many bytes/s came. */
nn_inline void nn_datagram_span(struct nn_down *d, u64 now, u64 rate)
{
	struct nn_down_datagrams *g = &d->datagrams;
	u64 least = nn_min(rate, g->last);
	int calm = now > d->user_at + NN_DOWN_CALM;

	g->last = rate;
	if (!rate) { /* hardly anything comes: that shows nothing */
		g->probes = 0;
		return;
	}
	if (!g->full) {
		g->same = least > g->rate + g->rate / 4 ? 0 : g->same + 1;
		g->rate = nn_max(g->rate, least);
		if (g->same < NN_DATAGRAM_SAME || g->rate < NN_DATAGRAM_LEAST)
			return;
		g->full = 1;
		g->gain = NN_DATAGRAM_GAIN;
		g->probed_at = now;
		nn_datagram_pause(d, now, 10);
	}
	if (g->probes) {
		g->shown = nn_max(g->shown, least);
		g->probes = calm ? g->probes - 1 : 0;
		if (!calm)
			g->gain = NN_DATAGRAM_GAIN;
		else if (!g->probes)
			nn_datagram_probed(d, now);
	} else if (rate > g->rate / 1000 * NN_DATAGRAM_BUSY) {
		nn_datagram_pause(d, now, 40);
	}
	g->rate = nn_max(g->rate, least);
	if (calm && !g->probes && now > g->probed_at + NN_DATAGRAM_PERIOD) {
		g->probes = NN_DATAGRAM_PROBES;
		g->shown = 0;
		g->last = 0; /* it came at the old rate */
		g->probed_at = now;
	}
	if (!nn_down_by_tcp(d, now))
		nn_down_set_rate(d, now, g->rate / 1000 * (g->probes ? 1000 + g->gain : NN_DATAGRAM_PART));
}

/* The same where the span's time is over. */
nn_inline void nn_datagram_count(struct nn_down *d, u64 now)
{
	struct nn_down_datagrams *g = &d->datagrams;
	u64 dt = now - nn_min(g->span_at, now), came = g->came;

	g->at = now;
	if (dt < NN_DATAGRAM_SPAN)
		return;
	g->came = 0;
	g->span_at = now;
	nn_datagram_span(d, now, dt < 2 * NN_DATAGRAM_SPAN ? came * NN_PATH_MS / (dt / 1000) : 0);
}

/* How many are ahead of one in the line; one that is `fresh` gets a ticket. Those that are lost are not waited for. */
nn_inline u32 nn_datagram_ahead(struct nn_down_datagrams *g, u64 now, int fresh, u32 *ticket)
{
	u32 ahead;

	if (fresh) {
		if (g->head == g->next)
			g->room_at = now; /* nobody has looked since */
		if (g->head == g->next || now > g->tail + NN_DATAGRAM_LOST) {
			g->head = g->next;
			__builtin_memset(g->waits, 0, sizeof(g->waits));
		}
		*ticket = g->next & NN_DATAGRAM_TICKET;
		return g->next - g->head;
	}
	ahead = (*ticket - g->head) & NN_DATAGRAM_TICKET;
	if (ahead > NN_DATAGRAM_TICKET / 2)
		return 0; /* it was taken for lost */
	if (ahead && now > g->floor + NN_DATAGRAM_LOST) {
		g->head += ahead;
		ahead = 0;
	}
	return ahead;
}

/*
 * One that looks again waits no longer: the next in line is the first. One that is as the last was is a further
 * segment of the same packet, which was cut.
 */
nn_inline void nn_datagram_gone(struct nn_down_datagrams *g, u32 flow, u32 ticket)
{
	u32 *waits = &g->waits[flow % NN_DATAGRAM_FLOWS];
	u32 ahead = (ticket - g->head) & NN_DATAGRAM_TICKET;

	*waits -= *waits > 0 && ahead != NN_DATAGRAM_TICKET;
	g->head += ahead == 0; /* unless it was taken for lost */
}

/*
 * Whether one that is `fresh`, or the first in line, is one too many. Connections that share a count take turns:
 * else one that sends much would leave none to one that asks whether its peer still lives.
 */
nn_inline int nn_datagram_drops(const struct nn_down *d, u64 now, u32 bytes, u32 flow, int fresh, u32 ahead)
{
	const struct nn_down_datagrams *g = &d->datagrams;
	u32 slot = flow % NN_DATAGRAM_FLOWS, own = g->waits[slot] + (fresh != 0);
	int barred = now > g->room_at + NN_DATAGRAM_BARRED;

	if (fresh && ahead > NN_DATAGRAM_MOST)
		return 1;
	if (own <= NN_DATAGRAM_OWN || (own <= 2 * NN_DATAGRAM_OWN && g->newest[slot] != flow))
		return 0;
	return fresh ? barred || (u64)ahead * bytes * NN_PATH_S > d->mu * NN_DATAGRAM_WAIT : !ahead && barred;
}

/*
 * A datagram of a `flow` (any number) came, `fresh`, or looks again, with its ticket. 0: it goes on;
 * NN_DATAGRAM_DROP: one too many; else it looks again at that clock.
 */
nn_inline u64 nn_datagram_goes(struct nn_down *d, u64 now, u32 bytes, u32 flow, int fresh, u32 *ticket)
{
	struct nn_down_datagrams *g = &d->datagrams;
	u64 slack = nn_down_slack(d), each, starved, t;
	u32 ahead;

	if (fresh)
		nn_datagram_count(d, now);
	nn_down_pass(d, now);
	ahead = nn_datagram_ahead(g, now, fresh, ticket);
	each = nn_min(bytes, NN_PATH_PACKET) * NN_PATH_S / nn_max(d->drain, 1);
	starved = g->went_at + nn_max(NN_DATAGRAM_STARVED, NN_DATAGRAM_STARVED_PACKETS * each);
	if (d->v < slack)
		g->room_at = now;
	if ((!ahead && (d->v < slack || now >= starved)) || (fresh && !g->full && !nn_down_by_tcp(d, now))) {
		if (!fresh)
			nn_datagram_gone(g, flow, *ticket);
		g->went_at = now;
		g->floor = now + each;
		nn_down_add(d, now, bytes);
		return 0;
	}
	if (nn_datagram_drops(d, now, bytes, flow, fresh, ahead)) {
		if (!fresh) {
			nn_datagram_gone(g, flow, *ticket);
			g->floor = now;
		}
		return NN_DATAGRAM_DROP;
	}
	if (fresh) {
		g->waits[flow % NN_DATAGRAM_FLOWS]++;
		g->newest[flow % NN_DATAGRAM_FLOWS] = flow;
	}
	if (!ahead) {
		t = now + 1000 + (d->v - nn_min(slack, d->v)) / nn_max(d->drain, 1);
		t = nn_max(nn_min(t, starved), now + 1000);
		g->floor = t;
	} else {
		t = nn_max(g->floor, now) + ahead * each;
	}
	t = nn_min(t, now + NN_PATH_S); /* v is NN_PATH_V_MAX at most, and fq drops what lies too far ahead */
	g->tail = nn_max(g->tail, t);
	g->next += fresh != 0;
	return t;
}

#endif
