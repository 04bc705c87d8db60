# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Debian's kernels: found with apt, downloaded and unpacked once, below build/kernel."""

from __future__ import annotations

import fcntl
import lzma
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from .. import ROOT, LabError

KERNEL_DIR = ROOT / "build" / "kernel"
SERIES = {"6.1": r"6\.1\.0-(\d+)-amd64", "6.12": r"6\.12\.(\d+)\+deb12-amd64"}
"""Kernels of Debian 12 as `uname -r` prints them; the number in parentheses grows with releases."""
DEFAULT = "6.1"

_TOOLS = {
    "qemu-system-x86_64": "apt-get install qemu-system-x86",
    "busybox": "apt-get install busybox-static",
    "file": "apt-get install file",
    "depmod": "apt-get install kmod",
    "zstd": "apt-get install zstd",
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


def _newest_package(series: str) -> str:
    listing = subprocess.run(
        ["apt-cache", "search", "--names-only", "^linux-image-.*-amd64-unsigned$"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    name = re.compile(f"^(linux-image-{SERIES[series]}-unsigned) ", re.MULTILINE)
    if not (found := list(name.finditer(listing.stdout))):
        raise LabError(
            f"apt knows no package of Debian 12's Linux {series}. Run apt-get update with the "
            "sources bookworm and bookworm-security, or put the .deb of linux-image-"
            f"{series}.*-amd64-unsigned into {KERNEL_DIR.relative_to(ROOT)}/"
        )
    return max(found, key=lambda m: int(m[2]))[1]


def _uncompressed(vmlinuz: Path) -> Path:
    """Write the ELF image held by `vmlinuz`: booting it spares the emulator the unpacking.

    Where it is in the file, and compressed how: the kernel's Documentation/arch/x86/boot.rst.
    """
    elf = vmlinuz.with_name(vmlinuz.name.replace("vmlinuz", "vmlinux"))
    image = vmlinuz.read_bytes()
    offset, length = struct.unpack_from("<II", image, 0x248)
    begin = 512 * (image[0x1F1] + 1) + offset
    packed = image[begin : begin + length]
    if packed.startswith(b"\xfd7zXZ\0"):
        # A decompressor object stops at the end of the stream; what follows is its length.
        elf.write_bytes(lzma.LZMADecompressor(lzma.FORMAT_XZ).decompress(packed))
    elif packed.startswith(b"\x28\xb5\x2f\xfd"):
        with elf.open("wb") as out:
            subprocess.run(["zstd", "-dc"], input=packed[:-4], stdout=out, check=True)
    else:
        raise ValueError("it is compressed neither by xz nor by zstd")
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


def find_kernel(series: str | None = None, say: Callable[[str], None] = lambda _: None) -> Kernel:
    """Return the newest unpacked kernel of a series; download and unpack one if there is none.

    Raises LabError if apt has no such package, cannot download it, or it cannot be unpacked.
    """
    series = series or DEFAULT
    if series not in SERIES:
        raise LabError(f"There is no Linux {series} in the lab. It has: {', '.join(SERIES)}.")
    require_tools()
    KERNEL_DIR.mkdir(parents=True, exist_ok=True)
    # Two labs started at once must not unpack over each other.
    with (KERNEL_DIR / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (found := _newest("vmlinux-", KERNEL_DIR.glob("*/boot/vmlinux-*"), series)):
            deb = _newest("linux-image-", KERNEL_DIR.glob("*.deb"), series) or _download(
                series, say
            )
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
            found = KERNEL_DIR / version / "boot" / f"vmlinux-{version}"
    return Kernel(found.name.removeprefix("vmlinux-"), found)


def _newest(prefix: str, files: Iterable[Path], series: str) -> Path | None:
    """Return the file of the last release of a series, or None."""
    found = [(m, f) for f in files if (m := re.match(prefix + SERIES[series], f.name))]
    return max(found, key=lambda pair: int(pair[0][1]))[1] if found else None


def _download(series: str, say: Callable[[str], None]) -> Path:
    package = _newest_package(series)
    say(f"downloading {package} (about 100 MB)")
    got = subprocess.run(
        ["apt-get", "download", package], cwd=KERNEL_DIR, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    deb = _newest("linux-image-", KERNEL_DIR.glob("*.deb"), series)
    if got.returncode != 0 or deb is None:
        raise LabError(
            f"apt-get download {package} failed: {got.stderr.strip() or 'no file arrived'}. "
            "Run apt-get update and try again."
        )
    return deb
