// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * Lists every flow, for `netnice status`: a struct nn_record each. The second program lists those of one network
 * namespace, on kernels that refuse to walk over storage (crates/netnice-bpf/src/walk.rs).
 */
#include "kernel.h"
#include "shared.h"

char _license[] SEC("license") = "Dual MIT/GPL";

nn_inline void address(u32 to[4], const struct in6_addr *v6)
{
	for (int i = 0; i < 4; i++)
		to[i] = v6->in6_u.u6_addr32[i];
}

nn_inline void show(struct seq_file *seq, struct tcp_sock *tp, struct nn_flow *f)
{
	struct sock *sk = &tp->inet_conn.icsk_inet.sk;
	/* all but the flow itself, which would not fit on the stack */
	u8 head[__builtin_offsetof(struct nn_record, flow)] __attribute__((aligned(8))) = {};
	struct nn_record *r = (struct nn_record *)head;

	BPF_CORE_READ_STR_INTO(&r->ca, tp, inet_conn.icsk_ca_ops, name);
	r->family = sk->__sk_common.skc_family;
	r->tcp_state = sk->__sk_common.skc_state;
	r->sport = sk->__sk_common.skc_num;
	r->dport = __builtin_bswap16(sk->__sk_common.skc_dport);
	if (r->family == AF_INET) {
		r->saddr[0] = sk->__sk_common.skc_rcv_saddr;
		r->daddr[0] = sk->__sk_common.skc_daddr;
	} else {
		address(r->saddr, &sk->__sk_common.skc_v6_rcv_saddr);
		address(r->daddr, &sk->__sk_common.skc_v6_daddr);
	}
	r->bytes_acked = tp->bytes_acked;
	r->bytes_received = tp->bytes_received;
	r->bytes_unsent = tp->write_seq - tp->snd_una;
	r->retransmits = tp->total_retrans;
	r->srtt_us = tp->srtt_us >> 3;
	r->mss = tp->mss_cache;
	r->snd_cwnd = tp->snd_cwnd;
	r->plain = nn_plain_reason(f->refused);
	r->inode = BPF_CORE_READ(sk, sk_socket, file, f_inode, i_ino);
	r->orphaned = BPF_CORE_READ(sk, __sk_common.skc_flags) >> SOCK_DEAD & 1;
	bpf_seq_write(seq, head, sizeof(head));
	bpf_seq_write(seq, f, sizeof(*f));
}

SEC("iter/bpf_sk_storage_map")
int nn_status(struct bpf_iter__bpf_sk_storage_map *ctx)
{
	struct nn_flow *f = ctx->value;
	struct tcp_sock *tp;

	if (!ctx->sk || !f)
		return 0;
	tp = bpf_skc_to_tcp_sock(ctx->sk);
	if (tp)
		show(ctx->meta->seq, tp, f);
	return 0;
}

SEC("iter/tcp")
int nn_status_tcp(struct bpf_iter__tcp *ctx)
{
	struct sock_common *skc = ctx->sk_common;
	struct tcp_sock *tp = skc ? bpf_skc_to_tcp_sock(skc) : NULL;
	struct nn_flow *f = tp ? bpf_sk_storage_get(&nn_flows, tp, 0, 0) : NULL;

	if (f)
		show(ctx->meta->seq, tp, f);
	return 0;
}
