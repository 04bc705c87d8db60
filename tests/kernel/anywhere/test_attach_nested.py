# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Attached cgroups that are in each other, that their processes leave, and that are removed."""

from __future__ import annotations

import pytest
from cgroups import Tree, entering, netnice
from classes import DEFAULT
from client import SERVES, Client
from support import LE, PORT, PYTHON, RECEIVER, SENDER, Link, status, wait_until

OWN_TOS = 0x20
PLAIN, OUTER, INNER = ("reno", 0), (DEFAULT, LE), ("nn_fairbat1", 0)
"""Control and TOS octet: in the namespaces of the tests, by default, and of the class fair."""
FAIR = ("--class", "fair")


def opened(client: Client, port: int = PORT) -> None:
    """Have a client open a connection."""
    client.do("open AF_INET SOCK_STREAM")
    client.do(f"connect {RECEIVER} {port}")


def seen(link: Link) -> dict[int, tuple[str, int]]:
    """Return control and TOS octet of the sender's connections, by their remote ports."""
    return {int(c.remote.rpartition(":")[2]): (c.control, c.tos) for c in link.sender.connections()}


def listening(link: Link, count: int) -> list[int]:
    """Have the receiver listen at so many ports."""
    ports = [PORT + i for i in range(count)]
    for port in ports:
        link.receiver.listen(RECEIVER, port)
    return ports


def test_what_is_detached_inside_an_attached_cgroup_is_left_to_that_one(
    link: Link, tree: Tree
) -> None:
    listening(link, 3)
    inner = tree.below("inner")
    opened(tree.client(link.sender, inner), PORT)
    netnice("attach", "--cgroup", str(tree.path))
    opened(tree.client(link.sender, inner), PORT + 1)  # it begins in the background
    netnice("attach", "--cgroup", str(inner), *FAIR)
    client = tree.client(link.sender, inner)
    opened(client, PORT + 2)
    assert set(seen(link).values()) == {INNER}
    said = netnice("detach", "--cgroup", str(inner))
    assert f"is now in the background as the cgroup {tree.path} is, with 3 connections" in said
    assert set(seen(link).values()) == {OUTER}
    client.do("set IPPROTO_TCP TCP_CONGESTION cubic")  # the outer one is guarded as before
    assert set(seen(link).values()) == {OUTER}
    assert "out of the background again, with 3" in netnice("detach", "--cgroup", str(tree.path))
    assert set(seen(link).values()) == {PLAIN}


def test_it_is_left_to_the_outer_one_also_if_the_inner_one_came_first(
    link: Link, tree: Tree
) -> None:
    listening(link, 1)
    inner = tree.below("inner", "most")
    opened(tree.client(link.sender, inner))
    netnice("attach", "--cgroup", str(inner), *FAIR)
    netnice("attach", "--cgroup", str(tree.path))
    assert seen(link) == {PORT: INNER}
    netnice("detach", "--cgroup", str(inner))
    assert seen(link) == {PORT: OUTER}
    netnice("attach", "--cgroup", str(inner), *FAIR)
    said = netnice("detach", "--all")  # the outer one first: nothing is handed to it meanwhile
    assert "is now in the background as" not in said
    assert seen(link) == {PORT: PLAIN}


def test_it_is_left_only_to_one_that_means_it(link: Link, tree: Tree) -> None:
    listening(link, 2)
    middle = tree.below("middle")
    inner = tree.below("middle", "inner")
    netnice("attach", "--cgroup", str(tree.path), "--except", f"{RECEIVER}:{PORT}")
    netnice("attach", "--cgroup", str(middle), *FAIR, "--to", f"{RECEIVER}:{PORT + 5}")
    netnice("attach", "--cgroup", str(inner))
    for port in (PORT, PORT + 1):
        opened(tree.client(link.sender, inner), port)
    assert seen(link) == {PORT: OUTER, PORT + 1: OUTER}
    netnice("detach", "--cgroup", str(inner))
    assert seen(link) == {PORT: PLAIN, PORT + 1: OUTER}


def test_the_innermost_decides_also_on_what_the_outer_one_had_before(
    link: Link, tree: Tree
) -> None:
    listening(link, 2)
    inner = tree.below("inner")
    client = tree.client(link.sender, inner)
    client.do("open AF_INET SOCK_STREAM")
    client.do(f"set IPPROTO_IP IP_TOS {OWN_TOS}")
    client.do(f"connect {RECEIVER} {PORT}")
    netnice("attach", "--cgroup", str(tree.path))
    opened(tree.client(link.sender, inner), PORT + 1)
    said = netnice("attach", "--cgroup", str(inner), *FAIR)
    assert "moved 2 connections; so" in said
    assert seen(link) == {PORT: (INNER[0], OWN_TOS), PORT + 1: INNER}
    netnice("detach", "--cgroup", str(tree.path))
    assert seen(link) == {PORT: (INNER[0], OWN_TOS), PORT + 1: INNER}
    netnice("detach", "--cgroup", str(inner))
    assert seen(link) == {PORT: ("reno", OWN_TOS), PORT + 1: PLAIN}


def test_a_server_accepts_as_the_innermost_says_and_then_as_the_outer_one(
    link: Link, tree: Tree
) -> None:
    inner = tree.below("inner")
    server = link.sender.start(
        *entering(inner), PYTHON, "-S", "-E", "-c", SERVES, SENDER, str(PORT)
    )
    assert server.line() == "ready"

    def accepted() -> tuple[str, int]:
        before = {c.remote for c in link.sender.connections()}
        client = Client(link.receiver)
        client.do("open AF_INET SOCK_STREAM")
        client.do(f"connect {SENDER} {PORT}")
        assert server.line() == "accepted"
        (connection,) = (c for c in link.sender.connections() if c.remote not in before)
        return connection.control, connection.tos

    netnice("attach", "--cgroup", str(tree.path))
    netnice("attach", "--cgroup", str(inner), *FAIR)
    assert accepted() == INNER
    netnice("detach", "--cgroup", str(inner))
    assert accepted() == OUTER
    netnice("detach", "--cgroup", str(tree.path))
    assert accepted() == PLAIN
    server.popen.kill()
    server.status()


def test_who_left_an_attached_cgroup_is_told_what_takes_his_connections_out(
    link: Link, tree: Tree
) -> None:
    listening(link, 1)
    client = tree.client(link.sender)
    opened(client)
    netnice("attach", "--cgroup", str(tree.path))
    (tree.path.parent / "cgroup.procs").write_text(str(client.process.pid))
    said = netnice("detach", str(client.process.pid), status=1)
    assert "1 connection is of an attached cgroup" in said
    assert f"netnice detach --cgroup {tree.path}\n" in said
    netnice("detach", "--cgroup", str(tree.path))
    assert seen(link) == {PORT: PLAIN}


@pytest.mark.parametrize("command", ["attach", "detach"])
def test_the_connections_of_an_attached_cgroup_that_was_removed_are_nobodys(
    link: Link, tree: Tree, command: str
) -> None:
    listening(link, 2)
    gone = tree.below("gone")
    client = tree.client(link.sender, gone)
    netnice("attach", "--cgroup", str(gone))
    opened(client)
    (tree.path.parent / "cgroup.procs").write_text(str(client.process.pid))
    gone.rmdir()
    options = FAIR if command == "attach" else ()
    said = netnice(command, *options, str(client.process.pid))
    assert "of a run" not in said
    assert seen(link) == {PORT: INNER if command == "attach" else PLAIN}
    client.do("set IPPROTO_TCP TCP_CONGESTION cubic")  # nothing keeps it from that now
    assert seen(link)[PORT][0] == "cubic"
    assert status()["runs"] == []


@pytest.mark.parametrize("option", ["--only=down", "--udp-downloads"])
def test_downloads_are_not_said_to_yield_where_no_device_holds(tree: Tree, option: str) -> None:
    said = netnice("attach", "--cgroup", str(tree.path), option, status=1)
    assert "downloads yield where a device holds, and none does" in said
    assert status()["runs"] == []


def test_a_run_whose_downloads_were_to_yield_says_at_once_that_they_do_not(link: Link) -> None:
    words = ("netnice", "run", "--no-hold", "--only", "down", "--verbose", "--", "cat")
    run = link.sender.start(*words)
    wait_until("it is said", lambda: "nothing of it yields here" in run.errors)
    assert not run.ended()
    run.succeed()
    assert "--no-hold was given" in run.errors
    assert "by its window" not in run.errors
