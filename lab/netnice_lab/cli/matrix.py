# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""The commands ``netnice-lab matrix`` and ``netnice-lab search``."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer
from rich import box
from rich.table import Table

from .. import output
from ..engines.base import RESULTS
from ..experiment import Context
from ..matrix import measure, page, worst
from ..matrix.axes import AXES
from .console import CORES, JOBS, MOST_SEEDS, lines, progress, stderr, tabulate

JSON = typer.Option("--json", help="Print JSON instead of tables.")


def matrix(
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="AXIS",
            help=f"Measure only this axis: {', '.join(a.name for a in AXES)}; may be repeated.",
        ),
    ] = None,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick",
            help=f"Run with {measure.QUICK} seeds, and save in results/matrix, not in docs/.",
        ),
    ] = False,
    draw: Annotated[
        bool,
        typer.Option(
            "--draw", help="Measure nothing: write section and figure from the saved data."
        ),
    ] = False,
    jobs: Annotated[int, JOBS] = CORES,
    as_json: Annotated[bool, JSON] = False,
) -> None:
    """Simulate harm and share over the paths and users that RFC 9743 asks for.

    Example: netnice-lab matrix --quick --only buffer

    One thing is varied at a time around K1: flows, buffer, queue, rate, RTT,
    load, users, faults of the path; corners vary several. Each cell has no
    background, strict priority, ebb (held), nice, lp and cubic. An entry is
    harm / its 95th percentile / share of the spare bandwidth.

    Without --quick it saves data in docs/data/matrix with their records, and
    writes the section of docs/evaluation.md and its figure from them. That
    takes about ten minutes.
    """
    axes = measure.chosen(only or [])
    folder = RESULTS / measure.NAME if quick else measure.FOLDER
    if draw:
        _publish()
        return
    done = []
    with progress() as bar:
        shown = lines(bar, "matrix: ")
        context = Context(measure.QUICK if quick else None, jobs, sys.argv, shown)
        for axis in axes:
            document = measure.measure(axis, context)
            done.append((axis, document, measure.keep(axis, document, folder)))
    if as_json:
        print(json.dumps({"axes": [document for _, document, _ in done]}))
    else:
        for axis, document, _ in done:
            table = Table(title=f"{axis.name}; seeds: {document['seeds']}", box=box.SIMPLE_HEAD)
            table.add_column(axis.title)
            for name in page.COLUMNS:
                table.add_column(name)
            for cell in document["points"]:
                its = (page.entry(cell, name, within=False) for name in page.COLUMNS)
                table.add_row(cell["at"][axis.name], *its)
            tabulate(table)
    stderr.print(f"saved {', '.join(str(file) for *_, file in done)}", soft_wrap=True)
    if not quick:
        _publish()


def search(
    algorithm: Annotated[str, typer.Argument(help="Of the core, as ebb, which is held, or nice.")],
    trials: Annotated[int, typer.Option("--trials", min=1, help="Try so many scenarios.")] = 300,
    seeds: Annotated[
        int,
        typer.Option("--seeds", min=1, max=MOST_SEEDS, help="Simulate each with so many seeds."),
    ] = 5,
    seed: Annotated[
        int, typer.Option("--seed", min=0, help="Seed of the optimiser: it decides what is tried.")
    ] = 1,
    elsewhere: Annotated[
        bool,
        typer.Option(
            "--elsewhere", help="Put users on other hosts than the one that holds the algorithm."
        ),
    ] = False,
    publish: Annotated[
        bool, typer.Option("--publish", help="Save the worst in docs/data, and write the page.")
    ] = False,
    jobs: Annotated[int, JOBS] = CORES,
    as_json: Annotated[bool, JSON] = False,
) -> None:
    """Look for the scenarios in which an algorithm harms users most.

    Example: netnice-lab search nice --trials 50

    An optimiser varies rate, RTT, buffer, queue, load, sizes and flows. It
    looks for harm less that under strict priority. The worst are simulated
    again with other seeds, and the ten worst of these printed and saved as
    scenarios in results/worst, which netnice-sim runs. The same --seed finds
    the same.
    """
    from ..matrix import search as searching  # noqa: PLC0415 (optuna takes long to import)

    target = searching.Target(algorithm, elsewhere)
    with progress() as bar:
        task = bar.add_task(f"{target.name}: trials", total=trials)

        def tried(ended: int, worst: float) -> None:
            said = f"{target.name}: trials, at worst {worst:+.2f}"
            bar.update(task, completed=ended, description=said)

        document = searching.search(
            target, trials=trials, seeds=seeds, optimiser_seed=seed,
            context=Context(None, jobs, sys.argv, lines(bar)), progress=tried,
        )  # fmt: skip
    folder = RESULTS / worst.NAME
    for number, point in enumerate(document["points"], 1):
        file = folder / f"{target.name}-{number}.json"
        output.write(file, json.dumps(point["scenario"], indent=1) + "\n")
    if as_json:
        print(json.dumps(document))
    else:
        head, *rows = worst.table(document)
        table = Table(title=f"{target.name}: the worst of {trials} trials", box=box.SIMPLE_HEAD)
        for column in head:
            table.add_column(column)
        for row in rows:
            table.add_row(*row)
        tabulate(table)
    stderr.print(f"saved {folder}/{target.name}-1.json and so on", soft_wrap=True)
    if publish:
        searching.keep(document)
        _publish()


def _publish() -> None:
    """Write the section and the figure from the saved data."""
    from ..matrix.figure import draw  # noqa: PLC0415 (matplotlib takes long to import)

    found = list(measure.saved())
    page.write(found, list(worst.saved()))
    draw(found, page.FIGURE)
    stderr.print(f"wrote {page.PAGE} and {page.FIGURE}", soft_wrap=True)
