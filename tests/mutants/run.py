#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Which property of the fuzzer finds which of the mistakes in mutants.toml.

    tests/mutants/run.py [SECONDS] [NAME...]   fuzz each mistake, so long for each target
    tests/mutants/run.py --check               only whether each can still be made

Exits with 1 if fewer than nine of ten are found. Golden traces find any change and are not asked.
"""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
COPY = ROOT / "build" / "mutants"
TARGETS = ("core", "behaviour")
FOUND = re.compile(r"violated: (.*?) \(|(runtime error|ERROR): (.*)")
SHARE_FOUND = 0.9

Mutant = dict[str, Any]


def mutants() -> list[Mutant]:
    """Read the mistakes."""
    listed: list[Mutant] = tomllib.loads((ROOT / "tests/mutants/mutants.toml").read_text())[
        "mutant"
    ]
    return listed


def impossible(listed: list[Mutant]) -> list[str]:
    """Return the mistakes whose old text does not stand exactly once where it should."""
    return [
        f"{m['name']}: its old text stands {count} times in {m['file']}, not once"
        for m in listed
        if (count := (ROOT / m["file"]).read_text().count(m["old"])) != 1
    ]


def finder(mutant: Mutant, seconds: int) -> str | None:
    """Make a mistake in a copy, and return the property that it violates, or None."""
    shutil.rmtree(COPY, ignore_errors=True)
    for part in ("core", "tests/fuzz"):
        shutil.copytree(ROOT / part, COPY / part)
    file = COPY / mutant["file"]
    file.write_text(file.read_text().replace(mutant["old"], mutant["new"]))
    for algorithm in mutant["algorithms"]:
        for target in TARGETS:
            command = [str(COPY / "tests/fuzz/run"), str(seconds), f"{algorithm}:{target}"]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode == 0:
                continue
            found = FOUND.search(done.stderr)
            if not found:
                sys.exit(f"{mutant['name']}: no property failed, but this:\n{done.stderr}")
            return f"{target}: {found[1] or found[3]}"
    return None


def main(arguments: list[str]) -> int:
    """Do what the command line says."""
    listed = mutants()
    if wrong := impossible(listed):
        print("\n".join(wrong), file=sys.stderr)
        return 1
    if arguments == ["--check"]:
        return 0
    seconds = int(arguments[0]) if arguments else 20
    chosen = [m for m in listed if not arguments[1:] or m["name"] in arguments[1:]]
    found = 0
    for mutant in chosen:
        by = finder(mutant, seconds)
        found += by is not None
        print(f"{mutant['name']} ({mutant['kind']}): {by or 'NOT FOUND'}", flush=True)
    print(f"mutants_found {found} of {len(chosen)}")
    return int(found < SHARE_FOUND * len(chosen))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
