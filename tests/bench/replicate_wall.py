#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Wall time of netnice replicate over that of bare rsync, without a bottleneck. Run as root.

Usage: ``replicate_wall.py [--pairs N] [--gigabytes G]``; prints ``name value unit``.

One destination, an rsync daemon behind the loopback interface of a network namespace, source and
copy in memory: one large file and 2,000 small ones. Both get the same options of rsync. The runs
alternate, and the ratio is the median of the pairs' ratios, with its 95 % confidence interval by
their order (the machine makes a copy now twice as slow, now half).
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "kernel"))

from scipy import stats
from support import Namespace, call, prepare_programs, wait_until

PORT = 8730
DESTINATION = f"rsync://127.0.0.1:{PORT}/copy/"
SMALL, SMALL_BYTES = 2000, 10_000
CHUNK = 1 << 20


def fill(source: Path, count: int) -> None:
    """Make a large file of `count` bytes that no option of rsync can shorten, and small ones."""
    with (source / "large").open("wb") as large:
        for _ in range(count // CHUNK):
            large.write(os.urandom(CHUNK))
    (source / "small").mkdir()
    for i in range(SMALL):
        (source / "small" / str(i)).write_bytes(os.urandom(SMALL_BYTES))


def serve(inside: Namespace, root: Path) -> None:
    """Serve `root`/copy by an rsync daemon."""
    config = root / "rsyncd.conf"
    config.write_text(
        f"use chroot = no\nuid = root\ngid = root\nlog file = {root}/log\n"
        f"[copy]\npath = {root}/copy\nread only = no\n"
    )
    inside.start("rsync", "--daemon", "--no-detach", f"--config={config}", f"--port={PORT}")
    wait_until("the daemon", lambda: inside.call("ss", "-Hltn", f"sport = :{PORT}"))


def commands(root: Path) -> dict[str, list[str]]:
    """Return what is compared, by name."""
    source = f"{root}/source/"
    return {
        "rsync": [
            "rsync", "--archive", "--hard-links", "--sparse", "--partial-dir=.partial",
            source, DESTINATION,
        ],
        "netnice": ["netnice", "replicate", "--state", f"{root}/state", source, DESTINATION],
    }  # fmt: skip


def copy_s(inside: Namespace, command: Sequence[str], root: Path) -> float:
    """Copy all to an empty place; return the seconds."""
    for name in ("copy", "state"):
        shutil.rmtree(root / name, ignore_errors=True)
        (root / name).mkdir()
    began = time.monotonic()
    subprocess.run(inside.command(*command), check=True, stderr=subprocess.DEVNULL)
    took = time.monotonic() - began
    if (root / "copy/large").stat().st_size != (root / "source/large").stat().st_size:
        sys.exit("the copy is not complete")
    return took


def main() -> None:
    """Run the pairs and print the median ratio."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--pairs", type=int, default=7, help="6 give the first interval")
    parser.add_argument("--gigabytes", type=float, default=2.0, help="of one copy")
    arguments = parser.parse_args()
    prepare_programs()
    inside = Namespace(f"netnice-bench-{os.getpid()}")
    call("ip", "netns", "add", inside.name)
    ratios = []
    try:
        with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="netnice-bench-") as name:
            root = Path(name)
            (root / "source").mkdir()
            fill(root / "source", int(arguments.gigabytes * 1e9))
            inside.call("ip", "link", "set", "lo", "up")
            serve(inside, root)
            for pair in range(arguments.pairs):
                # each of the two is first in turn
                order = sorted(commands(root).items(), reverse=bool(pair % 2))
                took = {what: copy_s(inside, command, root) for what, command in order}
                ratios.append(took["netnice"] / took["rsync"])
                for what, seconds in sorted(took.items()):
                    print(f"replicate_wall_{what} {seconds:.2f} s", flush=True)
    finally:
        inside.clear()
        subprocess.run(["ip", "netns", "del", inside.name], check=False)
    interval = stats.quantile_test(ratios).confidence_interval()
    print(f"replicate_wall_ratio_low {interval.low:.3f} ratio")
    print(f"replicate_wall_ratio_high {interval.high:.3f} ratio")
    print(f"replicate_wall_ratio_vs_rsync {statistics.median(ratios):.3f} ratio")


if __name__ == "__main__":
    main()
