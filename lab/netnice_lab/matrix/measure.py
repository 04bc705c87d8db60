# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""The matrix measured: every cell with its seeds, and what is kept of one, which has no runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from .. import LabError, experiment, records, stats
from ..claims.results import Results, load, save
from ..scenario import IDEAL, NONE
from .axes import AXES, BASE, CALL, Axis

Json = dict[str, Any]

NAME = "matrix"
FOLDER = records.DATA / NAME
SEED, QUICK = 101, 3
"""The first, as constants were chosen on those below; and how many a quick look takes."""


def chosen(only: Sequence[str]) -> list[Axis]:
    """Return the axes called so, or all. Raises LabError for a name that none has."""
    known = [axis.name for axis in AXES]
    for name in only:
        if name not in known:
            raise LabError(f"No axis is called {name!r}. Known: {', '.join(known)}.", status=2)
    return [axis for axis in AXES if not only or axis.name in only]


def kept(run: Json, _measure_s: float = 0.0) -> Json:
    """Return what is kept of one run: what users notice as `mean` and `p95`, the longer the worse.

    Of fetches their completion times in s, of a call the RTTs of its packets in ms, of a long flow
    the seconds for a Mbit.
    """
    of = run["cross"][0] if run["cross"] else None
    found = {"mbit": run["background_goodput_mbit"], "unfinished": 0, "lost": None}
    if of is None:
        users = run["foreground"]
        times = {"mean": users["fct_mean_s"], "p95": users["fct_p95_s"]}
        return found | times | {"unfinished": users["unfinished"]}
    if of["name"] == CALL:
        lost = of["lost"] / of["packets"]
        return found | {
            "mean": of["packet_rtt_mean_ms"], "p95": of["packet_rtt_p95_ms"], "lost": lost,
        }  # fmt: skip
    return found | {"mean": 1 / of["goodput_mbit"] if of["goodput_mbit"] else None, "p95": None}


def simulated(axis: Axis) -> experiment.Simulated:
    """Return its cells as points."""
    points = [
        experiment.Point({axis.name: name}, cell.scenario()) for name, cell in axis.cells.items()
    ]
    return experiment.Simulated(axis.name, points, keep=kept, seeds=axis.seeds, first_seed=SEED)


def depends(axis: Axis) -> frozenset[str]:
    """Return what its data depend on, as `records` names it."""
    return simulated(axis).depends | {f"scenario/{BASE}: {NONE}"}


def summed(document: Json) -> Json:
    """Return an experiment's document with the numbers of each cell in place of its runs."""
    results = Results(document)
    cells = [
        {
            "at": at,
            **{
                name: _numbers(results, at, name)
                for name in results.backgrounds(**at)
                if name != NONE
            },
            NONE: {
                key: results.mean(key, NONE, **at)["mean"]
                for key in ("mean", "p95")
                if None not in results.values(key, NONE, **at)
            },
        }
        for at in (point["at"] for point in document["points"])
    ]
    return document | {"kind": NAME, "points": cells}


def _numbers(results: Results, at: Json, name: str) -> Json:
    """Return harm and share with intervals: over no background, and over strict priority."""
    found = {
        "harm": results.harm(name, "mean", **at),
        "p95": results.harm(name, "p95", **at),
        "over_priority": results.ratio("mean", name, IDEAL, **at),
        "share": stats.of_sums(
            results.values("mbit", name, **at), results.values("mbit", IDEAL, **at)
        ),
        "mbit": results.mean("mbit", name, **at)["mean"],
    }
    if late := sum(results.values("unfinished", name, **at)):
        found["unfinished"] = int(late)
    lost = results.values("lost", name, **at)
    if None not in lost:
        found["lost"] = fmean(lost)
    return experiment.rounded(found)  # type: ignore[no-any-return]


def measure(axis: Axis, context: experiment.Context) -> Json:
    """Simulate an axis; return its document."""
    return summed(experiment.measure(simulated(axis), context))


def keep(axis: Axis, document: Json, folder: Path) -> Path:
    """Save it, with its record if it is in docs/data; return where."""
    file = save(document, folder)
    records.keep_data(file.resolve(), document, depends(axis))
    return file


def saved(folder: Path = FOLDER) -> Iterator[tuple[Axis, Json]]:
    """Yield the axes that are saved there, in their order, with their documents."""
    for axis in AXES:
        if found := load(folder, axis.name):
            yield axis, found.document
