# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""`netnice replicate` is never silently stale, and never goes on for ever."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

import pytest
from daemon import user
from replicas import Setting, end, fill, same, tree
from support import Process, call, wait_until

LIMIT = Path("/proc/sys/fs/inotify/max_user_watches")


def watched(setting: Setting, source: str, *options: str) -> tuple[Path, Process]:
    """Start to watch `source`, with a local copy that is current; return copy and process."""
    copy = setting.copy()
    process = setting.replicate("--watch", "--delete", *options, source, f"{copy}/")
    wait_until("the first copy", lambda: setting.state.exists() and current(setting))
    return copy, process


def current(setting: Setting) -> bool:
    """Whether all copies of all jobs are, and there are some."""
    return set(setting.states()) == {"current"}


def test_a_directory_in_place_of_the_source_is_copied_and_watched(setting: Setting) -> None:
    fill(setting.source)
    copy, process = watched(setting, f"{setting.source}/")
    assert tree(copy) == tree(setting.source)
    setting.source.rename(setting.directory / "old")
    setting.source.mkdir()
    (setting.source / "new").write_text("new")
    wait_until("the copy of the new one", lambda: same(copy, setting.source))
    setting.settle()
    (setting.source / "deep").mkdir()
    (setting.source / "deep" / "later").write_text("later")
    wait_until("what changed in the new one", lambda: same(copy, setting.source))
    end(process)
    assert tree(copy) == tree(setting.source)


def test_a_link_that_is_switched_is_followed_and_stays_one_job(setting: Setting) -> None:
    releases = [setting.directory / name for name in ("one", "two")]
    for release in releases:
        release.mkdir()
        (release / "name").write_text(release.name)
    link, following = setting.directory / "current", setting.directory / "following"
    link.symlink_to("one")
    copy, process = watched(setting, f"{link}/")
    following.symlink_to("two")
    following.rename(link)  # mv -T
    wait_until("the copy of the new target", lambda: same(copy, releases[1]))
    # the same command line, now: it would copy to the same place beside the one that runs
    said = setting.run("--watch", "--delete", f"{link}/", f"{copy}/", status=1)
    assert f"by process {process.pid} already" in said
    (releases[1] / "later").write_text("later")
    wait_until("what changed in the new target", lambda: same(copy, releases[1]))
    end(process)
    assert tree(copy) == tree(releases[1])
    assert len(setting.jobs()) == 1


def test_names_that_begin_as_rsyncs_comments_do_are_kept_current(setting: Setting) -> None:
    copy, process = watched(setting, f"{setting.source}/", "--verify")
    for text in ("first", "later"):
        (setting.source / "#d").mkdir(exist_ok=True)
        for name in ("#x", ";y", "#d/;z", "-rf"):
            (setting.source / name).write_text(text)
        wait_until(f"what was written {text}", lambda: same(copy, setting.source))
        setting.settle()
    (setting.source / "#x").unlink()
    (setting.source / "#d" / ";z").unlink()
    (setting.source / "#d").rmdir()
    wait_until("the deletions", lambda: same(copy, setting.source))
    assert sorted(p.name for p in copy.iterdir()) == ["-rf", ";y"]
    end(process)


def test_what_the_limit_of_watches_hides_is_said_once_and_found_by_comparison(
    setting: Setting,
) -> None:
    usual = LIMIT.read_text()
    copy, process = watched(setting, f"{setting.source}/", "--compare-every", "2")
    try:
        LIMIT.write_text("1")  # fewer than there are: no directory can be added
        for name in ("unwatched", "another"):
            (setting.source / name).mkdir()
            time.sleep(1)  # batches of their own
        wait_until("the notice", lambda: "max_user_watches" in process.errors)
        wait_until("the directories", lambda: same(copy, setting.source))
        (setting.source / "unwatched" / "file").write_text("unseen")
        wait_until("what nothing told of", lambda: same(copy, setting.source))
        wait_until("the state", lambda: "max_user_watches" in str(setting.status()["trouble"]))
    finally:
        LIMIT.write_text(usual)
    wait_until("the end of it", lambda: "all of the source is watched again" in process.errors)
    job = setting.status()
    assert job["compare_every"] == 2
    assert job["destinations"][0]["compared"] < 60
    assert "all compared every 2 s" in call(
        "netnice", "replicate", "status", "--state", str(setting.state)
    )
    assert end(process).count("sysctl fs.inotify.max_user_watches=") == 1
    assert tree(copy) == tree(setting.source)


def test_a_full_disk_below_the_state_is_said_once_and_the_job_goes_on(setting: Setting) -> None:
    setting.state.mkdir()
    call("mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(setting.state))
    filler = setting.state / "filler"
    try:
        copy, process = watched(setting, f"{setting.source}/")
        with suppress(OSError), filler.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(512))
        for i in range(40):  # each a change of the state, which soon needs more room
            (setting.source / f"file-{i}").write_text(str(i))
            if "the job goes on" in process.errors:
                break
            wait_until("the copy", lambda: same(copy, setting.source))
            time.sleep(1)  # a change is stored within that
        assert "database or disk is full; the job goes on" in process.errors
        (setting.source / "later").write_text("later")
        wait_until("a copy without a state", lambda: same(copy, setting.source))
        # a second job begins on the full disk
        said = setting.run("--job", "other", f"{setting.source}/", f"{setting.directory}/other/")
        assert said.count("the job goes on") == 1
        assert same(setting.directory / "other", setting.source)
        filler.unlink()
        wait_until("room", lambda: "the state of the job is stored again" in process.errors)
        wait_until("the state", lambda: current(setting))
        assert end(process).count("the job goes on") == 1
        assert tree(copy) == tree(setting.source)
    finally:
        setting.link.sender.clear()
        call("umount", str(setting.state))


def test_the_state_in_the_source_is_neither_copied_nor_a_change(setting: Setting) -> None:
    setting.state = setting.source / "lib" / "state"
    (setting.source / "file").write_text("file")
    copy, process = watched(setting, f"{setting.source}/", "--job", "inside")
    setting.settle()
    before = setting.status()["destinations"][0]["current_at"]
    time.sleep(3)  # the state is stored each second; a change is copied within one more
    assert setting.status()["destinations"][0]["current_at"] == before
    (setting.source / "lib" / "state2").write_text("near it")
    wait_until("what is beside it", (copy / "lib" / "state2").exists)
    end(process)
    assert sorted(tree(copy)) == ["file", "lib", "lib/state2"]


@pytest.mark.parametrize("place", ["source/copy/", "short/copy", "source"])
def test_a_destination_in_the_source_is_refused_with_a_sentence(
    setting: Setting, place: str
) -> None:
    (setting.source / "deep").mkdir()
    (setting.directory / "short").symlink_to("source/deep")
    said = setting.run("--watch", f"{setting.source}/", f"{setting.directory}/{place}", status=2)
    assert "is inside the source" in said and said.count("\n") == 1, said
    assert not setting.state.exists()
    assert [p.name for p in setting.source.iterdir()] == ["deep"]


def test_a_source_that_is_gone_is_missed_and_found_again(setting: Setting) -> None:
    (setting.source / "file").write_text("file")
    copy, process = watched(setting, f"{setting.source}/")
    setting.source.rename(setting.directory / "away")
    wait_until("a word about it", lambda: "waiting for it" in process.errors)
    wait_until("no copy that claims to be current", lambda: not current(setting))
    assert (copy / "file").read_text() == "file"
    (setting.directory / "away").rename(setting.source)
    (setting.source / "file").write_text("changed")
    wait_until("the copy", lambda: same(copy, setting.source) and current(setting))
    end(process)
    assert tree(copy) == tree(setting.source)


def test_a_system_without_room_for_a_thread_fails_a_copy_and_hangs_nothing(
    setting: Setting,
) -> None:
    for directory in setting.directory.parents:
        directory.chmod(directory.stat().st_mode | 0o011)
    for directory in (setting.directory, setting.copies):
        directory.chmod(0o777)
    (setting.source / "file").write_text("content")
    ends = []
    for most in range(2, 12):  # each thread and each process is the one too many
        setting.state = setting.directory / f"state-{most}"
        # root has no such limit; what another user's run left may count until it is buried
        under = ("prlimit", f"--nproc={most}", *user(54_321 + most))
        copy = f"{setting.copies}/{most}/"
        job = setting.replicate(
            "--or-plain", "--retries", "0", f"{setting.source}/", copy, under=under
        )
        ends.append(job.status())
        assert ends[-1] in (0, 3), job.errors
        if most == 2:  # the program, and the thread that waits for signals
            assert "cannot start a thread: " in job.errors
    assert (ends[0], ends[-1]) == (3, 0), job.errors
