/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * libnetnice: congestion control for transfers that yield the network. For a transport of your own
 * over UDP, or the pluggable congestion control of a QUIC library.
 *
 *	uint64_t flow[NETNICE_FLOW_WORDS] = { 0 };
 *	struct netnice_answer answer;
 *
 *	netnice_init(flow, sizeof(flow), netnice_class("idle"));
 *	netnice_start(flow, &now, 10, &answer);
 *	for each ACK:	netnice_ack(flow, &ack, &answer);
 *	for each loss:	netnice_event(flow, NETNICE_LOSS, &now, &answer);
 *	before a burst:	netnice_send(flow, &now, &answer);
 *
 * and obey the answer. docs/library.md is the manual.
 *
 * The library allocates nothing, has no global state, and calls nothing but memcpy and memset. A flow
 * lives in memory of the caller. Different flows may be used by different threads at a time; one flow, or
 * the flows of one group, by one thread at a time.
 *
 * Every function checks what it is given. It returns 0 or an error below. After an error nothing has
 * changed, and no answer is written.
 */
#ifndef LIBNETNICE_NETNICE_H
#define LIBNETNICE_NETNICE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Errors. Their numbers stay as they are. */
enum netnice_error {
	NETNICE_E_ARGUMENT = -1,	/* a pointer is NULL or not aligned to 8, or a number is none that is known */
	NETNICE_E_SIZE = -2,		/* the memory is too small */
	NETNICE_E_ALGORITHM = -3,	/* there is no algorithm of that name */
	NETNICE_E_SETTING = -4,		/* not of the form NAME=NUMBER, or NAME=CHOICE */
	NETNICE_E_PARAMETER = -5,	/* the algorithm has no parameter of that name */
	NETNICE_E_RANGE = -6,		/* the value is out of its range */
	NETNICE_E_STATE = -7,		/* not now: an ACK before the start, a start after the start */
	NETNICE_E_TIME = -8,		/* the time went backwards */
	NETNICE_E_GROUP = -9,		/* the group has another algorithm, or members; the flow is one; its algorithm has no groups */
};

/* Words of a flow and of a group; netnice_flow_size() and netnice_group_size() never ask for more. */
enum netnice_limits {
	NETNICE_FLOW_WORDS = 128,
	NETNICE_GROUP_WORDS = 65536,
	NETNICE_PACKET = 65536,		/* one packet, or 1.0: Q16 */
};

/* Flags of an ACK. */
enum netnice_ack_flag {
	NETNICE_ACK_ECE = 1,		/* the receiver echoes an ECN mark */
	NETNICE_ACK_APP_LIMITED = 2,	/* there was less to send than the window allowed */
	NETNICE_ACK_HOLD = 4,		/* the window must not grow: recovery or reordering */
	NETNICE_ACK_EXACT = 16,		/* rtt_us holds no ACK delay: the receiver tells it (RFC 9000, 13.2.5) */
	NETNICE_ACK_HANDSHAKE = 32,	/* rtt_us may hold what both ends compute for one (RFC 9002, 5.3) */
};

/* What the algorithm is told. Before the first ACK the time, una, nxt, inflight and mss count. */
struct netnice_now {
	uint64_t now_us;	/* a clock that never goes backwards */
	uint32_t rtt_us;	/* RTT of the last packet that this ACK covers; 0: no sample */
	uint32_t srtt_us;	/* smoothed RTT (RFC 6298); 0: none yet */
	uint32_t acked;		/* packets newly delivered */
	uint32_t lost;		/* packets newly taken for lost since the last ACK */
	uint32_t inflight;	/* packets in flight */
	uint32_t una;		/* first packet not yet acknowledged: a number that may wrap around */
	uint32_t nxt;		/* number of the next packet */
	uint32_t flags;		/* enum netnice_ack_flag */
	uint32_t mss;		/* payload of a full packet in bytes */
	uint32_t flows;		/* of this program under this algorithm, this one included; 0: not known */
};

/* Flags of an answer. */
enum netnice_flag {
	NETNICE_SLOW_START = 1,		/* the window is still below ssthresh */
	NETNICE_YIELDING = 2,		/* the flow holds back for others at present */
};

/* What to obey until the next answer. */
struct netnice_answer {
	uint64_t cwnd_q16;	/* the algorithm's window in packets, times 65536: may be below one */
	uint64_t gap_us;	/* least time between the starts of two bursts; 0: ACKs clock the window */
	uint32_t burst;		/* packets of one burst, where gap_us > 0 */
	uint32_t flags;		/* enum netnice_flag */
	uint32_t window;	/* packets that may be in flight */
	uint32_t recovery;	/* the same while losses are repaired: two at least */
	uint32_t timeout;	/* the same after a timeout, until an ACK for what was sent since */
	uint32_t reserved;
};

enum netnice_event {
	NETNICE_LOSS = 0,	/* packets were lost: once for each window of data */
	NETNICE_ECN = 1,	/* the receiver echoed a mark: likewise */
	NETNICE_TIMEOUT = 2,	/* a timeout, or persistent congestion of QUIC; follows a NETNICE_LOSS */
	NETNICE_UNDO = 3,	/* the last of these was spurious */
};

struct netnice_flow;
struct netnice_group;

/* Bytes of a flow, and of a group, in this version of the library. Memory is aligned to 8. */
size_t netnice_flow_size(void);
size_t netnice_group_size(void);

/* A sentence for an error, "no error" for 0. */
const char *netnice_strerror(int error);

/* The names of the algorithms, from 0 on; NULL beyond the last. */
const char *netnice_algorithm(size_t index);
/* The algorithm of a class of docs/classes.md: "idle", "fair", "assured"; NULL: no such class. */
const char *netnice_class(const char *name);

/* A parameter: its values are times 65536. */
struct netnice_parameter {
	const char *name;
	const char *unit;	/* or the names of 0, 1, ...: "this|that" */
	const char *help;
	uint32_t standard, least, most;
	uint32_t reserved;
};
/* The parameters of an algorithm, from 0 on; NETNICE_E_PARAMETER beyond the last. */
int netnice_parameter(const char *algorithm, size_t index, struct netnice_parameter *parameter);

/*
 * Makes `size` bytes a flow under an algorithm, with its parameters' standard values. New memory holds
 * zeroes. A member of a group is to be closed before: NETNICE_E_GROUP.
 */
int netnice_init(void *flow, size_t size, const char *algorithm);
/* Sets a parameter, "threshold=0.1", before the start or later. Values are kept to 1/65536. */
int netnice_set(void *flow, const char *setting);
/* Starts it with a window of so many packets, which the algorithm may lower. 1 to 1048576; 10 is usual. */
int netnice_start(void *flow, const struct netnice_now *now, uint32_t window,
		  struct netnice_answer *answer);
int netnice_ack(void *flow, const struct netnice_now *ack, struct netnice_answer *answer);
int netnice_event(void *flow, enum netnice_event event, const struct netnice_now *now,
		  struct netnice_answer *answer);
/* The window was not used for a while, and was cut to so much (Q16, no more than it was). */
int netnice_idle(void *flow, uint64_t cwnd_q16, const struct netnice_now *now,
		 struct netnice_answer *answer);
/* Just before a burst leaves. Once for each burst. */
int netnice_send(void *flow, const struct netnice_now *now, struct netnice_answer *answer);
/* Ends it. The memory may be given up, or initialised again. */
int netnice_close(void *flow, const struct netnice_now *now);

/* ssthresh, with a window of `cwnd` packets: an algorithm out of slow start ends it. */
int netnice_ssthresh(const void *flow, uint32_t cwnd, uint32_t ssthresh, uint32_t *result);
/*
 * Whether there is less to send than the window allows (RFC 7661): 1 or 0. `data_waits` to be sent;
 * `most_out` packets were out at most in the last round trip, and used the window up if it was `limited`.
 */
int netnice_app_limited(const void *flow, int data_waits, uint32_t cwnd, uint32_t most_out,
			int limited);

/* Makes `size` bytes a group, whose flows share the sum of their windows by their parameter "share". */
int netnice_group_init(void *group, size_t size);
/* Its flows go to different hosts: a longer path is no queue. Before the first one joins. */
int netnice_group_apart(void *group);
/*
 * Makes an initialised flow a member, before its start. The group's memory is to outlive its members. Not every
 * algorithm has groups: NETNICE_E_GROUP. That of "idle" has none; "nice" is used for it.
 */
int netnice_join(void *flow, void *group);
/* Flows that have started in it and are not closed. */
int netnice_members(const void *group);

/* A value that a flow shows. */
struct netnice_shown {
	const char *name;
	const char *help;
	uint64_t value;		/* microseconds, or times 65536: see `unit` */
	const char *unit;	/* "us", "packets", "share", "mbit" or "pps" */
};
/* What a flow shows of itself, from 0 on; NETNICE_E_PARAMETER beyond the last. */
int netnice_shown(const void *flow, size_t index, struct netnice_shown *shown);

#ifdef __cplusplus
}
#endif

#endif
