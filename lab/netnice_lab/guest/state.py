# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""What the guest is made of that a job could leave changed for the next one."""

from __future__ import annotations

import os
import time
from pathlib import Path

PATIENCE_S = 60.0
"""Of virtual time: the kernel frees a closed socket's control after a grace period of RCU."""

SETTINGS = Path("/proc/sys/net")
VARIABLE = ("tcp_available_congestion_control", "tcp_allowed_congestion_control")
"""A control of Linux' own that was loaded stays; of ours, see `controls`."""

State = dict[str, set[str]]


def below(top: str) -> set[str]:
    """Return all paths below a directory, or none if it does not exist."""
    return {f"{where}/{n}" for where, dirs, files in os.walk(top) for n in (*dirs, *files)}


def settings() -> set[str]:
    """Return the system's own network settings, but those of single devices."""
    found = set()
    for path in below(str(SETTINGS)):
        file = Path(path)
        if file.is_file() and file.name not in VARIABLE and "/neigh/" not in path:
            try:
                found.add(f"{path} = {file.read_text().strip()}")
            except OSError:  # some may only be written
                continue
    return found


def processes() -> set[str]:
    """Return what runs, but the kernel's own threads, which have no command line."""
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and entry.name != str(os.getpid()):
            try:
                words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
            except OSError:  # it has just ended
                continue
            if words:
                found.add(f"{entry.name}: {words}")
    return found


def controls() -> set[str]:
    """Return netnice's congestion controls that are registered."""
    available = (SETTINGS / "ipv4" / "tcp_available_congestion_control").read_text().split()
    return {name for name in available if name.startswith("nn_")}


def state() -> State:
    """Return what there is now, by what it is."""
    return {
        "network namespaces": below("/run/netns"),
        "network devices": {device.name for device in Path("/sys/class/net").iterdir()},
        "cgroups": {path for path in below("/sys/fs/cgroup") if Path(path).is_dir()},
        "congestion controls": controls(),
        "BPF objects": below("/sys/fs/bpf"),
        "processes": processes(),
        "settings": settings(),
    }


def left(clean: State) -> dict[str, list[str]]:
    """Return what there is now and was not then, by what it is, once that changes no more."""
    deadline, pause_s = time.monotonic() + PATIENCE_S, 0.1
    while True:
        now = state()
        more = {what: sorted(now[what] - clean[what]) for what in clean}
        found = {what: which for what, which in more.items() if which}
        if not found or time.monotonic() > deadline:
            return found
        time.sleep(pause_s)
        pause_s *= 2
