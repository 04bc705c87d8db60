# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Claims M6 to M8 on MPAT: several groups at once, how totals vary, and web pages beside."""

from __future__ import annotations

from collections.abc import Callable
from statistics import fmean, median

from ... import stats
from ...claims.claim import Found, Json, Measured, claim, found, times
from ...claims.results import Results
from ...scenario import NONE
from .experiments import (
    BOTH,
    GROUPS,
    KINDS,
    MOMENTS,
    MPAT,
    MULTCP,
    ONE,
    PAPERS,
    TCP,
    UNPACED,
    VARIED,
    split,
)
from .ratios import near, parts, total, variation, worst


def _paired(groups: Results, key: str, kind: str, how: Callable[[float, float], float]) -> Json:
    """Compare what TCP had beside groups of a kind with what it had beside as many of TCP."""
    columns = (groups.values(key, NONE, kind=k) for k in (kind, "tcp"))
    return stats.interval([how(*both) for both in zip(*columns, strict=True)])


def _of_parts(groups: Results, kind: str) -> dict[int, Json]:
    """Return what groups that compete got over their parts, by their sizes."""
    rates = {n: groups.values(f"group {n} mbit", NONE, kind=kind) for n in GROUPS}
    totals = [sum(seed) for seed in zip(*rates.values(), strict=True)]
    return {
        n: stats.interval(
            [r / n / (t / sum(GROUPS)) for r, t in zip(rates[n], totals, strict=True)]
        )
        for n in GROUPS
    }


@claim(
    "M6",
    needs=("groups",),
    text="Groups of 2, 4, 6, 8 and 10 flows beside five of TCP (figure 2) get totals in proportion "
    "to their sizes (10 %), and TCP as much as beside as many flows of TCP (5 %), losing no more "
    "packets (within chance)",
    paper="proportional; similar",
    ours="TCP {ratio} of that, losing {lost[groups]:.2f} % of its packets instead of "
    "{lost[tcp]:.2f}, more by {more} points; at worst {off} of a group's part: {each}",
    cause="Groups are in proportion. What five flows of TCP have beyond their part is "
    "{taken:.0f} % of what thirty flows in groups have. Pace is the cause. If members are not "
    "paced {unpaced}. With the paper's mapping as well {papers}.",
)
def several_groups(measured: Measured) -> Found:
    """Section 4.4."""
    groups = measured["groups"]
    shares = {kind: _of_parts(groups, kind) for kind in KINDS}
    ratio = {kind: _paired(groups, "tcp mbit", kind, lambda a, b: a / b) for kind in KINDS}
    more = {kind: _paired(groups, "tcp lost", kind, lambda a, b: 100 * (a - b)) for kind in KINDS}
    tcp = {k: groups.mean("tcp mbit", NONE, kind=k)["mean"] for k in ("groups", "tcp")}
    in_groups = sum(groups.mean(f"group {n} mbit", NONE, kind="groups")["mean"] for n in GROUPS)
    off = worst(list(shares["groups"].values()))

    def told(kind: str) -> str:
        means = [v["mean"] for v in shares[kind].values()]
        return (
            f"TCP has {times(ratio[kind])}, and loses {times(more[kind])} points more; groups have "
            f"{min(means):.2f} to {max(means):.2f} of their parts"
        )

    return found(
        abs(off["mean"] - 1) <= 0.1 and near(ratio["groups"]) and more["groups"]["lo"] <= 0,
        ratio["groups"],
        ratio=ratio["groups"],
        lost={k: 100 * groups.mean("tcp lost", NONE, kind=k)["mean"] for k in tcp},
        more=more["groups"],
        off=off,
        each=", ".join(f"{n}: {v['mean']:.2f}" for n, v in shares["groups"].items()),
        taken=100 * (tcp["groups"] - tcp["tcp"]) / in_groups,
        unpaced=told(UNPACED),
        papers=told(PAPERS),
    )


@claim(
    "M7",
    needs=("variance",),
    text="The total of a group varies less than MulTCP's, and less the larger it is (standard "
    "deviation over half seconds, over the mean; median of the seeds)",
    paper="in words",
    ours="{each}",
    cause="A group varies about as much as flows of TCP do, and less the more there are. In the "
    "seed in which MulTCP of {many} flows varies most it has {out[0]:.1f} to {out[1]:.1f} "
    "Mbit/s. After a timeout of any member its one loop starts again from a packet "
    "(core/alg/multcp.h), and members of less than two packets answer losses with timeouts "
    "again. That this is the cause was not tested by an experiment. Why MulTCP of {few} flows "
    "varies less was not found; it takes {takes:.2f} times as much as they do.",
)
def totals_vary_less(measured: Measured) -> Found:
    """Section 4.6."""
    variance, (few, many) = measured["variance"], VARIED
    kinds = (MPAT, TCP, MULTCP)
    seeds = {(b, n): variation(variance, b, flows=n) for n in VARIED for b in kinds}
    middle = {key: median(values) for key, values in seeds.items()}
    more = {
        n: sum(m > g for m, g in zip(seeds[MULTCP, n], seeds[MPAT, n], strict=True)) for n in VARIED
    }
    out = seeds[MULTCP, many].index(max(seeds[MULTCP, many]))
    moments = [variance.values("mbit", MULTCP, flows=many, at=t)[out] for t in MOMENTS]
    takes = {
        b: sum(fmean(variance.values("mbit", b, flows=few, at=t)) for t in MOMENTS)
        for b in (MULTCP, TCP)
    }
    return found(
        middle[MPAT, many] < middle[MPAT, few]
        and all(middle[MPAT, n] < middle[MULTCP, n] for n in VARIED),
        each="; ".join(
            f"{n} flows: "
            + ", ".join(
                f"{b} {middle[b, n]:.3f} ({min(seeds[b, n]):.3f} to {max(seeds[b, n]):.3f})"
                for b in kinds
            )
            + f", MulTCP more than the group in {more[n]} of {variance.seeds} seeds"
            for n in VARIED
        ),
        few=few,
        many=many,
        out=(min(moments), max(moments)),
        takes=takes[MULTCP] / takes[TCP],
    )


@claim(
    "M8",
    needs=("web",),
    text="Beside fetches of web pages (a third of the link) as well, the total is that of five "
    "flows of TCP (5 %) and the ratio is kept (5 %)",
    paper="in words",
    ours="{totals[mpat]}; at worst {ratio} of a flow's part",
    cause="Pace and the mapping. Unpaced the total is {totals[" + UNPACED + "]}; with the "
    "paper's mapping, paced, {totals[any]}; with both as in the paper {totals[" + PAPERS + "]}. "
    "The part that is farthest off is that of the smallest flow.",
)
def beside_web_pages(measured: Measured) -> Found:
    """Section 4.8."""
    web, ways = measured["web"], (BOTH, ONE)
    ratio = worst([worst(parts(web, MPAT, split("1 to N", 5), traffic=w)) for w in ways])
    totals = {b: [total(web, b, traffic=w) for w in ways] for b in (MPAT, UNPACED, "any", PAPERS)}
    return found(
        all(near(v) for v in (*totals[MPAT], ratio)), totals[MPAT][0], ratio=ratio,
        totals={b: f"{times(both)}, one way {times(one)}" for b, (both, one) in totals.items()},
    )  # fmt: skip
