# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""The report of a reproduction, in Markdown, and its claims as a table on the terminal."""

from __future__ import annotations

import os
from collections.abc import Sequence

from rich import box
from rich.table import Table as RichTable

from .claim import Claim
from .paper import Measured, Paper, Places, Statement, Table


def markdown(paper: Paper, measured: Measured, places: Places) -> str:
    """Return the report of all claims whose experiments are there."""
    told = [s for s in paper.statements if all(name in measured for name in s.needs)]
    claims = {s.id: s.claim(measured) for s in told}
    parts = [f"# {paper.title}", paper.preamble.strip(), _overview(list(claims.values()))]
    parts += [_section(s, claims[s.id], measured, places) for s in told]
    parts.append(_origin(paper, measured, places))
    return "\n\n".join(parts) + "\n"


def _overview(claims: Sequence[Claim]) -> str:
    rows = [
        [f"[{c.id}](#{c.id.lower()})", c.text, c.paper, c.ours, f"**{c.verdict}**"] for c in claims
    ]
    held = sum(c.verdict == "holds" for c in claims)
    table = _table(("", "claim", "paper", "here", "verdict"), rows)
    return f"## Claims\n\n{held} of {len(claims)} hold.\n\n{table}"


def _section(statement: Statement, claim: Claim, measured: Measured, places: Places) -> str:
    parts = [f"## {claim.id}", f"{claim.text}. **{claim.verdict.capitalize()}.**"]
    parts.append(f"The paper: {claim.paper}. Here: {claim.ours}.")
    if claim.cause:
        parts.append(f"*Cause.* {claim.cause}")
    for drawing in statement.drawings:
        file = os.path.relpath(places.figures / f"{drawing.name}.svg", places.report.parent)
        parts.append(f"![{drawing.caption}]({file})\n\n*{drawing.caption}*")
    parts += [markdown_table(table, measured) for table in statement.tables]
    return "\n\n".join(parts)


def markdown_table(table: Table, measured: Measured) -> str:
    """Return a table with its caption."""
    return f"{table.caption}:\n\n{_table(table.columns, table.rows(measured))}"


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _origin(paper: Paper, measured: Measured, places: Places) -> str:
    folder = os.path.relpath(places.data, places.report.parent)
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


def terminal(title: str, claims: Sequence[Claim]) -> RichTable:
    """Return the claims as a table for the terminal."""
    out = RichTable(title=title, box=box.SIMPLE_HEAD, show_lines=True)
    for column in ("", "paper", "here", "verdict"):
        out.add_column(column)
    for claim in claims:
        out.add_row(claim.id, claim.paper, claim.ours, claim.verdict)
    return out
