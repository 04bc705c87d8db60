# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""What runs inside the virtual machine: the network, the traffic, the measurement.

Usage: ``python3 -S -E guest.pyz JOB.json``. Standard library only; one JSON line on stdout for each
run that ended.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from . import chromium
from .browse import Browse
from .division import Division
from .network import build_network, remove_network
from .programs import Json, into_memory, load_controls
from .replay import Replay
from .traffic import Traffic


def main() -> None:
    """Carry out the job named on the command line, or `browse TASK.json`."""
    if sys.argv[1] == "browse":
        print(json.dumps(chromium.perform(json.loads(Path(sys.argv[2]).read_text()))))
        return
    job: Json = json.loads(Path(sys.argv[1]).read_text())
    into_memory(job["memory"])
    load_controls(job["modules"], job["controls"], job["netnice"])
    for run in job["runs"]:
        build_network(
            job["scenario"], run["queue"], serialised=bool(run.get("serialised")),
            duplex=bool(run.get("duplex")),
        )  # fmt: skip
        kinds: Json = {"replay": Replay, "browse": Browse, "division": Division}
        kind = next((kinds[name] for name in kinds if run.get(name)), Traffic)
        outcome = kind(job, run).measure()
        remove_network()
        print(json.dumps({"run": run["index"], **outcome}), flush=True)
