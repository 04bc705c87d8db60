# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""The worst scenarios that searches found, as they are saved, and their table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .. import records
from ..claims.results import load
from ..report import with_interval

Json = dict[str, Any]

NAME = "worst"
FOLDER = records.DATA / NAME
HEAD = (
    "harm", "beyond priority's", "share", "Mbit/s", "RTT, ms", "queue", "users' load", "in a s",
    "flows",
)  # fmt: skip


def saved() -> Iterator[Json]:
    """Yield the documents in docs/data, in the order of their algorithms' names."""
    for file in sorted(FOLDER.glob("*.json"), key=lambda file: file.stem):
        if found := load(FOLDER, file.stem):
            yield found.document


def table(document: Json) -> list[list[str]]:
    """Return the head of a table, and a row for each scenario."""
    return [list(HEAD), *(_row(point) for point in document["points"])]


def late(its: Json) -> str:
    """Return what is added to harm that does not hold all fetches."""
    return f", {its['unfinished']} unfinished" if its.get("unfinished") else ""


def _row(point: Json) -> list[str]:
    its, path = point["at"], point["scenario"]["bottleneck"]
    queue = f"{path['queue']}, {path['limit_packets']} packets"
    return [
        with_interval(point["harm"]) + late(point), with_interval(point["beyond"]),
        f"{100 * point['share']['mean']:.0f} %" if point["share"]["mean"] is not None else "",
        f"{its['rate_mbit']:g}", f"{its['rtt_ms']}", queue, f"{its['load']:.2f}",
        f"{its['fetches_per_s']:.1f}", f"{its['flows']}",
    ]  # fmt: skip
