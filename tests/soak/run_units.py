#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Runs what is too long for `make test`, one unit after the other, and keeps a record of each.

    tests/soak/run_units.py [--only KEY]... [--all]    run what never passed, or is stale; or all
    tests/soak/run_units.py --list                     say what there is, and when it was run

A unit that passed is done until what it depends on behaves otherwise, so a soak that was killed
goes on where it was. One that fails does not end the others; one that takes four times as long as
it should is ended, and recorded as that. Logs are in build/soak, records in docs/records.

Exit status: 0 all that was asked for passes, 1 something does not.
"""

from __future__ import annotations

import argparse
import fnmatch
import os
import re
import shlex
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from netnice_lab import PAPERS, ROOT, records, vm

Json = dict[str, Any]

UNITS = Path(__file__).with_name("units.toml")
LOGS = ROOT / "build" / "soak"
TABLE = records.RECORDS / "soak.md"
SUITE = "soak"
PATIENCE = 4
"""A unit may take so many times as long as it should."""
NUMBER = re.compile(r"^(\S+) (-?[\d.]+(?:e-?\d+)?) (\S+)$", re.MULTILINE)
COUNTS = re.compile(r"(\d+) (passed|failed|errors?|skipped)")
PASSED, FAILED, ENDED = "passed", "failed", "took too long"


@dataclass(frozen=True)
class Unit:
    """What is run at once; as in units.toml."""

    key: str
    what: str
    command: str
    minutes: float
    depends: Sequence[str] = ()
    on: str | None = None
    """The kernel that it runs on: `running`, `vm`; None where that does not matter."""
    data: str | None = None
    """It is done when none of these records of docs/data (a pattern of their names) is stale."""

    def measured(self) -> list[Json]:
        """Return the records of its data, the oldest first."""
        kept = records.load("data")
        found = [kept[name] for name in fnmatch.filter(kept, self.data or "")]
        return sorted(found, key=lambda record: str(record["date"]))

    def record(self) -> Json | None:
        """Return its record; of one with data that of its oldest data, unless it failed since."""
        own, measured = records.load(SUITE).get(self.key), self.measured()
        if not measured or (
            own and own["verdict"] != PASSED and own["date"] >= measured[0]["date"]
        ):
            return own
        return measured[0]

    def names(self) -> list[str]:
        """Return what it depends on, with every algorithm for a `*`."""
        algorithms = records.algorithms()
        return [
            name.replace("*", algorithm)
            for name in self.depends
            for algorithm in (algorithms if "*" in name else [""])
        ]

    def words(self) -> list[str]:
        """Return its command line."""
        return [word.replace("{python}", sys.executable) for word in shlex.split(self.command)]

    def expected_s(self) -> float:
        """Return how long it should take: as long as it took, or else as units.toml says."""
        own = records.load(SUITE).get(self.key)
        return float(own["wall_s"]) if own and own["verdict"] == PASSED else 60 * self.minutes

    def is_done(self) -> bool:
        """Return whether it passed, and what it depends on behaves as it did."""
        record = self.record()
        return (
            record is not None
            and record["verdict"] in (PASSED, records.MEASURED)
            and not any(records.stale(r) for r in self.measured() or [record])
        )


def units() -> list[Unit]:
    """Return all units, in the order in which they are run."""
    found = [Unit(**entry) for entry in tomllib.loads(UNITS.read_text())["unit"]]
    return [*found, *validated(), *published()]


def validated() -> Iterator[Unit]:
    """Yield a unit for each background of the validation: the kernel's runs, measured again."""
    backgrounds = {
        name.partition(": ")[2]: None
        for name, record in records.load("data").items()
        if name.startswith("validation/") and "kernel" in record["fingerprint"]
    }
    for background in backgrounds:
        yield Unit(
            key="validation/" + re.sub(r"\W+", "-", background),
            what=f"the simulator against the kernel: {background}",
            command=f"netnice-lab validate --measure --only {shlex.quote(background)}",
            data=f"validation/*: {background}", minutes=8, on="vm",
        )  # fmt: skip


def published() -> Iterator[Unit]:
    """Yield a unit for each file of data that claims of papers are judged of."""
    for name, record in records.load("data").items():
        if name.partition("/")[0] in PAPERS:
            yield Unit(
                key=f"data/{name}", what=f"the data that claims of {name.partition('/')[0]} read",
                command=f"netnice-lab claims publish --data {name}", data=name,
                minutes=(record["wall_s"] or 1800 if record["kernel"] else 600) / 60,
                on="vm" if record["kernel"] else None,
            )  # fmt: skip


def wanted(only: Sequence[str], everything: bool) -> list[Unit]:
    """Return the units to run: those asked for, or those without a fresh record of a pass."""
    known = units()
    if only:
        found = [u for u in known if any(u.key == o or u.key.startswith(f"{o}/") for o in only)]
        if not found:
            sys.exit(f"soak: no unit is called {', '.join(only)}. Known: "
                     + ", ".join(u.key for u in known))  # fmt: skip
        return found
    return [u for u in known if everything or not u.is_done()]


def run(unit: Unit) -> Json:
    """Run a unit, and keep and return its record."""
    log = LOGS / f"{unit.key.replace('/', '-').replace(' ', '_')}.log"
    before = time.monotonic()
    with log.open("wb") as file:
        process = subprocess.Popen(
            unit.words(), cwd=ROOT, stdin=subprocess.DEVNULL, stdout=file, stderr=file,
            env=os.environ | {"NETNICE_SOAK": "1", "PYTHONUNBUFFERED": "1"},
            start_new_session=True,
        )  # fmt: skip
        try:
            status = process.wait(60 * unit.minutes * PATIENCE)
            verdict = PASSED if status == 0 else FAILED
        except subprocess.TimeoutExpired:
            verdict = ENDED
        finally:
            end(process)
    said = log.read_text(errors="replace")
    return records.keep(
        SUITE, unit.key, depends=unit.names(), verdict=verdict, numbers=numbers(said),
        wall_s=time.monotonic() - before, kernel=kernel(unit),
    )  # fmt: skip


def end(process: subprocess.Popen[bytes]) -> None:
    """End a unit that still runs, with all that it started: politely, then not."""
    for number, seconds in ((signal.SIGTERM, 30), (signal.SIGKILL, 30)):
        if process.poll() is None:
            os.killpg(process.pid, number)
            try:
                process.wait(seconds)
            except subprocess.TimeoutExpired:
                continue


def numbers(said: str) -> Json:
    """Return what a unit printed as `name value unit`, and how many tests passed or not."""
    counts: Json = {}
    for count, what in COUNTS.findall(said):
        counts[what] = counts.get(what, 0) + int(count)
    return counts | {f"{name} {unit}": float(value) for name, value, unit in NUMBER.findall(said)}


def kernel(unit: Unit) -> str | None:
    """Return the version of the kernel that a unit runs on."""
    if unit.on == "vm":
        return vm.find_kernel().version
    return os.uname().release if unit.on == "running" else None


def table() -> str:
    """Return the page of what was run when, and what never was."""
    lines = [
        "# What `make soak` ran",
        "",
        "Written by `make soak`; [testing](../testing.md) says how to read and renew it.",
        "",
        "| unit | proves | verdict | date | commit | minutes | changed since |",
        "|---|---|---|---|---|---|---|",
    ]
    for unit in units():
        record = unit.record()
        cells = [f"`{unit.key}`", unit.what]
        if record is None:
            cells += ["never run", "", "", "", ""]
        else:
            cells += [
                record["verdict"], record["date"][:10], record["commit"],
                f"{record['wall_s'] / 60:.1f}" if record["wall_s"] else "",
                ", ".join(changed(unit, record)),
            ]  # fmt: skip
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def changed(unit: Unit, record: Json) -> list[str]:
    """Return what has changed since a unit's record, or since one of its data's."""
    words = [word for r in unit.measured() or [record] for word in records.stale(r)]
    return list(dict.fromkeys(words))


def say(text: str) -> None:
    """Print a line of progress."""
    print(f"soak: {text}", flush=True)


def minutes(seconds: float) -> str:
    """Return a duration as a person says it."""
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def main() -> int:
    """Run what the command line asks for; return the exit status."""
    assert __doc__
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", action="append", default=[], metavar="KEY",
                        help="a unit, or all whose key begins with KEY/; repeatable")  # fmt: skip
    parser.add_argument("--all", action="store_true", help="also what passed and is fresh")
    parser.add_argument("--list", action="store_true", help="run nothing; print the table")
    options = parser.parse_args()
    if options.list:
        print(table(), end="")
        return 0
    LOGS.mkdir(parents=True, exist_ok=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    todo = wanted(options.only, options.all)
    bad = []
    for index, unit in enumerate(todo):
        left = sum(u.expected_s() for u in todo[index:])
        say(f"{index + 1} of {len(todo)}: {unit.key}; about {minutes(left)} left")
        record = run(unit)
        say(f"{unit.key} {record['verdict']} in {minutes(record['wall_s'])}")
        if record["verdict"] != PASSED:
            bad.append(unit.key)
        TABLE.write_text(table())
    TABLE.write_text(table())
    say(f"{len(todo) - len(bad)} of {len(todo)} passed; {TABLE.relative_to(ROOT)} has all units")
    if bad:
        say(f"look into build/soak: {', '.join(bad)}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
