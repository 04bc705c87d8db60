# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""A paper: its experiments and its claims; where its data, figures and page are."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from .. import PAPERS, ROOT, LabError
from ..experiment import Experiment
from .claim import Claim, Measured
from .results import load

DOCS = ROOT / "docs"


@dataclass(frozen=True)
class Paper:
    """A paper and its reproduction."""

    name: str
    title: str
    preamble: str
    """Of the page, in Markdown: setting, choices, how to read it."""
    experiments: Callable[[], Sequence[Experiment]]
    claims: Sequence[Claim]
    whose: str = "paper"
    """Whose figures the claims are compared with: a paper's, or an aim's."""

    def needed(self, claims: Sequence[Claim]) -> list[Experiment]:
        """Return the experiments that claims are made of."""
        names = {name for claim in claims for name in claim.needs}
        return [e for e in self.experiments() if e.name in names]


def of_modules(*modules: ModuleType) -> list[Claim]:
    """Return the claims of some modules, in the order in which they stand there."""
    return [
        value
        for module in modules
        for value in vars(module).values()
        if isinstance(value, Claim) and value.measure.__module__ == module.__name__
    ]


@dataclass(frozen=True)
class Places:
    """Where a paper's files are, below a directory such as ``docs``."""

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
    def page(self) -> Path:
        """Return the page's file."""
        return self.root / "reproduction" / f"{self.paper}.md"


def find(name: str) -> Paper:
    """Return a paper by its name, or raise LabError with the names that are known."""
    if name not in PAPERS:
        near = difflib.get_close_matches(name, PAPERS, 1)
        hint = f"Did you mean {near[0]!r}?" if near else f"Known: {', '.join(PAPERS)}."
        raise LabError(f"No paper is called {name!r}. {hint}")
    module = importlib.import_module(f"netnice_lab.papers.{name.replace('-', '_')}")
    found: Paper = module.REPRODUCTION
    return found


def saved(paper: Paper, root: Path = DOCS) -> Measured:
    """Return every experiment of the paper that is saved below a directory."""
    folder = Places(root, paper.name).data
    found = {e.name: load(folder, e.name) for e in paper.experiments()}
    return {name: results for name, results in found.items() if results is not None}
