# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""`netnice daemon`: users without root lower what is their own, and raise nothing."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from classes import DEFAULT
from client import UNDER, Client, accept, ended, only
from daemon import HERE, OTHER, SOCKET, Daemon, ask, netnice, run, user
from support import (
    LE,
    NOBODY,
    PORT,
    PYTHON,
    RECEIVER,
    Link,
    Process,
    call,
    cgroup_root,
    status,
    wait_until,
)

FAIR = "nn_fairbat1"
"""What `--class fair` has, which yields less than the default."""


def connected(link: Link, *prefix: str) -> Client:
    """Start a client with a connection to the receiver."""
    with link.receiver.listen(RECEIVER, PORT) as listener:
        client = Client(link.sender, *prefix)
        client.do("open AF_INET SOCK_STREAM")
        client.do(f"connect {RECEIVER} {PORT}")
        accept(listener, link.receiver)
    return client


def controls(link: Link) -> list[str]:
    return sorted(c.control for c in link.sender.connections())


# --- a run ----------------------------------------------------------------------


def test_a_users_run_is_in_the_background_and_its_report_comes_from_the_daemon(
    link: Link, daemon: Daemon
) -> None:
    client = connected(link, *run(NOBODY, "--json"))
    seen = only(link.sender.connections())
    assert (seen.control, seen.tos) == (DEFAULT, LE)
    process = Path(f"/proc/{client.process.pid}")
    # below the cgroup that the command was in, and without any right more than before
    cgroup = (process / "cgroup").read_text().splitlines()[-1]
    assert cgroup.endswith(f"/netnice-run-{client.process.pid}")
    assert "CapPrm:\t0000000000000000\n" in (process / "status").read_text()
    client.do("send 1000")
    client.do("close")
    ended(client.process)
    said = json.loads(client.process.errors)
    assert (said["connections"], said["not_governed"]) == (1, [])
    assert 0 <= said["bytes_sent"] + said["bytes_unsent"] - 1000 <= 2  # SYN and FIN count as bytes
    wait_until("the run has ended", lambda: status()["runs"] == [])


@pytest.mark.parametrize("option", [("--except", "192.0.2.0/24"), ("--to", "0.0.0.0/0")])
def test_the_daemon_counts_what_a_run_of_some_connections_alone_has(
    link: Link, daemon: Daemon, option: tuple[str, str]
) -> None:
    client = connected(link, *run(NOBODY, "--json", *option))
    client.do("send 1000")
    client.do("close")
    ended(client.process)
    said = json.loads(client.process.errors)
    assert (said["connections"], said["not_governed"]) == (1, [])


def test_the_command_has_its_status_its_number_and_one_line_at_the_end(daemon: Daemon) -> None:
    process = daemon.where.start(*run(NOBODY), "sh", "-c", "echo $$; exit 7")
    assert process.line() == str(process.pid)
    assert process.status() == 7
    wait_until("it is said", lambda: "no TCP connection was made here" in process.errors)
    assert netnice(NOBODY, "run", *HERE, "/no/such").returncode == 127


def test_killed_and_started_again_nothing_is_interrupted_and_nothing_forgotten(
    link: Link, daemon: Daemon
) -> None:
    client = connected(link, *run(NOBODY, "--json"))
    daemon.kill()
    assert controls(link) == [DEFAULT]
    # what is opened while there is none, too
    with link.receiver.listen(RECEIVER, PORT + 1) as listener:
        client.do("open AF_INET SOCK_STREAM")
        client.do(f"connect {RECEIVER} {PORT + 1}")
        accept(listener, link.receiver)
    assert only(link.sender.connections()).control == DEFAULT  # the first one was closed by `open`
    daemon.follow()
    assert netnice(OTHER, "run", *HERE, "true").returncode == 0
    # the kernel frees the programs of the other's late
    wait_until("his alone", lambda: len(status()["runs"]) == 1)
    (found,) = status()["runs"]
    assert ask(do="report", run=found["run"])["goes_on"]
    client.do("send 1000")
    daemon.kill()
    client.process.tell("close")
    client.process.popen.stdin.close()  # type: ignore[union-attr]
    client.process.popen.wait()
    daemon.follow()  # the companion asks until it is there
    wait_until("it is told", lambda: client.process.errors.endswith("\n"))
    said = json.loads(client.process.errors)
    assert (said["connections"], said["not_governed"]) == (2, [])


def test_a_daemon_that_is_killed_before_it_answers_is_followed_by_one_that_does(
    daemon: Daemon,
) -> None:
    daemon.process.stop()
    asks = daemon.where.start(*run(NOBODY), "echo", "ran")
    wait_until("it asks", lambda: waiting(daemon))
    daemon.kill()
    daemon.follow()
    assert asks.line() == "ran"


def waiting(daemon: Daemon) -> int:
    """Return how many connections the daemon has not accepted yet."""
    (line,) = (line for line in daemon.where.call("ss", "-xlH").splitlines() if str(SOCKET) in line)
    return int(line.split()[2])


@pytest.fixture(params=["none", "killed"])
def no_daemon(request: pytest.FixtureRequest) -> Iterator[None]:
    """Have no daemon, or the socket of one that was killed."""
    SOCKET.unlink(missing_ok=True)
    if request.param == "killed":
        with socket.socket(socket.AF_UNIX) as left:
            left.bind(str(SOCKET))
    yield
    SOCKET.unlink(missing_ok=True)


@pytest.mark.usefixtures("no_daemon")
def test_without_a_daemon_the_command_is_not_started_unless_or_plain_says_so() -> None:
    done = netnice(NOBODY, "run", *HERE, "echo", "started")
    assert (done.returncode, done.stdout) == (125, "")
    assert done.stderr.count("\n") == 1
    assert "start it: sudo systemctl enable --now netnice.socket" in done.stderr
    done = netnice(NOBODY, "run", "--or-plain", *HERE, "sh", "-c", "echo started; exit 3")
    assert (done.returncode, done.stdout) == (3, "started\n")
    assert "not in the background (--or-plain)" in done.stderr
    for word in ("attach", "detach"):
        done = netnice(NOBODY, word, *HERE, str(os.getpid()))
        assert done.returncode == 1
        assert "netnice.socket" in done.stderr


# --- never raised -----------------------------------------------------------------


def test_in_a_run_of_root_a_users_run_stays_in_that(link: Link, daemon: Daemon) -> None:
    client = connected(link, *UNDER, *run(NOBODY, "--class", "fair"))
    assert controls(link) == [DEFAULT]
    assert len(status()["runs"]) == 1
    client.do("close")
    ended(client.process)
    assert "in the background already, in run" in client.process.errors
    client = connected(link, *UNDER, *run(NOBODY, "--json"))
    (of_root,) = status()["runs"]
    client.do("close")
    ended(client.process)
    assert json.loads(client.process.errors) == {"kept": of_root["run"]}


def test_in_a_run_of_his_own_a_user_may_choose_anew(link: Link, daemon: Daemon) -> None:
    connected(link, *run(NOBODY), "netnice", "run", *HERE, "--class", "fair", "--")
    assert controls(link) == [FAIR]


def test_a_user_attaches_and_detaches_what_is_his(link: Link, daemon: Daemon) -> None:
    client = connected(link, *user(NOBODY))
    pid = str(client.process.pid)
    done = netnice(NOBODY, "attach", *HERE, pid)
    assert "moved 1 connections" in done.stderr
    assert controls(link) == [DEFAULT]
    assert "moved 1" in netnice(NOBODY, "attach", *HERE, "--class", "fair", pid).stderr
    assert controls(link) == [FAIR]
    assert "took 1 connections out" in netnice(NOBODY, "detach", *HERE, pid).stderr
    assert controls(link) == ["reno"]


def test_what_is_named_again_or_shared_by_processes_is_moved_once(
    link: Link, daemon: Daemon
) -> None:
    shares = """
import os, socket
held = socket.socket()
os.fork()
print(os.getpid(), flush=True)
input()
"""
    holds = Process([*user(NOBODY), PYTHON, "-S", "-E", "-c", shares])
    both = [int(holds.line()), int(holds.line())]
    for asked, counted in (("attach", "moved"), ("detach", "done")):
        request = json.dumps({"v": 1, "do": asked, "pids": both * 100})
        answer = json.loads(call(*user(NOBODY), PYTHON, "-c", ASKS, str(SOCKET), request))
        assert answer[counted] == 1, answer
    holds.end()


def test_what_root_attached_a_user_neither_changes_nor_takes_out(
    link: Link, daemon: Daemon
) -> None:
    client = connected(link, *user(NOBODY))
    pid = str(client.process.pid)
    call("netnice", "attach", pid)
    for words in (["attach", "--class", "fair"], ["attach"], ["detach"]):
        done = netnice(NOBODY, *words, *HERE, pid)
        assert done.returncode == 1
        assert "root or another user" in done.stderr
        assert controls(link) == [DEFAULT]
    call("netnice", "detach", pid)


def test_a_process_that_is_not_the_callers_is_refused(link: Link, daemon: Daemon) -> None:
    roots = connected(link)
    others = Client(link.sender, *user(OTHER))
    dead = subprocess.Popen(["true"])
    dead.wait()
    for pid, why in (
        (roots.process.pid, "is not yours alone"), (others.process.pid, "is not yours alone"),
        (dead.pid, "there is no process"), (0, "there is no process"), (-1, "there is no process"),
    ):  # fmt: skip
        for word in ("attach", "detach"):
            done = netnice(NOBODY, word, *HERE, "--", str(pid))
            assert done.returncode == 1
            assert why in done.stderr, done.stderr
    assert controls(link) == ["reno"]


def test_who_has_the_number_of_a_caller_that_ended_stays_where_it_is(daemon: Daemon) -> None:
    own, other = cgroup_root() / "netnice-test-own", None
    own.mkdir()
    try:
        with Path("/run/netnice/lock").open("rb+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            request = json.dumps({"v": 1, "do": "run"})
            caller = Process([*user(NOBODY), PYTHON, "-S", "-E", "-c", ASKS, str(SOCKET), request])
            it = f":{os.fstat(lock.fileno()).st_ino} "
            blocked = f"-> FLOCK  ADVISORY  WRITE {daemon.process.pid} "
            wait_until("the daemon waits for it", lambda: waits_for(blocked, it))
            caller.end()
            other = with_number(caller.pid)
            (own / "cgroup.procs").write_text(str(other.pid))
        wait_until("all have had it", lambda: not waits_for("-> FLOCK", it))
        with Path("/run/netnice/lock").open("rb+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # whoever had it is done
        cgroup = Path(f"/proc/{other.pid}/cgroup").read_text()
        assert cgroup.rstrip().endswith(own.name)
        assert status()["runs"] == []
    finally:
        if other:
            other.kill()
            other.wait()
        own.rmdir()


def waits_for(who: str, what: str) -> bool:
    """Whether somebody waits for a lock."""
    return any(who in line and what in line for line in Path("/proc/locks").open())


def with_number(pid: int) -> subprocess.Popen[bytes]:
    """Start a process that has this number."""
    for _ in range(100):
        Path("/proc/sys/kernel/ns_last_pid").write_text(str(pid - 1))
        process = subprocess.Popen(["sleep", "60"])
        if process.pid == pid:
            return process
        process.kill()
        process.wait()
    raise AssertionError(f"others have taken the number {pid}")


def test_what_a_run_did_is_said_to_its_user_only(link: Link, daemon: Daemon) -> None:
    connected(link, *run(NOBODY))
    (found,) = status()["runs"]
    asked = {"v": 1, "do": "report", "run": found["run"]}
    for uid, told in ((NOBODY, True), (OTHER, False)):
        answer = json.loads(call(*user(uid), PYTHON, "-c", ASKS, str(SOCKET), json.dumps(asked)))
        assert (answer["is"] == "report") == told, answer
    assert ask(do="report", run=found["run"])["report"]["connections"] == 1


def test_a_users_group_is_another_one_than_roots_of_that_name(link: Link, daemon: Daemon) -> None:
    connected(link, "netnice", "run", "--group", "g", "--share", "4", "--")
    connected(link, *run(NOBODY, "--group", "g", "--share", "16"))
    of_group = json.loads(call("netnice", "status", "--json", "--group", "g", "--seconds", "0.1"))
    assert [run["share"] for run in of_group["runs"]] == [4]


ASKS = """
import socket, sys
connection = socket.socket(socket.AF_UNIX)
connection.connect(sys.argv[1])
connection.sendall(sys.argv[2].encode() + b"\\n")
print(connection.makefile().readline(), end="")
"""


# --- a hostile client ---------------------------------------------------------------

HOSTILE = """
import socket, sys
path, times, pid = sys.argv[1], int(sys.argv[2]), sys.argv[3]
RUN = '{"v":1,"do":"run","choice":{"algorithm":"no-such"}}'
SAID = [line.encode() for line in (
    "\\n", "garbage\\n", "[" * 16000 + "\\n", "x" * 20000, '{"v":1,"do":"re', "",
    '{"v":2,"do":"hello"}\\n', '{"v":1,"do":"hello"}\\n', RUN + "\\n",
    '{"v":1,"do":"attach","pids":[1]}\\n', '{"v":1,"do":"attach","pids":[%s]}\\n' % pid,
    '{"v":1,"do":"detach","pids":[-1,0,2147483647]}\\n', '{"v":1,"do":"report","run":1}\\n',
    '{"v":1,"do":"detach","pids":[%s]}\\n' % ",".join(["1"] * 5000),
    '{"v":1,"do":"run","group":{"name":"../../x"}}\\n',
    '{"v":1,"do":"look"}\\n{"v":1,"do":"look"',
)]
answers = 0
for i in range(times):
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(20)
        connection.connect(path)
        try:
            connection.sendall(SAID[i % len(SAID)])
            connection.shutdown(socket.SHUT_WR)
            answers += bool(connection.recv(100000))
        except (BrokenPipeError, ConnectionResetError):
            pass
print(answers)
"""


def test_10000_hostile_requests_neither_stop_it_nor_grow_its_memory(
    link: Link, daemon: Daemon
) -> None:
    victim = connected(link)

    def attacks(times: int) -> int:
        words = (PYTHON, "-S", "-E", "-c", HOSTILE, str(SOCKET), str(times))
        return int(call(*user(NOBODY), *words, str(victim.process.pid)))

    def attack() -> None:
        # of 16 kinds two say no whole line and get no answer; one more is cut off while it writes
        for _ in range(2):
            assert attacks(1700) >= 1700 * 13 / 16 - 1

    # 100 bytes for each request
    assert daemon.growth_kb(attack) <= 340
    assert controls(link) == ["reno"]
    assert netnice(NOBODY, "run", *HERE, "true").returncode == 0


def test_who_takes_all_connections_that_he_may_have_keeps_nobody_else_waiting(
    daemon: Daemon,
) -> None:
    holds = f"""
import socket, sys
held = [socket.socket(socket.AF_UNIX) for _ in range(50)]
for connection in held:
    connection.connect({str(SOCKET)!r})
# 8 are waited for, for 5 s; the others are told at once
refused = sum("too many requests" in c.makefile().readline() for c in held[8:])
print(refused, flush=True)
sys.stdin.readline()
print(held[0].makefile().readline(), flush=True)
"""
    hostile = Process([*user(NOBODY), PYTHON, "-S", "-E", "-c", holds])
    assert hostile.line() == "42"
    assert netnice(OTHER, "run", *HERE, "true").returncode == 0
    hostile.tell("")
    assert "must be said within 5 s" in hostile.line()
    hostile.end()


# --- started by systemd -----------------------------------------------------------------


def test_a_socket_that_is_handed_down_is_served_and_the_service_manager_told(
    tmp_path: Path,
) -> None:
    notified = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    notified.bind(str(tmp_path / "notify"))
    notified.settimeout(30)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(tmp_path / "socket"))
    listener.listen()
    # as sd_listen_fds(3) says: from number 3 on, and for the process with this number only
    os.dup2(listener.fileno(), 3)
    hands = "LISTEN_FDS=1 LISTEN_PID=$$ exec netnice daemon"
    with subprocess.Popen(
        ["sh", "-c", hands], pass_fds=[3],
        env=os.environ | {"NOTIFY_SOCKET": str(tmp_path / "notify")},
    ) as process:  # fmt: skip
        try:
            assert notified.recv(100).strip() == b"READY=1"
            with socket.socket(socket.AF_UNIX) as connection:
                connection.connect(str(tmp_path / "socket"))
                connection.sendall(b'{"v":1,"do":"hello"}\n')
                assert json.loads(connection.makefile().readline())["is"] == "hello"
        finally:
            process.terminate()
        assert process.wait() == 0
    assert (tmp_path / "socket").exists()  # it is systemd's


def test_a_second_daemon_leaves_the_first_one_its_socket(daemon: Daemon) -> None:
    done = subprocess.run(["netnice", "daemon", *HERE], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert f"another netnice daemon listens at {SOCKET}" in done.stderr
    assert ask(do="hello")["is"] == "hello"


def test_a_daemon_that_cannot_have_its_port_says_so_alone_and_leaves_no_socket() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = f"127.0.0.1:{taken.getsockname()[1]}"
        words = ["netnice", "daemon", *HERE, "--metrics", port]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith(f"netnice: cannot listen at {port}")
    assert not SOCKET.exists()


def test_a_daemon_that_is_ended_takes_its_socket_along(link: Link) -> None:
    process = link.sender.start("netnice", "daemon", *HERE)
    wait_until("it listens", lambda: f"served at {SOCKET}" in process.errors)
    process.popen.terminate()
    assert process.popen.wait() == 0
    assert not SOCKET.exists()
