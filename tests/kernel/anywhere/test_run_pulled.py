# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""A command that writes to sshd's pipe has sshd's connection in the background, until it ends."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from pathlib import Path

import pytest
from classes import DEFAULT
from client import UNDER, accept, only
from replicas import fill, tree
from shells import SSH_PORT, Shells
from sizes import FAST, SLOW
from support import (
    LE,
    PORT,
    PYTHON,
    RECEIVER,
    SENDER,
    Connection,
    Json,
    Link,
    Process,
    flows,
    status,
    wait_until,
)


def sshds(link: Link) -> Connection:
    """Return the only connection of a client of ssh, as its server has it."""
    return only([c for c in link.receiver.connections() if c.local.endswith(f":{SSH_PORT}")])


def started(link: Link, shells: Shells, *words: str) -> Process:
    """Start ssh with options, host and command; wait until the command has said that it runs."""
    process = link.sender.start(*shells.shell.split(), *words)
    while process.line().strip() != "ready":
        pass
    return process


def test_a_pull_is_in_the_background_at_its_sender_and_arrives_as_it_is(
    link: Link, tmp_path: Path
) -> None:
    source, copy = tmp_path / "source", tmp_path / "copy"
    source.mkdir()
    fill(source, hole=500_000)  # zeros that rsync sends without -S
    (source / "file").write_bytes(os.urandom(4_000_000))
    shells = Shells(link, tmp_path)
    link.limit(SLOW, 50, towards="left")
    process = link.sender.start(
        "rsync", "-aH", "-e", shells.shell, "--rsync-path=netnice run --json -- rsync",
        f"root@{RECEIVER}:{source}/", str(copy),
    )  # fmt: skip
    flow: Json = wait_until(
        "data in the background", lambda: [f for f in flows() if f["bytes_acked"] > 100_000]
    )[0]
    assert (flow["control"], flow["local"]) == (DEFAULT, f"{RECEIVER}:{SSH_PORT}")
    assert flow["processes"][0]["name"].startswith("sshd")
    assert sshds(link).tos == LE
    link.limit(FAST, 50, towards="left")
    process.succeed()
    assert tree(copy) == tree(source)
    report = json.loads(process.errors)
    assert report["carrier"]["name"] == flow["processes"][0]["name"]
    assert report["carrier"]["remote"] == flow["remote"]
    assert report["run"] == flow["run"]
    assert report["bytes_sent"] + report["bytes_unsent"] > 4_000_000
    assert report["not_governed"] == []


def test_a_connection_that_others_use_too_is_given_back_at_the_end(
    link: Link, tmp_path: Path
) -> None:
    shells = Shells(link, tmp_path)
    path = f"{tmp_path}/master"
    host = f"root@{RECEIVER}"
    begins = ["-o", "ControlMaster=yes", "-o", f"ControlPath={path}"]
    master = started(link, shells, *begins, host, "echo ready; cat")
    before = sshds(link)
    assert before.control == "reno"
    pulls = started(link, shells, "-o", f"ControlPath={path}", host,
                    "netnice run --verbose -- sh -c 'echo ready; cat'")  # fmt: skip
    assert (sshds(link).control, sshds(link).tos) == (DEFAULT, LE)
    pulls.succeed()
    assert "carried the command's output" in pulls.errors
    wait_until("it is given back", lambda: sshds(link).control == "reno")
    assert sshds(link).tos == before.tos
    master.succeed()


def test_of_two_runs_over_one_connection_the_second_has_it_once_the_first_has_ended(
    link: Link, tmp_path: Path
) -> None:
    shells = Shells(link, tmp_path)
    path = f"{tmp_path}/master"
    host = f"root@{RECEIVER}"
    begins = ["-o", "ControlMaster=yes", "-o", f"ControlPath={path}"]
    master = started(link, shells, *begins, host, "echo ready; cat")
    shares = ["-o", f"ControlPath={path}", host]
    command = "netnice run {} -- sh -c 'echo ready; cat'"
    first = started(link, shells, *shares, command.format("-a reno"))
    (run,) = status()["runs"]
    second = started(link, shells, *shares, command.format("--verbose"))
    third = started(link, shells, *shares, command.format("--verbose"))
    assert sshds(link).control == "nn_reno"
    third.succeed()
    assert f"with the settings of run {run['run']}, until that ends" in third.errors
    first.succeed()
    wait_until("it is taken along", lambda: sshds(link).control == DEFAULT)
    assert sshds(link).tos == LE
    second.succeed()
    assert "in the background until now" in second.errors
    wait_until("it is given back", lambda: sshds(link).control == "reno")
    master.succeed()


def test_a_run_that_begins_while_another_has_the_connection_leaves_it_there(
    link: Link, tmp_path: Path
) -> None:
    shells = Shells(link, tmp_path)
    nested = "netnice run -- sh -c 'echo first; netnice run -- true; echo ready; cat'"
    process = started(link, shells, f"root@{RECEIVER}", nested)
    assert sshds(link).control == DEFAULT
    process.succeed()
    assert process.errors == ""


def said_of_a_pull(link: Link, tmp_path: Path, *options: str) -> Json:
    """Have a command write to the pipe of sshd, whose connection stays plain; return its report."""
    command = f"netnice run --json {' '.join(options)} -- sh -c 'echo ready; cat'"
    process = started(link, Shells(link, tmp_path), f"root@{RECEIVER}", command)
    assert sshds(link).control == "reno"
    process.succeed()
    return json.loads(process.errors)


def test_a_connection_that_is_not_meant_is_left_alone_and_not_claimed(
    link: Link, tmp_path: Path
) -> None:
    report = said_of_a_pull(link, tmp_path, "--to", "192.0.2.0/24")
    assert report["carrier"] is None
    assert report["not_governed"] == [{"why": "no_connection"}]


def test_a_connection_whose_control_a_route_fixes_is_told_of_and_not_claimed(
    link: Link, tmp_path: Path
) -> None:
    link.receiver.call("ip", "route", "replace", "default", "via", "10.0.2.254",
                       "congctl", "lock", "reno")  # fmt: skip
    report = said_of_a_pull(link, tmp_path)
    assert report["carrier"] is None
    assert report["not_governed"] == [{"why": "locked", "connections": 1}]


@pytest.mark.parametrize(
    "command",
    [
        "netnice run -- sh -c 'echo ready; cat >/dev/null'",
        "cat | netnice run -- sh -c 'echo ready; cat' | cat",
    ],
)
def test_a_login_at_a_terminal_is_left_alone(link: Link, tmp_path: Path, command: str) -> None:
    shells = Shells(link, tmp_path)
    process = started(link, shells, "-tt", f"root@{RECEIVER}", command)
    assert sshds(link).control == "reno"
    assert flows() == []
    process.end()


def test_a_command_whose_output_goes_to_a_file_leaves_the_connection_alone(
    link: Link, tmp_path: Path
) -> None:
    shells = Shells(link, tmp_path)
    command = "netnice run -- sh -c 'echo ready >&2; cat' 2>&1 >/dev/null"
    process = started(link, shells, f"root@{RECEIVER}", command)
    assert sshds(link).control == "reno"
    process.status()


AGENT = """
import socket, subprocess, sys
count, command = int(sys.argv[1]), sys.argv[2:]
held = []
if count == 0:  # as an agent of a CI server does
    held.append(socket.create_connection(("10.0.2.2", 5001)))
else:
    listener = socket.create_server(("10.0.1.1", 5001))
    print("listens", flush=True)
    for _ in range(count):
        held.append(listener.accept()[0])
process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
print(process.stdout.readline().strip(), flush=True)
input()
process.communicate()
"""


@pytest.mark.parametrize(("accepts", "control"), [(0, "reno"), (1, DEFAULT), (2, "reno")])
def test_the_connection_is_that_one_that_a_server_accepted_if_it_has_one(
    link: Link, accepts: int, control: str
) -> None:
    agent = AGENT.replace("10.0.2.2", RECEIVER).replace("10.0.1.1", SENDER)
    agent = agent.replace("5001", str(PORT))
    listener = link.receiver.listen(RECEIVER, PORT)
    process = link.sender.start(PYTHON, "-S", "-E", "-c", agent, str(accepts), *UNDER,
                                "sh", "-c", "echo ready; cat")  # fmt: skip
    if accepts:
        assert process.line() == "listens"
        for _ in range(accepts):
            client = link.receiver.open_socket(socket.AF_INET, socket.SOCK_STREAM)
            client.connect((SENDER, PORT))
    else:
        accept(listener, link.receiver)
    assert process.line() == "ready"
    assert [c.control for c in link.sender.connections()] == [control] * max(accepts, 1)
    process.tell("")
    process.succeed()


def test_a_server_that_ends_before_its_command_is_no_failure(link: Link, tmp_path: Path) -> None:
    shells = Shells(link, tmp_path)
    said = tmp_path / "said"
    command = f"netnice run -- sh -c 'echo ready; read end; sleep 1' 2>{said}"
    process = started(link, shells, f"root@{RECEIVER}", command)
    process.popen.kill()  # its connection ends, and so does the server of it
    process.status()
    wait_until("the run has ended", lambda: not subprocess.run(
        ["pgrep", "-f", "netnice run -- sh -c echo ready; read end"], check=False,
        capture_output=True).stdout)  # fmt: skip
    assert said.read_text() == ""
