# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Debian's kernels: found with apt, downloaded and unpacked once, below build/kernel."""

from __future__ import annotations

import fcntl
import lzma
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from .. import ROOT, LabError

KERNEL_DIR = ROOT / "build" / "kernel"
PACKAGE = re.compile(r"^linux-image-(6\.1\.0-(\d+)-amd64)-unsigned$")

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


def require_tools(*names: str) -> None:
    """Raise LabError for the first tool that is missing, with the command that installs it."""
    for name in names or _TOOLS:
        if shutil.which(name) is None and shutil.which(name, path="/usr/sbin:/sbin") is None:
            raise LabError(f"{name} was not found. Install it: {_TOOLS[name]}")


def vng() -> str:
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
    subprocess.run(["depmod", "-b", str(into), version], check=True, env=environment())


def environment() -> dict[str, str]:
    """Return the environment with virtme-ng's and the administrator's tools in PATH."""
    return os.environ | {
        "PATH": f"{Path(vng()).parent}:{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
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
