# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""`netnice run`: the command passes through, its connections do not get out of the background."""

from __future__ import annotations

import os
import pty
import re
import signal
import socket
import subprocess
import time
from collections.abc import Sequence

import pytest
from support import (
    LE,
    MEMORY,
    NOBODY,
    PATIENCE_S,
    PORT,
    PYTHON,
    RECEIVER,
    RECEIVER6,
    SENDER,
    SENDER6,
    TCP_CONGESTION,
    Connection,
    Link,
    Namespace,
    Process,
    algorithms,
    call,
    cgroup_root,
    flows,
    left_behind,
    registered,
    sweep,
    wait_until,
)

RUN = ("netnice", "run")
UNDER = (*RUN, "--")

# A client that obeys lines: connects, sets options, says what it sees, waits for the next line.
CLIENT = """
import socket, sys
sock = None
def show(*what): print(*what, flush=True)
show("ready")
for line in sys.stdin:
    word, *args = line.split()
    if word == "open":
        sock = socket.socket(*[getattr(socket, arg) for arg in args])
    elif word == "set":
        level, option, value = args
        value = int(value) if value.isdigit() else value.encode()
        sock.setsockopt(getattr(socket, level), getattr(socket, option), value)
    elif word == "get":
        show(sock.getsockopt(getattr(socket, args[0]), getattr(socket, args[1])))
    elif word == "connect":
        sock.connect((args[0], int(args[1])))
    elif word == "send":
        sock.sendall(b"x" * int(args[0]))
    elif word == "close":
        sock.close()
    show("done")
"""


class Client:
    """`CLIENT`, under netnice or another prefix."""

    def __init__(self, where: Namespace, *prefix: str) -> None:
        """Start it and wait until it obeys."""
        self.process = where.start(*prefix, PYTHON, "-S", "-E", "-c", CLIENT)
        assert self.process.line() == "ready"

    def do(self, order: str) -> str:
        """Have an order carried out; return what it showed."""
        self.process.tell(order)
        shown = ""
        while (line := self.process.line()) != "done":
            shown += line
        return shown


def accept(listener: socket.socket, where: Namespace) -> socket.socket:
    """Accept a connection, and keep it until the namespace is removed."""
    accepted, _ = listener.accept()
    accepted.settimeout(PATIENCE_S)
    where.sockets.append(accepted)
    return accepted


def only(found: Sequence[Connection]) -> Connection:
    assert len(found) == 1, found
    return found[0]


def ended(process: Process, status: int = 0) -> None:
    assert process.status() == status, process.errors


# --- as nice(1) ---------------------------------------------------------------


@pytest.mark.parametrize("code", [0, 1, 7, 255])
def test_the_exit_status_of_the_command_is_that_of_netnice(code: int) -> None:
    done = subprocess.run([*UNDER, "sh", "-c", f"exit {code}"], check=False)
    assert done.returncode == code


def test_a_command_that_is_not_found_ends_with_127_and_its_name() -> None:
    done = subprocess.run([*UNDER, "no-such-command"], capture_output=True, text=True, check=False)
    assert done.returncode == 127
    assert done.stderr == "netnice: command not found: no-such-command\n"


def test_a_file_that_cannot_be_run_ends_with_126_and_the_reason() -> None:
    done = subprocess.run([*UNDER, "/etc/passwd"], capture_output=True, text=True, check=False)
    assert done.returncode == 126
    assert "/etc/passwd" in done.stderr
    assert "Permission denied" in done.stderr


@pytest.mark.parametrize("name", ["SIGTERM", "SIGKILL", "SIGSEGV", "SIGINT", "SIGHUP"])
def test_the_caller_sees_the_signal_that_ended_the_command(name: str) -> None:
    done = subprocess.run(
        [*UNDER, PYTHON, "-S", "-E", "-c",
         "import os, signal, resource;"
         "resource.setrlimit(resource.RLIMIT_CORE, (0, 0));"
         f"signal.signal(signal.{name}, signal.SIG_DFL) if '{name}' != 'SIGKILL' else 0;"
         f"os.kill(os.getpid(), signal.{name})"], check=False,
    )  # fmt: skip
    assert done.returncode == -signal.Signals[name]


@pytest.mark.parametrize("name", ["TERM", "INT", "HUP", "USR1", "QUIT"])
def test_a_signal_to_netnice_reaches_the_command_which_decides_what_it_means(name: str) -> None:
    script = f"trap 'echo {name}; exit 3' {name}; echo ready; read forever"
    process = Process([*UNDER, "sh", "-c", script])
    assert process.line() == "ready"
    os.kill(process.pid, signal.Signals[f"SIG{name}"])
    assert process.line() == name
    ended(process, 3)


COUNTS_SIGNALS = """
import os, signal
signal.signal(signal.SIGINT, lambda *_: os.write(1, b"INT\\n"))
signal.signal(signal.SIGUSR1, lambda *_: os.write(1, b"USR1\\n"))
os.write(1, b"ready\\n")
while True:
    signal.pause()
"""


def test_ctrl_c_on_a_terminal_reaches_the_command_once() -> None:
    pid, terminal = pty.fork()
    if pid == 0:
        os.execvp("netnice", [*UNDER, PYTHON, "-S", "-E", "-c", COUNTS_SIGNALS])
    shown = b""

    def read_until(text: bytes) -> None:
        nonlocal shown
        while text not in shown:
            shown += os.read(terminal, 1024)

    read_until(b"ready")
    os.write(terminal, b"\x03")
    read_until(b"INT")
    # netnice passes signals on in order: a second INT from it would come before this one
    os.kill(pid, signal.SIGUSR1)
    read_until(b"USR1")
    os.write(terminal, b"\x1c")  # Ctrl-\ ends it
    _, status = os.waitpid(pid, 0)
    os.close(terminal)
    assert shown.count(b"INT") == 1
    assert os.waitstatus_to_exitcode(status) == -signal.SIGQUIT


def test_standard_input_and_output_are_the_commands_own() -> None:
    data = os.urandom(1 << 20)
    done = subprocess.run([*UNDER, "cat"], input=data, capture_output=True, check=False)
    assert done.returncode == 0
    assert done.stdout == data
    assert done.stderr == b""


def test_the_command_sees_its_arguments_as_they_were_given() -> None:
    odd = ["--", "-v", "--help", "a b", "", "$HOME", "\xe4"]
    script = "for a; do printf '[%s]' \"$a\"; done"
    assert call(*UNDER, "sh", "-c", script, "sh", *odd) == "".join(f"[{a}]" for a in odd)


# --- errors are sentences -----------------------------------------------------


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--algorithm", "nicee"], ['no algorithm "nicee"', '"nice"?', "netnice algorithms"]),
        (["--set", "treshold=0.1"], ['no parameter "treshold"', 'did you mean "threshold"']),
        (["--set", "threshold=1.5"], ["threshold=1.5", "out of range", "from 0 to 1"]),
        (["--set", "threshold=-1"], ["threshold=-1", "out of range", "from 0 to 1"]),
        (["--set", "threshold=nan"], ["threshold", "out of range"]),
        (["--set", "threshold=much"], ["threshold=much", "NAME=NUMBER"]),
        (["--set", "threshold"], ["threshold", "="]),
        (["-a", "reno", "--set", "alpha=1"], ['reno has no parameter "alpha"']),
        (["--class", "fair", "--set", "mode=beta"], ['mode cannot be "beta"', "alpha, tau"]),
    ],
)  # fmt: skip
def test_a_wrong_choice_is_explained_and_the_command_does_not_start(
    options: list[str], says: list[str]
) -> None:
    done = subprocess.run(
        [*RUN, *options, "--", "echo", "started"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 125
    assert done.stdout == ""
    assert done.stderr.startswith("netnice: ")
    for part in says:
        assert part in done.stderr


@pytest.mark.parametrize("options", [
    ["--dscp", "ef"], ["--no-such-option"], [],
    ["--class", "rude", "true"], ["--class", "fair", "--algorithm", "nice", "true"],
])  # fmt: skip
def test_a_usage_error_ends_with_125_as_it_is_netnice_that_failed(options: list[str]) -> None:
    done = subprocess.run([*RUN, *options], capture_output=True, text=True, check=False)
    assert done.returncode == 125
    assert "--help" in done.stderr


@pytest.mark.parametrize(
    "call_",
    [["run", "true"], ["enable"], ["disable"], ["status"], ["attach", "1"]],
    ids=lambda c: c[0],
)
def test_without_root_the_missing_capabilities_are_named(call_: list[str]) -> None:
    done = subprocess.run(
        ["setpriv", f"--reuid={NOBODY}", "--clear-groups", MEMORY / "netnice", *call_],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == (125 if call_[0] == "run" else 1)
    assert "CAP_NET_ADMIN and CAP_SYS_ADMIN" in done.stderr
    assert "sudo netnice" in done.stderr


def test_only_the_capability_that_is_missing_is_named() -> None:
    done = subprocess.run(
        ["setpriv", "--bounding-set=-sys_admin", *UNDER, "true"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 125
    assert "CAP_SYS_ADMIN" in done.stderr
    assert "CAP_NET_ADMIN" not in done.stderr


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
    assert (seen.control, seen.tos) == ("nn_nice", LE)
    (known,) = flows()
    assert known["control"] == "nn_nice"
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
    assert only(link.sender.connections()).control == "nn_nice"
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
    assert (seen.control, seen.tos) == ("nn_nice", LE)
    got = bytearray()
    while data := client.recv(1 << 20):
        got += data
    assert got.endswith(content)
    server.popen.send_signal(signal.SIGINT)
    ended(server, 0)


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
    assert only(link.sender.connections()).control == "nn_nice"
    accepted.close()
    ended(sender)


def test_several_connections_of_one_command_are_all_in_the_background(link: Link) -> None:
    sink = link.sink()
    # endless flows, until the command is told to end
    sender = link.send(sink, "--flows", "5", under=UNDER)
    wait_until("five connections", lambda: len(link.sender.connections()) == 5)
    assert {c.control for c in link.sender.connections()} == {"nn_nice"}
    assert {f["control"] for f in flows()} == {"nn_nice"}
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


@pytest.mark.parametrize("algorithm", algorithms())
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
        ([], "nn_nice", LE),
        (["--class", "idle"], "nn_nice", LE),
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
    assert (seen.control, seen.tos) == ("nn_nice", LE)
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
    assert only(link.sender.connections()).control == "nn_nice"
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
    assert (seen.control, seen.tos) == ("nn_nice", 184)
    ended(client.process)


def test_programs_outside_the_run_keep_their_own_congestion_control(link: Link) -> None:
    listener = link.receiver.listen(RECEIVER, PORT)
    inside = Client(link.sender, *UNDER)
    outside = Client(link.sender)
    for client in (inside, outside):
        client.do("open AF_INET SOCK_STREAM")
        client.do(f"connect {RECEIVER} {PORT}")
        accept(listener, link.receiver)
    assert sorted(c.control for c in link.sender.connections()) == ["nn_nice", "reno"]
    outside.do("set IPPROTO_TCP TCP_CONGESTION cubic")
    assert sorted(c.control for c in link.sender.connections()) == ["cubic", "nn_nice"]
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
    assert registered() == {"nn_nice"}
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
    assert flow["control"] == "nn_nice"
    assert only(link.sender.connections()).control == "nn_nice"
    assert least_window_seen(flow["run"], 0.25) == 0.25
    sender.popen.terminate()
    ended(sender)


def test_a_run_inside_a_run_passes_the_exit_status_through() -> None:
    assert subprocess.run([*UNDER, *UNDER, "sh", "-c", "exit 7"], check=False).returncode == 7


# --- the summary --------------------------------------------------------------

SUMMARY = re.compile(
    r"netnice: (?P<bytes>\d+) bytes in (?P<seconds>[\d.]+) s \((?P<mbit>[\d.]+) Mbit/s\) over "
    r"(?P<connections>\d+) connections, each yielding for (?P<yielding>[\d.]+) s on average; "
    r"(?P<retransmits>\d+) packets retransmitted"
)


def test_the_summary_says_what_was_sent(link: Link) -> None:
    count, size = 4, 1_000_000
    # 20 Mbit/s: 1.6 s, so that the tenth of a second to which times are printed is little
    sink = link.limit(20, 50).sink()
    sender = link.send(
        sink, "--flows", str(count), "--bytes", str(size), under=[*RUN, "--verbose", "--"]
    )
    ended(sender)
    found = SUMMARY.search(sender.errors)
    assert found, sender.errors
    assert sink.report()["bytes"] == count * size
    # each flow has a header of 16 bytes; the kernel counts SYN and FIN as a byte each
    sent = count * (size + 16)
    assert sent <= int(found["bytes"]) <= sent + 2 * count
    assert int(found["connections"]) == count
    seconds = float(found["seconds"])
    # at no time faster than the bottleneck
    assert seconds >= sent * 8 / 20e6
    # the printed seconds are off by at most 0.05 s
    assert float(found["mbit"]) == pytest.approx(sent * 8e-6 / seconds, rel=0.1 / seconds)
    # four flows that keep one queue must yield now and then, and nobody longer than the run took
    assert 0 < float(found["yielding"]) <= seconds + 0.1


def test_without_connections_the_summary_says_so() -> None:
    done = subprocess.run([*RUN, "-v", "true"], capture_output=True, text=True, check=False)
    found = SUMMARY.search(done.stderr)
    assert found, done.stderr
    assert (found["bytes"], found["connections"], found["yielding"]) == ("0", "0", "0.0")


# --- when netnice is killed ---------------------------------------------------


def test_a_command_whose_netnice_was_killed_stays_in_the_background(link: Link) -> None:
    listener = link.receiver.listen(RECEIVER, PORT)
    capture = link.capture()
    client = Client(link.sender, *UNDER)
    client.do("open AF_INET SOCK_STREAM")
    client.process.popen.kill()
    client.process.popen.wait(PATIENCE_S)
    # the command lives on, its new connections too are in the background, and cannot get out
    client.do("set IPPROTO_TCP TCP_CONGESTION cubic")
    client.do(f"connect {RECEIVER} {PORT}")
    accept(listener, link.receiver)
    client.do("send 100")
    seen = only(link.sender.connections())
    assert (seen.control, seen.tos) == ("nn_nice", LE)
    syn = capture.first("a SYN", lambda p: p.syn and p.dport == PORT)
    assert syn.tos & ~3 == LE
    # a call of netnice in between takes nothing away from it
    sweep()
    assert registered() == {"nn_nice"}
    client.do("open AF_INET SOCK_STREAM")
    client.do(f"connect {RECEIVER} {PORT}")
    accept(listener, link.receiver)
    assert {c.control for c in link.sender.connections() if c.control} == {"nn_nice"}
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
    sweep()
    assert only(link.sender.connections()).control == "nn_nice"
    accepted.close()
    client.status()
    wait_until("the child ends", lambda: not call("ip", "netns", "pids", link.sender.name))
    sweep()


def test_the_constant_of_the_socket_option_is_the_kernels() -> None:
    assert socket.TCP_CONGESTION == TCP_CONGESTION


def test_netnice_killed_at_any_moment_leaves_nothing_that_the_next_call_does_not_remove() -> None:
    # the moments spread over the start of a run, whatever its length on this machine
    started = time.monotonic()
    assert call(*UNDER, "echo", "done") == "done\n"
    whole_s = time.monotonic() - started
    for moment in range(20):
        process = subprocess.Popen([*UNDER, "cat"], stdin=subprocess.PIPE)
        time.sleep(whole_s * moment / 20)  # when to strike, not something to wait for
        process.kill()
        process.communicate(timeout=PATIENCE_S)  # the command's input ends, and so does it
        wait_until("nothing is left", nothing_after_a_call)


def nothing_after_a_call() -> bool:
    sweep()
    return not left_behind()


def test_many_runs_that_begin_and_end_at_once_do_not_disturb_each_other() -> None:
    for names in (["nice"] * 12, ["nice", "vegas", "reno"] * 4):
        processes = [
            Process([*RUN, "-a", name, "--", "sh", "-c", f"exit {code}"])
            for code, name in enumerate(names)
        ]
        assert [p.status() for p in processes] == list(range(12)), [p.errors for p in processes]
        assert registered() == set()
