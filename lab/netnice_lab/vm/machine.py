# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""A virtual machine with Debian's stock kernel, in virtual time.

QEMU counts instructions (``-icount shift=0``: one guest instruction is one guest nanosecond) and
skips idle time (``sleep=off``). A busy host therefore makes an experiment slower, never different,
and a minute of waiting for packets costs nothing.

The guest sees the host's file system read-only, with a throw-away layer above it. Every access to
it is a round trip to the host during which guest time races ahead: `guest` copies whatever it
runs into the guest's memory before it measures.
"""

from __future__ import annotations

import os
import selectors
import shlex
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from .. import ROOT, LabError
from .package import environment, find_kernel, vng

PORTS = ("stdout", "stderr", "status")


@dataclass(frozen=True)
class Exit:
    """How a command in the VM ended."""

    status: int
    wall_s: float


_BOOT = """\
# Find the host's channels by name: udev, which would name them, need not be installed.
for port in /sys/class/virtio-ports/*; do
    read -r name < "$port/name"
    case $name in
        lab.stdout) out=/dev/${port##*/} ;;
        lab.stderr) err=/dev/${port##*/} ;;
        lab.status) status=/dev/${port##*/} ;;
    esac
done
ip link set lo up 2>/dev/null
sh "$1" < /dev/null > "$out" 2> "$err"
echo $? > "$status"
"""


def run(
    command: Sequence[str] | str,
    *,
    timeout_s: float,
    stdout: Callable[[bytes], None],
    stderr: Callable[[bytes], None],
    memory: str = "1G",
    cwd: Path | None = None,
    verbose: bool = False,
    say: Callable[[str], None] = lambda _: None,
    cancelled: threading.Event | None = None,
) -> Exit:
    """Boot a VM, run `command` in it as root, and return how it ended.

    A sequence is run as it is, a string by `sh`. What the command writes is handed to `stdout` and
    `stderr` as it arrives. Raises LabError if the VM does not boot, dies, or is still running
    after `timeout_s` seconds of wall time or when `cancelled` is set; the VM is then killed.
    """
    kernel = find_kernel(say)
    started = time.monotonic()
    script = command if isinstance(command, str) else shlex.join(command)
    (ROOT / "build").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="vm-", dir=ROOT / "build") as name:
        work = Path(name)
        (work / "boot.sh").write_text(_BOOT)
        (work / "command.sh").write_text(f"cd {shlex.quote(str(cwd or Path.cwd()))}\n{script}\n")
        options = ["-icount shift=0,sleep=off", "-device virtio-serial-pci,id=lab,max_ports=8"]
        for port in PORTS:
            os.mkfifo(work / port)
            options.append(f"-chardev file,id=lab-{port},path={work / port}")
            options.append(f"-device virtserialport,bus=lab.0,name=lab.{port},chardev=lab-{port}")
        # Opened before QEMU opens them for writing, which would wait for a reader.
        fds = {port: os.open(work / port, os.O_RDONLY | os.O_NONBLOCK) for port in PORTS}
        boot_log = work / "boot.log"
        with boot_log.open("wb") as log:
            process = subprocess.Popen(
                [
                    vng(), "--verbose", "--run", str(kernel.image), "--force-9p", "--disable-kvm",
                    "--cpus", "1", "--memory", memory, f"--qemu-opts={' '.join(options)}",
                    "--exec", f"sh {shlex.quote(str(work / 'boot.sh'))} "
                              f"{shlex.quote(str(work / 'command.sh'))}",
                ],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment(),
                start_new_session=True, cwd=ROOT,
            )  # fmt: skip
        status = bytearray()
        sinks: dict[str, Callable[[bytes], object]] = {
            "stdout": stdout,
            "stderr": stderr,
            "status": status.extend,
        }
        try:
            _pump(process, {fds[p]: sinks[p] for p in PORTS}, started + timeout_s, cancelled)
            timed_out = process.poll() is None
        finally:
            _kill(process)
            for fd in fds.values():
                os.close(fd)
        console = boot_log.read_text(errors="replace")
        if verbose:
            stderr(console.encode())
    wall = time.monotonic() - started
    if timed_out and cancelled is not None and cancelled.is_set():
        raise LabError("The VM was stopped before its command ended.")
    if timed_out:
        raise LabError(
            f"The VM was still running after {timeout_s:.0f} s and was killed. "
            "If the command needs longer, raise --timeout."
        )
    if not status.strip().isdigit():
        tail = "\n".join(line for line in console.splitlines()[-15:])
        raise LabError(
            "The VM ended before its command did. Its console's last lines:\n"
            f"{tail}\nRun netnice-lab vm --verbose -- true to see the whole console."
        )
    return Exit(int(status), wall)


def _pump(
    process: subprocess.Popen[bytes],
    sinks: dict[int, Callable[[bytes], object]],
    deadline: float,
    cancelled: threading.Event | None,
) -> None:
    """Hand on what arrives until the process ends, the deadline passes, or `cancelled` is set."""
    with selectors.DefaultSelector() as selector:
        pidfd = os.pidfd_open(process.pid)
        try:
            selector.register(pidfd, selectors.EVENT_READ)
            for fd in sinks:
                selector.register(fd, selectors.EVENT_READ)
            while (left := deadline - time.monotonic()) > 0:
                if cancelled is not None and cancelled.is_set():
                    return
                ended = False
                for key, _ in selector.select(min(left, 0.5)):
                    if key.fd == pidfd:
                        ended = True
                        continue
                    data = os.read(key.fd, 1 << 16)
                    if data:
                        sinks[key.fd](data)
                    else:
                        selector.unregister(key.fd)
                if ended:
                    process.wait()
                    break
        finally:
            os.close(pidfd)
    for fd, sink in sinks.items():
        with suppress(BlockingIOError):
            while data := os.read(fd, 1 << 16):
                sink(data)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End virtme-ng and the QEMU below it: they share a session that we started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def pass_through(stream: IO[bytes]) -> Callable[[bytes], None]:
    """Return a sink for `run` that writes to `stream` at once."""

    def write(data: bytes) -> None:
        stream.write(data)
        stream.flush()

    return write
