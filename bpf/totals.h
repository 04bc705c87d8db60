/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* What a run adds up to, as its programs find it. */
#ifndef NN_TOTALS_H
#define NN_TOTALS_H

#include "flow.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct nn_totals);
} nn_totals SEC(".maps");

nn_inline struct nn_totals *the_totals(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&nn_totals, &zero);
}

#endif
