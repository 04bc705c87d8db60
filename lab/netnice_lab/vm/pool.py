# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Machines that stay: one that has done a job is given the next one for its kernel."""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from .machine import Machine
from .package import Kernel


class Pool:
    """The machines of this process that are idle; all are closed when it ends."""

    def __init__(self, most: int) -> None:
        """Keep `most` idle machines at a time."""
        self._most = most
        self._idle: list[Machine] = []
        self._lock = threading.Lock()
        atexit.register(self.close)

    @contextmanager
    def machine(self, kernel: Kernel, memory: str) -> Iterator[Machine]:
        """Give a machine for one job. One whose job failed is closed: nobody knows its state."""
        machine = self._take(kernel, memory) or Machine(kernel, memory)
        try:
            yield machine
        except BaseException:
            machine.close()
            raise
        with self._lock:
            self._idle.append(machine)
            unwanted, self._idle = self._idle[: -self._most], self._idle[-self._most :]
        for other in unwanted:
            other.close()

    def _take(self, kernel: Kernel, memory: str) -> Machine | None:
        with self._lock:
            for machine in self._idle:
                if (machine.kernel, machine.memory) == (kernel, memory):
                    self._idle.remove(machine)
                    return machine
        return None

    def close(self) -> None:
        """Close all that is idle."""
        with self._lock:
            idle, self._idle = self._idle, []
        for machine in idle:
            machine.close()


POOL = Pool(os.cpu_count() or 1)
