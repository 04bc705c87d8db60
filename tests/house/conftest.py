# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""The tree under test."""

import subprocess
from pathlib import Path

import pytest

from house import House

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def house() -> House:
    """Return this tree: what git has, and what it would be given."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    files = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return House.of(ROOT, [f for f in files.splitlines() if (ROOT / f).is_file()])
