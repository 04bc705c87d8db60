# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Claims N1 to N6 on TCP Nice: how much it slows demand down, and what it gets.

Verdicts are on the report's literal rules; what this project deploys is given beside them. Where
the report has words and no number, the docstring says what was taken for it.
"""

from __future__ import annotations

from typing import Any

from ...claims.claim import Found, Measured, claim, found, listed, percent, times
from ...scenario import NONE
from .experiments import BOTH, FLOOR, FLOWS, OURS, PAPER, SETTINGS, SPARE
from .figures import FIGURES
from .ratios import ALIKE, over_priority, setting, settings_named, worst
from .tables import RULES_TABLE, of_settings

LINUX = "TCP of today's Linux"
LONG = "requests up to 10 MB, a quarter of the rate"
FEW_PACKETS = "receivers with 8 packets, a quarter of the rate"


@claim(
    "N1",
    needs=("flows", "settings", "rules"),
    text="Beside 16 backlogged Nice flows, demand that uses half of the link has packets that take "
    "less than 5 % longer, and Nice gets over 70 % of the spare",
    paper="< 1.05, > 70 %",
    ours="{harm} times as long, {share:%}; our nice {our_harm} and {our_share:%}",
    cause="Packets take {longer:.0f} ms longer. For {queued:.0f} ms of that they wait in the "
    "queue, which the flows fill up to the threshold and beyond. For the rest they wait for "
    "what is sent again, {lost:.1f} % of them instead of {lost_before:.1f} %. The bursts of the "
    "web log are not the cause: with files of one size at constant gaps it is {in_setting[one "
    "size at constant gaps]} of the spare, with Poisson arrivals {in_setting[Poisson arrivals, "
    "bounded Pareto sizes]}. Nor is the initial window: with today's TCP it is "
    "{in_setting[" + LINUX + "]}. One cause is the queue that Nice tolerates: with a threshold "
    "of 0.05 it is {by_rule[threshold 0.05]}, with 0.02 {by_rule[threshold 0.02]}. Another is "
    "how long packets take anyhow: it is {in_setting[" + LONG + "]} where they wait for each "
    "other. Both numbers at once: {met}.",
    tables=(of_settings(16), RULES_TABLE),
)
def little_harm_and_most_of_the_spare(measured: Measured) -> Found:
    """Abstract: less than 5 % for the packets, over 70 % of the spare."""
    flows, settings, rules = measured["flows"], measured["settings"], measured["rules"]
    harm, share = flows.harm(PAPER, flows=16), flows.share(PAPER, flows=16)
    none, nice = (
        {key: flows.mean(key, b, flows=16)["mean"] for key in ("packet_rtt_ms", "queue_ms", "lost")}
        for b in (NONE, PAPER)
    )
    at = {name: setting(name, 16) for name in SETTINGS}
    pairs = {n: (settings.harm(PAPER, **at[n]), settings.share(PAPER, **at[n])) for n in at}
    rule: dict[str, Any] = {"flows": 16}
    return found(
        harm["mean"] < 1.05 and share["mean"] > 0.7,
        harm,
        harm=harm,
        share=share,
        our_harm=flows.harm(OURS, flows=16),
        our_share=flows.share(OURS, flows=16),
        longer=nice["packet_rtt_ms"] - none["packet_rtt_ms"],
        queued=nice["queue_ms"] - none["queue_ms"],
        lost=100 * nice["lost"],
        lost_before=100 * none["lost"],
        in_setting={n: f"{times(h)} and {percent(s)}" for n, (h, s) in pairs.items()},
        by_rule={
            name: f"{times(rules.harm(PAPER, rule=name, **rule))} and "
            f"{percent(rules.share(PAPER, rule=name, **rule))}"
            for name in ("threshold 0.05", "threshold 0.02")
        },
        met=settings_named(
            n for n, (h, s) in pairs.items() if h["mean"] < 1.05 and s["mean"] > 0.7
        ),
    )


@claim(
    "N2",
    needs=("flows", "settings"),
    text="16 Reno or Vegas flows in place of Nice's make demand packets take more than 10 times as "
    "long",
    paper="> 10",
    ours="{harm[reno]:1} times as long with Reno, {harm[vegas]:1} with Vegas; completion times "
    "{fct[reno]:1} and {fct[vegas]:1} times",
    cause="A full queue of 50 packets is 150 ms at this rate. Packets wait longer only for "
    "timeouts. The rate counts, and the report does not give it: at four times the rate it is "
    "{fast[reno]:1} with Reno and {fast[vegas]:1} with Vegas; at a quarter of it, where the "
    "queue is 0.6 s, and with receivers of 8 packets it is {slow[reno]:1} and {slow[vegas]:1}. "
    "Beyond 10: {met}. Users notice more than packets do, since a request takes several round "
    "trips.",
)
def reno_and_vegas_harm(measured: Measured) -> Found:
    """Abstract: Reno or Vegas slow demand down by more than an order of magnitude."""
    flows, settings = measured["flows"], measured["settings"]
    both = ("reno", "vegas")
    harm = {b: flows.harm(b, flows=16) for b in both}
    others = {
        name: {b: settings.harm(b, **setting(name, 16)) for b in both} for name in SETTINGS
    }  # fmt: skip
    return found(
        all(v["mean"] > 10 for v in harm.values()),
        harm["reno"],
        harm=harm,
        fct={b: flows.harm(b, "fct_s", flows=16) for b in both},
        fast=others["four times the rate"],
        slow=others[FEW_PACKETS],
        met=settings_named(
            name for name, of in others.items() if all(v["mean"] > 10 for v in of.values())
        ),
    )


@claim(
    "N3",
    needs=("spare", "settings"),
    text="8 flows, a spare capacity S of 0.1 to 4 times the demand (figure 2): Nice is hardly "
    "distinguishable from router priority (within 10 %)",
    paper="≈ 1",
    ours="at worst {most} times router priority's latency, at S = {at:g}; our nice {our_most}, "
    "at S = {our_at:g}",
    cause="As in N1. Within 10 % at S = {inside}. The queue below the threshold weighs less "
    "where packets take longer anyhow: without any background {first_s:.1f} s at S = {first:g}, "
    "{worst_s:.2f} s at S = {at:g}.",
    drawings=(FIGURES[2],),
)
def as_router_priority_at_any_spare(measured: Measured) -> Found:
    """Figure 2, "hardly distinguishable" taken as within 10 % of router priority."""
    spare = measured["spare"]
    at, most = worst(spare, PAPER, "spare", SPARE)
    our_at, our_most = worst(spare, OURS, "spare", SPARE)
    inside = [s for s in SPARE if over_priority(spare, PAPER, spare=s)["mean"] <= ALIKE]
    first_s, worst_s = (
        spare.mean("packet_rtt_ms", NONE, spare=s)["mean"] / 1e3 for s in (SPARE[0], at)
    )
    return found(
        most["mean"] <= ALIKE, most, most=most, at=at, our_most=our_most, our_at=our_at,
        inside=listed(inside), first=SPARE[0], first_s=first_s, worst_s=worst_s,
    )  # fmt: skip


@claim(
    "N4",
    needs=("flows", "rules"),
    text="With 100 flows, too, Nice is hardly distinguishable from router priority (figure 3; "
    "within 10 %)",
    paper="≈ 1",
    ours="{harm[nice]} times router priority's latency; our nice {harm[netnice]}, Reno "
    "{harm[reno]:1}",
    cause="Within 10 % with {inside[nice]} flows (our nice with {inside[netnice]}). A window "
    "W below two packets hears of the queue only once in 2/W round trips, and is halved no more "
    "often. So many small windows hold the queue longer than a few large ones: packets wait "
    "{wait_most:.0f} ms in it with {most} flows, {wait:.0f} ms with 16. With {most} flows it is "
    "{rule[the paper's]}. With a harder decrease below two packets it is {rule[harder decrease "
    "below two packets]}; if windows also grow only after quiet rounds, and with an early "
    "verdict, {rule[the last three]}; if packets also leave one by one, {rule[packets one by "
    "one besides]}.",
    drawings=(FIGURES[3],),
)
def as_router_priority_with_many_flows(measured: Measured) -> Found:
    """Figure 3, "hardly distinguishable" taken as within 10 % of router priority."""
    flows, rules = measured["flows"], measured["rules"]
    most = FLOWS[-1]
    harm = {b: over_priority(flows, b, flows=most) for b in (*BOTH, "reno")}
    inside = {
        b: listed([n for n in FLOWS if over_priority(flows, b, flows=n)["mean"] <= ALIKE])
        for b in BOTH
    }
    wait, wait_most = (flows.mean("queue_ms", PAPER, flows=n)["mean"] for n in (16, most))
    rule = {
        name: f"{times(rules.harm(PAPER, rule=name, flows=most))} times the latency without "
        "background"
        for name in rules.places("rule")
    }
    return found(
        harm[PAPER]["mean"] <= ALIKE, harm[PAPER], harm=harm, inside=inside, most=most, wait=wait,
        wait_most=wait_most, rule=rule,
    )  # fmt: skip


@claim(
    "N5",
    needs=("flows", "settings"),
    text="One Nice flow gets about half of the spare (40 to 60 %), more flows 60 to 80 %, always "
    "less than under router priority (figure 4)",
    paper="≈ 50 %, 60 to 80 %, < 100 %",
    ours="{share:%} with one flow, {least:.0f} to {most:.0f} % with 2 to {flows}, less than router "
    "priority with {below}; our nice {ours:%} with one, {ours_100:%} with 100",
    cause="Between 60 and 80 % with {inside} flows. One flow is halved whenever a request's "
    "slow start fills the queue above the threshold. Then it grows by one packet in a round "
    "trip. Smooth arrivals do not help, since every request has its slow start: with files of "
    "one size at constant gaps one flow gets {single[one size at constant gaps]:%}. Fewer or "
    "smaller slow starts do: it gets {single[requests up to 10 MB]:%} with requests up to 10 "
    "MB, {single[receivers with 2 packets]:%} with receivers of 2 packets. About half: {met}.",
    drawings=(FIGURES[4],),
    tables=(of_settings(1),),
)
def half_of_the_spare_for_one_flow(measured: Measured) -> Found:
    """Figure 4; "about half" taken as 40 to 60 %."""
    flows, settings = measured["flows"], measured["settings"]
    share = {n: flows.share(PAPER, flows=n) for n in FLOWS}
    more = [v["mean"] for n, v in share.items() if n > 1]
    single = {name: settings.share(PAPER, **setting(name, 1)) for name in SETTINGS}
    half = [f"{name} {percent(v)}" for name, v in single.items() if 0.4 <= v["mean"] <= 0.6]
    return found(
        0.4 <= share[1]["mean"] <= 0.6 and min(more) >= 0.6 and max(more) <= 0.8,
        share[1],
        share=share[1],
        least=100 * min(more),
        most=100 * max(more),
        flows=FLOWS[-1],
        below=listed([n for n in FLOWS if share[n]["mean"] < 1]),
        ours=flows.share(OURS, flows=1),
        ours_100=flows.share(OURS, flows=100),
        inside=listed([n for n in FLOWS if n > 1 and 0.6 <= share[n]["mean"] <= 0.8]),
        single=single,
        met=settings_named(half),
    )


@claim(
    "N6",
    needs=("flows", "settings"),
    text="Without windows below one packet latency grows from about 10 flows on (by 10 %), and is "
    "about twice as long with 64 (1.5 to 3 times)",
    paper="2",
    ours="{harm:1} times as long as without background with 64 flows, {over:1} times as long as "
    "with Nice; with 10 flows {over_10} times as long as with Nice",
    cause="The direction is the paper's, the size is not. 64 flows have 64 packets in flight, "
    "and the link holds 33 at this rate. The others stand in the queue all the time, and demand "
    "loses packets. About twice, where the link holds more or demand takes longer anyhow: {met}.",
    tables=(of_settings(64),),
)
def windows_of_one_packet_are_too_much(measured: Measured) -> Found:
    """Section 4.2, experiment 2; "noticeably" taken as 10 %, "about two" as 1.5 to 3."""
    flows, settings = measured["flows"], measured["settings"]
    harm = flows.harm(FLOOR, flows=64)
    over_10, over = (flows.ratio("packet_rtt_ms", FLOOR, PAPER, flows=n) for n in (10, 64))
    others = {name: settings.harm(FLOOR, **setting(name, 64)) for name in SETTINGS}
    return found(
        over_10["mean"] >= 1.1 and 1.5 <= harm["mean"] <= 3,
        harm,
        harm=harm,
        over=over,
        over_10=over_10,
        met=settings_named(
            f"{name} {times(v, 1)}" for name, v in others.items() if 1.5 <= v["mean"] <= 3
        ),
    )
