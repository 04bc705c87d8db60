#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""How much is installed of what packaging/compile compiled; prints ``name value unit``."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as place:
        where = [f"DESTDIR={place}", "PREFIX=/usr"]
        subprocess.run(["make", "--silent", "install", *where], cwd=ROOT, check=True)
        sizes = {f: f.stat().st_size for f in Path(place).rglob("*") if f.is_file()}
        command = sizes[Path(place) / "usr/bin/netnice"]
        print(f"install_command {command / 1e6:.1f} MB")
        print(f"install_all {sum(sizes.values()) / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
