# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""`netnice daemon`, and users without root who ask it."""

from __future__ import annotations

import json
import re
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

from leftovers import companions
from support import MEMORY, NOBODY, ROOT, Json, Namespace, Process, call, wait_until

SOCKET = MEMORY / "netnice.sock"
HERE = ("--socket", str(SOCKET))
OTHER = NOBODY - 1
"""A user who is neither root nor `NOBODY`."""


UNIT = ROOT / "packaging" / "systemd" / "netnice.service"


def as_unit() -> list[str]:
    """Return the prefix that leaves a command of root the capabilities that the unit has."""
    (line,) = re.findall(r"^CapabilityBoundingSet=(.*)$", UNIT.read_text(), re.MULTILINE)
    kept = ",".join("+" + name.removeprefix("CAP_").lower() for name in line.split())
    return ["setpriv", "--no-new-privs", f"--bounding-set=-all,{kept}"]


def user(uid: int) -> list[str]:
    """Return the prefix that makes a command that of a user, without any right."""
    return ["setpriv", f"--reuid={uid}", "--clear-groups"]


def run(uid: int, *options: str) -> list[str]:
    """Return the prefix that has a user's command run in the background."""
    return [*user(uid), "netnice", "run", *HERE, *options, "--"]


class Daemon:
    """One that can be killed, and followed by another."""

    def __init__(self, where: Namespace) -> None:
        """Start it, and wait until it serves."""
        self.where = where
        self.process = self._start()

    def _start(self) -> Process:
        process = self.where.start(*as_unit(), "netnice", "daemon", *HERE)
        wait_until("the daemon listens", lambda: f"served at {SOCKET}" in process.errors)
        return process

    def kill(self) -> None:
        """Have it end as it stands."""
        self.process.popen.kill()
        self.process.popen.wait()

    def follow(self) -> None:
        """Start the next one."""
        self.process = self._start()

    def end(self) -> None:
        """End it, and before it what was started beside it: companions ask what their runs did."""
        for process in self.where.processes:
            if process is not self.process:
                process.end()
        wait_until("no companion asks", lambda: not self._companions())
        self.process.end()

    def _companions(self) -> set[str]:
        here = call("ip", "netns", "pids", self.where.name).split()
        return set(map(str, companions())) & set(here)

    def memory_kb(self) -> int:
        """Return what it has of memory."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        (line,) = (line for line in status.splitlines() if line.startswith("VmRSS:"))
        return int(line.split()[1])

    def growth_kb(self, attack: Callable[[], None]) -> int:
        """Return by how much an attack grows it, the least of three: a leak comes each time."""
        grown = []
        for _ in range(3):
            before_kb = self.memory_kb()
            attack()
            grown.append(self.memory_kb() - before_kb)
        return min(grown)


HANDS_DOWN = 'exec 3<&0 </dev/null; LISTEN_FDS=1 LISTEN_PID=$$ exec "$@"'
"""Hands the socket at standard input to a command, as sd_listen_fds(3) says."""


class Activated(Daemon):
    """One whose socket is somebody else's, as with systemd: who asks while none runs waits."""

    def __init__(self, where: Namespace) -> None:
        """Listen, and start it."""
        SOCKET.unlink(missing_ok=True)
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(SOCKET))
        SOCKET.chmod(0o666)
        self.listener.listen()
        super().__init__(where)
        ask(do="hello")  # it has what it needs from then on

    def _start(self) -> Process:
        words = self.where.command("sh", "-c", HANDS_DOWN, "sh", *as_unit(), "netnice", "daemon")
        process = Process(words, stdin=self.listener.fileno())
        self.where.processes.append(process)
        return process

    def end(self) -> None:
        """End it, and listen no more."""
        super().end()
        self.listener.close()
        SOCKET.unlink()


def ask(**request: object) -> Json:
    """Ask as root; return the answer."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(SOCKET))
        connection.sendall(json.dumps({"v": 1, **request}).encode() + b"\n")
        return json.loads(connection.makefile().readline())


def netnice(uid: int, *words: str) -> subprocess.CompletedProcess[str]:
    """Run netnice as a user; return how it ended."""
    return subprocess.run(
        [*user(uid), "netnice", *words], capture_output=True, text=True, check=False
    )
