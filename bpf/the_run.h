/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The run whose programs these are. */
#ifndef NN_THE_RUN_H
#define NN_THE_RUN_H

#include "kernel.h"
#include "flow.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct nn_run);
} nn_run SEC(".maps");

nn_inline struct nn_run *the_run(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&nn_run, &zero);
}

#endif
