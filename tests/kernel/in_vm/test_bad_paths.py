# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Paths that lose, reorder, mark and delay: every byte arrives, and the state fits.

What repairs losses is Linux' TCP, under any window. What could be wrong is the host, in each of the
ways in which it obeys (see `sizes.EACH`): these have the path that does all of it at once. Each
fault alone, in the soak, shows which it is.
"""

from __future__ import annotations

import time

import pytest
from diag import Diag, counter
from sizes import EACH, sized, under
from support import Enabled, Link, Process, Sink, call, flows, wait_until

COUNT, SIZE = 4, sized(250_000, 500_000)
MARKED = sized(["reno"], EACH)
"""For queues that mark: it fills them, where others may keep them below where they mark."""

BOUNDED = ("--flows", str(COUNT), "--bytes", str(SIZE))


def send(link: Link, each: str, options: tuple[str, ...] = BOUNDED) -> tuple[Process, Sink]:
    call("netnice", "enable", each.split(maxsplit=1)[0])  # loaded once, for all tests of this file
    sink = link.sink()
    return link.send(sink, *options, under=under(each)), sink


def repairs(link: Link) -> int:
    """Return how often the sender's kernel repaired a loss."""
    names = ("TcpExtTCPLostRetransmit", "TcpExtTCPSackRecovery")
    return sum(counter(link.sender, name) for name in names)


def require_intact(sender: Process, sink: Sink) -> None:
    sender.succeed()
    report = sink.report()
    assert report["errors"] == 0
    assert [(f["bytes"], f["complete"]) for f in report["flows"]] == [(SIZE, True)] * COUNT


@pytest.mark.soak
@pytest.mark.parametrize("each", EACH)
def test_with_5_percent_random_loss_every_byte_arrives(link: Link, each: str) -> None:
    link.without_offloads().delay(20)
    link.netem(link.sender, "eth", "loss", "5%")
    require_intact(*send(link, each))
    # of 700 packets at least about 35 were lost; the kernel repaired, not luck
    assert repairs(link) > 0


@pytest.mark.soak
@pytest.mark.parametrize("each", EACH)
def test_when_acks_are_lost_too_every_byte_arrives(link: Link, each: str) -> None:
    link.without_offloads()
    link.netem(link.sender, "eth", "loss", "5%")
    link.netem(link.receiver, "eth", "delay", "20ms", "loss", "5%")
    require_intact(*send(link, each))


@pytest.mark.soak
@pytest.mark.parametrize("each", EACH)
def test_with_reordering_every_byte_arrives(link: Link, each: str) -> None:
    link.without_offloads()
    # a quarter of the packets overtakes those that wait for 10 ms
    link.netem(link.sender, "eth", "delay", "10ms", "reorder", "25%", "50%")
    require_intact(*send(link, each))
    reordered = sum(
        counter(link.sender, f"TcpExt{name}")
        for name in ("TCPSACKReorder", "TCPTSReorder", "TCPRenoReorder")
    )
    seen_by_receiver = counter(link.receiver, "TcpExtTCPOFOQueue")
    assert reordered + seen_by_receiver > 0


@pytest.mark.soak
@pytest.mark.parametrize("each", EACH)
def test_duplicated_packets_do_no_harm(link: Link, each: str) -> None:
    link.without_offloads().delay(20)
    link.netem(link.sender, "eth", "duplicate", "5%")
    require_intact(*send(link, each))


@pytest.mark.parametrize("each", sized(["nice"], EACH))
def test_ecn_marks_hold_the_window_down_without_a_loss(link: Link, each: str) -> None:
    link.without_offloads().delay(20)
    for end in (link.sender, link.receiver):
        end.call("sh", "-c", "echo 1 > /proc/sys/net/ipv4/tcp_ecn")
    # netem marks what may be marked, which the SYN may not: it may be lost, and sent again it would
    # no longer ask for ECN (RFC 3168, 6.1.1.1)
    link.sender.call("sh", "-c", "echo 0 > /proc/sys/net/ipv4/tcp_ecn_fallback")
    link.netem(link.router, "right", "loss", "20%", "ecn")
    sender, _ = send(link, each, ())
    wait_until("a connection", lambda: link.sender.connections() or sender.ended())
    assert not sender.ended(), sender.errors
    (flow,) = flows()
    lost_before, windows = flow["retransmits"], []

    def marks() -> int:
        return counter(link.sender, "TcpExtTCPDeliveredCE")

    marked = wait_until("100 marks", lambda: (count := marks()) >= 100 and count)
    # a question to netnice takes an emulated processor a second
    diag = Diag(link.sender)
    for _ in range(20):
        (seen,) = diag.established()
        windows.append(seen.cwnd)
        time.sleep(0.2)
    assert marks() > marked, "it went on"
    # Each mark halves the window, each unmarked round adds a packet at most. For a window of 64
    # to come about, 32 rounds of 32 packets and more would have to pass without a mark of 20 %.
    assert max(windows) < 64
    (flow,) = flows()
    assert flow["retransmits"] == lost_before
    sender.popen.terminate()
    sender.succeed()


@pytest.mark.parametrize("queue", ["fq_codel", pytest.param("red", marks=pytest.mark.soak)])
@pytest.mark.parametrize("each", MARKED)
def test_through_queues_that_mark_every_byte_arrives(link: Link, each: str, queue: str) -> None:
    for end in (link.sender, link.receiver):
        end.call("sh", "-c", "echo 1 > /proc/sys/net/ipv4/tcp_ecn")
    link.limit(8, 50).delay(20)
    options = {
        "red": "red limit 75700 min 6000 max 18000 avpkt 1000 burst 10 probability 0.1 ecn",
        "fq_codel": "fq_codel limit 50 ecn",
    }
    link.router.call("sh", "-c", f"tc qdisc add dev right parent 1: handle 10: {options[queue]}")
    require_intact(*send(link, each))
    if each == "reno":  # the others may keep the queue below where it marks
        assert counter(link.sender, "TcpExtTCPDeliveredCE") > 0


@pytest.mark.parametrize("each", EACH)
def test_on_a_path_that_does_all_of_it_at_once_every_byte_arrives(link: Link, each: str) -> None:
    link.without_offloads()
    for end in (link.sender, link.receiver):
        end.call("sh", "-c", "echo 1 > /proc/sys/net/ipv4/tcp_ecn")
    disorder = ("delay", "10ms", "reorder", "25%", "duplicate", "2%")
    link.netem(link.sender, "eth", *disorder, "loss", "2%")
    link.netem(link.router, "right", "loss", "5%", "ecn")
    link.netem(link.receiver, "eth", "delay", "10ms", "loss", "2%")
    require_intact(*send(link, each))
    # of 1400 packets 28 were lost and 350 overtook others
    assert repairs(link) > 0
    assert counter(link.receiver, "TcpExtTCPOFOQueue") > 0


def test_status_shows_the_base_rtt_of_the_path_and_the_queue(enabled: Enabled) -> None:
    rtt_ms, rate_mbit, limit = 50, 8, 50
    packet_ms = 1514 * 8 / rate_mbit / 1000
    link = enabled("vegas").limit(rate_mbit, limit).delay(rtt_ms)
    sender = link.send(link.sink(), "--control", "nn_vegas")
    # past slow start, where a window does not fit the path yet
    (flow,) = wait_until("a steady flow", lambda: [
        f for f in flows() if f["bytes_acked"] > 2_000_000 and not f["slow_start"]
    ])  # fmt: skip
    # the least RTT of the path, and up to the three packets of a burst and its delayed ACK
    assert rtt_ms <= flow["base_rtt_us"] / 1000 <= rtt_ms + 3 * packet_ms
    assert flow["base_rtt_us"] <= flow["srtt_us"] <= (rtt_ms + limit * packet_ms) * 1000
    # what fits on the path is 33 packets; Vegas keeps up to beta = 3 more, and moves by 1 a round
    fits = flow["base_rtt_us"] / 1000 / packet_ms
    assert 0.7 * fits <= flow["cwnd"] <= fits + 5
    assert 0 <= flow["queue"] <= 5
    sender.popen.terminate()
    sender.succeed()
