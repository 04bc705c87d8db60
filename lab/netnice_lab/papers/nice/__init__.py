# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""A. Venkataramani, R. Kokku, M. Dahlin, "System Support for Background Replication": TCP Nice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...claims.claim import Measured, Table, percent, times
from ...claims.legacy import Statement
from ...claims.paper import Paper
from ...scenario import NONE
from . import claims, path_changes, paths, theorem
from .experiments import (
    ABLATIONS,
    BOTH,
    COMPARED,
    FLOOR,
    OURS,
    PAPER,
    RULED,
    RULES,
    SETTINGS,
    WITHOUT,
    simulated,
)
from .figures import FIGURES

PREAMBLE = """\
The technical report of TCP Nice, *System Support for Background Replication* (sections 2 to 5 and
appendices), with the simulator in place of ns-2 (N1 to N10, N12) and the Linux kernel in
virtual time in place of the Internet (N11).

**Two kinds of Nice.** *Nice* is the report's literal rule, which verdicts are on: threshold 0.1,
fraction 0.5, alpha 1, beta 3, windows halved below two packets too, growth in every round without
congestion, one verdict a round trip. *Our default* is `nice` as it is deployed, with the
deviations that `core/alg/nice.h` lists.

**Setting** (`lab/scenarios/nice/web.toml`): 50 packets of 1024 bytes of drop-tail, 50 ms one way,
TCP as in ns-2 (an initial window of 2, NewReno, an ACK for each packet, timeouts of 1 s and
more). The foreground replays our web log, since the report's trace is not public: all of it in 15
minutes, requests cut to 100 kB, a mean demand of 1.42 Mbit/s. The report does not give its
demand, but what one flow carries beside one of window 1 (N9) asks for 1.5 Mbit/s or so. Its
"about 12 active clients" are not met: about 3 requests are open at a time without background. The
link has (1 + S) times the demand.

**Numbers.** Latency is the report's: from the first sending of a foreground packet to its ACK,
waiting for retransmissions included. Where it says *times*, that is over no background with the
same seed. Shares are of the goodput under strict router priority. Brackets are 95 % confidence
intervals over seeds. Where the report has words instead of a number, what was taken for it stands
in the claim.
"""


NAMES = {"reno": "Reno", "vegas": "Vegas", "window 1": "window 1", FLOOR: "Nice, windows ≥ 1"}
"""What tables call backgrounds."""


def _by_setting(flows: int) -> Callable[[Measured], Sequence[Sequence[str]]]:
    def rows(measured: Measured) -> list[list[str]]:
        found = measured["settings"]
        out = []
        for name in SETTINGS:
            at: dict[str, Any] = {"setting": name, "flows": flows}
            cells = [name, f"{found.mean('open', NONE, **at)['mean']:.1f}"]
            for kind in BOTH:
                cells += [
                    times(found.harm(kind, **at)), times(found.harm(kind, "fct_s", **at)),
                    percent(found.share(kind, **at)),
                ]  # fmt: skip
            others = [b for b in COMPARED[flows] if b not in BOTH]
            out.append(cells + [times(found.harm(b, **at), 1) for b in others])
        return out

    return rows


def _settings(flows: int) -> Table:
    return Table(
        f"By setting, {flows} flow{'s' * (flows > 1)}, S = 1: requests open at a time without "
        "background; latency and FCT over none, and share of the spare",
        (
            "setting", "open", "Nice", "FCT", "share", "our default", "FCT", "share",
            *(NAMES[b] for b in COMPARED[flows] if b not in BOTH),
        ),
        _by_setting(flows),
    )  # fmt: skip


def _by_rule(measured: Measured) -> list[list[str]]:
    found, rows = measured["rules"], []
    for name in RULES:
        cells = [name]
        for n in RULED:
            at: dict[str, Any] = {"rule": name, "flows": n}
            cells += [
                times(found.harm(PAPER, **at)), times(found.harm(PAPER, "fct_s", **at)),
                percent(found.share(PAPER, **at)),
            ]  # fmt: skip
        rows.append(cells)
    return rows


def _ablation(measured: Measured) -> list[list[str]]:
    found = measured["flows"]
    rows = []
    for kind in BOTH:
        for name in (kind, *(WITHOUT[kind, part] for part in ABLATIONS)):
            cells = [name.replace(OURS, "our default")]
            for n in (1, 16, 64):
                cells += [times(found.harm(name, flows=n)), percent(found.share(name, flows=n))]
            rows.append(cells)
    return rows


RULES_TABLE = Table(
    "Changes to the report's rules, S = 1: latency and FCT over none, and share of the spare",
    ("rule", "16 flows", "FCT", "share", "100 flows", "FCT", "share"),
    _by_rule,
)
ABLATION_TABLE = Table(
    "The additions to Vegas taken out, S = 1: latency over none, and share of the spare",
    ("", "1 flow", "share", "16 flows", "share", "64 flows", "share"),
    _ablation,
)


def _by_path(measured: Measured) -> list[list[str]]:
    found = measured[paths.NAME]
    names = [name for name in found.backgrounds(path=paths.PATHS[0]) if name != paths.ALONE]
    return [
        [name, *(percent(paths.kept(found, path, name)) for path in paths.PATHS)] for name in names
    ]


def _by_change(measured: Measured) -> list[list[str]]:
    found = measured[path_changes.NAME]
    names = [paths.action(name, flows) for flows in paths.SECONDARY for name in BOTH]
    return [
        [
            path, change,
            *(percent(path_changes.kept(found, path, change, name)) for name in names),
        ]
        for path in paths.PATHS
        for change in path_changes.changes(path)
    ]  # fmt: skip


PATHS_TABLE = Table(
    "Throughput of the primary flow over that in Reno/NULL, on the kernel; intervals are over "
    "three transfers, beside Reno there is one; netnice is our default",
    ("", *paths.PATHS),
    _by_path,
)
CHANGES_TABLE = Table(
    "The same in the simulator, with one thing changed at a time; intervals are over seeds",
    ("path", "", *(paths.action(name, flows) for flows in paths.SECONDARY for name in BOTH)),
    _by_change,
)


def _drawn(*numbers: int) -> list:  # type: ignore[type-arg]
    return [FIGURES[n] for n in numbers]


STATEMENTS = (
    Statement("N1", ("flows", "settings", "rules"), claims.n1, tables=(_settings(16), RULES_TABLE)),
    Statement("N2", ("flows", "settings"), claims.n2),
    Statement("N3", ("spare", "settings"), claims.n3, _drawn(2)),
    Statement("N4", ("flows", "rules"), claims.n4, _drawn(3)),
    Statement("N5", ("flows", "settings"), claims.n5, _drawn(4), (_settings(1),)),
    Statement("N6", ("flows", "settings"), claims.n6, tables=(_settings(64),)),
    Statement("N7", ("threshold", "flows"), claims.n7, _drawn(5)),
    Statement("N8", ("fraction",), claims.n8),
    Statement("N9", ("spare", "flows", "settings"), claims.n9, _drawn(11, 12, 13)),
    Statement("N10", ("udp-spare", "udp-flows"), claims.n10, _drawn(14, 15, 16)),
    Statement(
        "N11",
        (paths.NAME, path_changes.NAME),
        claims.n11,
        _drawn(6, 7),
        (PATHS_TABLE, CHANGES_TABLE),
    ),
    Statement("N12", ("flows",), claims.n12, tables=(ABLATION_TABLE,)),
)

REPRODUCTION = Paper(
    name="nice",
    title="TCP Nice reproduced",
    preamble=f"{PREAMBLE.strip()}\n\n{theorem.PREAMBLE}",
    experiments=lambda: [*simulated(), theorem.EXPERIMENT, paths.EXPERIMENT],
    claims=(*STATEMENTS, *theorem.STATEMENTS),
)
