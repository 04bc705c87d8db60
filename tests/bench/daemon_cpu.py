#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""CPU and memory of `netnice daemon` beside a user's run with 10,000 connections.

Prints ``name value unit``: what it takes while nobody asks, for a report of the run, and for a
status. Usage: ``python tests/bench/daemon_cpu.py [CONNECTIONS]``; needs root.
"""

from __future__ import annotations

import os
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "kernel"))

from cpu_per_gb import ADDRESS, PORT, two_ends
from daemon import HERE, Daemon, ask, netnice, run
from support import NOBODY, PYTHON, call, prepare_programs, status

TICK_MS = 1000 / os.sysconf("SC_CLK_TCK")
IDLE_S = 10
REQUESTS = 20


ACCEPTS = f"""
import socket, sys
with socket.create_server(("{ADDRESS}", {PORT}), backlog=4096) as listener:
    print("listens", flush=True)
    kept = [listener.accept()[0] for _ in range(int(sys.argv[1]))]
    print(len(kept), flush=True)
    sys.stdin.read()
"""
CONNECTS = f"""
import socket, sys
kept = [socket.create_connection(("{ADDRESS}", {PORT})) for _ in range(int(sys.argv[1]))]
print(len(kept), flush=True)
sys.stdin.read()
"""


def cpu_ms(pid: int) -> float:
    """Return the CPU time that a process has taken."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) * TICK_MS


def main() -> None:
    """Measure and print."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    if most < count + 100:
        sys.exit(f"a process may have {most} files; raise it: ulimit -Hn {count + 100}")
    prepare_programs()
    with two_ends() as (sender, receiver):
        daemon = Daemon(sender)
        try:
            server = receiver.start(PYTHON, "-c", ACCEPTS, str(count))
            server.line()
            client = sender.start(*run(NOBODY), PYTHON, "-c", CONNECTS, str(count))
            server.line()
            client.line()
            (found,) = (r for r in status()["runs"] if r["began"] == client.pid)
            pid = daemon.process.pid

            def each_ms(request: Callable[[], object]) -> float:
                before_ms = cpu_ms(pid)
                for _ in range(REQUESTS):
                    request()
                return (cpu_ms(pid) - before_ms) / REQUESTS

            before_ms = cpu_ms(pid)
            time.sleep(IDLE_S)
            print(f"daemon_{count}_idle {(cpu_ms(pid) - before_ms) / IDLE_S / 10:.2f} %")
            report = each_ms(lambda: ask(do="report", run=found["run"]))
            print(f"daemon_{count}_report {report:.1f} ms")
            seen = each_ms(lambda: netnice(NOBODY, "status", *HERE, "--json"))
            print(f"daemon_{count}_status {seen:.1f} ms")
            print(f"daemon_{count}_memory {daemon.memory_kb() / 1000:.1f} MB", flush=True)
            for process in (client, server):
                process.status()
        finally:
            daemon.end()
    call("netnice", "disable")


if __name__ == "__main__":
    main()
