# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""What TCP Nice's report claims of its simulations and measurements, and what was found.

Verdicts are on the report's literal rules; what this project deploys is given beside them. Where
the report has words and no number, the docstring says what was taken for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import stats
from ...claims.claim import Judgement as Claim
from ...claims.claim import Measured, percent, times
from ...claims.legacy import judge
from ...scenario import IDEAL, NONE
from . import path_changes, paths
from .experiments import (
    ABLATIONS,
    BOTH,
    FLOOR,
    FLOWS,
    FRACTIONS,
    OURS,
    PAPER,
    SETTINGS,
    SPARE,
    THRESHOLDS,
    WITHOUT,
)

Json = dict[str, Any]

ALIKE = 1.1
"""Ratio within which two latencies are "hardly distinguishable": the width of a line in a figure
whose axis has two decades in 5 cm."""
FLAT, NEAR = 1.25, 1.5
"""Ratios within which a curve is called flat, and near to another curve."""
ORDERS = 50.0
"""Ratio from which on one speaks of two orders of magnitude."""
LINUX = "TCP of today's Linux"
PAPERS_RULE = "the paper's"


def n1(results: Measured) -> Claim:
    """Abstract: less than 5 % for the packets, over 70 % of the spare."""
    flows, settings, rules = results["flows"], results["settings"], results["rules"]
    harm, share = flows.harm(PAPER, flows=16), flows.share(PAPER, flows=16)
    none, nice = (flows.mean("packet_rtt_ms", b, flows=16)["mean"] for b in (NONE, PAPER))
    waits = [flows.mean("queue_ms", b, flows=16)["mean"] for b in (NONE, PAPER)]
    lost = [100 * flows.mean("lost", b, flows=16)["mean"] for b in (NONE, PAPER)]

    def both(name: str) -> str:
        at = _at(name, 16)
        return f"{times(settings.harm(PAPER, **at))} and {percent(settings.share(PAPER, **at))}"

    def rule(name: str) -> str:
        at: dict[str, Any] = {"rule": name, "flows": 16}
        return f"{times(rules.harm(PAPER, **at))} and {percent(rules.share(PAPER, **at))}"

    met = [
        name for name in SETTINGS
        if settings.harm(PAPER, **_at(name, 16))["mean"] < 1.05
        and settings.share(PAPER, **_at(name, 16))["mean"] > 0.7
    ]  # fmt: skip
    return judge(
        "N1",
        "16 backlogged Nice flows on a link half used by demand: its packets take less than 5 % "
        "longer, and Nice gets over 70 % of the spare",
        paper="< 1.05, > 70 %",
        ours=f"{times(harm)} times as long, {percent(share)}; {_default(flows, flows=16)}",
        first=harm,
        holds=harm["mean"] < 1.05 and share["mean"] > 0.7,
        cause=f"Packets take {nice - none:.0f} ms longer. {waits[1] - waits[0]:.0f} ms of it they "
        "wait in the queue, which the flows fill up to the threshold and beyond; the rest they "
        f"wait for what is sent again, {lost[1]:.1f} % of them, not {lost[0]:.1f} %. It is not "
        "that the web log comes in bursts: with files of one size at constant gaps it is "
        f"{both('one size at constant gaps')}, with Poisson arrivals "
        f"{both('Poisson arrivals, bounded Pareto sizes')}. Nor is it the initial window: with "
        f"today's TCP {both(LINUX)}. It is the queue that is tolerated: with a threshold of 0.05 "
        f"{rule('threshold 0.05')}, of 0.02 {rule('threshold 0.02')}. And it is how long packets "
        "take anyhow: "
        f"{both('requests up to 10 MB, a quarter of the rate')} where they wait for each other. "
        f"Both numbers at once: {_named(met)}.",
    )


def n2(results: Measured) -> Claim:
    """Abstract: Reno or Vegas slow demand down by more than an order of magnitude."""
    flows, settings = results["flows"], results["settings"]
    harms = {b: flows.harm(b, flows=16) for b in ("reno", "vegas")}
    fct = {b: flows.harm(b, "fct_s", flows=16) for b in harms}
    fast = _at("four times the rate", 16)
    met = [
        name for name in SETTINGS
        if all(settings.harm(b, **_at(name, 16))["mean"] > 10 for b in harms)
    ]  # fmt: skip
    slow = _at("receivers with 8 packets, a quarter of the rate", 16)
    return judge(
        "N2",
        "In their place, 16 Reno or Vegas flows make demand packets take more than 10 times as "
        "long",
        paper="> 10",
        ours=f"{times(harms['reno'], 1)} times as long with Reno, {times(harms['vegas'], 1)} with "
        f"Vegas; completion times {times(fct['reno'], 1)} and {times(fct['vegas'], 1)} times",
        first=harms["reno"],
        holds=all(v["mean"] > 10 for v in harms.values()),
        cause="A full queue of 50 packets is 150 ms at this rate, and packets wait beyond that "
        "only for timeouts. It depends on the rate, which the report does not give: at four times "
        f"the rate {times(settings.harm('reno', **fast), 1)} with Reno and "
        f"{times(settings.harm('vegas', **fast), 1)} with Vegas; at a quarter, where the queue is "
        f"0.6 s, and with receivers of 8 packets {times(settings.harm('reno', **slow), 1)} and "
        f"{times(settings.harm('vegas', **slow), 1)}. Beyond 10: {_named(met)}. Users see more "
        "than packets do, since requests have several round trips.",
    )


def n3(results: Measured) -> Claim:
    """Figure 2, "hardly distinguishable" taken as within 10 % of router priority."""
    spare = results["spare"]
    worst = _worst(spare, PAPER, "spare", SPARE)
    ours = _worst(spare, OURS, "spare", SPARE)
    inside = [s for s in SPARE if _over_priority(spare, PAPER, spare=s)["mean"] <= ALIKE]
    none = [spare.mean("packet_rtt_ms", NONE, spare=s)["mean"] / 1e3 for s in (SPARE[0], worst[0])]
    return judge(
        "N3",
        "8 flows, a spare capacity S of 0.1 to 4 times the demand (figure 2): Nice is hardly "
        "distinguishable from router priority (within 10 %)",
        paper="≈ 1",
        ours=f"at worst {times(worst[1])} times router priority's latency, at S = {worst[0]:g}; "
        f"our default {times(ours[1])}, at S = {ours[0]:g}",
        first=worst[1],
        holds=worst[1]["mean"] <= ALIKE,
        cause=f"As in N1. Within 10 % at S = {_listed(inside)}: the queue below the threshold "
        f"weighs less the longer packets take anyhow, {none[0]:.1f} s at S = {SPARE[0]:g} and "
        f"{none[1]:.2f} s at S = {worst[0]:g} without any background.",
    )


def n4(results: Measured) -> Claim:
    """Figure 3, "hardly distinguishable" taken as within 10 % of router priority."""
    flows, rules = results["flows"], results["rules"]
    most = FLOWS[-1]
    harm, ours = (_over_priority(flows, b, flows=most) for b in BOTH)
    reno = _over_priority(flows, "reno", flows=most)
    few, fewer = (
        [n for n in FLOWS if _over_priority(flows, b, flows=n)["mean"] <= ALIKE] for b in BOTH
    )
    waits = [flows.mean("queue_ms", PAPER, flows=n)["mean"] for n in (16, most)]

    def rule(name: str) -> str:
        at: dict[str, Any] = {"rule": name, "flows": most}
        return f"{times(rules.harm(PAPER, **at))} times the latency without background"

    return judge(
        "N4",
        "So too with 100 flows (figure 3; within 10 %)",
        paper="≈ 1",
        ours=f"{times(harm)} times router priority's latency; our default {times(ours)}, "
        f"Reno {times(reno, 1)}",
        first=harm,
        holds=harm["mean"] <= ALIKE,
        cause=f"Within 10 % with {_listed(few)} flows (our default with {_listed(fewer)}). A "
        "window W below two packets hears of the queue once in 2/W round trips, and is halved no "
        "more often, so that many small windows hold the queue longer than a few large ones: "
        f"packets wait {waits[1]:.0f} ms in it with {most} flows, {waits[0]:.0f} ms with 16. With "
        f"{most} flows it is {rule(PAPERS_RULE)}; with a harder decrease below two packets "
        f"{rule('harder decrease below two packets')}; with growth after quiet rounds only and an "
        f"early verdict besides {rule('the last three')}; with packets that leave one by one "
        f"{rule('packets one by one besides')}.",
    )


def n5(results: Measured) -> Claim:
    """Figure 4; "about half" taken as 40 to 60 %."""
    flows, settings = results["flows"], results["settings"]
    share = {n: flows.share(PAPER, flows=n) for n in FLOWS}
    more = [v["mean"] for n, v in share.items() if n > 1]
    inside = [n for n in FLOWS if n > 1 and 0.6 <= share[n]["mean"] <= 0.8]
    single = {name: settings.share(PAPER, **_at(name, 1)) for name in SETTINGS}
    met = [f"{name} {percent(v)}" for name, v in single.items() if 0.4 <= v["mean"] <= 0.6]
    below = [n for n in FLOWS if share[n]["mean"] < 1]
    return judge(
        "N5",
        "One Nice flow gets about half of the spare (40 to 60 %), more flows 60 to 80 %, always "
        "less than under router priority (figure 4)",
        paper="≈ 50 %, 60 to 80 %, < 100 %",
        ours=f"{percent(share[1])} with one flow, {100 * min(more):.0f} to {100 * max(more):.0f} % "
        f"with 2 to {FLOWS[-1]}, less than router priority with {_listed(below)}; our default "
        f"{percent(flows.share(OURS, flows=1))} with one, "
        f"{percent(flows.share(OURS, flows=100))} with 100",
        first=share[1],
        holds=0.4 <= share[1]["mean"] <= 0.6 and min(more) >= 0.6 and max(more) <= 0.8,
        cause=f"Between 60 and 80 % with {_listed(inside)} flows. One flow is halved whenever a "
        "request's slow start fills the queue above the threshold, and then grows by one packet in "
        "a round trip. Smooth arrivals do not help, since every request has its slow start: with "
        "files of one size at constant gaps one flow gets "
        f"{percent(single['one size at constant gaps'])}. Fewer slow starts or smaller ones do: "
        f"{percent(single['requests up to 10 MB'])} with requests up to 10 MB, "
        f"{percent(single['receivers with 2 packets'])} with receivers of 2 packets. About half: "
        f"{_named(met)}.",
    )


def n6(results: Measured) -> Claim:
    """Section 4.2, experiment 2; "noticeably" taken as 10 %, "about two" as 1.5 to 3."""
    flows, settings = results["flows"], results["settings"]
    harm = {n: flows.harm(FLOOR, flows=n) for n in FLOWS}
    over = {n: flows.ratio("packet_rtt_ms", FLOOR, PAPER, flows=n) for n in FLOWS}
    others = {name: settings.harm(FLOOR, **_at(name, 64)) for name in SETTINGS}
    met = [f"{name} {times(v, 1)}" for name, v in others.items() if 1.5 <= v["mean"] <= 3]
    return judge(
        "N6",
        "Without windows below one packet latency grows from about 10 flows on (by 10 %), and is "
        "about twice as long with 64 (1.5 to 3 times)",
        paper="2",
        ours=f"{times(harm[64], 1)} times as long as without background with 64 flows, "
        f"{times(over[64], 1)} times as long as with Nice; with 10 flows {times(over[10])} times "
        "as long as with Nice",
        first=harm[64],
        holds=over[10]["mean"] >= 1.1 and 1.5 <= harm[64]["mean"] <= 3,
        cause="The direction is the paper's, the size is not. 64 flows have 64 packets "
        "outstanding, and the link holds 33 at this rate: the others stand in the queue all the "
        "time, and demand loses packets. About twice, where the link holds more or demand takes "
        f"longer anyhow: {_named(met)}.",
    )


def n7(results: Measured) -> Claim:
    """Figure 5; "large range" taken as 0.05 to 0.3, all within 25 % of the value at 0.1."""
    threshold, flows = results["threshold"], results["flows"]
    harm, ours = (
        {t: threshold.harm(b, threshold=t) for t in THRESHOLDS} for b in BOTH
    )  # fmt: skip
    vegas = flows.harm("vegas", flows=16)
    waits = [threshold.mean("queue_ms", PAPER, threshold=t)["mean"] for t in (0.1, 0.4)]

    def flat(values: dict[float, Json]) -> list[float]:
        middle = values[0.1]["mean"]
        return [t for t, v in values.items() if 1 / FLAT <= v["mean"] / middle <= FLAT]

    wide = all(t in flat(harm) for t in THRESHOLDS if 0.05 <= t <= 0.3)
    return judge(
        "N7",
        "Latency is flat over a wide range of threshold (within 25 % of that at 0.1 from 0.05 to "
        "0.3), and becomes that of Vegas as it nears 1 (within 1.5 times; figure 5)",
        paper="flat, then Vegas",
        ours=f"{times(harm[1.0], 1)} times as long at 1, Vegas {times(vegas, 1)}; flat from "
        f"{min(flat(harm)):g} to {max(flat(harm)):g}; our default {times(ours[1.0], 1)} at 1, flat "
        f"from {min(flat(ours)):g} to {max(flat(ours)):g}",
        first=harm[1.0],
        holds=wide and 1 / NEAR <= harm[1.0]["mean"] / vegas["mean"] <= NEAR,
        cause="16 flows keep the queue at what is tolerated, which grows with the threshold: "
        f"packets wait {waits[0]:.0f} ms in it at 0.1 and {waits[1]:.0f} ms at 0.4. Where a "
        "window grows after quiet rounds only, as in our default, the threshold matters less: "
        f"{times(ours[0.1])} at 0.1, {times(ours[0.4])} at 0.4, against {times(harm[0.1])} and "
        f"{times(harm[0.4])}. At 1 Nice is Vegas but for the least window, which Vegas has at two "
        "packets.",
    )


def n8(results: Measured) -> Claim:
    """Section 4.2, experiment 3; "no change" taken as 10 %."""
    fraction = results["fraction"]
    harm = {f: fraction.harm(PAPER, fraction=f, flows=16) for f in FRACTIONS}
    means = [v["mean"] for v in harm.values()]
    ours = [fraction.harm(OURS, fraction=f, flows=16)["mean"] for f in FRACTIONS]
    two = [fraction.harm(PAPER, fraction=f, flows=2)["mean"] for f in FRACTIONS]
    ends = (fraction.values("packet_rtt_ms", PAPER, fraction=f, flows=16) for f in (0.9, 0.1))
    change = stats.interval([high / low for high, low in zip(*ends, strict=True)])
    return judge(
        "N8",
        "Latency does not change when fraction goes from 0.1 to 0.9 (within 10 %)",
        paper="1",
        ours=f"{times(change)} times at 0.9 what it is at 0.1; from {min(means):.2f} to "
        f"{max(means):.2f} times that without background; our default from {min(ours):.2f} to "
        f"{max(ours):.2f}",
        first=change,
        holds=max(means) / min(means) <= ALIKE,
        cause="With 16 flows most windows are of two packets or less, and so are their rounds: one "
        "delayed packet of two is congestion with a fraction below 0.5, and not from 0.5 on. It is "
        f"{times(harm[0.1])} at 0.1, {times(harm[0.4])} at 0.4, {times(harm[0.5])} at 0.5 and "
        f"{times(harm[0.9])} at 0.9. With two flows, whose windows are larger, it goes from "
        f"{min(two):.2f} to {max(two):.2f}.",
    )


def n9(results: Measured) -> Claim:
    """Figures 11 to 13; "two orders of magnitude" taken as 50, "about 10 times" as 7 to 15."""
    spare, flows, settings = results["spare"], results["flows"], results["settings"]
    gentler = [
        s for s in SPARE
        if spare.harm(PAPER, spare=s)["mean"] < spare.harm("window 1", spare=s)["mean"]
    ]  # fmt: skip
    many = flows.harm("window 1", flows=64)
    fct = flows.harm("window 1", "fct_s", flows=64)
    carried = flows.ratio("mbit", PAPER, "window 1", flows=1)
    wider = flows.ratio("mbit", PAPER, "window 8", flows=1)
    others = {name: settings.harm("window 1", **_at(name, 64)) for name in SETTINGS}
    most = max(others, key=lambda name: float(others[name]["mean"]))
    loads = {
        name: settings.ratio("mbit", PAPER, "window 1", **_at(name, 1)) for name in SETTINGS
    }  # fmt: skip
    met = [f"{name} {times(v, 1)}" for name, v in loads.items() if 7 <= v["mean"] <= 15]
    return judge(
        "N9",
        "Rate limits do not replace it (figures 11 to 13): a window of one packet interferes more "
        "than Nice at every S, by two orders of magnitude with 64 flows (50 times), and one Nice "
        "flow carries about 10 times as much (7 to 15)",
        paper="more, 100, 10",
        ours=f"{times(many, 1)} times the latency without background with 64 flows of one packet; "
        f"8 of them interfere more than Nice at S = {_listed(gentler)}; one Nice flow carries "
        f"{times(carried, 1)} times as much, {times(wider, 2)} times as much as a window of 8",
        first=many,
        holds=len(gentler) == len(SPARE) and many["mean"] >= ORDERS and 7 <= carried["mean"] <= 15,
        cause="8 windows of one packet are at most 8 packets in a round trip, whatever is spare: "
        "at a larger S than those above they leave most of it alone, and Nice takes it. 64 packets "
        f"are a full queue and no more ({times(fct, 1)} times the completion time); at most it is "
        f"{times(others[most], 1)}: {most}. What one Nice flow carries is N5; about 10 times as "
        f"much: {_named(met)}.",
    )


def n10(results: Measured) -> Claim:
    """Figures 14 to 16; "about 70 %" taken as 60 to 80."""
    spare, flows = results["udp-spare"], results["udp-flows"]
    better = [
        s for s in SPARE
        if all(
            spare.harm(PAPER, spare=s)["mean"] < spare.harm(b, spare=s)["mean"]
            for b in ("reno", "vegas")
        )
    ]  # fmt: skip
    behind = [s for s in SPARE if _over_priority(spare, PAPER, spare=s)["mean"] > 1]
    share, ours = flows.share(PAPER, flows=1), flows.share(OURS, flows=1)
    worst = _worst(spare, PAPER, "spare", SPARE)
    return judge(
        "N10",
        "With bursts of UDP in the foreground Nice interferes less than Reno and Vegas and more "
        "than router priority at every S; one flow gets about 70 % of the spare at S = 2 (60 to "
        "80 %; figures 14 to 16)",
        paper="less, more, 70 %",
        ours=f"{percent(share)} with one flow (our default {percent(ours)}); less than Reno and "
        f"Vegas at S = {_listed(better)}, more than router priority at S = {_listed(behind)}, at "
        f"worst {times(worst[1])} times",
        first=share,
        holds=len(better) == len(behind) == len(SPARE) and 0.6 <= share["mean"] <= 0.8,
        cause="The number of sources and their rate are not in the report: twelve that send a "
        "sixth of the demand each are less of a burst than fewer would be. One flow alone on the "
        f"link at S = 2 gets {percent(share)}; {percent(flows.share(PAPER, flows=8))} with 8.",
    )


def n11(results: Measured) -> Claim:
    """Figures 6 and 7: the primary flow's throughput over that alone."""
    found = results[paths.NAME]
    kept = {
        (path, name, flows): paths.kept(found, path, paths.action(name, flows))
        for path in paths.PATHS
        for name in (*BOTH, "reno")
        for flows in paths.SECONDARY
    }
    nice = {key: value for key, value in kept.items() if key[1] == PAPER}
    worst = min(nice, key=lambda key: float(nice[key]["mean"]))
    ours = min((k for k in kept if k[1] == OURS), key=lambda key: float(kept[key]["mean"]))
    reno = [kept[path, "reno", 8]["mean"] for path in paths.PATHS]
    below = [
        f"{path} beside {flows} {percent(value)} (our default {percent(kept[path, OURS, flows])})"
        for (path, _, flows), value in nice.items()
        if value["mean"] < 0.97
    ]

    def eight(path: str, change: str) -> str:
        found = results[path_changes.NAME]
        return percent(path_changes.kept(found, path, change, paths.action(PAPER, 8)))

    def one(change: str) -> str:
        found = results[path_changes.NAME]
        return percent(path_changes.kept(found, "modem", change, paths.action(PAPER, 1)))

    usual, longer = path_changes.CHANGES[0], "transfers ten times as long"
    return judge(
        "N11",
        "On four paths a Reno flow keeps 97 % of its throughput and more beside one and eight Nice "
        "flows (figures 6 and 7; on the Linux kernel)",
        paper="≥ 97 %",
        ours=f"{percent(nice[worst])} at worst, {worst[0]} beside {worst[2]}; our default at worst "
        f"{percent(kept[ours])}, {ours[0]} beside {ours[2]}; beside eight Reno flows "
        f"{100 * min(reno):.0f} to {100 * max(reno):.0f} %",
        first=nice[worst],
        holds=not below,
        cause=f"Less than 97 %: {'; '.join(below)}. In the simulator, where one thing was changed "
        "at a time: the buffer counts, as theorem 1 has it. Beside eight flows a transfer over "
        f"delaware keeps {eight('delaware', 'half the buffer')} with half of it, "
        f"{eight('delaware', usual)} as it is and {eight('delaware', 'twice the buffer')} with "
        f"twice; over london {eight('london', 'half the buffer')}, {eight('london', usual)} and "
        f"{eight('london', 'twice the buffer')}. And Nice needs round trips to yield, of which a "
        f"short transfer has few: ten times as long it keeps {eight('cable', longer)} over cable "
        f"({eight('cable', usual)} as it is). On the modem 10 s are 47 packets, and 3 % of them "
        f"less than two: one Nice flow leaves {one(usual)}, {one('packets of 576 bytes')} with "
        f"packets of 576 bytes, as modems had them, {one(longer)} of a transfer ten times as long.",
    )


def n12(results: Measured) -> Claim:
    """Section 2.2: the omission of any of the three additions would increase the interference."""
    flows = results["flows"]
    more = {
        part: flows.ratio("packet_rtt_ms", WITHOUT[PAPER, part], PAPER, flows=64)
        for part in ABLATIONS
    }
    ours = {
        part: flows.ratio("packet_rtt_ms", WITHOUT[OURS, part], OURS, flows=64)
        for part in ABLATIONS
    }
    least = min(more, key=lambda part: float(more[part]["mean"]))
    return judge(
        "N12",
        "Ablation: each of the three additions to Vegas, taken out alone, increases interference "
        "(section 2.2; 64 flows)",
        paper="> 1",
        ours="; ".join(f"without {part} {times(v, 1)} times Nice's" for part, v in more.items())
        + "; our default "
        + ", ".join(times(v, 1) for v in ours.values()),
        first=more[ABLATIONS[0]],
        holds=all(v["lo"] is None or v["lo"] > 1 for v in more.values())
        and more[least]["mean"] > 1,
        cause=f"Without {least} it is {times(more[least])} times.",
    )


def _at(setting: str, flows: int) -> dict[str, Any]:
    """Return a point of the experiment "settings"."""
    return {"setting": setting, "flows": flows}


def _default(found: Any, **at: float | str) -> str:  # noqa: ANN401 (Results)
    harm, share = found.harm(OURS, **at), found.share(OURS, **at)
    return f"our default {times(harm)} and {percent(share)}"


def _over_priority(found: Any, background: str, **at: float | str) -> Json:  # noqa: ANN401
    ratio: Json = found.ratio("packet_rtt_ms", background, IDEAL, **at)
    return ratio


def _worst(
    found: Any, background: str, key: str, places: Sequence[float]  # noqa: ANN401 (Results)
) -> tuple[float, Json]:  # fmt: skip
    """Return where a background is worst against router priority, and by how much."""
    ratios = {place: _over_priority(found, background, **{key: place}) for place in places}
    place = max(ratios, key=lambda p: float(ratios[p]["mean"]))
    return place, ratios[place]


def _named(names: Sequence[str]) -> str:
    """Return settings of the tables; in words if there is none."""
    return "; ".join(names) or "in none of the settings below"


def _listed(values: Any) -> str:  # noqa: ANN401 (numbers)
    """Return numbers as in ``1, 2 and 4``; ``none`` if there are none."""
    words = [f"{v:g}" for v in values]
    if len(words) < 2:
        return "".join(words) or "none"
    return f"{', '.join(words[:-1])} and {words[-1]}"
