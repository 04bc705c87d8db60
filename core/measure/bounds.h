/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The RTT of an empty path and of a full queue, on a path that changes while a connection lives.
 *
 *	base	RTT of the empty path. It falls with any RTT below it. It rises when the path has become
 *		longer: RISE blocks in a row lie above it, each close to its least RTT, and these
 *		agree. top rises and falls with it.
 *	top	RTT of a full queue: the greatest that a packet sent later has confirmed, or a loss. A
 *		stall of the path (a handover, a suspended machine) delays what is in flight once.
 *		It fades towards what rounds show.
 *	noise	by how much RTTs exceed base without a queue: jitter. It rises when JITTER blocks in a row
 *		are spread all over their range, from base on, each RTT independent of the one before.
 *		It falls with any block that is narrower, and to nothing with a loss.
 *
 * A block is 8 RTTs or more over 1 s or more, of a flow whose window is two packets or less: it has
 * no queue of its own. Others' queues look otherwise than a longer path or jitter:
 *
 *	a standing queue	varies within a block (one flow's sawtooth has its mean far above its
 *				least), or from one block to the next
 *	traffic that comes	most RTTs lie near base: their mean is below 13/32 of their range;
 *	and goes		that of evenly spread jitter is 1/2
 *	any queue		grows and shrinks: from one RTT to the next it changes by less than
 *				2/5 of its mean height; independent RTTs do by 2/3
 *
 * What cannot be told apart: others who keep a queue at the same length for 4 s and lose nothing,
 * as flows of Vegas do. It is taken for a longer path, as by a flow that begins beside it.
 *
 * TCP Nice, section 2.2, suggests that minRTT and maxRTT age, and leaves open how.
 *
 * Range: RTTs below 2^27 us; a block has at most 2^16 of them, so their sum is below 2^43.
 */
#ifndef NN_MEASURE_BOUNDS_H
#define NN_MEASURE_BOUNDS_H

#include "rtt.h"

#define NN_BOUNDS_RTTS 8u		/* least RTTs of a block */
#define NN_BOUNDS_RTTS_MAX 65536u	/* most */
#define NN_BOUNDS_BLOCK_US 1000000u	/* least length of a block */
#define NN_BOUNDS_RISE 4u		/* blocks after which base rises: 4 s or more */
#define NN_BOUNDS_JITTER 4u		/* blocks after which noise rises */
#define NN_BOUNDS_CONFIRM_US 10000000u	/* later than this no RTT confirms another */
#define NN_BOUNDS_HOST_US 1000u		/* by which hosts and their timers vary */

struct nn_bounds {
	u64 sum_us;	/* of the block's RTTs */
	u64 steps_us;	/* from each of them to the next */
	u64 began_us;	/* clock at the block's first RTT */
	u64 small_us;	/* clock since which the window is two packets or less; 0: it is not */
	u64 seen_us;	/* clock at which `seen` was acknowledged */
	u32 seen;	/* greatest RTT above top, not confirmed; 0: none */
	u32 base_us;	/* RTT of the empty path; 0: none yet */
	u32 top_us;	/* RTT of a full queue; 0: none yet */
	u32 noise_us;	/* by which RTTs exceed base without a queue */
	u32 risen_us;	/* by which base has risen, and top with it */
	u32 last_us;	/* of the block */
	u32 least_us;	/* of the block */
	u32 most_us;	/* of the block */
	u32 rtts;	/* of the block */
	u32 above;	/* blocks in a row above base whose least RTTs agree */
	u32 low_us;	/* least of these least RTTs */
	u32 high_us;	/* greatest of them */
	u32 spread;	/* blocks in a row whose RTTs lie all over their range */
	u32 spread_us;	/* least of their greatest distances from base */
};

/* How far above base an RTT may lie without a queue. Blocks are short: some RTTs exceed all of one. */
nn_inline u32 nn_bounds_noise(const struct nn_bounds *b)
{
	return b->noise_us + b->noise_us / 2;
}

/* The mean RTT of the block. */
nn_inline u32 nn_bounds_mean(const struct nn_bounds *b)
{
	return (u32)(b->sum_us / nn_max(b->rtts, 1));
}

/* Is the path longer than base? */
nn_inline void nn_bounds_rise(struct nn_bounds *b)
{
	u32 rise = b->least_us - b->base_us;
	u32 near = NN_BOUNDS_HOST_US / 4 + rise / 32;
	u32 low = b->above ? (u32)nn_min(b->low_us, b->least_us) : b->least_us;
	u32 high = b->above ? (u32)nn_max(b->high_us, b->least_us) : b->least_us;

	if (rise <= nn_max(NN_BOUNDS_HOST_US, nn_bounds_noise(b)) ||
	    nn_bounds_mean(b) - b->least_us > near + b->noise_us) {
		b->above = 0;
		return;
	}
	if (high - low > near + b->noise_us / 4) {
		low = high = b->least_us;
		b->above = 0;
	}
	b->low_us = low;
	b->high_us = high;
	if (++b->above < NN_BOUNDS_RISE)
		return;
	if (b->top_us) {
		b->top_us += low - b->base_us;
		b->risen_us += low - b->base_us;
	}
	b->base_us = low;
	b->above = 0;
}

/* The path is shorter than base. What a rise has added to top leaves it again. */
nn_inline void nn_bounds_fall(struct nn_bounds *b, u32 rtt)
{
	u32 back = (u32)nn_min(b->base_us - rtt, b->risen_us);

	b->risen_us -= back;
	b->top_us -= (u32)nn_min(back, b->top_us);
	b->base_us = rtt;
}

/* Does the path vary by itself? */
nn_inline void nn_bounds_vary(struct nn_bounds *b)
{
	u64 mean = nn_bounds_mean(b) - b->base_us;
	u32 least = b->least_us - b->base_us;
	u32 most = b->most_us - b->base_us;

	if (most <= NN_BOUNDS_HOST_US || 2 * least > most || 32 * mean < 13 * (u64)most ||
	    5 * b->steps_us < 2ull * b->rtts * (mean - least)) {
		b->spread = 0;
		b->noise_us = (u32)nn_min(b->noise_us, most);
		return;
	}
	b->spread_us = b->spread ? (u32)nn_min(b->spread_us, most) : most;
	if (++b->spread < NN_BOUNDS_JITTER)
		return;
	b->noise_us = b->spread_us;
	b->spread = 0;
}

/* Takes an RTT that no delayed ACK made longer, of a flow with a window of cwnd_q16. */
nn_inline void nn_bounds_sample(struct nn_bounds *b, u64 now_us, u32 rtt, u64 cwnd_q16)
{
	if (!b->base_us || rtt < b->base_us)
		nn_bounds_fall(b, rtt);
	if (cwnd_q16 > NN_BURST * NN_ONE) {
		b->small_us = 0;
		return;
	}
	if (!b->small_us)
		b->small_us = now_us;
	if (now_us - b->small_us < (u64)rtt + b->top_us)
		return; /* it met what a larger window had queued */
	if (!b->rtts) {
		b->sum_us = 0;
		b->steps_us = 0;
		b->last_us = rtt;
		b->least_us = rtt;
		b->most_us = rtt;
		b->began_us = now_us;
	}
	b->sum_us += rtt;
	b->steps_us += nn_max(rtt, b->last_us) - nn_min(rtt, b->last_us);
	b->last_us = rtt;
	b->least_us = (u32)nn_min(b->least_us, rtt);
	b->most_us = (u32)nn_max(b->most_us, rtt);
	b->rtts++;
	if (b->rtts < NN_BOUNDS_RTTS_MAX &&
	    (b->rtts < NN_BOUNDS_RTTS || now_us - b->began_us < NN_BOUNDS_BLOCK_US))
		return;
	nn_bounds_vary(b);
	nn_bounds_rise(b);
	b->rtts = 0;
}

/* Takes an RTT that may be that of a full queue; one of less than `floor_us` is not. */
nn_inline void nn_bounds_fill(struct nn_bounds *b, u64 now_us, u32 rtt, u32 floor_us)
{
	int known = b->seen && now_us - b->seen_us < NN_BOUNDS_CONFIRM_US;

	b->top_us = (u32)nn_max(b->top_us, floor_us);
	if (rtt <= b->top_us)
		return;
	if (known && now_us - b->seen_us >= rtt)
		b->top_us = (u32)nn_min(rtt, b->seen);
	if (!known || rtt > b->seen) {
		b->seen = rtt;
		b->seen_us = now_us;
	}
}

/* Takes an ACK's RTT. If it may hold the receiver's timer (rtt.h), `late`, only a short one counts. */
nn_inline void nn_bounds_ack(struct nn_bounds *b, const struct nn_ack *a, u64 cwnd_q16, int late)
{
	u32 rtt = nn_rtt(a);

	if (!rtt)
		return;
	if (!late || !b->base_us || rtt <= b->base_us)
		nn_bounds_sample(b, a->now_us, rtt, cwnd_q16);
	if (!late)
		nn_bounds_fill(b, a->now_us, rtt, 0);
}

/* The queue was full for those packets that arrived last. */
nn_inline void nn_bounds_full(struct nn_bounds *b, u64 now_us)
{
	if (b->seen && now_us - b->seen_us <= b->seen)
		b->top_us = (u32)nn_max(b->top_us, b->seen);
}

/* A packet was lost: the queue was full, and what RTTs say of an empty path is not true. */
nn_inline void nn_bounds_lose(struct nn_bounds *b, u64 now_us)
{
	nn_bounds_full(b, now_us);
	b->noise_us = 0;
	b->spread = 0;
	b->above = 0;
	b->rtts = 0;
}

/* Once a round of elapsed_us, whose greatest RTT was `most_us`: forgets top with a time constant. */
nn_inline void nn_bounds_fade(struct nn_bounds *b, u32 most_us, u64 elapsed_us, u64 age_us)
{
	if (!age_us || b->top_us <= most_us)
		return;
	/* an RTT and 3600 s: 27 + 32 bits */
	b->top_us -= (u32)((b->top_us - most_us) * nn_min(elapsed_us, age_us) / age_us);
}

#endif
