# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""The network of one run in the guest, made afresh each time.

    a (servers, bulk sender) ---- r (router) ---- b (clients, bulk receiver)
      10.0.1.1  fd00:1::1          bottleneck ->    10.0.2.2  fd00:2::2

- Where the foreground has a host of its own, that is o, at r as a is: 10.0.3.1.
- The bottleneck is ``tbf`` on r towards b; the queue under test is its child.
- The whole two-way delay is netem on b's egress, in the direction of the ACKs: the queue under test
  is then followed by a bare wire, and netem never holds (nor reorders, nor drops) data.
- Random loss is netem on a's egress, before the bottleneck: it takes no room in the queue.
- What paces is fq there.
- Jitter and reordering are netem on what b receives, behind the queue; that netem has a rate, so
  high that it takes no time, since netem then keeps the order of packets whose delays vary.
- A tbf that has rested lets two packets leave at once. Where a run is `serialised` it is one, and
  netem on what b receives takes the bottleneck's time for it: whatever arrives leaves both as it
  would a line that sends one packet after the other.
- Where a run is `duplex`, there is such a bottleneck on r towards a, too, and traffic from b to a.
"""

from __future__ import annotations

import json
from pathlib import Path

from .places import CLIENT, OTHER, OTHER_HOP, PACKET
from .programs import Json, call, fail, in_netns
from .qdisc import bottleneck_lines, delay
from .row import Row

SINGLE = ("tso", "off", "gso", "off", "gro", "off")
"""What has a device send and receive single packets."""

PLAIN = "reno"
"""The congestion control of plain TCP in the papers' experiments; Linux' own."""


def build_network(
    scenario: Json, queue: str, *, serialised: bool = False, duplex: bool = False
) -> None:
    """Make the three namespaces, links, addresses, delay, loss, and the queue under test."""
    bottleneck: Json = scenario["bottleneck"]
    rate_mbit, jitter, later = (bottleneck[k] for k in ("rate_mbit", "jitter_ms", "reorder_ms"))
    if serialised and (jitter > 0 or later > 0 or bottleneck["change"]):
        fail("A serialised bottleneck has neither jitter, nor reordering, nor changes here.")
    row = Row()
    call("ip", "-batch", "-", stdin=row.links())
    ends = [
        "echo 1 > /proc/sys/net/ipv4/tcp_no_metrics_save",
        "echo cubic > /proc/sys/net/ipv4/tcp_congestion_control",
    ]
    if bottleneck["ecn"]:
        ends += ["echo 1 > /proc/sys/net/ipv4/tcp_ecn"]
    devices = {"a": ["a0"], "r": ["ra", "rb"], "b": ["b0"]}
    for netns, script in row.scripts(delayed_acks=scenario["delayed_acks"] is not False).items():
        single = [f"ethtool -K {device} {' '.join(SINGLE)}" for device in devices[netns]]
        lines = [script, *single, *([] if netns == "r" else ends)]
        call(*in_netns(netns, "sh", "-e", "-c", "\n".join(lines)))

    if scenario["foreground"] and scenario["foreground"]["host"] is not None:
        add_host(ends)

    lines = bottleneck_lines(queue, bottleneck, 1 if serialised else 2, duplex=duplex)
    call("tc", "-n", "r", "-batch", "-", stdin="\n".join(lines))
    if bottleneck["rtt_ms"] > 0:
        call("tc", "-n", "b", *delay(bottleneck["rtt_ms"]))
    if bottleneck["loss"] > 0:
        loss = f"loss {100 * bottleneck['loss']}% limit 1000000"
        call("tc", "-n", "a", "-batch", "-", stdin=f"qdisc add dev a0 root netem {loss}")
    if scenario["pacing"]:
        call("tc", "-n", "a", "qdisc", "add", "dev", "a0", "root", "fq")
    if serialised:
        receive_through(f"rate {rate_mbit}mbit")
    if jitter > 0 or later > 0:
        reorder = f"reorder {100 * bottleneck['reorder']}%" if bottleneck["reorder"] else ""
        # netem draws from the mean -/+ the second number, uniformly.
        receive_through(f"delay {later + jitter / 2}ms {jitter / 2}ms {reorder} rate 1000gbit")


def add_host(settings: list[str]) -> None:
    """Put another host at the router."""
    links = "netns add o\nlink add ro netns r type veth peer name o0 netns o\n"
    call("ip", "-batch", "-", stdin=links)
    router = f"addr add {OTHER_HOP}/24 dev ro\nlink set ro up\n"
    call("ip", "-n", "r", "-batch", "-", stdin=router)
    host = f"link set lo up\naddr add {OTHER}/24 dev o0\nlink set o0 up\n"
    call("ip", "-n", "o", "-batch", "-", stdin=f"{host}route add default via {OTHER_HOP}\n")
    for netns, device in (("r", "ro"), ("o", "o0")):
        call("ip", "netns", "exec", netns, "ethtool", "-K", device, *SINGLE)
    call(*in_netns("o", "sh", "-e", "-c", "\n".join(settings)))


def receive_through(netem: str) -> None:
    """Have what b receives pass netem, in an ifb, since only what leaves a device can wait."""
    call("ip", "-n", "b", "-batch", "-", stdin="link add ifb0 type ifb\nlink set ifb0 up\n")
    call(
        "tc", "-n", "b", "-batch", "-",
        stdin=f"qdisc add dev ifb0 root netem {netem} limit 1000000\n"
        "qdisc add dev b0 ingress\n"
        "filter add dev b0 parent ffff: matchall action mirred egress redirect dev ifb0\n",
    )  # fmt: skip


def remove_network() -> None:
    """Delete the namespaces, and with them their links and queues."""
    other = "\nnetns del o" if Path("/run/netns/o").exists() else ""
    call("ip", "-batch", "-", stdin=Row().removal() + other)


def queue_statistics() -> Json:
    """Return what passed the bottleneck, what it dropped, and what it marked if it can."""
    shown = json.loads(call("tc", "-n", "r", "-s", "-j", "qdisc", "show", "dev", "rb"))
    (root,) = [q for q in shown if q.get("root")]
    (queue,) = [q for q in shown if q["handle"] == "10:"]
    out = {"drops": root["drops"], "sent_packets": root["packets"], "sent_bytes": root["bytes"]}
    for name in ("marked", "ecn_mark"):
        if name in queue:
            out["marks"] = queue[name]
    return out


def access_links(paths: list[Json], rtt_ms: float) -> list[str]:
    """Put destinations behind links of their own; return their addresses in b.

    Of each link the rate, the room of its queue and the two-way delay are given: its queue is on
    what b receives (by way of an ifb), its delay on what b sends. All else has `rtt_ms`.
    """
    addresses = [f"10.0.2.{i}" for i in range(1, 254) if f"10.0.2.{i}" != CLIENT][: len(paths)]
    if len(addresses) < len(paths):
        fail(f"There is room for {len(addresses)} destinations.")
    links = [f"addr add {address}/24 dev b0\n" for address in addresses]
    links += ["link add ifb0 type ifb\nlink set ifb0 up\n"]
    call("ip", "-n", "b", "-batch", "-", stdin="".join(links))
    delays = sorted({path["rtt_ms"] for path in paths})
    lines = [
        f"qdisc replace dev b0 root handle 1: prio bands {len(delays) + 1} priomap{16 * ' 0'}",
        f"qdisc add dev b0 parent 1:1 netem delay {rtt_ms}ms limit 1000000",
        *(
            f"qdisc add dev b0 parent 1:{band:x} netem delay {delay_ms}ms limit 1000000"
            for band, delay_ms in enumerate(delays, 2)
        ),
        "qdisc add dev b0 ingress",
        "filter add dev b0 parent ffff: matchall action mirred egress redirect dev ifb0",
        "qdisc add dev ifb0 root handle 2: htb direct_qlen 1000",
    ]
    for number, (path, address) in enumerate(zip(paths, addresses, strict=True), 1):
        rate, band = path["rate_mbit"], delays.index(path["rtt_ms"]) + 2
        u32 = "protocol ip prio 1 u32 match ip"
        lines += [
            f"filter add dev b0 parent 1: {u32} src {address}/32 flowid 1:{band:x}",
            f"class add dev ifb0 parent 2: classid 2:{number:x} htb rate {rate}mbit "
            f"burst {2 * PACKET} cburst {2 * PACKET}",
            f"qdisc add dev ifb0 parent 2:{number:x} pfifo limit {path['limit_packets']}",
            f"filter add dev ifb0 parent 2: {u32} dst {address}/32 flowid 2:{number:x}",
        ]
    call("tc", "-n", "b", "-batch", "-", stdin="\n".join(lines))
    return addresses


def use_control(netns: str, control: str) -> None:
    """Have everything in a namespace leave under a congestion control, if not told otherwise."""
    setting = "/proc/sys/net/ipv4/tcp_congestion_control"
    call(*in_netns(netns, "sh", "-c", f"echo {control} > {setting}"))
