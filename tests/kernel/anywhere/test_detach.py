# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""`netnice detach` gives connections back what they had before `netnice attach`."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator

import pytest
from classes import DEFAULT
from client import SERVES, UNDER, Client, accept, only, received
from leftovers import sweep
from sizes import FAST, SLOW
from support import LE, PORT, PYTHON, RECEIVER, SENDER, Enabled, Link, flows, wait_until

OWN_TOS = 0x20
"""DSCP CS1, which a program chose itself."""


@pytest.fixture(autouse=True)
def swept_at_the_end(nothing_left: None) -> Iterator[None]:
    """Have the control taken off the list that closed connections have kept."""
    yield
    sweep()


def attach(pid: int, *options: str) -> None:
    subprocess.run(["netnice", "attach", *options, str(pid)], check=True, capture_output=True)


def detach(pid: int, status: int = 0) -> str:
    """Return what `netnice detach` says."""
    done = subprocess.run(
        ["netnice", "detach", str(pid)], capture_output=True, text=True, check=False
    )
    assert done.returncode == status, done.stderr
    return done.stderr


def test_a_connection_has_its_own_control_and_tos_again(link: Link) -> None:
    listener = link.receiver.listen(RECEIVER, PORT)
    client = Client(link.sender)
    client.do("open AF_INET SOCK_STREAM")
    client.do("set IPPROTO_TCP TCP_CONGESTION cubic")
    client.do(f"set IPPROTO_IP IP_TOS {OWN_TOS}")
    client.do(f"connect {RECEIVER} {PORT}")
    accepted = accept(listener, link.receiver)
    attach(client.process.pid)
    attach(client.process.pid, "--algorithm", "vegas")  # what was before is not nn_nice
    seen = only(link.sender.connections())
    assert (seen.control, seen.tos) == ("nn_vegas", LE)
    assert "took 1 connections out" in detach(client.process.pid)
    seen = only(link.sender.connections())
    assert (seen.control, seen.tos) == ("cubic", OWN_TOS)
    assert flows() == []
    client.do("send 100000")
    assert len(received(accepted, 100_000)) == 100_000
    assert "nothing else to take out" in detach(client.process.pid, status=1)
    client.process.succeed()


@pytest.mark.parametrize("options", [("--class", "fair"), ("--dscp", "none")])
def test_who_attaches_again_without_a_mark_gives_back_what_the_packets_had(
    link: Link, options: tuple[str, ...]
) -> None:
    for port in (PORT, PORT + 1):
        link.receiver.listen(RECEIVER, port)
    client = Client(link.sender)
    client.do("open AF_INET SOCK_STREAM")
    client.do(f"set IPPROTO_IP IP_TOS {OWN_TOS}")
    client.do(f"connect {RECEIVER} {PORT}")
    plain = Client(link.sender)
    plain.do("open AF_INET SOCK_STREAM")
    plain.do(f"connect {RECEIVER} {PORT + 1}")

    def marks() -> list[int]:
        seen = {c.remote[-5:]: c.tos for c in link.sender.connections()}
        return [seen[remote] for remote in sorted(seen)]

    for pid in (client.process.pid, plain.process.pid):
        attach(pid)
    assert marks() == [LE, LE]
    for pid in (client.process.pid, plain.process.pid):
        attach(pid, *options)
    assert marks() == [OWN_TOS, 0]
    client.do("set IPPROTO_IP IP_TOS 64")
    attach(client.process.pid, *options)
    assert marks() == [64, 0]  # which it chose since
    for of in (client, plain):
        detach(of.process.pid)
        of.process.end()


def test_every_byte_of_a_transfer_arrives_that_goes_in_and_out_of_the_background(
    link: Link,
) -> None:
    sink = link.limit(SLOW, 50).sink()
    sender = link.send(sink, "--flows", "3", "--bytes", "2000000", "--control", "cubic")
    wait_until("three connections", lambda: len(link.sender.connections()) == 3)
    attach(sender.pid)
    assert {c.control for c in link.sender.connections()} == {DEFAULT}
    detach(sender.pid)
    assert {(c.control, c.tos) for c in link.sender.connections()} == {("cubic", 0)}
    link.limit(FAST, 50)
    sender.succeed()
    assert [f["complete"] for f in sink.report()["flows"]] == [True] * 3


def test_a_listener_and_what_it_accepted_are_out_of_the_background(link: Link) -> None:
    server = link.sender.start(PYTHON, "-S", "-E", "-c", SERVES, SENDER, str(PORT))
    assert server.line() == "ready"
    attach(server.pid)

    def connect() -> None:
        link.receiver.open_socket(socket.AF_INET, socket.SOCK_STREAM).connect((SENDER, PORT))
        assert server.line() == "accepted"

    connect()
    assert only(link.sender.connections()).control == DEFAULT
    assert "took 2 connections out" in detach(server.pid)  # the listener is one
    connect()
    # reno is this network's own
    assert [(c.control, c.tos) for c in link.sender.connections()] == [("reno", 0)] * 2
    server.popen.kill()
    server.status()


def test_a_connection_that_began_in_the_background_gets_the_default_of_its_network(
    enabled: Enabled,
) -> None:
    link = enabled("nice")
    sender = link.send(link.sink(), "--control", "nn_nice")
    wait_until("a flow", flows)
    detach(sender.pid)
    assert only(link.sender.connections()).control == "reno"
    sender.popen.terminate()
    sender.succeed()


def test_the_connections_of_a_run_stay_in_the_background(link: Link) -> None:
    sender = link.send(link.sink(), under=UNDER)
    (before,) = wait_until("a flow", flows)
    assert "1 connections are of a run, and stay" in detach(sender.pid, status=1)
    (after,) = flows()
    assert (after["control"], after["run"]) == (before["control"], before["run"])
    sender.popen.terminate()
    sender.succeed()


def test_who_has_nothing_in_the_background_is_told_so(link: Link) -> None:
    sender = link.send(link.sink())
    wait_until("a connection", link.sender.connections)
    assert "nothing else to take out" in detach(sender.pid, status=1)
    assert only(link.sender.connections()).control == "reno"
    assert "no process 999999999" in detach(999999999, status=1)
    sender.popen.terminate()
    sender.succeed()
