# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""The unit that holds at a device from each boot on, under a real systemd and udev: docs/hold.md.

It needs sch_fq: in the virtual machine.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from own_systemd import Inside, systemd

UNIT = "netnice-hold@hold0"


@pytest.fixture
def runs() -> Iterator[Inside]:
    """Give what runs a command where systemd, udev and the device hold0 are."""
    with systemd() as runs:
        runs("systemctl", "start", "systemd-udevd")
        runs("ip", "link", "add", "hold0", "type", "veth", "peer", "hold1")
        runs("ip", "link", "set", "hold0", "up")
        yield runs


def test_the_unit_holds_while_it_runs_and_ends_with_its_device(runs: Inside) -> None:
    def state() -> str:
        return runs("sh", "-c", f"systemctl is-active {UNIT} || true")

    assert "hold0: holds" in runs("sh", "-c", f"systemctl start {UNIT} && netnice hold")
    assert state() == "active\n"
    assert "wait at no device" in runs("sh", "-c", f"systemctl stop {UNIT} && netnice hold")

    runs("systemctl", "start", UNIT)
    gone = f"ip link del hold0; until ! systemctl --quiet is-active {UNIT}; do sleep 0.1; done"
    runs("timeout", "20", "sh", "-c", gone)
    assert state() == "inactive\n"
    assert "wait at no device" in runs("netnice", "hold")
