# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""What the paper on MPAT claims, and what was found. "As" and "hold" are taken as within 5 %."""

from __future__ import annotations

from collections.abc import Callable
from statistics import fmean, median, pstdev
from typing import Any

from ... import stats
from ...claims.claim import Judgement as Claim
from ...claims.claim import Measured, times
from ...claims.legacy import judge
from ...claims.results import Results
from ...scenario import NONE
from .experiments import (
    AFTER,
    AFTER_TO,
    ALONE,
    AS_IS,
    AT_ONCE,
    BOTH,
    CM,
    DELAYED,
    EACH,
    FREE,
    GROUP,
    GROUPS,
    KINDS,
    LOSS,
    LOSSY,
    MOMENTS,
    MPAT,
    MULTCP,
    NO_FAST,
    NO_HYSTART,
    ONE,
    PACED,
    PAPERS,
    RATIOS,
    RULES,
    SIZES,
    SMALL,
    SPLITS,
    STEP,
    TCP,
    UNPACED,
    VARIED,
    split,
)

Json = dict[str, Any]

CLOSE = 0.05
AGAIN = ("retransmits", "mbit")
MULTCP_MOST = 20
"""Flows up to which MulTCP has the total of as many, in the paper (4.1: 20 to 25)."""


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
        ours=f"{times(total)} of five flows of TCP (one way "
        f"{times(_total(found, MPAT, **one))}); at worst {times(ratio, 3)} of a flow's part; "
        f"{', '.join(f'{rate * 125:.0f}' for rate in rates)} kB/s",
        first=total,
        holds=near(ratio) and near(total),
        cause=f"Unpaced, as in the paper, the total is {times(_total(rules, UNPACED, **both))} and "
        f"the part that is farthest off {times(worst(parts(rules, UNPACED, shares, **both)), 3)}: "
        "what waits for the gap of its pace is not in flight, which costs the smallest flow most.",
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
    single = ", ".join(
        f"{times(_total(results['losses'], MULTCP, flows=n))} with {n}" for n in LOSSY
    )
    return judge(
        "M2",
        "A group of 2 to 100 flows has the total of as many flows of TCP, however it is divided "
        "(within 5 %); MulTCP does up to 20 to 25 flows, one shared loop not at all",
        paper="up to 100; 20 to 25; 1",
        ours=f"at worst {times(totals[at])} ({at[0]} flows, {at[1]}); MulTCP "
        + ", ".join(f"{v['mean']:.2f} with {n}" for n, v in multcp.items())
        + f"; one loop {times(cm)} with {SIZES[-1]}",
        first=totals[at],
        holds=all(near(v) for v in totals.values())
        and all(near(v) for n, v in multcp.items() if n <= MULTCP_MOST)
        and cm["mean"] < 1 - CLOSE,
        cause=f"Of sizes up to {MULTCP_MOST} within 5 %: MPAT "
        f"{sum(near(v) for (n, _), v in totals.items() if n <= MULTCP_MOST)} of "
        f"{sum(n <= MULTCP_MOST for n, _ in totals)}, MulTCP "
        f"{sum(near(v) for n, v in multcp.items() if n <= MULTCP_MOST)} of "
        f"{sum(n <= MULTCP_MOST for n in multcp)}. Where packets are lost at random, and not "
        f"by a queue that overflows, it has {single}, without other traffic. Perhaps because a "
        "full queue takes packets of several flows at once, each of which halves its window, and "
        "the one loop is cut once in a round trip; such losses were not counted. The table "
        "has every size and division.",
    )


def multcp(results: Measured) -> Claim:
    """Section 4.1, without a queue that overflows."""
    found = results["losses"]
    totals = {n: _total(found, MULTCP, flows=n) for n in LOSSY}
    off = worst(list(totals.values()))
    return judge(
        "multcp",
        f"Where {100 * LOSS:.1f} % of the packets are lost at random, not by a queue that "
        "overflows, MulTCP has the total of as many flows of TCP with 2, 5 and 10 flows (5 %)",
        paper="not in the paper",
        ours=", ".join(f"{n}: {times(v)}" for n, v in totals.items())
        + "; MPAT "
        + ", ".join(f"{n}: {times(_total(found, MPAT, flows=n))}" for n in LOSSY),
        first=totals[LOSSY[0]],
        holds=near(off),
        cause="Cause not found.",
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
        ours=f"{times(three)} of a flow's part at worst in the half second after three; by round "
        f"trips after the change {rows}",
        first=three,
        holds=abs(three["mean"] - 1) <= 0.1,
        cause="Cause not found: the parts before the change and long after it are beside it.",
    )


def _paired(found: Results, key: str, kind: str, how: Callable[[float, float], float]) -> Json:
    """Compare what TCP had beside groups of a kind with what it had beside as many of TCP."""
    columns = (found.values(key, NONE, kind=k) for k in (kind, "tcp"))
    return stats.interval([how(*both) for both in zip(*columns, strict=True)])


def _groups(found: Results, kind: str) -> dict[int, Json]:
    """Return what groups that compete got over their parts, by their sizes."""
    rates = {n: found.values(f"group {n} mbit", NONE, kind=kind) for n in GROUPS}
    totals = [sum(seed) for seed in zip(*rates.values(), strict=True)]
    return {
        n: stats.interval(
            [r / n / (t / sum(GROUPS)) for r, t in zip(rates[n], totals, strict=True)]
        )
        for n in GROUPS
    }


def m6(results: Measured) -> Claim:
    """Section 4.4."""
    found = results["groups"]
    values = {kind: _groups(found, kind) for kind in KINDS}
    ratio = {kind: _paired(found, "tcp mbit", kind, lambda a, b: a / b) for kind in KINDS}
    more = {kind: _paired(found, "tcp lost", kind, lambda a, b: 100 * (a - b)) for kind in KINDS}
    lost = {k: 100 * found.mean("tcp lost", NONE, kind=k)["mean"] for k in ("groups", "tcp")}
    tcp = {k: found.mean("tcp mbit", NONE, kind=k)["mean"] for k in ("groups", "tcp")}
    in_groups = sum(found.mean(f"group {n} mbit", NONE, kind="groups")["mean"] for n in GROUPS)
    off = worst(list(values["groups"].values()))

    def told(kind: str) -> str:
        means = [v["mean"] for v in values[kind].values()]
        return (
            f"TCP has {times(ratio[kind])}, and loses {times(more[kind])} points more; groups have "
            f"{min(means):.2f} to {max(means):.2f} of their parts"
        )

    return judge(
        "M6",
        "Groups of 2, 4, 6, 8 and 10 flows beside five of TCP (figure 2) get totals in proportion "
        "to their sizes (10 %), and TCP as much as beside as many flows of TCP (5 %), losing no "
        "more packets (within chance)",
        paper="proportional; similar",
        ours=f"TCP {times(ratio['groups'])} of that, losing {lost['groups']:.2f} % of its packets "
        f"instead of {lost['tcp']:.2f}, more by {times(more['groups'])} points; at worst "
        f"{times(off)} of a group's part: "
        + ", ".join(f"{n}: {v['mean']:.2f}" for n, v in values["groups"].items()),
        first=ratio["groups"],
        holds=abs(off["mean"] - 1) <= 0.1 and near(ratio["groups"]) and more["groups"]["lo"] <= 0,
        cause="Groups are in proportion. What five flows of TCP have more is "
        f"{100 * (tcp['groups'] - tcp['tcp']) / in_groups:.0f} % of what thirty flows in groups "
        f"have. Pace is the cause. If members are not paced {told(UNPACED)}. With the paper's "
        f"mapping as well {told(PAPERS)}.",
    )


def m5(results: Measured) -> Claim:
    """Section 4.7."""
    found = results["step"]
    shares = split("1 to N", 10)
    settled = {b: found.mean("mbit", b, at="settled")["mean"] for b in (MPAT, TCP)}
    cut = {
        (b, n): stats.interval([v / settled[b] for v in found.values("mbit", b, at=n)])
        for b in (MPAT, TCP)
        for n in STEP
        if isinstance(n, int)
    }
    fair = found.ratio("mbit", MPAT, TCP, at="settled")
    again = stats.interval(
        [
            after / before
            for after, before in zip(
                found.values("mbit", MPAT, at="regained"),
                found.values("mbit", MPAT, at="before"),
                strict=True,
            )
        ]
    )
    ratio = worst([worst(parts(found, MPAT, shares, at=n)) for n in STEP])
    chance = worst([worst(parts(found, TCP, [1.0] * 10, at=n)) for _, n in cut])
    acks = results["acks"]

    def few(background: str, at: str) -> str:
        first = parts(acks, background, split("1 to N", SMALL), setting="small", acks=at)[:3]
        return f"{first[0]['mean']:.2f}, {first[1]['mean']:.2f} and {first[2]['mean']:.2f}"

    def bare(background: str) -> str:
        return times(_total(acks, background, setting="step", acks=AT_ONCE))

    return judge(
        "M5",
        "A step of 30 Mbit/s of UDP beside ten flows at 1 to 10 and ten of TCP each way, 90 "
        "Mbit/s, 50 ms: after 6 round trips the total is what it settles at (15 %), after its end "
        "what it was (5 %), and the ratio is kept throughout (10 %)",
        paper="4 to 6 round trips; regained; kept",
        ours="total over what it settles at, by round trip "
        + ", ".join(f"{n}: {times(v)}" for (b, n), v in cut.items() if b == MPAT)
        + "; ten flows of TCP "
        + ", ".join(f"{n}: {times(v)}" for (b, n), v in cut.items() if b == TCP)
        + f"; settled {times(fair)} of ten flows of TCP; regained {times(again)}; at worst "
        f"{times(ratio)} of a flow's part",
        first=cut[MPAT, 6],
        holds=cut[MPAT, 6]["mean"] <= 1.15 and near(again) and abs(ratio["mean"] - 1) <= 0.1,
        cause="The time is that of ten flows of TCP. The ratio: two round trips are few packets, "
        "and the worst of so many means is far from 1 by its choice: of ten flows of TCP, whose "
        f"parts are equal, it is {times(chance)}. In the long run the flows lack something whose "
        "windows are a few packets: over the ten seconds after it settled the worst part is "
        f"{times(worst(parts(found, MPAT, shares, at='settled')))}, the table of M2 has the same "
        f"without a step. Of {SMALL} flows at 1 to {SMALL} there "
        f"the first three have {few(MPAT, DELAYED)} of their parts, "
        f"{few(UNPACED, DELAYED)} unpaced; if each packet is acknowledged {few(MPAT, AT_ONCE)}, "
        f"and {few(UNPACED, AT_ONCE)} unpaced. So delayed ACKs are most of the cause, pace is the "
        "rest: where a window is odd, its last packet's ACK comes up to 40 ms late. That is one "
        "way. If each packet is acknowledged in the setting of this claim, both ways, the group "
        f"has {bare(MPAT)} of ten flows of TCP over those ten seconds, {bare(UNPACED)} unpaced: "
        "see quickack.",
    )


def variation(found: Results, background: str, flows: int) -> list[float]:
    """Return the standard deviation over half seconds, over the mean, of each seed's totals."""
    rows = [found.values("mbit", background, flows=flows, at=t) for t in MOMENTS]
    return [pstdev(seed) / fmean(seed) for seed in zip(*rows, strict=True)]


def m7(results: Measured) -> Claim:
    """Section 4.6."""
    found = results["variance"]
    seeds = {(b, n): variation(found, b, n) for n in VARIED for b in (MPAT, TCP, MULTCP)}
    middle = {key: median(values) for key, values in seeds.items()}
    few, many = VARIED
    more = {
        n: sum(m > g for m, g in zip(seeds[MULTCP, n], seeds[MPAT, n], strict=True)) for n in VARIED
    }
    out = seeds[MULTCP, many].index(max(seeds[MULTCP, many]))
    moments = [found.values("mbit", MULTCP, flows=many, at=t)[out] for t in MOMENTS]
    takes = [
        fmean(found.values("mbit", b, flows=few, at=t)) for b in (MULTCP, TCP) for t in MOMENTS
    ]
    return judge(
        "M7",
        "The total of a group varies less than MulTCP's, and less the larger it is (standard "
        "deviation over half seconds, over the mean; median of the seeds)",
        paper="in words",
        ours="; ".join(
            f"{n} flows: "
            + ", ".join(
                f"{b} {middle[b, n]:.3f} ({min(seeds[b, n]):.3f} to {max(seeds[b, n]):.3f})"
                for b in (MPAT, TCP, MULTCP)
            )
            + f", MulTCP more than the group in {more[n]} of {found.seeds} seeds"
            for n in VARIED
        ),
        first=None,
        holds=middle[MPAT, many] < middle[MPAT, few]
        and all(middle[MPAT, n] < middle[MULTCP, n] for n in VARIED),
        cause="A group varies about as flows of TCP do, less the more there are. "
        f"In the seed in which MulTCP of {many} flows varies most it has {min(moments):.1f} to "
        f"{max(moments):.1f} Mbit/s: after a timeout of any member its one loop starts again from "
        "a packet (core/alg/multcp.h), and members of less than two packets meet losses with "
        "timeouts again; that this is the cause was not tested by an experiment. Why MulTCP of "
        f"{few} flows varies less is not found; it takes "
        f"{sum(takes[: len(MOMENTS)]) / sum(takes[len(MOMENTS) :]):.2f} times as much as they.",
    )


def m8(results: Measured) -> Claim:
    """Section 4.8."""
    found = results["web"]
    both, one = {"traffic": "both ways"}, {"traffic": "one way"}
    shares = split("1 to N", 5)
    ratio = worst([worst(parts(found, MPAT, shares, **w)) for w in (both, one)])
    totals = [_total(found, MPAT, **w) for w in (both, one)]

    def told(background: str) -> str:
        first, second = (times(_total(found, background, **w)) for w in (both, one))
        return f"{first}, one way {second}"

    return judge(
        "M8",
        "Beside fetches of web pages (a third of the link) as well, the total is that of five "
        "flows of TCP (5 %) and the ratio is kept (5 %)",
        paper="in words",
        ours=f"{times(totals[0])}, one way {times(totals[1])}; at worst {times(ratio)} of a "
        "flow's part",
        first=totals[0],
        holds=all(near(v) for v in (*totals, ratio)),
        cause=f"Pace and the mapping. Unpaced the total is {told(UNPACED)}; with the "
        f"paper's mapping, paced, {told('any')}; with both as in the paper {told(PAPERS)}. The "
        "part is that of the smallest flow.",
    )


def _windows(results: Measured, control: str) -> tuple[dict[str, Json], Json]:
    """Return totals of a group over those of as many flows alone, and the worst part."""
    found = results["windows"]
    ways = [{"windows": control, "traffic": w} for w in ("both ways", "one way")]
    totals = {str(w["traffic"]): found.ratio("mbit", GROUP, ALONE, **w) for w in ways}
    shares = split("1 to N", 5)
    return totals, worst([worst(parts(found, GROUP, shares, **w)) for w in ways])


def _paced(found: Results, control: str, beside: str, way: str) -> list[float]:
    """Return what five flows had together that were on their own, but paced as members are."""
    at = {"windows": control, "beside": beside, "traffic": way, "kind": ALONE}
    flows = [found.values(f"{ALONE} {i} mbit", NONE, **at) for i in range(1, 6)]
    return [sum(seed) for seed in zip(*flows, strict=True)]


def _over(values: list[float], reference: list[float]) -> str:
    """Return the mean ratio of values of the same seeds."""
    return times(stats.interval([a / b for a, b in zip(values, reference, strict=True)]))


def cubic(results: Measured) -> Claim:
    """Windows of CUBIC."""
    totals, ratio = _windows(results, "cubic")
    found, paced = results["windows"], results["paced"]

    def fair(control: str, way: str) -> str:
        return times(found.ratio("mbit", GROUP, ALONE, windows=control, traffic=way))

    both = totals[BOTH]
    sure = (
        f"That it is more than {1 + CLOSE} is not certain: the interval has it."
        if both["lo"] is not None and both["lo"] <= 1 + CLOSE <= both["hi"]
        else ""
    )
    beside: dict[str, str] = {}
    for way in (BOTH, ONE):
        group = found.values("mbit", GROUP, windows="cubic", traffic=way)
        beside[way] = _over(group, _paced(paced, "cubic", AS_IS, way))
    every: dict[str, str] = {}
    for way in (BOTH, ONE):
        at = {"windows": "cubic", "beside": PACED, "traffic": way, "kind": GROUP}
        every[way] = _over(paced.values("mbit", GROUP, **at), _paced(paced, "cubic", PACED, way))
    return judge(
        "cubic",
        "Five flows at 1:2:3:4:5 with windows of CUBIC have as much as five flows of CUBIC beside "
        "five of CUBIC (5 %), and each gets its part (5 %)",
        paper="not in the paper",
        ours=", ".join(f"{way} {times(v)}" for way, v in totals.items())
        + f"; at worst {times(ratio, 3)} of a flow's part",
        first=totals["both ways"],
        holds=all(near(v) for v in (*totals.values(), ratio)),
        cause="ACKs that wait behind packets and come bunched: where they have a queue of their "
        f"own the total is {fair('cubic', FREE)}. Why a group has more of bunched ACKs than flows "
        f"is not found. With windows of Reno it has {fair('reno', BOTH)} there. It is not HyStart "
        f"({fair(NO_HYSTART, BOTH)} without), not fast convergence ({fair(NO_FAST, BOTH)} "
        "without), and hardly pace: over flows of CUBIC that are paced as members of a group are "
        f"the total is {beside[BOTH]}, one way {beside[ONE]}, and where all traffic is "
        f"{every[BOTH]}, one way {every[ONE]}. {sure}".rstrip(),
    )


def _unsteady(found: Results, key: str, background: str) -> Json:
    """Return the standard deviation over half seconds, over the mean, for each seed."""
    rows = [found.values(key, background, at=t) for t in MOMENTS]
    return stats.interval([pstdev(seed) / fmean(seed) for seed in zip(*rows, strict=True)])


def tfrc(results: Measured) -> Claim:
    """Section 3.3.4."""
    totals, ratio = _windows(results, "tfrc")
    found, smooth = results["windows"], results["smooth"]
    ways = [{"windows": "tfrc", "traffic": w} for w in ("both ways", "one way")]
    fair = [found.ratio("mbit", ALONE, TCP, **w) for w in ways]
    of_tcp = [found.ratio("mbit", GROUP, TCP, **w) for w in ways]
    one = {b: _unsteady(smooth, "flow 3", b) for b in (ALONE, TCP)}
    five = {b: _unsteady(smooth, "mbit", b) for b in (GROUP, MPAT, ALONE, TCP)}
    paced = _paced(results["paced"], "tfrc", AS_IS, ONE)
    group, alone, tcp = (found.values("mbit", b, **ways[1]) for b in (GROUP, ALONE, TCP))
    return judge(
        "tfrc",
        "A group with loops of TFRC (3.3.4) is as five flows of TFRC: it has their total (5 %), "
        "each gets its part (5 %), and it varies less than a group with windows of Reno; a flow "
        "of TFRC varies less than one of Reno, and gets from half to twice as much (RFC 5348, 1)",
        paper="in words",
        ours=", ".join(f"{way} {times(v)}" for way, v in totals.items())
        + f" of five flows of TFRC, {times(of_tcp[0])} and {times(of_tcp[1])} of five of TCP; at "
        f"worst {times(ratio, 3)} of a flow's part; flows of TFRC {times(fair[0])} and "
        f"{times(fair[1])} of as many of TCP; standard deviation over half seconds, over the mean: "
        f"a flow of TFRC {times(one[ALONE])}, of TCP {times(one[TCP])}; the group "
        f"{times(five[GROUP])}, with windows of Reno {times(five[MPAT])}, five flows of TFRC "
        f"{times(five[ALONE])}, of TCP {times(five[TCP])}",
        first=totals["both ways"],
        holds=all(near(v) for v in (*totals.values(), ratio))
        and five[GROUP]["mean"] < five[MPAT]["mean"]
        and one[ALONE]["mean"] < one[TCP]["mean"]
        and all(0.5 <= v["mean"] <= 2 for v in fair),
        cause="Most of it is pace. Members of a group are paced, flows on their own send as ACKs "
        "come, to a queue from which a packet has just left. Flows of TFRC that are paced as "
        f"members are have {_over(paced, alone)} of what those have that are not, one way, "
        f"{_over(paced, tcp)} times as much as TCP, and the group has {_over(group, paced)} of "
        "that. The cause of the rest is not found.",
    )


def mappings(results: Measured) -> Claim:
    """Both kinds of host."""
    rules = results["rules"]
    ways = ("both ways", "one way")
    got = {w: rules.ratio("mbit", MPAT, RULES[2], traffic=w) for w in ways}
    shares = split("1 to N", 5)
    drawn = {w: times(rules.ratio("mbit", EACH, RULES[2], traffic=w)) for w in (*ways, FREE)}
    off = {
        b: worst([worst(parts(rules, b, shares, traffic=w)) for w in ways])
        for b in (MPAT, RULES[2])
    }
    return judge(
        "mappings",
        "Charging packets when their ACKs come, as on the kernel, agrees with sending each "
        "through a window, as in the paper (total and ratio within 5 %)",
        paper="not in the paper",
        ours="totals "
        + ", ".join(f"{w} {times(v)}" for w, v in got.items())
        + f"; of a flow's part at worst {times(off[MPAT], 3)} and {times(off[RULES[2]], 3)}",
        first=got["both ways"],
        holds=all(near(v) for v in (*got.values(), *off.values())),
        cause="Two things. Runs keep losses of a burst together: over a window drawn for each ACK "
        f"they have {times(rules.ratio('mbit', MPAT, EACH, traffic='both ways'), 3)} both ways and "
        f"{times(rules.ratio('mbit', MPAT, EACH, traffic='one way'), 3)} one way. The rest is of "
        "ACKs that wait behind packets: with a window drawn for each ACK the totals are "
        f"{drawn['both ways']} of the paper's mapping both ways, {drawn['one way']} one way, and "
        f"{drawn[FREE]} both ways if ACKs have a queue of their own, runs "
        f"{times(rules.ratio('mbit', MPAT, RULES[2], traffic=FREE))} there.",
    )


def quickack(results: Measured) -> Claim:
    """Receivers that do not delay ACKs."""
    found = results["quickack"]
    shares = split("1 to N", 5)
    totals = {w: _total(found, MPAT, traffic=w) for w in (BOTH, ONE)}
    off = worst([worst(parts(found, MPAT, shares, traffic=w)) for w in totals])
    again = [
        [r / m for r, m in zip(*(found.values(k, b, traffic=BOTH) for k in AGAIN), strict=True)]
        for b in (MPAT, TCP)
    ]

    def told(background: str, way: str) -> str:
        return times(_total(found, background, traffic=way))

    return judge(
        "quickack",
        "Where receivers acknowledge each packet, not each second one, five flows at 1:2:3:4:5 "
        "have the total of five flows of TCP as well (5 %), and each gets its part (5 %)",
        paper="not in the paper",
        ours=", ".join(f"{way} {times(v)}" for way, v in totals.items())
        + f"; at worst {times(off, 3)} of a flow's part",
        first=totals[BOTH],
        holds=all(near(v) for v in (*totals.values(), off)),
        cause="Both ways pace, and ACKs that share a queue with packets: unpaced the total is "
        f"{told(UNPACED, BOTH)}, paced with ACKs in a queue of their own {told(MPAT, FREE)}. It is "
        f"not the mapping: with the paper's it is {told('any', BOTH)} paced, {told(PAPERS, BOTH)} "
        f"unpaced. For what it gets the group sends {_over(*again)} times as many packets again "
        "as flows of TCP do. Why paced packets meet so many losses there is not found, nor why "
        "the total is more than theirs one way.",
    )


def m9(results: Measured) -> Claim:
    """Section 3.3.3."""
    found = results["rules"]
    both = {"traffic": "both ways"}
    totals = {r: _total(found, r, **both) for r in RULES}
    unpaced = _total(found, PAPERS, **both)
    return judge(
        "M9",
        "Of the three rules that map packets to windows, the last one's is aggressive, another "
        "one's is timid, any one's right (within 5 %), with traffic both ways",
        paper="in words",
        ours="; ".join(f"{r} {times(v)}" for r, v in totals.items())
        + f"; any, unpaced as in the paper {times(unpaced)}",
        first=totals["any"],
        holds=totals["same"]["mean"] > totals["any"]["mean"] > totals["other"]["mean"]
        and near(totals["any"])
        and near(unpaced),
        cause="The rules differ in where the second loss of a burst goes: in the order of the "
        "means here, too, if members are paced. Unpaced, any one's is right one way, "
        f"{times(_total(found, PAPERS, traffic='one way'))}, not with traffic both ways, where "
        f"ACKs wait for packets: {times(_total(found, PAPERS, traffic=FREE))} if they have a queue "
        "of their own.",
    )


ALL_RULES = (MPAT, EACH, *RULES, UNPACED, PAPERS)
