#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Wall time of netnice replicate over that of bare rsync, without a bottleneck. Run as root.

Usage: ``replicate_wall.py [--pairs N] [--gigabytes G]``; prints ``name value unit``.

One destination, an rsync daemon behind the loopback interface of a network namespace, source and
copy in memory: one large file and 2,000 small ones. Both get the same options of rsync. The runs
alternate. What else the machine does makes a copy up to three times slower, never faster, so that
beside the median of the pairs' ratios there is the ratio of the lower deciles, the copies that were
disturbed least: over a hundred pairs tell 5 %. Intervals are of 95 % confidence.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "kernel"))

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from support import Namespace, call, prepare_programs, wait_until

PORT = 8730
DESTINATION = f"rsync://127.0.0.1:{PORT}/copy/"
SMALL, SMALL_BYTES = 2000, 10_000
CHUNK = 1 << 20

Times = NDArray[np.float64]
"""Seconds of copies."""


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


def ratio_of_deciles(ours: Times, theirs: Times, axis: int = -1) -> Times:
    """Return the ratio of the copies that were disturbed least, along `axis`."""
    ratio: Times = np.quantile(ours, 0.1, axis=axis) / np.quantile(theirs, 0.1, axis=axis)
    return ratio


def main() -> None:
    """Run the pairs and print the ratios."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--pairs", type=int, default=7, help="6 give the first interval")
    parser.add_argument("--gigabytes", type=float, default=2.0, help="of one copy")
    arguments = parser.parse_args()
    prepare_programs()
    inside = Namespace(f"netnice-bench-{os.getpid()}")
    call("ip", "netns", "add", inside.name)
    times_s: dict[str, list[float]] = {"netnice": [], "rsync": []}
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
                for what, command in order:
                    times_s[what].append(copy_s(inside, command, root))
                    print(f"replicate_wall_{what} {times_s[what][-1]:.2f} s", flush=True)
    finally:
        inside.clear()
        subprocess.run(["ip", "netns", "del", inside.name], check=False)
    ours, theirs = np.array(times_s["netnice"]), np.array(times_s["rsync"])
    by_decile = stats.bootstrap((ours, theirs), ratio_of_deciles, method="percentile", rng=1)
    by_pair = stats.quantile_test(ours / theirs).confidence_interval()
    for name, ratio, interval in (
        ("of_deciles", float(ratio_of_deciles(ours, theirs)), by_decile.confidence_interval),
        ("vs_rsync", float(np.median(ours / theirs)), by_pair),
    ):
        print(f"replicate_wall_ratio_{name}_low {interval.low:.3f} ratio")
        print(f"replicate_wall_ratio_{name}_high {interval.high:.3f} ratio")
        print(f"replicate_wall_ratio_{name} {ratio:.3f} ratio")


if __name__ == "__main__":
    main()
