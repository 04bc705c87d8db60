# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""A real systemd for tests: one of its own, in namespaces, on a copy of this system.

What it writes goes to memory. It needs systemd, libpam-systemd and dbus-user-session; udev, where
devices have units.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from support import cgroup_root, wait_until
from test_manual import ROOT, run

PLACE = Path("/run/netnice-systemd")
CGROUP = cgroup_root() / f"netnice-test-{os.getpid()}"
UID = 1234

# The first process of its PID namespace; where it is in the cgroups becomes their root.
BEGINS = f"""
echo $$ >{CGROUP}/cgroup.procs
exec unshare --mount --pid --cgroup --uts --ipc --net --fork --kill-child sh -ec '
    mount -t tmpfs none {PLACE}
    mkdir {PLACE}/upper {PLACE}/work {PLACE}/root
    mount -t overlay -o lowerdir=/,upperdir={PLACE}/upper,workdir={PLACE}/work overlay {PLACE}/root
    cd {PLACE}/root
    mount -t proc proc proc
    mount -t sysfs sysfs sys
    mount -t cgroup2 none sys/fs/cgroup
    mount --bind /dev dev
    mount -t tmpfs none run
    mount -t tmpfs none tmp
    mount --bind {ROOT} mnt
    make -C mnt --silent install BIN=target/release DESTDIR=$PWD PREFIX=/usr
    echo user:x:{UID}:{UID}::/tmp:/bin/sh >>etc/passwd
    echo user:*:19000:0:99999:7::: >>etc/shadow
    rm -rf etc/systemd/system/*.wants
    : >etc/fstab
    exec env -i container=test PATH=/usr/sbin:/usr/bin:/sbin:/bin \\
        chroot . /usr/lib/systemd/systemd --system --unit=basic.target'
"""
Inside = Callable[..., str]


@contextmanager
def systemd() -> Iterator[Inside]:
    """Give what runs a command there."""
    PLACE.mkdir()
    CGROUP.mkdir()
    init = CGROUP / "init.scope" / "cgroup.procs"
    process = subprocess.Popen(["sh", "-ec", BEGINS], stdout=subprocess.DEVNULL)
    try:
        wait_until("systemd begins", lambda: init.exists() and init.read_text())
        first = init.read_text().split()[0]
        enter = ["nsenter", f"--target={first}", "--all", "--root", "--wd"]
        runs = [*enter, "systemctl", "is-system-running"]
        wait_until("systemd runs", lambda: said(*runs) == "running\n")
        # what started it: where a process is, systemd can hand no controllers down
        for pid in (CGROUP / "cgroup.procs").read_text().split():
            (CGROUP.parent / "cgroup.procs").write_text(pid)
        yield lambda *words: run(*enter, *words)
    finally:
        process.kill()  # and with it all that is there
        process.wait()
        events = CGROUP / "cgroup.events"
        wait_until("its processes end", lambda: "populated 0" in events.read_text())
        for folder in sorted(CGROUP.rglob("*/"), reverse=True):
            folder.rmdir()
        CGROUP.rmdir()
        PLACE.rmdir()


def said(*words: str) -> str:
    """Return what a command says, however it ends."""
    return subprocess.run(words, capture_output=True, text=True, check=False).stdout
