# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Programs in the guest: copied into its memory, run in a namespace, checked at their end."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NoReturn

from .state import controls

MEMORY = Path("/run/netnice-lab")
"""In the guest's memory: programs and files that a run touches (see `vm`)."""

TCP_CONTROLS = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")

Json = dict[str, Any]


def fail(what: str) -> NoReturn:
    """End this job with a sentence on stderr."""
    print(what, file=sys.stderr, flush=True)
    sys.exit(1)


def call(*command: str, stdin: str | None = None) -> str:
    """Run a command to its end and return what it printed; a failure ends the job."""
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        given = f" given\n{stdin}" if stdin else ""
        fail(f"{' '.join(command)} failed ({done.returncode}): {done.stderr.strip()}{given}")
    return done.stdout


def closure(programs: Iterable[Path]) -> list[str]:
    """Return the programs and every shared library they load, as files to copy."""
    files = {str(p): None for p in programs}
    for program in list(files):
        listing = subprocess.run(["ldd", program], capture_output=True, text=True, check=False)
        files |= dict.fromkeys(re.findall(r"=> (/\S+)", listing.stdout))
    return list(files)


def into_memory(paths: Iterable[str], memory: Path = MEMORY) -> None:
    """Copy programs, their libraries and data into a directory in memory."""
    memory.mkdir(parents=True, exist_ok=True)
    for path in map(Path, paths):
        if not same(path, memory / path.name):
            shutil.copy2(path, memory)


def use_memory() -> None:
    """Make everything that runs from now on use the copies in memory."""
    os.environ["PATH"] = f"{MEMORY}:{os.environ['PATH']}"
    os.environ["LD_LIBRARY_PATH"] = str(MEMORY)
    os.chdir(MEMORY)


def same(file: Path, copy: Path) -> bool:
    """Tell whether an earlier job left a copy of this very file."""
    if not copy.exists():
        return False
    of_file, of_copy = file.stat(), copy.stat()
    return (of_file.st_size, of_file.st_mtime_ns) == (of_copy.st_size, of_copy.st_mtime_ns)


def clear_memory(kept: list[str]) -> None:
    """Remove what a job made; what it was given may serve the next one."""
    names = {Path(path).name for path in kept}
    for path in MEMORY.iterdir():
        if path.name not in names:
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def load_controls(modules: list[str], names: list[str], netnice: str | None) -> None:
    """Make every congestion control that the runs use available."""
    for module in modules:
        if Path("/sys/module", Path(module).stem.replace("-", "_")).exists():
            continue  # an earlier job's
        done = subprocess.run(["insmod", module], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            fail(
                f"The module {module} cannot be loaded into {os.uname().release}: "
                f"{done.stderr.strip()}. Build it against linux-headers-{os.uname().release}."
            )
    if ours(names):
        if netnice is None:
            fail("The nn_* controls need target/release/netnice. Run make build.")
        call(netnice, "enable", *ours(names))
    for name in names:
        if name not in TCP_CONTROLS.read_text().split():
            subprocess.run(["modprobe", "-q", f"tcp_{name}"], check=False)
        available = TCP_CONTROLS.read_text().split()
        if name not in available:
            fail(
                f"The congestion control {name} is neither in this kernel nor a module of it. "
                f"Available: {', '.join(sorted(available))}; "
                "give an out-of-tree one with --module FILE.ko."
            )


def unload_controls() -> None:
    """Take netnice's away, the one that `netnice run` leaves ready too; modules stay."""
    if controls():
        call("netnice", "disable")


def ours(names: list[str]) -> list[str]:
    """Return the algorithms of netnice whose controls these are."""
    return [name.removeprefix("nn_") for name in names if name.startswith("nn_")]


def in_netns(name: str, *command: str) -> list[str]:
    """Return the command that runs `command` in a network namespace, other mounts unchanged."""
    return ["nsenter", f"--net=/run/netns/{name}", *command]


class Program:
    """A running program of the traffic; `wait` and `stop` fail loudly if it failed."""

    def __init__(self, command: list[str], *, listens: bool = False) -> None:
        """Start it; if it `listens`, return once it says so."""
        self.command = command
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        if listens:
            assert self.process.stdout is not None
            line = self.process.stdout.readline()
            if not line.startswith("listening"):
                self.wait()
                fail(f"{' '.join(command)} said {line!r} where 'listening ADDRESS' was expected.")

    def wait(self) -> None:
        """Wait for its end."""
        self._check(self.process.wait())

    def stop(self) -> None:
        """Ask it to end, and wait."""
        self.process.terminate()
        # Programs without results to write end by the signal itself.
        self._check(self.process.wait(), -signal.SIGTERM, 128 + signal.SIGTERM)

    def _check(self, status: int, *good: int) -> None:
        if status not in (0, *good):
            fail(f"{' '.join(self.command)} ended with status {status}.")
