# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""What the commands of the lab share: where they print, and options that several have."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)

# A table in a file or a pipe keeps its columns.
stdout = Console(width=None if sys.stdout.isatty() else 110)
stderr = Console(stderr=True)
CORES = os.cpu_count() or 1

JOBS = typer.Option("--jobs", "-j", min=1, help="Virtual machines or simulations at a time.")


def progress() -> Progress:
    """Return bars for what takes long, on standard error."""
    return Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
        console=stderr,
    )  # fmt: skip


def lines(bar: Progress, heading: str = "") -> Callable[[str, int, int], None]:
    """Return what shows a line for each thing that runs, as `Context.progress` is told of it."""
    tasks: dict[str, TaskID] = {}

    def advance(what: str, done: int, total: int) -> None:
        if what not in tasks:
            tasks[what] = bar.add_task(f"{heading}{what}")
        bar.update(tasks[what], completed=done, total=total)

    return advance
