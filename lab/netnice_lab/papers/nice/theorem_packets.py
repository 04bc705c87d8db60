# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""The setting of Theorem 1 in packets: Reno flows on a drop-tail queue, with and without Nice.

What the model of `netnice_lab.fluid` has as real numbers, the simulator has as TCP: the same `m`,
`l`, `B` and `mu tau`, end hosts of 2002 (profile ns2), and no other traffic.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ... import stats
from ...experiment import Context
from ...scenario import NONE, Scenario, Section

Json = dict[str, Any]

PIPE = 50
"""mu tau in packets."""
RTT_MS = 100.0
PAYLOAD_BYTES, HEADER_BYTES = 1024, 40
RATE_MBIT = PIPE * (PAYLOAD_BYTES + HEADER_BYTES) * 8e-3 / RTT_MS
GOODPUT_MBIT = RATE_MBIT * PAYLOAD_BYTES / (PAYLOAD_BYTES + HEADER_BYTES)
"""What a busy link carries of payload."""
JITTER_MS = 0.4
"""A fifth of a packet's transmission time, so that packets of different flows do not meet the full
queue in the same order in every round, and seeds differ."""
RENO_STARTS_S, LATE_S, WARMUP_S, MEASURE_S = 20.0, 30.0, 60.0, 150.0


@dataclass(frozen=True)
class Nice:
    """One variant of the background: so many Nice flows that yield above `trigger` packets.

    `late` flows start beside the Reno flows, and not before them on an empty link, where each
    learns the true minRTT: the theorem presumes that Nice knows the queue. The rules are the
    paper's: a window below two packets is halved too, grows after any round without congestion,
    and is judged once in a round. `mild` ones have the core's `shrink` and `quiet` instead
    (`core/alg/nice.h`): cut harder below two packets, and grow after quiet rounds only.
    """

    flows: int
    trigger: float
    """q_t in packets. Nice knows it as a share of maxRTT - minRTT."""
    late: bool = False
    mild: bool = False

    @property
    def name(self) -> str:
        """Name of the variant, unique."""
        marks = [word for word, is_so in (("late", self.late), ("mild", self.mild)) if is_so]
        return " ".join([f"{self.flows} above {self.trigger:g}", *marks])

    def section(self, buffer: int, pipe: int) -> Section:
        """Return the entry of the scenario's `[[background]]`.

        maxRTT starts at 2 minRTT (section 2.2) and only grows: it is what a queue of mu tau packets
        makes, until a longer one has been seen. minRTT holds the packet's own transmission.
        """
        threshold = min(1.0, self.trigger / max(pipe + 1, buffer))
        settings = {
            "threshold": threshold, "fraction": 0.5, "early": 0.0, "together": 0.0, "spread": 0.0,
            "age": 0.0,
        }  # fmt: skip
        if not self.mild:
            settings |= {"quiet": 1.0, "shrink": 0.5}
        return Section(
            name=self.name,
            control="nice",
            flows=self.flows,
            start_s=LATE_S if self.late else 0.0,
            stagger_s=0.8 * RENO_STARTS_S / self.flows,
            set=settings,
        )


@dataclass(frozen=True)
class Point:
    """The Reno flows and their link, and the variants beside them. All sizes in packets."""

    reno: int
    buffer: int
    variants: tuple[Nice, ...]
    pipe: int = PIPE


def scenario(point: Point) -> Scenario:
    """Return the scenario of a point; the RTT is the same for all."""
    return Section(
        name=f"theorem-m{point.reno}-b{point.buffer}",
        title=f"{point.reno} Reno flows, {point.buffer} packets of drop-tail, beside Nice",
        profile="ns2",
        warmup_s=WARMUP_S,
        measure_s=MEASURE_S,
        drain_s=1.0,
        bottleneck=Section(
            rate_mbit=RATE_MBIT * point.pipe / PIPE,
            rtt_ms=RTT_MS,
            queue="drop-tail",
            limit_packets=point.buffer,
            jitter_ms=JITTER_MS * PIPE / point.pipe,
        ),
        cross=[
            Section(
                name="reno", kind="tcp", control="reno", flows=point.reno,
                start_s=RENO_STARTS_S, stagger_s=2.0 / point.reno,
            )
        ],
        background=[v.section(point.buffer, point.pipe) for v in point.variants],
        ideal=Section(control="reno", flows=1),
    )  # fmt: skip


def losses(points: Sequence[Point], context: Context) -> list[Json]:
    """Measure what the Reno flows lose at each point.

    Returns an entry for each variant of each point: `loss`, the share of their goodput without Nice
    that the Reno flows lose, paired by seed, with its 95 % confidence interval; and what Reno had
    alone and Nice got, as shares of what the link carries.
    """
    found = context.simulate(
        [(point, seed) for point in points for seed in context.numbers],
        lambda simulator, task: simulator.runs(scenario(task[0]), task[1]),
    )
    seeds = len(context.numbers)
    return [
        _entry(point, variant, found[index * seeds : (index + 1) * seeds])
        for index, point in enumerate(points)
        for variant in point.variants
    ]


def _entry(point: Point, variant: Nice, measured: Sequence[list[Json]]) -> Json:
    """Summarise one variant over the seeds, each relative to none with the same seed."""
    carried = GOODPUT_MBIT * point.pipe / PIPE
    kept, alone, got = [], [], []
    for runs in measured:
        by_name = {run["background"]: run for run in runs}
        before = by_name[NONE]["cross"][0]["goodput_mbit"]
        kept.append(by_name[variant.name]["cross"][0]["goodput_mbit"] / before)
        alone.append(before / carried)
        got.append(by_name[variant.name]["background_goodput_mbit"] / carried)
    return {
        "reno": point.reno,
        "nice": variant.flows,
        "buffer": point.buffer,
        "pipe": point.pipe,
        "trigger": variant.trigger,
        "late": variant.late,
        "mild": variant.mild,
        "loss": stats.interval([1 - k for k in kept]),
        "alone": stats.interval(alone),
        "nice_share": stats.interval(got),
    }
