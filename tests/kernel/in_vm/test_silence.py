# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Silent phases (FAIRBAT, mode=tau): nothing new leaves, losses are answered, it wakes on time."""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import islice, pairwise

import pytest
from sizes import sized
from support import PYTHON, RECEIVER, Capture, Link, Packet, flows, wait_until

WEIGHT = 0.5
DELAY_MS, RATE_MBIT, QUEUE = 40.0, 4.0, 10
DRAIN_S = 0.6
"""A round trip with a full queue is 70 ms, a delayed ACK comes 40 ms later, and a loss in the last
window takes a few round trips more. The last packet's is found by a probe 0.4 s after it, which is
a new packet (RFC 8985)."""


@dataclass(frozen=True)
class Phase:
    """The packets from one silence to the next."""

    packets: list[Packet]

    @property
    def start_s(self) -> float:
        """When the first packet left."""
        return self.packets[0].time_s

    @property
    def length_s(self) -> float:
        """From the first to the last packet."""
        return self.packets[-1].time_s - self.start_s


def phases(capture: Capture, count: int) -> list[Phase]:
    """Return the next `count` phases that are whole: with a second of silence before and after."""
    found: list[list[Packet]] = []
    for packet in capture.packets():
        if packet.payload == 0:
            continue
        if not found or packet.time_s - found[-1][-1].time_s > 1:
            found.append([])
        found[-1].append(packet)
        if len(found) == count + 2:
            return [Phase(packets) for packets in found[1:-1]]
    return []


def under(algorithm: str, weight: float, period_s: float) -> list[str]:
    """Return the command that makes a flow silent for the share 1 - `weight` of each period."""
    settings = ["mode=tau", f"start={weight}", "g_w=0", f"d_c={period_s}", "d_r=0"]
    options = [word for s in settings for word in ("--set", s)]
    return ["netnice", "run", "--algorithm", algorithm, *options, "--"]


@pytest.mark.parametrize(
    ("algorithm", "period_s", "periods"),
    [
        ("fairbat2", 4.0, sized(4, 8)),
        # the longest silence of the default period at this weight
        *sized([], [("fairbat1", 4.0, 8), ("fairbat1", 40.0, 3)]),
    ],
)
def test_a_silent_phase_sends_nothing_and_ends_on_time(
    link: Link, algorithm: str, period_s: float, periods: int
) -> None:
    link.limit(RATE_MBIT, QUEUE).delay(DELAY_MS)
    sender = link.send(link.sink(), under=under(algorithm, WEIGHT, period_s))
    # the kernel does not pace the first ten packets of a connection: they are through
    wait_until("the first phase", lambda: [f for f in flows() if f["yielding"]])
    found = phases(link.capture(), periods)
    (flow,) = flows()
    late_s = [b.start_s - a.start_s - period_s for a, b in pairwise(found)]
    over_s = [p.length_s - WEIGHT * period_s for p in found]
    # first bytes of packets sent after the active phase that had not been sent before
    new = [
        sum(p.seq > max(q.seq for q in phase.packets[:i])
            for i, p in enumerate(phase.packets)
            if i and p.time_s > phase.start_s + WEIGHT * period_s + DRAIN_S)
        for phase in found
    ]  # fmt: skip
    again = [len(p.packets) - len({q.seq for q in p.packets}) for p in found]
    print(f"silence_wake_up_late {max(late_s) * 1000:.1f} ms; all {late_s}; phases over by "
          f"{over_s}; new packets in silence {new}; sent again {again}")  # fmt: skip
    assert len(found) == periods
    assert new == [0] * periods
    # the share of the time that the weight asks for, but for the drain
    assert all(-0.1 < o < DRAIN_S for o in over_s)
    # The kernel's rate for a gap of g s is floor(1448/g), by less than one below it: the wait of
    # 1448/rate is too long by less than g/(1448/g - 1), 2.8 ms for 2 s and 0.28 s for 20 s. Its
    # timers come on top.
    gap_s = (1 - WEIGHT) * period_s
    assert all(-0.02 < late < gap_s / (1448 / gap_s - 1) + 0.02 for late in late_s)
    assert sum(again) > 0, "the queue must have been full now and then"
    assert flow["weight"] == WEIGHT
    sender.popen.terminate()
    sender.succeed()


LONG_PERIOD_S, LONG_RTT_S = 18.0, 2.0


@pytest.mark.soak
def test_a_silence_ends_on_time_though_the_packet_before_it_was_lost(link: Link) -> None:
    link.without_offloads().delay(LONG_RTT_S * 1000)
    # a program that is not in memory takes seconds of a busy machine's virtual time: tc waits
    tc = link.router.start("tc", "-batch", "-")
    tc.tell("qdisc add dev right root netem")
    packets = (p for p in link.capture().packets() if p.payload)
    sender = link.send(link.sink(), under=under("fairbat1", WEIGHT, LONG_PERIOD_S))
    start_s = next(packets).time_s
    # rounds of slow start at 0, 2 ... 8 s; the phase ends at 9 s, the window falls to one packet,
    # which leaves at 10 s
    end_s = start_s + WEIGHT * LONG_PERIOD_S
    time.sleep(max(end_s - time.time(), 0))
    tc.tell("qdisc change dev right root netem loss 100%")
    carrier = next(p for p in packets if p.time_s > end_s)
    woken = [next(packets) for _ in range(4)]
    late_s = [packet.time_s - start_s - LONG_PERIOD_S for packet in woken]
    print(f"silence_wake_up_late_after_loss {max(late_s) * 1000:.1f} ms; all {late_s}")
    # the kernel takes a whole rate for 1448 bytes in 8 s: 8**2 / 1448 s too long at most; Linux'
    # probe (RFC 8985) would be a round trip late, and one packet
    assert all(abs(late) < 0.1 for late in late_s)
    assert all(packet.seq > carrier.seq for packet in woken)
    assert any(packet.seq == carrier.seq for packet in islice(packets, 100)), "it was lost"
    sender.popen.terminate()
    sender.succeed()


WRITER = """
import socket, sys
s = socket.create_connection((sys.argv[1], int(sys.argv[2])))
s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
for line in sys.stdin:
    for _ in range(int(line)):
        s.sendall(bytes(1448))
"""


@pytest.mark.soak
def test_a_timeout_after_the_silence_does_not_begin_another(link: Link) -> None:
    period_s, delay = 40.0, ("delay", "300ms")
    link.without_offloads().netem(link.router, "right", *delay)
    # with nothing new to send Linux' probe (RFC 8985) asks no control; a timeout does
    link.sender.call("sh", "-c", "echo 0 > /proc/sys/net/ipv4/tcp_early_retrans")
    listener = link.receiver.listen(RECEIVER)
    port = listener.getsockname()[1]
    packets = (p for p in link.capture().packets() if p.payload and p.dport == port)
    writer = link.sender.start(
        *under("fairbat1", WEIGHT, period_s), PYTHON, "-c", WRITER, RECEIVER, str(port)
    )
    writer.tell("20")  # the kernel does not pace the first ten
    end_s = min(next(packets).time_s for _ in range(20)) + period_s
    time.sleep(1)  # all is acknowledged: it does not matter how long tc takes
    link.netem(link.router, "right", *delay, "loss", "100%")
    # of the silence of 20 s the half is left: a busy machine's tc takes seconds, and so may a write
    time.sleep(max(end_s - 10 - time.time(), 0))
    writer.tell("1")
    carrier = next(packets)
    assert carrier.time_s < end_s - 2, "in the silence, which it makes"
    link.netem(link.router, "right", *delay)
    again = next(packets)
    assert again.seq == carrier.seq
    writer.tell("1")
    told_s = time.time()
    while again.seq == carrier.seq:
        ready_s = max(again.time_s, told_s)
        again = next(packets)
    late_s = again.time_s - ready_s
    print(f"written to sent after a timeout {late_s:.4f} s")
    # the window after a timeout is one packet: the next leaves a round trip later
    assert late_s < 0.5
    writer.succeed()


LOSS_PERIOD_S, LOSS_WEIGHT = 36.0, 0.25


# whether the kernel cuts the window of a flow that idled (RFC 2861)
@pytest.mark.parametrize("cut", [0, pytest.param(1, marks=pytest.mark.soak)])
def test_what_the_last_window_lost_is_sent_again_in_the_silence(link: Link, cut: int) -> None:
    link.without_offloads().delay(LONG_RTT_S * 1000)
    idle = "/proc/sys/net/ipv4/tcp_slow_start_after_idle"
    link.sender.call("sh", "-c", f"echo {cut} > {idle}")
    tc = link.router.start("tc", "-batch", "-")
    tc.tell("qdisc add dev right root netem")
    listener = link.receiver.listen(RECEIVER)
    port = listener.getsockname()[1]
    # as the router gets them, before it loses any
    packets = (p for p in link.capture().packets() if p.payload and p.dport == port)
    writer = link.sender.start(
        *under("fairbat1", LOSS_WEIGHT, LOSS_PERIOD_S),
        PYTHON, "-c", WRITER, RECEIVER, str(port),
    )  # fmt: skip
    writer.tell("20")  # the kernel does not pace the first ten; all is acknowledged after 4 s
    start_s = min(next(packets).time_s for _ in range(20))
    end_s = start_s + LOSS_WEIGHT * LOSS_PERIOD_S
    woken_s = start_s + LOSS_PERIOD_S
    # The last window, 14 of 15 packets at least, so that it leaves as it is written. Its ACKs come
    # after the active phase, and the last eight one by one: recovery begins at the third of them,
    # with five in flight.
    time.sleep(max(end_s - 1.5 - time.time(), 0))
    sent = []
    for counts, loss in (([3], "0%"), ([3], "100%"), ([1] * 8, "0%")):
        tc.tell(f"qdisc change dev right root netem loss {loss}")
        time.sleep(0.2)
        for count in counts:
            writer.tell(str(count))
            time.sleep(0.05)
        sent.append([next(packets) for _ in range(sum(counts))])
    lost = [p.seq for p in sent[1]]
    assert end_s - LONG_RTT_S < sent[0][0].time_s and sent[-1][-1].time_s < end_s
    time.sleep(max(end_s + 0.1 - time.time(), 0))
    writer.tell("40")
    silent = []
    while (packet := next(packets)).time_s < woken_s - 1:
        silent.append(packet)
    again = [p for p in silent if p.seq in lost]
    new = [p for p in silent if p.seq not in lost]
    print(f"after the active phase: sent again {[p.time_s - end_s for p in again]}, "
          f"new {[p.time_s - end_s for p in new]}; woken {packet.time_s - woken_s}")  # fmt: skip
    assert [p.seq for p in again] == lost
    carrier = silent[-1]
    assert carrier.seq == max(p.seq for p in silent) < packet.seq
    # two in a round trip at least, and a third round trip until the last is acknowledged
    assert again[-1].time_s + 0.99 * LONG_RTT_S < carrier.time_s < end_s + 3 * LONG_RTT_S
    assert new == [carrier]
    writer.succeed()
