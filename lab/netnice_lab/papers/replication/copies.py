# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Section 6.2 of TCP Nice's report: a server replicates to clients that ping, on the kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from math import ceil
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from ... import demo, stats
from ...experiment import Context, Procedure, as_points, running
from ...scenario import IDEAL, Scenario, Section, read

Json = dict[str, Any]

PATHS = ("modem", "cable", "london", "delaware")
SIZE = 10_000_000
"""Bytes to replicate, which cannot be compressed."""

SHARES = (0.25, 0.5, 0.75, 0.9)
"""Throttle rates of a path, as shares of its capacity."""
USUAL = 0.75
"""The share that is taken for the best throttle of a path when other paths get it."""

IDLE, UNLIMITED, NICE, REPLICATE = "idle", "unlimited", "Nice", "netnice replicate"
PRIORITY = IDEAL
"""The unlimited copy where the path has strict priority: what yields entirely cannot be faster."""
UNTHROTTLED: Json = {"wrap": [], "control": "reno"}
LITERAL = {
    "threshold": 0.2, "fraction": 0.5, "alpha": 1, "beta": 3, "shrink": 0.5, "quiet": 1, "early": 0,
    "together": 0, "spread": 0, "age": 0,
}  # fmt: skip
"""Parameters of Nice as the report has it, in its Linux prototype."""

CHANGED = "changed"
FAST_MBIT, SLOW_MBIT = 10.0, 0.5
"""Capacities of the path that changes twentyfold."""
CHANGES_S = (13.0, 73.0)
"""When the path becomes slow and fast again; the copy starts at 3 s."""
CHANGED_SIZE = 40_000_000
"""Bytes that are copied over it: some are left after the last change."""
SAMPLE_S = 1.0


def kbit(rate_mbit: float) -> str:
    """Return the name of a throttled copy."""
    return f"{1000 * rate_mbit:g} kbit/s"


def capacity(path: str) -> float:
    """Return a path's capacity in Mbit/s."""
    return float(read(Path(f"nice/{path}")).bottleneck.rate_mbit)


def rates(path: str) -> list[float]:
    """Return the throttle rates that a path's copies get, in Mbit/s: its own, then the others'.

    A rate above the capacity is no throttle: it would be another run of the unlimited one.
    """
    own = capacity(path)
    others = [USUAL * capacity(other) for other in PATHS if other != path]
    return [share * own for share in SHARES] + [rate for rate in others if rate < own]


def throttled(rate_mbit: float) -> Json:
    """Return the copy that rsync throttles: Reno, in units of 1024 bytes a second."""
    return {
        "wrap": [], "control": "reno", "options": [f"--bwlimit={rate_mbit * 1e6 / 8 / 1024:.3f}"],
    }  # fmt: skip


def copies(path: str) -> dict[str, Json | None]:
    """Return every copy on a path, by name."""
    settings = [f"{name}={value}" for name, value in LITERAL.items()]
    literal = ["netnice", "run", *(w for s in settings for w in ("--set", s)), "--"]
    return {
        IDLE: None,
        **{kbit(rate): throttled(rate) for rate in rates(path)},
        UNLIMITED: UNTHROTTLED,
        NICE: {"wrap": literal},
    }


def scenario(path: str) -> Scenario:
    """Return a path on which nobody fetches and everybody pings, for as long as the slowest copy.

    Others' transfers, where the path has them, go on all the time.
    """
    found = read(Path(f"nice/{path}"))
    slowest = min([*rates(path), found.bottleneck.rate_mbit])
    lasts = 30 + 1.6 * SIZE * 8e-6 / slowest
    cross = [
        c.but(flows=ceil(lasts / c.stagger_s)) if c.stagger_s else c for c in found.cross
    ]  # fmt: skip
    interval = 1000.0 if found.bottleneck.rate_mbit < 1 else 200.0
    return found.but(
        name=f"replication-{path}", measure_s=lasts, drain_s=0.0, background=[], cross=cross,
        foreground=Section(load=0.0, probe_interval_ms=interval),
    )  # fmt: skip


def changing() -> Scenario:
    """Return a path whose capacity falls to a twentieth and comes back."""
    slower, faster = CHANGES_S
    bottleneck = Section(
        rate_mbit=FAST_MBIT, rtt_ms=50.0, limit_packets=50,
        change=[
            Section(at_s=slower, rate_mbit=SLOW_MBIT), Section(at_s=faster, rate_mbit=FAST_MBIT),
        ],
    )  # fmt: skip
    return Scenario(
        name="replication-changed", warmup_s=3.0, measure_s=1500.0, drain_s=0.0,
        bottleneck=bottleneck, foreground=Section(load=0.0, probe_interval_ms=200.0),
    )  # fmt: skip


def changing_copies() -> dict[str, Json | None]:
    """Return the throttled copies on the path that changes: rates chosen for it slow and fast."""
    rates = (USUAL * SLOW_MBIT, USUAL * FAST_MBIT)
    return {kbit(r): {**throttled(r), "sample_s": SAMPLE_S} for r in rates}


def during(outcome: Json, begin_s: float, end_s: float) -> list[float | None]:
    """Return the pings that left in a time."""
    return [p["rtt_ms"] for p in outcome["probe"]["samples"] if begin_s <= p["t_s"] < end_s]


def kept(outcome: Json) -> Json:
    """Return what is kept of a copy: its duration, and the pings meanwhile."""
    copied = outcome["copy"]
    begin, end = (copied["start_s"], copied["end_s"]) if copied else (3.0, 203.0)
    pings = during(outcome, begin, end)
    ping = stats.probe(pings)
    return {
        "seconds": end - begin if copied else None,
        "ping_ms": ping["rtt_mean_ms"],
        "ping_p95_ms": ping["rtt_p95_ms"],
        "ping_lost": ping["lost"] / len(pings),
    }


def kept_changing(outcome: Json) -> Json:
    """Return what is kept of a copy over the path that changes: also each phase by itself.

    The last phase counts from 10 s after the change, when a flow may have found the capacity.
    """
    slower, faster = CHANGES_S
    end = outcome["copy"]["end_s"]
    found = kept(outcome)
    phases = {"before": (3.0, slower), "slow": (slower, faster), "after": (faster, end)}
    for name, (begin, until) in phases.items():
        at = [s for s in outcome["copy"]["samples"] if begin <= s[0] < until]
        span = at[-1][0] - at[0][0] if len(at) > 1 else 0.0
        found[f"mbit_{name}"] = (at[-1][1] - at[0][1]) * 8e-6 / span if span else None
        pings = [p for p in during(outcome, begin, min(until, end)) if p is not None]
        found[f"ping_{name}_ms"] = sum(pings) / len(pings) if pings else None
    return found


@dataclass(frozen=True)
class Batch:
    """What one machine runs."""

    path: str
    scenario: Scenario
    size: int
    copies: Mapping[str, Json | None]
    keep: Callable[[Json], Json]
    change: str = ""
    """What of the path is other than it is, if anything."""
    serialised: bool = False
    """Whether packets leave one after the other, as those of a modem, not from a token bucket."""

    @property
    def at(self) -> Json:
        """Return the point that the copies are of."""
        return {"path": self.path, **({"change": self.change} if self.change else {})}


def throttles() -> list[Batch]:
    """Return everything but the two below, those first that take longest."""
    return [*on_paths(copies), on_changed(changing_copies())]


def ours() -> list[Batch]:
    """Return what `netnice replicate` does everywhere."""
    replicate: dict[str, Json | None] = {REPLICATE: {"wrap": [], "replicate": True}}
    sampled: dict[str, Json | None] = {
        REPLICATE: {"wrap": [], "replicate": True, "sample_s": SAMPLE_S}
    }
    return [*on_paths(lambda _path: replicate), on_changed(sampled)]


def ideal() -> list[Batch]:
    """Return a copy on every path under strict priority."""
    return on_paths(lambda _path: {PRIORITY: UNTHROTTLED})


def serialised() -> list[Batch]:
    """Return copies over the modem, where packets leave one after the other.

    The report's Nice is not among them: its copy was not done after 9000 s.
    """
    every: dict[str, Json | None] = {
        IDLE: None,
        **{kbit(rate): throttled(rate) for rate in rates("modem")[1:]},
        UNLIMITED: UNTHROTTLED,
        REPLICATE: {"wrap": [], "replicate": True},
        PRIORITY: UNTHROTTLED,
    }
    return [Batch("modem", scenario("modem"), SIZE, every, kept, serialised=True)]


def on_paths(of: Callable[[str], Mapping[str, Json | None]]) -> list[Batch]:
    """Return the copies `of` each path."""
    return [Batch(path, scenario(path), SIZE, of(path), kept) for path in reversed(PATHS)]


def on_changed(found: Mapping[str, Json | None]) -> Batch:
    """Return copies on the path that changes."""
    return Batch(CHANGED, changing(), CHANGED_SIZE, found, kept_changing)


def measure(batches: Callable[[], Sequence[Batch]], context: Context) -> list[Json]:
    """Run the batches, each in a machine of its own; return the points, one for each.

    Nothing is random on these paths.
    """
    planned = [batch for batch in batches() if context.wants(**batch.at)]
    tick = context.ticks(sum(len(b.copies) for b in planned))
    with ThreadPoolExecutor(context.jobs) as pool:
        futures = [pool.submit(in_one_machine, batch, context, tick) for batch in planned]
        wait(futures, return_when=FIRST_EXCEPTION)
        pool.shutdown(cancel_futures=True)
    points = as_points(
        (batch.at, entry)
        for batch, future in zip(planned, futures, strict=True)
        for entry in future.result()
    )
    return sorted(points, key=lambda point: [*PATHS, CHANGED].index(point["at"]["path"]))


def in_one_machine(batch: Batch, context: Context, tick: Callable[..., None]) -> list[Json]:
    """Run the copies of a batch one after the other; return what is kept of each."""
    plan = [
        {
            "seed": 1, "queue": "priority" if name == PRIORITY else "drop-tail",
            "serialised": batch.serialised, "background": None, "copy": copy,
        }
        for name, copy in batch.copies.items()
    ]  # fmt: skip
    with TemporaryDirectory() as name:
        file = Path(name) / "file"
        file.write_bytes(Random(1).randbytes(batch.size))
        with demo.packed(file.parent, [file]) as copying:
            outcomes = context.on_kernel(batch.scenario, plan, vms=1, tick=tick, **copying)
    return [
        {"background": name, **batch.keep(outcome)}
        for name, outcome in zip(batch.copies, outcomes, strict=True)
    ]


EXPERIMENTS = [
    Procedure(name, partial(measure, of), seeds=1, random=False, kernel=True, depends=depends)
    for name, of, depends in (
        ("copies", throttles, running("nice")), ("ours", ours, running("ebb") | {"hold"}),
        ("ideal", ideal, frozenset()), ("serialised", serialised, running("nice")),
    )
]  # fmt: skip
