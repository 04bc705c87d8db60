# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""A search for the scenario in which an algorithm harms most, and the worst that was found.

An optimiser (TPE) chooses each trial by those before. What it looks for is harm, less that under
strict priority. The worst are measured again with seeds of their own: of many trials the one that
looks worst is in part the one whose seeds were bad.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import optuna

from .. import LabError, experiment, records, stats
from ..claims.results import Results, save
from ..experiment import Context, Point, Simulated
from ..scenario import IDEAL, NONE, Scenario, Section, read
from .axes import AQM_PACKETS, BASE, packets
from .measure import kept
from .ranges import QUEUES, RANGES, WHOLE
from .worst import FOLDER, NAME

Json = dict[str, Any]

SEED, REPORT_SEED, REPORT_SEEDS = 1001, 101, 10
"""The first seed of the search, and those of what is reported: none is in both."""
BLIND = 0.3
"""Of the trials so many are at random, first. With ten of 200, the search among users elsewhere
ended at harm of 10 under CoDel, where fq_codel has 40."""
KEPT, AGAIN = 10, 20
"""So many are reported, of so many that are measured again."""
ALIKE = 0.2
"""Two scenarios count as one if their queues are, and no value differs by more of its range."""
HELD = ("ebb",)
"""Algorithms whose host holds them, as the default of `netnice run` does."""
ELSEWHERE = "elsewhere"


BYTES = (1000, 3_000_000)
"""Mean sizes of fetches are between these, whatever their number asks for."""


@dataclass(frozen=True)
class Target:
    """The algorithm, and whether users are on other hosts than the one that holds it."""

    algorithm: str
    elsewhere: bool = False

    def __post_init__(self) -> None:
        """Raise LabError for an algorithm that there is not, or that nobody holds."""
        known = records.algorithms()
        if self.algorithm not in known:
            said = f"No algorithm is called {self.algorithm!r}. Known: {', '.join(known)}."
            raise LabError(said, status=2)
        if self.elsewhere and not self.held:
            raise LabError(
                f"Where users are is the same to {self.algorithm}: no host holds it. "
                "Leave --elsewhere out.", status=2,
            )  # fmt: skip

    @property
    def held(self) -> bool:
        """Return whether its host holds it."""
        return self.algorithm in HELD

    @property
    def name(self) -> str:
        """Return the name of what is saved."""
        return f"{self.algorithm}-{ELSEWHERE}" if self.elsewhere else self.algorithm

    @classmethod
    def named(cls, name: str) -> Target:
        """Return what is saved under a name."""
        algorithm, dash, _ = name.partition(f"-{ELSEWHERE}")
        return cls(algorithm, bool(dash))


def scenario(target: Target, values: Json) -> Scenario:
    """Return what one trial simulates."""
    k1 = read(Path(BASE))
    rate, load = values["rate_mbit"], values["load"]
    tail = values["queue"] == "drop-tail"
    room = packets(rate, values["rtt_ms"], values["bdp"])
    size = load * rate * 1e6 / 8 / values["fetches_per_s"]
    host = {"host": ELSEWHERE} if target.elsewhere else {}
    return k1.but(
        name=f"{NAME}-{target.name}", title="",
        bottleneck=k1.bottleneck.but(
            rate_mbit=rate, rtt_ms=float(values["rtt_ms"]), queue=values["queue"],
            limit_packets=room if tail else max(room, AQM_PACKETS),
        ),
        foreground=k1.foreground.but(
            load=load, mean_bytes=round(min(max(size, BYTES[0]), BYTES[1]))
        ),
        background=[
            Section(host, name=target.algorithm, control=f"nn_{target.algorithm}",
                    flows=values["flows"], hold=target.held)
        ],
    )  # fmt: skip


def suggested(trial: optuna.Trial) -> Json:
    """Return the values of a trial."""
    values: Json = {
        name: trial.suggest_int(name, int(its.low), int(its.high), log=True)
        if name in WHOLE
        else float(f"{trial.suggest_float(name, its.low, its.high, log=True):.3g}")
        for name, its in RANGES.items()
    }
    return values | {"queue": trial.suggest_categorical("queue", QUEUES)}


def search(
    target: Target,
    *,
    trials: int,
    seeds: int,
    optimiser_seed: int,
    context: Context,
    progress: Callable[[int, float], None] = lambda _done, _worst: None,
) -> Json:
    """Search, and return the document of the worst; `progress` gets how many trials have ended."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    sampler = optuna.samplers.TPESampler(
        seed=optimiser_seed, n_startup_trials=math.ceil(trials * BLIND)
    )
    study = optuna.create_study(direction="maximize", sampler=sampler)
    tried: list[tuple[float, Json]] = []
    quiet = replace(context, seeds=seeds, progress=Context().progress)
    for number in range(trials):
        trial = study.ask()
        values = suggested(trial)
        (found,) = measured(target, [values], SEED, quiet)
        worse = badness(found)
        study.tell(trial, worse)
        tried.append((worse, values))
        progress(number + 1, max(worse for worse, _ in tried))
    worst = unlike(values for _, values in sorted(tried, key=lambda its: -its[0]))
    own = replace(context, seeds=REPORT_SEEDS, name=f"{target.name}: the worst again")
    points = measured(target, worst, REPORT_SEED, own)
    return {
        **experiment.head(target.name, REPORT_SEEDS, context.command),
        "kind": NAME, "trials": trials, "search_seeds": seeds, "optimiser_seed": optimiser_seed,
        "points": sorted(points, key=lambda point: -badness(point))[:KEPT],
    }  # fmt: skip


def badness(point: Json) -> float:
    """Return by how much it harms more than strict priority: without end if no fetch ended."""
    beyond: float | None = point["beyond"]["mean"]
    return math.inf if beyond is None else beyond


def unlike(worst: Iterable[Json]) -> list[Json]:
    """Return the first of them of which no two are alike."""
    found: list[Json] = []
    for values in worst:
        if len(found) < AGAIN and not any(_alike(values, other) for other in found):
            found.append(values)
    return found


def _alike(one: Json, other: Json) -> bool:
    return one["queue"] == other["queue"] and all(
        abs(its.place(one[name]) - its.place(other[name])) <= ALIKE for name, its in RANGES.items()
    )


def measured(target: Target, every: list[Json], first: int, context: Context) -> list[Json]:
    """Return what was measured with such values: harm, of which so much is `beyond` priority's."""
    points = [Point({"number": n}, scenario(target, values)) for n, values in enumerate(every)]
    of = Simulated(target.name, points, keep=kept, first_seed=first)
    results = Results({"name": target.name, "points": of.measure(context)})
    return [
        {
            "at": values,
            **experiment.rounded(numbers(results, target.algorithm, point.at)),
            "scenario": point.scenario,
        }
        for values, point in zip(every, of.points, strict=True)
    ]


def numbers(results: Results, algorithm: str, at: experiment.At) -> Json:
    """Return harm, how much of it is beyond that under strict priority, share, and what is late."""
    none, ideal, own = (results.values("mean", name, **at) for name in (NONE, IDEAL, algorithm))
    triples = [its for its in zip(none, ideal, own, strict=True) if None not in its]
    found: Json = {
        "harm": results.harm(algorithm, "mean", **at),
        "beyond": stats.interval([(mine - best) / alone for alone, best, mine in triples]),
        "share": stats.of_sums(
            results.values("mbit", algorithm, **at), results.values("mbit", IDEAL, **at)
        ),
    }
    if late := sum(results.values("unfinished", algorithm, **at)):
        found["unfinished"] = int(late)
    return found


def again(document: Json, context: Context) -> Iterator[tuple[Json, Json]]:
    """Yield each saved scenario with what is measured of it now, with the same seeds."""
    target, every = Target.named(document["name"]), document["points"]
    context = replace(context, seeds=document["seeds"])
    now = measured(target, [point["at"] for point in every], REPORT_SEED, context)
    yield from zip(every, now, strict=True)


def keep(document: Json) -> Path:
    """Save it in docs/data with its record; return where."""
    file = save(document, FOLDER)
    points = [Point(point["at"], Section(point["scenario"])) for point in document["points"]]
    records.keep_data(file, document, Simulated(document["name"], points).depends)
    return file
