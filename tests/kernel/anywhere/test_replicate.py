# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""`netnice replicate`: every copy is complete, whatever happens, and nothing half-written shows."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import random
import re
import shutil
import signal
import sqlite3
import struct
import subprocess
import termios
import time
from contextlib import closing, suppress
from pathlib import Path

from classes import DEFAULT
from daemon import user
from leftovers import left_behind
from replicas import (
    LONG_S,
    NOBODYS,
    RSYNC_PORT,
    Setting,
    at,
    end,
    fill,
    same,
    tree,
    under_way,
)
from sizes import sized
from support import (
    NOBODY,
    PATIENCE_S,
    RECEIVER,
    call,
    flows,
    wait_until,
)


def test_copies_are_the_same_in_content_names_times_links_and_holes(setting: Setting) -> None:
    fill(setting.source, hole=50_000_000)
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
    assert {f["control"] for f in seen} == {DEFAULT}
    process.succeed()


def test_every_user_may_see_what_a_job_of_root_does_and_did(setting: Setting) -> None:
    for directory in (setting.directory, *setting.directory.parents):
        if (mode := directory.stat().st_mode) & 0o011 != 0o011:
            directory.chmod(mode | 0o011)  # this user stays in root's group
    (setting.source / "file").write_text("content")

    def seen() -> list[str]:
        status = ("netnice", "replicate", "status", "--json", "--state", str(setting.state))
        return [d["state"] for job in json.loads(call(*user(NOBODY), *status))
                for d in job["destinations"]]  # fmt: skip

    job = setting.replicate("--watch", f"{setting.source}/", f"{setting.copy()}/")
    wait_until("the copy", lambda: setting.states() == ["current"])
    assert seen() == ["current"]
    job.popen.terminate()
    assert job.status() == 0
    left = sorted(setting.state.iterdir())
    assert seen() == ["current"]  # SQLite has taken away what readers share
    assert sorted(setting.state.iterdir()) == left


def test_with_or_plain_copies_are_made_where_netnice_cannot_and_the_reason_is_said(
    setting: Setting,
) -> None:
    fill(setting.source)
    copy = setting.copy()
    setting.daemon()
    without = ("setpriv", "--bounding-set=-sys_admin")
    refused = setting.replicate(f"{setting.source}/", at(), under=without)
    assert refused.status() == 1
    assert "CAP_SYS_ADMIN" in refused.errors and not list(copy.iterdir())
    plain = setting.replicate("--or-plain", f"{setting.source}/", at(), under=without)
    assert plain.status() == 0, plain.errors
    assert "the copies are made, but not in the background: " in plain.errors
    assert plain.errors.count("CAP_SYS_ADMIN") == 1
    assert tree(copy) == tree(setting.source)
    assert setting.states() == ["current"]


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


def test_the_greeting_of_a_daemon_is_no_difference_to_verify(setting: Setting) -> None:
    fill(setting.source)
    copy = setting.copy()
    greeting = setting.directory / "greeting"
    greeting.write_text("welcome\nto all copies\n")
    setting.daemon(f"motd file = {greeting}\n")
    setting.run("--verify", "--retries", "0", f"{setting.source}/", at(), "--", "-v")
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


def test_a_daemon_that_wants_a_password_is_refused_on_a_terminal_too_and_stops_nothing(
    setting: Setting,
) -> None:
    fill(setting.source)
    copy = setting.copy()
    secrets = setting.directory / "secrets"
    secrets.write_text("somebody:secret\n")
    secrets.chmod(0o600)
    setting.daemon(f"auth users = somebody\nsecrets file = {secrets}\n")
    main, terminal = pty.openpty()
    # it is the terminal's foreground, as for whoever types the command
    on_terminal = ("setsid", "--ctty", *setting.link.sender.command(*setting.command()))
    place = at().replace("rsync://", "rsync://somebody@")
    done = subprocess.run(
        [*on_terminal, f"{setting.source}/", place], stdin=terminal,
        capture_output=True, text=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    os.close(terminal)
    os.close(main)
    assert done.returncode == 3
    assert "wants a password; " in done.stderr and not list(copy.iterdir())
    password = setting.directory / "password"
    password.write_text("secret\n")
    password.chmod(0o600)
    setting.run(f"{setting.source}/", place, "--", f"--password-file={password}")
    assert tree(copy) == tree(setting.source)


def test_bars_are_shown_on_a_terminal_and_nowhere_else(setting: Setting) -> None:
    (setting.source / "file").write_bytes(os.urandom(200_000))
    setting.link.limit(2, 50)
    copies = [setting.copy(name) for name in ("watched", "piped")]
    setting.daemon()
    main, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    command = setting.link.sender.command(*setting.command(), f"{setting.source}/", at("watched"))
    watched = subprocess.Popen(command, stdout=terminal, stderr=terminal, start_new_session=True)
    os.close(terminal)
    seen = b""
    with suppress(OSError):  # the last one who wrote to it has ended
        while part := os.read(main, 1 << 16):
            seen += part
    os.close(main)
    assert watched.wait(PATIENCE_S) == 0
    assert re.search(rb"\d %  [\d.]+ [kM]?B/s", seen), seen  # of the destination
    assert b"0/1 current" in seen
    said = setting.run(f"{setting.source}/", at("piped"))
    assert "%" not in said and "\x1b" not in said
    assert [tree(copy) for copy in copies] == [tree(setting.source)] * 2


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


def test_an_interrupted_run_goes_on_where_it_ended(setting: Setting) -> None:
    size, copy, process = under_way(setting, mbit=5, part=0.5)
    process.popen.terminate()
    assert process.status() == 3
    assert not (copy / "file").exists()
    wait_until("the partial file", (copy / ".netnice-partial" / "file").exists)
    before = setting.status()["destinations"][0]["bytes"]
    setting.link.limit(20, 50)
    setting.run(f"{setting.source}/", at())
    assert tree(copy) == tree(setting.source)
    # half of it is there, less what was on its way and what rsync needs to compare
    assert setting.status()["destinations"][0]["bytes"] - before < size * 0.6


def test_processes_that_end_after_their_transfer_are_waited_for(setting: Setting) -> None:
    rsync = setting.directory / "rsync"
    rsync.write_text(
        f'#!/bin/sh\nsleep 1 </dev/null >/dev/null 2>&1 &\nexec {shutil.which("rsync")} "$@"\n'
    )
    rsync.chmod(0o755)
    path = ("env", f"PATH={setting.directory}:{os.environ['PATH']}")
    job = setting.replicate(f"{setting.source}/", f"{setting.copy()}/", under=path)
    assert job.status() == 0, job.errors
    assert "cgroups" not in left_behind()


def test_what_a_killed_run_left_is_ended_by_the_next_one(setting: Setting) -> None:
    _, copy, process = under_way(setting, mbit=2, part=0.1)
    process.popen.kill()
    process.popen.wait(PATIENCE_S)
    job = setting.status()
    assert (job["pid"], job["destinations"][0]["state"]) == (None, "waiting")
    left = call("ip", "netns", "pids", setting.link.sender.name).split()
    assert left, "24 s of transfer are left, but nothing that sends"
    setting.link.limit(20, 50)
    (stored,) = setting.state.glob("*.sqlite")
    with closing(sqlite3.connect(stored)) as database:
        ((version,),) = database.execute("PRAGMA user_version")
        database.execute("PRAGMA user_version = 99")
        setting.run(f"{setting.source}/", at(), status=1)  # a start that fails forgets nothing
        database.execute(f"PRAGMA user_version = {version}")
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
    daemon = setting.daemon()

    def whole_or_absent() -> None:
        for path in copy.glob("file-*"):
            assert path.read_bytes() == contents[path.name], f"{path.name} is half written"

    for _ in range(sized(8, 50)):
        process = setting.replicate(f"{setting.source}/", at())
        time.sleep(rng.uniform(0.1, 0.8))  # any moment of its life
        if rng.random() < 0.5:
            process.popen.kill()
        else:
            receivers = subprocess.run(
                ["pgrep", "-f", f"rsync --daemon.*{setting.directory}"],
                capture_output=True, text=True, check=False,
            ).stdout.split()  # fmt: skip
            for pid in set(map(int, receivers)) - {daemon.pid}:
                with suppress(ProcessLookupError):  # it may end just now
                    os.kill(pid, signal.SIGKILL)
            process.popen.send_signal(rng.choice([signal.SIGTERM, signal.SIGKILL]))
        process.popen.wait(PATIENCE_S)
        whole_or_absent()
    setting.link.limit(1000, 1000)
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
    for i in range(sized(5, 200)):
        directory = setting.source / f"dir-{i}"
        directory.mkdir()
        for k in range(1000):
            (directory / f"file-{k}").write_text(f"{i} {k}")
    copy = setting.copy()
    setting.daemon()
    setting.run(f"{setting.source}/", at(), timeout_s=LONG_S)
    assert tree(copy) == tree(setting.source)


def test_a_large_file_is_copied(setting: Setting) -> None:
    size = sized(100_000_000, 5_000_000_000)
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
    end(process)


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
    process.stop()
    for i in range(200):  # far more events than the queue holds
        (directories[i % 10] / f"file-{i}").write_text(str(i))
    process.popen.send_signal(signal.SIGCONT)
    wait_until("all files", lambda: same(copy, setting.source))
    end(process)


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
    most_files = most_kb = answers = 0
    while not process.ended():
        assert len(setting.states()) == count
        # one that waited for the job would find it ended
        answers += not process.ended()
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
    assert answers > 0
