# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Claims that are not data yet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from .claim import Drawing, Judgement, Measured, Table, _short

Json = dict[str, Any]


@dataclass(frozen=True)
class Statement:
    """A claim, and what it rests on."""

    id: str
    needs: Sequence[str]
    claim: Callable[[Measured], Judgement]
    drawings: Sequence[Drawing] = ()
    tables: Sequence[Table] = ()

    def judge(self, measured: Measured) -> Judgement:
        """Return the claim with its verdict."""
        return self.claim(measured)


def judge(
    name: str, text: str, *, paper: str, ours: str, first: Json | None, holds: bool, cause: str
) -> Judgement:
    """Return the claim called `name` with its verdict."""
    known = first is not None and first["lo"] is not None
    interval = [_short(first["lo"]), _short(first["hi"])] if first and known else None
    if holds:
        return Judgement(name, text, paper, ours, interval, "holds", None)
    return Judgement(name, text, paper, ours, interval, "differs", cause)
