# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""What is given in the guest: addresses and ports of the programs, lengths of packets."""

from __future__ import annotations

SERVER, SERVER6 = "10.0.1.1", "fd00:1::1"
CLIENT, CLIENT6 = "10.0.2.2", "fd00:2::2"
OTHER, OTHER_HOP = "10.0.3.1", "10.0.3.254"
"""Of the host o, which sends the foreground where a scenario gives that a host of its own."""

ADDRESSES = {"a": SERVER, "b": CLIENT, "o": OTHER}
WEB_PORT = 80
TLS_PORT = 443
BULK_PORT = 5001
CROSS_PORT = 5101
"""Port of the first `[[cross]]`; the others follow."""

ECHO_PORT = 7
RSYNC_PORT = 873
ORIGIN_PORT = 8080
"""Of nginx behind the proxy, and of a second one that answers prefetches itself."""
IPERF_PORT = 5201

PAYLOAD, HEADERS = 1448, 66
"""Bytes of a full packet of TCP with time stamps, and of the headers that Linux counts as well."""
PACKET = PAYLOAD + HEADERS
"""Bytes of a full Ethernet frame, the unit of a queue's limit."""
