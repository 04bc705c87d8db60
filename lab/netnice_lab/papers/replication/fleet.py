# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""A server replicates to many destinations at once while it serves web users, on the kernel."""

from __future__ import annotations

from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from ... import demo
from ...experiment import Context, Procedure, as_points, running
from ...scenario import Scenario, read
from .copies import PATHS

Json = dict[str, Any]

DESTINATIONS = 32
"""As many behind each kind of path."""
SIZE = 250_000
"""Bytes that each of them gets, in FILES files that cannot be compressed."""
FILES = 10

QUIET, OURS, IN_TURN, AT_ONCE, PRIORITY = (
    "no replication", "netnice replicate", "rsync, one by one", "rsync, all at once",
    "strict priority, all at once",
)  # fmt: skip


def scenario() -> Scenario:
    """Return the server's uplink: that of K1 with its users, for longer than any copy takes."""
    return read(Path("k1")).but(name="fleet", measure_s=480.0, background=[])


def links() -> list[Json]:
    """Return the destinations' own links, of all kinds in turn."""
    found = []
    for name in PATHS:
        bottleneck = read(Path(f"nice/{name}")).bottleneck
        found.append({k: getattr(bottleneck, k) for k in ("rate_mbit", "rtt_ms", "limit_packets")})
    return [found[i % len(found)] for i in range(DESTINATIONS)]


def cases(queue: str) -> list[tuple[str, str, Json | None]]:
    """Return what is compared: name, queue of the uplink, copy."""
    to = {"wrap": [], "paths": links()}
    return [
        (QUIET, queue, None),
        (OURS, queue, {**to, "replicate": True}),
        (IN_TURN, queue, to),
        (AT_ONCE, queue, {**to, "together": True}),
        (PRIORITY, "priority", {**to, "together": True}),
    ]


def measure(context: Context) -> list[Json]:
    """Run every case with the same users; return the only point."""
    uplink = scenario()
    compared = cases(uplink.bottleneck.queue)
    plan: list[Json] = [
        {"name": name, "seed": seed, "queue": queue, "background": None, "copy": copy}
        for seed in context.numbers
        for name, queue, copy in compared
    ]
    with TemporaryDirectory() as name:
        files = [Path(name) / f"file-{i}" for i in range(FILES)]
        random = Random(1)
        for file in files:
            file.write_bytes(random.randbytes(SIZE // FILES))
        with demo.packed(Path(name), files) as copying:
            outcomes = context.on_kernel(uplink, plan, **copying)
    entries = []
    for run, outcome in zip(plan, outcomes, strict=True):
        if run["copy"] is None:
            quiet = outcome["fetch"]["flows"]
            continue
        row = demo.digest(uplink, run["name"], outcome, quiet)
        entries.append({
            "background": run["name"], "seconds": row["copy"]["seconds"],
            "fct": row["ratio"]["fct_mean_s"], "fct_p95": row["ratio"]["fct_p95_s"],
        })  # fmt: skip
    return as_points(({}, entry) for entry in entries)


EXPERIMENT = Procedure("fleet", measure, kernel=True, depends=running("nice"))
