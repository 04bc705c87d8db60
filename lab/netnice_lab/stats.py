# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""From what was measured to what is reported: means, percentiles, paired ratios, intervals.

The kernel's runs have them from here, as have runs of several commands. The simulator computes the
same for its own table and document; `lab/tests/test_sim.py` compares the two.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import stats

from .scenario import IDEAL, NONE

Json = dict[str, Any]

LITTLE = 0.1
"""Mbit/s. Of less under strict priority a share says nothing."""


def interval(values: Sequence[float]) -> Json:
    """Return the mean of `values` and its 95 % confidence interval by Student's t.

    One value has no interval: `lo` and `hi` are then None. No value: all three are.
    """
    if not values:
        return {"mean": None, "lo": None, "hi": None}
    mean = float(np.mean(values))
    if len(values) == 1:
        return {"mean": mean, "lo": None, "hi": None}
    half = float(stats.t.ppf(0.975, len(values) - 1) * stats.sem(values))
    return {"mean": mean, "lo": mean - half, "hi": mean + half}


def of_sums(values: Sequence[float], references: Sequence[float]) -> Json:
    """Return sum over sum of pairs, and its interval by the residuals (the ratio estimator).

    Unlike a mean of ratios it does not follow the pair whose reference is almost nothing.
    """
    total = float(np.sum(references))
    if not total:
        return interval([])
    ratio = float(np.sum(values)) / total
    residuals = (np.asarray(values) - ratio * np.asarray(references)) / np.mean(references)
    around = interval([ratio + float(r) for r in residuals])
    return around | {"mean": ratio}


def percentile(values: Sequence[float], q: float) -> float | None:
    """Return the percentile `q` (0 to 100), interpolated linearly; None of nothing."""
    return float(np.percentile(values, q)) if len(values) else None


def mean(values: Sequence[float]) -> float | None:
    """Return the arithmetic mean; None of nothing."""
    return float(np.mean(values)) if len(values) else None


def foreground(flows: Sequence[Json], window_s: float) -> Json:
    """Summarise the fetches that started in a window of `window_s` seconds.

    Times cover the finished ones; `unfinished` counts the others, which a reader must be told.
    """
    done = [f for f in flows if f["fct_s"] is not None]
    fct = [f["fct_s"] for f in done]
    size = sum(f["bytes"] for f in done)
    return {
        "flows": len(flows),
        "unfinished": len(flows) - len(done),
        "fct_mean_s": mean(fct),
        "fct_p50_s": percentile(fct, 50),
        "fct_p95_s": percentile(fct, 95),
        "fct_p99_s": percentile(fct, 99),
        "bytes": size,
        "goodput_mbit": size * 8e-6 / window_s,
        "fct_s": fct,
        "sizes": [f["bytes"] for f in done],
    }


def probe(rtts_ms: Sequence[float | None]) -> Json:
    """Summarise echo probes; None is a lost one."""
    got = [r for r in rtts_ms if r is not None]
    return {
        "rtt_mean_ms": mean(got),
        "rtt_p95_ms": percentile(got, 95),
        "rtt_p99_ms": percentile(got, 99),
        "lost": len(rtts_ms) - len(got),
    }


def _at(run: Json, path: Sequence[str]) -> float | None:
    """Return the value at a path of keys; None if there is none."""
    for key in path[:-1]:
        run = run.get(key) or {}
    return run.get(path[-1])


def _values(runs: Sequence[Json], path: Sequence[str]) -> list[float]:
    return [value for run in runs if (value := _at(run, path)) is not None]


def _paired(runs: Sequence[Json], references: Sequence[Json], path: Sequence[str]) -> list[float]:
    """Return value over the reference's value of the same seed, where both exist."""
    by_seed = {r["seed"]: _at(r, path) for r in references}
    pairs = [(_at(r, path), by_seed.get(r["seed"])) for r in runs]
    return [v / ref for v, ref in pairs if v is not None and ref]


def summarise(runs: Sequence[Json]) -> list[Json]:
    """Return one entry for each background, in the order of first appearance.

    Ratios are to no background and shares to strict priority, each with the same seed. Where
    strict priority carried nothing with some seeds, `share_seeds` counts the others, and
    `fct_seeds` where no fetch finished with some. What only the simulator knows, such as packet
    RTTs, is left out where the runs do not have it.
    """
    names = list(dict.fromkeys(r["background"] for r in runs))
    groups = {n: [r for r in runs if r["background"] == n] for n in names}
    none, ideal = groups.get(NONE, []), groups.get(IDEAL, [])
    summary = []
    for name, group in groups.items():
        entry: Json = {"background": name, "seeds": len(group)}
        for key in ("mean", "p95", "p99"):
            ratios = _paired(group, none, ("foreground", f"fct_{key}_s"))
            entry[f"fct_ratio_{key}"] = interval(ratios)
        if none and len(ratios) < len(group) and any(map(_fetched, group)):
            entry["fct_seeds"] = len(ratios)
        shares = _paired(group, ideal, ("background_goodput_mbit",))
        entry["share"] = interval(shares)
        if len(shares) < len(group):
            entry["share_seeds"] = len(shares)
        means = [r["foreground"]["fct_mean_s"] for r in group]
        entry["fct_mean_s"] = mean([m for m in means if m is not None])
        entry["background_goodput_mbit"] = mean([r["background_goodput_mbit"] for r in group])
        entry["probe_rtt_ratio_mean"] = mean(_paired(group, none, ("probe", "rtt_mean_ms")))
        entry["unfinished"] = sum(r["foreground"]["unfinished"] for r in group)
        if any("packet_rtt_mean_ms" in r["foreground"] for r in group):
            path = ("foreground", "packet_rtt_mean_ms")
            entry["packet_rtt_mean_ms"] = mean(_values(group, path))
            entry["packet_rtt_ratio_mean"] = interval(_paired(group, none, path))
        if any(r.get("cross") for r in group):
            entry["cross"] = _cross(group, none)
        summary.append(entry)
    return summary


def _fetched(run: Json) -> bool:
    """Return whether any fetch began."""
    return bool(run["foreground"]["unfinished"]) or run["foreground"]["fct_mean_s"] is not None


def _cross(group: Sequence[Json], none: Sequence[Json]) -> list[Json]:
    """Summarise the other traffic of runs with one background, beside those without."""

    def alone(runs: Sequence[Json], index: int) -> list[Json]:
        return [{"seed": r["seed"], **r["cross"][index]} for r in runs]

    entries = []
    for index, cross in enumerate(group[0]["cross"]):
        runs, references = alone(group, index), alone(none, index)
        rates = ("goodput_mbit",)
        entry = {
            "name": cross["name"],
            "goodput_mbit": mean(_values(runs, rates)),
            "goodput_ratio": interval(_paired(runs, references, rates)),
        }
        if "packet_rtt_mean_ms" in cross:
            ratios = _paired(runs, references, ("packet_rtt_mean_ms",))
            entry["packet_rtt_ratio_mean"] = interval(ratios)
        entries.append(entry)
    return entries


COMPARED = ("fct_ratio_mean", "share", "fct_mean_s", "background_goodput_mbit")
"""Keys of a summary's entries that engines are compared by."""


def compare(kernel: Sequence[Json], sim: Sequence[Json]) -> list[Json]:
    """Return for each background what both engines say, and by how much the simulator says more.

    `difference` is a share of the kernel's value; None where one of them has none.
    """
    by_name = {entry["background"]: entry for entry in sim}
    out = []
    for theirs in kernel:
        ours = by_name[theirs["background"]]
        entry: Json = {"background": theirs["background"]}
        for key in COMPARED:
            was, is_ = _value(theirs[key]), _value(ours[key])
            difference = is_ / was - 1 if was and is_ is not None else None
            entry[key] = {"kernel": theirs[key], "sim": ours[key], "difference": difference}
        out.append(entry)
    return out


def _value(entry: Json | float | None) -> float | None:
    """Return the number of a summary's entry, which may have an interval."""
    value: float | None = entry["mean"] if isinstance(entry, dict) else entry
    return value


def spread(value: Json) -> tuple[float, float]:
    """Return how far an interval reaches below and above its mean; 0 where there is none."""
    if value["lo"] is None or math.isnan(value["lo"]):
        return 0.0, 0.0
    return value["mean"] - value["lo"], value["hi"] - value["mean"]
