# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Section 5 of the report: six actions on four paths, on the Linux kernel in virtual time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import replace
from pathlib import Path
from typing import Any

from ... import LabError, job, kernel, stats, vm
from ...experiment import Results, head
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


def measure(
    *,
    seeds: int,
    jobs: int,
    command: Sequence[str],
    folder: Path,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> Json:
    """Run every action on every path; return the experiment's document.

    Its runs have, for each action, `transfer_s` of the primary transfers in their order. `seeds`
    and `folder` are not used: nothing is random on these paths.
    """
    del seeds, folder
    found = vm.find_kernel()
    planned = [(path, *batch) for path in PATHS for batch in batches(path)]
    total, ended, lock = sum(len(runs) for *_, runs in planned), 0, threading.Lock()

    def count(_: Json) -> None:
        nonlocal ended
        with lock:
            ended += 1
            progress(ended, total)

    with ThreadPoolExecutor(max_workers=jobs) as pool:
        futures = [
            pool.submit(_in_one_machine, scenario, runs, count) for _, scenario, runs in planned
        ]
        wait(futures, return_when=FIRST_EXCEPTION)
        pool.shutdown(cancel_futures=True)
    points: dict[str, Json] = {path: {} for path in PATHS}
    for (path, *_), future in zip(planned, futures, strict=True):
        points[path] |= future.result()
    return {
        **head(NAME, 1, command),
        "kernel": found.version,
        "points": [{"at": {"path": path}, "runs": points[path]} for path in PATHS],
    }


def _in_one_machine(
    scenario: Scenario, runs: Sequence[Background | None], each: Callable[[Json], None]
) -> Json:
    """Run primary transfers beside each of the secondary ones; return what is kept of them."""
    bottleneck = kernel.check(scenario, runs)
    plan = [
        {
            "index": index, "seed": 1, "queue": bottleneck.queue,
            "background": job.background_json(background),
        }
        for index, background in enumerate(runs)
    ]  # fmt: skip
    outcomes: dict[int, Json] = {}

    def collect(outcome: Json) -> None:
        outcomes[outcome["run"]] = kernel.digest(scenario, plan[outcome["run"]], outcome)
        each(outcome)

    job.run_all(
        scenario, plan, vms=1, timeout_s=kernel.timeout_s(scenario, len(plan)), each=collect
    )
    assert scenario.foreground is not None
    alone = ALONE if scenario.foreground.control == "reno" else NICE_ALONE
    kept_runs = {}
    for index, background in enumerate(runs):
        name, entry = background.name if background else alone, outcomes[index]
        if entry["foreground"]["unfinished"]:
            raise LabError(
                f"{scenario.name}, {name}: a primary transfer did not end. Raise drain_s in the "
                "scenario."
            )
        kept_runs[name] = {
            "transfer_s": [round(seconds, 4) for seconds in entry["foreground"]["fct_s"]],
            "mbit": [round(entry["background_goodput_mbit"], 5)],
        }
    return kept_runs
