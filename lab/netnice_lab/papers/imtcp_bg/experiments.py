# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""What is simulated of section IV, and of scenario K1."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from ...experiment import Point, Simulated
from ...scenario import Scenario, Section, read

Json = dict[str, Any]

WEB = Path("imtcp-bg/web")
SEEDS = 10

OURS, REPORTED = "imtcp_bg", ("reno", "nice", "lp", "imtcp_bg")
"""ImTCP-bg as it is here, and what the paper compares."""
WRITTEN, BANDWIDTH, RTT = "imtcp_bg as written", "bandwidth alone", "RTT alone"
SERVERS = (10, 20, 30, 40, 50)
"""N_web; each server is a load of 1 Mbit/s."""
GAMMAS, DELTAS = (0.03125, 0.125, 0.5, 1.0), (1.1, 1.2, 1.35, 1.5, 2.0)
GAMMA, DELTA = 0.03125, 1.35
"""Ours."""
PAPERS_DELTA = 1.2
"""Section IV, found by trials there."""
NS2 = "web-ns2"
"""The web's experiment with the TCP of ns-2, as an ablation."""
FLOOR = " least=2"
"""Of the name of a variant whose windows have the paper's floor."""
KERNEL_FLOWS = (1, 4, 16, 64)


def with_servers(scenario: Scenario, servers: int) -> Scenario:
    """Return the scenario with so many web servers."""
    web, clients = scenario.hosts
    return scenario.but(
        foreground=scenario.foreground.but(load=servers / 100),
        hosts=[web.but(count=servers), clients],
    )


def with_set(scenario: Scenario, gamma: float, delta: float) -> Scenario:
    """Return the scenario with ImTCP-bg alone and these parameters."""
    (ours,) = (b for b in scenario.background if b.name == OURS)
    changed = ours.but(set={**ours.set, "gamma": gamma, "delta": delta})
    return scenario.but(background=[changed])


def k1() -> Scenario:
    """Return scenario K1 with ImTCP-bg and Nice, of 1 to 64 flows."""
    found = read(Path("k1"))
    background = [
        Section(name=f"{name} x{flows}", control=name, flows=flows)
        for name in ("nn_imtcp_bg", "nn_nice")
        for flows in KERNEL_FLOWS
    ]
    return found.but(name="imtcp-bg-k1", background=background)


def k1_simulated() -> Scenario:
    """Return the same, and ImTCP-bg with the paper's floor of windows."""
    found = k1()
    floors = [
        Section(
            name=f"nn_imtcp_bg x{flows}{FLOOR}",
            control="nn_imtcp_bg",
            flows=flows,
            set={"least": 2},
        )
        for flows in KERNEL_FLOWS
    ]
    return found.but(background=[*found.background, *floors])


def with_ns2(scenario: Scenario) -> Scenario:
    """Return the scenario with the TCP of ns-2, and LP and ImTCP-bg alone."""
    background = [b for b in scenario.background if b.name in ("lp", OURS)]
    return scenario.but(profile="ns2", background=background)


def simulated() -> list[Simulated]:
    """Return everything that is simulated and not traced."""
    web = read(WEB)
    pairs = [(g, DELTA) for g in GAMMAS] + [(GAMMA, d) for d in DELTAS if d != DELTA]
    busiest = with_servers(web, SERVERS[-1])
    found = [
        Simulated("web", [Point({"servers": n}, with_servers(web, n)) for n in SERVERS]),
        Simulated(
            "trade-off",
            [Point({"gamma": g, "delta": d}, with_set(busiest, g, d)) for g, d in pairs],
        ),
        Simulated(NS2, [Point({"servers": n}, with_ns2(with_servers(web, n))) for n in SERVERS]),
        Simulated("k1-simulated", [Point({}, k1_simulated())]),
    ]
    return [replace(e, seeds=SEEDS) for e in found]
