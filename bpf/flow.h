/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What the programs in the kernel keep, and the tool in user space reads.
 */
#ifndef NN_FLOW_H
#define NN_FLOW_H

#include "../core/netnice.h"

#define NN_GROUP_NAME 24	/* bytes of a group's name, the last one 0 */
#define NN_RUN_PREFIX "netnice-run-"	/* what the names of runs' cgroups begin with */

/* Which direction of a connection is in the background. */
enum nn_only {
	NN_ONLY_BOTH,
	NN_ONLY_UP,			/* what it sends: its downloads are the foreground's */
	NN_ONLY_DOWN,			/* its downloads: its control and its marks stay as they are */
};

/* The settings of `netnice run`, for the connections of one command. */
struct nn_settings {
	u64 run;			/* cgroup id of the run; 0: no run, a socket option chose */
	u32 n_params;			/* 0: the algorithm's defaults */
	u32 cfg[NN_PARAMS_MAX];		/* the algorithm's parameters, Q16 */
	char group[NN_GROUP_NAME];	/* empty: each connection is on its own */
	u32 owner;			/* uid of the group's user */
	u32 bits;			/* of the remote address that count, of 32 if it is IPv4; 0: none */
	char was_ca[16];		/* its control before; empty: not known, it began in the background */
	u32 was_tos, was_tclass;	/* its IP_TOS and IPV6_TCLASS then */
	u16 adopted;			/* its socket, or its listener's, is older than the run, whose programs do not see it */
	u16 only;			/* enum nn_only */
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
	u32 refused;			/* errno with which the kernel refused its run's control at its start; 0: it took it */
	u32 reserved;
	u64 yielding_us;		/* time for which ctl.flags had NN_CTL_YIELDING */
	u64 since_us;			/* clock of the last addition to yielding_us; 0: not yielding */
	u32 was_cwnd, was_ssthresh;	/* the connection's when this control took it over, packets */
	u64 was_us;			/* clock of that moment */
	u64 held_us;			/* when a packet of its was last held in this host (hold.bpf.c); 0: never */
	u64 state[NN_STATE_MAX / 8];
};

/* Why a connection of a run is under another control than the run's. */
enum nn_plain {
	NN_PLAIN_LOCKED,		/* EPERM: its route has one, with `congctl lock` */
	NN_PLAIN_MISSING,		/* ENOENT, EBUSY: the run's was not registered any more */
	NN_PLAIN_REFUSED,		/* any other answer of the kernel's */
	NN_PLAIN_CHANGED,		/* it had the run's at its start */
};

#define NN_PLAIN_REASONS 4

nn_inline u32 nn_plain_reason(u32 refused)
{
	switch (refused) {
	case 0:
		return NN_PLAIN_CHANGED;
	case 1: /* EPERM */
		return NN_PLAIN_LOCKED;
	case 2: /* ENOENT */
	case 16: /* EBUSY */
		return NN_PLAIN_MISSING;
	default:
		return NN_PLAIN_REFUSED;
	}
}

/* Peers whose connections a run is for. An address of IPv4 is ::ffff:a.b.c.d. */
struct nn_peer {
	u32 address[4], mask[4];	/* network byte order */
	u32 port;			/* of either end; 0: any */
	u32 v4;				/* addresses of IPv4 alone, else of IPv6 alone */
};

#define NN_PEERS 16

/* What a run adds up to; of its connections all that are established, else the closed ones. */
struct nn_totals {
	u64 run;			/* cgroup id */
	u64 connections;
	u64 local;			/* of them, those to this host itself */
	u64 bytes_acked;
	u64 bytes_received;
	u64 retransmits;		/* packets */
	u64 yielding_us;		/* summed over connections */
	u64 plain[NN_PLAIN_REASONS];	/* connections under another control */
	u64 udp_bytes;			/* sent to other hosts, with IP headers, but for DNS */
	u64 udp_held;			/* the same, of sockets whose datagrams wait in this host */
	u64 udp_received;		/* came from other hosts, counted likewise, and did not yield */
	u64 udp_pulled;			/* the same that yielded */
	u64 udp_dropped;		/* the same that was more than the line carries, and was dropped */
	u64 left;			/* processes moved out of it, to where no run is */
	u64 inner;			/* processes moved into another run */
	u64 spared;			/* connections to peers that it is not for */
	u64 closed;			/* of its connections, those whose figures are in here; raised last */
};

/* What the programs of one run are told before they are attached; a share may change later. */
struct nn_run {
	struct nn_settings settings;
	char ca[16];			/* congestion control of its connections, "nn_nice"; empty: left alone */
	u32 tos;			/* IP_TOS and IPV6_TCLASS of its packets; 0: left alone */
	u32 ended;			/* its cgroup was removed, and this goes away soon */
	u32 n_peers;			/* 0: it is for all */
	u32 udp_downloads;		/* datagrams that come yield too */
	struct nn_peer peers[NN_PEERS];
};

/* Which run's cgroup is watched for processes that leave it. */
struct nn_watched {
	u64 run;
	char comm[16];			/* of netnice itself, which goes in and out of runs */
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
	u64 bytes_received;
	u32 bytes_unsent;		/* or sent and not yet acknowledged */
	u32 retransmits;		/* packets */
	u32 srtt_us;
	u32 mss;			/* bytes */
	u32 snd_cwnd;			/* packets */
	u32 plain;			/* enum nn_plain, if its control is not its run's */
	u64 inode;			/* of its socket; 0: no process has it, not yet or no more */
	u32 orphaned;			/* no process has it any more */
	u32 unused;
	struct nn_flow flow;
};

#endif
