# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""The section of docs/evaluation.md on the matrix, of saved data alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from .. import ROOT, LabError, output, records
from ..scenario import IDEAL
from ..stats import LITTLE
from . import worst
from .axes import BASE, CUBIC, EBB, ELSEWHERE, FLOWS, LP, NICE, Axis
from .measure import NAME, SEED
from .ranges import QUEUES, RANGES

Json = dict[str, Any]
Saved = Sequence[tuple[Axis, Json]]

PAGE, FIGURE = ROOT / "docs" / "evaluation.md", ROOT / "docs" / "figures" / "matrix.svg"
BEGIN, END = "<!-- netnice-lab matrix writes this -->\n", "<!-- until here -->\n"
COLUMNS = (IDEAL, EBB, ELSEWHERE, NICE, LP, CUBIC)
MOST = 3
"""Cells that are named as the worst."""

ABOUT = f"""\
`netnice-lab matrix` varies one thing at a time around K1 (`lab/scenarios/{BASE}.toml`, with
{FLOWS} flows in the background), as RFC 9743 asks for, and adds corners. All of it is simulated.
Where rate or RTT is another, the queue is 1.5 BDP as in K1, but ten packets at least. Seeds begin
at {SEED}; constants were chosen on those below 25. The raw results are in `docs/data/matrix/`.

Each entry is `harm / p95 / share`. Harm is the users' mean completion time over that without
background, and p95 that of the 95th percentile, with the same seed. Share is the background's
goodput over that under strict priority, of all seeds together; where strict priority carries less
than {LITTLE} Mbit/s, it is in Mbit/s. `±` is half of a 95 % confidence interval over seeds. Of a
long flow harm is the time for a byte, of a call the RTT of its packets.

`{EBB}` is the default of `netnice run`, on the host of the users. `{ELSEWHERE}` is the same beside
users of other hosts, whose packets it does not see leave. To the others both are the same. Strict
priority has a plain queue in place of PIE, CoDel and fq_codel. It is long, and users wait in it for
each other.

What is not here: CAKE, which only the kernel has, and users under BBR, which the simulator does not
have. The simulator ends at 1000 Mbit/s, where a run takes two seconds or more.
"""


def section(saved: Saved, searched: Sequence[Json]) -> str:
    """Return the section; its tables have the axes and the searches that are saved."""
    parts = [
        "## The matrix of RFC 9743\n",
        _measured(f"data/{NAME}"),
        ABOUT,
        _worst(saved, EBB) + _worst(saved, ELSEWHERE),
        "![Harm and share in every cell of the matrix](figures/matrix.svg)\n",
        *(_table(axis, document) for axis, document in saved),
        *([_searching()] if searched else []),
        *(_worst_of(document) for document in searched),
    ]
    return "\n".join(parts)


def _searching() -> str:
    """Return what the searches vary."""
    path = {name: f"{its.low:g} to {its.high:g}" for name, its in RANGES.items()}
    return (
        "`netnice-lab search` looks for what is worse than any of these cells, by harm less that "
        f"under strict priority: {path['rate_mbit']} Mbit/s, RTTs of {path['rtt_ms']} ms, buffers "
        f"of {path['bdp']} BDP but ten packets at least, {', '.join(QUEUES)}, loads of "
        f"{path['load']}, {path['fetches_per_s']} fetches in a second, {path['flows']} flows. "
        f"`{EBB}-elsewhere` has users on other hosts. Strict priority has a plain queue in "
        "place of PIE, CoDel and fq_codel. So there the difference compares queues, too: where "
        "harm is near 1, nobody is harmed.\n"
    )


def _worst_of(document: Json) -> str:
    """Return what a search for the worst of an algorithm found."""
    name = document["name"]
    return "\n".join([
        f"### The worst of {name}\n",
        _measured(f"data/{worst.NAME}/{name}"),
        f"`{' '.join(document['command'])}` tried {document['trials']} scenarios, with "
        f"{document['search_seeds']} seeds each. The worst, no two of which are alike, with "
        f"{document['seeds']} other seeds:\n",
        *_rows(worst.table(document)),
        "",
    ])  # fmt: skip


def _measured(name: str) -> str:
    """Return the mark of records, and the paragraph after it."""
    return f"<!-- records: {name} -->\n{records.sentence([name], 'records/stale.toml')}\n"


def _rows(table: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table, the first of which is its head."""
    head, *rows = (f"| {' | '.join(row)} |" for row in table)
    return [head, "|---" * len(table[0]) + "|", *rows]


def _table(axis: Axis, document: Json) -> str:
    """Return what was measured of an axis."""
    rows = [
        [cell["at"][axis.name], *(entry(cell, name) for name in COLUMNS)]
        for cell in document["points"]
    ]
    lines = _rows([[axis.title, *COLUMNS], *rows])
    return "\n".join([f"{document['seeds']} seeds:\n", *lines, ""])


def entry(cell: Json, name: str, *, within: bool = True) -> str:
    """Return the numbers of a background in a cell, with or without their intervals."""
    its = cell[name]
    words = [_number(its["harm"], within=within), _number(its["p95"], within=within)]
    if not has_spare(cell):
        words.append(f"{its['mbit']:.2f} Mbit/s")
    elif name != IDEAL:
        words.append(_number(its["share"], 100, within=within))
    text = " / ".join(words)
    if its.get("lost"):
        text += f", {100 * its['lost']:.2g} % lost"
    return text + worst.late(its)


def has_spare(cell: Json) -> bool:
    """Tell whether strict priority gets so much that a share of it says something."""
    return bool(cell[IDEAL]["mbit"] >= LITTLE)


def _number(value: Json, scale: float = 1.0, *, within: bool) -> str:
    """Return ``1.02 ± 0.01``, or with a scale of 100 per cent without decimals."""
    if value["mean"] is None:
        return "–"  # noqa: RUF001 (a real dash)
    unit, digits = ("", 2) if scale == 1 else (" %", 0)
    text = f"{scale * value['mean']:.{digits}f}"
    if within and value["lo"] is not None:
        text += f" ± {scale * (value['hi'] - value['lo']) / 2:.{digits}f}"
    return text + unit


def _worst(saved: Saved, name: str) -> str:
    """Return in words where it harms most, and where it leaves most."""
    cells = [(axis, cell) for axis, document in saved for cell in document["points"]]
    spare = [(axis, cell) for axis, cell in cells if has_spare(cell)]

    def harm(cell: Json, of: str = name) -> float:
        return float(cell[of]["harm"]["mean"])

    def share(cell: Json) -> float:
        return float(cell[name]["share"]["mean"])

    harms = _named(
        sorted(cells, key=lambda its: -harm(its[1])),
        lambda c: f"{harm(c):.2f} times, strict priority {harm(c, IDEAL):.2f}",
    )
    leaves = _named(sorted(spare, key=lambda its: share(its[1])), lambda c: f"{share(c):.0%} used")
    return f"- `{name}` harms most at {harms}. It leaves most at {leaves.replace('%', ' %')}.\n"


def _named(cells: Sequence[tuple[Axis, Json]], told: Callable[[Json], str]) -> str:
    """Return the first cells, each with what is told of it."""
    return "; ".join(
        f"{axis.title}: {cell['at'][axis.name]} ({told(cell)})" for axis, cell in cells[:MOST]
    )


def write(saved: Saved, searched: Sequence[Json], page: Path = PAGE) -> None:
    """Write the section into the page, between its marks."""
    text = page.read_text()
    if BEGIN not in text or END not in text:
        raise LabError(f"{page} has no line {BEGIN.strip()} before {END.strip()}. Add them.")
    output.write(page, with_section(text, section(saved, searched)))


def with_section(text: str, new: str) -> str:
    """Return a page with another section between its marks."""
    between = re.compile(re.escape(BEGIN) + ".*" + re.escape(END), re.DOTALL)
    return between.sub(lambda _: f"{BEGIN}{new}{END}", text)
