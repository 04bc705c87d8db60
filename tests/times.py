#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""How long the parts of `make test` take, and which tests take the longest.

    tests/times.py wall NAME COMMAND...   run a command, and keep how long it took
    tests/times.py report                 the ten slowest tests, and the parts

Everything is read from and kept in build/test-times/: NAME.wall has the seconds of a part, *.xml
are pytest's reports, *.cargo what `cargo test` wrote. Cargo tells a time for each file of tests.
"""

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

KEPT = Path(__file__).resolve().parent.parent / "build" / "test-times"
SLOWEST = 10
RUNNING = re.compile(
    r"^\s*(?:Running (?:unittests )?|Doc-tests )(\S+)(?: \(\S*?deps/(\w+)-)?", re.M
)
FINISHED = re.compile(r"finished in ([\d.]+)s", re.M)


def wall(name: str, command: list[str]) -> int:
    """Run a command and keep its time, also if it fails; its status."""
    started = time.monotonic()
    status = subprocess.run(command, check=False).returncode
    KEPT.mkdir(parents=True, exist_ok=True)
    (KEPT / f"{name}.wall").write_text(f"{time.monotonic() - started:.1f}\n")
    return status


def of_pytest(report: str) -> Iterator[tuple[float, str]]:
    """Yield seconds and name of each test of a report."""
    for case in ElementTree.fromstring(report).iter("testcase"):
        yield float(case.get("time", "0")), f"{case.get('classname')}.{case.get('name')}"


def of_cargo(output: str) -> Iterator[tuple[float, str]]:
    """Yield seconds and name of each file of tests."""
    begun = list(RUNNING.finditer(output))
    ends = [*(run.start() for run in begun[1:]), len(output)]
    for run, end in zip(begun, ends, strict=True):
        if took := FINISHED.search(output, run.end(), end):
            yield float(took[1]), " ".join(filter(None, (run[2], run[1])))


def report() -> str:
    """Return the slowest tests, and what the parts took."""
    tests = [t for path in KEPT.glob("*.xml") for t in of_pytest(path.read_text())]
    tests += [t for path in KEPT.glob("*.cargo") for t in of_cargo(path.read_text())]
    lines = [f"{seconds:7.1f} s  {name}" for seconds, name in sorted(tests, reverse=True)[:SLOWEST]]
    walls = {path.stem: float(path.read_text()) for path in KEPT.glob("*.wall")}
    lines += [f"{name}_wall {seconds:.0f} s" for name, seconds in sorted(walls.items())]
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    """Do what the command line says."""
    match arguments:
        case ["wall", name, *command] if command:
            return wall(name, command)
        case ["report"]:
            print(report())
            return 0
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
