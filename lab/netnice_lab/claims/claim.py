# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""A claim of a paper: its words, what it rests on, and the function that finds its numbers.

    @claim(
        "N12",
        needs=["flows"],
        text="Each addition to Vegas, taken out alone, increases interference",
        paper="> 1",
        ours="{more:1} times Nice's latency without windows below one packet",
        cause="Without them it is {more} times.",
    )
    def without_small_windows(measured: Measured) -> Found:
        more = measured["flows"].ratio("packet_rtt_ms", FLOOR, PAPER, flows=64)
        return found(more["lo"] > 1, more, more=more)

``paper``, ``ours`` and ``cause`` are templates of `str.format`. A mean with its interval is written
by `times`, with the digits that follow the colon (``{more:1}``), or by `percent` (``{share:%}``).
"""

from __future__ import annotations

import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

from .results import Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Json = dict[str, Any]
Verdict = Literal["holds", "differs"]
Measured = Mapping[str, Results]
"""Saved experiments by name."""


@dataclass(frozen=True)
class Judgement:
    """A claim beside what was measured. One that differs is a result: `cause` says of what."""

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
        """Return it as the commands print it with `--json`."""
        return asdict(self)


@dataclass(frozen=True)
class Found:
    """What was measured for a claim."""

    holds: bool
    first: Json | None
    """The first number in `ours`, with its interval; None if it has none."""
    numbers: Mapping[str, Any]
    """What the templates of the claim name."""


def found(holds: bool, first: Json | None = None, /, **numbers: Any) -> Found:  # noqa: ANN401
    """Return whether a claim holds, the first number of `ours`, and all that its words name."""
    return Found(bool(holds), first, numbers)


@dataclass(frozen=True)
class Drawing:
    """A figure of the page."""

    name: str
    """Of the file, without its ending."""
    caption: str
    draw: Callable[[Measured], Figure]


@dataclass(frozen=True)
class Table:
    """A table of the page: what experiments say about causes."""

    caption: str
    columns: Sequence[str]
    rows: Callable[[Measured], Sequence[Sequence[str]]]


@dataclass(frozen=True)
class Claim:
    """A claim, and what it rests on; `claim` makes one of a function."""

    id: str
    needs: Sequence[str]
    """Experiments that the verdict, the figures and the tables are made of."""
    text: str
    paper: str
    ours: str
    cause: str
    measure: Callable[[Measured], Found]
    drawings: Sequence[Drawing] = ()
    tables: Sequence[Table] = ()

    def judge(self, measured: Measured) -> Judgement:
        """Return the claim with its verdict."""
        of = self.measure(measured)
        known = of.first is not None and of.first["lo"] is not None
        paper, ours, cause = (
            _Words().vformat(text, (), of.numbers) for text in (self.paper, self.ours, self.cause)
        )
        return Judgement(
            self.id, self.text, paper, ours,
            [_short(of.first["lo"]), _short(of.first["hi"])] if of.first and known else None,
            "holds" if of.holds else "differs",
            None if of.holds else cause,
        )  # fmt: skip


def claim(
    id: str,
    *,
    needs: Sequence[str],
    text: str,
    paper: str,
    ours: str,
    cause: str = "Cause not found.",
    drawings: Sequence[Drawing] = (),
    tables: Sequence[Table] = (),
) -> Callable[[Callable[[Measured], Found]], Claim]:
    """Make a claim of the function that finds its numbers."""

    def of(measure: Callable[[Measured], Found]) -> Claim:
        return Claim(id, needs, text, paper, ours, cause, measure, drawings, tables)

    return of


class _Words(string.Formatter):
    """Formats numbers with their intervals, beside what `str.format` does."""

    def format_field(self, value: Any, format_spec: str) -> str:  # noqa: ANN401 (any number)
        if isinstance(value, dict) and "lo" in value:
            return percent(value) if format_spec == "%" else times(value, int(format_spec or 2))
        text: str = super().format_field(value, format_spec)
        return text


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


def listed(values: Sequence[float]) -> str:
    """Return numbers as in ``1, 2 and 4``; ``none`` if there are none."""
    words = [f"{v:g}" for v in values]
    if len(words) < 2:
        return "".join(words) or "none"
    return f"{', '.join(words[:-1])} and {words[-1]}"
