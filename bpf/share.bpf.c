// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* Changes one parameter of every connection of a run, while they go on: `netnice share`. */
#include "kernel.h"
#include "shared.h"

char _license[] SEC("license") = "Dual MIT/GPL";

const volatile struct nn_change change SEC(".rodata.change");

SEC("iter/bpf_sk_storage_map")
int nn_share(struct bpf_iter__bpf_sk_storage_map *ctx)
{
	struct nn_flow *f = ctx->value;

	if (f && f->settings.run == change.run && change.param < NN_PARAMS_MAX)
		f->settings.cfg[change.param] = change.value;
	return 0;
}
