#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Packets of data through the bottleneck per second of one core: the simulator and ns-3.

Usage: ``speed.py [--rounds N]``; prints ``name value unit``.

The scenario is ``tests/bench/speed.toml``: 16 background flows beside web-like fetches. ns-3 has
no Nice; it runs its TCP-LP, the nearest in kind. With its NewReno, Vegas, LEDBAT or CUBIC it is as
fast to within a third.

Counted is CPU time, of ns-3 without its set-up. The two take turns on one core, and the medians of
the rounds count: what else the machine does hits both. It is the distribution's ns-3, which has
logging and assertions compiled in.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import dumbbell
from netnice_lab import ROOT
from netnice_lab.scenario import read

SCENARIO = ROOT / "tests" / "bench" / "speed.toml"


def ours() -> float:
    """Return the packets per second of a run of the simulator."""
    command = [dumbbell.built(dumbbell.SIM), "bench", str(SCENARIO), "--runs", "1"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    match done.stdout.split():
        case ["sim_packets_per_s", value, "packets/s"] if done.returncode == 0:
            return float(value)
    sys.exit(f"{' '.join(command)} failed, or does not print sim_packets_per_s: {done.stdout!r}")


def theirs(command: list[str]) -> float:
    """Return the packets per second of a run of ns-3."""
    outcome = dumbbell.run(command)
    return float(outcome["carried_packets"] / outcome["cpu_s"])


def main() -> None:
    """Run the rounds and print the medians."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3, help="runs of each (default 3)")
    arguments = parser.parse_args()
    if arguments.rounds < 1:
        parser.error("--rounds must be at least 1")
    dumbbell.build()
    scenario = read(SCENARIO)
    (nice,) = scenario.background
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    with tempfile.TemporaryDirectory() as name:
        schedule = dumbbell.write_schedule(SCENARIO, 1, Path(name))
        command = dumbbell.command(scenario, nice.but(control="lp"), schedule)
        rounds = [(ours(), theirs(command)) for _ in range(arguments.rounds)]
    sim, ns3 = (statistics.median(column) for column in zip(*rounds, strict=True))
    print(f"sim_packets_per_s {sim:.0f} packets/s")
    print(f"ns3_packets_per_s {ns3:.0f} packets/s")
    print(f"sim_speed_ratio_vs_ns3 {sim / ns3:.1f} ratio")


if __name__ == "__main__":
    main()
