/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What tests must know of an algorithm to say what is right: its header names the
 * traits that it has as nn_<name>_traits. One without any grows by no more than is
 * acknowledged, and does so again in the same way on a path that is twice as long.
 */
#ifndef NN_TRAITS_H
#define NN_TRAITS_H

#define NN_YIELDS 1u	/* a queue that others keep full brings it below two packets */
#define NN_GREEDY 2u	/* its parameters may let it grow by more than was acknowledged */
#define NN_SILENT 4u	/* it is silent for times of its own, and then as it was before */
#define NN_ROUNDS 8u	/* it grows by a packet at the end of a round, whatever the ACK that ends it */
#define NN_TIMED 16u	/* it rounds averages of times, or compares with times of its own */

#endif
