# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Tables on the analysis of TCP Nice: what causes are claimed by."""

from __future__ import annotations

from typing import Any

from .theorem_points import literal, lost, one, part, plain, share

Json = dict[str, Any]

CHANGED = (1, 4, 32)
"""Reno flows of the settings in the table of changes."""

CHANGES_COLUMNS = (
    "m, B", "l = 64: fluid; paced", "packets", "late", "milder", "l = 16: packets", "literal",
)  # fmt: skip
CHANGES_CAPTION = (
    "What Reno loses when one thing is changed. Late: the Nice flows start beside the Reno flows "
    "and not before them, so that minRTT holds a queue. Milder: `shrink` and `quiet` as "
    "`core/alg/nice.h` has them by default, a harder cut below two packets and growth after quiet "
    "rounds only. Literal: 0.2 (maxRTT - minRTT) with maxRTT from 2 minRTT on, as the prototype "
    "finds q_t"
)


def changes(document: Json) -> list[list[str]]:
    """Return the rows of the table in which one thing is changed at a time."""
    grid, found = plain(document), literal(document)
    late, mild = ([p for p in part(document, "grid") if p[key]] for key in ("late", "mild"))
    rows = []
    for reno, buffer in dict.fromkeys((p["reno"], p["buffer"]) for p in found):
        if reno not in CHANGED:
            continue
        many = {"reno": reno, "buffer": buffer, "nice": 64}
        some = {"reno": reno, "buffer": buffer, "nice": 16}
        model = one(grid, **many)["model"]
        losses = [one(where, **many) for where in (grid, late, mild)]
        losses += [one(where, **some) for where in (grid, found)]
        rows.append([
            f"{reno}, {buffer}",
            f"{share(model['interference'])}; {share(model['interference_paced'])}",
            *(lost(p["loss"]) for p in losses),
        ])  # fmt: skip
    return rows


FINER_COLUMNS = ("k", "m, l, B, mu tau", "Reno alone", "loss in packets", "fluid", "paced")
FINER_CAPTION = (
    "Finer packets. The model presumes infinitely small ones: all sizes and flows times k leave it "
    "as it is, and what Reno has alone nearly so. What it loses beyond the model goes away with k"
)


def finer(document: Json) -> list[list[str]]:
    """Return the rows of the table of finer packets."""
    found = part(document, "finer")
    return [
        [
            f"{p['pipe'] // found[0]['pipe']}",
            f"{p['reno']}, {p['nice']}, {p['buffer']}, {p['pipe']}",
            lost(p["alone"]),
            lost(p["loss"]),
            share(p["model"]["interference"]),
            share(p["model"]["interference_paced"]),
        ]
        for p in found
    ]
