# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""With `--to` only connections with these peers are in the background."""

from __future__ import annotations

import json
import socket
import subprocess

import pytest
from classes import DEFAULT
from client import RUN, SERVES, Client, accept, ended
from leftovers import sweep
from support import (
    LE,
    PORT,
    PYTHON,
    RECEIVER,
    RECEIVER6,
    SENDER,
    Link,
    call,
    flows,
    status,
    wait_until,
)

OTHER = "10.0.2.254"
"""The router, as the receiver reaches it."""
OWN_TOS = 0x20


def by_remote(link: Link) -> dict[str, tuple[str, int]]:
    """Return control and TOS octet of the sender's connections."""
    found = {}
    for c in link.sender.connections():
        found[c.remote] = (c.control, c.tos)
    return found


@pytest.mark.parametrize(
    "to",
    [
        ["10.0.2.0/28"],
        [f"{RECEIVER}:{PORT}"],
        ["10.9.0.0/16", "2001:db8::/32", f"0.0.0.0/0:{PORT}"],
    ],
)
def test_only_what_is_opened_to_such_a_peer_is_in_the_background(link: Link, to: list[str]) -> None:
    meant = link.receiver.listen(RECEIVER, PORT)
    other = link.router.listen(OTHER, PORT + 1)
    options = [word for prefix in to for word in ("--to", prefix)]
    client = Client(link.sender, *RUN, "--json", *options, "--")
    client.do("open AF_INET SOCK_STREAM")
    client.do(f"set IPPROTO_IP IP_TOS {OWN_TOS}")
    client.do(f"connect {OTHER} {PORT + 1}")
    client.do("set IPPROTO_TCP TCP_CONGESTION cubic")  # it is its own
    spared = accept(other, link.router)
    assert by_remote(link) == {f"{OTHER}:{PORT + 1}": ("cubic", OWN_TOS)}
    assert status()["runs"][0]["not_governed"] == [{"why": "only_spared", "connections": 1}]
    client.do("open AF_INET SOCK_STREAM")
    client.do(f"set IPPROTO_IP IP_TOS {OWN_TOS}")
    client.do(f"connect {RECEIVER} {PORT}")
    client.do("set IPPROTO_TCP TCP_CONGESTION cubic")
    kept = accept(meant, link.receiver)
    assert by_remote(link)[f"{RECEIVER}:{PORT}"] == (DEFAULT, LE)
    client.do("send 1000")
    assert kept.recv(1000, socket.MSG_WAITALL) == b"x" * 1000
    spared.close()
    kept.close()
    client.do("close")
    ended(client.process)
    report = json.loads(client.process.errors)
    assert (report["connections"], report["spared"], report["not_governed"]) == (1, 1, [])


def test_a_peer_of_ipv6_is_meant_too(link: Link) -> None:
    meant = link.receiver.listen(RECEIVER6, PORT)
    plain = link.receiver.listen(RECEIVER, PORT)
    client = Client(link.sender, *RUN, "--to", f"[{RECEIVER6}/128]:{PORT}", "--")
    client.do("open AF_INET6 SOCK_STREAM")
    client.do(f"connect {RECEIVER6} {PORT}")
    accept(meant, link.receiver)
    assert [(c.control, c.tos) for c in link.sender.connections()] == [(DEFAULT, LE)]
    client.do("close")
    # an IPv4 peer through a socket of IPv6
    client.do("open AF_INET6 SOCK_STREAM")
    client.do(f"connect ::ffff:{RECEIVER} {PORT}")
    accept(plain, link.receiver)
    assert ("reno", 0) in [(c.control, c.tos) for c in link.sender.connections()]
    client.process.end()


@pytest.mark.parametrize(("to", "control"), [
    (RECEIVER, DEFAULT), (f"10.0.0.0/8:{PORT}", DEFAULT), (OTHER, "reno"),
    (f"{RECEIVER}:{PORT + 1}", "reno"),
])  # fmt: skip
def test_what_is_accepted_is_meant_by_its_peer_or_its_own_port(
    link: Link, to: str, control: str
) -> None:
    server = link.sender.start(
        *RUN, "--to", to, "--", PYTHON, "-S", "-E", "-c", SERVES, SENDER, str(PORT)
    )
    assert server.line() == "ready"
    client = link.receiver.open_socket(socket.AF_INET, socket.SOCK_STREAM)
    client.connect((SENDER, PORT))
    assert server.line() == "accepted"
    (seen,) = link.sender.connections()
    assert (seen.control, seen.tos) == (control, LE if control == DEFAULT else 0)
    server.end()


def test_attach_moves_only_the_connections_with_such_a_peer(link: Link) -> None:
    meant = link.receiver.listen(RECEIVER, PORT)
    other = link.router.listen(OTHER, PORT)
    client = Client(link.sender)
    client.do("open AF_INET SOCK_STREAM")
    client.do(f"connect {RECEIVER} {PORT}")
    accept(meant, link.receiver)
    done = subprocess.run(
        ["netnice", "attach", "--to", f"{OTHER}/32", str(client.process.pid)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "1 connections and listening sockets stay as they are (--to" in done.stderr
    assert flows() == []
    call("netnice", "attach", "--to", f"10.0.2.0/24:{PORT}", str(client.process.pid))
    assert by_remote(link) == {f"{RECEIVER}:{PORT}": (DEFAULT, LE)}
    other.close()
    client.process.succeed()
    wait_until("it is closed", lambda: not link.sender.connections())
    sweep()


def test_what_is_no_prefix_is_explained() -> None:
    done = subprocess.run(
        [*RUN, "--to", "backup.example", "--", "true"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 125
    assert "write an address or a prefix" in done.stderr
    many = [word for n in range(17) for word in ("--to", f"10.0.{n}.0/24")]
    done = subprocess.run([*RUN, *many, "--", "true"], capture_output=True, text=True, check=False)
    assert done.returncode == 125
    assert "16 prefixes at most, not 17" in done.stderr
