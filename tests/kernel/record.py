# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Records what each program costs the verifier of each kernel, in docs/records/verifier/.

    make build && sudo .venv/bin/python tests/kernel/record.py

The kernels are those of the lab, and the running one. instructions.json has, for each, how many
instructions the verifier walked in each program, largest first.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from netnice_lab import ROOT
from netnice_lab.records import provenance
from netnice_lab.vm.package import SERIES, find_kernel

PROGRAM = "target/release/examples/instructions"
IN_VM = ("netnice-lab", "vm", "--timeout", "3000", "--kernel")
FILE = ROOT / "docs" / "records" / "verifier" / "instructions.json"


def counts(*under: str) -> dict[str, int]:
    """Return the instructions by program, as the kernel below `under` counts them."""
    done = subprocess.run([*under, PROGRAM], cwd=ROOT, check=True, capture_output=True, text=True)
    lines = (line.split() for line in done.stdout.splitlines())
    found = {name.removeprefix("bpf_instructions_"): int(count) for name, count, _ in lines}
    return dict(sorted(found.items(), key=lambda pair: -pair[1]))


def main() -> None:
    """Measure and write."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    names = {find_kernel(series).version: series for series in SERIES}
    with ThreadPoolExecutor() as pool:  # minutes of an emulated processor each
        emulated = [pool.submit(counts, *IN_VM, series, "--") for series in names.values()]
        kernels = {os.uname().release: counts()}
        kernels = {**{n: f.result() for n, f in zip(names, emulated, strict=True)}, **kernels}
    found = {**provenance([Path(__file__).name]), "limit": 1_000_000, "kernels": kernels}
    FILE.write_text(json.dumps(found, indent=1) + "\n")
    for kernel, walked in kernels.items():
        program, count = next(iter(walked.items()))
        print(f"{kernel}: {len(walked)} programs, at most {count} instructions ({program})")


if __name__ == "__main__":
    main()
