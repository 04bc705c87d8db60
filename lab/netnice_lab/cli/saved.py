# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""The commands that show what was saved: ``netnice-lab table``, ``plot`` and ``watched``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from .. import LabError, output, report
from ..engines import base as runs
from .console import stderr, stdout, tabulate

AS_JSON = typer.Option("--json", help="Print the result as JSON instead of a table.")


def table(
    result: Annotated[Path, typer.Argument(help="A saved result.")],
    as_json: Annotated[bool, AS_JSON] = False,
) -> None:
    """Print the table of a saved result.

    Example: netnice-lab table docs/data/k1.json
    """
    with runs.showing(result) as saved:
        display(saved, as_json)


def plot(
    result: Annotated[Path, typer.Argument(help="A saved result.")],
    out: Annotated[Path | None, typer.Option(help="SVG file; default: next to the result.")] = None,
) -> None:
    """Draw a saved result: harm to the foreground against use of the spare bandwidth.

    Example: netnice-lab plot docs/data/k1.json --out k1.svg
    """
    from .. import demo, plot  # noqa: PLC0415 (matplotlib takes long to import)

    path = out or result.with_suffix(".svg")
    with runs.showing(result) as saved:
        output.require(path, result)
        if saved.get("kind") == "demo":
            demo.figure(saved, path)
        else:
            _require_summary(saved)
            plot.harm_and_share(saved, path)
    stderr.print(f"drew {path}", soft_wrap=True)


def watched(
    record: Annotated[
        Path, typer.Argument(help="What netnice top --once --json said, a line each.")
    ],
    out: Annotated[Path | None, typer.Option(help="SVG file; default: next to the record.")] = None,
) -> None:
    """Draw what `netnice top` saw of a job: its rate, what others sent, its queue, and why.

    Example: netnice-lab watched docs/figures/top.jsonl --out top.svg
    """
    from .. import watched as show  # noqa: PLC0415 (matplotlib takes long to import)

    path = out or record.with_suffix(".svg")
    with runs.damage_in(record):
        views = show.read(record)
        output.require(path, record)
        show.panels(views, path)
    stderr.print(f"drew {path}", soft_wrap=True)


def display(result: dict[str, Any], as_json: bool) -> None:
    """Print a result, as a table with its sentence or as JSON."""
    if as_json:
        print(json.dumps(result))
        return
    kind = result.get("kind")
    if kind == "demo":
        _show_demo(result)
    elif kind == "sweep":
        tabulate(report.sweep(result))
        every = [entry for point in result["results"] for entry in point["summary"]]
        if text := report.late(every):
            stdout.print(text)
    else:
        _require_summary(result)
        tabulate(report.table(result))
        if text := report.sentence(result):
            stdout.print(text)


def _show_demo(result: dict[str, Any]) -> None:
    from .. import demo as show  # noqa: PLC0415 (matplotlib takes long to import)

    tabulate(show.table(result))
    stdout.print(show.sentence(result))


def _require_summary(result: dict[str, Any]) -> None:
    if "summary" not in result:
        kind = result.get("kind", "unknown kind")
        raise LabError(f"This is the data of a study ({kind}): docs/ has the page that shows it.")
    if not result["summary"]:
        raise ValueError("its summary is empty")
