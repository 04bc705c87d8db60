# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""What is simulated of the paper on MPAT: section 4."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...experiment import Point, Simulated
from ...scenario import Scenario, Section, read

Json = dict[str, Any]

SEEDS, MORE_SEEDS = 10, {"windows": 30, "paced": 30, "smooth": 20}
"""Of each experiment; totals that hardly differ need more."""

SHARES = Path("mpat/shares")

TCP, MPAT, MULTCP, CM = "tcp", "mpat", "multcp", "cm"
ALONE, GROUP = "alone", "group"
"""Flows of an algorithm on their own, and a group with windows of it."""
BOTH, ONE = "both ways", "one way"
FREE = "both ways, ACKs free"
"""Where ACKs have a queue of their own: they do not wait for packets, nor come bunched."""
NO_HYSTART, NO_FAST = "cubic, no HyStart", "cubic, no fast convergence"
WINDOWS = {"cubic": "cubic", "tfrc": "reno", "reno": "reno", NO_HYSTART: "cubic", NO_FAST: "cubic"}
"""Algorithms whose windows groups have, and what they are beside."""
WINDOWS_SET: dict[str, dict[str, str | float | int]] = {
    NO_HYSTART: {"hystart": 0.0},
    NO_FAST: {"fast_convergence": 0.0},
}
WINDOWS_AT = (
    *(("cubic", way) for way in (BOTH, ONE, FREE)),
    ("reno", BOTH),
    (NO_HYSTART, BOTH),
    (NO_FAST, BOTH),
    ("tfrc", BOTH),
    ("tfrc", ONE),
)
AS_IS, PACED = "as it is", "paced"
PACED_AT = (
    ("tfrc", AS_IS, ALONE),
    ("cubic", AS_IS, ALONE),
    ("cubic", PACED, ALONE),
    ("cubic", PACED, GROUP),
)
"""Algorithms whose flows on their own are paced as members are, what they are beside, and whether
they are in a group; `windows` has groups beside what is not paced."""
RULES = ("same", "other", "any")
"""The rules of 3.3.3, in the paper's order."""
EACH = "each ACK"
"""Runs of no length: each ACK is charged to a window drawn anew."""

UNPACED = "runs, unpaced"
PAPERS = "any, unpaced"
"""The paper's own: packets leave as ACKs come, each through any open window."""
PAPERS_SET: dict[str, str | float | int] = {"pace": 0.0, "mapping": "any"}
ALL_RULES = (MPAT, EACH, *RULES, UNPACED, PAPERS)
KINDS: dict[str, dict[str, str | float | int]] = {
    "groups": {},
    UNPACED: {"pace": 0.0},
    PAPERS: PAPERS_SET,
}
"""What groups that compete are set to."""
DELAYED, AT_ONCE = "delayed", "at once"
SMALL = 25
"""Flows at 1 to N of which the first have windows of a few packets."""
LOSS, LOSSY = 4e-3, (2, 5, 10)
"""Of packets at random, with windows of about 20 packets as elsewhere; flows that meet it."""

SIZES = (2, 5, 10, 25, 50, 100)
SPLITS = ("even", "1 to N", "one half")
RATIOS = (2, 10, 95, 300, 1000)
CHANGE_S, ROUND_TRIP_MS = 40.0, 70
AFTER = (-8, 0, 1, 2, 3, 5)
"""Round trips after a change of shares at which half a second begins, as in the figure."""
BEFORE_TO, AFTER_TO = [1.0, 2.0, 3.0], [3.0, 2.0, 1.0]
GROUPS = (2, 4, 6, 8, 10)
STEP_S, STEP_TO_S, STEP_TRIP_MS = 40.0, 80.0, 50
STEP = ("before", 2, 4, 6, 8, 12, "settled", "regained")
"""Round trips after the step of section 4.7 at which two of them end; or ten seconds."""
MOMENTS = tuple(range(20, 44, 2))
"""Seconds at which half a second begins, about seven round trips as in the paper's figures."""
VARIED = (5, 25)


def keep(run: Json, _measure_s: float) -> Json:
    """Return the goodput of the background, of each of its flows, and of other traffic."""
    return {
        "mbit": run["background_goodput_mbit"],
        "retransmits": run["background_retransmits"],
        **{f"flow {i}": rate for i, rate in enumerate(run["background_flow_mbit"], 1)},
        **{c["name"] + " mbit": c["goodput_mbit"] for c in run["cross"]},
        **{
            c["name"] + " lost": c["lost"] / c["packets"] if c["packets"] else None
            for c in run["cross"]
        },
    }


def one_way(base: Scenario) -> Scenario:
    """Return the scenario without traffic the other way."""
    return base.but(cross=[c for c in base.cross if c.from_ != "b"])


def group(base: Scenario, name: str, shares: Sequence[float]) -> Section:
    """Return a background of the scenario as a group with these shares."""
    found: Section = next(b for b in base.background if b.name == name)
    grouped = list(shares) if found.group else None
    return found.but(flows=len(shares), shares=grouped)


def split(name: str, flows: int) -> list[float]:
    """Return the shares of so many flows, by the name of their division."""
    if name == "even":
        return [1.0] * flows
    if name == "1 to N":
        return [float(i) for i in range(1, flows + 1)]
    return [float(flows - 1)] + [1.0] * (flows - 1)


def free(base: Scenario) -> Scenario:
    """Return the scenario with a queue for each flow of the other way, its ACKs among them."""
    link = base.link[0]
    back = link.but(
        name="ba", from_="b", to="a", duplex=False, queue="fq_codel", limit_packets=10_000
    )
    return base.but(link=[link.but(duplex=False), back])


def unpaced(mpat: Section) -> list[Section]:
    """Return the group with members that send as ACKs come, by both mappings."""
    return [
        mpat.but(name=UNPACED, set={"pace": 0.0}),
        mpat.but(name=PAPERS, set=dict(PAPERS_SET)),
    ]


def rules(base: Scenario) -> Scenario:
    """Return the scenario with all ways to map packets to windows, beside plain TCP."""
    mpat = next(b for b in base.background if b.name == MPAT)
    tcp = next(b for b in base.background if b.name == TCP)
    others = [mpat.but(name=rule, set={"mapping": rule}) for rule in RULES]
    each = mpat.but(name=EACH, set={"run": 0.0})
    return base.but(background=[tcp, mpat, each, *others, *unpaced(mpat)])


def widened(base: Scenario, wide: float) -> Scenario:
    """Return the scenario with a link so many times as wide, with a queue in proportion."""
    link = base.link[0]
    rate, limit = link.rate_mbit * wide, round(link.limit_packets * wide)
    return base.but(link=[link.but(rate_mbit=rate, limit_packets=limit)])


def scaled(base: Scenario, flows: int, name: str) -> Scenario:
    """Return the scenario with groups of so many flows on a link that keeps the fair share."""
    names = (TCP, MPAT, MULTCP, CM) if name == "even" else (TCP, MPAT)
    return widened(base, (flows + 5) / 10).but(
        measure_s=40.0,
        background=[group(base, b, split(name, flows)) for b in names],
    )


def step(base: Scenario, at: int | str) -> Scenario:
    """Return section 4.7: 90 Mbit/s, 50 ms, ten flows beside ten each way, 30 Mbit/s of UDP."""
    trip_s = STEP_TRIP_MS / 1e3 * 1.5  # with half of the queue
    if isinstance(at, int):
        warmup_s, measure_s = STEP_S + (at - 2) * trip_s, 2 * trip_s
    else:
        ends = {"before": STEP_S, "settled": STEP_TO_S, "regained": STEP_TO_S + 20}
        warmup_s, measure_s = ends[at] - 10, 10.0
    link = base.link[0].but(rate_mbit=90.0, delay_ms=STEP_TRIP_MS / 2, limit_packets=375)
    udp = Section(name="udp", kind="cbr", rate_mbit=30.0, start_s=STEP_S, stop_s=STEP_TO_S)
    return base.but(
        warmup_s=warmup_s,
        measure_s=measure_s,
        link=[link],
        cross=[*(c.but(flows=10) for c in base.cross), udp],
        background=[group(base, b, split("1 to N", 10)) for b in (TCP, MPAT)],
    )


def moment(base: Scenario, flows: int, at_s: float) -> Scenario:
    """Return the scenario with groups of so many flows, measured for half a second."""
    return widened(base, (flows + 5) / 10).but(
        warmup_s=at_s,
        measure_s=0.5,
        background=[group(base, b, split("1 to N", flows)) for b in (TCP, MPAT, MULTCP)],
    )


def acks(base: Scenario, setting: str, at: str) -> Scenario:
    """Return a group with small flows, and receivers that acknowledge packets in pairs or not."""
    if setting == "step":
        made = step(base, "settled")
    else:
        made = widened(one_way(base), (SMALL + 5) / 10).but(
            measure_s=40.0,
            background=[group(base, b, split("1 to N", SMALL)) for b in (TCP, MPAT)],
        )
    tcp, mpat = made.background
    return made.but(delayed_acks=at == DELAYED, background=[tcp, mpat, unpaced(mpat)[0]])


def quickack(base: Scenario) -> Scenario:
    """Return the scenario with receivers that acknowledge each packet, and groups paced or not."""
    tcp, mpat = base.background[:2]
    anyone = mpat.but(name="any", set={"mapping": "any"})
    background = [tcp, mpat, anyone, *unpaced(mpat)]
    return base.but(delayed_acks=False, background=background)


def lossy(base: Scenario, flows: int) -> Scenario:
    """Return groups of so many flows on a wide link that loses packets at random."""
    link = base.link[0].but(rate_mbit=2000.0, limit_packets=100_000, loss=LOSS, duplex=False)
    back = link.but(name="ba", from_="b", to="a", loss=0.0)
    return base.but(
        measure_s=40.0,
        link=[link, back],
        cross=[],
        background=[group(base, b, split("even", flows)) for b in (TCP, MPAT, MULTCP)],
    )


def windows(base: Scenario, control: str) -> Scenario:
    """Return the scenario with windows of an algorithm, beside what they are to be as much as."""
    tcp, mpat = (group(base, b, split("1 to N", 5)) for b in (TCP, MPAT))
    name, params = control.split(",", maxsplit=1)[0], WINDOWS_SET.get(control, {})
    beside = WINDOWS[control]
    return base.but(
        cross=[
            c.but(control=beside, set=dict(params) if beside == name else {}) for c in base.cross
        ],
        background=[
            *([tcp, mpat] if name == "tfrc" else []),
            tcp.but(name=ALONE, control=name, set=dict(params)),
            mpat.but(name=GROUP, control=name, set=dict(params)),
        ],
    )


def ones(flows: Section) -> list[Section]:
    """Return flows each in a group of its own, in which it is paced and shares nothing."""
    return [
        flows.but(
            name=f"{flows.name} {i}",
            flows=1,
            start_s=flows.start_s + (i - 1) * flows.stagger_s,
            stagger_s=0.0,
            group=f"{flows.name} {i}",
            shares=[1.0],
        )
        for i in range(1, flows.flows + 1)
    ]


def paced(base: Scenario, control: str, beside: str, kind: str) -> Scenario:
    """Return `windows`' group, or its flows on their own but paced, beside traffic paced or not."""
    made = windows(base, control)
    cross = made.cross if beside == AS_IS else [o for c in made.cross for o in ones(c)]
    if kind == GROUP:
        return made.but(cross=cross, background=[b for b in made.background if b.name == kind])
    alone = Section(name=ALONE, kind="tcp", control=control, flows=5, start_s=0.0, stagger_s=0.1)
    return made.but(cross=[*cross, *ones(alone)], background=[])


def web(base: Scenario) -> Scenario:
    """Return the scenario with fetches, a third of the link, beside all other traffic."""
    fetches = Section(load=0.3, from_="a", to="b")
    tcp, mpat = base.background[:2]
    anyone = mpat.but(name="any", set={"mapping": "any"})
    return base.but(foreground=fetches, background=[tcp, mpat, anyone, *unpaced(mpat)])


def ratio(base: Scenario, ratio: float) -> Scenario:
    """Return the scenario with three flows, the first of which has so many times a share."""
    return base.but(measure_s=300.0, background=[group(base, MPAT, [ratio, 1.0, 1.0])])


def changed(base: Scenario, after: int) -> Scenario:
    """Return the scenario measured for half a second from so many round trips after a change."""
    round_trip_s = ROUND_TRIP_MS / 1e3 * 1.5  # with half of the queue
    mpat = group(base, MPAT, BEFORE_TO).but(change=[Section(at_s=CHANGE_S, shares=AFTER_TO)])
    return base.but(
        warmup_s=CHANGE_S + after * round_trip_s, measure_s=0.5, background=[mpat]
    )  # fmt: skip


def competing(base: Scenario, params: dict[str, str | float | int]) -> Scenario:
    """Return the scenario with five groups at once, all set to these parameters."""
    return widened(base, (sum(GROUPS) + 5) / 10).but(
        measure_s=60.0,
        cross=[
            *base.cross,
            *(
                base.cross[0].but(
                    name=f"group {n}",
                    control="mpat",
                    flows=n,
                    group=f"{n}",
                    shares=split("1 to N", n),
                    set=dict(params),
                )
                for n in GROUPS
            ),
        ],
        background=[],
    )


def plain(base: Scenario) -> Scenario:
    """Return the scenario with every group of other traffic as flows of plain TCP."""
    return base.but(
        cross=[
            c.but(control="reno", group=None, shares=None, set={}) if c.group else c
            for c in base.cross
        ],
    )


def simulated() -> list[Simulated]:
    """Return everything that is simulated."""
    base = read(SHARES)
    ways = {BOTH: base, ONE: one_way(base)}
    more = ways | {FREE: free(base)}
    found = [
        Simulated("shares", [Point({"traffic": w}, s) for w, s in ways.items()], keep),
        Simulated("rules", [Point({"traffic": w}, rules(s)) for w, s in more.items()], keep),
        Simulated(
            "scale",
            [
                Point({"flows": n, "split": s}, scaled(one_way(base), n, s))
                for n in SIZES
                for s in SPLITS
            ],
            keep,
        ),
        Simulated("ratio", [Point({"ratio": r}, ratio(base, r)) for r in RATIOS], keep),
        Simulated("change", [Point({"after": n}, changed(base, n)) for n in AFTER], keep),
        Simulated("step", [Point({"at": n}, step(base, n)) for n in STEP], keep),
        Simulated(
            "variance",
            [
                Point({"flows": n, "at": t}, moment(one_way(base), n, t))
                for n in VARIED
                for t in MOMENTS
            ],
            keep,
        ),
        Simulated(
            "windows",
            [Point({"windows": c, "traffic": w}, windows(more[w], c)) for c, w in WINDOWS_AT],
            keep,
        ),
        Simulated(
            "paced",
            [
                Point({"windows": c, "beside": b, "traffic": w, "kind": k}, paced(s, c, b, k))
                for c, b, k in PACED_AT
                for w, s in ways.items()
            ],
            keep,
        ),
        Simulated(
            "acks",
            [
                Point({"setting": s, "acks": a}, acks(base, s, a))
                for s in ("step", "small")
                for a in (DELAYED, AT_ONCE)
            ],
            keep,
        ),
        Simulated("quickack", [Point({"traffic": w}, quickack(s)) for w, s in more.items()], keep),
        Simulated(
            "losses",
            [Point({"flows": n}, lossy(base, n)) for n in LOSSY],
            keep,
        ),
        Simulated(
            "smooth",
            [
                Point(
                    {"at": t},
                    windows(one_way(base), "tfrc").but(warmup_s=float(t), measure_s=0.5),
                )
                for t in MOMENTS
            ],
            keep,
        ),
        Simulated("web", [Point({"traffic": w}, web(s)) for w, s in ways.items()], keep),
        Simulated(
            "groups",
            [
                *(Point({"kind": k}, competing(one_way(base), p)) for k, p in KINDS.items()),
                Point({"kind": "tcp"}, plain(competing(one_way(base), {}))),
            ],
            keep,
        ),
    ]
    return [replace(e, seeds=MORE_SEEDS.get(e.name, SEEDS)) for e in found]
