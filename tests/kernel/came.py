# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""What a receiver knows of the path that downloads come by, and what comes."""

from __future__ import annotations

import json
import time

from support import Json, Link, Namespace

RATE_MBIT, RTT_MS, ROOM = 8.0, 50.0, 50


def source_of(link: Link, at: Namespace | None = None) -> Json:
    """Return what the receiver, or another, knows of the path that downloads come by, if any."""
    holds: list[Json] = json.loads((at or link.receiver).call("netnice", "hold", "--json"))
    sources: list[Json] = [source for hold in holds for source in hold["downloads"]]
    return sources[0] if sources else None


def carried_mbit(link: Link, seconds: float) -> tuple[float, float]:
    """Return what the background, and what all got in the next seconds."""

    def look() -> tuple[Json, float]:
        # an emulated processor needs a while for it: what it says is of the middle, more or less
        began = time.monotonic()
        source = source_of(link)
        return source, (began + time.monotonic()) / 2

    before, since = look()
    time.sleep(seconds)
    after, until = look()
    keys = ("background_bytes", "received_bytes")
    background, received = (8e-6 * (after[key] - before[key]) / (until - since) for key in keys)
    return background, received
