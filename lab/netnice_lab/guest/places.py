# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Addresses and ports of the programs in the guest, as `network` makes them."""

from __future__ import annotations

SERVER, SERVER6 = "10.0.1.1", "fd00:1::1"
CLIENT, CLIENT6 = "10.0.2.2", "fd00:2::2"
ADDRESSES = {"a": SERVER, "b": CLIENT}
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
