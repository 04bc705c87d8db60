/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The path into this host: how much may those send whose data is in the background?
 *
 * A receiver says with each ACK up to where its peer may send: the right edge of its window. Here an
 * edge moves only when the path has room for what it brings. What comes in answers what leaves: a
 * request, an ACK or a moved edge each bring data one round trip later. So they are ordered as they
 * leave, in a virtual queue v: a copy of the queue at the bottleneck as it will be by then.
 *
 *	v	the virtual queue, bytes
 *	mu	rate of the bottleneck, bytes/s
 *	I	bytes of the background that edges allow and that have not come, in full packets: a sender waits
 *		for the rest of one
 *	W	the window of an algorithm (core/alg), for all flows of the background together
 *
 *	pass of dt			v -= .98 mu dt
 *	a request leaves		v += 10 packets (RFC 6928), or what responses of its connection
 *					were in the mean, up to 60 kB: a window that has grown is kept
 *	an ACK of n bytes leaves	v += 1.5 n: slow start brings 2 n, and the last ACKs nothing; 0
 *					after a response's end
 *	an edge moves by n bytes	v += n and headers, I += n
 *	a response ends			v -= what was announced for it, did not come, and has not drained
 *	other datagrams come		v += their bytes: more of them will
 *
 *	an edge moves if		v < slack, I + a packet <= W or I = 0, and the gap that the
 *					algorithm asks for is over; by what v leaves below the slack
 *
 * Other hosts are not seen; for them the algorithm yields. What is an ACK for a sender is an arrival
 * here. Its RTT is from a move of the edge to the first byte beyond the old one, less what is known:
 *
 *	w = RTT - least RTT of the flow
 *	q = w - max(v(move), what the foreground got in the last w) / mu
 *	told to the algorithm		the least RTT of all flows + q
 *	q > 6 ms			v = max(v, 3 q mu), but for a round trip after mu has changed: a queue
 *					that others build still grows. .2 s at most: a server may have waited
 *
 * A server whose own window is shorter sends later than the edge allows. Its time stamps show when it
 * sent (path_delay.h): what waited there, or on the ACK's way, is not in w. What the foreground got while
 * the packet waited was before it in the queue: a burst that was not announced is no queue of others.
 *
 * Flows from near and from far servers are one flow to the algorithm: it is told of one base, which never
 * rises, and of the queue of each. What leaves in order for servers that are not alike far comes in none: a
 * few packets meet at the bottleneck. So a queue of a fifth of the flow's least RTT is told as none, of 6 to
 * 10 ms: on a short path more is much of what the buffer has. (Taken off each one, a few ms would harm
 * others where the buffer is short.)
 *
 *	mu	the greatest of bytes that came within 50 ms, twice in a row. It is probed only where v
 *		keeps an edge and no foreground does: else it would be learned from its own limit.
 *		mu grows by 1/2 in a round trip; after a queue by 1/200, and with each time by half as
 *		much again. q > 6 ms: mu falls by 1/64, once in a round trip, not below what came;
 *		the first time by what the last raise was, or more: up to that mu there was no queue
 *
 * A connection whose response has ended, by a short segment with PSH, waits for the next: one packet is
 * allowed, and it is not in I. So does one that ran before, until something comes. So does one that was
 * allowed a packet, and to which nothing came for .2 s and four RTTs: it ended unseen, or its
 * server waits. It is told once more what it is allowed, for what told it may be lost.
 *
 * Forgotten: what was allowed and has not come within 5 to 10 s, and flows that told nothing meanwhile. A
 * connection may end without a word.
 *
 * Never taken back: an edge that was told. Only once: that of a connection that ran before; its own
 * TCP still takes what is beyond. Where nothing was allowed for ten seconds, a packet is.
 *
 * Why it does no harm: each edge that moves is one packet that v had room for. Where mu is too
 * high, q shows it; W falls, and mu. Where responses are longer than announced, the ACKs of what came
 * announce the rest.
 *
 * Deviation: where a response ends is seen only by FIN, or by a short segment with PSH. One that ends at
 * one of the edges told last is taken for cut by the window, which has units of 2^scale bytes. A response
 * that ends there by chance, one of a thousand, counts in I until it is forgotten.
 *
 * Times are nanoseconds; v is bytes * 10^9 as in path.h, whose ranges hold here too.
 */
#ifndef NN_DOWN_H
#define NN_DOWN_H

#include "down_state.h"

/* Whether data of the background comes over TCP, which tells of queues. */
nn_inline int nn_down_by_tcp(const struct nn_down *d, u64 now)
{
	return d->tcp_at && now < d->tcp_at + NN_PATH_S;
}

/* Whether mu is of datagrams, which tell of none (down_datagram.h). */
nn_inline int nn_down_by_datagrams(const struct nn_down *d, u64 now)
{
	return d->datagrams.full && !nn_down_by_tcp(d, now) && now < d->datagrams.at + NN_PATH_S;
}

/* So many bytes came in, of whatever kind. */
nn_inline void nn_down_count(struct nn_down *d, u64 now, u32 bytes)
{
	u64 dt = now - nn_min(d->span_at, now), rate;

	d->span += bytes;
	d->datagrams.came += bytes;
	if (dt < NN_DOWN_SPAN)
		return;
	rate = dt < 2 * NN_DOWN_SPAN ? d->span * NN_PATH_MS / (dt / 1000) : 0;
	if (nn_min(rate, d->last) > d->mu && !nn_down_by_datagrams(d, now))
		nn_down_set_rate(d, now, nn_min(rate, d->last));
	d->last = rate;
	d->span = 0;
	d->span_at = now;
}

/* A datagram that answers nothing that was seen: as many will come in the next round trip. */
nn_inline void nn_down_other(struct nn_down *d, u64 now, u32 bytes)
{
	d->user_at = now;
	nn_down_add_users(d, now, bytes);
	nn_down_add(d, now, bytes);
}

/* A packet of a connection of the foreground leaves; `ack` counts if `acks`. */
nn_inline void nn_down_user_leaves(struct nn_down *d, struct nn_down_user *u, u64 now, u32 payload,
				   int acks, u32 ack)
{
	u64 more = 0;

	if (payload && !u->asked) {
		more = nn_max(NN_DOWN_REQUEST, nn_min(u->usual, NN_DOWN_EARLY));
		u->asked = 1;
		u->ended = 0;
		u->got = 0;
	}
	if (acks) {
		if (u->seen && nn_down_after(ack, u->acked) && !u->ended)
			more += (u64)(ack - u->acked) * 3 / 2;
		if (!u->seen || nn_down_after(ack, u->acked))
			u->acked = ack;
		u->seen = 1;
	}
	if (!more)
		return;
	nn_down_add(d, now, more);
	u->announced += more;
	u->until = now + d->v / d->drain;
	d->user_at = now;
}

/* A packet of such a connection came; `last`: of a response, as far as one can see; `fin`: of the connection. */
nn_inline void nn_down_user_came(struct nn_down *d, struct nn_down_user *u, u64 now, u32 payload,
				 int last, int fin)
{
	u64 left;

	if (payload) {
		u->got += payload;
		nn_down_add_users(d, now, payload);
		u->asked = 0;
		u->ended = u->closed;
		u->announced -= nn_min(u->announced, payload);
		d->user_at = now;
	}
	if ((last || fin) && u->announced) {
		nn_down_pass(d, now);
		left = u->until > now ? nn_min(u->until - now, NN_PATH_S) * d->drain : 0;
		left = nn_min(left, nn_min(u->announced, 1ull << 30) * NN_PATH_S);
		d->v -= nn_min(d->v, left);
		u->announced = 0;
	}
	if (last && !u->ended)
		u->usual = u->usual ? (3 * u->usual + u->got) / 4 : u->got;
	u->closed |= (u32)(fin != 0);
	u->ended |= (u32)(last || fin);
}

/*
 * A connection comes into the background: all before `ack` has come, and its peer may send up to
 * `edge`. A wide window is narrowed, once.
 */
nn_inline void nn_down_begin(struct nn_down *d, struct nn_down_flow *f, u64 now, u32 ack, u32 edge,
			     u32 scale)
{
	u64 most;

	d->flows++;
	most = nn_max(nn_obey_window(&d->ctl) * NN_PATH_PACKET / d->flows, 2 * NN_PATH_PACKET);
	f->open = 1;
	f->marks = f->rests = 0; /* of an earlier time in the background */
	f->scale = scale & 15;
	f->headers = f->headers ? (u32)nn_min(f->headers, NN_PATH_PACKET / 2) : NN_DOWN_HEADERS;
	f->mss = f->mss ? f->mss : (u32)NN_PATH_PACKET - f->headers;
	f->end = ack;
	edge = nn_down_after(edge, ack) ? edge : ack;
	if (edge - ack > most) {
		edge = ack + (u32)most;
		f->calm_at = now + NN_PATH_S; /* what was allowed before still comes */
		f->rests = 1; /* or nothing: it may have ended */
	}
	nn_down_tell_first(f, edge);
	f->wanted = f->edge;
	f->moved_at = f->owed_at = now;
	nn_down_reckon(d, f, 0);
	nn_down_add(d, now, f->edge - ack);
}

nn_inline void nn_down_end(struct nn_down *d, struct nn_down_flow *f)
{
	u32 was = nn_down_open(f);

	if (!f->open)
		return;
	f->open = 0;
	d->flows -= d->flows > 0;
	nn_down_reckon(d, f, was);
}

nn_inline u64 nn_down_slack(const struct nn_down *d)
{
	return nn_max(NN_PATH_SLACK * NN_PATH_S, d->mu * NN_PATH_SLACK_NS);
}

/* Time passes, in which a flow tells something. */
nn_inline void nn_down_forget(struct nn_down *d, struct nn_down_flow *f, u64 now)
{
	if (now >= d->period_at + NN_DOWN_MEMORY) {
		d->allowed = nn_min(d->allowed, d->moved);
		d->flows = (u32)nn_min(d->flows, nn_max(d->told_by, 1));
		d->moved = 0;
		d->told_by = 0;
		d->period_at = now;
		d->period++;
	}
	if (f->period != d->period) {
		f->period = d->period;
		d->told_by++;
	}
}

/* It waits for something if what it was allowed does not come. 1: it does so from now on. */
nn_inline int nn_down_silent(struct nn_down *d, struct nn_down_flow *f, u64 now)
{
	u64 since = nn_max(f->owed_at, f->base.at);
	u64 rtt = nn_min(nn_max(f->base.rtt.of[0], d->srtt_us * 1000ull), NN_PATH_DELAY_MAX);
	u32 was = nn_down_open(f);

	if (f->rests || nn_down_left(f) < f->mss || now < since + NN_DOWN_SILENT + 4 * rtt)
		return 0;
	f->rests = 1;
	nn_down_reckon(d, f, was);
	return 1;
}

/* By how many bytes the edge may move. */
nn_inline u32 nn_down_may(struct nn_down *d, const struct nn_down_flow *f, u64 now)
{
	u64 slack = nn_down_slack(d), room, window;
	u32 wants = nn_down_after(f->wanted, f->edge) ? f->wanted - f->edge : 0;

	if (wants < f->mss || (f->rests && nn_down_left(f) >= f->mss))
		return 0;
	if (now >= f->moved_at + NN_DOWN_STARVED)
		return f->mss;
	nn_down_pass(d, now);
	if (d->v >= slack) {
		d->kept |= (u32)(now > d->user_at + NN_DOWN_CALM);
		return 0;
	}
	if (f->rests)
		return f->mss;
	window = (u64)nn_obey_window(&d->ctl) * f->mss;
	if ((d->ctl.gap_us && now < d->burst_at) || (d->allowed && d->allowed + f->mss > window)) {
		d->limited_at = now;
		return 0;
	}
	room = 1 + (slack - d->v) / NN_PATH_S / nn_max(f->mss, 1); /* packets */
	if (d->ctl.gap_us)
		room = nn_min(room, nn_obey_burst(&d->ctl) - nn_min(d->burst, nn_obey_burst(&d->ctl) - 1));
	room = nn_min(room, nn_max((window - nn_min(window, d->allowed)) / nn_max(f->mss, 1), 1));
	room = nn_min(room, wants / nn_max(f->mss, 1));
	if (d->ctl.gap_us) {
		d->burst += (u32)room;
		if (d->burst >= nn_obey_burst(&d->ctl)) {
			d->burst = 0;
			d->burst_at = nn_max(d->burst_at + nn_min(d->ctl.gap_us * 1000, NN_DOWN_GAP_MAX), now);
		}
	}
	return (u32)nn_min(room, 1u << 14) * f->mss;
}

/*
 * The window to tell, in units of 2^scale bytes, with an ACK of all before `ack`. It is rounded up: an
 * edge never moves back. `f->tells`: the peer is to learn of it, if no ACK leaves anyway.
 */
nn_inline u32 nn_down_offer(struct nn_down *d, struct nn_down_flow *f, u64 now, u32 ack)
{
	u32 unit = 1u << (f->scale & 15), was = nn_down_open(f), by, rest, edge, window, news;
	struct nn_down_mark *m;

	if (nn_down_after(ack, f->end)) { /* it came before these programs were there */
		f->end = ack;
		nn_down_reckon(d, f, was);
		was = nn_down_open(f);
	}
	nn_down_forget(d, f, now);
	f->tells = (u32)nn_down_silent(d, f, now);
	was = nn_down_open(f);
	by = nn_down_may(d, f, now);
	rest = nn_down_left(f) % (u32)nn_max(f->mss, 1);
	edge = f->edge + by - (u32)nn_min(by, rest); /* what rounding adds must not add up */
	if (nn_down_after(ack, edge))
		edge = ack;
	window = (edge - ack + unit - 1) >> (f->scale & 15);
	window = (u32)nn_min(window, 65535);
	edge = ack + (window << (f->scale & 15));
	if (!nn_down_after(edge, f->edge))
		return window;
	news = nn_down_after(f->end, f->edge) ? f->end : f->edge; /* what came beyond the edge is no news */
	news = nn_down_after(edge, news) ? edge - news : 0;
	if (by && now >= f->calm_at && f->marks < NN_DOWN_MARKS) {
		m = &f->of[(f->mark + f->marks) % NN_DOWN_MARKS];
		m->at = now;
		m->v = d->v;
		m->edge = f->edge;
		f->marks++;
	}
	nn_down_add(d, now, news + news / f->mss * f->headers);
	d->moved += edge - f->edge;
	if (nn_down_left(f) < f->mss)
		f->owed_at = now;
	nn_down_tell(f, edge);
	nn_down_reckon(d, f, was);
	f->moved_at = now;
	f->tells = 1;
	return window;
}

/* When to look again whether the edge may move, of a flow whose TCP wants it; 0: it does not. `random` is any. */
nn_inline u64 nn_down_again(struct nn_down *d, const struct nn_down_flow *f, u64 now, u32 random)
{
	u64 slack = nn_down_slack(d), each = NN_PATH_PACKET * NN_PATH_S / nn_max(d->drain, 1);
	u64 wait = each, spread;

	if (!nn_down_after(f->wanted, f->edge) || f->wanted - f->edge < f->mss)
		return 0;
	if (f->rests && nn_down_left(f) >= f->mss)
		return 0;
	each = nn_max(each, NN_DOWN_AGAIN_MIN);
	if (d->v >= slack)
		wait = (d->v - slack) / d->drain + 1000;
	else if (d->ctl.gap_us && d->burst_at > now)
		wait = d->burst_at - now;
	/* of many flows, four look in the time of a packet */
	spread = each * nn_min(d->flows, 1024) / 4;
	if (d->flows > 1)
		wait += spread * (random & 1023) / 1024;
	return now + nn_min(nn_max(wait, NN_DOWN_AGAIN_MIN), nn_max(NN_DOWN_AGAIN_MAX, spread));
}

/* The RTT of the oldest marked move of the edge that brought what ends at `end`, ns; 0: none. */
nn_inline u64 nn_down_sample(struct nn_down_flow *f, u64 now, u32 end, u64 *v)
{
	struct nn_down_mark *m = &f->of[f->mark % NN_DOWN_MARKS];

	if (!f->marks || !nn_down_after(end, m->edge) || now <= m->at)
		return 0;
	f->mark++;
	f->marks--;
	*v = m->v;
	return nn_min(now - m->at, NN_PATH_DELAY_MAX);
}

/* A queue that is not this host's, of so many ns, or none: edges wait for it; what it says of the rate. */
nn_inline void nn_down_learn(struct nn_down *d, u64 now, u64 rtt, u64 queue)
{
	u64 to;

	if (now < d->turned_at + nn_max(rtt, 2 * NN_DOWN_SPAN))
		return;
	if (queue > NN_DOWN_LATE) {
		nn_down_pass(d, now);
		d->v = nn_max(d->v, nn_min(3 * queue, NN_DOWN_WAIT) * d->mu);
		to = nn_min(d->mu / (1000 + d->gain) * 1000, d->mu - d->mu / 64);
		to = nn_max(d->last, to);
		d->gain = NN_DOWN_GAIN_MIN;
		if (to >= d->mu)
			return;
	} else {
		/* as much came as was allowed: it is v that keeps the edges */
		if (!d->kept || queue > 2 * NN_PATH_MS || d->last < d->drain / 10 * 9)
			return;
		d->kept = 0;
		to = d->mu + d->mu / 1000 * d->gain;
		d->gain = (u32)nn_min(d->gain + d->gain / 2 + 1, NN_DOWN_GAIN_MAX);
	}
	nn_down_set_rate(d, now, to);
	d->turned_at = now;
}

/*
 * Data of the background came, up to `end`, in segments of so many bytes, with its sender's time stamp (0:
 * none); `last` of a response, as far as one can see. 1: the algorithm is to be told of `a`.
 */
nn_inline int nn_down_came(struct nn_down *d, struct nn_down_flow *f, u64 now, u32 segment, u32 end,
			   u32 stamp, int last, struct nn_ack *a)
{
	u64 v = 0, rtt, least = 0, above, queue = 0;
	u64 clock = nn_path_clock(&f->base, now, stamp), out = clock ? now + NN_PATH_S - clock : 0;
	u32 news = 0, was = nn_down_open(f);

	f->mss = (u32)nn_min(nn_max(f->mss, segment), NN_DOWN_MSS_MAX);
	if (nn_down_after(end, f->end)) {
		news = end - f->end;
		f->end = end;
		f->rests = last && !nn_down_cut(f, end);
		d->una += news;
		d->tcp_at = now;
	}
	nn_down_reckon(d, f, was);
	f->base.at = now;
	rtt = nn_down_sample(f, now, end, &v);
	if (rtt) {
		if (!f->base.rtt.of[0])
			f->base.since = now;
		if (now >= f->base.since + NN_PATH_WINDOW && v < nn_down_slack(d)) {
			nn_path_turn(&f->base.rtt, rtt);
			nn_path_turn(&f->base.out, out);
			f->base.since = now;
		}
		above = nn_path_above(&f->base.rtt, rtt);
		least = rtt - above;
		if (out)
			above = nn_min(above, nn_path_above(&f->base.out, out) + f->base.tick);
		d->rtt = d->rtt ? nn_min(d->rtt, least) : least;
		v = nn_max(v, nn_down_users_in(d, now, above) * NN_PATH_S);
		queue = above - nn_min(above, v / d->drain);
		nn_down_learn(d, now, rtt, queue);
		queue = queue > nn_max(nn_min(least / 5, NN_DOWN_SHORT), NN_DOWN_LATE) ? queue : 0;
		rtt = d->rtt + above;
		d->srtt_us = d->srtt_us ? (u32)((7ull * d->srtt_us + rtt / 1000) / 8) : (u32)(rtt / 1000);
	}
	d->told += news;
	if (!rtt && d->told < f->mss)
		return 0;
	a->now_us = now / 1000;
	a->rtt_us = rtt ? (u32)((d->rtt + queue) / 1000) : 0;
	a->srtt_us = d->srtt_us;
	a->acked = d->told / (u32)nn_max(f->mss, 1);
	a->lost = 0;
	a->inflight = (u32)(d->allowed / nn_max(f->mss, 1)) + 1; /* no arrival waits for a second (rtt.h) */
	a->una = (u32)(d->una / nn_max(f->mss, 1));
	a->nxt = (u32)((d->una + d->allowed) / nn_max(f->mss, 1));
	a->mss = f->mss;
	a->flows = 1; /* one window for all */
	a->flags = now > d->limited_at + nn_max(2 * nn_max(least, d->rtt), NN_DOWN_SPAN) ? NN_ACK_APP_LIMITED : 0;
	d->told %= (u32)nn_max(f->mss, 1);
	return 1;
}

#endif
