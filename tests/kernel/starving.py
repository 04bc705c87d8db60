# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""A run that starves beside a flow of the foreground says so once, whoever started it."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence

from support import Link, wait_until

RATE_MBIT, QUEUE = 8, 50
LOOKS_S = 20.0
"""A slow run is asked why so often: first at the beginning, and three more times are a minute."""


def says_so_once(link: Link, under: Sequence[str]) -> None:
    """Starve such a run, and require one line with the next step."""
    sender = link.send(link.limit(RATE_MBIT, QUEUE).sink(), under=under)
    time.sleep(2)
    foreground = link.send(link.sink())
    wait_until("it says so", lambda: sender.errors, 150)
    time.sleep(1.25 * LOOKS_S)  # it would say so again at its next look
    (said,) = sender.errors.splitlines()
    assert re.match(r"netnice: this has had next to nothing of the path for \d+ s, while ", said)
    assert said.endswith("netnice run --class fair")
    for process in (foreground, sender):
        process.popen.terminate()
        process.status()
