# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""The limit's section of docs/evaluation.md and its figures, of saved data alone."""

from __future__ import annotations

import re
from collections.abc import Mapping

from .. import ROOT, LabError, output, records, report
from ..claims.results import Results
from ..scenario import IDEAL, NONE
from .study import (
    BOUND,
    EBB,
    FLOWS,
    HOPEFUL,
    NETWORKS,
    PLACES,
    TOLD,
    TYPED,
    TYPED_PART,
    cell,
    limit,
    load,
)  # fmt: skip

FIGURES = ROOT / "docs" / "figures" / "limit"
PAGE = ROOT / "docs" / "evaluation.md"
SECTION = re.compile(r"(<!-- limit -->\n).*?(<!-- /limit -->\n)", re.DOTALL)


def distances(results: Results) -> str:
    """Return how far ebb is from the limit, on one line for each place."""
    lines = []
    for place in PLACES:
        parts = []
        for flows in FLOWS:
            at = {"place": place, "flows": flows}
            harm, share = cell(results, EBB, **at)
            best = limit(results, max(BOUND, harm["mean"]), **at)
            parts.append(
                f"{harm['mean']:.2f} / {100 * share['mean']:.0f} of {100 * best:.0f} % "
                f"({100 * share['mean'] / best:.0f} %)"
            )
        lines.append(f"| {place} | {' | '.join(parts)} |")
    return "\n".join(lines)


def told(every: Mapping[str, Results]) -> str:
    """Return what the tables come to: parts of the limit in K1, and where ebb does most harm."""
    parts = []
    for place in PLACES:
        ats = [{"place": place, "flows": flows} for flows in FLOWS]
        cells = [(cell(every["k1"], EBB, **at), at) for at in ats]
        of = [
            100 * share["mean"] / limit(every["k1"], max(BOUND, harm["mean"]), **at)
            for (harm, share), at in cells
        ]
        parts.append(f"{min(of):.0f} to {max(of):.0f} % ({place})")
    ebb, name, place, flows = max(
        (cell(results, EBB, place=place, flows=flows)[0]["mean"], name, place, flows)
        for name, results in every.items()
        for place in PLACES
        for flows in FLOWS
    )
    nice = cell(every[name], "nn_nice", place=place, flows=flows)[0]["mean"]
    return (
        f"In K1 `nn_ebb` has, of the limit: {', '.join(parts)}. Its most harm is {ebb:.2f}, where "
        f"`nn_nice` has {nice:.2f}: {NETWORKS[name][0]}, {place}, {flows} flows."
    )


def head(of: str) -> str:
    """Return the head of a table with a column for each number of flows."""
    columns = " | ".join(f"{n} flow{'s' * (n > 1)}" for n in FLOWS)
    return f"| {of} | {columns} |\n" + "|---" * (len(FLOWS) + 1) + "|"


def table(results: Results, place: str) -> str:
    """Return harm and share of everything in one place, in Markdown."""
    names = [n for n in results.backgrounds(place=place, flows=FLOWS[0]) if n != NONE]
    lines = [
        head("background"),
    ]
    for name in names:
        cells = []
        for flows in FLOWS:
            harm, share = cell(results, name, place=place, flows=flows)
            cells.append(f"{report.with_interval(harm)} / {100 * share['mean']:.0f} %")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def section() -> str:
    """Return the section of the page, of saved data alone."""
    every = {name: load(name) for name in NETWORKS}
    marks = ", ".join(f"data/limit/{name}" for name in NETWORKS)
    parts = [
        "## The limit",
        f"<!-- records: {marks} -->\n{records.sentence(marks.split(', '), 'records/stale.toml')}",
        "`netnice-lab limit --measure`, in the simulator, with CUBIC below each gate. What is the "
        "best that a sender could do? Others' packets it can learn of from its ACKs only, a round "
        "trip late. An [oracle](scenarios.md#an-oracle) knows at that time the true rate, the true "
        "queue and each packet of others, to the byte. Its strictness is the part of the rate that "
        "it takes while it expects nobody: more harm, more share. That no other rule with the same "
        "knowledge does better is not proven.",
        f"- *{HOPEFUL}* expects one packet for each of others that left, not two.\n"
        f"- *{TOLD}* sees a server's first packet, too, and so knows of a fetch before its data. "
        "No delay tells that.\n"
        f"- *{TYPED}* is strict priority on the sending host, at {100 * TYPED_PART:.0f} % of the "
        "rate, typed in.\n"
        f"- *{IDEAL}* is in the router. CAKE with LE in its bulk tin is on the kernel only, "
        "and not here.",
        "How far `nn_ebb` is, held as `netnice run` holds it. A cell like `1.08 / 89 of 94 % "
        "(95 %)` has its harm, its share, the oracle's share, and the one share over the other. "
        f"The oracle is as strict as gives it a harm of {BOUND}, or of `nn_ebb`'s where that is "
        "more.",
        told(every),
    ]
    for name, results in every.items():
        title = NETWORKS[name][0]
        parts += [
            f"**{title}**, {results.seeds} seeds:",
            f"{head('foreground')}\n{distances(results)}",
        ]
    parts.append("### Beside other hosts\n\nHarm [95 % CI] / share.")
    for name, results in every.items():
        parts += [
            f"**{NETWORKS[name][0]}**",
            table(results, "other hosts"),
            f"![Share over harm: {NETWORKS[name][0]}](figures/limit/{name}.svg)",
        ]
    return "\n\n".join(parts) + "\n"


def publish() -> None:
    """Draw the figures and write the section, of saved data alone."""
    from .figure import draw  # noqa: PLC0415 (matplotlib takes long to import)

    text = section()
    for name in NETWORKS:
        draw(load(name), NETWORKS[name][0], FIGURES / f"{name}.svg")
    page = PAGE.read_text()
    if not SECTION.search(page):
        raise LabError(f"{PAGE.relative_to(ROOT)} has no <!-- limit --> ... <!-- /limit -->.")
    output.write(PAGE, SECTION.sub(lambda found: found[1] + text + found[2], page))
