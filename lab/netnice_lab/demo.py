# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""The demo: rsync replicates a directory while users fetch web pages, four times.

Each time the users make the same fetches, at the same moments. What the replication costs them is
read from those fetches that began while it ran, beside *the same* fetches in the run without
replication: the ratio of their completion times, and the seconds that all users together waited
longer, which also tells a short nuisance from a long one.
"""

from __future__ import annotations

import os
import tarfile
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
from rich import box
from rich.table import Table

from . import ROOT, LabError, job, report, stats, tools, vm
from .engines.kernel import plan as on_kernel
from .engines.kernel import timeout_s
from .records import provenance
from .scenario import Scenario

mpl.use("svg")
from matplotlib import pyplot as plt

from .plot import OTHERS, OURS, REFERENCE, save

Json = dict[str, Any]

NOTHING, PLAIN, NETNICE, PRIORITY = (
    "no replication", "plain rsync", "netnice run -- rsync", "strict priority",
)  # fmt: skip


@dataclass(frozen=True)
class Source:
    """The files to replicate: regular files below `directory`, in the order of their names."""

    directory: Path
    files: list[Path]
    bytes: int


def select(directory: Path, most_bytes: int) -> Source:
    """Return the first regular files below `directory`, by name, that fit into `most_bytes`.

    Raises LabError if that is none.
    """
    files: list[Path] = []
    size = 0
    for where, folders, names in os.walk(directory):
        folders.sort()
        for name in sorted(names):
            file = Path(where) / name
            if file.is_symlink() or not file.is_file():
                continue
            if size + file.stat().st_size > most_bytes:
                return _some(directory, files, size)
            files.append(file)
            size += file.stat().st_size
    return _some(directory, files, size)


def _some(directory: Path, files: list[Path], size: int) -> Source:
    if not size:
        raise LabError(f"{directory} has no files to replicate. Choose another with --source.")
    return Source(directory, files, size)


def run(
    scenario: Scenario,
    *,
    seed: int,
    source: Source,
    vms: int,
    command: Sequence[str],
    progress: Callable[[str], None] = lambda _: None,
) -> Json:
    """Run the four cases and return the result document. Raises LabError if anything failed."""
    queue = on_kernel(scenario).runs[0]["queue"]
    netnice = [tools.NETNICE.name, "run", "--"]
    cases: list[tuple[str, str, list[str] | None]] = [
        (NOTHING, queue, None),
        (PLAIN, queue, []),
        (NETNICE, queue, netnice),
        (PRIORITY, "priority", []),
    ]
    plan = [
        {
            "index": index, "seed": seed, "queue": discipline, "background": None,
            "copy": None if wrap is None else {"wrap": wrap},
        }
        for index, (_, discipline, wrap) in enumerate(cases)
    ]  # fmt: skip
    outcomes: dict[int, Json] = {}

    def collect(outcome: Json) -> None:
        outcomes[outcome["run"]] = outcome
        progress(cases[outcome["run"]][0])

    with packed(source.directory, source.files) as copying:
        job.run_all(
            scenario, plan, vms=vms, timeout_s=timeout_s(scenario, len(plan)), each=collect,
            **copying,
        )  # fmt: skip
    quiet = outcomes[0]["fetch"]["flows"]
    rows = [digest(scenario, name, outcomes[i], quiet) for i, (name, _, _) in enumerate(cases)]
    return {
        "schema": 1,
        "kind": "demo",
        "scenario": scenario,
        "engine": "kernel",
        "kernel": vm.find_kernel().version,
        **provenance(command),
        "source": {
            "directory": str(source.directory), "files": len(source.files), "bytes": source.bytes,
        },
        "seed": seed,
        "runs": rows,
    }  # fmt: skip


@contextmanager
def packed(directory: Path, files: Iterable[Path]) -> Iterator[Json]:
    """Give what `job.run_all` needs to copy files below `directory`, for as long as it is needed.

    Runs have a `copy`, as `guest.Replication` reads it.
    """
    (ROOT / "build").mkdir(exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=ROOT / "build", suffix=".tar") as archive:
        with tarfile.open(fileobj=archive, mode="w") as tar:
            for file in files:
                tar.add(file, file.relative_to(directory), recursive=False)
        archive.flush()
        yield {
            "programs": [tools.built(tools.NETNICE), tools.tool("rsync"), tools.tool("tar")],
            "more": {"archive": archive.name},
        }


def digest(scenario: Scenario, name: str, outcome: Json, quiet: Sequence[Json]) -> Json:
    """Return one case: its fetches while the copy ran, beside the same ones in the quiet run."""
    copied = outcome["copy"]
    begin = scenario.warmup_s
    end = copied["end_s"] if copied else begin + scenario.measure_s
    flows = outcome["fetch"]["flows"]
    during = [i for i, f in enumerate(flows) if begin <= f["start_s"] < end]
    window = end - begin
    foreground = stats.foreground([flows[i] for i in during], window)
    same = stats.foreground([quiet[i] for i in during], window)
    both = [(flows[i]["fct_s"], quiet[i]["fct_s"]) for i in during]
    arrived = [pair for pair in both if all(pair)]
    keys = ("fct_mean_s", "fct_p95_s", "fct_p99_s")
    return {
        "background": name,
        "copy": copied and {
            **{k: v for k, v in copied.items() if k != "samples"},
            "seconds": end - begin, "identical": True,
        },
        "foreground": foreground,
        "foreground_without_replication": same,
        "ratio": {k: _ratio(foreground[k], same[k]) for k in keys},
        "slower": stats.of_sums(*zip(*arrived, strict=True)) if arrived else stats.interval([]),
        "waited_longer_s": sum(fct - before for fct, before in arrived),
        "probe": stats.probe([p["rtt_ms"] for p in outcome["probe"]["samples"]])
        if outcome["probe"] else None,
        "queue": outcome["queue"],
    }  # fmt: skip


def _ratio(value: float | None, reference: float | None) -> float | None:
    return value / reference if value is not None and reference else None


def table(result: Json) -> Table:
    """Return the demo's table."""
    source = result["source"]
    out = Table(
        title=f"{result['scenario']['title']}",
        caption="pages begun while the copy ran (over the same ones without it); extra wait "
        f"of all users; {source['files']} files of {source['directory']}",
        box=box.SIMPLE_HEAD,
    )
    out.add_column("replication", no_wrap=True)
    for column in (
        "pages", "page time\nmean s", "\np95 s", "\np99 s", "extra\nwait s", "copied\nMB",
        "finished\nafter s",
    ):  # fmt: skip
        out.add_column(column, justify="right", no_wrap=True)
    for row in result["runs"]:
        fct, ratio, copy = row["foreground"], row["ratio"], row["copy"]
        out.add_row(
            row["background"],
            str(fct["flows"]),
            *(
                f"{report.number(fct[k], 3)} ({report.number(ratio[k])})"
                for k in ("fct_mean_s", "fct_p95_s", "fct_p99_s")
            ),
            report.number(row["waited_longer_s"] if copy else None, 1),
            report.number(copy and copy["bytes"] / 1e6, 1),
            report.number(copy and copy["seconds"], 1),
        )
    return out


def sentence(result: Json) -> str:
    """Return in words what the table means, with its numbers."""
    rows = {r["background"]: r for r in result["runs"]}
    plain, ours, ideal = rows[PLAIN], rows[NETNICE], rows[PRIORITY]

    def slower(row: Json) -> str:
        mean, least, most = (100 * (row["slower"][k] - 1) for k in ("mean", "lo", "hi"))
        return f"{mean:z.0f} % [{least:z.0f}, {most:z.0f}]"

    text = (
        f"While plain rsync copied {plain['copy']['bytes'] / 1e6:.1f} MB in "
        f"{plain['copy']['seconds']:.0f} s, pages took {slower(plain)} longer than without it; "
        f"under netnice run it took {ours['copy']['seconds']:.0f} s, and pages {slower(ours)} "
        f"longer, where a router with strict priority would allow "
        f"{ideal['copy']['seconds']:.0f} s and {slower(ideal)}. Brackets are 95 % confidence "
        "intervals over the pages. All copies are identical to their source, byte for byte."
    )
    if late := sum(r["foreground"]["unfinished"] for r in result["runs"]):
        text += f" {late} pages had not arrived when a run ended; the means do not hold them."
    return text


def figure(result: Json, out: Path) -> None:
    """Write the demo's figure as SVG: what users notice, and how long the copy takes."""
    rows = list(reversed([r for r in result["runs"] if r["copy"]]))
    names = [r["background"] for r in rows]
    colours = [{PLAIN: OTHERS, NETNICE: OURS, PRIORITY: REFERENCE}[n] for n in names]
    canvas, (left, right) = plt.subplots(
        1, 2, figsize=(8.4, 2.6), sharey=True, layout="constrained"
    )
    panels = [
        (left, [r["ratio"]["fct_mean_s"] for r in rows], "users' mean page time while copying,\n"
         "over that without replication", "{:.2f}×"),  # noqa: RUF001
        (right, [r["copy"]["seconds"] for r in rows], "time to replicate "
         f"{result['source']['bytes'] / 1e6:.1f} MB, seconds", "{:.0f} s"),
    ]  # fmt: skip
    for axes, values, label, text in panels:
        bars = axes.barh(names, values, color=colours, height=0.6)
        axes.bar_label(bars, [text.format(v) for v in values], padding=4)
        axes.set_xlabel(label)
        axes.set_xlim(0, max(values) * 1.2)
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(left=False)
    left.axvline(1, color="#888888", linewidth=1, linestyle=":")
    save(canvas, out)
