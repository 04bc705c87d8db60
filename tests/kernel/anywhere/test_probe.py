# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""`netnice probe`: it measures, says how far it is sure, and ends as it should."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator

import pytest
from support import (
    LE,
    NOBODY,
    PORT,
    RECEIVER,
    RECEIVER6,
    Json,
    Link,
    Process,
    flows,
    wait_until,
)

RATE_MBIT = 8.0
WINDOW = 16
"""The least window that measures, in packets (core/measure/avail.h)."""


def listen(link: Link, *options: str) -> Process:
    """Start the other end; it listens at RFC 863's port, over IPv4 and IPv6, if not told more."""
    process = link.receiver.start("netnice", "probe", "--listen", *options)
    assert "listening" in process.line()
    return process


@pytest.fixture
def slow(link: Link) -> Iterator[Link]:
    """Make a bottleneck behind the sender, a neighbour that fills its queue, and the other end.

    The path has no delay of its own, but with the 75 ms of the queue it carries 50 packets in a
    round trip.
    """
    listen(link.limit(RATE_MBIT, 50))
    link.send(link.sink(), "--control", "reno")
    wait_until("a full queue", lambda: [c for c in link.sender.connections() if c.rtt_ms > 50])
    yield link


def probe(link: Link, *options: str) -> tuple[int, str, str]:
    """Run a probe to its end; return its status, output and errors."""
    command = link.sender.command("netnice", "probe", *options)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def parse(output: str) -> tuple[list[Json], Json]:
    """Return the measurements and the summary of --json."""
    *lines, last = [json.loads(line) for line in output.splitlines()]
    return lines, last["summary"]


# --- what it measures ---------------------------------------------------------


LONG = ("--seconds", "10000")
"""Until it is interrupted: a busy host takes its time for a measurement."""


def measure(link: Link, *options: str) -> str:
    """Run a probe until it shows two measurements, interrupt it, and return its output."""
    process = link.sender.start("netnice", "probe", *options, *LONG)
    lines = [process.line() + "\n" for _ in range(2)]
    process.popen.send_signal(signal.SIGINT)
    output = "".join(lines) + process.succeed()
    assert process.errors == ""
    return output


@pytest.mark.parametrize("address", [RECEIVER, RECEIVER6])
def test_each_measurement_is_an_object_and_the_summary_the_last(slow: Link, address: str) -> None:
    lines, summary = parse(measure(slow, address, "--json"))
    for line in lines:
        assert 0 < line["low"] <= line["mbit"] <= line["high"]
    for name in ("seconds", "results"):
        values = [line[name] for line in lines]
        assert values == sorted(set(values)), f"{name} increases"
    # how near to the truth they are is measured where time is virtual: in_vm/test_accuracy.py
    assert summary["p10_mbit"] <= summary["median_mbit"] <= summary["p90_mbit"]
    assert min(x["mbit"] for x in lines) <= summary["p10_mbit"]
    assert summary["last"] == {k: lines[-1][k] for k in ("mbit", "low", "high", "results")}
    assert summary["ended"] == "interrupt"
    assert lines[-1]["seconds"] <= summary["seconds"]
    assert summary["control"] == "nn_imtcp"
    assert summary["bytes_acked"] > 0
    assert summary["greatest_cwnd"] >= WINDOW
    port = 9
    assert summary["host"] == (f"[{address}]:{port}" if ":" in address else f"{address}:{port}")


def test_without_a_terminal_each_measurement_is_a_line(slow: Link) -> None:
    *lines, available, rest = measure(slow, RECEIVER).splitlines()
    for line in lines:
        assert re.fullmatch(r" *[\d.]+ s +[\d.]+ \[[\d.]+, [\d.]+\] Mbit/s  RTT [\d.]+ ms", line), (
            line
        )
    assert available.startswith(f"available to {RECEIVER}:9: ")
    assert f"measurements: {len(lines)} " in rest


def test_on_a_terminal_one_line_follows_the_measurement(slow: Link) -> None:
    terminal, end = pty.openpty()
    shown: list[bytes] = []

    def read() -> None:
        try:
            while data := os.read(terminal, 4096):
                shown.append(data)
        except OSError:
            pass  # the other end is closed

    command = slow.sender.command("netnice", "probe", RECEIVER, *LONG)
    process = subprocess.Popen(command, stdout=end, stderr=end)
    os.close(end)
    reader = threading.Thread(target=read)
    reader.start()
    wait_until("a measurement", lambda: re.search(rb"[\d.]+ \[[\d.]+, [\d.]+\]", b"".join(shown)))
    process.send_signal(signal.SIGINT)
    assert process.wait() == 0
    reader.join()
    os.close(terminal)
    *live, available, rest = b"".join(shown).decode().rstrip().split("\n")
    # what is drawn over and over again ends no line
    assert len(live) <= 1
    assert "available to" in available
    assert rest.startswith("measurements:")


def test_its_connection_is_marked_and_shown_as_any_other(slow: Link) -> None:
    process = slow.sender.start("netnice", "probe", "--algorithm", "imtcp_bg", RECEIVER)
    (marked,) = wait_until(
        "its connection", lambda: [c for c in slow.sender.connections() if c.tos]
    )
    assert (marked.remote, marked.tos) == (f"{RECEIVER}:9", LE)
    (flow,) = flows()
    assert (flow["control"], flow["remote"]) == ("nn_imtcp_bg", marked.remote)
    process.popen.send_signal(signal.SIGINT)
    process.status()


# --- how it ends --------------------------------------------------------------


def test_an_interrupt_before_there_is_a_result_is_an_error(link: Link) -> None:
    link.receiver.listen(RECEIVER, PORT)  # nobody reads: the window that it offers fills up
    process = link.sender.start("netnice", "probe", f"{RECEIVER}:{PORT}", *LONG)
    wait_until("its connection", link.sender.connections)
    process.popen.send_signal(signal.SIGINT)
    assert process.status() == 1
    assert "before there was a result" in process.errors


def test_a_refused_connection_says_what_to_start_there(link: Link) -> None:
    status, output, errors = probe(link, f"{RECEIVER}:{PORT}")
    assert (status, output) == (1, "")
    assert f"cannot connect to {RECEIVER}:{PORT}" in errors
    assert "netnice probe --listen" in errors
    assert "refused" in errors


def test_a_peer_that_closes_before_there_is_a_result_is_an_error(link: Link) -> None:
    listener = link.receiver.listen(RECEIVER, PORT)

    def close_early() -> None:
        connection, _ = listener.accept()
        connection.recv(100)
        connection.close()

    thread = threading.Thread(target=close_early)
    thread.start()
    status, output, errors = probe(link, f"{RECEIVER}:{PORT}", "--json")
    thread.join()
    assert status == 1
    lines, summary = parse(output)
    assert lines == []
    assert summary["ended"] == "peer"
    assert "closed the connection" in errors
    assert "before there was a result" in errors


def test_a_window_that_stays_too_small_is_named_with_the_one_it_takes(link: Link) -> None:
    listener = link.receiver.open_socket(socket.AF_INET, socket.SOCK_STREAM)
    # two packets and their bookkeeping: the receiver never offers ten, so the window never grows
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    listener.bind((RECEIVER, PORT))
    listener.listen()

    def discard() -> None:
        connection, _ = listener.accept()
        try:
            while connection.recv(4096):
                pass
        except ConnectionResetError:
            pass  # how a probe ends

    thread = threading.Thread(target=discard)
    thread.start()
    status, output, errors = probe(link, f"{RECEIVER}:{PORT}", "--seconds", "1", "--json")
    thread.join()
    assert status == 1
    _, summary = parse(output)
    assert (summary["ended"], summary["median_mbit"]) == ("time", None)
    assert summary["seconds"] >= 1
    assert summary["last"] is None
    assert summary["greatest_cwnd"] < WINDOW
    assert f"a path that carries {WINDOW} packets in a round trip" in errors
    assert "--seconds" in errors


def test_an_algorithm_that_does_not_measure_is_refused_with_those_that_do(link: Link) -> None:
    status, _, errors = probe(link, "--algorithm", "nice", RECEIVER)
    assert status == 1
    assert "nice does not measure the available bandwidth; choose imtcp or imtcp_bg" in errors


def test_without_privileges_it_says_which_are_missing(link: Link) -> None:
    unprivileged = ["setpriv", f"--reuid={NOBODY}", "--clear-groups", "netnice", "probe", RECEIVER]
    done = subprocess.run(
        link.sender.command(*unprivileged), capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "run it as root" in done.stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "required"),
        (["host:0"], "write HOST, HOST:PORT"),
        (["--listen", "nowhere"], "write an address"),
        (["--seconds", "0", "host"], "number of seconds"),
        (["--class", "fair", "host"], "unexpected argument '--class'"),  # none measures
    ],
)
def test_a_wrong_command_line_is_explained(link: Link, options: list[str], said: str) -> None:
    status, _, errors = probe(link, *options)
    assert status == 2
    assert said in errors


# --- the other end ------------------------------------------------------------


def test_the_other_end_says_what_it_got_and_ends_on_an_interrupt(link: Link) -> None:
    listener = listen(link.limit(RATE_MBIT, 50), f"{RECEIVER}:{PORT}", "--json")
    _, output, _ = probe(link, f"{RECEIVER}:{PORT}", "--json", "--seconds", "2")
    _, summary = parse(output)
    got = json.loads(listener.line())
    assert got["peer"].startswith("10.0.1.1:")
    # what was acknowledged it had; the reset at the end discards what it had not read yet
    assert got["bytes"] > 0
    assert got["bytes"] == pytest.approx(summary["bytes_acked"], rel=0.5)
    listener.popen.send_signal(signal.SIGINT)
    listener.succeed()


def test_the_other_end_takes_eight_transfers_and_turns_more_away(link: Link) -> None:
    listener = listen(link)

    def connect() -> socket.socket:
        sock = link.sender.open_socket(socket.AF_INET, socket.SOCK_STREAM)
        sock.connect((RECEIVER, 9))
        return sock

    taken = [connect() for _ in range(8)]
    assert connect().recv(1) == b""
    for sock in taken:
        sock.sendall(b"more")
    # a place that is left is given to the next
    taken[0].close()
    assert re.search(r": 4 bytes in [\d.]+ s", listener.line())
    again = connect()
    again.sendall(b"x")
    again.shutdown(socket.SHUT_WR)
    assert ": 1 bytes in" in listener.line()
    listener.popen.send_signal(signal.SIGTERM)
    listener.succeed()


def test_a_port_in_use_is_an_error_of_the_other_end(link: Link) -> None:
    listen(link)
    second = link.receiver.start("netnice", "probe", "--listen")
    assert second.status() == 1
    assert "cannot listen on [::]:9" in second.errors
    assert "in use" in second.errors
