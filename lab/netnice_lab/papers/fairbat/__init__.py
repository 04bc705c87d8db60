# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""C. Courcoubetis, A. Dimakis, M. Kanakakis: FAIRBAT.

"Fair Congestion Control for Long-lived Background Flows".
"""

from __future__ import annotations

from ...claims.paper import Paper, of_modules
from . import convergence, kernel_link, links, phase, settling, theory, theory_claims, weights
from .experiments import simulated

PREAMBLE = """\
*Fair Congestion Control for Long-lived Background Flows* (sections II to IV and the appendix), with
the simulator in place of ns-2. F4c, F4d and F8 are of the Linux kernel in virtual time.

**Setting** (`lab/scenarios/fairbat/`): links carry 14 Mbit/s of payload in packets of 1000 bytes;
short flows arrive as a Poisson process with exponential sizes of mean 3 MB, 1/6 in a second on the
single link and 1/12 on the two links. The single link has RED and TCP as in ns-2, the two links
drop-tail and Linux's TCP: with NewReno, a short flow's slow start into a full queue costs it a
round trip for each packet lost. The paper gives neither round-trip times nor buffers nor the
algorithms' periods and gains; the scenarios say what was taken, and F7 how little the weights
depend on it. Runs are measured for 1200 s on the single link and 800 s on the two links, after
400 and 300 s: weights have settled by then (F7a, F7c). gamma has three values in figure 5.

**What is run** is `core/alg/fairbat.h` with its defaults, which deviate from III.C and III.D: the
paper's step of the weight is scaled by y/R (`step=scaled`; F7 has the paper's too), what is
averaged is x/w with the weight of its time and not x, and the first sample is dropped. They have
the same equilibria.

**Numbers.** Weights are yi/y0 of throughputs as measured; theory is (3) and (4) with 10 Mbit/s for
the long-lived flows. Delays are mean completion times. The delay impact is (D - D0)/24 Mbit, with
D0 measured on the same link without any background. Brackets are 95 % confidence intervals over
seeds. Where the paper has words instead of a number, what was taken for it stands in the claim.
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
