#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""What `netnice run -- true` takes over `nice true`; prints ``name value unit``.

The first time the kernel's verifier walks the congestion control, which then stays ready. A user
without root asks a daemon. The
median of pairs. Usage: ``python tests/bench/run_start.py [PAIRS]``; needs root.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "kernel"))

from classes import DEFAULT
from daemon import Daemon, run, user
from support import NOBODY, Namespace, call, prepare_programs, registered

NICE = ["nice"]
UNDER = ["netnice", "run", "--"]


def took_ms(command: list[str]) -> float:
    """Run a command; return how long its caller waited, in milliseconds."""
    begun_s = time.monotonic()
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        assert process.wait() == 0, command
        return (time.monotonic() - begun_s) * 1000


def overhead_ms(
    under: list[str], pairs: int, *, beside: list[str] | None = None, first: bool = False
) -> float:
    """Return the median of what a command waits longer under `under` than under `beside`.

    `first`: each time as after the boot.
    """
    found = []
    for _ in range(pairs):
        if first:
            ready()
            call("netnice", "disable")
            if DEFAULT in registered():
                sys.exit(f"a run keeps {DEFAULT} registered; let it end: netnice status")
        found.append(took_ms([*under, "true"]) - took_ms([*(beside or NICE), "true"]))
    return statistics.median(found)


def ready() -> None:
    """Wait until companions have done what is left: each change has the lock alone."""
    call("netnice", "disable", "reno")


def main() -> None:
    """Measure and print."""
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    prepare_programs()
    try:
        first = overhead_ms(UNDER, pairs, first=True)
        print(f"run_start_first {first:.0f} ms")
        print(f"run_start {overhead_ms(UNDER, pairs):.0f} ms", flush=True)
        name = f"netnice-bench-{os.getpid()}"
        call("ip", "netns", "add", name)
        where = Namespace(name)
        daemon = Daemon(where)
        try:
            asks, nice = where.command(*run(NOBODY)), where.command(*user(NOBODY), *NICE)
            print(f"run_start_daemon {overhead_ms(asks, pairs, beside=nice):.0f} ms")
        finally:
            daemon.end()
            call("ip", "netns", "del", name)
    finally:
        call("netnice", "disable")


if __name__ == "__main__":
    main()
