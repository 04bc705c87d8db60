# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""From what was measured to what is reported: means, percentiles, paired ratios, intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import stats

from .scenario import IDEAL, NONE

Json = dict[str, Any]


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


def _paired(runs: Sequence[Json], references: Sequence[Json], path: Sequence[str]) -> list[float]:
    """Return value over the reference's value of the same seed, where both exist."""

    def get(run: Json) -> float | None:
        for key in path[:-1]:
            run = run.get(key) or {}
        return run.get(path[-1])

    by_seed = {r["seed"]: get(r) for r in references}
    pairs = [(get(r), by_seed.get(r["seed"])) for r in runs]
    return [v / ref for v, ref in pairs if v is not None and ref]


def summarise(runs: Sequence[Json]) -> list[Json]:
    """Return one entry for each background, in the order of first appearance.

    Ratios are to no background and shares to strict priority, each with the same seed.
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
        entry["share"] = interval(_paired(group, ideal, ("background_goodput_mbit",)))
        means = [r["foreground"]["fct_mean_s"] for r in group]
        entry["fct_mean_s"] = mean([m for m in means if m is not None])
        entry["background_goodput_mbit"] = mean([r["background_goodput_mbit"] for r in group])
        entry["probe_rtt_ratio_mean"] = mean(_paired(group, none, ("probe", "rtt_mean_ms")))
        entry["unfinished"] = sum(r["foreground"]["unfinished"] for r in group)
        summary.append(entry)
    return summary


def spread(value: Json) -> tuple[float, float]:
    """Return how far an interval reaches below and above its mean; 0 where there is none."""
    if value["lo"] is None or math.isnan(value["lo"]):
        return 0.0, 0.0
    return value["mean"] - value["lo"], value["hi"] - value["mean"]
