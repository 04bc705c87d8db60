# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Section 6.1 of TCP Nice's report: clients that prefetch replay a web log, on the kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from ... import tools
from ...experiment import Context, Procedure, as_points, running
from ...scenario import NONE, Scenario, read

Json = dict[str, Any]

STRATEGIES = CONSERVATIVE, AGGRESSIVE, PERFECT = "conservative", "aggressive", "perfect"
"""Strategies of `netnice-prefetch replay`."""

RENO, NICE = "Reno", "Nice"
"""Who answers prefetches: a second port of nginx in the foreground, or the proxy with nn_nice."""

BOTH = (RENO, NICE)
THRESHOLDS = (0.00001, 0.05, 0.25)
"""Least probabilities of what is prefetched: the first is that of the aggressive strategy."""

CLIENTS = 64
DRAIN_S = 600
"""Seconds for views that were asked for late, or had to wait."""


@dataclass(frozen=True)
class Trial:
    """A way to prefetch: options of the replay, and who answers."""

    options: tuple[str, ...]
    by: str


@dataclass(frozen=True)
class Setting:
    """What one experiment replays, and where."""

    name: str
    path: str
    """Of `lab/scenarios/nice`, which gives the bottleneck."""
    hours: int
    """The busiest hours of the log that are overlaid."""
    max_bytes: int
    """Of the largest object."""
    duration_s: int
    """Seconds that the views are spread over."""
    trials: Mapping[str, Trial]
    """By name, the first without prefetching."""
    at: Mapping[str, int] = field(default_factory=dict)
    """What tells it from others of the same experiment."""

    def scenario(self) -> Scenario:
        """Return the path with nothing on it but the replay."""
        return read(Path(f"nice/{self.path}")).but(
            name=self.name, warmup_s=0.0, measure_s=float(self.duration_s + DRAIN_S), drain_s=0.0,
            foreground=None, background=[],
        )  # fmt: skip

    def replay(self, trial: Trial, seed: int) -> Json:
        """Return a run's `replay` as the guest reads it."""
        log = [tools.WEB_LOG.name, "--max-bytes", str(self.max_bytes)]
        numbers = {
            "hours": self.hours, "clients": CLIENTS, "duration": self.duration_s,
            "drain": DRAIN_S, "seed": seed,
        }  # fmt: skip
        options = [word for key, value in numbers.items() for word in (f"--{key}", str(value))]
        return {
            "site": log, "options": [*log, *options, *trial.options], "second": trial.by == RENO,
        }  # fmt: skip


def named(how: str | float, by: str) -> str:
    """Return the name of a trial: its strategy or least probability, and who answers."""
    return f"{how}, {by}" if isinstance(how, str) else f"{how:g}, {by}"


_NONE = {NONE: Trial((), NICE)}


def strategies() -> dict[str, Trial]:
    """Return the trials of figures 8 and 9, and perfect prediction."""
    return _NONE | {
        named(strategy, by): Trial(("--prefetch", strategy), by)
        for strategy in STRATEGIES
        for by in BOTH
    }


def thresholds() -> dict[str, Trial]:
    """Return the trials of the trade-off: the aggressive strategy at other least probabilities.

    Perfect prediction shows what there is to gain.
    """
    return (
        _NONE
        | {
            named(least, by): Trial(("--prefetch", AGGRESSIVE, "--threshold", f"{least:f}"), by)
            for least in THRESHOLDS
            for by in BOTH
        }
        | {named(PERFECT, by): Trial(("--prefetch", PERFECT), by) for by in BOTH}
    )


def aggressive() -> dict[str, Trial]:
    """Return the trials of growing demand: no prefetching, and the aggressive strategy."""
    return _NONE | {named(AGGRESSIVE, by): Trial(("--prefetch", AGGRESSIVE), by) for by in BOTH}


CABLE = Setting("cable", "cable", 1, 1 << 20, 150, strategies())
MODEM = Setting("modem", "modem", 1, 1 << 20, 3900, strategies())
TRADE_OFF = Setting("thresholds", "cable", 3, 1 << 20, 150, thresholds())

HOURS = (1, 2, 3, 4)
"""Overlaid in the same time, so that demand grows against the link."""

LOADS = [Setting("loads", "cable", h, 1 << 20, 150, aggressive(), {"hours": h}) for h in HOURS]


def kept(setting: Setting, outcome: Json) -> Json:
    """Return what is kept of one replay: seconds, MB, shares.

    `mean_s`, `median_s` and `p95_s` are response times of demand requests; `hit` the share of them
    that the cache answered; `load` what demand took over the network, over what the bottleneck
    could have carried while views were asked for; `drops` the share of the bottleneck's packets.
    """
    found, queue = outcome["summary"], outcome["queue"]
    bottleneck = setting.scenario().bottleneck
    carried_mb = bottleneck.rate_mbit * setting.duration_s / 8
    answered, refused = found["prefetches"]
    median, p95, _ = found["quantiles_s"]
    return {
        "requests": found["requests"], "mean_s": found["mean_s"], "median_s": median, "p95_s": p95,
        "hit": found["hit_share"], "load": found["demand_bytes"] * 1e-6 / carried_mb,
        "demand_mb": found["demand_bytes"] * 1e-6,
        "prefetched_mb": found["prefetched_bytes"] * 1e-6, "used_mb": found["used_bytes"] * 1e-6,
        "prefetches": answered, "refused": refused, "unfinished": found["views_left"],
        "drops": queue["drops"] / (queue["drops"] + queue["sent_packets"]),
    }  # fmt: skip


def measure(settings: Sequence[Setting], context: Context) -> list[Json]:
    """Replay with every trial and seed; return the points, one for each setting.

    Several settings are on the same path for the same time.
    """
    scenario = settings[0].scenario()
    cases = [
        (setting, seed, name)
        for setting in settings
        for seed in context.numbers
        for name in context.among(setting.trials, **setting.at)
    ]
    plan = [
        {
            "seed": seed, "queue": scenario.bottleneck.queue, "background": None,
            "replay": setting.replay(setting.trials[name], seed),
        }
        for setting, seed, name in cases
    ]  # fmt: skip
    outcomes = context.on_kernel(
        scenario, plan,
        programs=[tools.built(tools.NETNICE), tools.built(tools.PREFETCH), tools.tool("nginx")],
        more={"controls": ["nn_ebb", "nn_nice", "reno"], "netnice": tools.NETNICE.name},
    )  # fmt: skip
    return as_points(
        (setting.at, {"background": name, **kept(setting, outcome)})
        for (setting, _, name), outcome in zip(cases, outcomes, strict=True)
    )


EXPERIMENTS = [
    Procedure(
        settings[0].name,
        partial(measure, settings),
        seeds=seeds,
        kernel=True,
        depends=running("nice"),
    )
    for settings, seeds in (([CABLE], 3), ([MODEM], 3), ([TRADE_OFF], 8), (LOADS, 3))
]
