# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""`netnice run`: every connection of the command is in the background, and none gets out."""

from __future__ import annotations

import os
import signal
import socket
import subprocess

import pytest
from classes import DEFAULT
from client import RUN, UNDER, Client, accept, ended, only
from sizes import EACH
from support import (
    LE,
    MEMORY,
    NOBODY,
    PORT,
    PYTHON,
    RECEIVER,
    RECEIVER6,
    SENDER,
    SENDER6,
    Link,
    Process,
    cgroup_root,
    flows,
    registered,
    wait_until,
)

# --- every connection ---------------------------------------------------------


@pytest.mark.parametrize(
    ("family", "listens", "to"),
    [
        ("AF_INET", RECEIVER, RECEIVER),
        ("AF_INET6", RECEIVER6, RECEIVER6),
        ("AF_INET6", RECEIVER, f"::ffff:{RECEIVER}"),
    ],
    ids=["IPv4", "IPv6", "IPv4 in an IPv6 socket"],
)
def test_a_connection_is_in_the_background_and_marked_from_its_first_packet(
    link: Link, family: str, listens: str, to: str
) -> None:
    listener = link.receiver.listen(listens, PORT)
    capture = link.capture()
    client = Client(link.sender, *UNDER)
    client.do(f"open {family} SOCK_STREAM")
    client.do(f"connect {to} {PORT}")
    accepted = accept(listener, link.receiver)
    client.do("send 100")
    assert accepted.recv(100, socket.MSG_WAITALL) == b"x" * 100
    seen = only(link.sender.connections())
    assert (seen.control, seen.tos) == (DEFAULT, LE)
    (known,) = flows()
    assert known["control"] == DEFAULT
    assert known["run"] != 0
    assert known["remote"].endswith(f":{PORT}")
    syn = capture.first("a SYN", lambda p: p.syn and p.dport == PORT)
    data = capture.first("data", lambda p: p.payload == 100 and p.dport == PORT)
    # the bits of ECN are the kernel's own business
    assert (syn.tos & ~3, data.tos & ~3) == (LE, LE)
    ended(client.process)


@pytest.mark.parametrize("family", ["AF_INET", "AF_INET6"])
def test_dscp_none_leaves_the_packets_unmarked(link: Link, family: str) -> None:
    address = RECEIVER if family == "AF_INET" else RECEIVER6
    listener = link.receiver.listen(address, PORT)
    capture = link.capture()
    client = Client(link.sender, *RUN, "--dscp", "none", "--")
    client.do(f"open {family} SOCK_STREAM")
    client.do(f"connect {address} {PORT}")
    accept(listener, link.receiver)
    client.do("send 100")
    assert only(link.sender.connections()).control == DEFAULT
    syn = capture.first("a SYN", lambda p: p.syn and p.dport == PORT)
    data = capture.first("data", lambda p: p.payload == 100 and p.dport == PORT)
    assert (syn.tos, data.tos) == (0, 0)
    ended(client.process)


@pytest.mark.parametrize(("binds", "to"), [(SENDER, SENDER), ("::", SENDER6), ("::", SENDER)],
                         ids=["IPv4", "IPv6", "IPv4 in an IPv6 socket"])  # fmt: skip
def test_connections_that_the_command_accepts_are_in_the_background(
    link: Link, binds: str, to: str
) -> None:
    # larger than the buffers of both ends (tcp_wmem and tcp_rmem reach 4 and 6 MiB), so that the
    # server cannot be done before it was looked at
    size = 16 << 20
    content = os.urandom(size)
    web = MEMORY / "web"
    web.mkdir(exist_ok=True)
    (web / "file").write_bytes(content)
    server = link.sender.start(
        *UNDER, PYTHON, "-u", "-m", "http.server", "--bind", binds, "--directory", str(web), "8080"
    )
    assert "Serving HTTP" in server.line()
    family = socket.AF_INET6 if ":" in to else socket.AF_INET
    client = link.receiver.open_socket(family, socket.SOCK_STREAM)
    client.connect((to, 8080))
    client.sendall(b"GET /file HTTP/1.0\r\n\r\n")
    assert client.recv(1)
    seen = only(link.sender.connections())
    assert (seen.control, seen.tos) == (DEFAULT, LE)
    got = bytearray()
    while data := client.recv(1 << 20):
        got += data
    assert got.endswith(content)
    server.popen.send_signal(signal.SIGINT)
    ended(server, 0)


@pytest.mark.parametrize(("family", "binds", "to"), [
    ("AF_INET", SENDER, SENDER), ("AF_INET6", "::", SENDER6), ("AF_INET6", "::", SENDER),
], ids=["IPv4", "IPv6", "IPv4 in an IPv6 socket"])  # fmt: skip
@pytest.mark.parametrize(
    ("protocol", "options", "tos"),
    [
        pytest.param("IPPROTO_TCP", [], LE, id="TCP"),
        pytest.param("IPPROTO_MPTCP", [], LE, id="MPTCP"),
        # 184 is Expedited Forwarding, chosen by the command
        pytest.param("IPPROTO_TCP", ["--dscp", "none"], 184, id="TCP marked by the command"),
    ],
)
def test_the_answer_to_a_syn_is_marked_as_the_connection_is(
    link: Link, family: str, binds: str, to: str, protocol: str, options: list[str], tos: int
) -> None:
    capture = link.capture()
    server = Client(link.sender, *RUN, *options, "--")
    server.do(f"open {family} SOCK_STREAM {protocol}")
    server.do("set IPPROTO_IP IP_TOS 184")
    if protocol == "IPPROTO_TCP" and family == "AF_INET6":
        server.do("set IPPROTO_IPV6 IPV6_TCLASS 184")
    server.do(f"listen {binds} {PORT}")
    client = link.receiver.open_socket(
        socket.AF_INET6 if ":" in to else socket.AF_INET, socket.SOCK_STREAM
    )
    client.connect((to, PORT))
    answer = capture.first("a SYN-ACK", lambda p: p.syn and p.sport == PORT)
    assert answer.tos & ~3 == tos
    client.close()
    ended(server.process)


@pytest.mark.parametrize(
    "prefix",
    [
        pytest.param([], id="a static binary"),
        pytest.param(["setpriv", f"--reuid={NOBODY}", "--clear-groups"], id="another user"),
        pytest.param(["sh", "-c", '"$@"; exit $?', "sh"], id="a child"),
        pytest.param(["sh", "-c", 'exec 3<&0; "$@" <&3 & wait $!', "sh"], id="a background child"),
        pytest.param(["setsid", "-w"], id="a session of its own"),
    ],
)
def test_every_process_below_the_command_is_in_the_background(
    link: Link, prefix: list[str]
) -> None:
    listener = link.receiver.listen(RECEIVER, PORT)
    sender = link.sender.start(*UNDER, *prefix, "busybox", "nc", RECEIVER, str(PORT))
    accepted = accept(listener, link.receiver)
    assert only(link.sender.connections()).control == DEFAULT
    accepted.close()
    ended(sender)


def test_several_connections_of_one_command_are_all_in_the_background(link: Link) -> None:
    sink = link.sink()
    # endless flows, until the command is told to end
    sender = link.send(sink, "--flows", "5", under=UNDER)
    wait_until("five connections", lambda: len(link.sender.connections()) == 5)
    assert {c.control for c in link.sender.connections()} == {DEFAULT}
    assert {f["control"] for f in flows()} == {DEFAULT}
    assert len({f["run"] for f in flows()}) == 1
    sender.popen.terminate()
    ended(sender)


def test_inside_ip_netns_exec_the_run_works_as_elsewhere(link: Link) -> None:
    sink = link.sink()
    sender = Process(["ip", "netns", "exec", link.sender.name, *UNDER, "netnice-load", "send",
                      sink.at, "--bytes", "1000000"])  # fmt: skip
    wait_until("a connection", lambda: sender.ended() or link.sender.connections())
    ended(sender)
    (flow,) = sink.report()["flows"]
    assert flow["complete"]


# of all at once: test_intact.py
@pytest.mark.parametrize("algorithm", sorted({each.split()[0] for each in EACH}))
def test_the_algorithm_that_was_asked_for_is_the_one_that_runs(link: Link, algorithm: str) -> None:
    sink = link.sink()
    sender = link.send(sink, under=[*RUN, "--algorithm", algorithm, "--"])
    wait_until("a connection", link.sender.connections)
    assert only(link.sender.connections()).control == f"nn_{algorithm}"
    sender.popen.terminate()
    ended(sender)


@pytest.mark.parametrize(
    ("options", "control", "tos"),
    [
        ([], DEFAULT, LE),
        (["--class", "idle"], DEFAULT, LE),
        (["--class", "fair"], "nn_fairbat1", 0),
        (["--class", "assured"], "nn_fairbat2", 0),
        (["--class", "fair", "--dscp", "le"], "nn_fairbat1", LE),
        (["--algorithm", "fairbat2"], "nn_fairbat2", LE),
    ],
)
def test_a_class_chooses_its_algorithm_and_whether_packets_are_marked(
    link: Link, options: list[str], control: str, tos: int
) -> None:
    sender = link.send(link.sink(), under=[*RUN, *options, "--"])
    wait_until("a connection", link.sender.connections)
    seen = only(link.sender.connections())
    assert (seen.control, seen.tos) == (control, tos)
    sender.popen.terminate()
    ended(sender)


def test_a_class_takes_parameters_by_the_names_of_their_values(link: Link) -> None:
    settings = [word for s in ("mode=tau", "gamma=2") for word in ("--set", s)]
    sender = link.send(link.sink(), under=[*RUN, "--class", "fair", *settings, "--"])
    (flow,) = wait_until("a flow", flows)
    assert (flow["parameters"]["mode"], flow["parameters"]["gamma"]) == (1, 2)
    sender.popen.terminate()
    ended(sender)


# --- no way out ---------------------------------------------------------------


@pytest.mark.parametrize("family", ["AF_INET", "AF_INET6"])
@pytest.mark.parametrize("protocol", ["IPPROTO_TCP", "IPPROTO_MPTCP"])
@pytest.mark.parametrize("when", ["before the connection", "during it"])
def test_the_command_cannot_choose_another_congestion_control_or_mark(
    link: Link, family: str, protocol: str, when: str
) -> None:
    address = RECEIVER if family == "AF_INET" else RECEIVER6
    tos = "IPPROTO_IP IP_TOS" if family == "AF_INET" else "IPPROTO_IPV6 IPV6_TCLASS"
    # 184 is Expedited Forwarding; programs that treat a refusal as fatal go on
    settings = ["set IPPROTO_TCP TCP_CONGESTION cubic", f"set {tos} 184"]
    listener = link.receiver.listen(address, PORT, getattr(socket, protocol))
    capture = link.capture()
    client = Client(link.sender, *UNDER)
    client.do(f"open {family} SOCK_STREAM {protocol}")
    if when == "before the connection":
        for setting in settings:
            client.do(setting)
    client.do(f"connect {address} {PORT}")
    accepted = accept(listener, link.receiver)
    if when == "during it":
        for setting in settings:
            client.do(setting)
    client.do("send 100")
    assert accepted.recv(100, socket.MSG_WAITALL) == b"x" * 100
    seen = only(link.sender.connections())
    assert (seen.control, seen.tos) == (DEFAULT, LE)
    syn = capture.first("a SYN", lambda p: p.syn and p.dport == PORT)
    data = capture.first("data", lambda p: p.payload == 100 and p.dport == PORT)
    assert (syn.tos & ~3, data.tos & ~3) == (LE, LE)
    ended(client.process)


def test_a_route_with_its_own_congestion_control_does_not_take_the_command_out(link: Link) -> None:
    link.sender.call("sh", "-c", "ip route replace 10.0.2.0/24 via 10.0.1.254 congctl cubic")
    listener = link.receiver.listen(RECEIVER, PORT)
    client = Client(link.sender, *UNDER)
    client.do("open AF_INET SOCK_STREAM")
    client.do(f"connect {RECEIVER} {PORT}")
    accept(listener, link.receiver)
    client.do("send 100")
    assert only(link.sender.connections()).control == DEFAULT
    ended(client.process)


def test_other_options_and_udp_are_left_alone(link: Link) -> None:
    capture = link.capture()
    client = Client(link.sender, *UNDER)
    client.do("open AF_INET SOCK_DGRAM")
    client.do("set IPPROTO_IP IP_TOS 184")
    assert client.do("get IPPROTO_IP IP_TOS") == "184"
    client.do(f"connect {RECEIVER} 9")
    client.do("send 33")
    sent = capture.first("UDP", lambda p: p.protocol == socket.IPPROTO_UDP and p.dport == 9)
    assert (sent.tos, sent.payload) == (184, 33)
    client.do("open AF_INET SOCK_STREAM")
    client.do("set IPPROTO_TCP TCP_MAXSEG 1000")
    client.do("set IPPROTO_TCP TCP_NODELAY 1")
    assert client.do("get IPPROTO_TCP TCP_NODELAY") == "1"
    ended(client.process)


def test_with_dscp_none_the_command_may_mark_its_packets_itself(link: Link) -> None:
    listener = link.receiver.listen(RECEIVER, PORT)
    client = Client(link.sender, *RUN, "--dscp", "none", "--")
    client.do("open AF_INET SOCK_STREAM")
    client.do("set IPPROTO_IP IP_TOS 184")
    client.do(f"connect {RECEIVER} {PORT}")
    accept(listener, link.receiver)
    seen = only(link.sender.connections())
    assert (seen.control, seen.tos) == (DEFAULT, 184)
    ended(client.process)


def test_programs_outside_the_run_keep_their_own_congestion_control(link: Link) -> None:
    listener = link.receiver.listen(RECEIVER, PORT)
    inside = Client(link.sender, *UNDER)
    outside = Client(link.sender)
    for client in (inside, outside):
        client.do("open AF_INET SOCK_STREAM")
        client.do(f"connect {RECEIVER} {PORT}")
        accept(listener, link.receiver)
    assert sorted(c.control for c in link.sender.connections()) == [DEFAULT, "reno"]
    outside.do("set IPPROTO_TCP TCP_CONGESTION cubic")
    assert sorted(c.control for c in link.sender.connections()) == ["cubic", DEFAULT]
    ended(outside.process)
    ended(inside.process)


# --- parameters ---------------------------------------------------------------

# A threshold of 0 and a fraction of 0 make one packet above the least RTT a congested round, as
# good as every round on a machine that does something else now and then: the window falls to
# `least`, and is never below.
FALLS_TO = ("--set", "threshold=0", "--set", "fraction=0", "--set", "together=0", "--set")


def least_window_seen(run: int, wanted: float) -> float:
    """Watch a run's window until it is down at `wanted`; return the least that was seen."""
    seen: list[float] = []

    def falls() -> bool:
        seen.extend(f["cwnd"] for f in flows() if f["run"] == run)
        return bool(seen) and min(seen) <= wanted

    wait_until(f"a window of {wanted}", falls)
    return min(seen)


def run_of(process: Process) -> int:
    """Return the run's id of a process started by `netnice run`."""
    found: list[int] = [p.stat().st_ino for p in cgroup_root().rglob(f"netnice-run-{process.pid}")]
    assert len(found) == 1
    return found[0]


def test_a_parameter_reaches_the_connections(link: Link) -> None:
    sender = link.send(link.sink(), "--flows", "2", under=[*RUN, *FALLS_TO, "least=0.25", "--"])
    wait_until("two flows", lambda: len(flows()) == 2)
    assert least_window_seen(run_of(sender), 0.25) == 0.25
    sender.popen.terminate()
    ended(sender)


def test_two_runs_at_once_do_not_disturb_each_other(link: Link) -> None:
    sink = link.sink()
    quarter = link.send(sink, under=[*RUN, *FALLS_TO, "least=0.25", "--"])
    whole = link.send(sink, under=[*RUN, *FALLS_TO, "least=1", "--dscp", "none", "--"])
    wait_until("two flows", lambda: len(flows()) == 2)
    runs = run_of(quarter), run_of(whole)
    assert least_window_seen(runs[0], 0.25) == 0.25
    assert least_window_seen(runs[1], 1.0) == 1.0
    assert sorted(c.tos for c in link.sender.connections()) == [0, LE]
    quarter.popen.terminate()
    ended(quarter)
    # the other goes on, its new connections too
    assert registered() == {DEFAULT}
    assert {f["run"] for f in flows()} == {runs[1]}
    before = flows()[0]["bytes_acked"]
    wait_until("the other run sends", lambda: flows()[0]["bytes_acked"] > before)
    whole.popen.terminate()
    ended(whole)


def test_a_run_inside_a_run_has_its_own_settings(link: Link) -> None:
    sender = link.send(
        link.sink(), under=[*RUN, "-a", "reno", "--", *RUN, *FALLS_TO, "least=0.25", "--"]
    )
    (flow,) = wait_until("a flow", flows)
    assert flow["control"] == DEFAULT
    assert only(link.sender.connections()).control == DEFAULT
    assert least_window_seen(flow["run"], 0.25) == 0.25
    sender.popen.terminate()
    ended(sender)


def test_a_run_inside_a_run_passes_the_exit_status_through() -> None:
    assert subprocess.run([*UNDER, *UNDER, "sh", "-c", "exit 7"], check=False).returncode == 7
