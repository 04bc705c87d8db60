# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Is the simulator true? The same scenario on the kernel, whose results are kept, and simulated.

The kernel's results are in ``docs/data/validation``, one file for each buffer; the simulator runs
with the same seeds, hence against the same foreground flows. A difference beyond `BOUND` needs its
cause in ``causes.toml`` there, found by experiment.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import ROOT, LabError, kernel, report, sim, stats
from . import run as runs
from .scenario import Scenario, parse, read

Json = dict[str, Any]

SCENARIO = Path("validation")
BUFFERS = (50, 200)
BOUND = 0.15
DATA = ROOT / "docs" / "data" / "validation"
CAUSES = DATA / "causes.toml"
NS3 = DATA / "ns3.md"
DOCUMENT = ROOT / "docs" / "validation.md"

COMPARED = {"fct_mean_s": "mean FCT, s", "background_goodput_mbit": "background, Mbit/s"}
"""Keys of a summary, and what tables call them."""


@dataclass(frozen=True)
class Row:
    """What both engines say of one background with one buffer (in packets)."""

    buffer: int
    background: str
    compared: Json
    cause: str | None

    @property
    def differences(self) -> list[float]:
        """Return by how much the simulator says more, as shares of the kernel's values."""
        found = [self.compared[key]["difference"] for key in COMPARED]
        return [d for d in found if d is not None]

    @property
    def agrees(self) -> bool:
        """Return whether no difference is beyond the bound."""
        return all(abs(d) <= BOUND for d in self.differences)


def scenario(buffer: int) -> Scenario:
    """Return the scenario with a buffer of so many packets."""
    return read(SCENARIO, [f"bottleneck.limit_packets={buffer}"])


def kernel_file(buffer: int) -> Path:
    """Return where the kernel's results with a buffer are kept."""
    return DATA / f"kernel-{buffer}.json"


def measure(
    seeds: Sequence[int], *, vms: int, command: Sequence[str], progress: Callable[[Json], None]
) -> None:
    """Run the kernel with each buffer, and keep its results."""
    for buffer in BUFFERS:
        result = kernel.run(
            scenario(buffer), seeds=seeds, vms=vms, command=command, progress=progress
        )
        for entry in result["runs"]:
            # every flow's time, of which the summary is made, would be megabytes
            entry["foreground"].pop("fct_s", None)
            entry["foreground"].pop("sizes", None)
        runs.save(result, kernel_file(buffer))


def compare(*, jobs: int, command: Sequence[str]) -> list[Row]:
    """Simulate what the kernel has run, and return both."""
    causes = tomllib.loads(CAUSES.read_text()) if CAUSES.exists() else {}
    rows = []
    for buffer in BUFFERS:
        path = kernel_file(buffer)
        if not path.exists():
            raise LabError(
                f"{path.relative_to(ROOT)} is missing. Make it with netnice-lab validate --measure."
            )
        theirs = runs.load(path)
        seeds = sorted({entry["seed"] for entry in theirs["runs"]})
        ours = sim.run(scenario(buffer), seeds=seeds, jobs=jobs, command=command)
        # keys that have come since then have their defaults in both
        if parse(theirs["scenario"], path.name).to_dict() != ours["scenario"]:
            raise LabError(
                f"{path.relative_to(ROOT)} is of another scenario than lab/scenarios/"
                f"{SCENARIO}.toml is now. Measure again with netnice-lab validate --measure."
            )
        for entry in stats.compare(theirs["summary"], ours["summary"]):
            name = entry["background"]
            cause = causes.get(f"buffer-{buffer}", {}).get(name)
            rows.append(Row(buffer, name, entry, cause))
    return rows


def markdown(rows: Sequence[Row]) -> str:
    """Return the document: a table for each buffer, and the causes of what differs."""
    theirs = runs.load(kernel_file(BUFFERS[0]))
    seeds = len({entry["seed"] for entry in theirs["runs"]})
    lines = [
        "# Is the simulator true?",
        "",
        "## Against the kernel",
        "",
        f"`netnice-lab validate` runs `lab/scenarios/{SCENARIO}.toml` in the simulator and "
        f"compares with Linux {theirs['kernel']}: {seeds} seeds, the same foreground flows. "
        f"Differences of more than {100 * BOUND:.0f} % are explained below. "
        "[95 % confidence intervals] over the seeds.",
    ]
    for buffer in BUFFERS:
        lines += ["", f"### Buffer of {buffer} packets", "", _head(), _rule()]
        lines += [_line(row) for row in rows if row.buffer == buffer]
    if explained := [row for row in rows if not row.agrees]:
        lines += ["", "### What differs, and why", ""]
        lines += [
            f"- **{row.background}, {row.buffer} packets**: {row.cause or 'not yet explained'}"
            for row in explained
        ]
    if NS3.exists():
        lines += ["", NS3.read_text().rstrip()]
    return "\n".join(lines) + "\n"


def _head() -> str:
    columns = [
        f"{name}: {what}" for name in COMPARED.values() for what in ("kernel", "simulator", "%")
    ]
    return f"| background | {' | '.join(columns)} | FCT ratio: kernel | simulator |"


def _rule() -> str:
    return "|---" * (3 + 3 * len(COMPARED)) + "|"


def _line(row: Row) -> str:
    cells = [row.background]
    for key in COMPARED:
        value = row.compared[key]
        digits = 3 if key.endswith("_s") else 2
        cells += [report.number(value["kernel"], digits), report.number(value["sim"], digits)]
        cells.append(report.percent(value["difference"]))
    ratio = row.compared["fct_ratio_mean"]
    cells += [report.with_interval(ratio["kernel"]), report.with_interval(ratio["sim"])]
    return f"| {' | '.join(cells)} |"
