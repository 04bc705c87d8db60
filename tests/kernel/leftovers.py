# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""What netnice may not leave behind."""

from __future__ import annotations

import json
import os
import re
import signal
from contextlib import suppress
from pathlib import Path

from classes import ALGORITHM, DEFAULT
from support import MEMORY, Json, Namespace, call, cgroup_root, registered, wait_until


def remove_stale_namespaces() -> None:
    """Remove namespaces of tests that were killed."""
    for line in call("ip", "netns", "list").splitlines():
        found = re.match(r"netnice-test-(\d+)-", line)
        if found and not Path(f"/proc/{found[1]}").exists():
            Namespace(line.split()[0]).clear()
            call("ip", "netns", "del", line.split()[0])


def companions() -> list[int]:
    """Return the processes that stay beside the commands of `netnice run`."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                words = (entry / "cmdline").read_bytes().split(b"\0")
                if (entry / "exe").readlink().name == "netnice" and words[1] == b"run":
                    found.append(int(entry.name))
    return found


def kill_companion() -> None:
    """Kill the only one, and wait for its end."""
    (pid,) = companions()
    os.kill(pid, signal.SIGKILL)
    wait_until("the companion ends", lambda: not companions())


def end_all() -> None:
    """End what is left, so that only the test that left it fails."""
    for pid in companions():
        os.kill(pid, signal.SIGKILL)
    wait_until("the companions end", lambda: not companions())
    call("netnice", "disable")


def sweep() -> None:
    """Have netnice remove what a killed one left, and what stays ready for the next run."""
    call("netnice", "disable", ALGORITHM)


def swept() -> bool:
    """Have netnice remove that; whether nothing is left.

    To wait for where a cgroup has gone: the kernel frees its sockets and programs late, and what
    they use stays until a netnice that finds them gone.
    """
    sweep()
    return not left_behind()


def left_behind() -> dict[str, list[str]]:
    """Return everything of netnice that is in the kernel or running, by what it is."""
    netnice = {str(MEMORY / "netnice"), str(MEMORY / "netnice-load")}
    processes = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                if str((entry / "exe").readlink()) in netnice:
                    processes.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode())
    found = {
        "congestion controls": sorted(registered()),
        "cgroups": _cgroups(),
        "BPF programs": [_name(o) for o in _objects("prog")],
        "BPF maps": [_name(o) for o in _objects("map")],
        "processes": processes,
    }
    return {what: which for what, which in found.items() if which}


def _cgroups() -> list[str]:
    walked = os.walk(cgroup_root())  # passes over one that ends meanwhile
    return [f"{at}/{n}" for at, names, _ in walked for n in names if n.startswith("netnice-run-")]


def _objects(kind: str) -> list[Json]:
    ours = re.compile(r"nn_|netnice")
    listed = json.loads(call("bpftool", "-j", kind, "show"))
    return [o for o in listed if ours.match(o.get("name", ""))]


def _name(of: Json) -> str:
    return f"{of['id']} {of.get('name')}"


def needless() -> dict[str, list[str]]:
    """Return what is left behind, but for the one control that stays ready for the next run."""
    found = left_behind()
    if found.get("congestion controls") != [DEFAULT]:
        return found
    programs = [p for p in _objects("prog") if p["type"] == "struct_ops"]
    uses = {i for p in programs for i in p.get("map_ids", [])}
    maps = [m for m in _objects("map") if m["type"] == "struct_ops" or m["id"] in uses]
    ready = {DEFAULT, *map(_name, programs), *map(_name, maps)}
    rest = {what: [one for one in which if one not in ready] for what, which in found.items()}
    return {what: which for what, which in rest.items() if which}
