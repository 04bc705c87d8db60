# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Why a copy beside others' transfers takes longer than under strict priority.

The paths with others' transfers, as they are and with one thing changed, are used by our nice
and by settings of it: for 10 MB on the kernel (`settings`), without end in the simulator
(`recovery`), where the others come in several rhythms since nothing is random.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from ...engines.sim import Simulator, Trace
from ...experiment import Context, Point, Procedure, Simulated, as_points, running, simulating
from ...scenario import Scenario, Section, read
from . import copies
from .copies import LITERAL, NICE, PRIORITY, SIZE, UNTHROTTLED, Batch, kept, scenario

Json = dict[str, Any]

BUSY = ("london", "delaware")
"""The paths that others use too."""

AS_IT_IS, ALONE, NEAR, PROMPT, NEAR_PROMPT = (
    "as it is", "no others", "30 ms", "ACKs at once", "30 ms, ACKs at once",
)  # fmt: skip
NEAR_MS = 30.0


def near(found: Scenario) -> Scenario:
    """Return the scenario with a short round trip."""
    return found.but(bottleneck=found.bottleneck.but(rtt_ms=NEAR_MS))


CHANGES: dict[str, Callable[[Scenario], Scenario]] = {
    AS_IT_IS: lambda s: s,
    ALONE: lambda s: s.but(cross=[]),
    NEAR: near,
    PROMPT: lambda s: s.but(delayed_acks=False),
    NEAR_PROMPT: lambda s: near(s).but(delayed_acks=False),
}

DEFAULT, AWAKE, VEGAS, OTHER = "default", "together=2", "decrease=1", "imtcp_bg"
"""AWAKE never has a window below two packets; VEGAS gives up a packet instead of half a window."""
SETTINGS: dict[str, tuple[str, Json, int]] = {
    DEFAULT: ("nice", {}, 1),
    "threshold=0.1": ("nice", {"threshold": 0.1}, 1),
    "threshold=0.3": ("nice", {"threshold": 0.3}, 1),
    "threshold=0.4": ("nice", {"threshold": 0.4}, 1),
    "together=0": ("nice", {"together": 0}, 1),
    "together=0.25": ("nice", {"together": 0.25}, 1),
    AWAKE: ("nice", {"together": 2}, 1),
    VEGAS: ("nice", {"decrease": 1}, 1),
    OTHER: (OTHER, {}, 1),
    "2 flows": ("nice", {}, 2),
    "4 flows": ("nice", {}, 4),
}
"""Algorithm, parameters and flows of each."""
CHANGED_TOO = (DEFAULT, AWAKE)
"""What is copied on the kernel where one thing is changed; as it is, all that has one flow."""

RHYTHMS_S = (2.7, 2.9, 3.1, 3.3, 3.5)
"""Times between others' transfers; they remain a quarter of the link."""
MEASURE_S = 300.0
FASTER_MBIT = (0.1, 0.2, 0.4, 0.6, 0.8, 1.5)
"""Rates of the modem's line beside its own."""
TRACED = (DEFAULT, AWAKE)
SAMPLE_S = 0.01
"""Time between the samples of a trace."""


def copied(name: str) -> Json:
    """Return the copy by rsync under a setting."""
    algorithm, parameters, _ = SETTINGS[name]
    words = [w for key, value in parameters.items() for w in ("--set", f"{key}={value}")]
    return {"wrap": ["netnice", "run", "--algorithm", algorithm, *words, "--"]}


def batches() -> list[Batch]:
    """Return what is copied on the kernel."""
    return [
        Batch(
            path, change(scenario(path)), SIZE,
            {
                **{
                    name: copied(name) for name, (_, _, flows) in SETTINGS.items()
                    if flows == 1 and (what == AS_IT_IS or name in CHANGED_TOO)
                },
                PRIORITY: UNTHROTTLED,
            },
            kept, what,
        )
        for path, (what, change) in product(BUSY, CHANGES.items()) if what != NEAR_PROMPT
    ]  # fmt: skip


def simulated(path: str, change: str, rhythm_s: float) -> Scenario:
    """Return the path with others in this rhythm and, one after the other, all settings."""
    found = read(Path(f"nice/{path}"))
    cross = [
        c.but(
            stagger_s=rhythm_s, bytes=int(c.bytes * rhythm_s / c.stagger_s),
            flows=int((found.warmup_s + MEASURE_S) / rhythm_s) + 1,
        )
        for c in found.cross
    ]  # fmt: skip
    background = [
        Section(name=name, control=f"nn_{algorithm}", flows=flows, set=dict(parameters))
        for name, (algorithm, parameters, flows) in SETTINGS.items()
    ]
    return CHANGES[change](
        found.but(
            name=f"recovery-{path}", measure_s=MEASURE_S, drain_s=0.0, cross=cross,
            background=background, foreground=None, ideal=Section(control="reno", flows=1),
        )
    )  # fmt: skip


def line() -> Simulated:
    """Return an idle modem that sends one packet after the other, at several rates."""
    modem = read(Path("nice/modem"))
    found = modem.bottleneck
    variants = [
        Section(name=DEFAULT, control="nn_nice", from_="a", to="b"),
        Section(name=NICE, control="nn_nice", set=dict(LITERAL), from_="a", to="b"),
        Section(name=VEGAS, control="nn_nice", set={"decrease": 1}, from_="a", to="b"),
    ]
    return Simulated(
        "line",
        [
            Point(
                {"mbit": rate},
                modem.but(
                    name=f"line-{rate:g}", measure_s=1200.0, drain_s=0.0, bottleneck=None,
                    link=[
                        Section(
                            name="line", from_="a", to="b", rate_mbit=rate,
                            delay_ms=found.rtt_ms / 2, limit_packets=found.limit_packets,
                        ),
                        Section(name="back", from_="b", to="a", delay_ms=found.rtt_ms / 2),
                    ],
                    foreground=Section(load=0.0, probe_interval_ms=1000.0, from_="a", to="b"),
                    background=variants, ideal=Section(control="reno", flows=1),
                ),
            )
            for rate in (found.rate_mbit, *FASTER_MBIT)
        ],
        lambda run, _measure_s: {
            "mbit": run["background_goodput_mbit"], "probe_ms": run["probe"]["rtt_mean_ms"],
        },
        seeds=1, random=False,
    )  # fmt: skip


def kept_simulated(run: Json) -> Json:
    """Return what is kept of one simulated run: goodput, and the mean RTT of others' packets."""
    others = run["cross"][0]["packet_rtt_mean_ms"] if run["cross"] else None
    return {"mbit": run["background_goodput_mbit"], "others_ms": others}


def left_idle(trace: Trace, found: Scenario) -> Json:
    """Return the shares of the capacity that nobody used, by what the flow and the others did.

    `idle_others` was left while others' transfers went on, `idle_asleep` when none did and the
    window was below two packets, `idle_awake` when it was not; `window` is its mean then.
    """
    at, left = trace.series("left_bytes", "bottleneck")
    window = np.interp(at, *trace.series("window_packets", "background 0"))
    busy = np.zeros(len(at), dtype=bool)
    for name in trace.names("window_packets"):
        if name.startswith("cross"):
            alive, _ = trace.series("window_packets", name)
            busy |= (at > alive[0] - SAMPLE_S / 2) & (at < alive[-1] + SAMPLE_S / 2)
    counted = at[1:] > found.warmup_s
    busy, window = busy[1:][counted], window[1:][counted]
    could = found.bottleneck.rate_mbit * 1e6 / 8 * np.diff(at)[counted]
    idle = could - np.diff(left)[counted]
    asleep = window < 2
    return {
        "idle_others": float(idle[busy].sum() / could.sum()),
        "idle_asleep": float(idle[~busy & asleep].sum() / could.sum()),
        "idle_awake": float(idle[~busy & ~asleep].sum() / could.sum()),
        "window": float(window[~busy].mean()),
    }


def measure(context: Context) -> list[Json]:
    """Simulate every path, changed or not, in every rhythm; return the points.

    Nothing is random: the rhythms take the seeds' place.
    """
    tasks = [
        task for task in product(BUSY, CHANGES, RHYTHMS_S)
        if context.wants(path=task[0], change=task[1])
    ]  # fmt: skip

    def one(simulator: Simulator, task: tuple[str, str, float]) -> list[tuple[Json, Json]]:
        found = simulated(*task)
        rows = {r["background"]: kept_simulated(r) for r in simulator.runs(found, 1)}
        for name in TRACED:
            trace = simulator.traced(found, 1, name, ("window_packets", "left_bytes"))
            rows[name] |= left_idle(trace, found)
        at = {"path": task[0], "change": task[1]}
        return [(at, {"background": name, **row}) for name, row in rows.items()]

    return as_points(entry for entries in context.simulate(tasks, one) for entry in entries)


EXPERIMENTS = [
    Procedure(
        "settings",
        partial(copies.measure, batches),
        seeds=1,
        random=False,
        kernel=True,
        depends=running("nice", OTHER),
    ),
    Procedure(
        "recovery",
        measure,
        seeds=len(RHYTHMS_S),
        random=False,
        depends=simulating("cubic", "nice", OTHER),
    ),
]
