# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""`netnice top` shows each job with its rate and why it is so slow, for people and scripts."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import signal
import socket
import struct
import subprocess
import termios
import time

import pytest
import starving
from client import UNDER
from support import NOBODY, RECEIVER, Json, Link, Process, wait_until

RATE_MBIT, QUEUE = 8, 50


def received(link: Link) -> tuple[float, int]:
    """Return when it is, and how many bytes of TCP's payload the receiver has got."""
    (device,) = json.loads(link.receiver.call("ip", "-json", "-statistics", "link", "show", "eth"))
    got = device["stats64"]["rx"]
    # Ethernet, IPv4, TCP with time stamps: 14 + 20 + 32 bytes of each packet
    return time.monotonic(), got["bytes"] - 66 * got["packets"]


def top(link: Link, seconds: float) -> Json:
    command = ["netnice", "top", "--once", "--json", "--interval", str(seconds)]
    return json.loads(link.sender.call(*command))


def job_of(view: Json, process: Process) -> Json:
    (job,) = [job for job in view["jobs"] if job["pid"] == process.pid]
    return job


def test_a_job_has_the_rate_that_its_receiver_counts_and_yields_to_what_else_is_sent(
    link: Link,
) -> None:
    link.limit(RATE_MBIT, QUEUE)
    sender = link.send(link.sink(), under=UNDER)
    wait_until("half a megabyte", lambda: received(link)[1] > 500_000)
    begin, before = received(link)
    view = top(link, 3)
    end, after = received(link)
    job = job_of(view, sender)
    assert job["rate_bits"] == pytest.approx((after - before) * 8 / (end - begin), rel=0.1)
    # 1448 of 1514 bytes are payload: 7.65 Mbit/s of 8, or less where a busy host delays ACKs; what
    # is not the background's is ACKs
    assert 0 < job["rate_bits"] / 1e6 < RATE_MBIT
    assert (job["kind"], job["connections"]) == ("run", 1)
    assert job["others"]["bits"] < 0.05 * RATE_MBIT * 1e6
    foreground = link.send(link.sink())
    time.sleep(1)
    job = job_of(top(link, 3), sender)
    assert job["why"]["reason"] == "yielding_to_host", job
    others = job["others"]["bits"] / 1e6
    # Reno alone fills the path; the background takes a part of it at most
    assert 0.5 * RATE_MBIT < others < 1.1 * RATE_MBIT
    assert f"{others:.1f} Mbit/s" in job["why_text"]
    assert job["rate_bits"] < 0.3 * RATE_MBIT * 1e6
    for process in (foreground, sender):
        process.popen.terminate()
        process.succeed()


def test_what_a_program_or_its_receiver_limits_is_told_from_what_yields(link: Link) -> None:
    listener = link.receiver.listen(RECEIVER)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)  # soon full
    port = str(listener.getsockname()[1])
    silent = link.sender.start(*UNDER, "busybox", "nc", RECEIVER, port)
    accepted = [listener.accept()[0]]
    full = link.sender.start(*UNDER, "sh", "-c", f"exec busybox nc {RECEIVER} {port} </dev/zero")
    accepted.append(listener.accept()[0])  # nobody reads from it
    try:
        view = top(link, 1)
        shown = link.sender.call("netnice", "top", "--once", "--sort", "name").splitlines()
    finally:
        for sock in accepted:  # with a reset: what was not read is not sent again
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            sock.close()
        for process in (silent, full):
            process.popen.wait(10)
    assert job_of(view, silent)["why_text"] == "limited by the program: it sends nothing"
    assert job_of(view, full)["why"]["reason"] == "receiver_window"
    assert re.match(r"[2-9] jobs, ", shown[0]) and shown[1].startswith("job ")
    assert any(line.endswith(": limited by the program: it sends nothing") for line in shown)
    assert all(len(line) <= 80 for line in shown)


def test_without_a_job_or_without_root_it_says_so_in_one_sentence(link: Link) -> None:
    assert top(link, 0.1)["jobs"] == []
    shown = link.sender.call("netnice", "top", "--once", "--interval", "0.1")
    assert shown == "No jobs in the background. Start one: sudo netnice run -- COMMAND\n"
    plain = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    done = subprocess.run([*plain, "netnice", "top"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    # there is no daemon that it could ask
    assert done.stderr.startswith("netnice: netnice's daemon does not answer at")
    assert "or run this as root: sudo netnice" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_terminal_is_given_back_as_it_was_after_q(link: Link) -> None:
    main, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    before = termios.tcgetattr(terminal)
    process = subprocess.Popen(
        ["netnice", "top", "--interval", "0.2"], stdin=terminal, stdout=terminal, stderr=terminal,
        env=os.environ | {"TERM": "xterm", "NO_COLOR": "1", "LANG": "C.UTF-8"},
        start_new_session=True,
    )  # fmt: skip
    seen = b""

    def sees(wanted: bytes) -> bool:
        nonlocal seen
        if select.select([main], [], [], 0.05)[0]:
            seen += os.read(main, 1 << 16)
        return wanted in seen

    try:
        wait_until("the screen with its keys", lambda: sees(b"quit"))
        assert termios.tcgetattr(terminal) != before
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 10, 30, 0, 0))
        os.write(main, b"q")
        wait_until("the first screen again", lambda: sees(b"\x1b[?1049l"))
        assert process.wait(10) == 0
        assert termios.tcgetattr(terminal) == before
        assert b"\x1b[?1049h" in seen
        assert not re.search(rb"\x1b\[(?:\d+;)*3[0-8][;m]", seen)  # no colour
    finally:
        process.kill()
        process.wait()
        os.close(main)
        os.close(terminal)


def test_a_verbose_run_shows_its_progress_on_a_terminal_and_nowhere_else(link: Link) -> None:
    sink = link.limit(RATE_MBIT, QUEUE).sink()
    main, terminal = pty.openpty()
    command = ["netnice", "run", "--verbose", "--", "netnice-load", "send", sink.at]
    shown = subprocess.Popen(
        link.sender.command(*command), stdout=subprocess.DEVNULL, stderr=terminal,
        start_new_session=True,
    )  # fmt: skip
    piped = link.send(sink, under=command[:4])
    seen = b""

    def has_two() -> bool:
        nonlocal seen
        if select.select([main], [], [], 0.1)[0]:
            seen += os.read(main, 1 << 16)
        # the least that the link carries for one of two
        line = rb"netnice: [\d.]+ [kM]bit/s, [\d.]+ [kM]B sent, yielded \d"
        return len(set(re.findall(line, seen))) > 1

    try:
        # the other has had the time for one, too
        wait_until("two lines of progress", has_two)
        assert piped.errors == ""
    finally:
        for process in (shown, piped.popen):
            process.terminate()
            process.wait(20)
        os.close(main)
        os.close(terminal)


def test_it_ends_with_its_terminal_and_with_a_signal(link: Link) -> None:
    for end in ("terminal", "signal"):
        main, terminal = pty.openpty()
        process = subprocess.Popen(
            ["netnice", "top"], stdin=terminal, stdout=terminal, stderr=subprocess.DEVNULL,
            env=os.environ | {"TERM": "xterm"}, start_new_session=True,
        )  # fmt: skip
        try:
            assert b"\x1b[?1049h" in os.read(main, 1 << 16)
            os.close(terminal)
            if end == "terminal":
                os.close(main)
            else:
                process.terminate()
            # with its terminal it may fail to write there: it ends all the same
            status = process.wait(10)
            assert end == "terminal" or status == 128 + signal.SIGTERM
        finally:
            process.kill()
            process.wait()
            if end == "signal":
                os.close(main)


@pytest.mark.soak
def test_a_run_that_starves_for_a_minute_says_so_once_with_the_next_step(link: Link) -> None:
    starving.says_so_once(link, UNDER)
