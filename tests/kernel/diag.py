# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""The kernel's counters, and connections as it tells them by netlink (sock_diag(7)).

`ss` asks the same; to start it takes an emulated processor a tenth of a second, and a test that
looks ten times a second would measure little else.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from support import Namespace

_NETLINK, _SOCK_DIAG = 16, 4
_BY_FAMILY, _ERROR, _DONE = 20, 2, 3
_REQUEST, _DUMP = 0x1, 0x300
_INFO, _CONG = 2, 4  # attributes, and by their numbers less one bits of the question
_ESTABLISHED = 1 << 1

_HEADER = struct.Struct("=IHHII")
_QUESTION = struct.Struct("=BBBxI48x")
_PORTS = struct.Struct(">HH")
_MESSAGE = 72
"""Bytes of an answer (struct inet_diag_msg) before its attributes."""


@dataclass(frozen=True)
class Seen:
    """An established connection over IPv4."""

    sport: int
    dport: int
    control: str
    rtt_ms: float
    cwnd: int


class Diag:
    """Asks for the connections of a namespace."""

    def __init__(self, where: Namespace) -> None:
        """Open a socket there, which is closed with the namespace's others."""
        self.socket = where.open_socket(_NETLINK, socket.SOCK_RAW, _SOCK_DIAG)

    def established(self) -> list[Seen]:
        """Return every established TCP connection over IPv4."""
        wanted = 1 << _INFO - 1 | 1 << _CONG - 1
        question = _QUESTION.pack(socket.AF_INET, socket.IPPROTO_TCP, wanted, _ESTABLISHED)
        length = _HEADER.size + len(question)
        header = _HEADER.pack(length, _BY_FAMILY, _REQUEST | _DUMP, 1, 0)
        self.socket.send(header + question)
        return [_seen(answer) for answer in self._answers()]

    def _answers(self) -> Iterator[bytes]:
        while True:
            data = self.socket.recv(1 << 16)
            while data:
                length, kind, _, _, _ = _HEADER.unpack_from(data)
                if kind == _DONE:
                    return
                assert kind != _ERROR, f"the kernel refused: {data[:length].hex()}"
                yield data[_HEADER.size : length]
                data = data[length + 3 & ~3 :]


def _seen(answer: bytes) -> Seen:
    sport, dport = _PORTS.unpack_from(answer, 4)
    attributes = {}
    rest = answer[_MESSAGE:]
    while len(rest) >= 4:
        length, kind = struct.unpack_from("=HH", rest)
        attributes[kind] = rest[4:length]
        rest = rest[length + 3 & ~3 :]
    # struct tcp_info: the smoothed RTT in microseconds, and the window in packets
    rtt_us, cwnd = (struct.unpack_from("=I", attributes[_INFO], at)[0] for at in (68, 80))
    control = attributes[_CONG].rstrip(b"\0").decode()
    return Seen(sport, dport, control, rtt_us / 1000, cwnd)


def counter(where: Namespace, name: str) -> int:
    """Return a counter of the kernel in a namespace, by the name that nstat(8) has."""
    lines = where.call("cat", "/proc/net/snmp", "/proc/net/netstat").splitlines()
    counted = {}
    for names, values in zip(lines[::2], lines[1::2], strict=True):
        kind, *of_kind = names.split()
        pairs = zip(of_kind, values.split()[1:], strict=True)
        counted.update({kind.removesuffix(":") + one: int(value) for one, value in pairs})
    return counted[name]
