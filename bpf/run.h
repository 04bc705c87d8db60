/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The programs of a run. Who includes this says before which run decides on a socket (the_run_of), for which sockets
 * it is (is_chosen), and for which peers (is_meant).
 *
 * connect4, connect6: before the SYN, so that it carries the DSCP already.
 * sockops: connections accepted, and those opened through other doors; listeners,
 * whose SYN-ACKs leave before the connection is there.
 * setsockopt: the command cannot choose its congestion control or DSCP itself;
 * it is told that it could, for programs that treat a refusal as fatal.
 * egress: names UDP to a hold (hold.bpf.c), and counts what does not wait: it has no congestion control here.
 * ingress: names it to where downloads yield (down.bpf.c), if the run asks for it; and counts what comes as ever.
 */
#ifndef NN_RUN_H
#define NN_RUN_H

#include "kernel.h"
#include "shared.h"
#include "the_run.h"
#include "totals.h"
#include "udp.h"

#include <bpf/bpf_endian.h>

char _license[] SEC("license") = "Dual MIT/GPL";

#define IPPROTO_TCP 6
#define IPPROTO_UDP 17
#define IPPROTO_MPTCP 262 /* hands its options on to the TCP connections below it */
#define SOL_IP 0
#define IP_TOS 1
#define SOL_IPV6 41
#define IPV6_TCLASS 67
#define TCP_CONGESTION 13
#define PAGE_SIZE 4096
#define ETH_P_IP 0x0800
#define LOOPBACK_IFINDEX 1
#define PORT_DNS 53
#define UDP_FROM 0	/* where its header has the ports */
#define UDP_TO 2
#define HELD_US 1000000u	/* a socket whose datagram waited so lately is held */

/* The run that decides on a socket, if it is for that one. */
nn_inline struct nn_run *chosen_run_of(struct bpf_sock *sk)
{
	struct nn_run *run = the_run_of(sk);

	return run && is_chosen(sk) ? run : NULL;
}

nn_inline void mark(void *ctx, const struct nn_run *run)
{
	int tos = (int)run->tos;

	if (!tos)
		return;
	/* one of the two fits the socket's family; newer kernels take both for IPv6, which may carry IPv4 */
	bpf_setsockopt(ctx, SOL_IP, IP_TOS, &tos, sizeof(tos));
	bpf_setsockopt(ctx, SOL_IPV6, IPV6_TCLASS, &tos, sizeof(tos));
}

nn_inline void enter(void *ctx, struct bpf_sock *sk, struct nn_run *run)
{
	struct nn_flow *f;
	long refused = 0;

	f = bpf_sk_storage_get(&nn_flows, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (f) {
		f->settings = run->settings;
		f->closed = 0; /* of a socket that is used again */
	}
	if (run->ca[0])
		refused = bpf_setsockopt(ctx, IPPROTO_TCP, TCP_CONGESTION, run->ca, sizeof(run->ca));
	if (f)
		f->refused = (u32)-refused;
	mark(ctx, run);
}

nn_inline int is_meant_by_ops(const struct nn_run *run, const struct bpf_sock_ops *ctx)
{
	u32 v4 = ctx->remote_ip4, last = ctx->remote_ip6[3];
	u32 peer[4] = { 0, 0, bpf_htonl(0xffff) };

	/* the verifier takes no field of the context whose place is chosen at run time */
	barrier_var(v4);
	barrier_var(last);
	peer[3] = v4;
	if (ctx->family == AF_INET6) {
		peer[0] = ctx->remote_ip6[0];
		peer[1] = ctx->remote_ip6[1];
		peer[2] = ctx->remote_ip6[2];
		peer[3] = last;
	}
	return is_meant(run, peer, bpf_ntohl(ctx->remote_port), ctx->local_port);
}

nn_inline void connect(struct bpf_sock_addr *ctx, const u32 peer[4])
{
	struct bpf_sock *sk = ctx->sk;
	struct nn_run *run = ctx->protocol == IPPROTO_TCP ? chosen_run_of(sk) : NULL;

	if (run && is_meant(run, peer, bpf_ntohs((u16)ctx->user_port), 0))
		enter(ctx, sk, run);
}

SEC("cgroup/connect4")
int nn_connect4(struct bpf_sock_addr *ctx)
{
	const u32 peer[4] = { 0, 0, bpf_htonl(0xffff), ctx->user_ip4 };

	connect(ctx, peer);
	return 1;
}

SEC("cgroup/connect6")
int nn_connect6(struct bpf_sock_addr *ctx)
{
	const u32 peer[4] = { ctx->user_ip6[0], ctx->user_ip6[1], ctx->user_ip6[2],
			      ctx->user_ip6[3] };

	connect(ctx, peer);
	return 1;
}

/* Whether the other end is on this host: through lo, under whatever address. */
nn_inline int is_local(const struct bpf_sock_ops *ctx)
{
	u32 there = ctx->remote_ip4;

	if (ctx->family == AF_INET)
		return there == ctx->local_ip4 || (there & bpf_htonl(0xff000000)) == bpf_htonl(0x7f000000);
	return ctx->remote_ip6[0] == ctx->local_ip6[0] && ctx->remote_ip6[1] == ctx->local_ip6[1] &&
	       ctx->remote_ip6[2] == ctx->local_ip6[2] && ctx->remote_ip6[3] == ctx->local_ip6[3];
}

/* Whether its control is another than the run's. The kernel may lock it, others may change it. */
nn_inline int is_plain(struct bpf_sock_ops *ctx)
{
	const struct nn_run *run = the_run();
	char ca[sizeof(run->ca)] = {};

	if (!run || !run->ca[0] || bpf_getsockopt(ctx, IPPROTO_TCP, TCP_CONGESTION, ca, sizeof(ca)))
		return 0;
	for (u32 i = 0; i < sizeof(ca); i++)
		if (ca[i] != run->ca[i])
			return 1;
	return 0;
}

nn_inline void count_closed(struct bpf_sock_ops *ctx, struct bpf_sock *sk, struct nn_totals *t)
{
	struct nn_flow *f = bpf_sk_storage_get(&nn_flows, sk, 0, 0);

	__sync_fetch_and_add(&t->bytes_acked, ctx->bytes_acked);
	__sync_fetch_and_add(&t->bytes_received, ctx->bytes_received);
	__sync_fetch_and_add(&t->retransmits, ctx->total_retrans);
	if (is_plain(ctx)) {
		u32 reason = nn_plain_reason(f ? f->refused : 0);

		if (reason < NN_PLAIN_REASONS)
			__sync_fetch_and_add(&t->plain[reason], 1);
	}
	if (f) {
		__sync_fetch_and_add(&t->yielding_us, f->yielding_us);
		f->closed = 1;
	}
	__sync_fetch_and_add(&t->closed, 1);
}

SEC("sockops")
int nn_sockops(struct bpf_sock_ops *ctx)
{
	struct nn_totals *t = the_totals();
	struct bpf_sock *sk = ctx->sk;
	struct nn_run *run = the_run_of(sk);

	if (!t || !run)
		return 1;
	switch (ctx->op) {
	case BPF_SOCK_OPS_TCP_LISTEN_CB:
		/* else not all that it accepts is; and of these their SYN-ACKs allow downloads */
		if (is_chosen(sk) && !run->n_peers && run->settings.only != NN_ONLY_UP)
			mark(ctx, run);
		break;
	case BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB:
	case BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB:
		if (!is_chosen(sk) || !is_meant_by_ops(run, ctx)) {
			__sync_fetch_and_add(&t->spared, 1);
			break;
		}
		enter(ctx, sk, run);
		__sync_fetch_and_add(&t->connections, 1);
		if (is_local(ctx))
			__sync_fetch_and_add(&t->local, 1);
		bpf_sock_ops_cb_flags_set(ctx, (int)(ctx->bpf_sock_ops_cb_flags |
						     BPF_SOCK_OPS_STATE_CB_FLAG));
		break;
	case BPF_SOCK_OPS_STATE_CB:
		/* else: the socket of one that was counted, used again, reached nobody */
		if (ctx->args[1] == BPF_TCP_CLOSE && ctx->args[0] != BPF_TCP_SYN_SENT)
			count_closed(ctx, sk, t);
		break;
	}
	return 1;
}

/* A socket whose datagrams may wait in this host: from now on its devices know it; NULL: they do not. */
nn_inline struct nn_udp *known(struct bpf_sock *sk, const struct nn_run *run)
{
	struct nn_udp *u;

	if (run->n_peers)
		return NULL;
	sk = sk ? bpf_sk_fullsock(sk) : NULL;
	u = sk ? bpf_sk_storage_get(&nn_udp, sk, 0, BPF_SK_STORAGE_GET_F_CREATE) : NULL;
	if (u) {
		u->seen_us = bpf_ktime_get_ns() / 1000;
		u->up = run->settings.only != NN_ONLY_DOWN;
		u->down = run->udp_downloads;
	}
	return u;
}

/* Whether it was so lately that one waited, or might have. */
nn_inline int is_lately(u64 us)
{
	return us && bpf_ktime_get_ns() / 1000 < us + HELD_US;
}

/*
 * The run of a datagram that is not this host's own, nor to or from a server of names; NULL: it is none. The
 * server's port stands at `port_at` of its header.
 */
nn_inline struct nn_run *run_of_datagram(struct __sk_buff *skb, u32 port_at)
{
	u32 transport = 40; /* after IPv6's header */
	u8 protocol = 0, first = 0;
	struct nn_run *run;
	__be16 port = 0;

	if (skb->ifindex == LOOPBACK_IFINDEX)
		return NULL;
	if (skb->protocol == bpf_htons(ETH_P_IP)) {
		bpf_skb_load_bytes(skb, 0, &first, sizeof(first));
		bpf_skb_load_bytes(skb, 9, &protocol, sizeof(protocol));
		transport = 4 * (first & 15u);
	} else {
		bpf_skb_load_bytes(skb, 6, &protocol, sizeof(protocol));
	}
	run = protocol == IPPROTO_UDP ? chosen_run_of(skb->sk) : NULL;
	if (!run)
		return NULL;
	bpf_skb_load_bytes(skb, transport + port_at, &port, sizeof(port));
	return port != bpf_htons(PORT_DNS) ? run : NULL;
}

SEC("cgroup_skb/egress")
int nn_egress(struct __sk_buff *skb)
{
	struct nn_run *run = run_of_datagram(skb, UDP_TO);
	struct nn_totals *t = the_totals();
	const struct nn_udp *u;

	if (!run || !t)
		return 1;
	u = known(skb->sk, run);
	__sync_fetch_and_add(u && u->up && is_lately(u->held_us) ? &t->udp_held : &t->udp_bytes, skb->len);
	return 1;
}

SEC("cgroup_skb/ingress")
int nn_ingress(struct __sk_buff *skb)
{
	struct nn_run *run = run_of_datagram(skb, UDP_FROM);
	struct nn_totals *t = the_totals();
	struct nn_udp *u;

	if (!run || !t)
		return 1;
	u = known(skb->sk, run);
	if (u && u->dropped)
		__sync_fetch_and_add(&t->udp_dropped, __sync_lock_test_and_set(&u->dropped, 0));
	__sync_fetch_and_add(u && u->down && is_lately(u->pulled_us) ? &t->udp_pulled : &t->udp_received, skb->len);
	return 1;
}

SEC("cgroup/setsockopt")
int nn_setsockopt(struct bpf_sockopt *ctx)
{
	struct bpf_sock *sk = ctx->sk;
	struct nn_run *run;
	int marks, controls;

	if (ctx->optlen > PAGE_SIZE) /* more than the kernel shows: leave it unread */
		ctx->optlen = 0;
	if (!sk || (sk->protocol != IPPROTO_TCP && sk->protocol != IPPROTO_MPTCP))
		return 1;
	run = chosen_run_of(sk);
	if (!run)
		return 1;
	if (run->n_peers && sk->protocol == IPPROTO_TCP && !bpf_sk_storage_get(&nn_flows, sk, 0, 0))
		return 1; /* not in the background, or not yet: what it chooses before does not last */
	marks = run->tos != 0;
	controls = run->ca[0] != 0;
	if ((controls && ctx->level == IPPROTO_TCP && ctx->optname == TCP_CONGESTION) ||
	    (marks && ctx->level == SOL_IP && ctx->optname == IP_TOS) ||
	    (marks && ctx->level == SOL_IPV6 && ctx->optname == IPV6_TCLASS))
		ctx->optlen = -1; /* done, says the kernel, and does nothing */
	return 1;
}

#endif
