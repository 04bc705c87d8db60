/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The rate of a path's bottleneck, mu, from the ACKs of the background.
 *
 *	start	bytes / time of the train's ACKs, from the first packet that waited;
 *		bytes = min(C that left, D delivered + F that left): of several connections' packets
 *		some overtake others where queues are fair
 *		After two trains that showed none, from two packets: a queue may be shorter than a train
 *	run	ACKs of 12 packets or more that all met a queue of 1/5 packet or more: the link was
 *		busy. It also lasts for 4 times the jitter.
 *		bytes = min(C that left, D delivered + F that left + 3/2 packets): what was lost,
 *			or overtaken where queues are fair, is no rate
 *		rate  = min(bytes / time of ACKs, max(bytes / time of sending, mu)): ACKs that
 *			were compressed are none either. Not above mu if a tenth was foreground, whose
 *			fate is not known, or if a packet overtook another: C counts too many then
 *		A rate below mu counts only if as much was sent, 3/4 of mu; or if there was no sample,
 *		nor 12 packets in a row without a queue, for 1 s. One counts in half an RTT: in a
 *		fair queue a burst of the foreground leaves all runs beside it half the rate.
 *		mu is the median of 7 (of an even number, the lower). Beside others (path_others.h) a run shows what
 *		they leave: it is the greatest then, if that is more by an eighth, and a tenth at most of what left
 *		lately was foreground
 *	free	12 packets that met no queue: the lesser of both rates is a lower bound. Above mu
 *		by .3 % it replaces all samples. Jitter may bring ACKs together, and a bound that is
 *		too high would be kept: if no foreground left for 256 ACKs, it is of 32 times the
 *		jitter, up to 64 ms
 *	probe	one RTT, or 14 packets if that is longer, at mu (1 + 1 %); after 8 times as long again. If mu
 *		grew by more than half of that, the next one follows at once with three times the
 *		gain, up to 50 %; else it is 1 % again.
 */
#ifndef NN_PATH_RATE_H
#define NN_PATH_RATE_H

#include "path_state.h"

#define NN_PATH_RUN (12 * NN_PATH_PACKET)
#define NN_PATH_PROBE (NN_PATH_RUN + 2 * NN_PATH_PACKET)
#define NN_PATH_DELAYED (NN_PATH_PACKET * 3 / 2) /* bytes: an ACK may wait for a second packet */
#define NN_PATH_STEADY_NS 64000000u	/* 5 % with 3 ms of jitter */
#define NN_PATH_TOGETHER 5000u	/* ns: ACKs that came together are one, the last */

struct nn_path_rates {
	u64 acks, sends;	/* bytes/s */
	int pure;		/* nine tenths and more were the background's */
};

nn_inline struct nn_path_point *nn_path_point(struct nn_path *p, u64 n)
{
	return &p->point[n & (NN_PATH_POINTS - 1)];
}

/* bytes (below 2^34) / ns, as bytes/s. */
nn_inline u64 nn_path_per(u64 bytes, u64 ns)
{
	return nn_min(bytes, (1ull << 34) - 1) * NN_PATH_S / nn_max(ns, 1);
}

/* What left between the packets of two ACKs, bytes: nothing if the ACK of the earlier one came late. */
nn_inline u64 nn_path_between(const struct nn_path_point *from, const struct nn_path_point *to)
{
	return (s64)(to->c - from->c) > 0 ? to->c - from->c : 0;
}

/* The rates between two ACKs; so many bytes may be delivered without an ACK. */
nn_inline struct nn_path_rates nn_path_rates(const struct nn_path_point *from,
					     const struct nn_path_point *to, u64 delayed)
{
	u64 f = to->f - from->f;
	u64 bytes = nn_min(nn_path_between(from, to), to->d - from->d + f + delayed);
	u64 sending = to->sent > from->sent ? to->sent - from->sent : 1;

	return (struct nn_path_rates){
		.acks = nn_path_per(bytes, to->at - from->at),
		.sends = nn_path_per(bytes, sending),
		.pure = f * 10 <= bytes,
	};
}

nn_inline void nn_path_keep_sample(struct nn_path *p, u64 rate)
{
	u32 at = p->sample_at < NN_PATH_RING ? p->sample_at : 0;

	p->ring[at & NN_PATH_RING] = rate;
	p->sample_at = at + 1;
	p->samples = (u32)nn_min(p->samples + 1, NN_PATH_RING);
}

/* One sample alone. */
nn_inline void nn_path_only_sample(struct nn_path *p, u64 rate)
{
	for (u32 i = 0; i < NN_PATH_RING; i++)
		p->ring[i] = NN_PATH_V_MAX; /* behind every rate */
	p->samples = p->sample_at = 0;
	nn_path_keep_sample(p, rate);
}

/* Whether nine tenths and more of what left lately were the background's. */
nn_inline int nn_path_own(struct nn_path *p)
{
	const struct nn_path_point *last = nn_path_point(p, p->points - 1);
	u64 first = p->points - nn_min(p->points, NN_PATH_POINTS - 1);
	const struct nn_path_point *from = nn_path_point(p, first);

	return (last->f - from->f) * 10 <= last->c - from->c;
}

/* Without branches, of which the kernel's verifier would walk each combination. */
nn_inline u64 nn_path_median(const struct nn_path *p)
{
	u64 median = p->mu;

	for (u32 i = 0; i < NN_PATH_RING; i++) {
		u64 below = 0;

		/* the sign of a difference: of equal ones the first is below */
		for (u32 j = 0; j < NN_PATH_RING; j++)
			below += (p->ring[j] - p->ring[i] - (j < i)) >> 63;
		if (below == (p->samples - 1) / 2)
			median = p->ring[i];
	}
	return median;
}

/* The rate that the samples show. */
nn_inline u64 nn_path_sampled(struct nn_path *p, u64 now)
{
	u64 median = nn_path_median(p), greatest = 0;

	if (!nn_path_crowded(p, now) || !nn_path_own(p))
		return median;
	nn_reload();
	for (u32 i = 0; i < NN_PATH_RING; i++)
		greatest = nn_max(greatest, p->ring[i] < NN_PATH_V_MAX ? p->ring[i] : 0);
	nn_reload();
	return median < greatest / 8 * 7 ? greatest : median;
}

/* How long a probe is, ns: a rate is measured of 12 packets, and a round trip may have less. */
nn_inline u64 nn_path_probe_ns(const struct nn_path *p)
{
	u64 packets = NN_PATH_PROBE * NN_PATH_S / nn_max(p->mu, 1);

	return nn_max(p->rtt, nn_min(packets, NN_PATH_DELAY_MAX));
}

/* Begins and ends probes, when a packet asks to leave. */
nn_inline void nn_path_probe(struct nn_path *p, u64 now)
{
	u64 since = now - p->cycle, span = nn_path_probe_ns(p);
	int known = since >= span + p->rtt * 3 / 2; /* what the last one showed */

	if (p->probing) {
		if (since >= span) {
			nn_path_pass(p, now);
			p->probing = 0;
			nn_path_set_drain(p);
		}
		return;
	}
	if (since < NN_PATH_PROBE_EACH * span && !(p->gain > NN_PATH_GAIN_MIN && known))
		return;
	if (p->mu > p->cycle_mu * (2000 + p->gain) / 2000) {
		p->gain = (u32)nn_min(3 * p->gain, NN_PATH_GAIN_MAX);
	} else if (known) {
		p->gain = NN_PATH_GAIN_MIN;
		if (since < NN_PATH_PROBE_EACH * span)
			return;
	}
	nn_path_pass(p, now);
	p->cycle = now;
	p->cycle_mu = p->mu;
	p->probing = 1;
	nn_path_set_drain(p);
}

/* The first rate, from the train. */
nn_inline void nn_path_first_rate(struct nn_path *p, const struct nn_path_point *here)
{
	const struct nn_path_point *from = nn_path_point(p, 0);

	/* records are without their packet: five packets lie between the first and the sixth */
	u64 least = p->unanswered > 1 ? 2 : 5; /* no more may fit into the bottleneck's queue */

	if (p->points < 2 || nn_path_between(from, here) < least * NN_PATH_PACKET - 100)
		return;
	for (u32 i = 0; i < NN_PATH_TRAIN && i < p->points; i++) {
		from = nn_path_point(p, i);
		if (from->q * 8 > here->q)
			break;
	}
	if (nn_path_between(from, here) < nn_min(least, 3) * NN_PATH_PACKET - 100 || from->at >= here->at)
		return;
	p->v = 0;
	p->lowered = p->cycle = p->round_at = here->at;
	p->round_n = 0;
	p->round_max = 0;
	nn_path_set_rate(p, here->at, nn_max(nn_path_rates(from, here, 0).acks, p->least_mu));
	p->cycle_mu = p->mu;
	nn_path_only_sample(p, p->mu);
	p->low = 0;
	p->unanswered = 0;
}

/* A packet of a run that met a queue. */
nn_inline void nn_path_busy(struct nn_path *p, u64 now, const struct nn_path_point *here)
{
	struct nn_path_rates r;
	u64 rate;

	p->calm = 0;
	if (!p->running) {
		p->running = 1;
		p->overtaken = 0;
		p->run = *here;
		return;
	}
	if (nn_path_between(&p->run, here) < NN_PATH_RUN || here->at - p->run.at < 4 * p->jitter)
		return;
	nn_reload();
	r = nn_path_rates(&p->run, here, NN_PATH_DELAYED);
	p->run = *here;
	rate = nn_min(r.acks, nn_max(r.sends, p->mu));
	if (!r.pure || p->overtaken)
		rate = nn_min(rate, p->mu);
	p->overtaken = 0;
	if (rate >= p->mu || (now >= p->fair_until && now >= p->fell_at + p->rtt / 2 &&
			      (r.sends >= p->mu / 4 * 3 || now > p->busy_at + NN_PATH_S))) {
		p->fell_at = rate < p->mu ? now : p->fell_at;
		p->busy_at = now;
		nn_path_keep_sample(p, rate);
	}
	nn_reload();
	rate = nn_path_sampled(p, now);
	if (rate && rate != p->mu)
		nn_path_set_rate(p, now, rate);
}

/* Whether no foreground left between the packets of the ACKs that are remembered. */
nn_inline int nn_path_alone(struct nn_path *p, const struct nn_path_point *last)
{
	u64 first = p->points - nn_min(p->points, NN_PATH_POINTS - 1);

	return nn_path_point(p, first)->f == last->f;
}

/* Whether a rate may be measured between these ACKs. Half of the ACKs that are remembered are enough. */
nn_inline int nn_path_far(struct nn_path *p, u64 n, const struct nn_path_point *to)
{
	const struct nn_path_point *from = nn_path_point(p, n);
	u64 least = 4 * p->jitter;

	if (nn_path_alone(p, to) && p->points - n < NN_PATH_POINTS / 2)
		least = nn_max(least, nn_min(32 * p->jitter, NN_PATH_STEADY_NS));
	return nn_path_between(from, to) >= NN_PATH_RUN && to->at - from->at >= least;
}

/* A packet that met no queue: a lower bound. */
nn_inline void nn_path_free(struct nn_path *p, u64 now, const struct nn_path_point *here)
{
	struct nn_path_point *from;
	struct nn_path_rates r;
	u64 rate;

	p->running = 0;
	if (++p->calm >= NN_PATH_RUN / NN_PATH_PACKET)
		p->busy_at = now;
	if (p->low + NN_PATH_POINTS <= p->points)
		p->low = p->points - NN_PATH_POINTS + 1;
	for (u32 i = 0; i < 8; i++) {
		if (p->low + 1 >= p->points || !nn_path_far(p, p->low + 1, here))
			break;
		p->low++;
		nn_reload();
	}
	nn_reload();
	from = nn_path_point(p, p->low);
	if (!nn_path_far(p, p->low, here) || here->at - from->at > 2 * NN_PATH_S)
		return;
	r = nn_path_rates(from, here, NN_PATH_DELAYED);
	rate = nn_min(r.acks, r.sends);
	if (r.pure && rate > p->mu + p->mu * 3 / 1000) {
		nn_path_only_sample(p, rate);
		nn_path_set_rate(p, now, rate);
	}
}

/* An ACK that waited for `back` ns, of a packet that waited for q. */
nn_inline void nn_path_rate(struct nn_path *p, u64 now, const struct nn_path_sent *sent, u64 q,
			    u64 back)
{
	struct nn_path_point here = {
		.at = now - back, .sent = sent->at, .c = sent->c, .f = sent->f, .d = p->d, .q = q,
	};

	if (!p->mu && sent->c < p->train)
		return; /* it left before the train */
	if (p->points) {
		here.at = nn_max(here.at, nn_path_point(p, p->points - 1)->at);
		p->points -= here.at - nn_path_point(p, p->points - 1)->at < NN_PATH_TOGETHER;
	}
	*nn_path_point(p, p->points++) = here;
	p->overtaken |= here.c < p->most_c;
	p->most_c = nn_max(p->most_c, here.c);
	if (!p->mu)
		nn_path_first_rate(p, &here);
	else if (q * p->mu >= NN_PATH_PACKET * NN_PATH_S / 5)
		nn_path_busy(p, now, &here);
	else
		nn_path_free(p, now, &here);
}

#endif
