// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * Puts every TCP connection of one cgroup into the background: the programs of
 * one `netnice run`, loaded and attached for it, gone with its cgroup.
 *
 * connect4, connect6: before the SYN, so that it carries the DSCP already.
 * sockops: connections accepted, and those opened through other doors.
 * setsockopt: the command cannot choose its congestion control or DSCP itself;
 * it is told that it could, for programs that treat a refusal as fatal.
 */
#include "kernel.h"
#include "shared.h"

char _license[] SEC("license") = "Dual MIT/GPL";

#define IPPROTO_TCP 6
#define IPPROTO_MPTCP 262 /* hands its options on to the TCP connections below it */
#define SOL_IP 0
#define IP_TOS 1
#define SOL_IPV6 41
#define IPV6_TCLASS 67
#define TCP_CONGESTION 13
#define PAGE_SIZE 4096

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct nn_run);
} nn_run SEC(".maps");

struct nn_totals totals SEC(".data.totals");

nn_inline struct nn_run *the_run(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&nn_run, &zero);
}

nn_inline void enter(void *ctx, struct bpf_sock *sk)
{
	struct nn_run *run = the_run();
	struct nn_flow *f;
	int tos;

	if (!sk || !run)
		return;
	f = bpf_sk_storage_get(&nn_flows, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (f)
		f->settings = run->settings;
	bpf_setsockopt(ctx, IPPROTO_TCP, TCP_CONGESTION, run->ca, sizeof(run->ca));
	tos = (int)run->tos;
	if (tos) { /* one of the two fits the socket's family */
		bpf_setsockopt(ctx, SOL_IP, IP_TOS, &tos, sizeof(tos));
		bpf_setsockopt(ctx, SOL_IPV6, IPV6_TCLASS, &tos, sizeof(tos));
	}
}

SEC("cgroup/connect4")
int nn_connect4(struct bpf_sock_addr *ctx)
{
	if (ctx->protocol == IPPROTO_TCP)
		enter(ctx, ctx->sk);
	return 1;
}

SEC("cgroup/connect6")
int nn_connect6(struct bpf_sock_addr *ctx)
{
	if (ctx->protocol == IPPROTO_TCP)
		enter(ctx, ctx->sk);
	return 1;
}

SEC("sockops")
int nn_sockops(struct bpf_sock_ops *ctx)
{
	struct bpf_sock *sk = ctx->sk;
	struct nn_flow *f;

	switch (ctx->op) {
	case BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB:
	case BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB:
		enter(ctx, sk);
		__sync_fetch_and_add(&totals.connections, 1);
		bpf_sock_ops_cb_flags_set(ctx, (int)(ctx->bpf_sock_ops_cb_flags |
						     BPF_SOCK_OPS_STATE_CB_FLAG));
		break;
	case BPF_SOCK_OPS_STATE_CB:
		if (ctx->args[1] != BPF_TCP_CLOSE || !sk)
			break;
		__sync_fetch_and_add(&totals.bytes_acked, ctx->bytes_acked);
		__sync_fetch_and_add(&totals.retransmits, ctx->total_retrans);
		f = bpf_sk_storage_get(&nn_flows, sk, 0, 0);
		if (f) {
			__sync_fetch_and_add(&totals.yielding_us, f->yielding_us);
			f->closed = 1;
		}
		break;
	}
	return 1;
}

SEC("cgroup/setsockopt")
int nn_setsockopt(struct bpf_sockopt *ctx)
{
	struct bpf_sock *sk = ctx->sk;
	struct nn_run *run = the_run();
	int marks = run && run->tos;

	if (ctx->optlen > PAGE_SIZE) /* more than the kernel shows: leave it unread */
		ctx->optlen = 0;
	if (!sk || (sk->protocol != IPPROTO_TCP && sk->protocol != IPPROTO_MPTCP))
		return 1;
	if ((ctx->level == IPPROTO_TCP && ctx->optname == TCP_CONGESTION) ||
	    (marks && ctx->level == SOL_IP && ctx->optname == IP_TOS) ||
	    (marks && ctx->level == SOL_IPV6 && ctx->optname == IPV6_TCLASS))
		ctx->optlen = -1; /* done, says the kernel, and does nothing */
	return 1;
}
