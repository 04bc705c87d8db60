# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Downloads over QUIC yield if a run asks for it: its datagrams wait in the host that they came to.

Where fq is (Debian's kernels), and time is virtual. The sender is plain: quinn's CUBIC.
"""

from __future__ import annotations

import json
import time

import pytest
from came import RATE_MBIT, carried_mbit, source_of
from support import MEMORY, RECEIVER, RECEIVER6, Json, Link, Process, wait_until

RUN = ("netnice", "run", "--json", "--no-hold", "--udp-downloads", "--")
"""The device holds already: to begin takes seconds of an emulated processor."""
KEY = str(MEMORY / "download.der")


class Download:
    """Bulk flows over QUIC from the sender to a run at the receiver."""

    def __init__(
        self,
        link: Link,
        address: str,
        *options: str,
        to: tuple[str, ...] = RUN,
        control: str = "cubic",
    ) -> None:
        """Start it."""
        host = f"[{address}]" if ":" in address else address
        sink = (
            "netnice-load",
            "sink",
            "--listen",
            f"{host}:0",
            "--quic",
            KEY,
            "--json",
            "/dev/null",
        )
        self.sink = link.receiver.start(*to, *sink)
        at = self.sink.line().removeprefix("listening ")
        self.sender: Process = link.sender.start(
            "netnice-load", "send", at, "--quic", KEY, "--control", control, *options
        )

    def end(self) -> Json:
        """Let all of it arrive; return what the run says."""
        assert "confirmed complete and intact" in self.sender.succeed()
        self.sink.popen.terminate()
        assert self.sink.status() == 0, self.sink.errors
        return dict(json.loads(self.sink.errors))


def queued(link: Link) -> int:
    """Return how many bytes wait at the bottleneck now."""
    (queue,) = json.loads(link.router.call("tc", "-j", "-s", "qdisc", "show", "dev", "right"))
    return int(queue["backlog"])


@pytest.mark.parametrize("address", [RECEIVER, pytest.param(RECEIVER6, marks=pytest.mark.soak)])
def test_they_fill_an_idle_link_and_leave_it_to_a_download_of_the_foreground(
    pulls: Link, address: str
) -> None:
    download = Download(pulls, address, "--bytes", "12000000")
    wait_until("a rate", lambda: (source_of(pulls) or {}).get("rate_bits", 0) > 7e6)
    time.sleep(3)
    queues = []
    for _ in range(5):
        queues.append(queued(pulls))
        time.sleep(0.2)
    background, _ = carried_mbit(pulls, 6)
    # .95, and 1.07 for half a second in five; beside 50 packets of plain CUBIC's
    assert 0.85 * RATE_MBIT < background <= 1.02 * RATE_MBIT, background
    assert sorted(queues)[2] < 10 * 1500, queues
    sink = pulls.sink()
    pulls.send(sink, "--bytes", "6000000")
    wait_until("both", pulls.sender.connections)
    time.sleep(2)
    background, received = carried_mbit(pulls, 3)
    assert background < 0.25 * received, (background, received)
    said = download.end()
    assert said["not_governed"] == [], said


@pytest.mark.soak
def test_they_go_on_where_the_waiting_devices_are_taken_away(pulls: Link) -> None:
    download = Download(pulls, RECEIVER, "--bytes", "6000000", "--flows", "4")
    wait_until("a rate", lambda: (source_of(pulls) or {}).get("rate_bits", 0) > 7e6)
    time.sleep(1)
    links = json.loads(pulls.receiver.call("ip", "-json", "link"))
    (wait,) = [link["ifname"] for link in links if link["ifname"].startswith("nnwait")]
    pulls.receiver.call("ip", "link", "del", wait)
    download.end()


@pytest.mark.soak
def test_what_did_not_yield_is_told_with_the_option_that_lets_it(pulls: Link) -> None:
    download = Download(
        pulls, RECEIVER, "--bytes", "3000000", to=("netnice", "run", "--json", "--no-hold", "--")
    )
    (not_governed,) = download.end()["not_governed"]
    assert not_governed["why"] == "udp_received"
    assert not_governed["bytes"] > 3_000_000


@pytest.mark.soak
@pytest.mark.parametrize(("control", "told"), [("cubic", []), ("bbr", ["udp_dropped"])])
def test_a_server_that_does_not_slow_down_for_losses_is_told(
    pulls: Link, control: str, told: list[str]
) -> None:
    download = Download(pulls, RECEIVER, "--bytes", "3000000", "--flows", "4", control=control)
    assert [what["why"] for what in download.end()["not_governed"]] == told
