# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""The commands ``netnice-lab claims`` and ``netnice-lab reproduce``."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.table import Table

from .. import PAPERS, LabError
from ..claims import commands
from ..claims.claim import Judgement
from ..claims.page import write
from ..claims.paper import DOCS, Places, find, saved
from ..engines.base import RESULTS
from ..experiment import Context
from .console import CORES, JOBS, MOST_SEEDS, SEEDS, lines, progress, stderr, stdout, tabulate

app = typer.Typer(
    no_args_is_help=True,
    help="Claims of papers, one by one: is each true here? Measure it again.\n\n"
    "Example: netnice-lab claims list --paper nice",
)

IDS = typer.Argument(metavar="[ID]...", help="Claims, as N3; default: all.")
PAPER = typer.Option("--paper", help=f"Claims of this paper: {', '.join(PAPERS)}.")
JSON = typer.Option("--json", help="Print JSON instead of a table.")
QUICK = typer.Option("--quick", help=f"Run with {commands.QUICK} seeds.")


@app.command("list")
def list_(
    paper: Annotated[str | None, PAPER] = None, as_json: Annotated[bool, JSON] = False
) -> None:
    """List the claims: verdict, cost, age, and what has changed since.

    Example: netnice-lab claims list --paper nice

    The cost is what the published data took: runs in the simulator and on
    the kernel, and seconds.
    """
    found = commands.rows(commands.select(paper=paper))
    if as_json:
        print(json.dumps({"claims": [asdict(row) for row in found]}))
        return
    table = Table(box=box.SIMPLE_HEAD)
    for column in ("claim", "paper", "verdict"):
        table.add_column(column, no_wrap=True)
    for column in ("simulated\nruns", "kernel\nruns", "wall\ns", "age\ndays"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("changed since")
    table.add_column("what is claimed")
    for row in found:
        table.add_row(
            row.id, row.paper, row.verdict or "not measured",
            str(row.simulations or ""), str(row.kernel_runs or ""),
            "" if row.wall_s is None else f"{row.wall_s:.0f}",
            "" if row.age_days is None else str(row.age_days), ", ".join(row.changed), row.text,
        )  # fmt: skip
    tabulate(table)


@app.command("check")
def check(
    ids: Annotated[list[str] | None, IDS] = None,
    paper: Annotated[str | None, PAPER] = None,
    as_json: Annotated[bool, JSON] = False,
) -> None:
    """Judge claims by the saved data, which takes seconds.

    Example: netnice-lab claims check N3 F7a

    Exit status 1: a verdict is not the one on the claim's page.
    """
    judged = commands.check(commands.select(ids or [], paper))
    moved = [(claim, page) for claim, page in judged if claim.verdict != page]
    if as_json:
        found = [{**claim.to_json(), "recorded": page} for claim, page in judged]
        print(json.dumps({"claims": found}))
    else:
        if ids:
            _show([claim for claim, _ in judged], "Claims")
        held = sum(claim.verdict == "holds" for claim, _ in judged)
        stdout.print(f"{len(judged)} claims judged: {held} hold, {len(judged) - held} differ.")
    for claim, page in moved:
        stderr.print(f"{claim.id}: {claim.verdict}, but its page says {page or 'nothing'}.")
    if moved:
        raise typer.Exit(1)


@app.command("run")
def run(
    id: Annotated[str, typer.Argument(metavar="ID", help="A claim, as N3.")],
    quick: Annotated[bool, QUICK] = False,
    seeds: Annotated[int | None, SEEDS] = None,
    jobs: Annotated[int, JOBS] = CORES,
    as_json: Annotated[bool, JSON] = False,
    out: Annotated[
        Path | None, typer.Option(help="Directory for the data; default: results/claims/ID.")
    ] = None,
) -> None:
    """Measure one claim again, and only what it needs.

    Example: netnice-lab claims run N12 --quick

    The published data stay as they are.
    """
    if quick and seeds is not None:
        raise LabError(
            f"--quick is --seeds {commands.QUICK}. Leave --quick out, or --seeds.", status=2
        )
    ((paper, claim),) = commands.select([id])
    with _context(paper.name, commands.QUICK if quick else seeds, jobs) as context:
        judged = commands.run(paper, claim, context, out)
    ((_, page),) = commands.check([(paper, claim)])
    if as_json:
        print(json.dumps({**judged.to_json(), "recorded": page}))
    else:
        _show([judged], paper.title)
        stdout.print(f"The page says: {page}.")


@app.command("publish")
def publish(
    ids: Annotated[
        list[str] | None, typer.Argument(metavar="[ID]...", help="Claims, as N3.")
    ] = None,
    data: Annotated[
        list[str] | None,
        typer.Option(metavar="PAPER/NAME", help="Measure this file of docs/data, as nice/spare."),
    ] = None,
    jobs: Annotated[int, JOBS] = CORES,
    as_json: Annotated[bool, JSON] = False,
) -> None:
    """Measure claims with their own seeds, and save data, figures and pages in docs/.

    Example: netnice-lab claims publish N3 --data nice/spare
    """
    if not ids and not data:
        raise typer.BadParameter("Name a claim, as N3, or data, as --data nice/spare.")
    chosen = commands.select(ids) if ids else []
    judged: list[Judgement] = []
    for paper in dict.fromkeys(paper.name for paper, _ in chosen):
        its = [claim for of, claim in chosen if of.name == paper]
        with _context(paper, None, jobs) as context:
            judged += commands.publish(find(paper), its, context)
    for name in data or []:
        of, its, experiment = commands.reading(name)
        with _context(of.name, None, jobs) as context:
            judged += commands.publish(of, its, context, only=[experiment])
    _print(judged, "Published", as_json)


@app.command("pages")
def pages(paper: Annotated[str | None, PAPER] = None) -> None:
    """Write the pages in docs/reproduction and their figures from the saved data alone.

    Example: netnice-lab claims pages --paper nice
    """
    for name in [paper] if paper else PAPERS:
        found = find(name)
        write(found, saved(found))
        stderr.print(f"wrote {Places(DOCS, name).page}", soft_wrap=True)


def reproduce(
    paper: Annotated[str, typer.Argument(help=f"Which paper: {', '.join(PAPERS)}.")],
    seeds: Annotated[
        int | None,
        typer.Option(
            min=1, max=MOST_SEEDS, help="Run with the seeds 1 to N; default: as the published data."
        ),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option("--only", metavar="CLAIM", help="Only this claim, as N3; may be repeated."),
    ] = None,
    jobs: Annotated[int, JOBS] = CORES,
    as_json: Annotated[bool, JSON] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Write to data/, figures/ and reproduction/ in this directory; default: docs, or "
            "results/reproduction with --seeds."
        ),
    ] = None,
) -> None:
    """Measure everything that a paper claims, and write its page.

    Example: netnice-lab reproduce nice --only N3 --only N4

    Data and figures are saved, too. Exit status 0: all was measured, not
    that every claim holds.
    """
    found = find(paper)
    claims = [claim for _, claim in commands.select(only or [], paper)]
    root = out or (DOCS if seeds is None else RESULTS / "reproduction")
    with _context(paper, seeds, jobs) as context:
        judged = commands.publish(found, claims, context, root)
    _print(judged, found.title, as_json)
    stderr.print(f"wrote {Places(root, paper).page}", soft_wrap=True)


@contextmanager
def _context(paper: str, seeds: int | None, jobs: int) -> Iterator[Context]:
    """Give a context that shows a line for each experiment."""
    with progress() as bar:
        yield Context(seeds, jobs, sys.argv, lines(bar, f"{paper}: "))


def _print(judged: list[Judgement], title: str, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"claims": [claim.to_json() for claim in judged]}))
    else:
        _show(judged, title)


def _show(judged: list[Judgement], title: str) -> None:
    table = Table(title=title, box=box.SIMPLE_HEAD, show_lines=True)
    for column in ("", "paper", "here", "verdict"):
        table.add_column(column)
    for claim in judged:
        table.add_row(claim.id, claim.paper, claim.ours, claim.verdict)
    tabulate(table)
    for claim in judged:
        if claim.cause:
            stdout.print(f"{claim.id}. {claim.cause}")
