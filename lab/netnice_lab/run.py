# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Run a scenario: every background with every seed, spread over virtual machines."""

from __future__ import annotations

import datetime
import json
import subprocess
import tempfile
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import tomli_w

from . import ROOT, LabError, job, stats, vm
from .scenario import NONE, Scenario

Json = dict[str, Any]
RESULTS = ROOT / "results"


def commit() -> str:
    """Return which source was measured, as git describes it."""
    done = subprocess.run(
        ["git", "describe", "--always", "--dirty"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.stdout.strip() or "unknown"


def check_ranges(scenario: Scenario) -> None:
    """Let netnice-load check what only it knows; raise LabError with its sentence."""
    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / f"{scenario.name}.toml"
        file.write_text(tomli_w.dumps(scenario.to_dict()))
        done = subprocess.run(
            [job.built(job.LOAD), "schedule", file, "--seed", "1", "--data", job.WEB_LOG,
             "--json", "/dev/null"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    if done.returncode != 0:
        said = done.stderr.strip().removeprefix("netnice-load: ")
        raise LabError(said.replace(str(file), scenario.name))


def timeout_s(scenario: Scenario, runs: int) -> float:
    """Return wall seconds after which a machine with so many runs must have hung."""
    longest = scenario.warmup_s + scenario.measure_s + scenario.drain_s
    return 300 + runs * (60 + 20 * longest)


def run(
    scenario: Scenario,
    *,
    seeds: Sequence[int],
    only: Sequence[str] = (),
    modules: Sequence[Path] = (),
    vms: int,
    command: Sequence[str],
    progress: Callable[[Json], None] = lambda _: None,
) -> Json:
    """Run the scenario on the kernel and return the result document.

    `progress` gets each finished run's entry. Raises LabError if anything at all went wrong:
    there are no partial results.
    """
    check_ranges(scenario)
    variants = scenario.variants(only)
    plan = [
        {
            "index": index,
            "seed": seed,
            "queue": (variant and variant.queue) or scenario.bottleneck.queue,
            "background": job.background_json(variant),
        }
        for index, (seed, variant) in enumerate((s, v) for s in seeds for v in variants)
    ]
    kernel = vm.find_kernel()
    runs: dict[int, Json] = {}
    lock = threading.Lock()

    def collect(outcome: Json) -> None:
        planned = plan[outcome["run"]]
        entry = digest(scenario, planned, outcome)
        with lock:
            runs[outcome["run"]] = entry
            progress(entry)

    job.run_all(
        scenario, plan, vms=vms, modules=modules, timeout_s=timeout_s(scenario, len(plan)),
        each=collect,
    )  # fmt: skip
    ordered = [runs[index] for index in sorted(runs)]
    return {
        "schema": 1,
        "scenario": scenario.to_dict(),
        "engine": "kernel",
        "kernel": kernel.version,
        "commit": commit(),
        "command": list(command),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "runs": ordered,
        "summary": stats.summarise(ordered),
    }


def digest(scenario: Scenario, planned: Json, outcome: Json) -> Json:
    """Turn what the guest's programs reported into the entry of one run."""
    background = planned["background"]
    flows = [f for f in outcome["fetch"]["flows"] if f["counted"]] if outcome["fetch"] else []
    rtts = [p["rtt_ms"] for p in outcome["probe"]["samples"]] if outcome["probe"] else None
    window_bytes = [f["window_bytes"] for f in outcome["sink"]["flows"]] if background else []
    rates = [b * 8e-6 / scenario.measure_s for b in window_bytes]
    return {
        "background": background["name"] if background else NONE,
        "control": background["control"] if background else None,
        "flows": background["flows"] if background else 0,
        "seed": planned["seed"],
        "foreground": stats.foreground(flows, scenario.measure_s),
        "probe": stats.probe(rtts) if rtts is not None else None,
        "background_goodput_mbit": sum(rates),
        "background_flow_mbit": rates,
        "queue": outcome["queue"],
    }


def save(result: Json, path: Path | None) -> Path:
    """Write a result to `path`, or under results/ by scenario, engine and date; return where."""
    if path is None:
        stamp = result["date"].replace(":", "").replace("-", "").replace("+0000", "Z")
        path = RESULTS / f"{result['scenario']['name']}-{result['engine']}-{stamp}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result, indent=1) + "\n")
    return path


def load(path: Path) -> Json:
    """Read a saved result; raise LabError if it is not one."""
    try:
        result = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise LabError(f"{path} cannot be read as a result: {error}.") from error
    if not isinstance(result, dict) or result.get("schema") != 1:
        raise LabError(f"{path} is not a result of netnice-lab run (schema 1).")
    return result
