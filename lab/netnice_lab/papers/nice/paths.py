# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Section 5 of the report: six actions on four paths, on the Linux kernel in virtual time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

from ... import LabError, stats
from ...claims.results import Results
from ...engines import kernel
from ...experiment import Context, Procedure, as_points, running
from ...scenario import Scenario, Section, read, variants

Json = dict[str, Any]

NAME = "paths"
PATHS = ("modem", "cable", "london", "delaware")
NICE = ("nice", "netnice")
"""Backgrounds of the paths' scenarios that have several primary transfers."""
SECONDARY = (1, 8)
"""Secondary transfers beside the primary one."""

ALONE, NICE_ALONE = "Reno/NULL", "netnice/NULL"


def action(name: str, flows: int) -> str:
    """Return an action as the report writes it; `name` is the background's."""
    kind = {"reno": "Reno", "nice": "Nice", "netnice": "netnice"}[name]
    return f"Reno/{kind}{flows if flows > 1 else ''}"


def first_s(scenario: Scenario) -> float:
    """Return when the first primary transfer starts: after half of a gap, in seconds."""
    bottleneck, foreground = scenario.bottleneck, scenario.foreground
    return float(foreground.mean_bytes * 8e-6 / bottleneck.rate_mbit / foreground.load / 2)


def actions(scenario: Scenario, names: Sequence[str]) -> list[Section]:
    """Return the secondary transfers of these backgrounds; they start with the first primary."""
    return [
        b.but(name=action(b.name, flows), flows=flows, start_s=first_s(scenario))
        for flows in SECONDARY
        for b in scenario.background
        if b.name in names
    ]


def once(scenario: Scenario) -> Scenario:
    """Return the scenario with one primary transfer."""
    return scenario.but(measure_s=2 * first_s(scenario) - scenario.warmup_s)


def batches(path: str) -> list[kernel.OnKernel]:
    """Return what runs on a path, each in a machine of its own.

    Beside Reno there is one primary transfer: beside eight flows it takes 100 s.
    """
    scenario = read(Path(f"nice/{path}"))
    nice = scenario.but(background=actions(scenario, NICE))
    reno = once(scenario).but(background=actions(scenario, ["reno"]))
    alone = once(scenario).but(foreground=scenario.foreground.but(control="nn_nice"))
    none, _, *beside = variants(nice)
    return [
        kernel.plan(nice, [none, *beside]),
        kernel.plan(reno, variants(reno)[2:]),
        kernel.plan(alone, variants(alone)[:1]),
    ]


def kept(results: Results, path: str, name: str) -> Json:
    """Return the primary flow's throughput in an action over that alone.

    Each transfer is compared with the one that starts at the same time; the interval is over them.
    """
    alone, transfers = (results.values("transfer_s", n, path=path) for n in (ALONE, name))
    return stats.interval([a / b for a, b in zip(alone, transfers, strict=False)])


def measure(context: Context) -> list[Json]:
    """Run every action on every path; return the points, one for each path.

    Their runs have, for each action, `transfer_s` of the primary transfers in their order. Nothing
    is random on these paths.
    """
    planned = [(path, plan) for path in PATHS if context.wants(path=path) for plan in batches(path)]
    tick = context.ticks(sum(len(plan.runs) for _, plan in planned))
    with ThreadPoolExecutor(context.jobs) as pool:
        futures = [pool.submit(_in_one_machine, context, plan, tick) for _, plan in planned]
        wait(futures, return_when=FIRST_EXCEPTION)
        pool.shutdown(cancel_futures=True)
    return as_points(
        ({"path": path}, entry)
        for (path, _), future in zip(planned, futures, strict=True)
        for entry in future.result()
    )


def _in_one_machine(
    context: Context, plan: kernel.OnKernel, tick: Callable[..., None]
) -> list[Json]:
    """Run primary transfers beside each of the secondary ones; return what is kept of them."""
    scenario = plan.scenario
    outcomes = context.on_kernel(scenario, plan.runs, vms=1, tick=tick)
    alone = ALONE if scenario.foreground.control == "reno" else NICE_ALONE
    kept_runs = []
    for variant, outcome in zip(plan.variants, outcomes, strict=True):
        name = variant.name if variant.background else alone
        entry = plan.digest(outcome)
        if entry["foreground"]["unfinished"]:
            raise LabError(
                f"{scenario.name}, {name}: a primary transfer did not end. Raise drain_s in the "
                "scenario."
            )
        for seconds in entry["foreground"]["fct_s"]:
            kept_runs.append({"background": name, "transfer_s": seconds})
        kept_runs.append({"background": name, "mbit": entry["background_goodput_mbit"]})
    return kept_runs


EXPERIMENT = Procedure(NAME, measure, seeds=1, random=False, kernel=True, depends=running("nice"))
