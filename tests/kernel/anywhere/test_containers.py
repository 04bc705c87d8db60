# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""netnice in a container, which sees neither the host's cgroups nor its /run, beside the host's."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence

import pytest
from classes import DEFAULT
from leftovers import sweep
from support import Process, call, cgroup_root, registered, wait_until

SETS_UP = 'mkdir -p /run/netnice; mount -t tmpfs tmpfs /run/netnice; exec "$@"'
"""What a container starts with: a directory of netnice's that nobody has written to."""

Container = Callable[..., list[str]]


@pytest.fixture
def container(nothing_left: None) -> Iterator[Container]:
    """Return what makes the command that runs another in a container."""
    cgroup = cgroup_root() / f"netnice-test-{os.getpid()}"
    cgroup.mkdir()
    events = cgroup / "cgroup.events"
    enters = f'echo $$ > {cgroup}/cgroup.procs; exec unshare -C -m sh -ec "$@"'

    def inside(*command: str) -> list[str]:
        return ["sh", "-ec", enters, "sh", SETS_UP, "sh", *command]

    yield inside
    wait_until("the container is empty", lambda: "populated 0" in events.read_text())
    sweep()  # a companion that was killed leaves its cgroup
    cgroup.rmdir()


def waiting(command: Sequence[str]) -> Process:
    """Start a command under which `cat` waits for the end of its input."""
    process = Process([*command, "sh", "-c", "echo ready; exec cat"])
    assert process.line() == "ready"
    return process


@pytest.mark.parametrize("words", ["status", "run -a vegas -- true", "disable", "disable ledbat"])
def test_no_call_in_a_container_takes_the_hosts_run_out_of_the_background(
    container: Container, words: str
) -> None:
    host = waiting(["netnice", "run", "-a", "ledbat", "--"])
    call(*container("netnice", *words.split()))
    assert registered() == {"nn_ledbat"}
    host.succeed()
    wait_until("nothing is registered", lambda: not registered())


def test_no_run_in_a_container_takes_away_what_the_host_has_enabled(container: Container) -> None:
    call("netnice", "enable", "lp")
    call(*container("netnice", "run", "-a", "lp", "--", "true"))
    call(*container("netnice", "run", "--", "true"))
    assert registered() == {"nn_lp", DEFAULT}
    call("netnice", "disable", "lp")
    assert registered() == {DEFAULT}
    sweep()
    assert registered() == set()


def test_no_run_of_the_host_takes_a_containers_run_out_of_the_background(
    container: Container,
) -> None:
    host = waiting(["netnice", "run", "-a", "vegas", "--"])
    inside = waiting(container("netnice", "run", "-a", "vegas", "--"))
    other = waiting(container("netnice", "run", "-a", "lp", "--"))
    host.succeed()
    call("netnice", "run", "--", "true")
    assert registered() == {"nn_vegas", "nn_lp", DEFAULT}
    inside.succeed()
    other.succeed()
    # the host's netnice registered it, and takes it away when it is next called
    wait_until("all runs have ended", lambda: registered() == {"nn_vegas", DEFAULT})
    sweep()
    assert registered() == set()
