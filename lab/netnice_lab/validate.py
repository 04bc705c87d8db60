# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Is the simulator true? The same scenarios on the kernel, whose results are kept, and simulated.

The kernel's results are in ``docs/data/validation``, one file for each table; the simulator runs
with the same seeds, hence against the same foreground flows. Of a difference beyond `BOUND`
``causes.toml`` there has to say why: what experiments found, or that they found nothing.
"""

from __future__ import annotations

import json
import subprocess
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import ROOT, LabError, records, report, stats, tools
from .engines import base as runs
from .engines import kernel, sim
from .scenario import IDEAL, NONE, Scenario, Section, describe, read

Json = dict[str, Any]

SCENARIO, ALGORITHMS = Path("validation"), Path("algorithms")
BUFFERS = (50, 200)
FLOWS = 4
"""Of each algorithm, where all are compared."""
BOUND = 0.15
DATA = ROOT / "docs" / "data" / "validation"
CAUSES = DATA / "causes.toml"
NS3 = DATA / "ns3.md"
DOCUMENT = ROOT / "docs" / "validation.md"

COMPARED = {"fct_mean_s": "mean FCT, s", "background_goodput_mbit": "background, Mbit/s"}
"""Keys of a summary, and what tables call them."""


@dataclass(frozen=True)
class Table:
    """What is compared in one table; its name is that of its file and of its causes."""

    name: str
    title: str
    scenario: Scenario
    overrides: Sequence[str] = ()
    """What the scenario's file was read with."""

    @property
    def file(self) -> Path:
        """Return where the kernel's results are kept."""
        return DATA / f"{self.name}.json"


@dataclass(frozen=True)
class Row:
    """What both engines say of one background of a table."""

    table: str
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


def tables() -> list[Table]:
    """Return the tables in the order of the document."""
    found = []
    for size in BUFFERS:
        overrides = [f"bottleneck.limit_packets={size}"]
        title = f"Buffer of {size} packets"
        found.append(Table(f"buffer-{size}", title, read(SCENARIO, overrides), overrides))
    everything = describe(read(ALGORITHMS).but(background=list(algorithms()))).scenario
    return [*found, Table("algorithms", "Every algorithm", everything)]


def algorithms() -> Iterator[Section]:
    """Yield flows of each algorithm of core/, in each of its modes, and those that share a group.

    Which there are, and their parameters, netnice says.
    """
    netnice = tools.built(tools.NETNICE)
    said = subprocess.check_output([netnice, "algorithms", "--json"])
    for algorithm in json.loads(said):
        units = {p["name"]: p["unit"] for p in algorithm["parameters"]}
        name = algorithm["name"]
        plain = Section(name=f"{name} x{FLOWS}", control=f"nn_{name}", flows=FLOWS)
        if "mode" in units:
            for mode in units["mode"].split("|"):
                yield plain.but(name=f"{plain.name}, {mode}", set={"mode": mode})
        else:
            yield plain
        if "share" in units:
            yield plain.but(name=f"{plain.name}, one group", group="g")


def measure(
    seeds: Sequence[int],
    *,
    only: Sequence[str] = (),
    vms: int,
    command: Sequence[str],
    progress: Callable[[Json], None],
) -> None:
    """Run the kernel, and keep its results; with `only`, add these backgrounds to what is kept.

    What is added has the seeds of what is kept.
    """
    for table, names, numbers in planned(only, seeds):
        result = runs.load(table.file) if only and table.file.exists() else None
        for seed in numbers:
            more = runs.measure(
                kernel.Kernel(), table.scenario, seeds=[seed], only=names, jobs=vms,
                command=command, progress=progress,
            )  # fmt: skip
            for entry in more["runs"]:
                # every flow's time, of which the summary is made, would be megabytes
                entry["foreground"].pop("fct_s", None)
                entry["foreground"].pop("sizes", None)
            result = joined(result, more) if result else more
            runs.save(result, table.file)
        if result:
            records.keep_runs(table.file, result, table.overrides, only=[NONE, IDEAL, *names])


def planned(
    only: Sequence[str], seeds: Sequence[int]
) -> list[tuple[Table, list[str], Sequence[int]]]:
    """Return the tables that have any of these backgrounds, or all, with their names and seeds."""
    found = []
    known: list[str] = []
    for table in tables():
        names = [b.name for b in table.scenario.background]
        known += names
        wanted = [name for name in names if not only or name in only]
        if wanted:
            found.append((table, wanted, _seeds(table) if only else seeds))
    for name in only:
        if name not in known:
            raise LabError(
                f"No background of the validation is called {name!r}. Known: {', '.join(known)}."
            )
    return [(table, names, its or seeds) for table, names, its in found]


def _seeds(table: Table) -> list[int]:
    """Return the seeds of the results that are kept, if there are any."""
    entries = runs.load(table.file)["runs"] if table.file.exists() else []
    return sorted({entry["seed"] for entry in entries})


def joined(kept: Json, new: Json) -> Json:
    """Return the new document with those runs of the old one that are still of its scenario."""
    before, now = (describe(document["scenario"]).scenario for document in (kept, new))
    order = [NONE, IDEAL, *(b.name for b in now.background)]
    still = {NONE, IDEAL, *(b.name for b in now.background if b in before.background)}
    if before.but(background=[]) != now.but(background=[]):
        still = set()
    old = [r for r in kept["runs"] if r["background"] in still]
    both = {(r["seed"], order.index(r["background"])): r for r in [*old, *new["runs"]]}
    all_runs = [both[key] for key in sorted(both)]
    return {**new, "runs": all_runs, "summary": stats.summarise(all_runs)}


def compare(*, jobs: int, command: Sequence[str]) -> list[Row]:
    """Simulate what the kernel has run, and return both."""
    written = tomllib.loads(CAUSES.read_text()) if CAUSES.exists() else {}
    causes = {
        (table, name): cause["why"]
        for table, of_table in written.items() for cause in of_table for name in cause["of"]
    }  # fmt: skip
    rows = []
    for table in tables():
        theirs = kept(table)
        ours = runs.measure(
            sim.Simulation(), table.scenario, seeds=_seeds(table), jobs=jobs, command=command
        )
        for entry in stats.compare(theirs["summary"], ours["summary"]):
            name = entry["background"]
            rows.append(Row(table.name, name, entry, causes.get((table.name, name))))
    return rows


def kept(table: Table) -> Json:
    """Return the kernel's results of a table; raise LabError with what has to be measured."""
    file, again = table.file.relative_to(ROOT), "netnice-lab validate --measure"
    if not table.file.exists():
        raise LabError(f"{file} is missing. Make it with {again}.")
    theirs = runs.load(table.file)
    # keys that have come since then have their defaults in both
    measured = describe(theirs["scenario"]).scenario
    if measured.but(background=[]) != table.scenario.but(background=[]):
        raise LabError(f"{file} is of another scenario than there is now. Make it with {again}.")
    run = {(entry["background"], entry["seed"]) for entry in theirs["runs"]}
    missing = [
        b.name
        for b in table.scenario.background
        if b not in measured.background or not run.issuperset((b.name, s) for s in _seeds(table))
    ]
    if missing:
        options = " ".join(f"--only '{name}'" for name in missing)
        raise LabError(f"{file} is without {', '.join(missing)}. Add it with {again} {options}.")
    names = {NONE, IDEAL, *(b.name for b in table.scenario.background)}
    return {**theirs, "summary": [e for e in theirs["summary"] if e["background"] in names]}


def markdown(rows: Sequence[Row]) -> str:
    """Return the document: the tables, and the causes of what differs."""
    lines = [
        "# Is the simulator true?",
        "",
        "## Against the kernel",
        "",
        "`netnice-lab validate` simulates what was run on the kernel, with the same seeds: the "
        "foreground flows are the same in both. Brackets are 95 % confidence intervals over the "
        f"seeds. Where the two differ by more than {100 * BOUND:.0f} %, the page says why, or that "
        "the cause was not found. To tell chance from cause, some rows were simulated with *moved "
        "starts*: 20 times, with the background's start moved by 0 to 0.95 s.",
    ]
    for table in tables():
        theirs = runs.load(table.file)
        lines += ["", f"### {table.title}", ""]
        lines += [
            f"{table.scenario.title} (`lab/scenarios/{table.scenario.name}.toml`). "
            f"Linux {theirs['kernel']}, {len(_seeds(table))} seeds."
        ]
        lines += ["", _head(), _rule()]
        lines += [_line(row) for row in rows if row.table == table.name]
        by_cause: dict[str, list[str]] = {}
        for row in rows:
            if row.table == table.name and not row.agrees:
                by_cause.setdefault(row.cause or "not explained yet", []).append(row.background)
        if by_cause:
            lines += ["", "What differs, and why:", ""]
            lines += [
                f"- {', '.join(f'**{name}**' for name in names)}: {cause}"
                for cause, names in by_cause.items()
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
