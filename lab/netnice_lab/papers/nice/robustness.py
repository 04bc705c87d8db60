# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Claims N7 to N12 on TCP Nice: its parameters, what is in its place, bursts, paths, parts."""

from __future__ import annotations

from ... import stats
from ...claims.claim import Found, Json, Measured, claim, found, listed, percent, times
from . import path_changes, paths
from .experiments import (
    ABLATIONS,
    BOTH,
    FRACTIONS,
    OURS,
    PAPER,
    SETTINGS,
    SPARE,
    THRESHOLDS,
    WITHOUT,
)
from .figures import FIGURES
from .ratios import ALIKE, over_priority, setting, settings_named, worst
from .tables import ABLATION_TABLE, CHANGES_TABLE, PATHS_TABLE

FLAT, NEAR = 1.25, 1.5
"""Ratios within which a curve is called flat, and near to another curve."""
ORDERS = 50.0
"""Ratio from which on one speaks of two orders of magnitude."""


@claim(
    "N7",
    needs=("threshold", "flows"),
    text="Latency is flat over a wide range of threshold (within 25 % of that at 0.1 from 0.05 to "
    "0.3), and becomes that of Vegas as it nears 1 (within 1.5 times; figure 5)",
    paper="flat, then Vegas",
    ours="{harm[1]:1} times as long at 1, Vegas {vegas:1}; flat from {flat[0]:g} to {flat[1]:g}; "
    "our nice {our_harm[1]:1} at 1, flat from {our_flat[0]:g} to {our_flat[1]:g}",
    cause="16 flows keep the queue at what is tolerated, which grows with the threshold: packets "
    "wait {waits[0]:.0f} ms in it at 0.1 and {waits[1]:.0f} ms at 0.4. Where a window grows after "
    "quiet rounds only, as in our nice, the threshold matters less: {our_harm[0.1]} at 0.1, "
    "{our_harm[0.4]} at 0.4, against {harm[0.1]} and {harm[0.4]}. At 1 Nice is Vegas but for the "
    "least window, which Vegas has at two packets.",
    drawings=(FIGURES[5],),
)
def threshold_hardly_matters(measured: Measured) -> Found:
    """Figure 5; "large range" taken as 0.05 to 0.3, all within 25 % of the value at 0.1."""
    threshold = measured["threshold"]
    harm, ours = ({t: threshold.harm(b, threshold=t) for t in THRESHOLDS} for b in BOTH)
    vegas = measured["flows"].harm("vegas", flows=16)

    def flat(values: dict[float, Json]) -> list[float]:
        middle = values[0.1]["mean"]
        return [t for t, v in values.items() if 1 / FLAT <= v["mean"] / middle <= FLAT]

    def by_name(values: dict[float, Json]) -> dict[int | str, Json]:
        return {1: values[1.0]} | {f"{t:g}": v for t, v in values.items()}

    wide = all(t in flat(harm) for t in THRESHOLDS if 0.05 <= t <= 0.3)
    return found(
        wide and 1 / NEAR <= harm[1.0]["mean"] / vegas["mean"] <= NEAR,
        harm[1.0],
        harm=by_name(harm),
        our_harm=by_name(ours),
        vegas=vegas,
        flat=(min(flat(harm)), max(flat(harm))),
        our_flat=(min(flat(ours)), max(flat(ours))),
        waits=[threshold.mean("queue_ms", PAPER, threshold=t)["mean"] for t in (0.1, 0.4)],
    )


@claim(
    "N8",
    needs=("fraction",),
    text="Latency does not change when fraction goes from 0.1 to 0.9 (within 10 %)",
    paper="1",
    ours="{change} times at 0.9 what it is at 0.1; from {ends[0]:.2f} to {ends[1]:.2f} times that "
    "without background; our nice from {our_ends[0]:.2f} to {our_ends[1]:.2f}",
    cause="With 16 flows most windows are of two packets or less, and so are their rounds. One "
    "delayed packet of two is congestion with a fraction below 0.5, and is not from 0.5 on. It "
    "is {harm[0.1]} at 0.1, {harm[0.4]} at 0.4, {harm[0.5]} at 0.5 and {harm[0.9]} at 0.9. With "
    "two flows, whose windows are larger, it goes from {ends_of_two[0]:.2f} to "
    "{ends_of_two[1]:.2f}.",
)
def fraction_hardly_matters(measured: Measured) -> Found:
    """Section 4.2, experiment 3; "no change" taken as 10 %."""
    fraction = measured["fraction"]
    harm = {f"{f:g}": fraction.harm(PAPER, fraction=f, flows=16) for f in FRACTIONS}

    def ends(background: str, flows: int) -> tuple[float, float]:
        means = [fraction.harm(background, fraction=f, flows=flows)["mean"] for f in FRACTIONS]
        return min(means), max(means)

    least, most = ends(PAPER, 16)
    latency = (fraction.values("packet_rtt_ms", PAPER, fraction=f, flows=16) for f in (0.9, 0.1))
    change = stats.interval([high / low for high, low in zip(*latency, strict=True)])
    return found(
        most / least <= ALIKE, change, change=change, harm=harm, ends=(least, most),
        our_ends=ends(OURS, 16), ends_of_two=ends(PAPER, 2),
    )  # fmt: skip


@claim(
    "N9",
    needs=("spare", "flows", "settings"),
    text="Rate limits do not replace it (figures 11 to 13): a window of one packet interferes more "
    "than Nice at every S, by two orders of magnitude with 64 flows (50 times), and one Nice flow "
    "carries about 10 times as much (7 to 15)",
    paper="more, 100, 10",
    ours="{many:1} times the latency without background with 64 flows of one packet; 8 of them "
    "interfere more than Nice at S = {gentler}; one Nice flow carries {carried:1} times as much, "
    "{wider} times as much as a window of 8",
    cause="8 windows of one packet are at most 8 packets in a round trip, however much is "
    "spare. At a larger S than those above they leave most of it alone, and Nice takes it. 64 "
    "packets are a full queue and no more ({fct:1} times the completion time). The most is "
    "{most:1}: {most_in}. For what one Nice flow carries see N5. About 10 times as much: {met}.",
    drawings=(FIGURES[11], FIGURES[12], FIGURES[13]),
)
def rate_limits_are_no_replacement(measured: Measured) -> Found:
    """Figures 11 to 13; "two orders of magnitude" taken as 50, "about 10 times" as 7 to 15."""
    spare, flows, settings = measured["spare"], measured["flows"], measured["settings"]
    gentler = [
        s for s in SPARE
        if spare.harm(PAPER, spare=s)["mean"] < spare.harm("window 1", spare=s)["mean"]
    ]  # fmt: skip
    many = flows.harm("window 1", flows=64)
    carried = flows.ratio("mbit", PAPER, "window 1", flows=1)
    others = {name: settings.harm("window 1", **setting(name, 64)) for name in SETTINGS}
    most = max(others, key=lambda name: float(others[name]["mean"]))
    loads = {
        name: settings.ratio("mbit", PAPER, "window 1", **setting(name, 1)) for name in SETTINGS
    }  # fmt: skip
    return found(
        len(gentler) == len(SPARE) and many["mean"] >= ORDERS and 7 <= carried["mean"] <= 15,
        many,
        many=many,
        gentler=listed(gentler),
        carried=carried,
        wider=flows.ratio("mbit", PAPER, "window 8", flows=1),
        fct=flows.harm("window 1", "fct_s", flows=64),
        most=others[most],
        most_in=most,
        met=settings_named(
            f"{name} {times(v, 1)}" for name, v in loads.items() if 7 <= v["mean"] <= 15
        ),
    )


@claim(
    "N10",
    needs=("udp-spare", "udp-flows"),
    text="With bursts of UDP in the foreground Nice interferes less than Reno and Vegas and more "
    "than router priority at every S; one flow gets about 70 % of the spare at S = 2 (60 to 80 %; "
    "figures 14 to 16)",
    paper="less, more, 70 %",
    ours="{share:%} with one flow (our nice {ours:%}); less than Reno and Vegas at S = "
    "{better}, more than router priority at S = {behind}, at worst {most} times",
    cause="The report does not give the number of sources and their rate. Twelve that send a "
    "sixth of the demand each are less of a burst than fewer would be. One flow alone on the "
    "link at S = 2 gets {share:%}; {eight:%} with 8.",
    drawings=(FIGURES[14], FIGURES[15], FIGURES[16]),
)
def bursts_of_udp(measured: Measured) -> Found:
    """Figures 14 to 16; "about 70 %" taken as 60 to 80."""
    spare, flows = measured["udp-spare"], measured["udp-flows"]
    better = [
        s for s in SPARE
        if all(
            spare.harm(PAPER, spare=s)["mean"] < spare.harm(b, spare=s)["mean"]
            for b in ("reno", "vegas")
        )
    ]  # fmt: skip
    behind = [s for s in SPARE if over_priority(spare, PAPER, spare=s)["mean"] > 1]
    share = flows.share(PAPER, flows=1)
    return found(
        len(better) == len(behind) == len(SPARE) and 0.6 <= share["mean"] <= 0.8,
        share,
        share=share,
        ours=flows.share(OURS, flows=1),
        eight=flows.share(PAPER, flows=8),
        better=listed(better),
        behind=listed(behind),
        most=worst(spare, PAPER, "spare", SPARE)[1],
    )


@claim(
    "N11",
    needs=(paths.NAME, path_changes.NAME),
    text="On four paths a Reno flow keeps 97 % of its throughput and more beside one and eight "
    "Nice flows (figures 6 and 7; on the Linux kernel)",
    paper="≥ 97 %",
    ours="{kept:%} at worst, {where[0]} beside {where[2]}; our nice at worst {our_kept:%}, "
    "{our_where[0]} beside {our_where[2]}; beside eight Reno flows {reno[0]:.0f} to "
    "{reno[1]:.0f} %",
    cause="Less than 97 %: {below}. In the simulator one thing was changed at a time. The "
    "buffer counts, as theorem 1 says: beside eight flows a transfer over delaware keeps "
    "{delaware[half the buffer]:%} with half of it, {delaware[as on the kernel]:%} as it is and "
    "{delaware[twice the buffer]:%} with twice; over london {london[half the buffer]:%}, "
    "{london[as on the kernel]:%} and {london[twice the buffer]:%}. So does time: Nice needs "
    "round trips to yield, and a short transfer has few. Over cable a transfer ten times as "
    "long keeps {cable[transfers ten times as long]:%} ({cable[as on the kernel]:%} as it is). "
    "On the modem 10 s are 47 packets, and 3 % of that is less than two. Beside one Nice flow a "
    "transfer keeps {modem[as on the kernel]:%}, {modem[packets of 576 bytes]:%} with packets "
    "of 576 bytes, as modems had them, and {modem[transfers ten times as long]:%} if it is ten "
    "times as long.",
    drawings=(FIGURES[6], FIGURES[7]),
    tables=(PATHS_TABLE, CHANGES_TABLE),
)
def paths_of_the_internet(measured: Measured) -> Found:
    """Figures 6 and 7: the primary flow's throughput over that alone."""
    kept = {
        (path, name, flows): paths.kept(measured[paths.NAME], path, paths.action(name, flows))
        for path in paths.PATHS
        for name in (*BOTH, "reno")
        for flows in paths.SECONDARY
    }
    nice, ours = ({k: v for k, v in kept.items() if k[1] == name} for name in BOTH)
    where, our_where = (min(of, key=lambda k: float(of[k]["mean"])) for of in (nice, ours))
    reno = [100 * kept[path, "reno", 8]["mean"] for path in paths.PATHS]
    below = [
        f"{path} beside {flows} {percent(value)} (our nice {percent(kept[path, OURS, flows])})"
        for (path, _, flows), value in nice.items()
        if value["mean"] < 0.97
    ]

    def changed(path: str, flows: int) -> dict[str, Json]:
        action, simulated = paths.action(PAPER, flows), measured[path_changes.NAME]
        return {
            change: path_changes.kept(simulated, path, change, action)
            for change in path_changes.changes(path)
        }

    return found(
        not below,
        nice[where],
        kept=nice[where],
        where=where,
        our_kept=ours[our_where],
        our_where=our_where,
        reno=(min(reno), max(reno)),
        below="; ".join(below),
        modem=changed("modem", 1),
        **{path: changed(path, 8) for path in ("delaware", "london", "cable")},
    )


@claim(
    "N12",
    needs=("flows",),
    text="Ablation: each of the three additions to Vegas, taken out alone, increases interference "
    "(section 2.2; 64 flows)",
    paper="> 1",
    ours="{each}; our nice {ours}",
    cause="Without {least} it is {more} times.",
    tables=(ABLATION_TABLE,),
)
def each_addition_to_vegas_helps(measured: Measured) -> Found:
    """Section 2.2: the omission of any of the three additions would increase the interference."""
    more, ours = (
        {
            part: measured["flows"].ratio("packet_rtt_ms", WITHOUT[kind, part], kind, flows=64)
            for part in ABLATIONS
        }
        for kind in BOTH
    )
    least = min(more, key=lambda part: float(more[part]["mean"]))
    return found(
        all(v["lo"] is None or v["lo"] > 1 for v in more.values()) and more[least]["mean"] > 1,
        more[ABLATIONS[0]],
        each="; ".join(f"without {part} {times(v, 1)} times Nice's" for part, v in more.items()),
        ours=", ".join(times(v, 1) for v in ours.values()),
        least=least,
        more=more[least],
    )
