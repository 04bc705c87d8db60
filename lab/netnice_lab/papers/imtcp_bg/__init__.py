# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""T. Tsugawa, G. Hasegawa, M. Murata, "Background TCP Data Transfer with Inline Network
Measurement": ImTCP-bg, and the measurement of ImTCP that it rests on.
"""  # noqa: D205

from __future__ import annotations

from ...claims.paper import Paper, of_modules
from . import accuracy, claims, five, on_kernel
from .experiments import simulated

PREAMBLE = """\
*Background TCP data transfer with inline network measurement* (section IV). The simulator stands
in for ns-2. The measurement of ImTCP is judged as a whole (I1); its own papers are not reproduced
claim by claim.

**Setting** (`lab/scenarios/imtcp-bg`): 100 Mbit/s, 10 ms one way, a drop-tail queue of 1000
packets of 1500 bytes. N_web web servers and 200 clients have access links of 10 to 100 Mbit/s and
10 to 100 ms. The paper does not describe its web traffic. Here each server has 1 Mbit/s of
fetches: Poisson arrivals, Pareto sizes of mean 30 kB, receivers that offer 20 packets. TCP is
Linux's. (Without SACK, as in ns-2, Reno, TCP-LP and strict priority never recover from the end of
a slow start that fills 1000 packets.) *Nice* has the rules of its report.

**Accuracy** (I1): constant and Poisson traffic step through 10, 30, 50, 70, 90, 50 and 10 Mbit/s,
every 10 s. Web traffic has one level in a run of 55 s. Errors are those of each result from 2 s
after a step on; beside web traffic they are against what it left in the last half second. A step
is followed at the first of five results in a row whose median error is 20 % or less.

**Our ImTCP-bg** differs from the paper (`core/alg/imtcp_bg.h`) by delta (1.35 instead of 1.2) and
gamma (1/32 instead of 1/8); by `climb`, the growth below the bound; by `swell` and `drain`, with
which the bound and a decrease leave the queue that delta tolerates; by `least`, windows below two
packets; and wherever the papers leave something open (`core/measure/avail.h`).

Brackets are 95 % confidence intervals over seeds.
"""

REPRODUCTION = Paper(
    name="imtcp-bg",
    title="ImTCP-bg reproduced",
    preamble=PREAMBLE,
    experiments=lambda: [
        *simulated(), *accuracy.EXPERIMENTS, five.EXPERIMENT, on_kernel.EXPERIMENT,
    ],
    claims=of_modules(claims),
)  # fmt: skip
