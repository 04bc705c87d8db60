# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""C. Courcoubetis, A. Dimakis, M. Kanakakis: FAIRBAT.

"Fair Congestion Control for Long-lived Background Flows".
"""

from __future__ import annotations

from ...claims.paper import Paper, of_modules
from . import convergence, kernel_link, links, phase, settling, theory, theory_claims, weights
from .experiments import simulated

PREAMBLE = """\
*Fair Congestion Control for Long-lived Background Flows* (sections II to IV and the appendix). The
simulator stands in for ns-2; F4c, F4d and F8 are of the Linux kernel in virtual time.

**Setting** (`lab/scenarios/fairbat/`): links carry 14 Mbit/s of payload in packets of 1000 bytes.
Short flows arrive as a Poisson process, 1/6 in a second on the single link and 1/12 on the two
links, with exponential sizes of mean 3 MB. The single link has RED, and TCP as in ns-2. The two
links have drop-tail, and Linux's TCP: with NewReno, a short flow's slow start into a full queue
costs it a round trip for each lost packet. Runs are measured for 1200 s on the single link, after
400 s, and for 800 s on the two links, after 300 s: weights have settled by then (F7a, F7c). Figure
5 has three values of gamma.

The paper gives no RTTs, buffers, periods or gains. The scenarios say what was taken; F7 says how
little the weights depend on it.

**What is run** is `core/alg/fairbat.h` with its defaults, which deviate from III.C and III.D in
three ways that leave the equilibria as they are. The step of the weight is scaled by y/R
(`step=scaled`; F7 has the paper's too). The average is of x/w, with the weight at the time,
instead of x. The first sample is dropped.

**Numbers.** Weights are yi/y0 of measured throughputs. Theory is (3) and (4) with 10 Mbit/s for
the long-lived flows. Delays are mean completion times. The delay impact is (D - D0)/24 Mbit, with
D0 measured on the same link without any background. Brackets are 95 % confidence intervals over
seeds. Where the paper has words instead of a number, the claim says in brackets which number was
taken.
"""

REPRODUCTION = Paper(
    name="fairbat",
    title="FAIRBAT reproduced",
    preamble=PREAMBLE,
    experiments=lambda: [
        *simulated(), theory.EXPERIMENT, convergence.EXPERIMENT, *kernel_link.EXPERIMENTS,
    ],
    claims=of_modules(weights, phase, links, theory_claims, settling),
)  # fmt: skip
