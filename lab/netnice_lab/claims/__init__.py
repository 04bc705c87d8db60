# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Papers reproduced: every claim beside what is measured here, in the same form for each paper.

A paper is a package of `netnice_lab.papers` with a `paper.Paper`: experiments, which are simulated
and saved as JSON; statements, which judge a claim from what was saved; drawings, which show it. To
add one, write the package; its paper is called as it is, as `PAPER_IMTCP_BG` in `imtcp_bg`.
"""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Callable, Sequence
from pathlib import Path

from .. import PAPERS, ROOT, LabError
from .. import experiment as measure
from . import draw
from . import page as report
from .claim import Claim
from .paper import Measured, Paper, Places, Statement

DOCS = ROOT / "docs"

Progress = Callable[[str, int, int], None]


def find(name: str) -> Paper:
    """Return a paper by its name, or raise LabError with the names that are known."""
    if name not in PAPERS:
        near = difflib.get_close_matches(name, PAPERS, 1)
        hint = f"Did you mean {near[0]!r}?" if near else f"Known: {', '.join(PAPERS)}."
        raise LabError(f"No paper is called {name!r}. {hint}")
    package = name.replace("-", "_")
    module = importlib.import_module(f"netnice_lab.papers.{package}")
    found: Paper = getattr(module, f"PAPER_{package.upper()}")
    return found


def wanted(paper: Paper, only: Sequence[str]) -> list[Statement]:
    """Return the statements called `only`, or all; LabError for a name that no claim has."""
    names = [s.id for s in paper.statements]
    for name in only:
        if name not in names:
            raise LabError(f"No claim is called {name!r}. Known: {', '.join(names)}.")
    return [s for s in paper.statements if not only or s.id in only]


def run(
    paper: Paper,
    *,
    seeds: int,
    only: Sequence[str] = (),
    out: Path = DOCS,
    jobs: int,
    command: Sequence[str],
    progress: Progress = lambda _what, _done, _total: None,
) -> list[Claim]:
    """Measure what the claims need, save it, draw it, write the report; return the claims.

    `progress` gets what runs, and how many simulations of how many have ended. With `only`, the
    report also tells of the other claims whose experiments were saved before. Raises LabError if
    anything failed: no claim is made of a part of its runs.
    """
    statements = wanted(paper, only)
    needed = {name for s in statements for name in s.needs}
    places = Places(out, paper.name)
    simulated = measure.simulate(
        [e for e in paper.experiments() if e.name in needed],
        seeds=seeds, jobs=jobs, command=command,
        progress=lambda done, total: progress("simulations", done, total),
    )  # fmt: skip
    for document in simulated.values():
        measure.save(document, places.data)
    for extra in paper.extras:
        if extra.name in needed:
            document = extra.measure(
                seeds=seeds, jobs=jobs, command=command, folder=places.data,
                progress=lambda done, total, name=extra.name: progress(name, done, total),
            )  # fmt: skip
            measure.save(document, places.data)
    measured = saved(paper, places)
    write(paper, measured, places)
    return [s.claim(measured) for s in statements]


def report_file(paper: Paper, out: Path = DOCS) -> Path:
    """Return where the report of a paper is."""
    return Places(out, paper.name).report


def saved(paper: Paper, places: Places) -> Measured:
    """Return every experiment of the paper that is saved."""
    names = [e.name for e in paper.experiments()] + [extra.name for extra in paper.extras]
    found = {name: measure.load(places.data, name) for name in names}
    return {name: results for name, results in found.items() if results is not None}


def write(paper: Paper, measured: Measured, places: Places) -> None:
    """Draw every figure and write the report, of the saved experiments alone."""
    for statement in paper.statements:
        if all(name in measured for name in statement.needs):
            for drawing in statement.drawings:
                file = places.figures / f"{drawing.name}.svg"
                draw.save(lambda drawing=drawing: drawing.draw(measured), file)  # type: ignore[misc]
    places.report.parent.mkdir(parents=True, exist_ok=True)
    places.report.write_text(report.markdown(paper, measured, places))
