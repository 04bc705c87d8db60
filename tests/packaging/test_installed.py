# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""A bare Debian 12 without a compiler installs the .deb, runs a command under it, and removes it.

The tree is debootstrap's, in build/bare: `debootstrap --variant=minbase
--include=libelf1,iproute2,rsync bookworm build/bare`. It stays as it is: what is written goes to
memory. Of apt's sources nothing is asked.
"""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from classes import ALGORITHM, DEFAULT
from leftovers import left_behind, needless
from support import NOBODY, PORT, RECEIVER, Link, call, registered, wait_until
from test_manual import ROOT, run
from test_package import package

BARE = ROOT / "build" / "bare"
PLACE = Path("/run/netnice-bare")
COPY, NEWER = "netnice.deb", "newer.deb"
SIZE = 30_000_000
"""More than the buffers of a connection hold."""
DEVICE = "nnbare0"
ENVIRONMENT = ("PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C", "DEBIAN_FRONTEND=noninteractive")
Bare = Callable[..., str]


def inside(*words: str) -> list[str]:
    """Return what runs a command in the bare tree."""
    return ["env", "-i", *ENVIRONMENT, "chroot", str(PLACE / "root"), *words]


@pytest.fixture
def bare() -> Iterator[Bare]:
    """Return what runs a command in the bare tree, with this kernel's /proc and /sys."""
    upper, work, root = (PLACE / name for name in ("upper", "work", "root"))
    PLACE.mkdir()
    call("mount", "-t", "tmpfs", "none", str(PLACE))
    for folder in (upper, work, root):
        folder.mkdir()
    subprocess.run(["modprobe", "overlay"], check=False)  # built in, or a module
    layers = f"lowerdir={BARE},upperdir={upper},workdir={work}"
    call("mount", "-t", "overlay", "-o", layers, "overlay", str(root))
    for name in ("proc", "sys", "dev"):
        call("mount", "--rbind", f"/{name}", str(root / name))
        call("mount", "--make-rslave", str(root / name))
    shutil.copy(package("deb"), root / "root" / COPY)
    try:
        # without a limit: in virtual time, hours may pass while the tree is read
        yield lambda *words: run(*inside(*words))
    finally:
        call("umount", "--recursive", "--lazy", str(root))
        call("umount", str(PLACE))
        PLACE.rmdir()


@pytest.fixture
def device() -> Iterator[str]:
    """Return a device that packets could be held at."""
    call("ip", "link", "add", DEVICE, "type", "veth", "peer", "name", f"{DEVICE}p")
    call("ip", "link", "set", DEVICE, "up")
    yield DEVICE
    call("ip", "link", "del", DEVICE)


def named() -> list[Path]:
    """Return what was written into the tree that is named after netnice; not the copied package."""
    found = (PLACE / "upper").rglob("*netnice*")
    return [f for f in found if f.name != COPY and not f.is_char_device()]  # one says: removed


def nothing_left() -> None:
    """Wait until nothing of netnice is in the kernel: it frees a control after a grace period."""
    wait_until("nothing of netnice is left", lambda: not left_behind())


def test_a_bare_debian_installs_runs_and_purges_it(bare: Bare, device: str) -> None:
    assert bare("sh", "-c", "command -v gcc clang cc cargo make || true") == ""
    assert named() == []

    bare("apt-get", "install", "-y", "--no-install-recommends", f"/root/{COPY}")
    version = bare("dpkg-query", "-W", "-f", "${Version}", "netnice").partition("-")[0]
    assert bare("netnice", "--version") == f"netnice {version}\n"
    assert bare("sh", "-c", "netnice run -- echo is run 2>/dev/null") == "is run\n"
    wait_until("only what is ready is left", lambda: not needless())

    # what stays, and goes with the package
    bare("netnice", "enable", ALGORITHM)
    assert registered() == {DEFAULT}
    holds = bare("sh", "-c", f"netnice hold {device} >/dev/null 2>&1 && echo holds || true")
    assert ("nnwait" in call("ip", "link")) == (holds == "holds\n")  # a kernel may lack sch_fq

    installed = [PLACE / "root" / f[1:] for f in bare("dpkg", "-L", "netnice").splitlines()]
    assert len([f for f in installed if f.suffix in (".service", ".socket", ".slice")]) == 5
    said = bare("apt-get", "purge", "-y", "netnice")
    assert "cannot" not in said
    assert [f for f in installed if f.is_file()] == []
    nothing_left()
    assert "nnwait" not in call("ip", "link")
    assert "clsact" not in call("tc", "qdisc", "show", "dev", device)
    assert named() == []


FILLS = """
mkdir -p /srv/home /srv/of-root /srv/of-user
head -c 1000000 /dev/urandom >/srv/home/file
echo 'use chroot = no
uid = root
[of-root]
path = /srv/of-root
read only = no
[of-user]
path = /srv/of-user
read only = no' >/srv/rsyncd.conf
"""


@pytest.fixture
def row() -> Iterator[Link]:
    """Make hosts in a row, whose processes share the tree."""
    made = Link()
    yield made
    made.remove()


def test_rsync_of_root_and_of_an_ordinary_user_is_in_the_background(bare: Bare, row: Link) -> None:
    bare("apt-get", "install", "-y", "--no-install-recommends", f"/root/{COPY}")
    bare("sh", "-ec", FILLS)
    serves = ("rsync", "--daemon", "--no-detach", "--config=/srv/rsyncd.conf")
    row.receiver.start(*inside(*serves, f"--address={RECEIVER}", f"--port={PORT}"))
    wait_until("a port", lambda: row.receiver.call("ss", "-Hltn", f"sport = :{PORT}"))
    daemon = row.sender.start(*inside("netnice", "daemon"))
    wait_until("users are served", lambda: "served at" in daemon.errors)
    ordinary = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
    for module, who in (("of-root", ()), ("of-user", ordinary)):
        copies = ("rsync", "-a", "/srv/home/", f"rsync://{RECEIVER}:{PORT}/{module}")
        job = row.sender.start(*inside(*who, "netnice", "run", "--json", "--", *copies))
        job.succeed()
        said = json.loads(job.errors)
        assert (said["control"], said["connections"]) == (DEFAULT, 1)
        assert said["not_governed"] == []
        assert said["bytes_sent"] > 1_000_000
        bare("cmp", "/srv/home/file", f"/srv/{module}/file")
    daemon.popen.terminate()
    assert daemon.status() == 0
    bare("apt-get", "purge", "-y", "netnice")
    nothing_left()
    assert named() == []


def newer(folder: Path) -> None:
    """Put a package into the tree that differs by its version."""
    run("dpkg-deb", "--raw-extract", package("deb"), folder)
    control = folder / "DEBIAN" / "control"
    control.write_text(re.sub("(?m)^(Version: .*)$", r"\1.1", control.read_text()))
    run("dpkg-deb", "--build", folder, PLACE / "root" / "root" / NEWER)


def test_an_upgrade_under_a_transfer_loses_no_byte_and_raises_no_connection(
    bare: Bare, tmp_path: Path
) -> None:
    bare("apt-get", "install", "-y", "--no-install-recommends", f"/root/{COPY}")
    newer(tmp_path / "tree")
    call("ip", "link", "set", "lo", "up")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        sends = f"exec 3<>/dev/tcp/127.0.0.1/{port}; head -c {SIZE} /dev/zero >&3"

        def is_in_the_background() -> bool:
            return f" {DEFAULT} " in call("ss", "-tinOH", f"dport = :{port}")

        # what is not read yet fills the buffers, so that it goes on until it is read
        words = inside("netnice", "run", "--json", "--", "bash", "-c", sends)
        with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as job:
            accepted, _ = listener.accept()
            with accepted:
                assert is_in_the_background()
                bare("apt-get", "install", "-y", "--no-install-recommends", f"/root/{NEWER}")
                assert bare("dpkg-query", "-W", "-f", "${Version}", "netnice").endswith(".1")
                assert is_in_the_background()
                assert sum(map(len, iter(lambda: accepted.recv(1 << 20), b""))) == SIZE
            assert job.stderr is not None
            said = json.loads(job.stderr.read())
        assert job.returncode == 0
        # told by the one that was there before
        assert [w["why"] for w in said["not_governed"]] == ["only_local"]
    wait_until("only what is ready is left", lambda: not needless())
    bare("apt-get", "purge", "-y", "netnice")
    nothing_left()
