# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""What the host prepares for `guest`, and how it gets the results back."""

from __future__ import annotations

import json
import tempfile
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

from . import ROOT, LabError, vm
from .guest.programs import closure
from .scenario import Scenario
from .tools import LOAD, NETNICE, WEB_LOG, built, tool

Json = dict[str, Any]

_GUEST_TOOLS = ("ip", "tc", "ethtool", "nsenter", "sh")


def prepare(
    scenario: Scenario,
    runs: Sequence[Json],
    work: Path,
    *,
    modules: Sequence[Path] = (),
    programs: Sequence[Path] = (),
    more: Json | None = None,
) -> Path:
    """Write the job file for the guest into `work`, and return it; see `guest`."""
    scenario_file = work / "scenario.json"
    scenario_file.write_text(json.dumps(scenario))
    backgrounds = [r["background"] for r in runs if r["background"]]
    foreground = [scenario.foreground] if scenario.foreground is not None else []
    flows = [*backgrounds, *foreground, *scenario.cross]
    # QUIC's are in netnice-load
    controls = {f["control"] for f in flows if f["control"] and not f.get("quic")}
    ours = [LOAD]
    uses_netnice = any(c.startswith("nn_") for c in controls) or any(
        b.get("pull") for b in backgrounds
    )
    if uses_netnice:
        ours.append(NETNICE)
    needed = [*map(built, ours), *map(tool, _GUEST_TOOLS), *programs]
    job = {
        "scenario": scenario,
        "scenario_file": scenario_file.name,
        "data": WEB_LOG.name,
        "memory": [*closure(needed), str(scenario_file), str(WEB_LOG)],
        "modules": [str(m.resolve()) for m in modules],
        "controls": sorted(controls),
        "netnice": NETNICE.name if uses_netnice else None,
        "runs": list(runs),
        **(more or {}),
    }
    path = work / "job.json"
    path.write_text(json.dumps(job))
    return path


def run_in_vm(
    job: Path,
    *,
    timeout_s: float,
    cancelled: threading.Event,
    each: Callable[[Json], None],
    memory: str = "1G",
) -> None:
    """Have a VM carry out the job and hand every outcome to `each` as it arrives.

    Raises LabError with the guest's own words if anything in it failed.
    """
    lines, complaints = bytearray(), bytearray()

    def out(data: bytes) -> None:
        lines.extend(data)
        while b"\n" in lines:
            line, _, rest = bytes(lines).partition(b"\n")
            lines[:] = rest
            each(json.loads(line))

    with vm.POOL.machine(vm.find_kernel(), memory) as machine:
        ended = machine.carry_out(
            {"job": str(job)},
            timeout_s=timeout_s, stdout=out, stderr=complaints.extend, cancelled=cancelled,
        )  # fmt: skip
        if ended.status != 0:
            said = complaints.decode(errors="replace").strip() or "it said nothing"
            raise LabError(f"The experiment in the VM failed (status {ended.status}): {said}")
        if ended.left:
            raise LabError(f"The experiment left in the VM what disturbs others: {ended.left}")


def run_all(
    scenario: Scenario,
    runs: Sequence[Json],
    *,
    vms: int,
    modules: Sequence[Path] = (),
    programs: Sequence[Path] = (),
    more: Json | None = None,
    timeout_s: float,
    each: Callable[[Json], None],
    memory: str = "1G",
) -> None:
    """Spread runs over `vms` virtual machines at a time; `each` gets outcomes in a worker thread.

    The first failure stops all machines and is raised.
    """
    cancelled = threading.Event()
    parts = [list(runs[i::vms]) for i in range(min(vms, len(runs)))]
    (ROOT / "build").mkdir(exist_ok=True)
    with (
        tempfile.TemporaryDirectory(prefix="job-", dir=ROOT / "build") as name,
        ThreadPoolExecutor(max_workers=vms) as pool,
    ):
        try:
            futures = []
            for index, part in enumerate(parts):
                work = Path(name) / str(index)
                work.mkdir()
                job = prepare(scenario, part, work, modules=modules, programs=programs, more=more)
                futures.append(
                    pool.submit(
                        run_in_vm, job, timeout_s=timeout_s, cancelled=cancelled, each=each,
                        memory=memory,
                    )
                )  # fmt: skip
            done, _ = wait(futures, return_when=FIRST_EXCEPTION)
            for future in done:
                future.result()
        finally:
            # On success nothing is left to cancel; otherwise the pool waits for stopped machines.
            cancelled.set()
