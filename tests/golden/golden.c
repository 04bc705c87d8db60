/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Prints the golden traces of one algorithm, NN_ALG: a line with the hash of
 * all its states and answers and the final window (Q16), with the parameters'
 * defaults, with every parameter at 1/64 of its range, and of a group of flows
 * half of which have the former, half the latter.
 */
#include <stdio.h>

#include "../../core/replay.h"
#include "steps.h"

#define AT_64TH(name, def, least, most, unit, source, help)                                        \
	NN_Q16(least) + (NN_Q16(most) - NN_Q16(least)) / 64,

static void print_line(const char *what, u64 hash, u64 cwnd_q16)
{
	printf("%s %s %016llx %llu\n", NN_STR(NN_ALG), what, (unsigned long long)hash,
	       (unsigned long long)cwnd_q16);
}

static void print(const char *parameters, const u32 *cfg)
{
	struct path p = path_at_start;
	struct nn_trace t = { 0 };

	for (u32 i = 0; i < N_STEPS; i++) {
		struct nn_step step = next_step(&p, i);

		nn_trace_step(&t, cfg, i, &step);
	}
	print_line(parameters, t.hash, t.ctl.cwnd_q16);
}

static void print_group(const u32 *cfg, const u32 *other)
{
	static struct nn_group_trace t;
	struct path p = path_at_start;

	for (u32 i = 0; i < N_STEPS; i++) {
		struct nn_step step = next_step(&p, i);

		nn_trace_group_step(&t, cfg, other, i, &step);
	}
	print_line("group", t.hash, t.flow[0].ctl.cwnd_q16);
}

int main(void)
{
	/* the last entry keeps the arrays from being empty */
	static const u32 defaults[] = { NN_PARAMS(NN_DEFAULT) 0 };
	static const u32 others[] = { NN_PARAMS(AT_64TH) 0 };

	print("defaults", defaults);
	print("others", others);
	print_group(defaults, others);
	return 0;
}
