# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""`netnice run`: what stays when the command, or what stays beside it, was killed."""

from __future__ import annotations

import signal
import socket
import subprocess
import time
from collections.abc import Iterator

import pytest
from classes import DEFAULT
from client import RUN, UNDER, Client, accept, only
from leftovers import kill_companion, left_behind, needless, sweep, swept
from support import (
    LE,
    PATIENCE_S,
    PORT,
    RECEIVER,
    TCP_CONGESTION,
    Link,
    Process,
    call,
    registered,
    wait_until,
)


def test_a_command_whose_companion_was_killed_stays_in_the_background(link: Link) -> None:
    listener = link.receiver.listen(RECEIVER, PORT)
    capture = link.capture()
    client = Client(link.sender, *UNDER)
    client.do("open AF_INET SOCK_STREAM")
    kill_companion()
    # the command lives on, its new connections too are in the background, and cannot get out
    client.do("set IPPROTO_TCP TCP_CONGESTION cubic")
    client.do(f"connect {RECEIVER} {PORT}")
    accept(listener, link.receiver)
    client.do("send 100")
    seen = only(link.sender.connections())
    assert (seen.control, seen.tos) == (DEFAULT, LE)
    syn = capture.first("a SYN", lambda p: p.syn and p.dport == PORT)
    assert syn.tos & ~3 == LE
    # a call of netnice in between takes nothing away from it
    sweep()
    assert registered() == {DEFAULT}
    client.do("open AF_INET SOCK_STREAM")
    client.do(f"connect {RECEIVER} {PORT}")
    accept(listener, link.receiver)
    assert {c.control for c in link.sender.connections() if c.control} == {DEFAULT}
    client.process.status()  # closes its standard input, with which the command ends
    wait_until("the command ends", lambda: not call("ip", "netns", "pids", link.sender.name))
    assert "cgroups" in left_behind()
    sweep()
    assert "cgroups" not in left_behind()
    assert registered() == set()


def test_what_the_command_leaves_running_stays_in_the_background(link: Link) -> None:
    listener = link.receiver.listen(RECEIVER, PORT)
    # the command ends at once and leaves a child behind, which keeps the pipes
    script = f"exec 3<&0; busybox nc {RECEIVER} {PORT} <&3 &"
    client = link.sender.start(*UNDER, "sh", "-c", script)
    accepted = accept(listener, link.receiver)
    client.popen.wait(PATIENCE_S)
    assert only(link.sender.connections()).control == DEFAULT
    accepted.close()
    client.status()
    wait_until("the child ends", lambda: not call("ip", "netns", "pids", link.sender.name))


def test_the_constant_of_the_socket_option_is_the_kernels() -> None:
    assert socket.TCP_CONGESTION == TCP_CONGESTION


def struck_while_starting(how: signal.Signals, *, cold: bool) -> Iterator[int]:
    """Send that to 20 runs, each at another moment of its start; yield how each ended.

    Where each finds the control ready, unless it is `cold`, a start is several times as short.
    """
    if not cold:
        call(*UNDER, "true")
    started = time.monotonic()
    assert call(*UNDER, "echo", "done") == "done\n"
    whole_s = time.monotonic() - started  # whatever its length on this machine
    for moment in range(20):
        process = subprocess.Popen([*UNDER, "cat"], stdin=subprocess.PIPE)
        time.sleep(whole_s * moment / 20)  # when to strike, not something to wait for
        process.send_signal(how)
        process.communicate(timeout=PATIENCE_S)  # the command's input ends, and so does it
        yield process.returncode


@pytest.mark.usefixtures("cold")
def test_netnice_killed_at_any_moment_leaves_nothing_that_the_next_call_does_not_remove() -> None:
    for _ in struck_while_starting(signal.SIGKILL, cold=True):
        wait_until("nothing is left", swept)


@pytest.mark.usefixtures("cold")
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_netnice_asked_to_end_at_any_moment_ends_and_leaves_nothing(how: signal.Signals) -> None:
    for status in struck_while_starting(how, cold=False):
        assert status == -how
        wait_until("nothing is left", lambda: not needless())


@pytest.mark.usefixtures("cold")
def test_many_runs_that_begin_and_end_at_once_do_not_disturb_each_other() -> None:
    for names in (["nice"] * 12, ["nice", "vegas", "reno"] * 4):
        processes = [
            Process([*RUN, "-a", name, "--", "sh", "-c", f"exit {code}"])
            for code, name in enumerate(names)
        ]
        assert [p.status() for p in processes] == list(range(12)), [p.errors for p in processes]
        assert registered() == set()
