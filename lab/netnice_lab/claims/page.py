# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""The page of a paper, in Markdown: every claim beside what was measured, from saved data alone."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from .. import output, records
from .claim import Claim, Judgement, Measured, Table
from .paper import DOCS, Paper, Places


def told(paper: Paper, measured: Measured) -> list[Claim]:
    """Return the claims whose experiments are there."""
    return [c for c in paper.claims if all(name in measured for name in c.needs)]


def markdown(paper: Paper, measured: Measured, places: Places) -> str:
    """Return the page of all claims whose experiments are there."""
    judged = [(claim, claim.judge(measured)) for claim in told(paper, measured)]
    parts = [f"# {paper.title}", paper.preamble.strip(), _overview(paper, [j for _, j in judged])]
    parts += [_section(paper, *pair, measured, places) for pair in judged]
    parts.append(_origin(paper, measured, places))
    return "\n\n".join(parts) + "\n"


def _overview(paper: Paper, claims: Sequence[Judgement]) -> str:
    rows = [
        [f"[{c.id}](#{c.id.lower()})", c.text, c.paper, c.ours, f"**{c.verdict}**"] for c in claims
    ]
    held = sum(c.verdict == "holds" for c in claims)
    table = _table(("", "claim", paper.whose, "here", "verdict"), rows)
    return f"## Claims\n\n{held} of {len(claims)} hold.\n\n{table}"


def _section(
    paper: Paper, claim: Claim, judged: Judgement, measured: Measured, places: Places
) -> str:
    parts = [f"## {judged.id}", f"{judged.text}. **{judged.verdict.capitalize()}.**"]
    parts.append(f"The {paper.whose}: {judged.paper}. Here: {judged.ours}.")
    if places.root == DOCS:
        parts.append(_since(claim, places))
    if judged.cause:
        parts.append(f"*Cause.* {judged.cause}")
    for drawing in claim.drawings:
        file = os.path.relpath(places.figures / f"{drawing.name}.svg", places.page.parent)
        parts.append(f"![{drawing.caption}]({file})\n\n*{drawing.caption}*")
    parts += [markdown_table(table, measured) for table in claim.tables]
    return "\n\n".join(parts)


def _since(claim: Claim, places: Places) -> str:
    """Return of which commits a claim's data are, and what has changed since.

    The mark lets tests/records/renew.py write it anew.
    """
    names = [f"data/{places.paper}/{name}" for name in claim.needs]
    why = os.path.relpath(records.STALE, places.page.parent)
    return f"<!-- records: {', '.join(names)} -->\n{records.sentence(names, why)}"


def markdown_table(table: Table, measured: Measured) -> str:
    """Return a table with its caption."""
    return f"{table.caption}:\n\n{_table(table.columns, table.rows(measured))}"


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _origin(paper: Paper, measured: Measured, places: Places) -> str:
    folder = os.path.relpath(places.data, places.page.parent)
    rows = []
    for name, results in measured.items():
        document = results.document
        engine = f"Linux {document['kernel']}" if document.get("kernel") else "simulator"
        rows.append(
            [f"[{name}]({folder}/{name}.json)", engine, str(results.seeds), document["commit"],
             document["date"]]
        )  # fmt: skip
    return (
        f"## Data\n\n`netnice-lab reproduce {paper.name}` makes this page, its figures and its "
        "data anew. Every number and figure comes from these files:\n\n"
        + _table(("experiment", "engine", "seeds", "source", "date"), rows)
    )


def recorded(paper: str, root: Path = DOCS) -> dict[str, str]:
    """Return the verdicts that a page says, by claim; none if there is no page."""
    page = Places(root, paper).page
    text = page.read_text() if page.exists() else ""
    sections = re.findall(r"^## (\S+)\n\n.*?\*\*(Holds|Differs)\.\*\*$", text, re.M)
    return {name: verdict.lower() for name, verdict in sections}


def write(paper: Paper, measured: Measured, root: Path = DOCS) -> None:
    """Draw every figure and write the page, of the saved experiments alone."""
    from . import draw  # noqa: PLC0415 (matplotlib takes long to import)

    places = Places(root, paper.name)
    for claim in told(paper, measured):
        for drawing in claim.drawings:
            file = places.figures / f"{drawing.name}.svg"
            draw.save(lambda drawing=drawing: drawing.draw(measured), file)  # type: ignore[misc]
    output.write(places.page, markdown(paper, measured, places))
