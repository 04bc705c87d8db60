# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""T. Tsugawa, G. Hasegawa, M. Murata, "Background TCP Data Transfer with Inline Network
Measurement": ImTCP-bg, and the measurement of ImTCP that it rests on.
"""  # noqa: D205

from __future__ import annotations

from collections.abc import Sequence

from ...claims.claim import Measured, Table, percent, times
from ...claims.legacy import Statement
from ...claims.paper import Paper
from ...claims.results import Results
from . import accuracy, claims, figures, five, on_kernel
from .experiments import NS2, SERVERS, simulated

PREAMBLE = """\
*Background TCP data transfer with inline network measurement* (section IV), with the simulator in
place of ns-2, and the measurement of ImTCP by itself, whose papers are not reproduced claim by
claim.

**Setting** (`lab/scenarios/imtcp-bg`): 100 Mbit/s, 10 ms one way, 1000 packets of 1500 bytes of
drop-tail. N_web web servers and 200 clients have access links of 10 to 100 Mbit/s and 10 to 100 ms.
A server is 1 Mbit/s of fetches, Poisson arrivals, Pareto sizes of mean 30 kB, by receivers that
offer 20 packets; the paper does not give its web traffic. TCP is Linux's: without SACK, as in
ns-2, Reno, TCP-LP and strict priority never recover from the end of a slow start that fills 1000
packets. *Nice* has the rules of its report.

**Accuracy** (I1): constant and Poisson traffic step through 10, 30, 50, 70, 90, 50 and 10 Mbit/s
every 10 s; web traffic has one level in a run of 55 s. The error is of each result from 2 s after
a step on; the truth beside web traffic is what it left in the last half second. A step is
followed at the first result from which on five have a median error of 20 % or less.

**Our ImTCP-bg** differs from the paper by delta (1.35; 1.2) and gamma (1/32; 1/8), by `climb`, the
growth below the bound, by `swell` and `drain`, with which the bound and a decrease leave the queue
that delta tolerates, and by `least`, windows below two packets (`core/alg/imtcp_bg.h`), and
wherever the papers are silent (`core/measure/avail.h`). Brackets are 95 % confidence intervals over
seeds.
"""


def _cells(measured: Measured) -> list[list[str]]:
    return _rows(measured[accuracy.NAME], accuracy.KINDS)


def _small(measured: Measured) -> list[list[str]]:
    return _rows(measured[accuracy.SMALL_NAME], [accuracy.SMALL])


def _rows(found: Results, kinds: Sequence[str]) -> list[list[str]]:
    rows = []
    for traffic in kinds:
        for at in claims.levels(found, traffic):
            row = [traffic, f"{at['begin_s']:g}", f"{accuracy.LINK_MBIT - at['mbit']:g}"]
            for name in accuracy.ALGORITHMS:
                row += [
                    percent(claims.mean(found, "error", name, at)),
                    percent(claims.mean(found, "bias", name, at)),
                    times(claims.mean(found, "per_rtt", name, at)),
                    times(claims.mean(found, "follow_s", name, at)),
                ]
            rows.append(row)
    return rows


def _web(measured: Measured) -> list[list[str]]:
    found = measured["web"]
    return [
        [
            name,
            *(
                f"{percent(found.share(name, servers=n))} at "
                f"{times(found.harm(name, 'fct_s', servers=n))}"
                for n in SERVERS
            ),
        ]
        for name in found.backgrounds(servers=SERVERS[0])[2:]
    ]


def _trade(measured: Measured) -> list[list[str]]:
    found = measured["trade-off"]
    return [
        [
            f"{at['gamma']:g}", f"{at['delta']:g}", percent(found.share("imtcp_bg", **at)),
            times(found.harm("imtcp_bg", "fct_s", **at)),
            times(found.harm("imtcp_bg", **at)),
        ]
        for at in (p["at"] for p in found.document["points"])
    ]  # fmt: skip


CELLS = Table(
    "Mbit/s left; median relative error, bias, results in a round trip, seconds to follow",
    ("traffic", "from s", "left", *(f"{n} {w}" for n in accuracy.ALGORITHMS
                                    for w in ("error", "bias", "per RTT", "follow s"))),
    _cells,
)  # fmt: skip
SMALL = Table(
    "Mbit/s left; median relative error, bias, results in a round trip, seconds to follow",
    ("traffic", "from s", "left", *(f"{n} {w}" for n in accuracy.ALGORITHMS
                                    for w in ("error", "bias", "per RTT", "follow s"))),
    _small,
)  # fmt: skip
WEB = Table(
    "Share of strict priority's goodput at times the download time without background, by servers",
    ("", *(str(n) for n in SERVERS)),
    _web,
)
TRADE = Table("50 servers", ("gamma", "delta", "share", "download time", "packet latency"), _trade)

REPRODUCTION = Paper(
    name="imtcp-bg",
    title="ImTCP-bg reproduced",
    preamble=PREAMBLE,
    experiments=lambda: [
        *simulated(),
        *accuracy.EXPERIMENTS,
        five.EXPERIMENT,
        on_kernel.EXPERIMENT,
    ],
    claims=(
        Statement(
            "I1",
            [accuracy.NAME, accuracy.SMALL_NAME],
            claims.i1,
            [figures.STEPS, figures.ERRORS],
            [CELLS],
        ),
        Statement("I1A", [accuracy.SMALL_NAME], claims.i1a, tables=[SMALL]),
        Statement(
            "I2", ["web", "trade-off", NS2], claims.i2, [figures.FIGURE_2, figures.FIGURE_3], [WEB]
        ),
        Statement("I3", [five.NAME], claims.i3, [figures.FIGURE_4]),
        Statement("I4", ["web", "trade-off"], claims.i4, [figures.TRADE_OFF], [TRADE]),
        Statement("I5", ["web", five.NAME], claims.i5),
        Statement("K1S", ["k1-simulated"], claims.k1_simulated),
        Statement("K1", [on_kernel.NAME], claims.k1),
    ),
)
