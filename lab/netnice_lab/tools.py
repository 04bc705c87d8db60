# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""The programs that the lab calls, here and in the guest, and how to get those that are missing."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from . import ROOT, LabError

# benchmarks measure what packages have
_BUILT = ROOT / "target" / os.environ.get("NETNICE_PROFILE", "release")
LOAD = _BUILT / "netnice-load"
NETNICE = _BUILT / "netnice"
PREFETCH = _BUILT / "netnice-prefetch"
SIM = _BUILT / "netnice-sim"
WEB_LOG = ROOT / "lab" / "data" / "web-requests.csv.gz"

_PACKAGES = {
    "ip": "iproute2",
    "tc": "iproute2",
    "ss": "iproute2",
    "ethtool": "ethtool",
    "nsenter": "util-linux",
    "sh": "dash",
    "rsync": "rsync",
    "tar": "tar",
    "nginx": "nginx-light",
    "openssl": "openssl",
    "iperf3": "iperf3",
}


def tool(name: str) -> Path:
    """Return where a program of the system is; LabError says how to install a missing one."""
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin")
    if found is None:
        raise LabError(f"{name} was not found. Install it: apt-get install {_PACKAGES[name]}")
    return Path(found)


def built(path: Path) -> Path:
    """Return a program of this project; LabError if it is not built."""
    if not path.exists():
        raise LabError(f"{path.relative_to(ROOT)} is not built. Run make build.")
    return path
