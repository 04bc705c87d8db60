# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""What the commands of the lab share: where they print, and options that several have."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from copy import copy
from functools import partial
from io import TextIOWrapper
from pathlib import Path
from typing import Any, TextIO, cast

import typer
from rich.console import Console
from rich.measure import Measurement
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Table

# Names and paths are printed as they are: a [ or a :name: in them means nothing.
_console = partial(Console, markup=False, emoji=False)
stdout = _console(width=None if sys.stdout and sys.stdout.isatty() else 110)
stderr = _console(stderr=True)
CORES = os.cpu_count() or 1

MOST_SEEDS = 100_000
"""As netnice-sim has it."""

SEEDS = typer.Option("--seeds", min=1, max=MOST_SEEDS, help="Run with the seeds 1 to N.")
JOBS = typer.Option(
    "--jobs", "-j", min=1, max=1000, help="Virtual machines or simulations at a time."
)


def tabulate(table: Table) -> None:
    """Print a table; where the terminal is narrower than its numbers, as wide as these are."""
    for column in table.columns:
        column.overflow = "fold"
    _console(width=max(stdout.width, _least(table))).print(table)


def _least(table: Table) -> int:
    """Return the width in which a table loses nothing: only some columns may wrap, at a space."""
    options = stdout.options.update(width=sys.maxsize)

    def measured(wraps: bool) -> Measurement:
        part = copy(table)
        part.columns = [column for column in table.columns if column.no_wrap is not wraps]
        return Measurement.get(stdout, options, part)

    return measured(False).maximum + measured(True).minimum


class _Told:
    """Standard error: that nobody can read what it tells is no failure."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        try:
            self._stream.write(text)
            self._stream.flush()
        except OSError:
            self._stream = _nowhere()
        return len(text)


def _nowhere() -> TextIO:
    return Path(os.devnull).open("w")


def open_streams() -> None:
    """Let a closed or full standard error, or a closed standard output, end nothing.

    What the locale cannot write is a question mark.
    """
    sys.stdout = sys.stdout or _nowhere()
    cast("TextIOWrapper", sys.stdout).reconfigure(errors="replace")
    sys.stderr = cast("TextIO", _Told(sys.stderr or _nowhere()))


def progress() -> Progress:
    """Return bars for what takes long, on standard error."""
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), console=stderr,
    )  # fmt: skip


def lines(bar: Progress, heading: str = "") -> Callable[[str, int, int], None]:
    """Return what shows a line for each thing that runs, as `Context.progress` is told of it."""
    tasks: dict[str, TaskID] = {}

    def advance(what: str, done: int, total: int) -> None:
        if what not in tasks:
            tasks[what] = bar.add_task(f"{heading}{what}")
        bar.update(tasks[what], completed=done, total=total)

    return advance
