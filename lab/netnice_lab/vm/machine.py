# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""A virtual machine with one of Debian's stock kernels, in virtual time.

QEMU counts instructions (``-icount shift=0``: one guest instruction is one guest nanosecond) and
skips idle time (``sleep=off``). A busy host therefore makes an experiment slower, never different,
and a minute of waiting for packets costs nothing.

The guest sees the host's file system read-only, with a throw-away layer above it. Every access to
it is a round trip to the host during which guest time races ahead: `guest` copies whatever it
runs into the guest's memory before it measures.
"""

from __future__ import annotations

import json
import os
import selectors
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time
import zipapp
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from .. import ROOT, LabError
from .package import Kernel, environment, find_kernel, vng

Json = dict[str, Any]
Sink = Callable[[bytes], object]

OUTPUTS = ("stdout", "stderr")
KEEPER = "read -r _; kill -s KILL -- -$1"
"""Kills a group of processes when whoever holds the other end of its input has died."""


@dataclass(frozen=True)
class Exit:
    """How something that the VM was told to do ended, and what it left there."""

    status: int
    wall_s: float
    left: dict[str, list[str]] = field(default_factory=dict)


UNUSED = (
    "aesni_intel", "ahci", "crc32_pclmul", "crct10dif_pclmul", "cryptd", "ghash_clmulni_intel",
    "i2c_i801", "kvm", "kvm_amd", "libata", "lpc_ich", "pcspkr", "powernow_k8", "psmouse",
    "scsi_mod", "sg", "sha1_ssse3", "sha256_ssse3", "sha512_ssse3", "sr_mod",
)  # fmt: skip
"""Modules that udev would load for what QEMU emulates. To boot without takes a quarter less."""


class Machine:
    """A VM that carries out one request after the other (see `guest`), until it is closed.

    An idle guest would spend the host's time on jumping from timer to timer: between requests the
    whole VM is stopped, which nothing in it can notice.
    """

    def __init__(self, kernel: Kernel, memory: str = "1G") -> None:
        """Begin to boot it; the first request waits for that."""
        self.kernel, self.memory = kernel, memory
        (ROOT / "build").mkdir(exist_ok=True)
        self._work = tempfile.TemporaryDirectory(prefix="vm-", dir=ROOT / "build")
        work = Path(self._work.name)
        self._console = work / "console.log"
        app = work / "guest.pyz"
        zipapp.create_archive(
            Path(__file__).parents[1], app, main="guest.__main__:main",
            filter=lambda file: file.parts[0] == "guest" and file.suffix == ".py",
        )  # fmt: skip
        options = ["-icount shift=0,sleep=off", "-device virtio-serial-pci,id=lab,max_ports=8"]
        for port in (*OUTPUTS, "requests.in", "requests.out"):
            os.mkfifo(work / port)
        for port in (*OUTPUTS, "requests"):
            kind = "pipe" if port == "requests" else "file"
            options.append(f"-chardev {kind},id=lab-{port},path={work / port}")
            options.append(f"-device virtserialport,bus=lab.0,name=lab.{port},chardev=lab-{port}")
        # Opened before QEMU opens them, which would wait for the other end.
        self._outputs = {p: os.open(work / p, os.O_RDONLY | os.O_NONBLOCK) for p in OUTPUTS}
        self._answers = os.open(work / "requests.out", os.O_RDONLY | os.O_NONBLOCK)
        self._requests = os.open(work / "requests.in", os.O_RDWR)
        serve = [os.path.realpath(sys.executable), "-S", "-E", str(app)]
        with self._console.open("wb") as log:
            self._process = subprocess.Popen(
                [
                    vng(), "--verbose", "--run", str(kernel.image), "--force-9p", "--disable-kvm",
                    "--cpus", "1", "--memory", memory, f"--qemu-opts={' '.join(options)}",
                    "--append", f"cryptomgr.notests module_blacklist={','.join(UNUSED)}",
                    "--exec", shlex.join(serve),
                ],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment(),
                start_new_session=True, cwd=ROOT,
            )  # fmt: skip
        stand_back(self._process.pid)
        self._keeper = subprocess.Popen(
            ["sh", "-c", KEEPER, "keeper", str(self._process.pid)],
            stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip

    @property
    def console(self) -> str:
        """Return what the VM's console has shown."""
        return self._console.read_text(errors="replace")

    def carry_out(
        self,
        request: Json,
        *,
        timeout_s: float,
        stdout: Sink,
        stderr: Sink,
        cancelled: threading.Event | None = None,
    ) -> Exit:
        """Have the guest carry out a request, and return how that ended.

        What it writes is handed to `stdout` and `stderr` as it arrives. Raises LabError if the VM
        does not boot, dies, or is still at it after `timeout_s` seconds of wall time or when
        `cancelled` is set; the VM is of no use then, and must be closed.
        """
        started = time.monotonic()
        os.killpg(self._process.pid, signal.SIGCONT)
        os.write(self._requests, json.dumps(request).encode() + b"\n")
        answer = bytearray()
        sinks = {self._outputs["stdout"]: stdout, self._outputs["stderr"]: stderr}
        self._pump(sinks | {self._answers: answer.extend}, answer, started + timeout_s, cancelled)
        if answer.endswith(b"\n"):
            self.stop()
            return Exit(wall_s=time.monotonic() - started, **json.loads(answer))
        if cancelled is not None and cancelled.is_set():
            raise LabError("The VM was stopped before its command ended.")
        if self._process.poll() is None:
            raise LabError(
                f"The VM was still running after {timeout_s:.0f} s and was killed. "
                "If the command needs longer, raise --timeout."
            )
        tail = "\n".join(self.console.splitlines()[-15:])
        raise LabError(
            "The VM ended before its command did. Its console's last lines:\n"
            f"{tail}\nRun netnice-lab vm --verbose -- true to see the whole console."
        )

    def _pump(
        self,
        sinks: dict[int, Sink],
        answer: bytearray,
        deadline: float,
        cancelled: threading.Event | None,
    ) -> None:
        """Hand on what arrives until there is an answer, the VM ends, or the time is over."""
        with selectors.DefaultSelector() as selector:
            pidfd = os.pidfd_open(self._process.pid)
            try:
                for fd in (pidfd, *sinks):
                    selector.register(fd, selectors.EVENT_READ)
                while not answer.endswith(b"\n") and (left := deadline - time.monotonic()) > 0:
                    if cancelled is not None and cancelled.is_set():
                        return
                    ready = {key.fd for key, _ in selector.select(min(left, 0.5))}
                    for fd in ready & sinks.keys():
                        if data := os.read(fd, 1 << 16):
                            sinks[fd](data)
                        else:
                            selector.unregister(fd)
                    if pidfd in ready:
                        self._process.wait()
                        break
            finally:
                os.close(pidfd)
        for fd, sink in sinks.items():
            with suppress(BlockingIOError):
                while data := os.read(fd, 1 << 16):
                    sink(data)

    def stop(self) -> None:
        """Let no time pass in it until the next request."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGSTOP)

    def close(self) -> None:
        """End it: virtme-ng and the QEMU below it share a session that we started."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._keeper.kill()
        self._keeper.communicate()
        for fd in (*self._outputs.values(), self._answers, self._requests):
            os.close(fd)
        self._work.cleanup()


def stand_back(pid: int) -> None:
    """Let a process that has begun a session, and all that it starts, take only idle processors.

    A busy host changes nothing in virtual time, and a VM would disturb whatever else runs there.
    """
    os.setpriority(os.PRIO_PROCESS, pid, 19)
    # where the kernel shares out by sessions (sched(7), autogroup), that counts only within one
    with suppress(FileNotFoundError):
        Path(f"/proc/{pid}/autogroup").write_text("19")


def run(
    command: Sequence[str] | str,
    *,
    timeout_s: float,
    stdout: Sink,
    stderr: Sink,
    series: str | None = None,
    memory: str = "1G",
    verbose: bool = False,
    say: Callable[[str], None] = lambda _: None,
) -> Exit:
    """Boot a VM, run `command` in it as root and in this directory, and return how it ended.

    A sequence is run as it is, a string by `sh`; it has the variables NETNICE_*. For the rest see
    `Machine.carry_out`.
    """
    machine = Machine(find_kernel(series, say), memory)
    script = command if isinstance(command, str) else shlex.join(command)
    ours = [f"{k}={shlex.quote(v)}" for k, v in os.environ.items() if k.startswith("NETNICE_")]
    settings = " ".join(["export", *ours] if ours else [])
    try:
        return machine.carry_out(
            {"script": f"{settings}\ncd {shlex.quote(str(Path.cwd()))}\n{script}\n"},
            timeout_s=timeout_s, stdout=stdout, stderr=stderr,
        )  # fmt: skip
    finally:
        if verbose:
            stderr(machine.console.encode())
        machine.close()


def pass_through(stream: IO[bytes]) -> Sink:
    """Return a sink that writes to `stream` at once."""

    def write(data: bytes) -> None:
        stream.write(data)
        stream.flush()

    return write
