/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What the programs in the kernel keep, and the tool in user space reads.
 */
#ifndef NN_FLOW_H
#define NN_FLOW_H

#include "../core/netnice.h"

#define NN_GROUP_NAME 24	/* bytes of a group's name, the last one 0 */

/* The settings of `netnice run`, for the connections of one command. */
struct nn_settings {
	u64 run;			/* cgroup id of the run; 0: no run, a socket option chose */
	u32 n_params;			/* 0: the algorithm's defaults */
	u32 cfg[NN_PARAMS_MAX];		/* the algorithm's parameters, Q16 */
	char group[NN_GROUP_NAME];	/* empty: each connection is on its own */
	u32 owner;			/* uid of the group's user */
	u32 bits;			/* of the remote address that count, of 32 if it is IPv4; 0: none */
	u32 reserved;
};

/* One connection, in its socket's storage. */
struct nn_flow {
	struct nn_settings settings;
	struct nn_ctl ctl;		/* the algorithm's last answer */
	struct nn_ack ack;		/* the ACK being assembled */
	u32 pending;			/* `ack` was not yet given to the algorithm */
	u32 applied;			/* snd_cwnd as this host last set it */
	u32 lost, delivered;		/* the fields of tcp_sock at the last ACK */
	u32 closed;			/* counted into the totals of its run */
	u32 slot;			/* of its group (group.h), plus 1; 0: it has none */
	u32 asked;			/* it had data, and asked for a place in its group */
	u32 begun;			/* the algorithm has its state, and counts it among the host's flows */
	u64 yielding_us;		/* time for which ctl.flags had NN_CTL_YIELDING */
	u64 since_us;			/* clock of the last addition to yielding_us; 0: not yielding */
	u32 was_cwnd, was_ssthresh;	/* the connection's when this control took it over, packets */
	u64 was_us;			/* clock of that moment */
	u64 state[NN_STATE_MAX / 8];
};

/* What the closed connections of a run add up to. */
struct nn_totals {
	u64 connections;
	u64 bytes_acked;
	u64 retransmits;		/* packets */
	u64 yielding_us;		/* summed over connections */
};

/* What the programs of one run are told before they are attached; a share may change later. */
struct nn_run {
	struct nn_settings settings;
	char ca[16];			/* congestion control of its connections, "nn_nice" */
	u32 tos;			/* IP_TOS and IPV6_TCLASS of its packets; 0: left alone */
	u32 ended;			/* its cgroup was removed, and this goes away soon */
};

/* Another value for a parameter of a run's connections. */
struct nn_change {
	u64 run;
	u32 param;			/* its number in the algorithm's list */
	u32 value;			/* Q16 */
};

/* One connection as `netnice status` reads it. */
struct nn_record {
	char ca[16];			/* congestion control */
	u32 family;			/* AF_INET or AF_INET6 */
	u32 tcp_state;
	u32 sport, dport;		/* host byte order */
	u32 saddr[4], daddr[4];		/* network byte order; IPv4 in the first word */
	u64 bytes_acked;
	u32 retransmits;		/* packets */
	u32 srtt_us;
	u32 mss;			/* bytes */
	u32 snd_cwnd;			/* packets */
	struct nn_flow flow;
};

#endif
