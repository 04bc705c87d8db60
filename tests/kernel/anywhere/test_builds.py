# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Two builds of netnice on one system, as after an upgrade: no run has the other's algorithm."""

from __future__ import annotations

import json
import subprocess

import pytest
from classes import ALGORITHM, DEFAULT
from client import UNDER
from support import Json, Process, call, registered, status, wait_until

OTHER = [*b"an other"]


def build(control: str) -> list[int]:
    """Return what says of a control which build registered it, once the last one's is gone."""

    def entries() -> list[Json]:
        found: list[Json] = json.loads(call("bpftool", "-j", "map", "dump", "name", f"{control}.b"))
        return found if len(found) == 1 else []

    (entry,) = wait_until("one map", entries)
    return [int(byte, 16) for byte in entry["value"]]


def make_foreign(control: str) -> None:
    """Make a control that of another build."""
    build(control)  # until the last one's map is gone, the name is that of several
    call("bpftool", "map", "update", "name", f"{control}.b", "key", *"0000",
         "value", *map(str, OTHER))  # fmt: skip
    assert build(control) == OTHER


@pytest.mark.parametrize(
    "words", ["run -- echo is run", f"enable {ALGORITHM}", "run --or-plain -- true"]
)
def test_a_control_of_another_build_is_refused_while_a_run_uses_it(words: str) -> None:
    first = Process([*UNDER, "sh", "-c", "echo ready; exec cat"])
    try:
        assert first.line() == "ready"
        make_foreign(DEFAULT)
        done = subprocess.run(
            ["netnice", *words.split()], capture_output=True, text=True, check=False
        )
        assert done.returncode == (0 if "--or-plain" in words else 125 if "run" in words else 1)
        assert done.stdout == ""
        assert done.stderr.endswith(
            "another version of netnice is loaded; let its transfers end, then: netnice disable\n"
        )
        assert (registered(), build(DEFAULT)) == ({DEFAULT}, OTHER)
        first.succeed()
    finally:
        first.end()
    wait_until("the run has ended", lambda: not status()["runs"])
    assert call(*UNDER, "echo", "is run") == "is run\n"


def test_a_control_of_another_build_that_no_run_uses_is_replaced() -> None:
    call("netnice", "enable", ALGORITHM)
    own = build(DEFAULT)
    make_foreign(DEFAULT)
    assert call(*UNDER, "echo", "is run") == "is run\n"
    assert (registered(), build(DEFAULT)) == ({DEFAULT}, own)
    make_foreign(DEFAULT)
    call("netnice", "enable", ALGORITHM)
    assert (registered(), build(DEFAULT)) == ({DEFAULT}, own)
    call("netnice", "disable")
    assert registered() == set()


def test_a_control_that_no_netnice_signed_is_replaced_too() -> None:
    call("netnice", "enable", ALGORITHM)
    own = build(DEFAULT)
    call("bpftool", "map", "update", "name", f"{DEFAULT}.b", "key", *"0000", "value", *"00000000")
    call("netnice", "enable", ALGORITHM)
    assert build(DEFAULT) == own
    call("netnice", "disable")
