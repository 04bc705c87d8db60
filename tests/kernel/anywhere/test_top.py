# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""`netnice top` shows each job with its rate and why it is so slow, on a terminal and for scripts."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import socket
import struct
import subprocess
import termios
import threading
import time
from collections.abc import Sequence

import pytest
from client import RUN, UNDER
from support import NOBODY, RECEIVER, Json, Link, Process, wait_until

RATE_MBIT, QUEUE = 8, 50
INTERVAL_S = 3.0


class Counter:
    """A receiver that counts what it gets, with the time of each piece."""

    def __init__(self, link: Link) -> None:
        """Listen at any port."""
        self.listener = link.receiver.listen(RECEIVER)
        self.port = self.listener.getsockname()[1]
        self.got: list[tuple[float, int]] = []
        threading.Thread(target=self._count, daemon=True).start()

    def _count(self) -> None:
        accepted, _ = self.listener.accept()
        with accepted:
            total = 0
            while data := accepted.recv(1 << 16):
                total += len(data)
                self.got.append((time.time(), total))

    def rate_bits(self, begin: float, end: float) -> float:
        """Return what it got in that time."""
        within = [total for at, total in self.got if begin <= at <= end]
        return (within[-1] - within[0]) * 8 / (end - begin)


def send(link: Link, port: int, under: Sequence[str] = ()) -> Process:
    """Start to send zeros, for ever."""
    return link.sender.start(*under, "sh", "-c", f"exec busybox nc {RECEIVER} {port} </dev/zero")


def top(link: Link, *options: str) -> Json:
    command = ["netnice", "top", "--once", "--json", "--interval", str(INTERVAL_S), *options]
    return json.loads(link.sender.call(*command))


def job_of(view: Json, kind: str) -> Json:
    (job,) = [job for job in view["jobs"] if job["kind"] == kind]
    return job


def test_a_job_has_the_rate_that_its_receiver_counts_and_yields_to_what_else_is_sent(
    link: Link,
) -> None:
    counter = Counter(link.limit(RATE_MBIT, QUEUE))
    process = send(link, counter.port, under=UNDER)
    wait_until("half a megabyte", lambda: counter.got and counter.got[-1][1] > 500_000)
    view = top(link)
    job = job_of(view, "run")
    counted = counter.rate_bits(view["time"] - view["seconds"], view["time"])
    assert job["rate_bits"] == pytest.approx(counted, rel=0.1)
    # 1448 of 1514 bytes are payload: 7.65 Mbit/s of 8, and what is not the background's is ACKs
    assert 0.5 * RATE_MBIT < job["rate_bits"] / 1e6 < RATE_MBIT
    assert (job["pid"], job["connections"]) == (process.pid, 1)
    assert job["others"]["bits"] < 0.05 * RATE_MBIT * 1e6
    foreground = link.send(link.sink())
    time.sleep(1)
    job = job_of(top(link), "run")
    assert job["why"]["reason"] == "yielding_to_host", job
    others = job["others"]["bits"] / 1e6
    # Reno alone fills the path; the background takes a part of it at most
    assert 0.5 * RATE_MBIT < others < 1.1 * RATE_MBIT
    assert f"{others:.1f} Mbit/s" in job["why_text"]
    assert job["rate_bits"] < 0.3 * RATE_MBIT * 1e6
    foreground.popen.terminate()


def test_what_a_program_or_its_receiver_limits_is_told_from_what_yields(link: Link) -> None:
    listener = link.receiver.listen(RECEIVER)
    port = listener.getsockname()[1]
    silent = link.sender.start(*UNDER, "busybox", "nc", RECEIVER, str(port))
    accepted, _ = listener.accept()
    full = send(link, port, under=UNDER)
    unread, _ = listener.accept()  # nobody reads from it
    view = top(link, "--interval", "1")
    jobs = {job["pid"]: job for job in view["jobs"]}
    assert jobs[silent.pid]["why_text"] == "limited by the program: it sends nothing"
    assert jobs[full.pid]["why"]["reason"] == "receiver_window"
    shown = link.sender.call("netnice", "top", "--once", "--sort", "name").splitlines()
    assert shown[0].startswith("2 jobs, ") and shown[1].startswith("job ")
    assert all(len(line) <= 80 for line in shown)
    accepted.close()
    unread.close()


def test_without_a_job_or_without_root_it_says_so_in_one_sentence(link: Link) -> None:
    assert top(link, "--interval", "0.1")["jobs"] == []
    shown = link.sender.call("netnice", "top", "--once", "--interval", "0.1")
    assert shown == "No jobs in the background. Start one: sudo netnice run -- COMMAND\n"
    plain = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    done = subprocess.run([*plain, "netnice", "top"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("netnice: this needs CAP_NET_ADMIN and CAP_SYS_ADMIN")
    assert done.stderr.count("\n") == 1


def test_a_terminal_is_given_back_as_it_was_after_q(link: Link) -> None:
    main, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    before = termios.tcgetattr(terminal)
    process = subprocess.Popen(
        ["netnice", "top", "--interval", "0.2"], stdin=terminal, stdout=terminal, stderr=terminal,
        env=os.environ | {"TERM": "xterm", "NO_COLOR": "1", "LANG": "C.UTF-8"}, start_new_session=True,
    )  # fmt: skip
    seen = b""

    def sees(wanted: bytes) -> bool:
        nonlocal seen
        if select.select([main], [], [], 0.05)[0]:
            seen += os.read(main, 1 << 16)
        return wanted in seen

    wait_until("the screen", lambda: sees(b"No jobs in the background"))
    assert termios.tcgetattr(terminal) != before
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 10, 30, 0, 0))
    os.write(main, b"q")
    wait_until("the first screen again", lambda: sees(b"\x1b[?1049l"))
    assert process.wait(10) == 0
    assert termios.tcgetattr(terminal) == before
    assert b"\x1b[?1049h" in seen
    assert b"\x1b[3" not in seen  # no colour: 30 to 37
    os.close(main)
    os.close(terminal)
