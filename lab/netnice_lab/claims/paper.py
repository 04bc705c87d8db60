# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""A paper to reproduce: its experiments, its claims, its figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from ..experiment import Experiment, Results
from .claim import Claim

Json = dict[str, Any]
Measured = Mapping[str, Results]
"""Saved experiments by name."""


@dataclass(frozen=True)
class Drawing:
    """A figure of the report."""

    name: str
    """Of the file, without its ending."""
    caption: str
    draw: Callable[[Measured], Figure]


@dataclass(frozen=True)
class Table:
    """A table of the report: what experiments say about causes."""

    caption: str
    columns: Sequence[str]
    rows: Callable[[Measured], Sequence[Sequence[str]]]


@dataclass(frozen=True)
class Statement:
    """A claim, and what it rests on."""

    id: str
    needs: Sequence[str]
    """Experiments that the verdict, the figures and the tables are made of."""
    claim: Callable[[Measured], Claim]
    drawings: Sequence[Drawing] = ()
    tables: Sequence[Table] = ()


@dataclass(frozen=True)
class Extra:
    """An experiment that is no simulation of scenarios: it measures for itself."""

    name: str
    measure: Callable[..., Json]
    """Called with `seeds`, `jobs`, `command`, `progress(done, total)` and `folder`, where the
    experiment's file will be; returns the document."""


@dataclass(frozen=True)
class Paper:
    """A paper and its reproduction."""

    name: str
    title: str
    preamble: str
    """Of the report, in Markdown: setting, choices, how to read it."""
    experiments: Callable[[], Sequence[Experiment]]
    statements: Sequence[Statement]
    extras: Sequence[Extra] = field(default_factory=list)


@dataclass(frozen=True)
class Places:
    """Where a reproduction's files are, below a directory such as ``docs``."""

    root: Path
    paper: str

    @property
    def data(self) -> Path:
        """Return the folder of the experiments."""
        return self.root / "data" / self.paper

    @property
    def figures(self) -> Path:
        """Return the folder of the figures."""
        return self.root / "figures" / self.paper

    @property
    def report(self) -> Path:
        """Return the report's file."""
        return self.root / "reproduction" / f"{self.paper}.md"
