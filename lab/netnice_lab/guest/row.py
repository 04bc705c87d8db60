# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Three network namespaces in a row: a host, a router, a host. Pure: the words that make them.

a ---- r ---- b
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .places import CLIENT, CLIENT6, SERVER, SERVER6

HOST_MAC, ROUTER_MAC = "02:00:00:00:00:01", "02:00:00:00:00:02"
"""On either link: all neighbours are known, and no request for an address is lost."""


@dataclass(frozen=True)
class Row:
    """What the namespaces a, r and b are called, and the devices a - r and r - b."""

    names: tuple[str, str, str] = ("a", "r", "b")
    devices: tuple[str, str, str, str] = ("a0", "ra", "rb", "b0")

    def links(self) -> str:
        """Return the words for `ip -batch` that make the namespaces and their links."""
        (a, r, b), (a0, ra, rb, b0) = self.names, self.devices
        lines = [f"netns add {name}" for name in self.names]
        for host, own, near in ((a, a0, ra), (b, b0, rb)):
            lines.append(
                f"link add {near} address {ROUTER_MAC} netns {r} type veth "
                f"peer name {own} address {HOST_MAC} netns {host}"
            )
        return "\n".join(lines)

    def removal(self) -> str:
        """Return the words for `ip -batch` that remove them."""
        return "\n".join(f"netns del {name}" for name in self.names)

    def scripts(self, *, delayed_acks: bool = True) -> dict[str, str]:
        """Return what `sh -e` has to do in each namespace: addresses, routes, forwarding."""
        (a, r, b), (a0, ra, rb, b0) = self.names, self.devices
        router = ["link set lo up"]
        found = {}
        for host, own, near, net, v4, v6 in (
            (a, a0, ra, 1, SERVER, SERVER6),
            (b, b0, rb, 2, CLIENT, CLIENT6),
        ):
            hop, hop6 = f"10.0.{net}.254", f"fd00:{net}::254"
            at_once = " quickack 1" if host == b and not delayed_acks else ""
            found[host] = _script([
                "link set lo up", *_addresses(own, v4, v6),
                f"neigh add {hop} lladdr {ROUTER_MAC} dev {own}",
                f"neigh add {hop6} lladdr {ROUTER_MAC} dev {own}",
                f"route add default via {hop}{at_once}", f"route add default via {hop6}{at_once}",
            ])  # fmt: skip
            router += [
                *_addresses(near, hop, hop6),
                f"neigh add {v4} lladdr {HOST_MAC} dev {near}",
                f"neigh add {v6} lladdr {HOST_MAC} dev {near}",
            ]
        forward = "\n".join(f"echo 1 > /proc/sys/net/{v}/conf/all/forwarding" for v in IP)
        return {**found, r: f"{_script(router)}\n{forward}"}


IP = ("ipv4", "ipv6")


def _addresses(device: str, v4: str, v6: str) -> list[str]:
    return [
        f"addr add {v4}/24 dev {device}", f"addr add {v6}/64 dev {device} nodad",
        f"link set {device} up",
    ]  # fmt: skip


def _script(lines: Sequence[str]) -> str:
    """Return the shell's words for `ip -batch`, where no address waits for others to claim it."""
    words = "\n".join(lines)
    return f"echo 0 > /proc/sys/net/ipv6/conf/default/accept_dad\nip -batch - <<END\n{words}\nEND"
