# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""The words of `tc` for queues, rates and delays. Pure: nothing here calls a program."""

from __future__ import annotations

from typing import Any

from .places import BULK_PORT, PACKET, RSYNC_PORT
from .programs import Json

PACKET_MEMORY = 2304
"""Bytes of the guest's memory that a full packet occupies, the unit of CAKE's limit."""


def fifo(bottleneck: Json) -> str:
    """Return the `tc` words of a drop-tail queue with the bottleneck's room."""
    if bottleneck["limit_bytes"] is not None:
        return f"bfifo limit {bottleneck['limit_bytes']}"
    return f"pfifo limit {bottleneck['limit_packets']}"


def queue_lines(queue: str, bottleneck: Json) -> list[str]:
    """Return the `tc` lines that put the queue under test below the bottleneck's tbf (1:)."""
    under = "qdisc add dev rb parent 1: handle 10:"
    limit: Any = bottleneck["limit_packets"]
    ecn = " ecn" if bottleneck["ecn"] else ""
    if queue == "drop-tail":
        return [f"{under} {fifo(bottleneck)}"]
    if queue == "red":
        # tc-red(8): min a third of max, burst for (2 min + max) / 3 average packets.
        size = bottleneck["limit_bytes"] if limit is None else limit * PACKET
        top, low = size // 2, size // 6
        burst = (2 * low + top) // (3 * 1000) + 1
        return [
            f"{under} red limit {size} min {low} max {top} avpkt 1000 burst {burst} "
            f"probability 0.02 bandwidth {bottleneck['rate_mbit']}mbit{ecn}"
        ]
    if queue in ("codel", "fq_codel", "pie"):
        return [f"{under} {queue} limit {limit}{ecn}"]
    if queue == "cake":
        return [f"{under} cake unlimited memlimit {limit * PACKET_MEMORY}"]
    # Priority: all in band 1 but what is marked DSCP LE (RFC 8622), or is bulk of this lab.
    lines = [
        f"{under} prio bands 2 priomap {' '.join(['0'] * 16)}",
        f"qdisc add dev rb parent 10:1 handle 11: {fifo(bottleneck)}",
        f"qdisc add dev rb parent 10:2 handle 12: {fifo(bottleneck)}",
    ]
    matches = [("ip", "ip dsfield 0x04 0xfc"), ("ipv6", "ip6 priority 0x04 0xfc")]
    matches += [("ip", f"ip dport {port} 0xffff") for port in (BULK_PORT, RSYNC_PORT)]
    for priority, (protocol, match) in enumerate(matches, 1):
        lines.append(
            f"filter add dev rb parent 10: protocol {protocol} prio {priority} "
            f"u32 match {match} flowid 10:2"
        )
    return lines


def bottleneck_lines(queue: str, bottleneck: Json, at_once: int, *, duplex: bool) -> list[str]:
    """Return the `tc` lines of the bottleneck; if it is `duplex`, towards a as towards b."""
    # tbf's own limit would be a second queue; its child replaces that queue at once.
    shaper = f"qdisc add dev rb root handle 1: {shape(bottleneck['rate_mbit'], at_once)}"
    lines = [shaper, *queue_lines(queue, bottleneck)]
    return lines + ([line.replace("dev rb", "dev ra") for line in lines] if duplex else [])


def shape(rate_mbit: float, packets: int = 2) -> str:
    """Return the `tc` words of the bottleneck's rate, and of what leaves at once after a rest."""
    return f"tbf rate {rate_mbit}mbit burst {packets * PACKET} limit 1000000"


def delay(rtt_ms: float) -> list[str]:
    """Return the `tc` words that set the whole two-way delay, in b."""
    return ["qdisc", "replace", *f"dev b0 root netem delay {rtt_ms}ms limit 1000000".split()]


def change_lines(bottleneck: Json, queue: str, change: Json) -> dict[str, list[str]]:
    """Return the `tc` lines that carry out a `[[bottleneck.change]]`, by network namespace."""
    lines: dict[str, list[str]] = {}
    if change["rate_mbit"] is not None:
        lines["r"] = [f"qdisc change dev rb root handle 1: {shape(change['rate_mbit'])}"]
        if queue == "drop-tail":
            # tbf has given its own limit to a FIFO below it.
            lines["r"] += [f"qdisc change dev rb parent 1: handle 10: {fifo(bottleneck)}"]
    if change["rtt_ms"] is not None:
        lines["b"] = [" ".join(delay(change["rtt_ms"]))]
    return lines
