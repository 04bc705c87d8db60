# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Tables of the page on TCP Nice: what causes are claimed by."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...claims.claim import Measured, Table, percent, times
from ...scenario import NONE
from . import path_changes, paths
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
)

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


def of_settings(flows: int) -> Table:
    """Return what every setting has with so many flows."""
    return Table(
        f"By setting, {flows} flow{'s' * (flows > 1)}, S = 1: requests open at a time without "
        "background; latency and FCT over none, and share of the spare",
        (
            "setting", "open", "Nice", "FCT", "share", "our nice", "FCT", "share",
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
            cells = [name.replace(OURS, "our nice")]
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
    "three transfers, beside Reno there is one; netnice is our nice",
    ("", *paths.PATHS),
    _by_path,
)
CHANGES_TABLE = Table(
    "The same in the simulator, with one thing changed at a time; intervals are over seeds",
    ("path", "", *(paths.action(name, flows) for flows in paths.SECONDARY for name in BOTH)),
    _by_change,
)
