# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Tables of the page on ImTCP-bg."""

from __future__ import annotations

from collections.abc import Sequence

from ...claims.claim import Measured, Table, percent, times
from ...claims.results import Results
from . import accuracy
from .experiments import SERVERS
from .levels import levels, mean


def _cells(measured: Measured) -> list[list[str]]:
    return _rows(measured[accuracy.NAME], accuracy.KINDS)


def _small(measured: Measured) -> list[list[str]]:
    return _rows(measured[accuracy.SMALL_NAME], [accuracy.SMALL])


def _rows(found: Results, kinds: Sequence[str]) -> list[list[str]]:
    rows = []
    for traffic in kinds:
        for at in levels(found, traffic):
            row = [traffic, f"{at['begin_s']:g}", f"{accuracy.LINK_MBIT - at['mbit']:g}"]
            for name in accuracy.ALGORITHMS:
                row += [
                    percent(mean(found, "error", name, at)),
                    percent(mean(found, "bias", name, at)),
                    times(mean(found, "per_rtt", name, at)),
                    times(mean(found, "follow_s", name, at)),
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
