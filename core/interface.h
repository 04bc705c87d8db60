/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The interface between a congestion-control algorithm and its host.
 *
 * An algorithm is an integer state machine in one header, core/alg/<name>.h. A
 * host (the Linux kernel through eBPF, a simulator, a QUIC stack) feeds it ACKs
 * and events and obeys the window and gap that it answers (core/host/obey.h):
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
 *	nn_<name>_params(P)        its parameters, as a list (params.h)
 *	struct nn_<name>_cfg       the values of these parameters, a u32 each
 *	struct nn_<name>           its state; all zero before init
 *	nn_<name>_init(s, c, g, a, ctl)
 *	nn_<name>_ack(s, c, g, a, ctl)            once for each ACK
 *	nn_<name>_event(s, c, g, event, a, ctl)   see enum nn_event
 *	nn_<name>_send(s, c, g, a, ctl)           just before a burst leaves
 *	nn_<name>_shown(S, s, c)   what a person wants to see of it, as a list (shown.h)
 *
 * with the state s, the configuration c, the group g, the ACK a and the answer ctl. A header
 * that has nothing to do before a burst defines that as nn_no_send.
 *
 * Units, everywhere: time in microseconds, windows in packets as Q16 fixed
 * point (65536 is one packet), sequence numbers in whatever the host counts
 * (compared with wrap-around). No floats, no libc, no signed division (BPF has
 * none before ISA v4), no division without a guard against zero: a host in the
 * kernel defines x/0 as 0, C does not define it, and both must agree.
 *
 * Ranges, enforced by nn_rtt() and nn_clamp_cwnd() (arith.h), on which the overflow
 * arguments beside the products rest:
 *
 *	RTT     < 2^27 us (134 s)
 *	window  <= 2^36 in Q16 (2^20 packets; Linux cannot have more in flight)
 *	acked   <= 2^20 packets for one ACK
 */
#ifndef NN_INTERFACE_H
#define NN_INTERFACE_H

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
#define NN_BURST_MAX 32u			/* packets of one burst at most */

#define NN_STATE_MAX 480			/* bytes of state of one flow */

/* Flags of an ACK. */
#define NN_ACK_ECE 1u		/* the receiver echoes an ECN mark */
#define NN_ACK_APP_LIMITED 2u	/* the sender had less to send than the window allowed */
#define NN_ACK_HOLD 4u		/* the window must not grow: recovery or reordering */
#define NN_ACK_HELD 8u		/* the host holds the flow's packets until its path has room (host/path.h) */
#define NN_ACK_EXACT 16u	/* rtt_us holds no ACK delay: the receiver tells it (RFC 9000, 13.2.5) */
#define NN_ACK_HANDSHAKE 32u	/* rtt_us may hold what both ends compute for one (RFC 9002, 5.3) */

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
	u32 burst;	/* packets of one burst where gap_us > 0: 1 to NN_BURST_MAX */
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

/* Room for any algorithm's state, which is read and written as that algorithm's struct too. */
typedef u64 __attribute__((may_alias)) nn_word;

/* The hook of an algorithm that has nothing to do before a burst. */
#define nn_no_send(s, c, g, a, ctl) ((void)0)

#endif
