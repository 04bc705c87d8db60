# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""The available bandwidth beside constant traffic, as `netnice probe` measures it, is the true one.

Where time is virtual: on a path of 20 ms whose rate and constant traffic are known.
"""

from __future__ import annotations

import json
import socket
from statistics import median

import pytest
from netnice_lab.guest.places import PACKET
from support import PYTHON, RECEIVER, Enabled, Link, call, flows, wait_until

RTT_MS = 20.0
MSS = 1448
SECONDS = 6.0

# Datagrams at a constant rate: address, port, Mbit/s on Ethernet, bytes of a packet there.
CONSTANT = """
import socket, sys, time
host, port, mbit, length = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
data, gap = bytes(length - 42), length * 8e-6 / mbit
print("sending", flush=True)
at = time.monotonic()
while True:
    sock.sendto(data, (host, port))
    at += gap
    time.sleep(max(0, at - time.monotonic()))
"""


def constant(link: Link, mbit: float) -> None:
    """Send at a constant rate past the flow under test, to a socket that nobody reads."""
    sink = link.receiver.open_socket(socket.AF_INET, socket.SOCK_DGRAM)
    sink.bind((RECEIVER, 9))
    options = (RECEIVER, "9", str(mbit), str(PACKET))
    assert link.sender.start(PYTHON, "-S", "-E", "-c", CONSTANT, *options).line() == "sending"


@pytest.fixture
def path(link: Link) -> Link:
    """Start the other end of the probe."""
    assert "listening" in link.receiver.start("netnice", "probe", "--listen").line()
    return link


@pytest.mark.soak
@pytest.mark.parametrize("offloads", ["off", "on"])
@pytest.mark.parametrize(
    ("rate_mbit", "cross_mbit"),
    [(20, 10), (40, 30), (40, 20)],
    ids=lambda mbit: f"{mbit}Mbit",
)
def test_beside_constant_traffic_the_median_error_is_below_a_fifth(
    path: Link, rate_mbit: float, cross_mbit: float, offloads: str
) -> None:
    path.limit(rate_mbit, 100).delay(RTT_MS).offload(offloads)
    constant(path, cross_mbit)
    probe = ("netnice", "probe", RECEIVER, "--json", "--seconds", str(SECONDS))
    *lines, last = (json.loads(line) for line in path.sender.call(*probe).splitlines())
    true_mbit = (rate_mbit - cross_mbit) * MSS / PACKET
    errors = [abs(line["mbit"] / true_mbit - 1) for line in lines]
    print(f"{rate_mbit} - {cross_mbit} Mbit/s, offloads {offloads}: {len(lines)} results, "
          f"median error {median(errors):.4f} of {true_mbit:.2f} Mbit/s; {last}")  # fmt: skip
    assert median(errors) <= 0.2
    assert last["summary"]["median_mbit"] == pytest.approx(true_mbit, rel=0.2)
    # the queue of 100 packets adds 61 ms at 20 Mbit/s: at 81 ms and less a result every 4 RTTs
    assert len(lines) >= SECONDS / (4 * 0.081)


@pytest.mark.soak
def test_the_estimate_of_imtcp_bg_in_the_status_is_that_of_the_path(enabled: Enabled) -> None:
    path = enabled("imtcp_bg")
    path.limit(40, 100).delay(RTT_MS)
    constant(path, 20)
    sender = path.send(path.sink(), "--control", "nn_imtcp_bg")
    seen = wait_until("20 measurements", lambda: [
        f["available"] for f in flows() if (f["available"] or {"results": 0})["results"] >= 20
    ])  # fmt: skip
    (measured,) = seen
    true_mbit = 20 * MSS / PACKET
    # one result, not a median: its interval is around it, and it is no further than the range's
    # least half, 0.2 of it, and as much again of error
    assert measured["low"] <= measured["mbit"] <= measured["high"]
    assert measured["mbit"] == pytest.approx(true_mbit, rel=0.4)
    assert "nn_imtcp_bg" in call("netnice", "status")
    sender.popen.terminate()
    sender.succeed()
