# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""`netnice attach` puts a whole cgroup into the background, `netnice detach` takes it out again."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from pathlib import Path

import pytest
from cgroups import Tree, entering, netnice, said
from classes import DEFAULT
from client import SERVES, Client, accept, received
from sizes import FAST, SLOW
from support import (
    LE,
    PORT,
    PYTHON,
    RECEIVER,
    RECEIVER6,
    SENDER,
    Link,
    Process,
    call,
    flows,
    registered,
    status,
    wait_until,
)

OTHER = "10.0.2.254"
"""The router, as the receiver reaches it."""
OWN_TOS = 0x20
PLAIN, BACKGROUND = ("reno", 0), (DEFAULT, LE)
"""Control and TOS octet in the namespaces of the tests, and in the background."""


def opened(client: Client, address: str = RECEIVER, port: int = PORT) -> None:
    """Have a client open a connection beside those that it has."""
    client.do(f"open {'AF_INET6' if ':' in address else 'AF_INET'} SOCK_STREAM")
    client.do(f"connect {address} {port}")


def seen(link: Link) -> dict[str, tuple[str, int]]:
    """Return control and TOS octet of the sender's connections, by their remote ends."""
    return {c.remote: (c.control, c.tos) for c in link.sender.connections()}


def at(port: int, address: str = RECEIVER) -> str:
    return f"{address}:{port}"


def test_what_is_open_and_what_is_opened_later_is_in_the_background_until_it_is_detached(
    link: Link, tree: Tree
) -> None:
    ports = [PORT, PORT + 1, PORT + 2, PORT + 3, PORT + 4]
    listeners = [link.receiver.listen(RECEIVER, port) for port in ports]
    outer, inner = tree.client(link.sender), tree.client(link.sender, tree.below("a", "b"))
    outside = Client(link.sender)
    opened(outside, port=ports[0])
    outer.do("open AF_INET SOCK_STREAM")
    outer.do("set IPPROTO_TCP TCP_CONGESTION cubic")
    outer.do(f"set IPPROTO_IP IP_TOS {OWN_TOS}")
    outer.do(f"connect {RECEIVER} {ports[1]}")
    carries = accept(listeners[1], link.receiver)
    opened(inner, port=ports[2])
    assert "moved 2 connections" in netnice("attach", "--cgroup", str(tree.path))
    assert seen(link) == {
        at(ports[0]): PLAIN, at(ports[1]): BACKGROUND, at(ports[2]): BACKGROUND,
    }  # fmt: skip
    inner_later = tree.client(link.sender, tree.path / "a")
    opened(inner_later, port=ports[3])
    inner_later.do("set IPPROTO_TCP TCP_CONGESTION cubic")  # says yes, and does nothing
    assert seen(link)[at(ports[3])] == BACKGROUND
    (run,) = status()["runs"]
    assert run["cgroup"] == str(tree.path)
    assert {p["pid"] for p in run["processes"]} == {
        c.process.pid for c in (outer, inner, inner_later)
    }
    outer.do("send 100000")
    assert len(received(carries, 100_000)) == 100_000

    assert "with 3 connections" in netnice("detach", "--cgroup", str(tree.path))
    # what began in the background gets the default of its network
    expected = {at(port): PLAIN for port in ports[:4]} | {at(ports[1]): ("cubic", OWN_TOS)}
    assert seen(link) == expected
    opened(tree.client(link.sender), port=ports[4])
    assert seen(link) == expected | {at(ports[4]): PLAIN}
    assert (flows(), status()["runs"]) == ([], [])
    assert "is not attached" in netnice("detach", "--cgroup", str(tree.path), status=1)


def test_every_byte_arrives_of_flows_that_begin_before_and_after(link: Link, tree: Tree) -> None:
    sink = link.limit(SLOW, 50).sink()
    into = entering(tree.path)
    before = link.send(sink, "--flows", "3", "--bytes", "1000000", "--control", "cubic", under=into)
    wait_until("three connections", lambda: len(seen(link)) == 1 and len(
        link.sender.connections()) == 3)  # fmt: skip
    netnice("attach", "--cgroup", str(tree.path))
    after = link.send(sink, "--flows", "2", "--bytes", "1000000", under=into)
    wait_until("five connections", lambda: len(flows()) == 5)
    assert {c.control for c in link.sender.connections()} == {DEFAULT}
    link.limit(FAST, 50)
    before.succeed()
    after.succeed()
    assert [f["complete"] for f in sink.report()["flows"]] == [True] * 5


def test_a_server_accepts_in_the_background_from_then_on(link: Link, tree: Tree) -> None:
    server = link.sender.start(
        *entering(tree.path), PYTHON, "-S", "-E", "-c", SERVES, SENDER, str(PORT)
    )
    assert server.line() == "ready"
    netnice("attach", "--cgroup", tree.path.name)
    client = Client(link.receiver)
    opened(client, SENDER)
    assert server.line() == "accepted"
    assert list(seen(link).values()) == [BACKGROUND]


def test_a_unit_is_found_in_its_slices_and_not_in_somebodys_own_systemd(
    link: Link, tree: Tree
) -> None:
    slices = Tree(f"netnicetest{os.getpid()}.slice")
    unit = slices.below(f"{slices.path.stem}-jobs.slice", "backup@1.service")
    slices.below("user@1.service", "app.slice", "own.service")
    link.receiver.listen(RECEIVER, PORT)
    client = slices.client(link.sender, unit)
    opened(client)
    assert "the unit backup@1.service is in" in netnice("attach", "--unit", "backup@1")
    assert list(seen(link).values()) == [BACKGROUND]
    assert "own.service does not run" in netnice("attach", "--unit", "own", status=1)
    netnice("detach", "--unit", "backup@1.service")
    assert list(seen(link).values()) == [PLAIN]
    client.process.end()
    slices.remove()


def test_who_attaches_again_changes_how_it_yields(link: Link, tree: Tree) -> None:
    link.receiver.listen(RECEIVER, PORT)
    link.receiver.listen(RECEIVER, PORT + 1)
    client = tree.client(link.sender)
    opened(client)
    netnice("attach", "--cgroup", str(tree.path))
    netnice("attach", "--cgroup", str(tree.path), "--algorithm", "vegas", "--dscp", "none")
    opened(tree.client(link.sender), port=PORT + 1)
    assert seen(link) == {at(PORT): ("nn_vegas", 0), at(PORT + 1): ("nn_vegas", 0)}
    netnice("attach", "--cgroup", str(tree.path))  # the second began in the background
    assert seen(link) == {at(PORT): BACKGROUND, at(PORT + 1): BACKGROUND}
    netnice("detach", "--all")
    assert seen(link) == {at(PORT): PLAIN, at(PORT + 1): PLAIN}
    assert registered() <= {DEFAULT}


@pytest.mark.parametrize("how", [signal.SIGHUP, signal.SIGINT, signal.SIGTERM])
def test_who_keeps_changes_what_was_attached_before_and_detaches_it_at_the_end(
    link: Link, tree: Tree, how: signal.Signals
) -> None:
    link.receiver.listen(RECEIVER, PORT)
    opened(tree.client(link.sender))
    words = ("attach", "--cgroup", str(tree.path))
    netnice(*words)
    keeper = Process(["netnice", *words, "--keep", "--algorithm", "vegas"])
    wait_until("it has changed", lambda: seen(link) == {at(PORT): ("nn_vegas", LE)})
    keeper.popen.send_signal(how)
    assert keeper.status() == 0
    assert "is out of the background again, with 1 connection" in keeper.errors
    assert seen(link) == {at(PORT): PLAIN}


@pytest.mark.usefixtures("cold")
def test_what_is_disabled_while_a_cgroup_is_attached_goes_when_that_is_detached(tree: Tree) -> None:
    netnice("attach", "--cgroup", str(tree.path))
    said = netnice("disable")
    assert f"{DEFAULT} stays until 1 cgroup is attached no more (netnice detach --all)" in said
    assert registered() == {DEFAULT}
    netnice("detach", "--all")
    assert registered() == set()


def test_of_cgroups_and_runs_in_each_other_the_nearest_decides(link: Link, tree: Tree) -> None:
    for port in (PORT, PORT + 1, PORT + 2):
        link.receiver.listen(RECEIVER, port)
    inner = tree.below("inner")
    netnice("attach", "--cgroup", str(inner), "--algorithm", "vegas")
    netnice("attach", "--cgroup", str(tree.path))
    opened(tree.client(link.sender), port=PORT)
    opened(tree.client(link.sender, inner), port=PORT + 1)
    run = tree.client(link.sender, None, "netnice", "run", "--no-hold", "-a", "lp", "--")
    opened(run, port=PORT + 2)
    assert {remote: control for remote, (control, _) in seen(link).items()} == {
        at(PORT): DEFAULT, at(PORT + 1): "nn_vegas", at(PORT + 2): "nn_lp",
    }  # fmt: skip
    (of_run,) = (path for path in tree.path.glob("netnice-run-*"))
    assert "is in a run" in netnice("attach", "--cgroup", str(of_run), status=1)
    netnice("detach", "--cgroup", str(tree.path))
    assert seen(link)[at(PORT + 1)][0] == "nn_vegas"
    assert seen(link)[at(PORT + 2)][0] == "nn_lp"
    run.process.succeed()


@pytest.mark.parametrize("before", [True, False])
def test_those_named_by_except_stay_as_they_are(link: Link, tree: Tree, before: bool) -> None:
    for where, address, port in [
        (link.receiver, RECEIVER, PORT), (link.receiver, RECEIVER, PORT + 1),
        (link.router, OTHER, PORT), (link.receiver, RECEIVER6, PORT),
    ]:  # fmt: skip
        where.listen(address, port)
    options = ["--except", f"{RECEIVER}:{PORT}", "--except", "10.0.2.240/28"]

    def open_all() -> None:
        for address, port in [(RECEIVER, PORT), (RECEIVER, PORT + 1), (OTHER, PORT)]:
            opened(tree.client(link.sender), address, port)
        opened(tree.client(link.sender), RECEIVER6)

    if before:
        open_all()
    text = netnice("attach", "--cgroup", str(tree.path), *options)
    if before:
        assert "moved 2 connections; 2 others stay as they are" in text
    else:
        open_all()
    assert seen(link) == {
        at(PORT): PLAIN, at(PORT + 1): BACKGROUND, at(PORT, OTHER): PLAIN,
        f"[{RECEIVER6}]:{PORT}": BACKGROUND,
    }  # fmt: skip


@pytest.mark.parametrize("how", ["run", "attach", "attach later"])
def test_sockets_with_the_mark_are_in_the_background_and_no_others(
    link: Link, tree: Tree, how: str
) -> None:
    link.receiver.listen(RECEIVER, PORT)
    link.receiver.listen(RECEIVER, PORT + 1)

    def attach() -> None:
        netnice("attach", "--cgroup", str(tree.path), "--mark", "0x7")

    if how == "attach":
        attach()
    under = ["netnice", "run", "--no-hold", "--mark", "7", "--"] if how == "run" else []
    client = tree.client(link.sender, None, *under)
    opened(client)
    client.do("set IPPROTO_TCP TCP_CONGESTION cubic")  # it is its own
    other = client if how != "attach later" else tree.client(link.sender)
    other.do("open AF_INET SOCK_STREAM")
    other.do("set SOL_SOCKET SO_MARK 7")
    other.do(f"connect {RECEIVER} {PORT + 1}")
    if how == "attach later":
        attach()
    found = seen(link)
    assert found[at(PORT + 1)] == BACKGROUND
    # the client of the others has closed its first connection, which is on the way out
    assert found.get(at(PORT), ("cubic", 0)) == ("cubic", 0)
    client.process.end()


def test_a_run_leaves_out_whom_except_names(link: Link, tree: Tree) -> None:
    link.receiver.listen(RECEIVER, PORT)
    link.receiver.listen(RECEIVER, PORT + 1)
    options = ["--to", "10.0.2.0/24", "--except", f"10.0.2.0/24:{PORT}"]
    for port in (PORT, PORT + 1):
        client = tree.client(link.sender, None, "netnice", "run", "--no-hold", *options, "--")
        opened(client, port=port)
    assert seen(link) == {at(PORT): PLAIN, at(PORT + 1): BACKGROUND}


def test_a_run_says_that_no_socket_had_its_mark(link: Link) -> None:
    link.receiver.listen(RECEIVER, PORT)
    connect = f"import socket; socket.create_connection(({RECEIVER!r}, {PORT}))"
    run = ["netnice", "run", "--no-hold", "--mark", "7", "--json", "--"]
    process = link.sender.start(*run, PYTHON, "-S", "-E", "-c", connect)
    assert process.status() == 0, process.errors
    said = json.loads(process.errors)
    assert (said["connections"], said["spared"]) == (0, 1)
    assert [what["why"] for what in said["not_governed"]] == ["only_spared"]


BAD = [
    (["--cgroup", "/"], "the root is this whole host"),
    (["--cgroup", "/sys/../.."], 'without ".."'),
    (["--cgroup", "../../etc"], 'without ".."'),
    (["--cgroup", "/etc"], "no such cgroup"),
    (["--cgroup", "cgroup.procs"], "no such cgroup"),
    (["--cgroup", "a\nb"], "no such cgroup"),
    (["--cgroup", "x" * 300], "no such cgroup"),
    (["--unit", "no-such-unit"], "the unit no-such-unit.service does not run"),
    (["--unit", "-.slice"], "the root is this whole host"),
    (["--unit", "a/b"], "is no name of a unit"),
    (["--unit", ""], "is no name of a unit"),
    (["--container", "no-such-container"], "there is no container no-such-container"),
    (["--container", "0123456789abcdef"], "there is no container 0123456789abcdef"),
    (["--container=--all"], "is no name of a container"),
]


@pytest.mark.parametrize(("words", "text"), BAD)
def test_a_name_of_nothing_is_one_sentence_and_changes_nothing(words: list[str], text: str) -> None:
    for command in ("attach", "detach"):
        errors = netnice(command, *words, status=1)
        assert text in errors
        assert "start" not in errors  # which is no way to detach
        assert len(errors.splitlines()) <= 1 + errors.count("a\nb")


@pytest.mark.parametrize("command", ["attach", "detach"])
def test_while_an_engine_does_not_answer_nobody_else_waits_and_it_can_be_ended(
    command: str, tmp_path: Path
) -> None:
    docker = tmp_path / "docker"
    docker.write_text(f"#!/bin/sh\necho >{tmp_path}/asked\nexec sleep 1000\n")
    docker.chmod(0o755)
    path = f"PATH={tmp_path}:{os.environ['PATH']}"
    process = Process(["env", path, "netnice", command, "--container", "web"])
    try:
        wait_until("it is asked", (tmp_path / "asked").exists)
        began = time.monotonic()
        call("netnice", "run", "--no-hold", "--", "true")
        assert time.monotonic() - began < 5  # it may take 10 s
        process.popen.send_signal(signal.SIGINT)
        assert process.status() == -signal.SIGINT
    finally:
        process.end()


def test_a_cgroup_that_ends_meanwhile_leaves_nothing(tree: Tree) -> None:
    name = f"{tree.path.name}/short.service"
    ends = threading.Event()

    def come_and_go() -> None:
        place = tree.path / "short.service"
        while not ends.is_set():
            place.mkdir()
            ends.wait(0.015)  # an attachment takes about as long
            place.rmdir()

    thread = threading.Thread(target=come_and_go)
    thread.start()
    try:
        results = [said("attach", "--cgroup", name) for _ in range(10)]
    finally:
        ends.set()
        thread.join()
    for done in results:
        assert done.returncode in (0, 1)
        # one line; and what holds for a service, where it was there all the time
        lines = 2 if "is in the background" in done.stderr else 1
        assert len(done.stderr.splitlines()) == lines, done.stderr
        assert any(
            text in done.stderr
            for text in ("is in the background", "has ended meanwhile", "no such cgroup")
        ), done.stderr


def test_a_cgroup_that_is_removed_takes_its_programs_along(link: Link, tree: Tree) -> None:
    inner = tree.below("inner")
    link.receiver.listen(RECEIVER, PORT)
    client = tree.client(link.sender, inner)
    opened(client)
    netnice("attach", "--cgroup", str(inner))
    client.process.end()
    wait_until("nobody is in it", lambda: "populated 0" in (inner / "cgroup.events").read_text())
    inner.rmdir()  # `nothing_left` sees the rest
