# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""What a paper claims, beside what is measured here: the form of every paper's report."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

Json = dict[str, Any]
Verdict = Literal["holds", "differs"]


@dataclass(frozen=True)
class Claim:
    """One claim of a paper. A claim that differs is a result: `cause` says what was found out."""

    id: str
    text: str
    """What is claimed, and what it takes to hold."""
    paper: str
    """The paper's numbers."""
    ours: str
    """What was measured here."""
    interval: list[float] | None
    """95 % confidence interval of the first number in `ours`; None if there is none."""
    verdict: Verdict
    cause: str | None
    """Why it differs, by experiment; None if it holds."""

    def to_json(self) -> Json:
        """Return the claim as `netnice-lab reproduce --json` prints it."""
        return asdict(self)


def judge(
    name: str, text: str, *, paper: str, ours: str, first: Json | None, holds: bool, cause: str
) -> Claim:
    """Return the claim called `name` with its verdict.

    `first` is the first number in `ours`, with its interval; `cause` is what was found out, which
    a claim that holds does not need.
    """
    known = first is not None and first["lo"] is not None
    interval = [_short(first["lo"]), _short(first["hi"])] if first and known else None
    if holds:
        return Claim(name, text, paper, ours, interval, "holds", None)
    return Claim(name, text, paper, ours, interval, "differs", cause)


def _short(value: float) -> float:
    return float(f"{value:.4g}")


def times(value: Json, digits: int = 2) -> str:
    """Return a ratio or a plain number with its interval, as in ``1.27 [1.25, 1.29]``."""
    if value["mean"] is None:
        return "nothing"
    if value["lo"] is None:
        return f"{value['mean']:.{digits}f}"
    return f"{value['mean']:.{digits}f} [{value['lo']:.{digits}f}, {value['hi']:.{digits}f}]"


def percent(value: Json) -> str:
    """Return a share with its interval, as in ``70 % [68, 72]``."""
    if value["mean"] is None:
        return "nothing"
    text = f"{100 * value['mean']:.0f} %"
    if value["lo"] is None:
        return text
    return f"{text} [{100 * value['lo']:.0f}, {100 * value['hi']:.0f}]"
