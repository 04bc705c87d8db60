# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""A job: a scenario's runs, one after the other, each in a network made afresh."""

from __future__ import annotations

import json
from pathlib import Path

from .browse import Browse
from .division import Division
from .network import build_network, remove_network
from .programs import Json, clear_memory, into_memory, load_controls, unload_controls, use_memory
from .replay import Replay
from .traffic import Traffic

KINDS: Json = {"replay": Replay, "browse": Browse, "division": Division}
"""What a run is that has this key; any other is plain `Traffic`."""


def carry_out(file: Path) -> None:
    """Carry out a job as the host prepared it; print a line of JSON for each run that ended."""
    job: Json = json.loads(file.read_text())
    into_memory(job["memory"])
    use_memory()
    load_controls(job["modules"], job["controls"], job["netnice"])
    for run in job["runs"]:
        build_network(
            job["scenario"], run["queue"], serialised=bool(run.get("serialised")),
            duplex=bool(run.get("duplex")),
        )  # fmt: skip
        kind = next((KINDS[name] for name in KINDS if run.get(name)), Traffic)
        outcome = kind(job, run).measure()
        remove_network()
        print(json.dumps({"run": run["index"], **outcome}), flush=True)
    unload_controls()
    clear_memory(job["memory"])
