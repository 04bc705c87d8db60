# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Sockets that a command is started with are in the background: of a socket unit, of inetd."""

from __future__ import annotations

import json
import socket
import subprocess

import pytest
from classes import DEFAULT
from client import RUN, UNDER, accept, only
from support import (
    LE,
    PATIENCE_S,
    PORT,
    PYTHON,
    RECEIVER,
    SENDER,
    Connection,
    Json,
    Link,
    flows,
    wait_until,
)

HAS_A_LISTENER = """
import socket
listener = socket.socket(fileno=3)
listener.setblocking(True)
print("ready", flush=True)
held, _ = listener.accept()
held.sendall(b"x" * 100)
held.recv(1)
"""


def passed_down(
    link: Link, *under: str, protocol: int = socket.IPPROTO_TCP
) -> tuple[Connection, str]:
    """Have a command accept by a listener that it gets from its parent, as from systemd.

    Return the connection, as it was while it was open, and what was said until the command's end.
    """
    listener = link.sender.listen(SENDER, PORT, protocol)
    server = subprocess.Popen(
        ["bash", "-c", f'exec "$@" 3<&{listener.fileno()}', "bash", *under,
         PYTHON, "-S", "-E", "-c", HAS_A_LISTENER],
        pass_fds=[listener.fileno()], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert server.stdout is not None
    assert server.stdout.readline() == "ready\n"
    client = link.receiver.open_socket(socket.AF_INET, socket.SOCK_STREAM)
    client.connect((SENDER, PORT))
    assert client.recv(100, socket.MSG_WAITALL) == b"x" * 100
    seen = only(link.sender.connections())
    client.close()
    listener.close()
    _, said = server.communicate(timeout=PATIENCE_S)
    assert server.returncode == 0, said
    return seen, said


@pytest.mark.parametrize("protocol", [socket.IPPROTO_TCP, socket.IPPROTO_MPTCP])
def test_what_a_listener_that_was_passed_down_accepts_is_in_the_background(
    link: Link, protocol: int
) -> None:
    seen, said = passed_down(link, *UNDER, protocol=protocol)
    assert (seen.control, seen.tos, said) == (DEFAULT, LE, "")


@pytest.mark.parametrize(
    ("to", "control", "left"),
    [
        (f"0.0.0.0/0:{PORT}", DEFAULT, []),
        (RECEIVER, "reno", [{"why": "listeners", "listeners": 1}]),
    ],
)
def test_with_peers_a_listener_that_was_passed_down_is_taken_if_all_of_its_port_is_meant_or_told_of(
    link: Link, to: str, control: str, left: list[Json]
) -> None:
    seen, said = passed_down(link, *RUN, "--json", "--to", to, "--")
    assert (seen.control, seen.tos) == (control, LE if control == DEFAULT else 0)
    assert json.loads(said)["not_governed"] == left


def test_a_connection_that_was_passed_down_is_in_the_background_with_the_runs_parameters(
    link: Link,
) -> None:
    listener = link.receiver.listen(RECEIVER, PORT)
    connection = link.sender.open_socket(socket.AF_INET, socket.SOCK_STREAM)
    connection.connect((RECEIVER, PORT))
    connection.setblocking(True)  # cat waits
    accepted = accept(listener, link.receiver)
    # as inetd does: standard input and output
    process = subprocess.Popen(
        [*RUN, "--json", "--set", "threshold=0.3", "--", "cat"],
        stdin=connection.fileno(), stdout=connection.fileno(), stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    connection.close()
    accepted.sendall(b"echo")
    assert accepted.recv(4, socket.MSG_WAITALL) == b"echo"
    seen = only(link.sender.connections())
    assert (seen.control, seen.tos) == (DEFAULT, LE)
    (known,) = wait_until("its flow", flows)
    assert known["run"] != 0
    assert known["parameters"]["threshold"] == pytest.approx(0.3, abs=1e-4)
    accepted.close()
    _, said = process.communicate(timeout=PATIENCE_S)
    report = json.loads(said)
    assert process.returncode == 0
    assert report["not_governed"] == []
