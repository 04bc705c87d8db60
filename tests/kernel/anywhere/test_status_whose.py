# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""`netnice status` names the processes, the command and the run that a connection is of."""

from __future__ import annotations

import re
import socket
import subprocess
from pathlib import Path

import pytest
from classes import DEFAULT
from client import UNDER, Client, accept
from leftovers import sweep
from support import PORT, PYTHON, RECEIVER, ROOT, Json, Link, Sink, call, flows, status, wait_until

WALK = ROOT / "target" / "release" / "examples" / "walk"


def test_a_connection_of_a_run_has_the_processes_that_hold_it_and_its_run(link: Link) -> None:
    sender = link.send(link.sink(), under=UNDER)
    (flow,) = wait_until("a flow", flows)
    (process,) = flow["processes"]
    assert (process["pid"], process["name"]) == (sender.pid, "netnice-load")
    assert process["command"].startswith("netnice-load send ")
    assert not flow["orphaned"]
    (run,) = status()["runs"]
    assert run["run"] == flow["run"]
    # the companion leaves the run a moment after the program began
    wait_until("it has the run", lambda: status()["runs"][0]["processes"] == [process])
    shown = call("netnice", "status")
    assert re.search(rf"^run {flow['run']}: netnice-load\[{sender.pid}\]: netnice-load send .*; "
                     r"1 open connection$", shown, re.MULTILINE)  # fmt: skip
    assert re.search(rf"^{DEFAULT} .* {flow['run']}  netnice-load\[{sender.pid}\]$", shown,
                     re.MULTILINE)  # fmt: skip
    sender.popen.terminate()
    sender.succeed()


def test_kernels_that_refuse_to_walk_over_storage_list_the_same_connections(link: Link) -> None:
    receiver = Sink(link.receiver, RECEIVER, under=UNDER)
    sender = link.send(receiver, "--flows", "3", under=UNDER)

    def connections() -> list[Json]:
        return [f for f in flows() if not f["remote"].endswith(":0")]

    wait_until("both ends", lambda: len(connections()) == 6)
    wanted = {
        (str(f["run"]), f["local"].split(":")[-1], f["remote"].split(":")[-1])
        for f in connections()
    }
    # a name that is left of a namespace, as one in a container is
    gone = Path("/run/netns/netnice-test-gone")
    gone.touch()
    try:
        found = {tuple(line.split()[:3]) for line in call(str(WALK)).splitlines()}
    finally:
        gone.unlink()
    assert len(wanted) == 6
    assert found >= wanted
    sender.popen.terminate()
    sender.succeed()
    receiver.report()


def test_a_run_without_a_connection_is_shown_with_its_command_before_its_children(
    link: Link,
) -> None:
    process = link.sender.start(*UNDER, "sh", "-c", "sleep 1000 & echo $!; read end; kill $!")
    child = int(process.line())
    both = [(process.pid, "sh"), (child, "sleep")]
    # the companion begins in the run's cgroup, and may not have left it yet; the child was a shell
    (run,) = wait_until("the command and its child", lambda: [
        run for run in status()["runs"]
        if [(p["pid"], p["name"]) for p in run["processes"]] == both
    ])  # fmt: skip
    shown = call("netnice", "status")
    assert f"run {run['run']}: sh[{process.pid}]: sh -c sleep 1000 & echo $!; read end" in shown
    assert ", and 1 other process; 0 open connections\n" in shown
    assert "No background connections now." in shown
    process.status()


@pytest.mark.parametrize("beside", [False, True])
def test_a_connection_of_no_run_has_its_process_too(link: Link, beside: bool) -> None:
    run = link.send(link.sink(), under=UNDER) if beside else None
    sender = link.send(link.sink())
    # the run's too: who ends netnice while it starts ends no command
    wait_until("connections", lambda: len(link.sender.connections()) == 1 + beside)
    subprocess.run(["netnice", "attach", str(sender.pid)], check=True, capture_output=True)
    (flow,) = (f for f in flows() if f["run"] == 0)
    assert [p["pid"] for p in flow["processes"]] == [sender.pid]
    for process in filter(None, (run, sender)):
        process.popen.terminate()
        process.succeed()
    sweep()


def test_a_connection_whose_program_has_ended_is_nobodys(link: Link) -> None:
    listener = link.receiver.listen(RECEIVER, PORT)
    client = Client(link.sender, *UNDER)
    client.do("open AF_INET SOCK_STREAM")
    client.do(f"connect {RECEIVER} {PORT}")
    accepted = accept(listener, link.receiver)
    # what the receiver does not read yet, the sender's kernel keeps
    client.do(f"set SOL_SOCKET SO_SNDBUF {8_000_000}")
    client.do(f"send {8_000_000}")
    (flow,) = flows()
    assert ([p["pid"] for p in flow["processes"]], flow["orphaned"]) == (
        [client.process.pid],
        False,
    )
    assert client.process.status() == 0
    (flow,) = flows()
    assert (flow["processes"], flow["orphaned"]) == ([], True)
    assert "  none (ended or closed it)\n" in call("netnice", "status")
    while accepted.recv(1 << 20):
        pass
    accepted.close()
    sweep()


def test_a_connection_that_its_listener_has_not_accepted_yet_is_nobodys(link: Link) -> None:
    server = link.receiver.start(
        *UNDER, PYTHON, "-S", "-E", "-c",
        f"import socket\nlistener = socket.create_server(({RECEIVER!r}, {PORT}))\n"
        "print('ready', flush=True)\ninput()\nheld = listener.accept()\n"
        "print('accepted', flush=True)\ninput()",
    )  # fmt: skip
    assert server.line() == "ready"
    client = link.sender.open_socket(socket.AF_INET, socket.SOCK_STREAM)
    client.connect((RECEIVER, PORT))
    (flow,) = wait_until("its flow", flows)
    assert (flow["processes"], flow["orphaned"]) == ([], False)
    assert "  none (not accepted yet)\n" in call("netnice", "status")
    server.tell("")
    assert server.line() == "accepted"
    (flow,) = flows()
    assert [p["pid"] for p in flow["processes"]] == [server.pid]
    server.tell("")
    server.succeed()
