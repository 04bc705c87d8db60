/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Integer arithmetic for algorithms, and the fields of an ACK within their ranges.
 */
#ifndef NN_ARITH_H
#define NN_ARITH_H

#include "interface.h"

/* Converts a literal to Q16 at compile time, rounded to nearest. */
#define NN_Q16(x) ((u32)((x) * 65536.0 + 0.5))

#define nn_inline static inline __attribute__((always_inline, unused))

/*
 * What was in memory is read again. The kernel's verifier walks all that follows once for each set of
 * values that registers may hold; paths to here that differ in memory alone are one to it.
 */
#define nn_reload() __asm__ volatile("" ::: "memory")

nn_inline u64 nn_min(u64 a, u64 b)
{
	return a < b ? a : b;
}

nn_inline u64 nn_max(u64 a, u64 b)
{
	return a > b ? a : b;
}

/* The window within [least, NN_CWND_MAX], Q16. */
nn_inline u64 nn_clamp_cwnd(u64 cwnd_q16, u64 least_q16)
{
	return nn_min(nn_max(cwnd_q16, least_q16), NN_CWND_MAX);
}

nn_inline u64 nn_abs(s64 x)
{
	return x < 0 ? 0 - (u64)x : (u64)x;
}

/* A window in whole packets, as hosts send it: rounded down. */
nn_inline u64 nn_packets(u64 cwnd_q16)
{
	return cwnd_q16 / NN_ONE;
}

/* The ACK's RTT sample within its range; 0: none. */
nn_inline u32 nn_rtt(const struct nn_ack *a)
{
	return (u32)nn_min(a->rtt_us, NN_RTT_MAX);
}

/* The ACK's delivered packets within their range. */
nn_inline u32 nn_acked(const struct nn_ack *a)
{
	return (u32)nn_min(a->acked, NN_ACKED_MAX);
}

/* The payload of a full packet within its range: 1 to 65535 bytes. */
nn_inline u32 nn_mss(const struct nn_ack *a)
{
	return (u32)nn_min(nn_max(a->mss, 1), 0xffff);
}

/* Whether the host and the application let the window grow. */
nn_inline int nn_may_grow(const struct nn_ack *a)
{
	return !(a->flags & (NN_ACK_HOLD | NN_ACK_APP_LIMITED));
}

/* x * num / den for a fraction num/den <= 1 of two RTTs: 36 + 27 bits. */
nn_inline u64 nn_scale(u64 x_q16, u32 num_us, u32 den_us)
{
	return den_us ? x_q16 * num_us / den_us : 0;
}

/*
 * 1 if x is negative, else 0. A compiler that knows the range of x would make a comparison and a
 * branch of it: the kernel's verifier would follow both ways each time, in loops of up to 32.
 */
nn_inline u64 nn_negative(u64 x)
{
	u64 negative;

	__asm__("" : "+r"(x));
	negative = x >> 63;
	__asm__("" : "+r"(negative));
	return negative;
}

/* The integer square root, for x < 2^62. */
nn_inline u64 nn_root(u64 x)
{
	u64 root = 0;

	for (int bit = 30; bit >= 0; bit--) {
		u64 next = root + (1ull << bit);

		root = next - (nn_negative(x - next * next) << bit);
	}
	return root;
}

/* A draw of 64 random bits: splitmix64 (Steele, Lea, Flood 2014); any state will do to start. */
nn_inline u64 nn_random(u64 *state)
{
	u64 z = *state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

/*
 * Whether a round has ended: data sent after its start is acknowledged. If so,
 * the next round starts with what is sent from now on.
 */
nn_inline int nn_round_over(u32 *end, const struct nn_ack *a)
{
	if ((s32)(a->una - *end) <= 0)
		return 0;
	*end = a->nxt;
	return 1;
}

#endif
