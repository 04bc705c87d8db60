# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""What is measured for the limit, and where its curve is at a harm."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .. import ROOT, LabError, records
from ..claims import results as saved
from ..claims.results import Results
from ..experiment import Context, Point, Simulated, measure
from ..scenario import Scenario, Section, read

Json = dict[str, Any]

DATA = ROOT / "docs" / "data" / "limit"

SEED = 101
"""The first: constants of core/host/path.h were chosen on seeds below it."""
NETWORKS: dict[str, tuple[str, int, Json]] = {
    "k1": ("K1: 8 Mbit/s, 50 ms, 50 packets", 24, {}),
    "fast": (
        "20 Mbit/s, 20 ms, 35 packets", 16,
        {"rate_mbit": 20.0, "rtt_ms": 20.0, "limit_packets": 35},
    ),
    "fq_codel": ("K1 with fq_codel", 12, {"queue": "fq_codel", "limit_packets": 1000}),
    "short": ("K1 with 10 packets", 12, {"limit_packets": 10}),
}  # fmt: skip
"""By the name of their data: what they are, seeds, and what is otherwise than in K1."""
PLACES: dict[str, tuple[Json, Json]] = {
    "same host": ({}, {}),
    "half": ({"host": "server", "senders": 2}, {"host": "server 1"}),
    "other hosts": ({"host": "theirs"}, {}),
}
"""Where the foreground is: keys of the foreground, and of the backgrounds."""
FLOWS = (1, 4, 16, 64)

HOPEFUL, TOLD, TYPED, EBB = (
    "oracle 100 %, hopeful",
    "oracle, openings",
    "own shaper",
    "nn_ebb, held",
)
ORACLES: dict[str, Json] = {
    **{f"oracle {100 * part:.0f} %": {"part": part} for part in (0.2, 0.4, 0.6, 0.8, 1.0)},
    HOPEFUL: {"brings": 1},
}
"""The curve, the strictest first."""
ALGORITHMS = ("nice", "lp", "imtcp_bg", "ledbat", "ledbatpp", "proteus_s")
TYPED_PART = 0.95
BOUND = 1.05
"""Harm at which shares are compared."""


def backgrounds(flows: int, rate_mbit: float, of: Mapping[str, Any]) -> list[Section]:
    """Return what is compared; `of` are keys that all have."""
    held = Section(of, control="cubic", flows=flows, hold=True)
    openings = {"openings": True, "brings": 1}
    return [
        *(held.but(name=name, oracle=oracle) for name, oracle in ORACLES.items()),
        held.but(name=TOLD, oracle=openings),
        held.but(name=TYPED, hold_rate_mbit=TYPED_PART * rate_mbit),
        held.but(name=EBB, control="nn_ebb"),
        *(
            Section(of, name=f"nn_{name}", control=f"nn_{name}", flows=flows)
            for name in ALGORITHMS
        ),
    ]  # fmt: skip


def scenario(network: Json, place: str, flows: int) -> Scenario:
    """Return the scenario of one point."""
    k1, (theirs, ours) = read(Path("ebb")), PLACES[place]
    bottleneck = k1.bottleneck.but(**network)
    return k1.but(
        bottleneck=bottleneck, foreground=k1.foreground.but(**theirs),
        background=backgrounds(flows, bottleneck.rate_mbit, ours),
    )  # fmt: skip


def kept(run: Json, _measure_s: float) -> Json:
    """Return what is kept of a run."""
    return {"fct_s": run["foreground"]["fct_mean_s"], "mbit": run["background_goodput_mbit"]}


def experiment(name: str) -> Simulated:
    """Return what is measured of a network."""
    _, seeds, network = NETWORKS[name]
    points = [
        Point({"place": place, "flows": flows}, scenario(network, place, flows))
        for place in PLACES
        for flows in FLOWS
    ]
    return Simulated(name, points, keep=kept, seeds=seeds, first_seed=SEED)


def run(name: str, context: Context) -> None:
    """Measure a network, and keep data and record."""
    its = experiment(name)
    document = measure(its, context)
    records.keep_data(saved.save(document, DATA), document, its.depends)


def load(name: str) -> Results:
    """Return what was measured of a network; LabError says how to measure it."""
    found = saved.load(DATA, name)
    if found is None:
        again = f"netnice-lab limit --measure --only {name}"
        raise LabError(f"docs/data/limit/{name}.json is missing. Make it with {again}.")
    return found


def cell(results: Results, background: str, **at: Any) -> tuple[Json, Json]:  # noqa: ANN401
    """Return harm and share of a background, with their intervals."""
    return results.harm(background, "fct_s", **at), results.share(background, **at)


def limit(results: Results, bound: float = BOUND, **at: Any) -> float:  # noqa: ANN401
    """Return the greatest share that the oracle has at no more harm than `bound`."""
    points = [cell(results, name, **at) for name in ORACLES]
    curve = [(1.0, 0.0), *((harm["mean"], share["mean"]) for harm, share in points)]
    return at_bound(curve, bound)


def at_bound(curve: Sequence[tuple[float, float]], bound: float = BOUND) -> float:
    """Return the greatest share of a curve of harm and share at no more harm than `bound`."""
    found = 0.0
    for (harm, share), (next_harm, next_share) in itertools.pairwise(curve):
        ends = [s for h, s in ((harm, share), (next_harm, next_share)) if h <= bound]
        if min(harm, next_harm) <= bound < max(harm, next_harm):
            part = (bound - harm) / (next_harm - harm)
            ends.append(share + part * (next_share - share))
        found = max([found, *ends])
    return found
