# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Whether this kernel can have packets wait, and what that leaves at a device."""

from __future__ import annotations

import json
import subprocess

from support import Link


def devices(link: Link) -> set[str]:
    """Return the names of the sender's devices, with their qdiscs."""
    shown = json.loads(link.sender.call("ip", "-json", "link"))
    clsact = "clsact" in link.sender.call("tc", "qdisc", "show", "dev", "eth")
    return {device["ifname"] for device in shown} | ({"clsact"} if clsact else set())


def has_fq(link: Link) -> bool:
    """Whether this kernel has the queue in which packets can wait until their time."""
    fq = link.receiver.command("tc", "qdisc", "replace", "dev", "eth", "root", "fq")
    return subprocess.run(fq, capture_output=True, check=False).returncode == 0
