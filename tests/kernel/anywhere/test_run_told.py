# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""What `netnice run` could not put into the background it says at the end, in one line."""

from __future__ import annotations

import json
import socket
import subprocess

import pytest
from agent import below_an_agent
from client import RUN, UNDER, Client, accept, ended
from support import PORT, PYTHON, RECEIVER, RECEIVER6, Json, Link, cgroup_root, status, wait_until


def script(text: str) -> list[str]:
    return [PYTHON, "-S", "-E", "-c", f"import os, socket\n{text}"]


def told(*command: str, link: Link | None = None) -> str:
    """Run a command that succeeds under netnice; return what was said at the end."""
    whole = [*UNDER, *command]
    done = subprocess.run(
        link.sender.command(*whole) if link else whole, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


def report(errors: str) -> Json:
    """Return the report of `netnice run --json`."""
    (line,) = errors.splitlines()
    return json.loads(line)


def test_where_all_is_well_nothing_is_said(link: Link) -> None:
    sink = link.sink()
    sender = link.send(sink, "--bytes", "1000000", under=UNDER)
    ended(sender)
    assert sender.errors == ""


def test_a_command_without_a_connection_is_told_what_may_send_for_it() -> None:
    said = told("true")
    assert said.startswith("netnice: no TCP connection was made here; ")
    assert "netnice attach" in said and said.count("\n") == 1


def test_a_command_that_was_not_run_has_no_report() -> None:
    done = subprocess.run([*UNDER, "no-such-command"], capture_output=True, text=True, check=False)
    assert done.stderr == "netnice: command not found: no-such-command\n"


@pytest.mark.parametrize(("family", "to"), [("AF_INET", "127.0.0.1"), ("AF_INET", "127.1.2.3"),
                                            ("AF_INET6", "::1")])  # fmt: skip
def test_connections_on_this_host_only_are_told_of(family: str, to: str) -> None:
    said = told(*script(
        f"listener = socket.socket(socket.{family}, socket.SOCK_STREAM)\n"
        "listener.bind(('', 0)); listener.listen()\n"
        f"socket.create_connection(({to!r}, listener.getsockname()[1])); listener.accept()"
    ))  # fmt: skip
    # both ends are the command's
    assert said.startswith("netnice: all TCP connections (2) stayed on this host; ")
    assert said.count("\n") == 1


def connect_and_end(link: Link, *prefix: str) -> str:
    """Have a client under `prefix` send 100 bytes and end; return what was said."""
    listener = link.receiver.listen(RECEIVER, PORT)
    client = Client(link.sender, *prefix)
    client.do("open AF_INET SOCK_STREAM")
    client.do(f"connect {RECEIVER} {PORT}")
    accepted = accept(listener, link.receiver)
    client.do("send 100")
    assert accepted.recv(100, socket.MSG_WAITALL) == b"x" * 100
    found = status()["runs"]
    accepted.close()
    client.do("close")
    ended(client.process)
    (run,) = found
    kinds = [what["why"] for what in run["not_governed"]]
    assert kinds == [what["why"] for what in report(client.process.errors)["not_governed"]]
    return client.process.errors


def test_a_route_that_fixes_the_congestion_control_is_told_of(link: Link) -> None:
    link.sender.call("ip", "route", "replace", "10.0.2.0/24", "via", "10.0.1.254",
                     "congctl", "lock", "reno")  # fmt: skip
    found = report(connect_and_end(link, *RUN, "--json", "--"))
    assert found["not_governed"] == [{"why": "locked", "connections": 1}]
    assert found["connections"] == 1


def test_another_control_that_an_agent_above_gives_is_told_of(link: Link) -> None:
    with below_an_agent() as above:
        enters = ["sh", "-c", f'echo $$ >{above}/cgroup.procs; exec "$@"', "sh"]
        found = report(connect_and_end(link, *enters, *RUN, "--json", "--"))
    assert found["not_governed"] == [{"why": "changed", "connections": 1}]


def test_a_child_that_something_moves_out_of_the_run_is_told_of() -> None:
    moves = f"echo $$ >{cgroup_root()}/cgroup.procs; true"
    said = told("sh", "-c", 'sh -c "$1"; true', "sh", moves)
    assert said.startswith("netnice: 1 process left the run: ")
    assert said.count("\n") == 1


@pytest.mark.parametrize(("levels", "is_left"), [(31, False), (32, True)])
def test_a_process_more_than_31_cgroups_below_the_run_is_told_of_as_one_that_left(
    link: Link, levels: int, is_left: bool
) -> None:
    # the programs look for the run in so many cgroups (LEVELS in bpf/nearest.h)
    enters = f"""
        below={cgroup_root()}$(sed -n 's/^0:://p' /proc/self/cgroup){"/below" * levels}
        mkdir -p $below
        echo $$ >$below/cgroup.procs
        exec "$@"
    """
    found = report(connect_and_end(link, *RUN, "--json", "--", "sh", "-ec", enters, "sh"))
    left = [{"why": "left", "processes": 1}]
    assert (found["connections"], found["not_governed"]) == ((0, left) if is_left else (1, []))


def test_a_run_inside_of_a_run_is_the_one_that_tells(link: Link) -> None:
    sink = link.sink()
    send = ["netnice-load", "send", sink.at, "--bytes", "100000"]
    assert told(*UNDER, *send, link=link) == ""
    assert told("sh", "-c", '"$@"; true', "sh", *UNDER, *send, link=link) == ""


def datagrams(port: int) -> list[str]:
    return script(
        "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
        f"for _ in range(20): s.sendto(bytes(1000), ({RECEIVER!r}, {port}))"
    )


def test_what_goes_out_over_udp_is_told_of(link: Link) -> None:
    # 20 datagrams of 1000 bytes, each with headers of 20 and 8
    said = told(*datagrams(443), link=link)
    assert said.startswith("netnice: 20.6 kB went out over UDP and did not wait: ")
    assert said.count("\n") == 1


def test_questions_for_names_are_no_transfer_over_udp(link: Link) -> None:
    assert "UDP" not in told(*datagrams(53), link=link)


@pytest.mark.parametrize("only", ["both", "up"])
@pytest.mark.parametrize("address", [RECEIVER, RECEIVER6])
def test_what_comes_over_udp_is_told_of_where_it_was_to_yield(
    link: Link, address: str, only: str
) -> None:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    server = link.receiver.open_socket(family, socket.SOCK_DGRAM)
    server.bind((address, PORT))
    asks = script(
        f"s = socket.socket({int(family)}, socket.SOCK_DGRAM)\n"
        "s.setsockopt(socket.SOL_SOCKET, 33, 1 << 23)\n"  # SO_RCVBUFFORCE
        f"s.sendto(b'?', ({address!r}, {PORT}))\n"
        "for _ in range(1000): s.recv(2000)"
    )
    options = [] if only == "both" else ["--only", only]
    process = link.sender.start(*RUN, *options, "--", *asks)
    _, client = server.recvfrom(1)
    for _ in range(1000):
        server.sendto(bytes(1000), client)
    ended(process)
    # 1000 bytes each, with headers of 28, or of 48
    if only == "up":
        assert process.errors == ""
    else:
        assert process.errors.startswith("netnice: 1.0 MB came over UDP, which did not yield: ")


def test_a_download_that_did_not_yield_is_told(link: Link) -> None:
    listener = link.receiver.listen(RECEIVER, PORT)
    reads = script(
        f"s = socket.create_connection(({RECEIVER!r}, {PORT}))\nwhile s.recv(1 << 20): pass"
    )
    process = link.sender.start(*RUN, "--no-hold", "--verbose", "--", *reads)
    accepted = accept(listener, link.receiver)
    accepted.sendall(bytes(2_000_000))
    accepted.close()
    ended(process)
    summary, waited, said = process.errors.splitlines()
    assert waited == (
        "netnice: packets did not wait in this host: --no-hold was given; "
        "netnice run yields by its window, as ever"
    )
    # the kernel counts the FIN as a byte
    assert "; 2000000 bytes received (" in summary or "; 2000001 bytes received (" in summary
    assert "0.00 Mbit/s" not in summary
    assert said.startswith("netnice: it received 2.0 MB, which did not yield: no device held here")


def test_a_connection_that_is_still_open_at_the_end_counts_with_its_bytes(link: Link) -> None:
    # 1 Mbit/s: the program has ended long before the megabyte is over, and the kernel goes on
    sink = link.limit(1, 50).sink()
    host, port = sink.at.split(":")
    sends = script(
        f"s = socket.create_connection(({host!r}, {port}))\n"
        "s.setsockopt(socket.SOL_SOCKET, 32, 1 << 22)\n"  # SO_SNDBUFFORCE
        "s.sendall(bytes(1_000_000))"
    )
    process = link.sender.start(*RUN, "--json", "--", *sends)
    ended(process)
    found = report(process.errors)
    assert (found["connections"], found["open"]) == (1, 1)
    assert found["bytes_unsent"] > 0
    # else the kernel sends into nothing until it gives up, which takes minutes
    sink.process.popen.kill()
    wait_until("the connection is reset", lambda: not link.sender.call("ss", "-tnOH"))
    # SYN and FIN count as a byte each
    assert 0 <= found["bytes_sent"] + found["bytes_unsent"] - 1_000_000 <= 2
