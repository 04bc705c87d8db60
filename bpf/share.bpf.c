// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* Changes one parameter of every connection of a run, while they go on: `netnice share`. */
#include "kernel.h"
#include "shared.h"

char _license[] SEC("license") = "Dual MIT/GPL";

const volatile struct nn_change change SEC(".rodata.change");

nn_inline void share(struct nn_flow *f)
{
	if (f && f->settings.run == change.run && change.param < NN_PARAMS_MAX)
		f->settings.cfg[change.param] = change.value;
}

SEC("iter/bpf_sk_storage_map")
int nn_share(struct bpf_iter__bpf_sk_storage_map *ctx)
{
	share(ctx->value);
	return 0;
}

/* The same of one network namespace, as in status.bpf.c. */
SEC("iter/tcp")
int nn_share_tcp(struct bpf_iter__tcp *ctx)
{
	struct sock_common *skc = ctx->sk_common;
	struct tcp_sock *tp = skc ? bpf_skc_to_tcp_sock(skc) : NULL;

	share(tp ? bpf_sk_storage_get(&nn_flows, tp, 0, 0) : NULL);
	return 0;
}
