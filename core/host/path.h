/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The path out of this host: when may a packet of the background leave?
 *
 * What this host sends is seen before it leaves, so for its own traffic nothing need be guessed.
 * The path keeps a virtual queue v: a copy of the queue at the bottleneck, which every packet of
 * the host enters and which drains at the bottleneck's rate mu. A packet of the background may leave
 * while v is below a slack; else it waits in this host. So the bottleneck never holds more of the
 * background than the slack, however many connections there are, and a packet of the foreground finds
 * the queue that strict priority at the bottleneck would leave it. A host holds packets *after* their
 * transport: any congestion control will do.
 *
 *	v	the virtual queue, bytes
 *	b	what of v is the background's; in a quiet round (path_delay.h) half of mu drains it
 *	z	bytes that mu could have carried while v was empty
 *	k	bytes that were added to v because a delay showed them
 *	mu	rate of the bottleneck, bytes/s; 0: not known yet
 *	C, F, D	bytes that left; of these the foreground's; the background's that were delivered
 *
 *	pass of dt	out = drain dt;  v -= out, and what v lacks is added to z;  b -= out, or out/2 in a
 *			quiet round
 *			drain = mu .99, while probing mu (1 + gain)
 *	a packet leaves	v += bytes, C += bytes; the foreground's F += bytes; the background's b += bytes,
 *			and the host keeps a record of it (struct nn_path_sent)
 *	gate		v < slack, and in a quiet round b < slack; and what others leave (path_others.h);
 *			or the background rested for 1 s
 *
 * The ACK of a recorded packet tells how long it waited: q, its delay above the least, less jitter. Of the
 * q mu bytes that it met, v(record) are known. What is more is a queue that the host did not
 * see grow: other hosts', or a mu that is too high. It is put into v, once: what was added since
 * the record (k), and what v could not give since (z), is known by now.
 *
 *	u = q mu - v(record)		err = u - (z - z(record)) - (k - k(record))
 *	u > a packet:			a probe ends;  err > 0: v += err, k += err
 *	q mu < v(record) - 2 slacks:	v is lowered by the rest, once: packets of the foreground were
 *					dropped, or mu is too low. Five times in a row: START. Or a fair
 *					queue holds them, and the background has its part: no run lowers
 *					mu for 1 s
 *
 *	.9 F > mu, a span of 2 s,	mu = .9 F: a train that shares a fair queue shows half the rate
 *	and v was too high:
 *	F > 1.5 mu, four spans of 2 s,	AWAY for 60 s, then twice as long: the foreground does not pass this
 *	and v was too high:		bottleneck. The first time in a row and each further: START
 *
 * The bucket b is the background's own: if v drained at half the rate, the foreground that is seen would
 * pile up in it.
 *
 *	START --- ACKs of a train of 10 packets ---> KNOWN <---> PROBING (path_rate.h)
 *	  ^  no answer within 1 s |                                |
 *	  +-----------------------+     v was too high five times  |
 *	  +--------------------------------------------------------+
 *
 * Why it does no harm: a mu that is too low costs the background its share; while the foreground
 * alone sends more, one packet a second leaves, and shows that its v is not there. A mu too high shows as
 * u, which closes the gate until the queue has drained and ends the probe; the rate samples that
 * follow are of a busy link, and lower mu (path_rate.h). A queue of others closes the gate
 * likewise, and each ACK that shows it leaves them a place.
 *
 * Times are nanoseconds; v, z, k, b are bytes * 10^9, so that rate * time needs no division.
 *
 * Range: mu <= 4 * 10^9 bytes/s, a pass <= 1 s, gains <= 1/2: 6 * 10^18 in a product. A delay
 * <= 2^31 ns: 8.6 * 10^18. v and b stay below 2^62. z and k wrap; only differences of a round trip
 * are used. Nothing here calls a helper or loops without a bound, so a host in the kernel may hold a
 * spin lock meanwhile.
 */
#ifndef NN_PATH_H
#define NN_PATH_H

#include "path_delay.h"
#include "path_others.h"

/* A path of which nothing is known; all zero before. */
nn_inline void nn_path_init(struct nn_path *p, u64 now)
{
	p->at = p->busy_at = p->fell_at = p->round_at = p->heard = p->part_at = now;
	p->others = now - NN_PATH_OTHERS; /* may wrap, and back */
	p->part = NN_ONE;
	p->floor[0] = p->floor[1] = ~0ull;
	p->floor_at = p->span_at = now;
	p->gain = NN_PATH_GAIN_MIN;
}

/* A packet of so many bytes leaves. With `sent`, it is the background's, and `sent` its record. */
nn_inline void nn_path_left(struct nn_path *p, u64 now, u32 bytes, struct nn_path_sent *sent)
{
	u64 more = bytes * NN_PATH_S;

	nn_path_pass(p, now);
	if (sent) {
		sent->at = now;
		sent->c = p->c;
		sent->f = p->f;
		sent->v = p->v;
		sent->z = p->z;
		sent->k = p->k;
		sent->unread = p->unread;
		p->b = nn_min(p->b + more, NN_PATH_V_MAX);
		p->left_at = now;
		nn_path_take(p, bytes);
	} else {
		p->f += bytes;
	}
	p->c += bytes;
	p->v = nn_min(p->v + more, NN_PATH_V_MAX);
}

/* One of the background's leaves whose ACK nobody can read: for a rate it is as the foreground's. */
nn_inline void nn_path_left_unread(struct nn_path *p, u64 now, u32 bytes)
{
	nn_path_left(p, now, bytes, 0);
	p->b = nn_min(p->b + bytes * NN_PATH_S, NN_PATH_V_MAX);
	p->left_at = now;
	p->unread += bytes;
	nn_path_take(p, bytes);
}

/*
 * Without a rate: trains of packets that leave together, and a rest for the answer to each. A window may be smaller
 * than a train; then the next one begins when this one is delivered. On a slow link ACKs are further apart
 * than packets of a train may be: if each let its packets go, no train would be longer.
 */
nn_inline u64 nn_path_train(struct nn_path *p, u64 now)
{
	u64 rested = now - nn_min(p->left_at, now);
	int whole = p->started >= NN_PATH_TRAIN;
	int broken = p->started && !whole && rested > nn_max(p->rtt / 4, NN_PATH_S / 200);
	int lasting = rested >= nn_path_rest(p);	/* all in flight was answered, or lost */
	u64 flight = p->c - p->f - p->d;
	int answered = (s64)(flight - p->lost) <= (s64)NN_PATH_DELAYED;

	if (whole || broken) {
		if (!lasting && (whole || !answered))
			return now + NN_PATH_S / 200;
		p->unanswered += (u32)(whole || !answered);
		p->started = 0;
	}
	if (!p->started) {
		p->points = 0;
		p->train = p->c;
	}
	p->lost = lasting ? flight : (u64)nn_path_lesser(p->lost, flight);
	p->started++;
	return 0;
}

/* Whether a packet of the background may leave: 0, or the clock at which to ask again. */
nn_inline u64 nn_path_gate(struct nn_path *p, u64 now)
{
	u64 slack, wait = 0;
	u64 rested = now - nn_min(p->left_at, now);
	u64 rest = nn_path_rest(p);

	if (nn_path_away(p, now))
		return 0;
	if (!p->mu)
		return nn_path_train(p, now);
	nn_path_probe(p, now);
	nn_reload();
	nn_path_pass(p, now);
	nn_reload();
	slack = nn_path_slack(p);
	if (p->v >= slack)
		wait = (p->v - slack) / p->drain + 1000;
	if (p->quiet_rounds && p->b >= slack)
		wait = nn_max(wait, (p->b - slack) / nn_max(nn_path_quietly(p, p->drain), 1) + 1000);
	wait = nn_max(wait, nn_path_wait_for_others(p, now, rested));
	wait = nn_min(wait, rest - nn_min(rested, rest));
	return wait ? now + wait : 0;
}

/* The rate is not known any more. ACKs of what is in flight show it again; else a train does, after a rest. */
nn_inline void nn_path_restart(struct nn_path *p)
{
	p->mu = p->drain = p->v = p->b = p->points = 0;
	p->running = p->probing = p->lowers = 0;
	p->started = NN_PATH_TRAIN;
}

/* A packet that left although v was long met `met` of it, jitter included. */
nn_inline void nn_path_lower(struct nn_path *p, u64 now, const struct nn_path_sent *sent, u64 met)
{
	u64 known = met + 2 * nn_path_slack(p);

	if (sent->at < p->lowered || sent->v <= known)
		return;
	p->v -= nn_min(p->v, sent->v - known);
	p->lowered = now;
	p->fair_until = now + NN_PATH_S;
	p->lowers += met < sent->v / 2;
	if (p->lowers >= NN_PATH_LOWERS) {
		p->least_mu = p->mu;
		nn_path_restart(p);
	}
}

/* Nothing is held for a while, each time for longer. */
nn_inline void nn_path_leave_alone(struct nn_path *p, u64 now)
{
	p->away_until = now + (NN_PATH_AWAY << nn_min(p->aways, 6));
	p->span_at = p->away_until;
	p->aways++;
	nn_path_restart(p);
}

/* Does the foreground pass the bottleneck that the background meets? */
nn_inline void nn_path_refute(struct nn_path *p, u64 now)
{
	u64 span = now - p->span_at, rate, carried;
	int more;

	if (span < NN_PATH_SPAN)
		return;
	rate = span < 10 * NN_PATH_S ? nn_path_per(p->f - p->span_f, span) : 0;
	more = rate > p->mu / 2 * 3;
	p->span_at = now;
	p->span_f = p->f;
	if (!more) {
		p->refuted -= p->refuted > 0;
		p->aways = p->refuted ? p->aways : 0;
		carried = rate / 10 * 9; /* some was dropped */
		if (p->lowers && carried > p->mu) {
			nn_path_only_sample(p, carried);
			nn_path_set_rate(p, now, carried);
		}
	} else if (p->lowers && ++p->refuted < NN_PATH_REFUTED) {
		nn_path_restart(p);
	} else if (p->lowers) {
		nn_path_leave_alone(p, now);
	}
}

/* What a probe adds to the queue that a packet meets, at most. */
nn_inline u64 nn_path_probed(const struct nn_path *p, const struct nn_path_sent *sent)
{
	u64 span = nn_path_probe_ns(p);

	if (sent->at < p->cycle || sent->at >= p->cycle + span + p->rtt)
		return 0;
	return p->mu * p->gain / 1000 * nn_min(span, NN_PATH_S);
}

/*
 * The ACK of a recorded full packet: not of one that left more than once, nor one that a gap
 * in the sequence kept waiting. `acked` are the bytes that it acknowledges, `stamp` its time stamp (TSval;
 * 0: none).
 */
nn_inline void nn_path_ack(struct nn_path *p, struct nn_path_base *base, u64 now,
			   const struct nn_path_sent *sent, u64 acked, u32 stamp)
{
	u64 back = 0, delay = nn_path_delay(p, base, now, sent, stamp, &back), q = delay;
	int late = q >= NN_PATH_LATE_NS && now >= base->at + NN_PATH_LATE_NS;
	int first = !base->at;
	u64 met, known, unexplained;

	base->at = now;
	if (nn_path_away(p, now))
		return; /* it left before */
	if (p->mu) {
		nn_path_pass(p, now);
		nn_path_lower(p, now, sent, delay * p->mu); /* of a late one it is more than it met */
		nn_path_refute(p, now);
	}
	nn_path_unread_returns(p, sent->unread);
	nn_reload();
	if (acked < NN_PATH_PACKET && late) {
		nn_path_unsure(p, now);
		return;
	}
	if (p->mu && !first)
		q -= nn_min(q, nn_path_jitter(p, now, q, sent->v));
	nn_reload();
	nn_path_rate(p, now, sent, q, back);
	nn_reload();
	if (!p->mu)
		return;
	nn_path_pass(p, now);
	nn_reload();
	met = q * p->mu;
	unexplained = met - nn_min(met, sent->v);
	known = sent->v + nn_min(p->z - sent->z, NN_PATH_V_MAX) + nn_min(p->k - sent->k, NN_PATH_V_MAX);
	if (unexplained > NN_PATH_PACKET * NN_PATH_S) {
		p->lowers = 0;
		if (met > known) {
			p->v = nn_min(p->v + (met - known), NN_PATH_V_MAX);
			p->k += met - known;
		}
		if (p->probing) {
			p->probing = 0;
			nn_path_set_drain(p);
		}
	}
	nn_reload();
	nn_path_hear_others(p, now, unexplained - nn_min(unexplained, nn_path_probed(p, sent)));
}

#endif
