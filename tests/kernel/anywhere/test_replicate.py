# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""`netnice replicate`: every copy is complete, whatever happens, and nothing half-written shows."""

from __future__ import annotations

import hashlib
import json
import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from sizes import sized
from support import (
    MEMORY,
    PATIENCE_S,
    RECEIVER,
    Json,
    Link,
    Namespace,
    Process,
    call,
    flows,
    wait_until,
)

RSYNC_PORT = 8730
SSH_PORT = 2222
SSHD = "/usr/sbin/sshd"
ROUTER = "10.0.2.254"
"""The router, as the receiver reaches it."""
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

    def daemon(self) -> Process:
        """Serve each directory of `copies` by an rsync daemon at the receiver."""
        config = self.directory / "rsyncd.conf"
        modules = "".join(
            f"[{path.name}]\npath = {path}\nread only = no\n" for path in self.copies.iterdir()
        )
        config.write_text(
            "use chroot = no\nmunge symlinks = no\nuid = root\ngid = root\n"
            f"log file = {self.directory}/log\n{modules}"
        )
        process = self.link.receiver.start(
            "rsync", "--daemon", "--no-detach", f"--config={config}",
            f"--address={RECEIVER}", f"--port={RSYNC_PORT}",
        )  # fmt: skip
        self.listening(self.link.receiver, RSYNC_PORT)
        return process

    @staticmethod
    def listening(namespace: Namespace, port: int) -> None:
        """Wait until a port is open."""
        wait_until(f"port {port}", lambda: namespace.call("ss", "-Hltn", f"sport = :{port}"))

    def copy(self, name: str = "copy") -> Path:
        """Make an empty directory for a copy."""
        path = self.copies / name
        path.mkdir()
        return path

    def replicate(self, *arguments: str, under: tuple[str, ...] = ()) -> Process:
        """Start `netnice replicate` at the sender."""
        return self.link.sender.start(
            *under, "netnice", "replicate", "--state", str(self.state), *arguments
        )

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


@pytest.fixture
def setting(link: Link, tmp_path: Path) -> Iterator[Setting]:
    """Make a source and a place for copies."""
    yield Setting(link, tmp_path)


def at(name: str = "copy") -> str:
    return f"rsync://{RECEIVER}:{RSYNC_PORT}/{name}/"


def fill(source: Path) -> None:
    """Make files of every kind that a copy may get wrong."""
    (source / "dir").mkdir()
    # the third one is a byte that is no UTF-8
    for name in ("plain", "dir/two\nlines", "dir/latin-\udce9", " blank -e", "dir/-rf"):
        (source / name).write_bytes(os.urandom(5000))
    plain = source / "plain"
    plain.chmod(0o640)
    os.utime(plain, ns=(1, 4_102_444_800_123_456_789))  # in 2100: somebody's clock
    (source / "dir" / "linked").hardlink_to(plain)
    (source / "link").symlink_to("dir/nowhere")
    with (source / "sparse").open("wb") as file:
        file.seek(50_000_000)
        file.write(b"end")


def test_copies_are_the_same_in_content_names_times_links_and_holes(setting: Setting) -> None:
    fill(setting.source)
    first, second, local = setting.copy("first"), setting.copy("second"), setting.copy("local")
    setting.daemon()
    setting.run("--verify", f"{setting.source}/", at("first"), at("second"), f"{local}/")
    for copy in (first, second, local):
        assert tree(copy) == tree(setting.source)
        assert (copy / "plain").samefile(copy / "dir" / "linked")
        # 50 MB of zeros: a copy without holes would have 97,657 blocks of 512 bytes
        assert (copy / "sparse").stat().st_blocks < 1000
    assert setting.states() == ["current"] * 3


def test_transfers_are_in_the_background(setting: Setting) -> None:
    (setting.source / "file").write_bytes(os.urandom(4_000_000))
    setting.link.limit(20, 50)
    setting.copy()
    setting.daemon()
    process = setting.replicate(f"{setting.source}/", at())
    seen = wait_until(
        "a background connection",
        lambda: [f for f in flows() if f["remote"] == f"{RECEIVER}:{RSYNC_PORT}"],
    )
    assert {f["control"] for f in seen} == {"nn_nice"}
    process.succeed()


def test_only_delete_removes_what_the_source_lacks(setting: Setting) -> None:
    (setting.source / "file").write_text("new")
    copy = setting.copy()
    (copy / "old").write_text("old")
    setting.daemon()
    setting.run(f"{setting.source}/", at())
    assert sorted(p.name for p in copy.iterdir()) == ["file", "old"]
    setting.run("--delete", f"{setting.source}/", at())
    assert [p.name for p in copy.iterdir()] == ["file"]


def test_what_verify_finds_is_mended(setting: Setting) -> None:
    copy = setting.copy()
    for path in (setting.source / "file", copy / "file"):
        path.write_text(f"{path.parent.name:10}")
        os.utime(path, (1, 1))  # same size and time: a quick look sees no difference
    setting.daemon()
    said = setting.run("--verify", f"{setting.source}/", at())
    assert "1 copied paths differ from the source: file" in said
    assert tree(copy) == tree(setting.source)


def test_an_unreachable_destination_fails_alone_and_is_named(setting: Setting) -> None:
    fill(setting.source)
    copy = setting.copy()
    setting.daemon()
    said = setting.run(
        "--retries", "1", f"{setting.source}/", f"rsync://{NOBODYS}/copy/", at(), status=3
    )
    assert tree(copy) == tree(setting.source)
    assert "1 of 2 destinations current" in said
    failed = setting.status()["destinations"][0]
    assert (failed["state"], failed["attempts"], failed["lag"] > 0) == ("failed", 2, True)
    assert "the connection failed" in failed["error"] and NOBODYS in failed["error"]


def test_a_destination_that_comes_back_is_served(setting: Setting) -> None:
    fill(setting.source)
    copy = setting.copy()
    process = setting.replicate(f"{setting.source}/", at())
    wait_until(
        "a failed attempt", lambda: setting.state.exists() and "retrying" in setting.states()
    )
    setting.daemon()
    process.succeed()
    assert tree(copy) == tree(setting.source)


def test_a_destination_that_goes_away_in_a_copy_and_comes_back_is_served(setting: Setting) -> None:
    _, copy, process = under_way(setting, mbit=20, part=0.3)
    setting.link.receiver.clear()
    wait_until("a failed attempt", lambda: "retrying" in setting.states())
    assert not (copy / "file").exists()
    setting.daemon()
    process.succeed()
    assert (copy / "file").read_bytes() == (setting.source / "file").read_bytes()


def test_two_runs_of_a_job_exclude_each_other(setting: Setting) -> None:
    (setting.source / "file").write_bytes(os.urandom(4_000_000))
    setting.link.limit(5, 50)
    setting.copy()
    setting.daemon()
    first = setting.replicate(f"{setting.source}/", at())
    wait_until("a transfer", lambda: "copying" in setting.states())
    said = setting.run(f"{setting.source}/", at(), status=1)
    assert f"by process {first.pid} already" in said
    assert setting.status()["pid"] == first.pid
    setting.run("--job", "another", f"{setting.source}/", f"{setting.directory}/elsewhere/")
    first.popen.terminate()
    assert first.status() == 3
    assert "interrupted" in first.errors


def received(copy: Path) -> int:
    return sum(p.stat().st_size for p in copy.rglob("*") if p.is_file())


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


def test_an_interrupted_run_goes_on_where_it_ended(setting: Setting) -> None:
    size, copy, process = under_way(setting, mbit=5, part=0.5)
    process.popen.terminate()
    assert process.status() == 3
    assert not (copy / "file").exists()
    wait_until("the partial file", (copy / ".netnice-partial" / "file").exists)
    before = setting.status()["destinations"][0]["bytes"]
    setting.run(f"{setting.source}/", at())
    assert tree(copy) == tree(setting.source)
    # half of it is there, less what was on its way and what rsync needs to compare
    assert setting.status()["destinations"][0]["bytes"] - before < size * 0.6


def test_what_a_killed_run_left_is_ended_by_the_next_one(setting: Setting) -> None:
    _, copy, process = under_way(setting, mbit=2, part=0.1)
    process.popen.kill()
    process.popen.wait(PATIENCE_S)
    job = setting.status()
    assert (job["pid"], job["destinations"][0]["state"]) == (None, "waiting")
    left = call("ip", "netns", "pids", setting.link.sender.name).split()
    assert left, "24 s of transfer are left, but nothing that sends"
    setting.link.limit(20, 50)
    setting.run(f"{setting.source}/", at())
    # the receiver of what was ended may put its part aside while the next one copies
    copied = {k: v for k, v in tree(copy).items() if not k.startswith(".netnice-partial")}
    assert copied == tree(setting.source)
    assert not any(Path(f"/proc/{pid}").exists() for pid in left)


def test_kills_on_either_side_lose_nothing_and_show_nothing_half_written(
    setting: Setting,
) -> None:
    rng = random.Random(8)
    contents = {f"file-{i}": os.urandom(400_000) for i in range(40)}
    for name, content in contents.items():
        (setting.source / name).write_bytes(content)
    setting.link.limit(20, 50)
    copy = setting.copy()
    setting.daemon()

    def whole_or_absent() -> None:
        for path in copy.glob("file-*"):
            assert path.read_bytes() == contents[path.name], f"{path.name} is half written"

    for _ in range(sized(15, 50)):
        process = setting.replicate(f"{setting.source}/", at())
        time.sleep(rng.uniform(0.1, 0.8))  # any moment of its life
        if rng.random() < 0.5:
            process.popen.kill()
        else:
            receivers = subprocess.run(
                ["pgrep", "-f", f"rsync --daemon.*{setting.directory}"],
                capture_output=True, text=True, check=False,
            ).stdout.split()  # fmt: skip
            for pid in receivers[1:]:  # the first one listens
                with suppress(ProcessLookupError):  # it may end just now
                    os.kill(int(pid), signal.SIGKILL)
            process.popen.send_signal(rng.choice([signal.SIGTERM, signal.SIGKILL]))
        process.popen.wait(PATIENCE_S)
        whole_or_absent()
    setting.run("--delete", "--verify", f"{setting.source}/", at())
    assert tree(copy) == tree(setting.source)


def test_a_full_disk_is_named_and_harms_nothing(setting: Setting) -> None:
    (setting.source / "file").write_bytes(os.urandom(3_000_000))
    copy = setting.copy()
    call("mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(copy))
    try:
        setting.daemon()
        said = setting.run("--retries", "0", f"{setting.source}/", at(), status=3)
        assert "No space left on device" in said
        assert not (copy / "file").exists()
        call("mount", "-o", "remount,size=8m", str(copy))
        setting.run(f"{setting.source}/", at())
        assert tree(copy) == tree(setting.source)
    finally:
        setting.link.receiver.clear()
        call("umount", str(copy))


def test_many_small_files_are_copied(setting: Setting) -> None:
    for i in range(sized(20, 200)):
        directory = setting.source / f"dir-{i}"
        directory.mkdir()
        for k in range(1000):
            (directory / f"file-{k}").write_text(f"{i} {k}")
    copy = setting.copy()
    setting.daemon()
    setting.run(f"{setting.source}/", at(), timeout_s=LONG_S)
    assert tree(copy) == tree(setting.source)


def test_a_large_file_is_copied(setting: Setting) -> None:
    size = sized(300_000_000, 5_000_000_000)
    with (setting.source / "large").open("wb") as large:
        large.truncate(size)
        for place in range(0, size, 100_000_000):  # holes between, to spare the disk
            large.seek(place)
            large.write(os.urandom(100_000))
    copy = setting.copy()
    setting.daemon()
    setting.run(f"{setting.source}/", at(), timeout_s=LONG_S)
    call("cmp", str(setting.source / "large"), str(copy / "large"))


def test_clocks_that_disagree_hide_no_change(setting: Setting) -> None:
    """Times in the future, before any copy, and going back: netnice compares no clocks."""
    names = {"of-2100": 4102444800, "of-1970": 86400, "of-now": int(time.time())}
    for name, seconds in names.items():
        (setting.source / name).write_text("first")
        os.utime(setting.source / name, (seconds, seconds))
    copy = setting.copy()
    setting.daemon()
    setting.run(f"{setting.source}/", at())
    assert tree(copy) == tree(setting.source)
    for name, seconds in names.items():
        (setting.source / name).write_text("later")  # of the same size
        os.utime(setting.source / name, (seconds - 3600, seconds - 3600))
    setting.run(f"{setting.source}/", at())
    assert tree(copy) == tree(setting.source)
    # a writer with a bad clock may give a change the time of what it replaced: that --verify finds
    earlier = (setting.source / "of-now").stat().st_mtime_ns
    (setting.source / "of-now").write_text("third")
    os.utime(setting.source / "of-now", ns=(earlier, earlier))
    setting.run("--verify", f"{setting.source}/", at())
    assert tree(copy) == tree(setting.source)


def test_files_deleted_while_they_are_copied_fail_nothing(setting: Setting) -> None:
    for i in range(40):
        (setting.source / f"file-{i:02}").write_bytes(os.urandom(100_000))
    setting.link.limit(8, 50)
    copy = setting.copy()
    setting.daemon()
    process = setting.replicate(f"{setting.source}/", at())
    wait_until("the first files", (copy / "file-02").exists)
    for i in range(20, 40):
        (setting.source / f"file-{i:02}").unlink()
    changed = setting.source / "file-19"
    listed = changed.stat().st_mtime_ns
    changed.write_text("changed")
    # in the second of the time that rsync listed, and will give to what it reads only now
    os.utime(changed, ns=(listed, listed ^ 1))
    assert process.status() == 0, process.errors
    assert tree(copy) == tree(setting.source)


def test_watch_keeps_the_copy_current(setting: Setting) -> None:
    fill(setting.source)
    copy = setting.copy()
    setting.daemon()
    process = setting.replicate("--watch", "--delete", f"{setting.source}/", at())

    def current() -> bool:
        return same(copy, setting.source)

    wait_until("the first copy", current)
    (setting.source / "deep" / "er").mkdir(parents=True)
    (setting.source / "deep" / "er" / "file").write_text("new")
    (setting.source / "dir" / "-rf").unlink()
    (setting.source / " blank -e").rename(setting.source / "deep" / "moved")
    wait_until("files, directories, deletions and names", current)
    growing = (setting.source / "growing").open("wb")
    for _ in range(20):
        growing.write(os.urandom(100_000))
        growing.flush()
        time.sleep(0.1)  # changed while it is copied
    growing.close()
    wait_until("the last state of a growing file", current)
    setting.settle()
    process.popen.terminate()
    assert process.status() == 0


def test_watch_looks_through_everything_after_an_overflow(setting: Setting) -> None:
    directories = [setting.source / f"dir-{i}" for i in range(10)]
    for directory in directories:
        directory.mkdir()
    copy = setting.copy()
    setting.daemon()
    limit = Path("/proc/sys/fs/inotify/max_queued_events")
    usual = limit.read_text()
    limit.write_text("16")  # read when the watch begins
    try:
        process = setting.replicate("--watch", f"{setting.source}/", at())
        wait_until("the first copy", lambda: same(copy, setting.source))
        wait_until("the watch", lambda: setting.states() == ["current"])
    finally:
        limit.write_text(usual)
    process.popen.send_signal(signal.SIGSTOP)
    for i in range(200):  # far more events than the queue holds
        (directories[i % 10] / f"file-{i}").write_text(str(i))
    process.popen.send_signal(signal.SIGCONT)
    wait_until("all files", lambda: same(copy, setting.source))
    setting.settle()
    process.popen.terminate()
    assert process.status() == 0


def test_many_destinations_most_of_them_down_are_bounded(setting: Setting) -> None:
    count = sized(300, 2000)
    (setting.source / "file").write_text("x")
    places = [f"rsync://{RECEIVER}:{RSYNC_PORT - 1}/down-{i}/" for i in range(count - 10)]
    for i in range(10):
        setting.copy(f"up-{i}")
        places.insert(count // 10 * i, at(f"up-{i}"))
    setting.daemon()
    hosts = setting.directory / "hosts"
    hosts.write_text("\n".join(places))
    process = setting.replicate("--retries", "0", "--to", str(hosts), f"{setting.source}/")
    wait_until("the state", lambda: len(setting.states()) == count)
    most_files = most_kb = 0
    answers = 0
    while not process.ended():
        assert len(setting.states()) == count
        answers += 1
        with suppress(OSError, IndexError):  # it may end just now
            most_files = max(most_files, len(list(Path(f"/proc/{process.pid}/fd").iterdir())))
            memory = Path(f"/proc/{process.pid}/status").read_text()
            most_kb = max(most_kb, int(memory.split("VmRSS:")[1].split()[0]))
        time.sleep(0.2)
    assert process.status() == 3
    assert setting.states().count("current") == 10
    print(f"\n{most_files} files, {most_kb} kB, {answers} answers")
    # 64 processes with three pipes each, and a few dozen of its own
    assert 0 < most_files <= 64 * 3 + 64
    assert 0 < most_kb <= 64_000
    # a status that waited for the job would be one
    assert answers > 5


# --- shares -------------------------------------------------------------------

JOB = "both"


def of_group() -> Json:
    """Return what `netnice status` says of the job's group; nothing while there is none."""
    done = subprocess.run(
        ["netnice", "status", "--group", JOB, "--seconds", "0.1", "--json"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return json.loads(done.stdout) if done.returncode == 0 else None


def shared(setting: Setting, megabytes: int, *options: str) -> tuple[Path, Path, Process]:
    """Start to copy a file to `one` and to `four`, over 20 Mbit/s."""
    (setting.source / "file").write_bytes(os.urandom(megabytes * 1_000_000))
    setting.link.limit(20, 50)
    one, four = setting.copy("one"), setting.copy("four")
    setting.daemon()
    process = setting.replicate("--job", JOB, *options, f"{setting.source}/", at("one"), at("four"))
    return one, four, process


def test_destinations_have_what_their_shares_are_worth(setting: Setting) -> None:
    # of an algorithm that fills a link without a round-trip time, as in test_groups.py
    size = 100_000_000
    options = ("--algorithm", "reno", "--share", f"{at('four')}=4")
    one, four, process = shared(setting, size // 1_000_000, *options)
    # the one that starts first fills the queue; what the other says at first is lost for seconds
    wait_until("both transfers", lambda: min(received(one), received(four)) > 500_000)
    found = of_group()
    assert (found["scope"], found["algorithm"]) == ("all", "reno")
    assert sorted(r["share"] for r in found["runs"]) == [1, 4]
    rows = {d["place"]: d["share"] for d in setting.status()["destinations"]}
    assert rows == {at("one"): 1, at("four"): 4}
    table = call("netnice", "replicate", "status", "--state", str(setting.state))
    assert "share" in table.splitlines()[1], table

    def divided() -> bool:
        before = (received(one), received(four))
        time.sleep(4)
        small, large = received(one) - before[0], received(four) - before[1]
        print(f"\n{small} and {large} bytes")
        assert received(four) < size, "it has nothing to divide any more"
        # Four times is what the shares say; four runs on a busy machine had 3.95 to 4.03. A fourth
        # more or less: the larger one's first packets leave before it has joined. Without shares: 1
        return 3 * small < large < 5 * small

    wait_until("four times as much", divided)
    setting.link.limit(1000, 1000)
    process.succeed()
    assert tree(one) == tree(four) == tree(setting.source)


def test_without_shares_there_is_no_group(setting: Setting) -> None:
    _, four, process = shared(setting, 4)
    wait_until("a transfer", lambda: received(four) > 500_000)
    assert of_group() is None
    assert {d["share"] for d in setting.status()["destinations"]} == {None}
    process.succeed()
    table = call("netnice", "replicate", "status", "--state", str(setting.state))
    assert "share" not in table.splitlines()[1]


def test_what_a_killed_run_with_shares_left_is_ended_by_the_next_one(setting: Setting) -> None:
    options = ("--algorithm", "reno", "--share", f"{at('four')}=4")  # as in the test above
    one, four, process = shared(setting, 20, *options)
    wait_until("both transfers", lambda: received(one) > 100_000 and received(four) > 100_000)
    process.popen.kill()
    process.popen.wait(PATIENCE_S)
    left = call("ip", "netns", "pids", setting.link.sender.name).split()
    assert left, "most of the transfers is left, but nothing that sends"
    call("netnice", "status")  # cleans up, and leaves alone what still sends
    found = of_group()
    assert sorted(r["share"] for r in found["runs"]) == [1, 4], found
    setting.run("--job", JOB, *options, f"{setting.source}/", at("one"), at("four"))
    assert not any(Path(f"/proc/{pid}").exists() for pid in left)
    for copy in (one, four):
        copied = {k: v for k, v in tree(copy).items() if not k.startswith(".netnice-partial")}
        assert copied == tree(setting.source)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--share", "b=0"], ["the share of b:/2", "share=0 is out of range", "0.001 to 1000"]),
        (["--share", "b=-1"], ["share=-1 is out of range"]),
        (["--share", "b=nan"], ["out of range"]),
        (["--share", "b=much"], ['"much" is not a number']),
        (["--share", "b"], ["NAME=PARTS"]),
        (["--share", "c=2"], ["no destination", "a:/1, b:/2, d:/1, d:/2"]),
        (["--share", "d=2"], ["may mean d:/1 or d:/2"]),
        (["--share", "b=2", "--share", "b:/2=3"], ["b:/2 has two shares"]),
        (["--share", "/here=2", "/here"], ["/here is on this machine"]),
        (["--share", "b=2", "--class", "fair"], ["own packets", "nice, "]),
        (["--share", "b=2", "--algorithm", "imtcp"], ["own packets", "nice, "]),
    ],
)  # fmt: skip
def test_a_wrong_share_is_explained_and_nothing_is_copied(
    setting: Setting, options: list[str], says: list[str]
) -> None:
    places = ["a:/1", "b:/2", "d:/1", "d:/2"]
    said = setting.run(f"{setting.source}/", *places, *options, status=1)
    for part in says:
        assert part in said
    assert not setting.state.exists()


def test_shares_in_a_file_are_checked_and_used(setting: Setting) -> None:
    (setting.source / "file").write_bytes(os.urandom(1_000_000))
    one, four = setting.copy("one"), setting.copy("four")
    setting.daemon()
    hosts = setting.directory / "hosts"
    hosts.write_text(f"{at('one')}\n")
    config = setting.directory / "shared.toml"
    text = (
        f'source = "{setting.source}/"\nto = "hosts"\n\n[[destination]]\nplace = "{at("four")}"\n'
        f'share = 4\n\n[share]\n"{at("one")}" = 0.5\n'
    )
    config.write_text(text)
    call("netnice", "replicate", "check", str(config))
    setting.run("--config", str(config))
    assert tree(one) == tree(four) == tree(setting.source)
    assert {d["share"] for d in setting.status()["destinations"]} == {0.5, 4}
    for wrong, instead, line, says in (
        ("share = 4", "share = 0", 6, "out of range"),
        ("share = 4", 'share = "4"', 6, "invalid type"),
        (f'"{at("one")}"', '"two"', 9, "no destination"),
    ):
        config.write_text(text.replace(wrong, instead))
        process = setting.link.sender.start("netnice", "replicate", "check", str(config))
        assert process.status() == 1
        assert f"line {line}: " in process.errors and says in process.errors, process.errors


class Shells:
    """Servers for ssh at the receiver and the router, with keys of their own."""

    def __init__(self, setting: Setting) -> None:
        """Start them; the commands that they start find the netnice under test."""
        assert Path(SSHD).exists(), f"{SSHD} is missing: make build/test-deps"
        self.setting = setting
        directory = setting.directory
        for key in ("host", "user"):
            call("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(directory / key))
        self.config = directory / "ssh_config"
        self.config.write_text(
            f"Host *\nPort {SSH_PORT}\nIdentityFile {directory}/user\nIdentitiesOnly yes\n"
            f"UserKnownHostsFile {directory}/known\nBatchMode yes\nConnectTimeout 10\n"
        )
        key = (directory / "host.pub").read_text()
        (directory / "known").write_text(
            "".join(f"[{host}]:{SSH_PORT} {key}" for host in (RECEIVER, ROUTER))
        )
        Path("/run/sshd").mkdir(exist_ok=True)
        self.shell = f"ssh -F {self.config}"
        for namespace, address in (
            (setting.link.receiver, RECEIVER),
            (setting.link.router, ROUTER),
        ):
            server = directory / f"sshd-{address}"
            server.write_text(
                f"ListenAddress {address}:{SSH_PORT}\nHostKey {directory}/host\nUsePAM no\n"
                f"PidFile none\nStrictModes no\nAuthorizedKeysFile {directory}/user.pub\n"
                f"PasswordAuthentication no\nSetEnv PATH={MEMORY}:{os.environ['PATH']} "
                f'"RSYNC_RSH={self.shell}"\n'
            )
            namespace.start(SSHD, "-D", "-e", "-f", str(server))
            setting.listening(namespace, SSH_PORT)

    def run(self, *arguments: str, status: int = 0) -> str:
        """Run `netnice replicate` with this configuration of ssh."""
        process = self.setting.replicate(*arguments, under=("env", f"RSYNC_RSH={self.shell}"))
        ended = process.status()
        assert ended == status, f"{process}: {ended}: {process.errors}"
        return process.errors


def test_a_copy_feeds_another_in_the_background_too(setting: Setting) -> None:
    fill(setting.source)
    (setting.source / "file").write_bytes(os.urandom(4_000_000))
    hub, leaf = setting.copy("hub"), setting.copy("leaf")
    shells = Shells(setting)
    setting.link.without_offloads().receiver.call(
        "tc", "qdisc", "add", "dev", "eth", "root", "tbf", "rate", "100mbit", "burst", "3028",
        "limit", "75700",
    )  # fmt: skip
    process = setting.replicate(
        "--job", JOB, "--share", f"{ROUTER}=4",
        "--via", RECEIVER, f"{setting.source}/", f"root@{RECEIVER}:{hub}", f"{ROUTER}:{leaf}",
        under=("env", f"RSYNC_RSH={shells.shell}"),
    )  # fmt: skip
    seen = wait_until(
        "the feeder's connection",
        lambda: process.ended() or [f for f in flows() if f["remote"] == f"{ROUTER}:{SSH_PORT}"],
    )
    assert seen is not True, process.errors
    assert {f["control"] for f in seen} == {"nn_nice"}
    # the feeder divides what it finds, this machine has nothing to divide
    assert [r["share"] for r in of_group()["runs"]] == [4]
    process.succeed()
    assert tree(hub) == tree(leaf) == tree(setting.source)
    text = call("netnice", "replicate", "status", "--state", str(setting.state))
    lines = [line for line in text.splitlines() if "current  " in line]
    assert [len(line) - len(line.lstrip()) for line in lines] == [2, 4], text


def test_a_login_that_fails_names_the_next_command_and_fails_those_below(
    setting: Setting,
) -> None:
    (setting.source / "file").write_text("x")
    shells = Shells(setting)
    (setting.directory / "user.pub").write_text("")
    said = shells.run(
        "--via", RECEIVER, f"{setting.source}/", f"me@{RECEIVER}:/nowhere", f"{ROUTER}:/nowhere",
        status=3,
    )  # fmt: skip
    assert f"ssh-copy-id me@{RECEIVER}" in said
    assert f"its feeder me@{RECEIVER}:/nowhere failed" in said


def test_a_configuration_is_run_and_its_errors_have_lines(setting: Setting) -> None:
    fill(setting.source)
    copy = setting.copy()
    setting.daemon()
    config = setting.directory / "job.toml"
    config.write_text(
        f'source = "{setting.source}/"\nverify = true\n\n[[destination]]\nplace = "{at()}"\n'
    )
    call("netnice", "replicate", "check", str(config))
    setting.run("--config", str(config))
    assert tree(copy) == tree(setting.source)
    assert setting.status()["job"] == "job"
    config.write_text(config.read_text().replace("verify", "verfiy"))
    said = setting.run("--config", str(config), status=1)
    assert f"{config}: line 2: " in said
