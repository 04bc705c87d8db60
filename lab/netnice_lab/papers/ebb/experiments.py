# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""What is simulated of a held background: K1, paths drawn at random, other hosts, idle links."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

from ...experiment import Point, Simulated
from ...scenario import Scenario, Section, read

Json = dict[str, Any]

SEED = 101
"""The first. Constants of core/host/path.h were chosen on seeds below it."""
FLOWS, MANY = (1, 4, 16, 64), (1, 4, 16, 64, 100)
CUBIC = "cubic"

DRAWN, OF_A_PATH = 40, (1, 16)
"""Paths drawn at random, and the flows on each."""
QUEUES = ("drop-tail", "fq_codel")

IDLE: dict[str, Json] = {
    "K1": {},
    "jitter of 3 ms": {"jitter_ms": 3.0},
    "jitter of 10 ms": {"jitter_ms": 10.0},
    "an RTT that rises to 150 ms": {"change": [{"at_s": 1.0, "rtt_ms": 150.0}]},
    "losses of 1 %": {"loss": 0.01},
}
"""What is otherwise than in K1, of its link without any other traffic."""
STEPS: dict[str, float] = {"half": 4.0, "twice": 16.0}
"""Mbit/s, after some seconds of K1's rate."""
STEP_S = 2.0
"""For so long before and after."""


def named(flows: int) -> str:
    """Return the name of a background."""
    return f"nn_ebb x{flows}"


def held(flows: int) -> Section:
    """Return so many connections that their host holds."""
    return Section(name=named(flows), control="nn_ebb", flows=flows, hold=True)


def k1(*flows: int) -> Scenario:
    """Return the scenario with these backgrounds."""
    return read(Path("ebb")).but(background=[held(n) for n in flows])


def kept(run: Json, _measure_s: float = 0.0) -> Json:
    """Return what is kept of a run: completion times of the foreground, the background's Mbit/s."""
    of = run["foreground"]
    return {
        "fct_s": of["fct_mean_s"], "fct_p95_s": of["fct_p95_s"], "fct_p99_s": of["fct_p99_s"],
        "mbit": run["background_goodput_mbit"],
        "flow_mbit": run["background_flow_mbit"],
    }  # fmt: skip


def drawn() -> Iterator[Json]:
    """Yield the paths, always the same: 2 to 200 Mbit/s, 5 to 200 ms, .5 to 5 BDP of queue."""
    random = Random(SEED)
    for number in range(DRAWN):
        rate = math.exp(random.uniform(math.log(2), math.log(200)))
        rtt = math.exp(random.uniform(math.log(5), math.log(200)))
        bdp = math.exp(random.uniform(math.log(0.5), math.log(5)))
        queue = QUEUES[number % len(QUEUES)]
        packets = max(round(bdp * rate * rtt / 12), 10)  # 1000 bits in a ms of a Mbit/s
        yield {
            "rate_mbit": round(rate, 1), "rtt_ms": round(rtt), "queue": queue,
            "limit_packets": packets if queue == "drop-tail" else max(packets, 1000),
        }  # fmt: skip


def on(path: Json) -> Scenario:
    """Return the scenario on another path."""
    scenario = k1(*OF_A_PATH)
    return scenario.but(bottleneck=scenario.bottleneck.but(**path))


def elsewhere(scenario: Scenario) -> Scenario:
    """Return the scenario with the foreground on another host."""
    return scenario.but(foreground=scenario.foreground.but(host="theirs"))


def idle(change: Json, flows: int) -> Scenario:
    """Return a link without foreground, beside the same flows of CUBIC; from 2 s on."""
    scenario = k1(flows)
    plain = Section(name=CUBIC, control="cubic", flows=flows)
    return scenario.but(
        warmup_s=2.0, foreground=None, background=[*scenario.background, plain],
        bottleneck=scenario.bottleneck.but(**change),
    )  # fmt: skip


def step(rate_mbit: float) -> Scenario:
    """Return the seconds after another rate."""
    scenario = k1(*OF_A_PATH)
    change = [{"at_s": 8.0, "rate_mbit": rate_mbit}]
    return scenario.but(
        warmup_s=8.0, measure_s=2 * STEP_S, bottleneck=scenario.bottleneck.but(change=change)
    )


def _experiment(name: str, seeds: int, points: list[Point]) -> Simulated:
    return Simulated(name, points, keep=kept, seeds=seeds, first_seed=SEED)


def simulated() -> list[Simulated]:
    """Return all of them."""
    return [
        _experiment("k1", 40, [Point({"flows": n}, k1(n)) for n in MANY]),
        _experiment("paths", 3, [Point({"path": i}, on(p)) for i, p in enumerate(drawn())]),
        _experiment("others", 40, [Point({"flows": n}, elsewhere(k1(n))) for n in FLOWS]),
        _experiment(
            "idle", 10,
            [
                Point({"link": link, "flows": n}, idle(change, n))
                for link, change in IDLE.items()
                for n in FLOWS
            ],
        ),
        _experiment("steps", 40, [Point({"to": to}, step(rate)) for to, rate in STEPS.items()]),
    ]  # fmt: skip
