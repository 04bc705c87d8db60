# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Changes of the bottleneck, or of shares, while traffic flows."""

from __future__ import annotations

import subprocess
import threading
import time

from .programs import fail

GREATEST_LAG_S = 0.25
"""A run whose changes are made later than this after their time does not count.

Tc(8) and `netnice share` take 50 ms of the guest's time to make one and end; it may need two calls.
"""


class Change(threading.Thread):
    """Carries out a change of the bottleneck, or of a group's shares, at its time.

    What it needs runs and waits long before: to start a program takes a tenth of a second here, and
    far longer if it comes from the host.
    """

    def __init__(
        self,
        epoch: float,
        at_s: float,
        tools: list[tuple[list[str], list[str]]],
    ) -> None:
        """Begin to wait; each of the tools reads its words."""
        super().__init__(daemon=True)
        self.epoch, self.at_s = epoch, at_s
        self.tools = [
            (subprocess.Popen(tool, stdin=subprocess.PIPE), words) for tool, words in tools
        ]
        self.stopped = threading.Event()
        self.lag_s: float | None = None
        self.start()

    def run(self) -> None:
        """Wait, then change it, unless it is stopped."""
        due = not self.stopped.wait(max(0.0, self.epoch + self.at_s - time.time()))
        for tool, words in self.tools:
            tool.communicate("\n".join(words).encode() if due else b"")
        if due and not any(tool.returncode for tool, _ in self.tools):
            self.lag_s = time.time() - self.epoch - self.at_s

    def stop(self) -> None:
        """Wait no longer; fail loudly if the change was due, and was not made in time."""
        due = time.time() >= self.epoch + self.at_s
        self.stopped.set()
        self.join()
        if due and (self.lag_s is None or self.lag_s > GREATEST_LAG_S):
            fail(f"The change at {self.at_s} s was not made in time (lag: {self.lag_s} s).")
