# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Runs scenarios in ns-3, with the same foreground flows as the other engines."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from netnice_lab import ROOT
from netnice_lab.scenario import Scenario, Section, describe

Json = dict[str, Any]

SOURCE = Path(__file__).with_name("dumbbell.cc")
PROGRAM = ROOT / "build" / "ns3" / "dumbbell"
LOAD = ROOT / "target" / "release" / "netnice-load"
SIM = ROOT / "target" / "release" / "netnice-sim"
LIBRARIES = ("internet", "point-to-point", "traffic-control", "network", "core")

HEADER_BYTES = 54
"""What ns-3 adds to the payload on the link: PPP 2, IPv4 20, TCP 20, time stamps 12."""

CONTROLS = {
    "reno": "TcpNewReno",
    "vegas": "TcpVegas",
    "cubic": "TcpCubic",
    "ledbat": "TcpLedbat",
    "lp": "TcpLp",
}
"""The controls that ns-3 has too."""

KNOWN = {
    "": {"name", "title", "profile", "mss_bytes", "header_bytes", "warmup_s", "measure_s",
         "drain_s", "bottleneck", "foreground", "background", "ideal"},
    "bottleneck": {"rate_mbit", "rtt_ms", "limit_packets", "queue"},
    "foreground": {"control", "arrivals", "sizes", "shape", "mean_bytes", "max_bytes", "load"},
    "background": {"name", "control", "flows", "start_s", "stagger_s", "queue"},
}  # fmt: skip
"""The keys of a scenario that `dumbbell.cc` obeys; any other must have its default."""

BARE = Section(
    name="bare",
    bottleneck=Section(rate_mbit=1, rtt_ms=1, limit_packets=1),
    foreground=Section(),
    background=[Section(name="any", control="reno")],
)
"""Of no other use than to have the defaults."""


def build() -> None:
    """Compile `dumbbell.cc`, unless that is done."""
    if PROGRAM.exists() and PROGRAM.stat().st_mtime > SOURCE.stat().st_mtime:
        return
    compiler = shutil.which("g++")
    if compiler is None:
        sys.exit("There is no C++ compiler. Install it: apt-get install g++")
    PROGRAM.parent.mkdir(parents=True, exist_ok=True)
    command = [compiler, "-std=c++17", "-O2", "-Wall", "-Wextra", "-Werror"]
    # the distribution's pkg-config files of ns-3 carry a broken path
    command += [str(SOURCE), "-o", str(PROGRAM), *(f"-lns3-{name}" for name in LIBRARIES)]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
    if "ns3/core-module.h: No such file" in done.stderr:
        sys.exit("ns-3 is not installed. Install it: apt-get install libns3-dev")
    if done.returncode != 0:
        sys.exit(f"{SOURCE.name} does not compile:\n{done.stderr}")


def built(program: Path) -> str:
    """Return a program of this project as the word of a command."""
    if not program.exists():
        sys.exit(f"{program.relative_to(ROOT)} is not built. Run make build.")
    return str(program)


def write_schedule(scenario_file: Path, seed: int, work: Path) -> Path:
    """Write the foreground's flows into `work` as ns-3 reads them, and return where."""
    command = [built(LOAD), "schedule", str(scenario_file), "--seed", str(seed), "--json", "-"]
    flows = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)["flows"]
    file = work / f"{scenario_file.stem}-{seed}.txt"
    file.write_text("".join(f"{flow['start_s']:.6f} {flow['bytes']}\n" for flow in flows))
    return file


def command(scenario: Scenario, background: Section | None, schedule: Path) -> list[str]:
    """Return the command that runs one variant of a scenario in ns-3.

    Exits if the scenario asks for what `dumbbell.cc` does not have.
    """
    link, foreground = scenario.bottleneck, scenario.foreground
    if foreground is None or link is None or link.limit_packets is None:
        sys.exit("ns-3 needs a [foreground] and a [bottleneck] with limit_packets.")
    bare = describe(BARE).scenario
    _check(scenario, bare, "")
    _check(link, bare.bottleneck, "bottleneck")
    _check(foreground, bare.foreground, "foreground")
    if scenario.profile != "ns2" or scenario.header_bytes != HEADER_BYTES:
        sys.exit(
            f"ns-3's TCP is that of the profile ns2 with {HEADER_BYTES} bytes of headers: "
            f'set profile = "ns2" and header_bytes = {HEADER_BYTES}.'
        )
    queue = (background and background.queue) or link.queue
    if queue not in ("drop-tail", "priority"):
        sys.exit(f"dumbbell.cc has no queue {queue!r}. Take drop-tail or priority.")
    options: dict[str, object] = {
        "rate-mbit": link.rate_mbit,
        "rtt-ms": link.rtt_ms,
        "limit-packets": link.limit_packets,
        "priority": str(queue == "priority").lower(),
        "mss-bytes": describe(scenario).mss_bytes,
        "warmup-s": scenario.warmup_s,
        "measure-s": scenario.measure_s,
        "drain-s": scenario.drain_s,
        "schedule": schedule,
        "foreground-control": _control(foreground.control),
    }
    if background:
        _check(background, bare.background[0], "background")
        options |= {
            "control": _control(background.control),
            "flows": background.flows,
            "start-s": background.start_s,
            "stagger-s": background.stagger_s,
        }
    return [str(PROGRAM), *(f"--{key}={value}" for key, value in options.items())]


def run(command: list[str]) -> Json:
    """Run a command of `command` and return what ns-3 measured."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"ns-3 failed ({done.returncode}): {' '.join(command)}\n{done.stderr}")
    outcome: Json = json.loads(done.stdout)
    return outcome


def _control(name: str) -> str:
    if name not in CONTROLS:
        sys.exit(f"ns-3 has no congestion control {name!r}. It has: {', '.join(CONTROLS)}.")
    return CONTROLS[name]


def _check(section: Section, bare: Section, name: str) -> None:
    """Exit if a key that ns-3 would not obey has another value than its default in `bare`."""
    for key, value in section.items():
        if key not in KNOWN[name] and value != bare[key]:
            at = f"{name}.{key}".lstrip(".")
            sys.exit(f"dumbbell.cc knows nothing of {at!r}. Remove it from the scenario.")
