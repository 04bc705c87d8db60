/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What all fuzzers of algorithms share beside the input: the parameters, and
 * what a flow shows. Include it after core/flow.h.
 */
#ifndef NN_FUZZ_H
#define NN_FUZZ_H

#include <string.h>

#include "input.h"

/* Whether the algorithm has one of the traits of traits.h. */
#if NN_OP(traits)
#define FACT(trait) ((NN_OP(traits) & (trait)) != 0)
#else
#define FACT(trait) 0
#endif

struct fuzz_range {
	const char *name;
	u32 def, least, most; /* Q16 */
};

#define FUZZ_RANGE(name, def, least, most, unit, source, help)                                     \
	{ #name, NN_Q16(def), NN_Q16(least), NN_Q16(most) },
static const struct fuzz_range fuzz_ranges[] = { NN_PARAMS(FUZZ_RANGE) { 0 } };

/* A value of the parameter: any within its range, or its default. */
static inline u32 fuzz_value(const struct fuzz_range *r, struct fuzz_input *in)
{
	if (!(fuzz_take(in, 1) & 1))
		return r->def;
	return (u32)(r->least + fuzz_take(in, 4) % (r->most - r->least + 1ull));
}

static inline void fuzz_config(u32 *cfg, struct fuzz_input *in)
{
	for (int i = 0; i < NN_N_PARAMS; i++)
		cfg[i] = fuzz_value(&fuzz_ranges[i], in);
}

static inline void fuzz_defaults(u32 *cfg)
{
	for (int i = 0; i < NN_N_PARAMS; i++)
		cfg[i] = fuzz_ranges[i].def;
}

#define FUZZ_NAME(name, unit, help, value) #name,

/* The place of a parameter among them, or -1. */
static inline int fuzz_index(const char *name)
{
	for (int i = 0; i < NN_N_PARAMS; i++)
		if (!strcmp(fuzz_ranges[i].name, name))
			return i;
	return -1;
}

/* A parameter's value, or `otherwise` where the algorithm has none of that name. */
static inline u64 fuzz_param(const u32 *cfg, const char *name, u64 otherwise)
{
	int i = fuzz_index(name);

	return i < 0 ? otherwise : cfg[i];
}

/* What the flow shows under a name; zero where the algorithm shows none. */
static inline struct nn_value fuzz_shown(const NN_STATE *s, const u32 *cfg, const char *name)
{
	static const char *const names[] = { NN_SHOWN(FUZZ_NAME, s, c) "" };
	struct nn_value values[NN_SHOWN_MAX] = { 0 };

	nn_flow_show(s, (const NN_CFG *)cfg, values);
	for (int i = 0; i < NN_N_SHOWN; i++)
		if (!strcmp(names[i], name))
			return values[i];
	return (struct nn_value){ 0 };
}

#endif
