# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""The axes of the matrix, as data: what is otherwise than in K1, one thing at a time, and corners.

RFC 9743 has what an algorithm is to be evaluated over. K1 is ``lab/scenarios/ebb.toml``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..scenario import Scenario, Section, read

Json = dict[str, Any]

BASE, FLOWS = "ebb", 4
"""The scenario, and how many connections a background has where that is not the axis."""
PACKET_BITS = 12_000
AQM_PACKETS = 1000
"""Room in a queue that manages itself: Linux' default, or more than it ever uses."""
EBB, ELSEWHERE, NICE, LP, CUBIC = "ebb", "ebb, users elsewhere", "nice", "lp", "cubic"
CALL, LONG = "call", "long flow"
CORNERS = "corners"


def packets(rate_mbit: float, rtt_ms: float, bdp: float, least: int = 10) -> int:
    """Return how many packets so many bandwidth-delay products are."""
    return max(round(bdp * rate_mbit * rtt_ms * 1000 / PACKET_BITS), least)


def path(rate_mbit: float = 8.0, rtt_ms: float = 50.0, bdp: float = 1.5, least: int = 10) -> Json:
    """Return a bottleneck with drop-tail; K1's own unless something is given."""
    limit = packets(rate_mbit, rtt_ms, bdp, least)
    return {"rate_mbit": float(rate_mbit), "rtt_ms": float(rtt_ms), "limit_packets": limit}


def managed(queue: str, rate_mbit: float = 8.0, rtt_ms: float = 50.0) -> Json:
    """Return a bottleneck with a queue that manages itself."""
    return {**path(rate_mbit, rtt_ms), "queue": queue, "limit_packets": AQM_PACKETS}


def fetches(mbit: float, each_s: float) -> Json:
    """Return a user who fetches at a constant pace, as a player of video does."""
    size = round(mbit * each_s * 1e6 / 8)
    return {
        "arrivals": "periodic", "sizes": "fixed", "mean_bytes": size, "max_bytes": size,
        "load": mbit / path()["rate_mbit"],
    }  # fmt: skip


@dataclass(frozen=True)
class Cell:
    """What is otherwise than in K1."""

    bottleneck: Json = field(default_factory=path)
    flows: int = FLOWS
    foreground: Json | None = field(default_factory=dict)
    """What is otherwise of it; None: there is none."""
    cross: Sequence[Json] = ()
    host: str | None = None
    """Where the background is, if not where all else is."""

    def scenario(self) -> Scenario:
        """Return it with every background."""
        k1 = read(Path(BASE))
        users = None if self.foreground is None else k1.foreground.but(**self.foreground)
        return k1.but(
            bottleneck=k1.bottleneck.but(**self.bottleneck), foreground=users,
            cross=[Section(of) for of in self.cross],
            background=backgrounds(self.flows, self.host),
        )  # fmt: skip


def backgrounds(flows: int, host: str | None = None) -> list[Section]:
    """Return all of them. Users are on the host of the background, but for one of them."""
    its = {"flows": flows} | ({"host": host} if host else {})
    return [
        Section(its, name=EBB, control="nn_ebb", hold=True),
        Section(its, name=ELSEWHERE, control="nn_ebb", hold=True, host="elsewhere"),
        Section(its, name=NICE, control="nn_nice"),
        Section(its, name=LP, control="lp"),
        Section(its, name=CUBIC, control="cubic"),
    ]


@dataclass(frozen=True)
class Axis:
    """What is varied, and the cells by their names."""

    name: str
    title: str
    cells: Mapping[str, Cell]
    seeds: int = 40


def _long(control: str) -> Cell:
    flow = {"name": LONG, "kind": "tcp", "control": control}
    return Cell(foreground=None, cross=[flow])


_CALL = {"name": CALL, "kind": "cbr", "rate_mbit": 0.1, "packet_bytes": 250}

AXES = (
    Axis("flows", "background's flows", {f"{n}": Cell(flows=n) for n in (1, 4, 16, 64, 100)}),
    Axis(
        "buffer", "drop-tail, in BDP",
        {f"{bdp:g}": Cell(path(bdp=bdp, least=1)) for bdp in (0.1, 0.3, 0.5, 1, 1.5, 3, 10)},
    ),
    Axis(
        "queue", "queue",
        {
            "drop-tail": Cell(),
            **{kind: Cell(managed(kind)) for kind in ("pie", "codel", "fq_codel")},
        },
    ),
    Axis("rate", "Mbit/s", {f"{rate}": Cell(path(rate)) for rate in (1, 2, 8, 30, 100)}),
    Axis("fast", "Mbit/s", {f"{rate}": Cell(path(rate)) for rate in (300, 1000)}, seeds=5),
    Axis("rtt", "RTT, ms", {f"{rtt}": Cell(path(rtt_ms=rtt)) for rtt in (5, 10, 20, 50, 100, 200)}),
    Axis(
        "load", "users' load",
        {f"{load:g}": Cell(foreground={"load": load}) for load in (0.1, 0.3, 0.5, 0.7, 0.9)},
    ),
    Axis(
        "users", "users",
        {
            "web": Cell(),
            "web, one of two hosts seen": Cell(
                foreground={"host": "users", "senders": 2}, host="users 1"
            ),
            "video, 2.5 Mbit/s in chunks of 4 s": Cell(foreground=fetches(2.5, 4)),
            "downloads of 5 MB, one in 10 s": Cell(foreground=fetches(4, 10)),
            "one long flow of CUBIC": _long("cubic"),
            "one long flow of Reno": _long("reno"),
            "a call of 100 kbit/s": Cell(foreground=None, cross=[_CALL]),
        },
    ),
    Axis(
        "faults", "path",
        {
            "losses of 1 %": Cell({"loss": 0.01}),
            "jitter of 10 ms": Cell({"jitter_ms": 10.0}),
            "1 % reordered by 5 ms": Cell({"reorder": 0.01, "reorder_ms": 5.0}),
            "8, then 4 Mbit/s": Cell({"change": [{"at_s": 15.0, "rate_mbit": 4.0}]}),
            "8, then 16 Mbit/s": Cell({"change": [{"at_s": 15.0, "rate_mbit": 16.0}]}),
            "50, then 150 ms": Cell({"change": [{"at_s": 15.0, "rtt_ms": 150.0}]}),
        },
    ),
    Axis(
        CORNERS, "corner",
        {
            "1 Mbit/s, 10 BDP, 16 flows": Cell(path(1, bdp=10), flows=16),
            "2 Mbit/s, 10 packets, 16 flows": Cell(path(2, bdp=0), flows=16),
            "2 Mbit/s, 5 ms, 50 packets, 1 flow": Cell(path(2, 5, bdp=60), flows=1),
            "8 Mbit/s, .3 BDP, 100 flows": Cell(path(bdp=0.3), flows=100),
            "load of .9, 100 flows": Cell(flows=100, foreground={"load": 0.9}),
            "100 Mbit/s, 5 ms, .5 BDP, 16 flows": Cell(path(100, 5, 0.5), flows=16),
            "100 Mbit/s, 200 ms, .1 BDP, 1 flow": Cell(path(100, 200, 0.1), flows=1),
            "100 Mbit/s, 20 ms, fq_codel, 1 flow": Cell(
                managed("fq_codel", rate_mbit=100, rtt_ms=20), flows=1
            ),
            "30 Mbit/s, 20 ms, fq_codel, 16 flows": Cell(
                managed("fq_codel", rate_mbit=30, rtt_ms=20), flows=16
            ),
        },
    ),
)  # fmt: skip
"""The simulator ends at 1000 Mbit/s, where one run takes two seconds or more."""
