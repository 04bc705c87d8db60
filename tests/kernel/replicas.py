# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""A source, its copies, and `netnice replicate` between them."""

from __future__ import annotations

import hashlib
import json
import os
import time
from contextlib import suppress
from pathlib import Path

from shells import listening
from support import (
    PATIENCE_S,
    RECEIVER,
    Json,
    Link,
    Process,
    call,
    wait_until,
)

RSYNC_PORT = 8730
NOBODYS = "10.0.2.99"
LONG_S = 1800.0
"""For copies that are large: a slow disk fails nothing."""
SETTLED_S = 3
"""Longer than a batch of changes waits for its end, and its state to be stored, together."""


Tree = dict[str, tuple[int, int, object]]


def tree(root: Path) -> Tree:
    """Return mode, time and content of everything below `root`, by path."""
    found: Tree = {}
    for path in root.rglob("*"):
        status = path.lstat()
        content: object = None
        if path.is_symlink():
            content = path.readlink()
        elif path.is_file():
            content = hashlib.sha256(path.read_bytes()).hexdigest()
        kept = 0 if content is None else status.st_mtime_ns  # a directory's may lag
        found[str(path.relative_to(root))] = (status.st_mode, kept, content)
    return found


def same(copy: Path, source: Path) -> bool:
    """Whether a copy that may change meanwhile is the same as its source."""
    try:
        return tree(copy) == tree(source)
    except FileNotFoundError:
        return False


class Setting:
    """A source, a directory for copies, and the state of jobs."""

    def __init__(self, link: Link, directory: Path) -> None:
        """Make the directories."""
        self.link = link
        self.directory = directory
        self.source = directory / "source"
        self.copies = directory / "copies"
        self.state = directory / "state"
        self.source.mkdir()
        self.copies.mkdir()

    def daemon(self, more: str = "") -> Process:
        """Serve each directory of `copies` by an rsync daemon at the receiver.

        `more` is for all of its configuration.
        """
        config = self.directory / "rsyncd.conf"
        modules = "".join(
            f"[{path.name}]\npath = {path}\nread only = no\n" for path in self.copies.iterdir()
        )
        config.write_text(
            "use chroot = no\nmunge symlinks = no\nuid = root\ngid = root\n"
            f"log file = {self.directory}/log\n{more}{modules}"
        )
        process = self.link.receiver.start(
            "rsync", "--daemon", "--no-detach", f"--config={config}",
            f"--address={RECEIVER}", f"--port={RSYNC_PORT}",
        )  # fmt: skip
        listening(self.link.receiver, RSYNC_PORT)
        return process

    def copy(self, name: str = "copy") -> Path:
        """Make an empty directory for a copy."""
        path = self.copies / name
        path.mkdir()
        return path

    def command(self) -> tuple[str, ...]:
        """Return `netnice replicate` with the state's place."""
        return ("netnice", "replicate", "--state", str(self.state))

    def replicate(self, *arguments: str, under: tuple[str, ...] = ()) -> Process:
        """Start `netnice replicate` at the sender."""
        return self.link.sender.start(*under, *self.command(), *arguments)

    def run(self, *arguments: str, status: int = 0, timeout_s: float = PATIENCE_S) -> str:
        """Run `netnice replicate` to its end; return what it said."""
        process = self.replicate(*arguments)
        ended = process.status(timeout_s)
        assert ended == status, f"{process}: {ended}: {process.errors}"
        return process.errors

    def jobs(self) -> list[Json]:
        """Return the status of all jobs that were stored."""
        found: list[Json] = json.loads(
            call("netnice", "replicate", "status", "--json", "--state", str(self.state))
        )
        return found

    def status(self) -> Json:
        """Return the only job's status."""
        (job,) = self.jobs()
        return job

    def states(self) -> list[str]:
        """Return the states of all destinations of all jobs."""
        return [d["state"] for job in self.jobs() for d in job["destinations"]]

    def settle(self) -> None:
        """Wait until nothing was being copied, nor waited to be, for SETTLED_S.

        Files are complete before their transfer is, and changes are stored late.
        """
        calm_since = time.monotonic()

        def calm() -> bool:
            nonlocal calm_since
            rows = [d for job in self.jobs() for d in job["destinations"]]
            if any(d["state"] != "current" or d["lag"] for d in rows):
                calm_since = time.monotonic()
            return time.monotonic() - calm_since > SETTLED_S

        wait_until("calm", calm)


def at(name: str = "copy") -> str:
    """Return the place of a copy, served by the daemon."""
    return f"rsync://{RECEIVER}:{RSYNC_PORT}/{name}/"


def fill(source: Path, hole: int = 500_000) -> None:
    """Make files of every kind that a copy may get wrong, one with a hole of so many bytes."""
    (source / "dir").mkdir()
    # the third one is a byte that is no UTF-8
    for name in ("plain", "dir/two\nlines", "dir/latin-\udce9", " blank -e", "dir/-rf"):
        (source / name).write_bytes(os.urandom(5000))
    plain = source / "plain"
    plain.chmod(0o640)
    os.utime(plain, ns=(1, 4_102_444_800_123_456_789))  # in 2100: somebody's clock
    (source / "dir" / "linked").hardlink_to(plain)
    (source / "link").symlink_to("dir/nowhere")
    # rsync leaves the time of a link alone whose copy was made in the same second
    os.utime(source / "link", ns=(1, 1_000_000_000_123_456_789), follow_symlinks=False)
    with (source / "sparse").open("wb") as file:
        file.seek(hole)
        file.write(b"end")


def received(copy: Path) -> int:
    """Return how many bytes of files are in a copy."""
    size = 0
    for directory, _, names in os.walk(copy):
        for name in names:
            with suppress(FileNotFoundError):  # rsync renames it just now
                size += (Path(directory) / name).lstat().st_size
    return size


def end(process: Process) -> str:
    """End a watch in order, perhaps with a transfer under way; return what it said."""
    process.popen.terminate()
    assert process.status() in (0, 3), process.errors
    return process.errors


def under_way(setting: Setting, mbit: float, part: float) -> tuple[int, Path, Process]:
    """Start to copy a file, and return its size, the copy and the process once a part is there."""
    size = 6_000_000
    (setting.source / "file").write_bytes(os.urandom(size))
    setting.link.limit(mbit, 50)
    copy = setting.copy()
    setting.daemon()
    process = setting.replicate(f"{setting.source}/", at())
    wait_until(f"{part} of the file", lambda: received(copy) > size * part)
    return size, copy, process
