// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* The table of user.h, from algorithms.def. */
#include "user.h"

#define NN_ALGORITHM(name) extern const struct nn_algorithm nn_algorithm_##name;
#include "algorithms.def"
#undef NN_ALGORITHM

#define NN_ALGORITHM(name) &nn_algorithm_##name,
const struct nn_algorithm *const nn_algorithms[] = {
#include "algorithms.def"
};
#undef NN_ALGORITHM

const u32 nn_n_algorithms = sizeof(nn_algorithms) / sizeof(nn_algorithms[0]);
