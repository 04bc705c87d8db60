# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""What is done with claims: `select`, `rows`, `check`, `run`, `publish`."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from .. import PAPERS, LabError, output, records
from .. import experiment as experiments
from ..engines.base import RESULTS
from ..experiment import Context, Wanted
from . import page, results
from .claim import Claim, Judgement, Measured
from .paper import DOCS, Paper, Places, find, saved
from .results import MissingError, Results

Json = dict[str, Any]

QUICK = 2
"""Seeds of `--quick`: the fewest that give an interval."""


def select(names: Sequence[str] = (), paper: str | None = None) -> list[tuple[Paper, Claim]]:
    """Return the claims that are called so, or all; of one paper, or of all.

    Raises LabError for a name that no claim has.
    """
    papers = [find(paper)] if paper else [find(name) for name in PAPERS]
    every = [(of, claim) for of in papers for claim in of.claims]
    known = {claim.id: claim for _, claim in every}
    for name in names:
        if name not in known:
            raise LabError(f"No claim is called {name!r}. Known: {', '.join(known)}.")
    return [pair for pair in every if not names or pair[1].id in names]


def reading(data: str) -> tuple[Paper, list[Claim], str]:
    """Return the paper of an experiment called ``paper/name``, the claims that read it, its name.

    Raises LabError if there is none.
    """
    folder, _, name = data.partition("/")
    paper = find(folder)
    claims = [claim for claim in paper.claims if name in claim.needs]
    if not claims:
        known = ", ".join(f"{folder}/{e.name}" for e in paper.experiments())
        raise LabError(f"No claim reads {data!r}. Known: {known}.")
    return paper, claims, name


@dataclass(frozen=True)
class Row:
    """What `claims list` says of one claim."""

    id: str
    paper: str
    verdict: str | None
    """Of the saved data; None if some of it is missing."""
    recorded: str | None
    """What the page says."""
    text: str
    simulations: int
    """Runs in the simulator that its published data took, of all its experiments."""
    kernel_runs: int
    """Runs on the Linux kernel."""
    wall_s: float | None
    """How long its experiments took; None if one of them did not say."""
    measured: str | None
    """Date of its oldest experiment."""
    age_days: int | None
    changed: Sequence[str]
    """What its data depend on that behaves otherwise now."""


def rows(chosen: Sequence[tuple[Paper, Claim]], root: Path = DOCS) -> list[Row]:
    """Return a row for each claim, of the data saved below a directory."""
    found: dict[str, tuple[Measured, dict[str, str]]] = {}
    out = []
    for paper, claim in chosen:
        if paper.name not in found:
            found[paper.name] = saved(paper, root), page.recorded(paper.name, root)
        measured, recorded = found[paper.name]
        its = [measured[name].document for name in claim.needs if name in measured]
        dates = [document["date"] for document in its]
        walls = [document.get("wall_s") for document in its]
        oldest = min(dates)[:10] if dates else None
        changed = records.changes(records.of(key(paper, n) for n in claim.needs)) if oldest else []
        judged = claim.judge(measured) if len(its) == len(claim.needs) else None
        out.append(
            Row(
                claim.id, paper.name, judged.verdict if judged else None, recorded.get(claim.id),
                judged.text if judged else claim.text,
                sum(_runs(d) for d in its if not d.get("kernel")),
                sum(_runs(d) for d in its if d.get("kernel")),
                None if None in walls else sum(w for w in walls if w is not None),
                oldest, None if oldest is None else _days(oldest), changed,
            )
        )  # fmt: skip
    return out


def _runs(document: Json) -> int:
    """Return how many runs an experiment's data is of."""
    points = document["points"]
    backgrounds = sum(len(point.get("runs", [1])) for point in points)
    return int(backgrounds * document["seeds"])


def key(paper: Paper, experiment: str) -> str:
    """Return what the record of an experiment's published data is called."""
    return f"data/{paper.name}/{experiment}"


def _days(date: str) -> int:
    today = datetime.datetime.now(datetime.UTC).date()
    return (today - datetime.date.fromisoformat(date)).days


def check(
    chosen: Sequence[tuple[Paper, Claim]], root: Path = DOCS
) -> list[tuple[Judgement, str | None]]:
    """Judge claims of saved data; return each beside the verdict that its page says.

    Raises LabError if data is missing.
    """
    judged = []
    papers = {paper.name: paper for paper, _ in chosen}
    measured = {name: saved(paper, root) for name, paper in papers.items()}
    pages = {name: page.recorded(name, root) for name in papers}
    for paper, claim in chosen:
        for name in claim.needs:
            if name not in measured[paper.name]:
                raise LabError(
                    f"{claim.id} needs {Places(root, paper.name).data / name}.json, which is not "
                    f"there. Run netnice-lab claims publish {claim.id}."
                )
        judged.append((claim.judge(measured[paper.name]), pages[paper.name].get(claim.id)))
    return judged


def reads(claim: Claim, measured: Measured) -> dict[str, Wanted | None]:
    """Return what a claim reads of each experiment; None stands for all of it."""
    fresh = {name: Results(found.document) for name, found in measured.items()}
    if not all(name in fresh for name in claim.needs):
        return dict.fromkeys(claim.needs)
    claim.judge(fresh)
    return {name: fresh[name].read for name in claim.needs}


def run(paper: Paper, claim: Claim, context: Context, out: Path | None = None) -> Judgement:
    """Measure what one claim reads, save it below `out`, and judge it.

    What that is, the published data tell: the claim is judged of them first, to see which points
    and backgrounds it reads. Where the new data send it elsewhere, that is measured too.
    """
    folder = Places(out or RESULTS / "claims" / claim.id, paper.name).data
    for name in claim.needs:
        output.require(results.place(folder, name))
    wanted = reads(claim, saved(paper))
    of = {e.name: e for e in paper.needed([claim])}
    measured = {
        name: experiments.measure(of[name], replace(context, wanted=wanted[name]))
        for name in claim.needs
    }
    while True:
        try:
            judged = claim.judge({name: Results(d) for name, d in measured.items()})
            break
        except MissingError as missing:
            add_to = measured[missing.experiment]
            names = frozenset([missing.background] if missing.background else ["none"])
            more = replace(context, wanted=Wanted([(missing.at, names)]))
            if not _add(add_to, experiments.measure(of[missing.experiment], more)["points"]):
                raise
    for document in measured.values():
        results.save(document, folder)
    return judged


def _add(document: Json, points: Sequence[Json]) -> bool:
    """Add points, or their backgrounds, to a document; tell whether any was new."""
    known = {repr(p["at"]): p for p in document["points"]}
    new = False
    for point in points:
        there = known.setdefault(repr(point["at"]), {"at": point["at"], "runs": {}})
        new |= bool(point["runs"].keys() - there["runs"].keys())
        there["runs"] = point["runs"] | there["runs"]
    document["points"] = list(known.values())
    return new


def publish(
    paper: Paper,
    chosen: Sequence[Claim],
    context: Context,
    root: Path = DOCS,
    only: Sequence[str] | None = None,
) -> list[Judgement]:
    """Measure the experiments of claims, each with its own seeds; save them, write the page.

    With `only`, of these experiments. An experiment is saved, and its record kept, as soon as it
    ends. The page tells also of the other claims whose experiments were saved before.
    """
    places = Places(root, paper.name)
    needed = [e for e in paper.needed(chosen) if only is None or e.name in only]
    for place in (places.page, *(results.place(places.data, e.name) for e in needed)):
        output.require(place)
    for experiment in needed:
        document = experiments.measure(experiment, context)
        results.save(document, places.data)
        if root == DOCS:
            suite, _, name = key(paper, experiment.name).partition("/")
            records.keep(
                suite, name, verdict=records.MEASURED, depends=experiment.depends,
                seeds=document["seeds"], wall_s=document["wall_s"],
                kernel=document.get("kernel"), document=document,
            )  # fmt: skip
    measured = saved(paper, root)
    page.write(paper, measured, root)
    return [claim.judge(measured) for claim in chosen]
