/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The interface between a congestion-control algorithm and its host.
 *
 * An algorithm is an integer state machine in one header, core/alg/<name>.h. A
 * host (the Linux kernel through eBPF, a simulator, a QUIC stack) feeds it ACKs
 * and events and obeys the window and gap that it answers:
 *
 *	         nn_ack, enum nn_event                 nn_ctl
 *	  host ------------------------> algorithm ---------------> host
 *
 * "Window and gap" covers what the algorithms need: a window above two packets
 * is clocked by ACKs (gap 0); a window below that is a burst every so many
 * round trips (TCP Nice); probes at chosen spacings are bursts of one packet
 * with a gap set just before each leaves (ImTCP); a silent phase is one long
 * gap (FAIRBAT).
 *
 * An algorithm <name> defines, all static inline:
 *
 *	nn_<name>_summary          one line for people, a string
 *	nn_<name>_params(P)        its parameters, as a list (see NN_FIELD)
 *	struct nn_<name>_cfg       the values of these parameters, a u32 each
 *	struct nn_<name>           its state; all zero before init
 *	nn_<name>_init(s, c, g, a, ctl)
 *	nn_<name>_ack(s, c, g, a, ctl)            once for each ACK
 *	nn_<name>_event(s, c, g, event, a, ctl)   see enum nn_event
 *	nn_<name>_send(s, c, g, a, ctl)           just before a burst leaves
 *	nn_<name>_info(s, c, info)                what a person wants to see of it
 *
 * Units, everywhere: time in microseconds, windows in packets as Q16 fixed
 * point (65536 is one packet), sequence numbers in whatever the host counts
 * (compared with wrap-around). No floats, no libc, no signed division (BPF has
 * none before ISA v4), no division without a guard against zero: a host in the
 * kernel defines x/0 as 0, C does not define it, and both must agree.
 *
 * Ranges, enforced by nn_rtt() and nn_clamp_cwnd(), on which the overflow
 * arguments beside the products rest:
 *
 *	RTT     < 2^27 us (134 s)
 *	window  <= 2^36 in Q16 (2^20 packets; Linux cannot have more in flight)
 *	acked   <= 2^20 packets for one ACK
 */
#ifndef NETNICE_H
#define NETNICE_H

typedef __UINT8_TYPE__ u8;
typedef __UINT16_TYPE__ u16;
typedef __UINT32_TYPE__ u32;
typedef __UINT64_TYPE__ u64;
typedef __INT32_TYPE__ s32;
typedef __INT64_TYPE__ s64;

#define NN_ONE 65536u				/* one packet, or 1.0, in Q16 */
#define NN_CWND_MAX ((u64)NN_ONE << 20)
#define NN_RTT_MAX ((1u << 27) - 1)
#define NN_ACKED_MAX (1u << 20)
#define NN_GAP_MAX 100000000u			/* 100 s: below any keepalive or RTO limit */
#define NN_BURST 2				/* packets: two, so that the receiver does not delay its ACK */

#define NN_PARAMS_MAX 16			/* parameters of one algorithm */
#define NN_STATE_MAX 384			/* bytes of state of one flow */

/* Converts a literal to Q16 at compile time, rounded to nearest. */
#define NN_Q16(x) ((u32)((x) * 65536.0 + 0.5))

/* Flags of an ACK. */
#define NN_ACK_ECE 1u		/* the receiver echoes an ECN mark */
#define NN_ACK_APP_LIMITED 2u	/* the sender had less to send than the window allowed */
#define NN_ACK_HOLD 4u		/* the window must not grow: recovery or reordering */

/*
 * What a host tells an algorithm, once for each ACK.
 *
 * Before the first ACK only now_us, una, nxt, inflight and mss are meaningful.
 */
struct nn_ack {
	u64 now_us;	/* monotonic clock */
	u32 rtt_us;	/* RTT of the last packet that this ACK covers; 0: no sample */
	u32 srtt_us;	/* the host's smoothed RTT (RFC 6298); 0: none yet */
	u32 acked;	/* packets newly delivered, SACKed ones included */
	u32 lost;	/* packets newly taken for lost since the last ACK */
	u32 inflight;	/* packets in flight */
	u32 una;	/* first sequence number not yet acknowledged */
	u32 nxt;	/* next sequence number to be sent */
	u32 flags;	/* NN_ACK_* */
	u32 mss;	/* payload of a full packet in bytes */
	u32 flows;	/* of this host under this algorithm, this one included; 0: not known */
};

/* Flags of a control. */
#define NN_CTL_SLOW_START 1u	/* the window is still below ssthresh */
#define NN_CTL_YIELDING 2u	/* the flow holds back for others at present */

/* What an algorithm answers. A host presets cwnd_q16 to its initial window. */
struct nn_ctl {
	u64 cwnd_q16;	/* window in packets, Q16; may be far below one */
	u64 gap_us;	/* least time between the starts of two bursts; 0: clocked by ACKs */
	u32 burst;	/* packets of one burst where gap_us > 0 */
	u32 flags;	/* NN_CTL_* */
};

enum nn_event {
	NN_LOSS,	/* packets were lost: at most once for each window of data */
	NN_ECN,		/* the receiver echoed an ECN mark: likewise (RFC 3168) */
	NN_TIMEOUT,	/* the retransmission timer fired; follows its NN_LOSS */
	NN_UNDO,	/* the last NN_LOSS or NN_ECN (and NN_TIMEOUT) was spurious */
	NN_IDLE,	/* the host cut an unused window down to ctl->cwnd_q16 (RFC 5681, 4.1) */
	NN_EVENTS,	/* how many there are above: what a flow on its own is told */
	NN_CLOSE,	/* the connection ends: once, the last call for a flow of a group */
};

/*
 * State shared by several flows (core/aggregate/group.h: an aggregate of windows), which the host
 * keeps from being used twice at a time; NULL for a flow on its own, and for an algorithm whose
 * header does not include it: its windows are divided for it (core/aggregate/any.h).
 */
struct nn_group;

/* What a person wants to see of a flow beside its control. Zero: not known. */
struct nn_info {
	u32 base_rtt_us;	/* RTT of an empty path, as the algorithm sees it */
	u32 max_rtt_us;		/* RTT of a full queue, as the algorithm sees it */
	u64 queue_q16;		/* the flow's own packets in the bottleneck's queue, Q16 */
	u32 avail_pps;		/* available bandwidth as last measured, full packets per second */
	u32 avail_low_pps;	/* its confidence interval */
	u32 avail_high_pps;
	u32 avail_results;	/* measurements that had a result, since the start */
	u32 avail_window;	/* least window that measures, packets; 0: the algorithm does not measure */
	u32 weight_q16;		/* share that the flow takes of a TCP flow's throughput, Q16 */
	u64 tcp_mbit_q16;	/* that throughput as last estimated, Mbit/s of payload, Q16 */
	u32 place;		/* the member of its group that the flow is, plus 1 */
	u32 reserved;
};

/*
 * A parameter list names each parameter once:
 *
 *	#define nn_vegas_params(P) \
 *		P(alpha, 1.0, 0.0, 1000.0, "packets", "Nice 2.1", "help ...")
 *
 * with default, least and greatest value, unit, source and help text. It makes
 * the fields of the configuration (here), its defaults, and the help, ranges
 * and --set of the tools. A parameter with the unit "this|that" is a choice: the
 * names stand for 0, 1, ..., and --set takes them.
 */
#define NN_FIELD(name, def, least, most, unit, source, help) u32 name;
#define NN_DEFAULT(name, def, least, most, unit, source, help) NN_Q16(def),

#define NN_CAT_(a, b, c) a##b##c
#define NN_CAT(a, b, c) NN_CAT_(a, b, c)

#define nn_inline static inline __attribute__((always_inline, unused))

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

/* Golden traces (core/trace.h). One step: an ACK, or an event if `event` is below NN_EVENTS. */
struct nn_step {
	u32 event;
	u32 reserved;
	struct nn_ack ack;
};

/* Room for any algorithm's state, which is read and written as that algorithm's struct too. */
typedef u64 __attribute__((may_alias)) nn_word;

#define NN_TRACE_FLOWS 4	/* flows of the trace of a group */
#define NN_TRACE_LIFE 64	/* steps of one of them between two ends */

struct nn_trace {
	u64 hash;	/* FNV-1a over the 64-bit words of each state and answer */
	struct nn_ctl ctl;
	nn_word state[NN_STATE_MAX / 8];
};

#endif
