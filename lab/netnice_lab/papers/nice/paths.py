# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Section 5 of the report: six actions on four paths, on the Linux kernel in virtual time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import replace
from pathlib import Path
from typing import Any

from ... import LabError, stats
from ...claims.results import Results
from ...engines import kernel
from ...experiment import Context, Procedure, as_points, running
from ...scenario import Background, Scenario, read

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
    assert bottleneck is not None
    assert foreground is not None
    return foreground.mean_bytes * 8e-6 / bottleneck.rate_mbit / foreground.load / 2


def actions(scenario: Scenario, names: Sequence[str]) -> list[Background]:
    """Return the secondary transfers of these backgrounds; they start with the first primary."""
    return [
        replace(b, name=action(b.name, flows), flows=flows, start_s=first_s(scenario))
        for flows in SECONDARY
        for b in scenario.background
        if b.name in names
    ]


def once(scenario: Scenario) -> Scenario:
    """Return the scenario with one primary transfer."""
    return replace(scenario, measure_s=2 * first_s(scenario) - scenario.warmup_s)


def batches(path: str) -> list[tuple[Scenario, list[Background | None]]]:
    """Return what runs on a path in a machine of its own: scenarios and secondary transfers.

    Beside Reno there is one primary transfer: beside eight flows it takes 100 s.
    """
    scenario = read(Path(f"nice/{path}"))
    assert scenario.foreground is not None
    nice = replace(once(scenario), foreground=replace(scenario.foreground, control="nn_nice"))
    return [
        (scenario, [None, *actions(scenario, NICE)]),
        (once(scenario), list(actions(scenario, ["reno"]))),
        (nice, [None]),
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
    planned = [
        (path, *batch) for path in PATHS if context.wants(path=path) for batch in batches(path)
    ]
    tick = context.ticks(sum(len(runs) for *_, runs in planned))
    with ThreadPoolExecutor(context.jobs) as pool:
        futures = [
            pool.submit(_in_one_machine, context, scenario, runs, tick)
            for _, scenario, runs in planned
        ]
        wait(futures, return_when=FIRST_EXCEPTION)
        pool.shutdown(cancel_futures=True)
    return as_points(
        ({"path": path}, entry)
        for (path, *_), future in zip(planned, futures, strict=True)
        for entry in future.result()
    )


def _in_one_machine(
    context: Context,
    scenario: Scenario,
    runs: Sequence[Background | None],
    tick: Callable[..., None],
) -> list[Json]:
    """Run primary transfers beside each of the secondary ones; return what is kept of them."""
    plan = kernel.plan(scenario, runs)
    outcomes = context.on_kernel(plan.scenario, plan.runs, vms=1, tick=tick)
    assert scenario.foreground is not None
    alone = ALONE if scenario.foreground.control == "reno" else NICE_ALONE
    kept_runs = []
    for background, outcome in zip(runs, outcomes, strict=True):
        name = background.name if background else alone
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
