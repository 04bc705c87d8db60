# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""`netnice enable`, `disable`, `status` and `attach`: the controls of the whole system."""

from __future__ import annotations

import json
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from classes import ALGORITHM, DEFAULT
from client import accept, received
from leftovers import companions, kill_companion, left_behind, sweep
from sizes import FAST, SLOW, sized
from support import (
    CONTROLS,
    LE,
    MEMORY,
    NOBODY,
    PORT,
    PYTHON,
    RECEIVER,
    SENDER,
    Enabled,
    Link,
    Process,
    algorithms,
    call,
    cgroup_root,
    flows,
    registered,
    status,
    wait_until,
    wide,
)

ALLOWED = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control")
ALL = {f"nn_{name}" for name in algorithms()}
# with the defaults
UNBOUNDED = {f"nn_{name}" for name in algorithms() if not wide(name)}


@pytest.fixture
def disabled_at_the_end(nothing_left: None) -> Iterator[None]:
    """Disable all, also after a failure."""
    yield
    call("netnice", "disable")


# --- enable and disable -------------------------------------------------------


def test_the_list_of_algorithms_begins_with_the_three_that_scripts_rely_on() -> None:
    assert {"reno", "vegas", "nice"} <= set(algorithms())


@pytest.mark.usefixtures("cold", "disabled_at_the_end")
def test_enable_registers_every_algorithm_and_disable_takes_them_away() -> None:
    before = CONTROLS.read_text()
    call("netnice", "enable")
    assert registered() == ALL
    controls = status()["controls"]
    assert {c["name"] for c in controls if c["registered"] and c["enabled"]} == ALL
    call("netnice", "disable")
    assert CONTROLS.read_text() == before


@pytest.mark.usefixtures("cold", "disabled_at_the_end")
def test_only_what_was_named_is_enabled_and_disabled() -> None:
    call("netnice", "enable", "nice", "reno")
    assert registered() == {"nn_nice", "nn_reno"}
    call("netnice", "disable", "nice")
    assert registered() == {"nn_reno"}


@pytest.mark.usefixtures("disabled_at_the_end")
def test_enable_and_disable_twice_is_the_same_as_once() -> None:
    call("netnice", "enable", "nice", "reno")
    maps = call("bpftool", "-j", "map", "show")
    call("netnice", "enable", "nice", "reno")
    assert registered() == {"nn_nice", "nn_reno"}
    assert len(json.loads(call("bpftool", "-j", "map", "show"))) == len(json.loads(maps))
    call("netnice", "disable")
    call("netnice", "disable")
    assert registered() == set()


@pytest.mark.usefixtures("disabled_at_the_end")
def test_a_run_in_between_does_not_end_what_was_enabled_and_leaves_the_default_ready() -> None:
    call("netnice", "enable", "nice")
    call("netnice", "run", "--", "true")
    call("netnice", "run", "-a", "vegas", "--", "true")
    assert registered() == {"nn_nice", DEFAULT}


@pytest.mark.usefixtures("cold")
def test_an_unknown_algorithm_is_explained_and_nothing_is_enabled() -> None:
    for command in ("enable", "disable"):
        done = subprocess.run(
            ["netnice", command, "nice", "renoo"], capture_output=True, text=True, check=False
        )
        assert done.returncode == 1
        assert 'no algorithm "renoo"' in done.stderr
        assert 'did you mean "reno"' in done.stderr
    assert registered() == set()


CHOOSES = (
    "import socket, sys\n"
    "sock = socket.socket()\n"
    "sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, sys.argv[1].encode())\n"
)


def choose_as_nobody(control: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["setpriv", f"--reuid={NOBODY}", "--clear-groups", PYTHON, "-S", "-E", "-c", CHOOSES,
         control], capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.usefixtures("disabled_at_the_end")
def test_unprivileged_programs_may_choose_only_after_allow_all() -> None:
    before = ALLOWED.read_text()
    call("netnice", "enable")
    for name in ALL:
        assert "PermissionError" in choose_as_nobody(name).stderr
    call("netnice", "enable", "--allow-all")
    for name in ALL:
        done = choose_as_nobody(name)
        assert done.returncode == 0, done.stderr
    # what was allowed before still is
    assert set(before.split()) <= set(ALLOWED.read_text().split())
    call("netnice", "disable")
    assert ALLOWED.read_text() == before


@pytest.mark.usefixtures("disabled_at_the_end")
def test_allow_all_of_one_algorithm_allows_that_one() -> None:
    call("netnice", "enable", "nice", "reno")
    call("netnice", "enable", "--allow-all", "nice")
    assert choose_as_nobody("nn_nice").returncode == 0
    assert choose_as_nobody("nn_reno").returncode != 0


@pytest.mark.usefixtures("cold", "disabled_at_the_end")
@pytest.mark.parametrize("anew", [False, True], ids=["goes", "stays for another run"])
def test_what_is_disabled_while_a_run_needs_it_goes_when_that_ends(anew: bool) -> None:
    before = ALLOWED.read_text()
    call("netnice", "enable", "--allow-all", ALGORITHM)
    run = Process(["netnice", "run", "--no-hold", "--", "sh", "-c", "echo; exec cat"])
    run.line()
    done = subprocess.run(["netnice", "disable"], capture_output=True, text=True, check=False)
    assert f"{DEFAULT} stays until 1 running `netnice run` ends" in done.stderr
    assert registered() == {DEFAULT}
    if anew:
        call("netnice", "run", "--no-hold", "--", "true")
    run.succeed()
    wait_until("the run has ended", lambda: not status()["runs"] and not companions())
    assert registered() == ({DEFAULT} if anew else set())
    assert anew or ALLOWED.read_text() == before


# --- choosing -----------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(ALL))
def test_a_program_chooses_a_control_and_changes_it_on_the_way_and_every_byte_arrives(
    enabled: Enabled, name: str
) -> None:
    # to load a control takes longer than all else here
    link = enabled(name)
    listener = link.receiver.listen(RECEIVER, PORT)
    for chooses in (True, False):
        sock = link.sender.open_socket(socket.AF_INET, socket.SOCK_STREAM)
        if chooses:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name.encode())
        sock.connect((RECEIVER, PORT))
        accepted = accept(listener, link.receiver)
    assert sorted(c.control for c in link.sender.connections()) == sorted([name, "reno"])
    (flow,) = flows()
    assert (flow["control"], flow["run"]) == (name, 0)
    # the other, which chose none
    for control in ("cubic", name, "reno", name):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control.encode())
        expected = control.encode() * 1000
        sock.sendall(expected)
        assert received(accepted, len(expected)) == expected


def test_a_route_chooses_a_control(enabled: Enabled) -> None:
    link = enabled("nice")
    link.sender.call(
        "ip", "route", "replace", "10.0.2.0/24", "via", "10.0.1.254", "congctl", "nn_nice"
    )
    sink = link.sink()
    sender = link.send(sink, "--bytes", "1000000")
    sender.succeed()
    assert sink.report()["flows"][0]["complete"]
    second = link.send(link.sink())
    wait_until("a connection", link.sender.connections)
    assert [c.control for c in link.sender.connections()] == ["nn_nice"]
    second.popen.terminate()
    second.succeed()


def test_disable_under_load_lets_the_transfers_finish_intact(enabled: Enabled) -> None:
    # 20 Mbit/s, and of each control an endless transfer, so that however fast one control is, all
    # are under way when they are disabled, and one with an end, which may be done by then
    link = enabled(*UNBOUNDED).limit(20, 50)
    names = sorted(UNBOUNDED)
    sinks = [link.sink() for _ in names]
    sent: set[tuple[str, str]] = set()

    def have_sent(count: int) -> bool:
        # by both ends: the kernel may give one port to connections with other destinations
        sent.update((f["local"], f["remote"]) for f in flows() if f["bytes_acked"] > 2000)
        return len(sent) == count

    def start(*options: str) -> list[Process]:
        return [
            link.send(sink, "--control", name, *options)
            for sink, name in zip(sinks, names, strict=True)
        ]

    endless = start()
    wait_until("every endless transfer sends", lambda: have_sent(len(names)))
    finite = start("--bytes", sized("500000", "2000000"))
    wait_until("every finite transfer sends", lambda: have_sent(2 * len(names)))
    call("netnice", "disable")
    assert registered() == set()
    # they keep the control that they have
    assert {c.control for c in link.sender.connections()} == UNBOUNDED
    for sender in endless:
        sender.popen.terminate()
    for sender in (*endless, *finite):
        sender.succeed()
    # the sink compared every byte of both; the endless one was cut off
    for sink in sinks:
        assert sorted(f["complete"] for f in sink.report()["flows"]) == [False, True]


def test_what_connections_keep_alive_can_be_enabled_again(enabled: Enabled) -> None:
    link = enabled("nice")
    sender = link.send(link.sink(), "--control", "nn_nice")
    wait_until("a flow", flows)
    call("netnice", "disable")
    call("netnice", "enable", "nice")
    second = link.send(link.sink(), "--control", "nn_nice")
    wait_until("both flows", lambda: len(flows()) == 2)
    for process in (sender, second):
        process.popen.terminate()
        process.succeed()


# --- attach -------------------------------------------------------------------


def test_attach_moves_the_connections_of_a_running_process(link: Link) -> None:
    sink = link.limit(SLOW, 50).sink()
    sender = link.send(sink, "--flows", "3", "--bytes", "1000000", "--control", "cubic")
    wait_until("three connections", lambda: len(link.sender.connections()) == 3)
    said = subprocess.run(
        ["netnice", "attach", "--set", "threshold=0.1", str(sender.pid)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert said.returncode == 0, said.stderr
    assert "moved 3 connections" in said.stderr
    assert {(c.control, c.tos) for c in link.sender.connections()} == {(DEFAULT, LE)}
    link.limit(FAST, 50)
    sender.succeed()
    assert [f["complete"] for f in sink.report()["flows"]] == [True] * 3
    sweep()


def test_what_an_attached_listener_accepts_is_in_the_background(link: Link) -> None:
    server = link.sender.start(
        PYTHON, "-u", "-m", "http.server", "--bind", SENDER, "--directory", "/dev", "8080"
    )
    assert "Serving HTTP" in server.line()
    said = subprocess.run(
        ["netnice", "attach", str(server.pid)], capture_output=True, text=True, check=False
    )
    assert said.returncode == 0, said.stderr
    client = link.receiver.open_socket(socket.AF_INET, socket.SOCK_STREAM)
    client.connect((SENDER, 8080))
    (seen,) = wait_until("a connection", link.sender.connections)
    assert (seen.control, seen.tos) == (DEFAULT, LE)
    client.close()
    server.popen.terminate()
    server.status()
    sweep()


SERVES = """
import socket
listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_MPTCP)
listener.bind(("", 8080))
listener.listen()
print("ready", flush=True)
while True:
    held = listener.accept()
"""


@pytest.mark.parametrize("protocol", [socket.IPPROTO_TCP, socket.IPPROTO_MPTCP])
def test_what_an_attached_listener_of_mptcp_accepts_is_in_the_background(
    link: Link, protocol: int
) -> None:
    server = link.sender.start(PYTHON, "-S", "-E", "-c", SERVES)
    assert server.line() == "ready"
    said = subprocess.run(
        ["netnice", "attach", "--set", "threshold=0.3", str(server.pid)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert said.returncode == 0, said.stderr
    assert "moved 1 connections" in said.stderr
    assert "1 connections are of MPTCP, which hands on no --set" in said.stderr
    client = link.receiver.open_socket(socket.AF_INET, socket.SOCK_STREAM, protocol)
    client.connect((SENDER, 8080))
    (seen,) = wait_until("a connection", link.sender.connections)
    assert (seen.control, seen.tos) == (DEFAULT, LE)
    client.close()
    server.popen.kill()
    server.status()
    sweep()


@pytest.mark.parametrize(
    ("pid", "says"),
    [("999999999", "no process 999999999"), ("0", "0 is no process"), ("1", "netnice run --")],
)
def test_attach_explains_why_there_is_nothing_to_move(pid: str, says: str) -> None:
    done = subprocess.run(
        ["netnice", "attach", "--", pid], capture_output=True, text=True, check=False
    )
    sweep()
    assert done.returncode == 1
    assert says in done.stderr


def test_attach_leaves_the_connections_of_a_run_as_they_are(link: Link) -> None:
    sender = link.send(link.sink(), under=["netnice", "run", "--set", "threshold=0.3", "--"])
    (before,) = wait_until("a flow", flows)
    said = subprocess.run(
        ["netnice", "attach", "--algorithm", "reno", str(sender.pid)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert said.returncode == 1
    assert "1 connections are of a run already" in said.stderr
    (after,) = flows()
    for what in ("control", "run", "parameters"):
        assert after[what] == before[what]
    sender.popen.terminate()
    sender.succeed()


def counted(*algorithms: str) -> int:
    """Return how many connections controls count: each has the number for its algorithm."""
    dumps = [json.loads(call("bpftool", "-j", "map", "dump", "name", f"nn_{a}.bss"))
             for a in algorithms]  # fmt: skip
    return sum(dump[0]["formatted"]["value"][".bss"][0]["flows"] for dump in dumps)


@pytest.mark.parametrize(
    ("again", "control", "threshold"),
    [
        pytest.param([], DEFAULT, 0.2, id="the same"),
        pytest.param(["--set", "threshold=0.3"], DEFAULT, 0.3, id="a parameter"),
        pytest.param(["--algorithm", "vegas"], "nn_vegas", None, id="an algorithm"),
    ],
)
def test_a_connection_that_is_attached_twice_is_counted_once(
    enabled: Enabled, again: list[str], control: str, threshold: float | None
) -> None:
    link = enabled(ALGORITHM, "vegas")
    sender = link.send(link.sink())
    wait_until("a connection", link.sender.connections)
    call("netnice", "attach", str(sender.pid))
    call("netnice", "attach", *again, str(sender.pid))
    (before,) = flows()
    wait_until("it goes on", lambda: flows()[0]["bytes_acked"] > before["bytes_acked"])
    (flow,) = flows()
    assert flow["control"] == control
    assert flow["parameters"].get("threshold") == pytest.approx(threshold, abs=1e-4)
    assert counted(ALGORITHM, "vegas") == 1
    sender.popen.terminate()
    sender.succeed()
    wait_until("none is counted", lambda: counted(ALGORITHM, "vegas") == 0)
    call("netnice", "disable")
    assert registered() == set()


# --- status -------------------------------------------------------------------


def settled() -> bool:
    """Whether the programs that the companion held itself are gone, and nothing more goes."""
    seen = left_behind()
    time.sleep(0.5)  # longer than a grace period of RCU
    return seen == left_behind() and not any("nn_left" in p for p in seen["BPF programs"])


@pytest.mark.parametrize("shows", [["status"], ["status", "--json"], ["status", "--group", "g"]])
def test_who_only_looks_changes_nothing(shows: list[str]) -> None:
    process = Process(["netnice", "run", "--group", "g", "--", "sh", "-c", "echo; read end"])
    process.line()
    (run,) = cgroup_root().rglob("netnice-run-*")
    kill_companion()  # the command ends with its input
    process.status()
    events = run / "cgroup.events"
    wait_until("an empty cgroup", lambda: "populated 0" in events.read_text())
    wait_until("what the kernel frees after the companion is freed", settled)
    before = left_behind()
    assert {"cgroups", "congestion controls"} <= set(before)
    call("netnice", *shows)
    assert left_behind() == before
    sweep()


IN_A_FRESH_RUN = """
mount --bind "$2" "$1"
mount -t tmpfs tmpfs /run
mkdir "$2"
mount --bind "$1" "$2"
umask 077
netnice run --no-hold -- true 2>/dev/null
netnice daemon --socket /run/a/b/sock 2>/dev/null &
until test -S /run/a/b/sock; do test -e /proc/$!; done
kill $!
stat -c "%a %n" /run/netnice /run/netnice/lock /run/a /run/a/b
"""


def test_whatever_the_umask_users_reach_the_folders_and_nobody_but_root_the_lock(
    tmp_path: Path,
) -> None:
    words = ("sh", "-ec", IN_A_FRESH_RUN, "sh", str(tmp_path), str(MEMORY))
    shown = call("unshare", "-m", *words).splitlines()
    assert shown[-4:] == [
        "755 /run/netnice", "600 /run/netnice/lock", "755 /run/a", "755 /run/a/b",
    ]  # fmt: skip


def test_status_without_connections_says_how_to_start_one() -> None:
    shown = call("netnice", "status")
    assert "sudo netnice run" in shown
    for name in ALL:
        assert name in shown
