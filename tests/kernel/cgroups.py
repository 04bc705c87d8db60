# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Cgroups of any name, as units and containers have them, with real processes in them."""

from __future__ import annotations

import itertools
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from client import Client
from support import Namespace, cgroup_root, wait_until

_SERIAL = itertools.count()


class Tree:
    """A cgroup at the root with those below it, removed at the end."""

    def __init__(self, name: str = "") -> None:
        """Make it; without a name it has one of its own."""
        self.path = cgroup_root() / (name or f"netnice-test-{os.getpid()}-{next(_SERIAL)}")
        self.path.mkdir()

    def below(self, *parts: str) -> Path:
        """Make a cgroup in it."""
        made = self.path.joinpath(*parts)
        made.mkdir(parents=True)
        return made

    def client(self, where: Namespace, cgroup: Path | None = None, *prefix: str) -> Client:
        """Start a client that is born in it, or in a cgroup of it."""
        return Client(where, *entering(cgroup or self.path), *prefix)

    def remove(self) -> None:
        """Remove it once no process is in it."""
        if not self.path.exists():
            return
        events = self.path / "cgroup.events"
        wait_until("nobody is in the cgroup", lambda: "populated 0" in events.read_text())
        for cgroup in sorted(self.path.rglob("*/"), reverse=True):
            cgroup.rmdir()
        self.path.rmdir()


def entering(cgroup: Path) -> list[str]:
    """Return what runs a command in a cgroup."""
    return ["sh", "-ec", 'echo $$ > "$0/cgroup.procs"; exec "$@"', str(cgroup)]


def netnice(*words: str, status: int = 0, stdin: str = "") -> str:
    """Run netnice to its end with this status; return what it says."""
    done = said(*words, stdin=stdin)
    assert done.returncode == status, done.stderr
    return done.stderr


def said(*words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run netnice to its end."""
    command: Sequence[str] = ["netnice", *words]
    return subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)
