# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""M. Singh, P. Pradhan, P. Francis, "MPAT: Aggregate TCP Congestion Management"."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure

from ...claims import draw
from ...claims.claim import Drawing, Measured, Table, times
from ...claims.legacy import Statement
from ...claims.paper import Paper
from . import apart, claims, on_kernel
from .experiments import (
    BOTH,
    CM,
    FREE,
    MPAT,
    MULTCP,
    ONE,
    SIZES,
    SPLITS,
    STEP,
    TCP,
    simulated,
    split,
)

PREAMBLE = """\
*MPAT: Aggregate TCP Congestion Management as a Building Block for Internet QoS* (section 4), with
the simulator in place of Emulab and the Internet.

**Setting** (`lab/scenarios/mpat/shares.toml`): 70 ms, a link on which ten flows of TCP get the
paper's 400 kB/s each, a queue of the bandwidth times the round trip, TCP as in Linux. Where a group
is larger the link is wider, so that the fair share stays. *TCP* is Reno, with the same seed.

**Mapping.** The paper sends each packet through a congestion window; a host that sees ACKs only
charges packets to windows when their ACKs come. Verdicts are on the latter, which is what is
deployed: `core/aggregate/windows.h`. Claim M9 compares the paper's rules, *mappings* the two.

**Pace.** Members of a group are paced (`core/aggregate/group.h`), which the paper's are not; the
table of M9 has both. MulTCP and the one shared loop are not paced.

Brackets are 95 % confidence intervals over seeds, whose number the table at the end has. Verdicts
are on means, of M7 on medians, and where an interval is wide a total within 5 % may be so by
chance. Where ACKs are *free* the link of the other way has fq_codel in place of drop-tail, so that
they do not wait behind packets. Windows of CUBIC and the TFRC variant (3.3.4) are those of
`core/alg/` in groups that `core/aggregate/any.h` divides, and paces at 1.5 of their shares.

**On the kernel** (M1K, M3K, M4K; `lab/scenarios/mpat/kernel.toml`) every flow is an iperf3 under a
`netnice run --group NAME` of its own, beside five plain ones, on a link of 16 Mbit/s (M3K: 33.5): a
virtual machine needs a second for one. Seeds decide who starts when.
"""


def _by_size(measured: Measured) -> Sequence[Sequence[str]]:
    found, rows = measured["scale"], []
    for n in SIZES:
        for name in SPLITS:
            at: dict[str, Any] = {"flows": n, "split": name}
            here = found.backgrounds(**at)
            shares = split(name, n)
            rows.append(
                [
                    str(n), name,
                    *(
                        times(found.ratio("mbit", b, TCP, **at)) if b in here else ""
                        for b in (MPAT, MULTCP, CM)
                    ),
                    times(claims.worst(claims.parts(found, MPAT, shares, **at))),
                ]
            )  # fmt: skip
    return rows


SIZE_TABLE = Table(
    "Totals over those of as many flows of TCP, and the part of MPAT's flow that is farthest from "
    "its share, over that",
    ("flows", "division", "MPAT", "MulTCP", "one loop", "farthest"),
    _by_size,
)


def _figure_sizes(measured: Measured) -> Figure:
    found = measured["scale"]
    figure, axes = draw.frame("flows in the group", "total over that of as many flows of TCP")
    for name, colour, style in (
        (MPAT, draw.BLUE, "o-"), (MULTCP, draw.RED, "s--"), (CM, draw.GREY, "^:"),
    ):  # fmt: skip
        values = [found.ratio("mbit", name, TCP, flows=n, split="even") for n in SIZES]
        draw.line(axes, SIZES, values, label=name, colour=colour, style=style)
    draw.logarithmic(axes, x=SIZES)
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False)
    return figure


SIZE_FIGURE = Drawing(
    "scale", "Totals of groups by size (M2).", _figure_sizes
)  # fmt: skip


def _by_rule(measured: Measured) -> Sequence[Sequence[str]]:
    found = measured["rules"]
    return [
        [
            rule,
            *(times(found.ratio("mbit", rule, TCP, traffic=w)) for w in (BOTH, ONE, FREE)),
        ]
        for rule in claims.ALL_RULES
    ]


RULE_TABLE = Table(
    "Totals of five flows at 1:2:3:4:5 over those of five flows of TCP: by ACKs (mpat), by rules "
    "of 3.3.3, and unpaced; free ACKs have a queue of their own. A flow of TCP whose packets come "
    "bunched behind compressed ACKs is hit and halves its bunch; a member of a group becomes 1/2N "
    "smaller and is hit again",
    ("mapping", BOTH, ONE, FREE),
    _by_rule,
)


def _figure_step(measured: Measured) -> Figure:
    found = measured["step"]
    figure, axes = draw.frame("round trips after 30 Mbit/s of UDP begin", "Mbit/s of ten flows")
    trips = [n for n in STEP if isinstance(n, int)]
    for name, colour, style in ((MPAT, draw.BLUE, "o-"), (TCP, draw.GREY, "s--")):
        values = [found.mean("mbit", name, at="before")]
        values += [found.mean("mbit", name, at=n) for n in trips]
        draw.line(axes, [0, *trips], values, label=name, colour=colour, style=style)
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False)
    return figure


STEP_FIGURE = Drawing("step", "Transient congestion (M5).", _figure_step)

REPRODUCTION = Paper(
    name="mpat",
    title="MPAT reproduced",
    preamble=PREAMBLE,
    experiments=lambda: [
        *simulated(),
        apart.simulated(),
        on_kernel.simulated(),
        *on_kernel.EXPERIMENTS,
    ],
    claims=(
        Statement("M1", ("shares", "rules"), claims.m1),
        Statement("M2", ("scale", "losses"), claims.m2, (SIZE_FIGURE,), (SIZE_TABLE,)),
        Statement("M3", ("ratio",), claims.m3),
        Statement("M4", ("change",), claims.m4),
        Statement("M5", ("step", "acks"), claims.m5, (STEP_FIGURE,)),
        Statement("M6", ("groups",), claims.m6),
        Statement("M7", ("variance",), claims.m7),
        Statement("M8", ("web",), claims.m8),
        Statement("M9", ("rules",), claims.m9, (), (RULE_TABLE,)),
        Statement("mappings", ("rules",), claims.mappings),
        Statement("quickack", ("quickack",), claims.quickack),
        Statement("multcp", ("losses",), claims.multcp),
        Statement("cubic", ("windows", "paced"), claims.cubic),
        Statement("tfrc", ("windows", "smooth", "paced"), claims.tfrc),
        Statement(apart.NAME, (apart.NAME,), apart.claim, (), (apart.TABLE,)),
        Statement("M1K", (on_kernel.NAME, on_kernel.SIMULATED), on_kernel.m1),
        Statement("M3K", (on_kernel.WIDE, on_kernel.SIMULATED), on_kernel.m3),
        Statement("M3KH", (on_kernel.NAME, on_kernel.SIMULATED), on_kernel.m3_half),
        Statement("M4K", (on_kernel.NAME,), on_kernel.m4),
    ),
)
