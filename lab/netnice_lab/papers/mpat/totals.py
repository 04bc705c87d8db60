# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Claims M1 to M5 on MPAT: what a group has in all, what each flow has of it, and how soon."""

from __future__ import annotations

from ... import stats
from ...claims.claim import Found, Json, Measured, claim, found, times
from .experiments import (
    AFTER,
    AFTER_TO,
    AT_ONCE,
    BOTH,
    CM,
    DELAYED,
    LOSSY,
    MPAT,
    MULTCP,
    ONE,
    RATIOS,
    SIZES,
    SMALL,
    SPLITS,
    STEP,
    TCP,
    UNPACED,
    split,
)
from .ratios import CLOSE, near, over, parts, total, worst
from .shown import SIZE_FIGURE, SIZE_TABLE, STEP_FIGURE

MULTCP_MOST = 20
"""Flows up to which MulTCP has the total of as many, in the paper (4.1: 20 to 25)."""
OFF = 0.1
"""How far off a part or a ratio may be where that is taken as met."""


@claim(
    "M1",
    needs=("shares", "rules"),
    text="Five flows at 1:2:3:4:5 beside five of TCP and traffic the other way (figure 1): each "
    "gets its part within 5 %, all together within 5 % of five flows of TCP",
    paper="135, 265, 395, 530, 640 kB/s beside 400 for a flow of TCP",
    ours="{all} of five flows of TCP (one way {one_way}); at worst {part:3} of a flow's part; "
    "{rates} kB/s",
    cause="Unpaced, as in the paper, the total is {unpaced} and the part that is farthest off "
    "{unpaced_part:3}: what waits for the gap of its pace is not in flight, which costs the "
    "smallest flow most.",
)
def five_flows(measured: Measured) -> Found:
    """Figure 1."""
    results, rules, shares = measured["shares"], measured["rules"], split("1 to N", 5)
    part, all_ = worst(parts(results, MPAT, shares, traffic=BOTH)), total(results, traffic=BOTH)
    rates = [results.mean(f"flow {i}", MPAT, traffic=BOTH)["mean"] for i in range(1, 6)]
    return found(
        near(part) and near(all_),
        all_,
        all=all_,
        one_way=total(results, traffic=ONE),
        part=part,
        rates=", ".join(f"{rate * 125:.0f}" for rate in rates),
        unpaced=total(rules, UNPACED, traffic=BOTH),
        unpaced_part=worst(parts(rules, UNPACED, shares, traffic=BOTH)),
    )


@claim(
    "M2",
    needs=("scale", "losses"),
    text="A group of 2 to 100 flows has the total of as many flows of TCP, however it is divided "
    "(within 5 %); MulTCP does up to 20 to 25 flows, one shared loop not at all",
    paper="up to 100; 20 to 25; 1",
    ours="at worst {worst} ({at[0]} flows, {at[1]}); MulTCP {multcp}; one loop {one_loop} with "
    "{most}",
    cause="Of sizes up to {multcp_most} within 5 %: MPAT {near} of {small}, MulTCP "
    "{multcp_near} of {multcp_small}. Where packets are lost at random instead of by a queue "
    "that overflows, MulTCP has {lossy}, without other traffic. Perhaps the cause is that a "
    "full queue drops packets of several flows at once: each of these flows halves its window, "
    "but the one loop is cut once in a round trip. Such losses were not counted. The table has "
    "every size and division.",
    drawings=(SIZE_FIGURE,),
    tables=(SIZE_TABLE,),
)
def groups_of_any_size(measured: Measured) -> Found:
    """Section 4.1."""
    scale = measured["scale"]
    totals = {(n, s): total(scale, flows=n, split=s) for n in SIZES for s in SPLITS}
    at = max(totals, key=lambda k: float(abs(totals[k]["mean"] - 1)))
    multcp = {n: total(scale, MULTCP, flows=n, split="even") for n in SIZES}
    one_loop = total(scale, CM, flows=SIZES[-1], split="even")
    small = [near(v) for (n, _), v in totals.items() if n <= MULTCP_MOST]
    multcp_small = [near(v) for n, v in multcp.items() if n <= MULTCP_MOST]
    lossy = {n: total(measured["losses"], MULTCP, flows=n) for n in LOSSY}
    return found(
        all(near(v) for v in totals.values())
        and all(multcp_small)
        and one_loop["mean"] < 1 - CLOSE,
        totals[at],
        worst=totals[at],
        at=at,
        multcp=", ".join(f"{v['mean']:.2f} with {n}" for n, v in multcp.items()),
        one_loop=one_loop,
        most=SIZES[-1],
        multcp_most=MULTCP_MOST,
        near=sum(small),
        small=len(small),
        multcp_near=sum(multcp_small),
        multcp_small=len(multcp_small),
        lossy=", ".join(f"{times(v)} with {n}" for n, v in lossy.items()),
    )


@claim(
    "M3",
    needs=("ratio",),
    text="Of three flows one gets 95 times what each other gets; with less than a packet each "
    "round trip, which the paper plans, 1000 times (both within 10 %)",
    paper="95",
    ours="{each}",
    cause="A flow whose window is below two packets sends two every so many smoothed round trips, "
    "and waits for its timer where one of them is lost.",
)
def one_flow_has_much_more(measured: Measured) -> Found:
    """Sections 4.2 and 4.5."""

    def first_over_others(ratio: int) -> Json:
        rates = (measured["ratio"].values(f"flow {i}", MPAT, ratio=ratio) for i in (1, 2, 3))
        return stats.interval([
            2 * first / (second + third) if second + third else 0.0
            for first, second, third in zip(*rates, strict=True)
        ])  # fmt: skip

    got = {r: first_over_others(r) for r in RATIOS}
    return found(
        all(abs(got[r]["mean"] / r - 1) <= OFF for r in (95, 1000)), got[95],
        each="; ".join(f"{r}: {times(v, 1)}" for r, v in got.items()),
    )  # fmt: skip


@claim(
    "M4",
    needs=("change",),
    text="Changed shares (1:2:3 to 3:2:1) are met within 3 round trips (10 %)",
    paper="2 to 3",
    ours="{three} of a flow's part at worst in the half second after three; by round trips after "
    "the change {each}",
    cause="Cause not found: the parts before the change and long after it are beside it.",
)
def changed_shares_are_met(measured: Measured) -> Found:
    """Section 4.5."""
    by_trips = {n: worst(parts(measured["change"], MPAT, AFTER_TO, after=n)) for n in AFTER}
    return found(
        abs(by_trips[3]["mean"] - 1) <= OFF, by_trips[3], three=by_trips[3],
        each="; ".join(f"{n}: {times(v)}" for n, v in by_trips.items()),
    )  # fmt: skip


@claim(
    "M5",
    needs=("step", "acks"),
    text="A step of 30 Mbit/s of UDP beside ten flows at 1 to 10 and ten of TCP each way, 90 "
    "Mbit/s, 50 ms: after 6 round trips the total is what it settles at (15 %), after its end what "
    "it was (5 %), and the ratio is kept throughout (10 %)",
    paper="4 to 6 round trips; regained; kept",
    ours="total over what it settles at, by round trip {cut[mpat]}; ten flows of TCP {cut[tcp]}; "
    "settled {fair} of ten flows of TCP; regained {again}; at worst {ratio} of a flow's part",
    cause="The time is that of ten flows of TCP. The ratio: two round trips are few packets, "
    "and the worst of so many means is far from 1 because it is the worst. For ten flows of "
    "TCP, whose parts are equal, it is {chance}. In the long run flows whose windows are a few "
    "packets lack something: over the ten seconds after the total has settled the worst part is "
    "{settled}, and the table of M2 has the same without a step. Of {small} flows at 1 to "
    "{small} there, the first three have {delayed[mpat]} of their parts, "
    "{delayed[" + UNPACED + "]} unpaced. If each packet is acknowledged they have "
    "{at_once[mpat]}, and {at_once[" + UNPACED + "]} unpaced. So delayed ACKs are most of the "
    "cause, and pace is the rest: where a window is odd, its last packet's ACK comes up to 40 "
    "ms late. That is with traffic one way. In the setting of this claim, both ways, and with "
    "each packet acknowledged, the group has {bare[mpat]} of ten flows of TCP over those ten "
    "seconds, {bare[" + UNPACED + "]} unpaced: see quickack.",
    drawings=(STEP_FIGURE,),
)
def a_step_of_other_traffic(measured: Measured) -> Found:
    """Section 4.7."""
    step, acks, shares = measured["step"], measured["acks"], split("1 to N", 10)
    trips = [n for n in STEP if isinstance(n, int)]
    cut: dict[str, dict[int, Json]] = {}
    for b in (MPAT, TCP):
        settled = step.mean("mbit", b, at="settled")["mean"]
        cut[b] = {
            n: stats.interval([v / settled for v in step.values("mbit", b, at=n)]) for n in trips
        }
    again = over(*(step.values("mbit", MPAT, at=at) for at in ("regained", "before")))
    ratio = worst([worst(parts(step, MPAT, shares, at=n)) for n in STEP])
    kinds = (MPAT, UNPACED)

    def first_three(background: str, at: str) -> str:
        of_small = split("1 to N", SMALL)
        one, two, three = parts(acks, background, of_small, setting="small", acks=at)[:3]
        return f"{one['mean']:.2f}, {two['mean']:.2f} and {three['mean']:.2f}"

    return found(
        cut[MPAT][6]["mean"] <= 1.15 and near(again) and abs(ratio["mean"] - 1) <= OFF,
        cut[MPAT][6],
        cut={
            b: ", ".join(f"{n}: {times(v)}" for n, v in values.items()) for b, values in cut.items()
        },
        fair=step.ratio("mbit", MPAT, TCP, at="settled"),
        again=again,
        ratio=ratio,
        chance=worst([worst(parts(step, TCP, [1.0] * 10, at=n)) for n in trips]),
        settled=worst(parts(step, MPAT, shares, at="settled")),
        small=SMALL,
        delayed={b: first_three(b, DELAYED) for b in kinds},
        at_once={b: first_three(b, AT_ONCE) for b in kinds},
        bare={b: total(acks, b, setting="step", acks=AT_ONCE) for b in kinds},
    )
