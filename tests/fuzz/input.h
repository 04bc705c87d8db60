/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* What all fuzzers share: the input, and how a property that does not hold is told. */
#ifndef NN_FUZZ_INPUT_H
#define NN_FUZZ_INPUT_H

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

/* A property, by the sentence that it is. */
#define HOLDS(sentence, what)                                                                      \
	do {                                                                                       \
		if (!(what)) {                                                                     \
			fprintf(stderr, "violated: %s (%s, %s:%d)\n", sentence, #what, __FILE__,   \
				__LINE__);                                                         \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

struct fuzz_input {
	const u8 *data;
	size_t left;
};

/* A number of `bytes` bytes; zero where the input has ended. */
static inline u64 fuzz_take(struct fuzz_input *in, size_t bytes)
{
	u64 x = 0;

	for (; bytes && in->left; bytes--, in->left--)
		x = x << 8 | *in->data++;
	return x;
}

#endif
