# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Whatever happens to a path or to netnice, every byte arrives, and the transfer goes on."""

from __future__ import annotations

import resource
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from classes import DEFAULT
from leftovers import kill_companion
from netnice_lab.guest.places import PACKET
from sizes import EACH, FAST, SLOW, control, sized, under
from support import (
    PATIENCE_S,
    PORT,
    PYTHON,
    RECEIVER,
    Enabled,
    Link,
    Process,
    Sink,
    algorithms,
    call,
    flows,
    registered,
    wait_until,
    wide,
)

ALL = algorithms()
# outside of a run, with the defaults
UNBOUNDED = [name for name in ALL if not wide(name)]
OUTAGE_S = sized(3.0, 10.0)


def require_intact(sender: Process, sink: Sink, count: int, size: int) -> None:
    """Wait for the sender; both ends must agree that every byte of every flow arrived."""
    sender.succeed()  # it fails unless the sink confirmed every flow
    report = sink.report()
    assert report["errors"] == 0
    assert [f["bytes"] for f in report["flows"]] == [size] * count
    assert all(f["complete"] for f in report["flows"])


@pytest.mark.parametrize("algorithm", EACH)
def test_many_connections_at_once_arrive_intact(link: Link, algorithm: str) -> None:
    count, size = sized(200, 1000), 30_000
    needed = count + 64
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert hard >= needed, f"{count} connections need {needed} files; raise the limit: ulimit -Hn"
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, needed), hard))
    sink = link.limit(200, 500).sink()
    # it confirms nothing until all are open; the kernel accepts for it meanwhile
    sink.process.stop()
    sender = link.send(sink, "--flows", str(count), "--bytes", str(size), under=under(algorithm))
    most = 0

    def all_at_once() -> bool:
        nonlocal most
        most = max(most, sum(f["control"] == control(algorithm) for f in flows()))
        return most == count or sender.ended()

    wait_until(f"{count} background connections", all_at_once)
    assert most == count
    sink.process.popen.send_signal(signal.SIGCONT)
    require_intact(sender, sink, count, size)


@pytest.fixture
def links(enabled: Enabled) -> Iterator[list[Link]]:
    """Make a path for each algorithm, so that none yields to another."""
    with ExitStack() as stack:
        made = [enabled(*UNBOUNDED)]
        for _ in UNBOUNDED[1:]:
            made.append(Link())
            stack.callback(made[-1].remove)
        yield made


def test_transfers_survive_an_outage_of_many_timeouts(links: list[Link]) -> None:
    size = 4_000_000
    sinks = [link.limit(SLOW, 50).sink() for link in links]
    senders = [
        link.send(sink, "--bytes", str(size), "--control", f"nn_{name}")
        for link, sink, name in zip(links, sinks, UNBOUNDED, strict=True)
    ]

    def acked() -> dict[str, int]:
        return {f["control"]: f["bytes_acked"] for f in flows()}

    names = {f"nn_{name}" for name in UNBOUNDED}
    wait_until("all flows send", lambda: {n for n, a in acked().items() if a > 100_000} == names)
    for link in links:
        link.router.call("ip", "link", "set", "right", "down")
    before = acked()
    assert set(before) == names, "the outage must meet flows that are under way"
    time.sleep(OUTAGE_S)  # the outage itself: nothing to wait for happens in it
    during = acked()
    for link in links:
        link.limit(FAST, 50).router.call("ip", "link", "set", "right", "up")
    # an ACK that was on its way when `before` was read covers no more than the queue
    assert all(during[name] - before[name] <= 60 * PACKET for name in names)
    for sender, sink in zip(senders, sinks, strict=True):
        require_intact(sender, sink, 1, size)


@pytest.mark.usefixtures("cold")
def test_when_the_peer_is_killed_the_command_learns_it_and_nothing_stays(link: Link) -> None:
    sink = link.sink()
    sender = link.send(sink, under=under("nice"))
    wait_until("a flow", flows)
    sink.process.popen.kill()
    assert sender.status() == 1  # netnice-load's own: connection reset
    assert registered() == set()


@pytest.mark.usefixtures("cold")
def test_a_peer_that_vanishes_without_a_word_leaves_nothing(link: Link) -> None:
    sink = link.sink()
    sender = link.send(sink, under=under("nice"))
    wait_until("a flow", flows)
    link.router.call("ip", "link", "set", "right", "down")
    sender.popen.terminate()
    sender.status()
    assert registered() == set()


@pytest.mark.parametrize("algorithm", EACH)
def test_a_transfer_whose_companion_is_killed_arrives_intact(link: Link, algorithm: str) -> None:
    size = 1_000_000
    sink = link.limit(SLOW, 50).sink()
    link.send(sink, "--flows", "2", "--bytes", str(size), under=under(algorithm))
    wait_until("both flows send", lambda: sum(f["bytes_acked"] > 50_000 for f in flows()) == 2)
    kill_companion()
    assert {f["control"] for f in flows()} == {control(algorithm)}
    link.limit(FAST, 50)
    wait_until("the command ends", lambda: not call("ip", "netns", "pids", link.sender.name))
    report = sink.report()
    assert [(f["bytes"], f["complete"]) for f in report["flows"]] == [(size, True)] * 2
    call("netnice", "disable")


def test_disable_during_a_run_takes_nothing_from_it(link: Link) -> None:
    size = 3_000_000
    sink = link.limit(SLOW, 50).sink()
    sender = link.send(sink, "--bytes", str(size), under=under("nice"))
    wait_until("a flow", flows)
    call("netnice", "disable")
    assert registered() == {"nn_nice"}
    link.limit(FAST, 50)
    require_intact(sender, sink, 1, size)
    assert registered() == set()


def test_two_runs_at_once_both_arrive_intact(link: Link) -> None:
    size = sized(250_000, 2_000_000)
    link.limit(20, 50)
    sinks = [link.sink() for _ in ALL]
    for sink in sinks:
        sink.process.stop()  # none is done before all have begun
    senders = [
        link.send(sink, "--flows", "2", "--bytes", str(size), under=under(name))
        for sink, name in zip(sinks, ALL, strict=True)
    ]
    have = [(sink.at, control(name)) for sink, name in zip(sinks, ALL, strict=True)]
    wait_until("two of each", lambda: len(flows()) == 2 * len(ALL))
    assert sorted((f["remote"], f["control"]) for f in flows()) == sorted(2 * have)
    for sink in sinks:
        sink.process.popen.send_signal(signal.SIGCONT)
    for sender, sink in zip(senders, sinks, strict=True):
        require_intact(sender, sink, 2, size)


@pytest.mark.parametrize("algorithm", EACH)
def test_many_flows_through_a_short_queue_arrive_intact(link: Link, algorithm: str) -> None:
    # 32 flows, 10 packets of room: windows below one packet, losses, timeouts
    count, size = 32, 100_000
    sink = link.limit(20, 10).sink()
    sender = link.send(sink, "--flows", str(count), "--bytes", str(size), under=under(algorithm))
    require_intact(sender, sink, count, size)


WRITES_LITTLE = """
import socket, sys
sock = socket.create_connection((sys.argv[1], int(sys.argv[2])))
sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
for i in range(2000):
    sock.sendall(i.to_bytes(4, "big") * 8)
"""


@pytest.mark.parametrize("algorithm", EACH)
def test_an_application_that_writes_little_at_a_time_is_heard_in_full(
    link: Link, algorithm: str
) -> None:
    listener = link.receiver.listen(RECEIVER, PORT)
    sender = link.sender.start(
        *under(algorithm), PYTHON, "-S", "-E", "-c", WRITES_LITTLE, RECEIVER, str(PORT)
    )
    accepted, _ = listener.accept()
    got = bytearray()
    while data := accepted.recv(1 << 16):
        got += data
    accepted.close()
    assert bytes(got) == b"".join(i.to_bytes(4, "big") * 8 for i in range(2000))
    sender.succeed()


ECHOES = """
import socket, sys
sock = socket.create_connection((sys.argv[1], int(sys.argv[2])))
for line in sys.stdin:
    sock.sendall(b"x" * int(line))
"""


@pytest.mark.parametrize("algorithm", EACH)
def test_after_an_idle_time_the_connection_goes_on(link: Link, algorithm: str) -> None:
    listener = link.limit(20, 50).receiver.listen(RECEIVER, PORT)
    sender = link.sender.start(
        *under(algorithm), PYTHON, "-S", "-E", "-c", ECHOES, RECEIVER, str(PORT)
    )
    accepted, _ = listener.accept()
    accepted.settimeout(PATIENCE_S)
    size = 500_000
    for pause_s in (0, 1, 1):
        # the pause itself: many times the retransmission timeout (200 ms at least), after which
        # the kernel cuts an unused window (RFC 2861)
        time.sleep(pause_s)
        sender.tell(str(size))
        left = size
        while left:
            left -= len(accepted.recv(min(left, 1 << 16)))
    assert [c.control for c in link.sender.connections()] == [control(algorithm)]
    sender.succeed()
    assert accepted.recv(1) == b""
    accepted.close()


def test_a_connection_that_is_reset_at_once_leaves_nothing(link: Link) -> None:
    listener = link.receiver.listen(RECEIVER, PORT)
    sender = link.sender.start("netnice", "run", "--", "busybox", "nc", RECEIVER, str(PORT))
    accepted, _ = listener.accept()
    accepted.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    accepted.close()
    sender.status()
    assert registered() <= {DEFAULT}


def test_a_connection_that_is_refused_leaves_nothing(link: Link) -> None:
    sender = link.sender.start("netnice", "run", "--", "busybox", "nc", RECEIVER, "1")
    assert sender.status() == 1
    assert registered() <= {DEFAULT}
