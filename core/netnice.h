/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* All that an algorithm's header needs: its interface, arithmetic, and lists. */
#ifndef NETNICE_H
#define NETNICE_H

#include "interface.h"
#include "arith.h"
#include "params.h"
#include "shown.h"
#include "traits.h"

#endif
