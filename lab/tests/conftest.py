# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""What several tests need: the programs, and a small result as `netnice-lab run` saves it."""

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from netnice_lab import ROOT, LabError, stats
from netnice_lab.cli import app
from netnice_lab.scenario import IDEAL, NONE


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave to `make soak` what is marked so; pytest says how many it deselected."""
    if os.environ.get("NETNICE_SOAK") == "1":
        return
    left = [item for item in items if item.get_closest_marker("soak")]
    items[:] = [item for item in items if item not in left]
    config.hook.pytest_deselected(items=left)


@pytest.fixture(scope="session", autouse=True)
def heeded() -> None:
    """Heed SIGINT, as what is started will: a background job of a script ignores it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def built() -> Path:
    """Build the programs that the lab calls without a kernel; return where they are."""
    # as `make build` does: for some of the packages cargo chooses other features of what they
    # use, and would compile all that once more
    subprocess.run(
        ["cargo", "build", "--release", "--locked", "-q", "--bins", "--examples"],
        cwd=ROOT, check=True,
    )  # fmt: skip
    return ROOT / "target" / "release"


@pytest.fixture
def refused() -> Callable[..., tuple[int, str]]:
    """Call the command line in this process, which must print no result.

    Returned is the exit status that comes of it, and what it says. To start Python anew for each
    takes seconds, of which a refusal needs none.
    """

    def call(*arguments: str) -> tuple[int, str]:
        done = CliRunner().invoke(app, arguments)
        assert done.stdout == ""
        if isinstance(done.exception, LabError):
            return done.exception.status, str(done.exception)
        assert isinstance(done.exception, SystemExit)
        return done.exit_code, done.stderr

    return call


@pytest.fixture
def result() -> dict[str, Any]:
    measured = {
        NONE: (0.20, 0.0),
        IDEAL: (0.21, 4.0),
        "nn_nice x16": (0.22, 1.2),
        "cubic x16": (1.80, 4.0),
        "lp x16": (1.82, 4.0),
    }
    runs = [
        {
            "background": name, "control": None, "flows": 1, "seed": seed,
            "foreground": {
                "flows": 100, "unfinished": 2 if name == "lp x16" else 0,
                "fct_mean_s": fct * (1 + seed / 50), "fct_p95_s": 2 * fct, "fct_p99_s": 3 * fct,
            },
            "probe": {"rtt_mean_ms": 50.0},
            "background_goodput_mbit": mbit * (1 - seed / 40),
            "queue": {"drops": 0, "sent_packets": 1},
        }
        for seed in (1, 2, 3)
        for name, (fct, mbit) in measured.items()
    ]  # fmt: skip
    return {
        "schema": 1,
        "scenario": {"name": "k1", "title": "a title"},
        "runs": runs,
        "summary": stats.summarise(runs),
    }
