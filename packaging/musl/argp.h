/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What a helper beside libelf declares of its options. musl has no argp, and libelf calls none of it:
 * nothing that is linked uses this.
 */
#pragma once

#include <errno.h>
#include <stdio.h>

typedef int error_t;

struct argp_state {
	char *name;
};

struct argp_option {
	const char *name;
	int key;
	const char *arg;
	int flags;
	const char *doc;
	int group;
};

struct argp {
	const struct argp_option *options;
	error_t (*parser)(int key, char *arg, struct argp_state *state);
	const void *unused_1, *unused_2, *unused_3, *unused_4, *unused_5;
};

#define OPTION_ARG_OPTIONAL 0x1
#define ARGP_HELP_SEE 0x4
#define ARGP_ERR_UNKNOWN E2BIG

void argp_help(const struct argp *argp, FILE *stream, unsigned int flags, char *name);
