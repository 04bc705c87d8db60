# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""C. Courcoubetis, A. Dimakis, M. Kanakakis: FAIRBAT.

"Fair Congestion Control for Long-lived Background Flows".
"""

from __future__ import annotations

from ...claims.claim import Measured, Table, times
from ...claims.legacy import Statement
from ...claims.paper import Paper
from . import claims, convergence, kernel_link, theory
from .experiments import (
    ALPHA,
    FLOWS,
    PHASE_FLOWS,
    PHASE_WEIGHTS,
    QUEUES,
    REFERENCE,
    TAU,
    TCP,
    WEIGHTS,
    fixed,
    simulated,
)
from .figures import FIGURES

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


def _weights(measured: Measured) -> list[list[str]]:
    results, rows = measured["single"], []
    for name in (*ALPHA, *TAU):
        for k in TCP:
            cells = [name, str(k)]
            for n in FLOWS:
                value = claims.weight(results, name, k, n, tcp=k, fair=n)
                expected = claims.theory(name, k, n)
                cells += [times(value, 3), f"{expected:.3f}"]
                if name in TAU:
                    cells[-1] += f" ({claims.tau_theory(name, k, n):.3f})"
            rows.append(cells)
    return rows


def _harm(measured: Measured) -> list[list[str]]:
    results, rows = measured["single"], []
    for k in TCP:
        for n in FLOWS:
            cells = [str(k), str(n)]
            for name in (*ALPHA, *TAU, REFERENCE):
                harm = results.harm(name, "fct_s", tcp=k, fair=n)
                tail = results.harm(name, "fct_p95_s", tcp=k, fair=n)
                mbit = results.mean("mbit", name, tcp=k, fair=n)
                cells.append(f"{times(harm)}; {times(tail)}; {times(mbit, 1)}")
            rows.append(cells)
    return rows


def _phases(measured: Measured) -> list[list[str]]:
    return [
        [f"{mode}-TCP", queue]
        + [
            times(claims.phase_ratio(measured, queue, n, mode, w))
            for n in PHASE_FLOWS
            for w in PHASE_WEIGHTS
        ]
        for mode in ("alpha", "tau")
        for queue in QUEUES
    ]


def _fixed(measured: Measured) -> list[list[str]]:
    rows = []
    for mode in ("alpha", "tau"):
        for w in WEIGHTS:
            name = fixed(mode, w)
            share, delay = claims.shares(measured, mode, w)
            got = claims.weight(measured["weights"], name, 1, 10)
            rows.append([f"{mode}-TCP", f"{w:g}", times(got, 3), times(share), times(delay, 1)])
    return rows


SHARES = Table(
    "Weights and theory by the number of FAIRBAT flows, gamma = 1; in brackets what tau-TCP can "
    "reach",
    ("", "k", *(c for n in FLOWS for c in (f"l = {n}", "theory"))),
    _weights,
)
HARM = Table(
    "Completion times of short flows over those without the background (with the k TCP flows), "
    "mean and 95th percentile, and Mbit/s of the background; strict priority would leave it "
    "nothing here, since TCP takes all",
    ("k", "l", *ALPHA, *TAU, REFERENCE),
    _harm,
)
PHASES = Table(
    "yi/y0 of fixed weights beside as much TCP, by queue and by how all send",
    ("", "queue", *(f"k = l = {n}, w = {w:g}" for n in PHASE_FLOWS for w in PHASE_WEIGHTS)),
    _phases,
)
FIXED = Table(
    "Fixed weights beside one TCP flow, l = 10",
    ("", "weight set", "yi/y0", "share of the spare", "delay of a short flow, s"),
    _fixed,
)

STATEMENTS = (
    Statement("F1a", ("single",), claims.f1a, [FIGURES["3"]], [SHARES]),
    Statement("F1b", ("single",), claims.f1b),
    Statement("F2a", ("single",), claims.f2a, [FIGURES["4"]], [HARM]),
    Statement("F2b", ("single",), claims.f2b),
    Statement("F3a", ("gamma", "empty", "long", "phase", "gains"), claims.f3a, [FIGURES["5"]]),
    Statement("F3b", ("gamma", "empty"), claims.f3b),
    Statement("F3c", ("sizes",), claims.f3c),
    Statement("F4a", ("phase",), claims.f4a, [FIGURES["2"]], [PHASES]),
    Statement("F4b", ("phase", "waits"), claims.f4b),
    Statement("F4c", (kernel_link.PHASE,), claims.f4c),
    Statement("F4d", (kernel_link.PACED,), claims.f4d),
    Statement("F5a", ("two-links",), claims.f5a, [FIGURES["7"]]),
    Statement("F5b", ("two-links",), claims.f5b, [FIGURES["8"]]),
    Statement("F5c", ("two-links",), claims.f5c),
    *theory.STATEMENTS,
    Statement("F6e", ("weights",), claims.f6e, [FIGURES["theorem"]], [FIXED]),
    Statement("F7a", ("starts",), claims.f7a),
    Statement("F7b", ("gains", "silences"), claims.f7b),
    Statement("F7c", (convergence.NAME,), claims.f7c, [FIGURES["weights"]]),
    Statement("F8", (kernel_link.NAME,), claims.f8),
)

REPRODUCTION = Paper(
    name="fairbat",
    title="FAIRBAT reproduced",
    preamble=PREAMBLE,
    experiments=lambda: [
        *simulated(),
        theory.EXPERIMENT,
        convergence.EXPERIMENT,
        *kernel_link.EXPERIMENTS,
    ],
    claims=STATEMENTS,
)
