/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Names and values of algorithms and parameters, as callers of the library write them. */
#ifndef LIBNETNICE_LISTS_H
#define LIBNETNICE_LISTS_H

#include "../core/user.h"
#include "netnice.h"

#define EXPORT __attribute__((visibility("default")))

/* Whether `text` is the `length` characters at `name`. */
int nn_is(const char *text, const char *name, size_t length);

/* A constant of the tables as Q16. */
u32 nn_q16(double constant);

/* The algorithm of that name, or NULL. */
const struct nn_algorithm *nn_named(const char *name);

/* The value of a parameter that a text means: a number, or the name of a choice. Or an error. */
int nn_value_of(const struct nn_param *p, const char *text, u32 *value);

#endif
