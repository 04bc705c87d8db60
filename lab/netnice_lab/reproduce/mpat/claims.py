# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""What the paper on MPAT claims, and what was found. "As" and "hold" are taken as within 5 %."""

from __future__ import annotations

from typing import Any

from ... import stats
from ...scenario import NONE
from ..claim import Claim, judge, percent, times
from ..measure import Results
from ..paper import Measured
from .experiments import (
    AFTER,
    AFTER_TO,
    CM,
    EACH,
    GROUPS,
    MPAT,
    MULTCP,
    RATIOS,
    RULES,
    SIZES,
    SPLITS,
    TCP,
    split,
)

Json = dict[str, Any]

CLOSE = 0.05


def parts(found: Results, background: str, shares: list[float], **at: Any) -> list[Json]:  # noqa: ANN401
    """Return what each flow got, over what its share of the flows' total is."""
    flows = [
        found.values(f"flow {i}", background, **at) for i in range(1, len(shares) + 1)
    ]  # fmt: skip
    totals = [sum(rates) for rates in zip(*flows, strict=True)]
    return [
        stats.interval(
            [rate / total * sum(shares) / share for rate, total in zip(rates, totals, strict=True)]
        )
        for rates, share in zip(flows, shares, strict=True)
    ]  # fmt: skip


def worst(values: list[Json]) -> Json:
    """Return the value that is farthest from 1."""
    return max(values, key=lambda v: abs(v["mean"] - 1))


def near(value: Json) -> bool:
    """Whether a ratio is 1 within what "as" is taken for."""
    return bool(abs(value["mean"] - 1) <= CLOSE)


def _total(found: Results, background: str, **at: Any) -> Json:  # noqa: ANN401
    """Return the total of a group over that of as many flows of TCP with the same seeds."""
    return found.ratio("mbit", background, TCP, **at)


def m1(results: Measured) -> Claim:
    """Figure 1."""
    found, rules = results["shares"], results["rules"]
    both, one = {"traffic": "both ways"}, {"traffic": "one way"}
    shares = split("1 to N", 5)
    ratio, total = worst(parts(found, MPAT, shares, **both)), _total(found, MPAT, **both)
    rates = [found.mean(f"flow {i}", MPAT, **both)["mean"] for i in range(1, 6)]
    return judge(
        "M1",
        "Five flows at 1:2:3:4:5 beside five of TCP and traffic the other way (figure 1): each "
        "gets its part within 5 %, all together within 5 % of five flows of TCP",
        paper="135, 265, 395, 530, 640 kB/s beside 400 for a flow of TCP",
        ours=f"{times(total)} of five flows of TCP; at worst {times(ratio, 3)} of a flow's part; "
        f"{', '.join(f'{rate * 125:.0f}' for rate in rates)} kB/s",
        first=total,
        holds=near(ratio) and near(total),
        cause=f"The ratio holds. The total is {times(_total(found, MPAT, **one))} without traffic "
        "the other way: that compresses ACKs, so that data leaves and is lost in bursts. A burst "
        "that one flow loses is one reduction of TCP, but is charged to several windows: with "
        f"a window drawn for each ACK the total is {times(_total(rules, EACH, **both))}, with "
        f"the paper's own rule {times(_total(rules, RULES[2], **both))}.",
    )


def m2(results: Measured) -> Claim:
    """Section 4.1."""
    found = results["scale"]
    totals = {
        (n, s): _total(found, MPAT, flows=n, split=s) for n in SIZES for s in SPLITS
    }  # fmt: skip
    at = max(totals, key=lambda k: abs(totals[k]["mean"] - 1))
    multcp = {n: _total(found, MULTCP, flows=n, split="even") for n in SIZES}
    cm = _total(found, CM, flows=SIZES[-1], split="even")
    return judge(
        "M2",
        "A group of 2 to 100 flows has the total of as many flows of TCP, however it is divided "
        "(within 5 %); MulTCP does up to 20 to 25 flows, one shared loop not at all",
        paper="up to 100; 20 to 25; 1",
        ours=f"at worst {times(totals[at])} ({at[0]} flows, {at[1]}); MulTCP "
        + ", ".join(f"{v['mean']:.2f} with {n}" for n, v in multcp.items())
        + f"; one loop {times(cm)} with {SIZES[-1]}",
        first=totals[at],
        holds=all(near(v) for v in totals.values()) and cm["mean"] < 1 - CLOSE,
        cause="The table has every size and division.",
    )


def m3(results: Measured) -> Claim:
    """Sections 4.2 and 4.5."""
    found = results["ratio"]
    got = {
        r: stats.interval(
            [
                2 * first / (second + third) if second + third else 0.0
                for first, second, third in zip(
                    *(found.values(f"flow {i}", MPAT, ratio=r) for i in (1, 2, 3)), strict=True
                )
            ]
        )
        for r in RATIOS
    }
    return judge(
        "M3",
        "Of three flows one gets 95 times what each other gets; with less than a packet each "
        "round trip, which the paper plans, 1000 times (both within 10 %)",
        paper="95",
        ours="; ".join(f"{r}: {times(v, 1)}" for r, v in got.items()),
        first=got[95],
        holds=all(abs(got[r]["mean"] / r - 1) <= 0.1 for r in (95, 1000)),
        cause="A flow whose window is below two packets sends two every so many smoothed round "
        "trips, and waits for its timer where one of them is lost.",
    )


def m4(results: Measured) -> Claim:
    """Section 4.5."""
    found = results["change"]
    three = worst(parts(found, MPAT, AFTER_TO, after=3))
    rows = "; ".join(
        f"{n}: {times(worst(parts(found, MPAT, AFTER_TO, after=n)))}" for n in AFTER
    )  # fmt: skip
    return judge(
        "M4",
        "Changed shares (1:2:3 to 3:2:1) are met within 3 round trips (10 %)",
        paper="2 to 3",
        ours=f"in the third round trip at worst {times(three)} of a flow's part; by round trip "
        f"{rows}",
        first=three,
        holds=abs(three["mean"] - 1) <= 0.1,
        cause="A flow whose share falls waits for what it has in flight; one that is in recovery "
        "takes its new share after it.",
    )


def m6(results: Measured) -> Claim:
    """Section 4.4."""
    found = results["groups"]
    values = {
        n: stats.interval(
            [
                rate / n / (all_of / sum(GROUPS))
                for rate, all_of in zip(
                    found.values(f"group {n} mbit", NONE, kind="groups"),
                    [
                        sum(rates)
                        for rates in zip(
                            *(found.values(f"group {g} mbit", NONE, kind="groups") for g in GROUPS),
                            strict=True,
                        )
                    ],
                    strict=True,
                )
            ]
        )
        for n in GROUPS
    }
    tcp = {kind: found.mean("tcp mbit", NONE, kind=kind) for kind in ("groups", "tcp")}
    lost = {kind: found.mean("tcp lost", NONE, kind=kind) for kind in ("groups", "tcp")}
    off = worst(list(values.values()))
    ratio = tcp["groups"]["mean"] / tcp["tcp"]["mean"]
    return judge(
        "M6",
        "Groups of 2, 4, 6, 8 and 10 flows beside five of TCP (figure 2) get totals in proportion "
        "to their sizes (10 %), and TCP as much as beside as many flows of TCP (5 %)",
        paper="proportional; similar",
        ours=f"TCP {ratio:.2f} of that, losing {percent(lost['groups'])} instead of "
        f"{percent(lost['tcp'])}; at worst {times(off)} of a group's part: "
        + ", ".join(f"{n}: {v['mean']:.2f}" for n, v in values.items()),
        first=None,
        holds=abs(off["mean"] - 1) <= 0.1 and abs(ratio - 1) <= CLOSE,
        cause="The smaller a group, the fewer windows there are to charge losses to.",
    )


def m9(results: Measured) -> Claim:
    """Section 3.3.3."""
    found = results["rules"]
    one, both = {"traffic": "one way"}, {"traffic": "both ways"}
    totals = {r: _total(found, r, **one) for r in (*RULES, EACH, MPAT)}
    order = totals["same"]["mean"] > totals["any"]["mean"] > totals["other"]["mean"]
    return judge(
        "M9",
        "Of the three rules that map packets to windows, the last one's is aggressive, another "
        "one's is timid, any one's right (within 5 %); drawing when ACKs come agrees with it",
        paper="in words",
        ours="; ".join(
            f"{r} {times(v)}, both ways {times(_total(found, r, **both))}"
            for r, v in totals.items()
        ),
        first=totals["any"],
        holds=order
        and near(totals["any"])
        and abs(totals["any"]["mean"] - totals[MPAT]["mean"]) <= CLOSE,
        cause="With few losses in a round trip the rules hardly differ: they differ in where the "
        "second loss goes. With traffic both ways losses come in bursts, and all of them spread "
        "these over more windows than TCP does.",
    )
