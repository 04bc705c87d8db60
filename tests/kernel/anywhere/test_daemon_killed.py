# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""`netnice daemon`, killed again and again while users' jobs begin, send and end."""

from __future__ import annotations

import json
import random
import socket
import threading
import time
from collections.abc import Iterator

import pytest
from client import Client, ended, received
from daemon import Activated, Daemon, run
from held import devices
from leftovers import needless
from recipes import BACKGROUND
from sizes import sized
from support import LE, NOBODY, PATIENCE_S, PORT, RECEIVER, Link, wait_until

RUNS = sized(10, 100)
CONNECTIONS, BYTES = 3, 20_000
MARK_PORT = PORT + 1


@pytest.fixture
def daemon(link: Link) -> Iterator[Daemon]:
    """Start one at the sender; what users leave it has to take away itself."""
    started = Activated(link.sender)
    yield started
    started.end()


class Job:
    """A user's run, which sends over one connection after the other."""

    def __init__(self, link: Link, listener: socket.socket) -> None:
        """Take the place where its connections arrive."""
        self.link, self.listener = link, listener

    def run(self) -> None:
        """Run it; no byte may be lost, and no connection be raised."""
        client = Client(self.link.sender, *run(NOBODY, "--json"))
        for _ in range(CONNECTIONS):
            client.do("open AF_INET SOCK_STREAM")
            client.do(f"connect {RECEIVER} {PORT}")
            with self.listener.accept()[0] as accepted:
                accepted.settimeout(PATIENCE_S)
                seen = {(c.control, c.tos) for c in self.link.sender.connections()}
                assert seen == {BACKGROUND}
                client.do(f"send {BYTES}")
                client.do("close")
                assert len(received(accepted, BYTES + 1)) == BYTES
        ended(client.process)
        said = json.loads(client.process.errors)
        assert (said["connections"], said["not_governed"]) == (CONNECTIONS, [])


def left_beside(daemon: Daemon) -> dict[str, list[str]]:
    """Return what is left behind, but for the daemon itself."""
    found = needless()
    if len(found.get("processes", [])) == 1 and not daemon.process.ended():
        del found["processes"]
    return found


def test_killed_at_any_moment_it_costs_no_job_a_byte_and_raises_no_connection(
    link: Link, daemon: Daemon
) -> None:
    moments = random.Random(28)
    before = devices(link)
    capture = link.capture()
    job = Job(link, link.receiver.listen(RECEIVER, PORT))
    began_s = time.monotonic()
    job.run()
    whole_s = time.monotonic() - began_s

    def strike(moment_s: float) -> None:
        time.sleep(moment_s)  # when to strike, not something to wait for
        daemon.kill()
        daemon.follow()

    for _ in range(RUNS):
        striking = threading.Thread(target=strike, args=[moments.uniform(0, whole_s)])
        striking.start()
        try:
            job.run()
        finally:
            striking.join()
    # the first packet that is not in the background is one that need not be
    link.receiver.listen(RECEIVER, MARK_PORT)
    link.sender.open_socket(socket.AF_INET, socket.SOCK_STREAM).connect((RECEIVER, MARK_PORT))
    assert capture.first("plain", lambda p: p.tos & ~3 != LE).dport == MARK_PORT
    wait_until("nothing is left", lambda: not left_beside(daemon) and devices(link) == before)
