# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""A server replicates to many destinations at once while it serves web users, on the kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from ... import demo, vm
from ...experiment import head
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
    return replace(read(Path("k1")), name="fleet", measure_s=480.0, background=[])


def links() -> list[Json]:
    """Return the destinations' own links, of all kinds in turn."""
    found = []
    for name in PATHS:
        bottleneck = read(Path(f"nice/{name}")).bottleneck
        assert bottleneck is not None
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


def measure(
    *,
    seeds: int,
    jobs: int,
    command: Sequence[str],
    folder: Path,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> Json:
    """Run every case with the same users; return the experiment's document."""
    del folder
    uplink = scenario()
    assert uplink.bottleneck is not None
    compared = cases(uplink.bottleneck.queue)
    plan: list[Json] = []
    for seed in range(1, seeds + 1):
        for name, queue, copy in compared:
            plan.append({
                "index": len(plan), "name": name, "seed": seed, "queue": queue,
                "background": None, "copy": copy,
            })  # fmt: skip
    outcomes: dict[int, Json] = {}

    def collect(outcome: Json) -> None:
        outcomes[outcome["run"]] = outcome
        progress(len(outcomes), len(plan))

    with TemporaryDirectory() as name:
        files = [Path(name) / f"file-{i}" for i in range(FILES)]
        random = Random(1)
        for file in files:
            file.write_bytes(random.randbytes(SIZE // FILES))
        with demo.packed(Path(name), files) as archive:
            demo.replicate(uplink, plan, archive, vms=jobs, each=collect)
    runs: dict[str, Json] = {}
    for run in plan:
        if run["copy"] is None:
            quiet = outcomes[run["index"]]["fetch"]["flows"]
            continue
        row = demo.digest(uplink, run["name"], outcomes[run["index"]], quiet)
        kept = runs.setdefault(run["name"], {"seconds": [], "fct": [], "fct_p95": []})
        kept["seconds"].append(round(row["copy"]["seconds"], 2))
        kept["fct"].append(round(row["ratio"]["fct_mean_s"], 4))
        kept["fct_p95"].append(round(row["ratio"]["fct_p95_s"], 4))
    return {
        **head("fleet", seeds, command),
        "kernel": vm.find_kernel().version,
        "points": [{"at": {}, "runs": runs}],
    }
