# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""`netnice status`, `share` and `replicate` without root: what is a user's own, and no more."""

from __future__ import annotations

import json
import shutil

from classes import DEFAULT
from client import ended
from daemon import HERE, OTHER, Daemon, ask, netnice, run, user
from support import (
    MEMORY,
    NOBODY,
    PYTHON,
    Json,
    Link,
    Process,
    cgroup_root,
    flows,
    status,
    wait_until,
)

GROUP = "nightly"

INHERITED = """
import os, socket, sys
listener = socket.create_server(("127.0.0.1", 0))
held = []
for _ in range(10):
    held += [socket.create_connection(listener.getsockname()), listener.accept()[0]]
wait, end = os.pipe()
for _ in range(119):
    if os.fork() == 0:
        os.close(end)
        os.read(wait, 1)
        os._exit(0)
print("all", flush=True)
sys.stdin.readline()
"""
"""120 processes that hold both ends of 10 connections."""


def shown(uid: int) -> Json:
    done = netnice(uid, "status", *HERE, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def sends(link: Link, uid: int, *options: str) -> Process:
    """Start a sender in a run of a user, which sends until it is ended."""
    sender = link.send(link.sink(), under=run(uid, *options))
    wait_until("it sends", lambda: any(f["bytes_acked"] > 0 and _holds(f, sender) for f in flows()))
    return sender


def _holds(flow: Json, sender: Process) -> bool:
    return any(p["pid"] == sender.pid for p in flow["processes"])


def test_a_user_sees_his_own_as_root_does_and_of_others_that_they_are_there(
    link: Link, daemon: Daemon
) -> None:
    his, others = sends(link, NOBODY), sends(link, OTHER)
    seen, whole = shown(NOBODY), status()
    (mine,) = [r for r in whole["runs"] if r["began"] == his.pid]
    assert [r["run"] for r in seen["runs"]] == [mine["run"]]
    assert seen["runs"][0]["processes"] == mine["processes"]
    (flow,) = seen["connections"]
    (same,) = [f for f in whole["connections"] if f["run"] == mine["run"]]
    assert flow.keys() == same.keys()  # each figure, by the same name
    assert (flow["control"], flow["remote"]) == (DEFAULT, same["remote"])
    assert flow["parameters"] == same["parameters"]
    text = netnice(NOBODY, "status", *HERE).stdout
    assert f"netnice-load[{his.pid}]" in text
    assert str(others.pid) not in text
    assert "1 run of another user is in the background, too" in text
    assert [(s["others"], s["left_out"]) for s in (seen, whole)] == [(1, 0), (0, 0)]
    for sender in (his, others):
        sender.popen.terminate()
        ended(sender)


def test_connections_that_many_processes_inherit_are_told_with_some_of_them_and_a_count(
    daemon: Daemon,
) -> None:
    words = (PYTHON, "-S", "-E", "-c", INHERITED, "x" * 4000)
    parent = daemon.where.start(*run(NOBODY), *words)
    assert parent.line() == "all"
    for seen in (shown(NOBODY), status()):
        held = [c for c in seen["connections"] if c["remote"].startswith("127.")]
        assert [(len(c["processes"]), c["processes_left_out"]) for c in held] == [(8, 112)] * 20
        (of_run,) = seen["runs"]
        assert (len(of_run["processes"]), of_run["processes_left_out"]) == (100, 20)
        told = [p for of in (*held, of_run) for p in of["processes"]]
        assert {len(p["command"]) for p in told} == {256}
    text = netnice(NOBODY, "status", *HERE).stdout
    assert "] and 112 more" in text
    assert "and 119 other processes" in text
    parent.tell("")
    ended(parent)


def test_a_user_divides_among_his_own_runs_alone(link: Link, daemon: Daemon) -> None:
    his = [sends(link, NOBODY, "--group", GROUP) for _ in range(2)]
    others = sends(link, OTHER, "--group", GROUP)
    assert netnice(NOBODY, "share", *HERE, GROUP, str(his[0].pid), "3").returncode == 0
    done = netnice(NOBODY, "status", *HERE, "--json", "--group", GROUP, "--seconds", "0.1")
    group = json.loads(done.stdout)
    assert sorted(r["share"] for r in group["runs"]) == [1.0, 3.0]
    assert len(group["runs"]) == 2  # not the other user's, whose group has the same name
    refused = netnice(NOBODY, "share", *HERE, GROUP, str(others.pid), "9")
    assert refused.returncode == 1
    assert "is neither a run of the group" in refused.stderr
    (of_other,) = [r["run"] for r in status()["runs"] if r["began"] == others.pid]
    assert "neither" in netnice(NOBODY, "share", *HERE, GROUP, str(of_other), "9").stderr
    assert "you have no group" in netnice(NOBODY, "share", *HERE, "none", "1", "2").stderr
    assert "1 to" in ask(do="share", group="a/b", run=1, share="2")["why"]
    assert "up to 60 s" in ask(do="group", group=GROUP, seconds=1e9)["why"]
    for sender in (*his, others):
        sender.popen.terminate()
        ended(sender)


def test_without_a_daemon_each_says_so_and_does_nothing(link: Link) -> None:
    source = ("replicate", "--state", str(MEMORY), *HERE, "/etc/hostname", "/nowhere")
    for words in (("status", *HERE), ("share", *HERE, GROUP, "1", "2"), source):
        done = netnice(NOBODY, *words)
        assert (done.returncode, done.stdout) == (1, "")
        assert "netnice's daemon does not answer" in done.stderr


def test_a_user_replicates_in_the_background(link: Link, daemon: Daemon) -> None:
    home = MEMORY / "home"
    source, copy = home / "source", home / "copy"
    source.mkdir(parents=True)
    (source / "file").write_bytes(bytes(300_000))
    for path in (home, source, source / "file"):
        shutil.chown(path, NOBODY)
    words = ["netnice", "replicate", *HERE, "--state", str(home / "state"), "--json"]
    try:
        done = daemon.where.start(*user(NOBODY), *words, f"{source}/", str(copy))
        said = json.loads(done.succeed())
        assert [d["state"] for d in said["destinations"]] == ["current"]
        assert (copy / "file").read_bytes() == bytes(300_000)
        assert (copy / "file").stat().st_uid == NOBODY
        # as long as it watches, it and what it starts are in a run of the user
        job = daemon.where.start(*user(NOBODY), *words, "--watch", f"{source}/", str(copy))
        wait_until("it is in a run", lambda: [r["began"] for r in shown(NOBODY)["runs"]])
        (of_job,) = shown(NOBODY)["runs"]
        assert job.pid in [p["pid"] for p in of_job["processes"]]
        assert [r["run"] for r in status()["runs"]] == [of_job["run"]]
        job.popen.terminate()
        job.status()
        refused = netnice(NOBODY, *words[1:], "--share", "b=2", f"{source}/", "a:/x", "b:/y")
        assert "shares of destinations need root" in refused.stderr
        taken = "the daemon takes away what the run needed"
        wait_until(taken, lambda: not [*cgroup_root().rglob("netnice-run-*")])
    finally:
        shutil.rmtree(home)
