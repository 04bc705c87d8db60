# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""A virtual machine with Debian's stock kernel, in virtual time.

QEMU counts instructions (``-icount shift=0``: one guest instruction is one guest nanosecond) and
skips idle time (``sleep=off``). A busy host therefore makes an experiment slower, never different,
and a minute of waiting for packets costs nothing.

The guest sees the host's file system read-only, with a throw-away layer above it. Every access to
it is a round trip to the host during which guest time races ahead: `guest.py` copies whatever it
runs into the guest's memory before it measures.
"""

from __future__ import annotations

import fcntl
import lzma
import os
import re
import selectors
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from . import ROOT, LabError

KERNEL_DIR = ROOT / "build" / "kernel"
PACKAGE = re.compile(r"^linux-image-(6\.1\.0-(\d+)-amd64)-unsigned$")
PORTS = ("stdout", "stderr", "status")

_TOOLS = {
    "qemu-system-x86_64": "apt-get install qemu-system-x86",
    "busybox": "apt-get install busybox-static",
    "file": "apt-get install file",
    "depmod": "apt-get install kmod",
    "dpkg-deb": "run the lab on Debian or Ubuntu, or apt-get install dpkg",
}


@dataclass(frozen=True)
class Kernel:
    """An unpacked kernel: its version as `uname -r` prints it, and the file QEMU boots."""

    version: str
    image: Path


@dataclass(frozen=True)
class Exit:
    """How a command in the VM ended."""

    status: int
    wall_s: float


def require_tools(*names: str) -> None:
    """Raise LabError for the first tool that is missing, with the command that installs it."""
    for name in names or _TOOLS:
        if shutil.which(name) is None and shutil.which(name, path="/usr/sbin:/sbin") is None:
            raise LabError(f"{name} was not found. Install it: {_TOOLS[name]}")


def _vng() -> str:
    """Return virtme-ng's command: the one beside this Python first, else the one in PATH."""
    beside = Path(sys.executable).with_name("vng")
    found = str(beside) if beside.exists() else shutil.which("vng")
    if found is None:
        raise LabError("vng (virtme-ng) was not found. Install it: pip install -e lab")
    return found


def _newest_package() -> str:
    listing = subprocess.run(
        ["apt-cache", "search", "--names-only", r"^linux-image-6\.1\.0-[0-9]*-amd64-unsigned$"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    names = [m for m in map(PACKAGE.match, listing.stdout.split()) if m]
    if not names:
        raise LabError(
            "apt knows no linux-image-6.1.0-*-amd64-unsigned package (Debian 12's kernel). Run "
            "apt-get update with a bookworm source, or put the .deb into "
            f"{KERNEL_DIR.relative_to(ROOT)}/"
        )
    return max(names, key=lambda m: int(m[2]))[0]


def _uncompressed(vmlinuz: Path) -> Path:
    """Write the ELF image held by `vmlinuz`: booting it spares the emulator the unpacking."""
    elf = vmlinuz.with_name(vmlinuz.name.replace("vmlinuz", "vmlinux"))
    packed = vmlinuz.read_bytes()
    start = packed.find(b"\xfd7zXZ\0")
    if start < 0:
        raise LabError(f"{vmlinuz} holds no xz-compressed kernel. Delete {KERNEL_DIR} and retry.")
    # A decompressor object stops at the end of the stream; what follows in the file is not xz.
    elf.write_bytes(lzma.LZMADecompressor(lzma.FORMAT_XZ).decompress(packed[start:]))
    return elf


def _unpack(deb: Path, into: Path) -> None:
    subprocess.run(["dpkg-deb", "-x", str(deb), str(into)], check=True)
    (vmlinuz,) = (into / "boot").glob("vmlinuz-*")
    _uncompressed(vmlinuz)
    version = vmlinuz.name.removeprefix("vmlinuz-")
    subprocess.run(["depmod", "-b", str(into), version], check=True, env=_env())


def _env() -> dict[str, str]:
    """Return the environment with virtme-ng's and the administrator's tools in PATH."""
    return os.environ | {
        "PATH": f"{Path(_vng()).parent}:{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    }


def find_kernel(say: Callable[[str], None] = lambda _: None) -> Kernel:
    """Return the newest unpacked kernel below build/kernel; download and unpack one if none is.

    Raises LabError if apt has no such package, cannot download it, or it cannot be unpacked.
    """
    require_tools()
    KERNEL_DIR.mkdir(parents=True, exist_ok=True)
    # Two labs started at once must not unpack over each other.
    with (KERNEL_DIR / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        images = sorted(KERNEL_DIR.glob("6.1.0-*-amd64/boot/vmlinux-*"), key=_release)
        if not images:
            debs = sorted(KERNEL_DIR.glob("linux-image-6.1.0-*.deb"), key=_release)
            deb = debs[-1] if debs else _download(say)
            say(f"unpacking {deb.name}")
            with tempfile.TemporaryDirectory(dir=KERNEL_DIR) as temporary:
                unpacked = Path(temporary) / "x"
                try:
                    _unpack(deb, unpacked)
                except (subprocess.CalledProcessError, ValueError, lzma.LZMAError) as error:
                    raise LabError(
                        f"{deb} cannot be unpacked ({error}). Delete it and run again."
                    ) from error
                (image,) = (unpacked / "boot").glob("vmlinux-*")
                version = image.name.removeprefix("vmlinux-")
                unpacked.rename(KERNEL_DIR / version)
            images = [KERNEL_DIR / version / "boot" / f"vmlinux-{version}"]
    return Kernel(images[-1].name.removeprefix("vmlinux-"), images[-1])


def _release(path: Path) -> int:
    found = re.search(r"6\.1\.0-(\d+)", path.name)
    return int(found[1]) if found else -1


def _download(say: Callable[[str], None]) -> Path:
    package = _newest_package()
    say(f"downloading {package} (about 70 MB)")
    got = subprocess.run(
        ["apt-get", "download", package], cwd=KERNEL_DIR, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    debs = sorted(KERNEL_DIR.glob(f"{package}_*.deb"))
    if got.returncode != 0 or not debs:
        raise LabError(
            f"apt-get download {package} failed: {got.stderr.strip() or 'no file arrived'}. "
            "Run apt-get update and try again."
        )
    return debs[-1]


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
    vng = _vng()
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
                    vng, "--verbose", "--run", str(kernel.image), "--force-9p", "--disable-kvm",
                    "--cpus", "1", "--memory", memory, f"--qemu-opts={' '.join(options)}",
                    "--exec", f"sh {shlex.quote(str(work / 'boot.sh'))} "
                              f"{shlex.quote(str(work / 'command.sh'))}",
                ],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=_env(),
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
