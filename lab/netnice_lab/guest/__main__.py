# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""What runs inside the virtual machine; Python's standard library only.

``python3 -S -E guest.pyz`` carries out what the host asks for, one request after the other. Each is
a line of JSON on the port ``requests`` and is answered by one, ``{"status": 0, "left": {...}}``:

- ``{"script": TEXT}`` is run by ``sh``;
- ``{"job": FILE}`` is a job as `job` describes it; what it leaves behind is in the answer.

What they print goes to the ports ``stdout`` and ``stderr``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

from . import chromium, job, state
from .programs import Json


def port(name: str, flags: int) -> int:
    """Open a channel of the host's by its name: udev, which would name it, need not be there."""
    for found in Path("/sys/class/virtio-ports").iterdir():
        if (found / "name").read_text().strip() == f"lab.{name}":
            return os.open(f"/dev/{found.name}", flags)
    sys.exit(f"There is no port lab.{name}.")


def in_child(work: Callable[[], None], out: int, err: int) -> int:
    """Do something in a process of its own, whose end leaves nothing; return its status."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.dup2(out, 1)
            os.dup2(err, 2)
            work()
            status = 0
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else 1
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def serve() -> None:
    """Carry out requests until there are no more."""
    out, err = (port(name, os.O_WRONLY) for name in ("stdout", "stderr"))
    requests = os.fdopen(port("requests", os.O_RDWR), "r+b", buffering=0)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=False)
    clean = state.state()
    while line := requests.readline():
        request: Json = json.loads(line)
        left: dict[str, list[str]] = {}
        if "script" in request:
            words = ["sh", "-c", request["script"]]
            streams: Json = {"stdin": subprocess.DEVNULL, "stdout": out, "stderr": err}
            status = subprocess.run(words, **streams, check=False).returncode
        else:
            of_job = Path(request["job"])
            status = in_child(lambda of_job=of_job: job.carry_out(of_job), out, err)  # type: ignore[misc]
            left = state.left(clean)
        requests.write(json.dumps({"status": status, "left": left}).encode() + b"\n")


def main() -> None:
    """Serve the host, or be a client of a site: `browse TASK.json`."""
    if sys.argv[1:2] == ["browse"]:
        print(json.dumps(chromium.perform(json.loads(Path(sys.argv[2]).read_text()))))
    else:
        serve()
