# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""`netnice run --group`: runs divide what they have by their shares, and leave nothing behind.

How exactly, and beside other traffic, is measured where time is virtual (in_vm/test_groups.py).
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from sizes import sized
from support import (
    PYTHON,
    RECEIVER,
    RECEIVER6,
    Json,
    Link,
    Process,
    Sink,
    call,
    wait_until,
)

RATE_MBIT, QUEUE = 20, 50
SECONDS = "4"
GROUP = "transfers"
USERS = (1001, 1002)


OPENS_MANY = """
import socket, sys
host, port, count = sys.argv[1:]
sockets = [socket.create_connection((host, int(port))) for _ in range(int(count))]
for sock in sockets:
    sock.sendall(bytes(30000))
print("open", flush=True)
sys.stdin.readline()
"""


def under(share: float | str, *options: str, name: str = GROUP) -> list[str]:
    return ["netnice", "run", "--group", name, "--share", str(share), *options, "--"]


def status(name: str = GROUP, *, seconds: str = "0.1", user: int = 0) -> Json:
    command = ("netnice", "status", "--group", name, "--seconds", seconds, "--json")
    return json.loads(call("env", f"SUDO_UID={user}", *command))


def members() -> list[Json]:
    """Return the connections of the group by now, of which the first may just be opening."""
    done = subprocess.run(
        ["netnice", "status", "--group", GROUP, "--seconds", "0.1", "--json"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if "you have no group" in done.stderr:
        return []
    return [c for a in json.loads(done.stdout)["aggregates"] for c in a["connections"]]


def fails(*command: str) -> str:
    """Run a command that must fail, and return what it says."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert done.stdout == ""
    return done.stderr


def start(link: Link, sink: Sink, shares: Sequence[float], *options: str) -> list[Process]:
    """Start an endless transfer for each share; wait until all have left slow start behind."""
    started = [link.send(sink, under=under(share, *options)) for share in shares]

    wait_until("every transfer is under way", lambda: (
        sum(c["bytes_acked"] > 1_000_000 for c in members()) == len(shares)
    ))  # fmt: skip
    return started


def end(processes: Sequence[Process]) -> None:
    for process in processes:
        process.popen.terminate()
        process.status()


def only_aggregate(found: Json) -> Json:
    (aggregate,) = found["aggregates"]
    return aggregate


def divided() -> Json:
    """Return the status over some seconds in which each connection had what its share is worth.

    Within a quarter, and the first seconds that have it: a busy machine lets a program wait.
    """

    def met() -> Json | None:
        found = status(seconds=SECONDS)
        parts = [(c["achieved"], c["target"]) for c in only_aggregate(found)["connections"]]
        print("achieved and target:", parts)
        return found if all(a == pytest.approx(t, rel=0.25) for a, t in parts) else None

    return wait_until("each has what its share is worth", met)


def filled() -> Json:
    """Return the one connection, of a second in which it had half the link or more."""

    def half() -> Json | None:
        (one,) = only_aggregate(status(seconds="1"))["connections"]
        print(one)
        return one if one["mbit"] > RATE_MBIT / 2 else None

    return wait_until("it fills the link", half)


DIRECTORY = "nn_directory"


def directory() -> list[dict[str, Any]]:
    """Return the groups that the kernel's directory has."""
    maps = json.loads(call("bpftool", "-j", "map", "show"))
    (found,) = (m["id"] for m in maps if m.get("name") == DIRECTORY)
    (element,) = json.loads(call("bpftool", "-j", "map", "dump", "id", str(found)))
    entries = element["formatted"]["value"]["entry"]
    return [e for e in entries if e["flows"] or any(e["key"]["addr"]) or e["key"]["name"]]


@pytest.fixture
def kept(link: Link) -> Iterator[Link]:
    """Keep a run of another group, and with it the directory, which no run would have else."""
    keeper = link.sender.start(*under(1, name="kept"), "sleep", "infinity")
    wait_until("the directory", lambda: DIRECTORY in call("bpftool", "map", "show"))
    yield link
    end([keeper])


# --- dividing -----------------------------------------------------------------


@pytest.mark.parametrize("shares", [(1, 3), (1, 2, 4)], ids=str)
def test_runs_of_a_group_have_what_their_shares_are_worth(
    link: Link, shares: Sequence[float]
) -> None:
    transfers = start(link, sink := link.limit(RATE_MBIT, QUEUE).sink(), shares)
    found = divided()
    aggregate = only_aggregate(found)
    targets = sorted(c["target"] for c in aggregate["connections"])
    assert targets == pytest.approx([s / sum(shares) for s in shares])
    assert (aggregate["to"], found["scope"], found["algorithm"]) == (RECEIVER, "host", "mpat")
    assert sorted(r["share"] for r in found["runs"]) == list(shares)
    # C is the sum of the windows, each rounded down
    windows = [c["window"] for c in aggregate["connections"]]
    assert sum(windows) - len(windows) <= aggregate["window"] <= sum(windows)
    end(transfers)
    assert sink.report()["errors"] == 0


def test_windows_of_any_algorithm_are_divided_by_the_shares(link: Link) -> None:
    # of one that fills a link without a round-trip time; nice's are divided in in_vm/test_groups.py
    options = ("--algorithm", "reno")
    shares = (1, 3)
    transfers = start(link, link.limit(RATE_MBIT, QUEUE).sink(), shares, *options)
    assert divided()["algorithm"] == "reno"
    call("netnice", "share", GROUP, str(transfers[0].pid), "3")
    divided()
    end(transfers)


def test_a_class_in_a_group_is_that_of_its_windows(link: Link) -> None:
    transfers = start(link, sink := link.limit(RATE_MBIT, QUEUE).sink(), (1, 3), "--class", "idle")
    # who names the algorithm is in the same group
    transfers += [link.send(sink, under=under(1, "--algorithm", "nice"))]
    wait_until("the third is there", lambda: len(members()) == 3)
    found = status()
    assert found["algorithm"] == "nice"
    assert sorted(r["share"] for r in found["runs"]) == [1, 1, 3]
    end(transfers)


def test_a_share_that_is_changed_counts_at_once_and_for_later_connections(link: Link) -> None:
    transfers = start(link, link.limit(RATE_MBIT, QUEUE).sink(), (1, 1))
    by_netnice, by_run = (str(transfers[0].pid), str(status()["runs"][1]["run"]))
    changes = sized(
        [(by_netnice, "4"), (by_run, "0.25")],
        [(one, share) for one in (by_netnice, by_run) for share in ("4", "0.25")],
    )
    for one, share in changes:
        call("netnice", "share", GROUP, one, share)
        found = divided()
        assert {r["share"] for r in found["runs"]} == {float(share), 1}
        call("netnice", "share", GROUP, one, "1")
    end(transfers)


def test_what_a_killed_member_had_goes_to_the_others(link: Link) -> None:
    killed, left = start(link, link.limit(RATE_MBIT, QUEUE).sink(), (3, 1))
    os.killpg(killed.pid, signal.SIGKILL)
    killed.popen.wait()
    # its connection lives on until what it had in its buffer has arrived
    wait_until("it has left", lambda: len(only_aggregate(status())["connections"]) == 1)
    one = filled()
    assert (one["target"], one["achieved"]) == (1, 1)
    end([left])


def test_a_connection_that_never_has_data_brings_nothing_and_takes_nothing(link: Link) -> None:
    sink = link.limit(RATE_MBIT, QUEUE).sink()
    (busy,) = start(link, sink, (1,))
    host, port = sink.at.rsplit(":", 1)
    idle = link.sender.start(*under(100), "busybox", "nc", host, port)
    wait_until("both are there", lambda: len(status()["runs"]) == 2)
    wait_until("both are connected", lambda: len(link.sender.connections()) == 2)
    one = filled()
    assert (one["share"], one["target"], one["achieved"]) == (1, 1, 1)
    idle.end()
    end([busy])


# --- who is in it -------------------------------------------------------------


def test_when_the_last_member_has_left_nothing_of_the_group_stays(kept: Link) -> None:
    sink = kept.limit(RATE_MBIT, QUEUE).sink()
    for _ in range(2):
        transfers = [kept.send(sink, under=under(share)) for share in (1, 3)]
        wait_until("both have joined", lambda: len(members()) == 2)
        (entry,) = directory()
        assert entry["flows"] == 2
        end(transfers[:1])
        wait_until("one is left", lambda: directory()[0]["flows"] == 1)
        end(transfers[1:])
        wait_until("nothing is left", lambda: not directory())


@pytest.mark.parametrize(
    ("scope", "aggregates"),
    [("host", 2), ("prefix/24", 2), ("all", 1)],
)
def test_connections_share_within_the_scope(link: Link, scope: str, aggregates: int) -> None:
    link.limit(RATE_MBIT, QUEUE)
    sinks = (link.sink(RECEIVER), link.sink(RECEIVER6))
    transfers = [link.send(sink, under=under(1, "--scope", scope)) for sink in sinks]
    wait_until("both have joined", lambda: len(members()) == 2)
    assert len(status()["aggregates"]) == aggregates
    end(transfers)


def test_two_users_with_groups_of_the_same_name_share_nothing(kept: Link) -> None:
    sink = kept.limit(RATE_MBIT, QUEUE).sink()
    transfers = [
        kept.send(sink, under=["env", f"SUDO_UID={user}", *under(share)])
        for user, share in zip(USERS, (1, 9), strict=True)
    ]
    wait_until("two groups", lambda: len(directory()) == 2)
    assert {e["key"]["owner"] for e in directory()} == set(USERS)
    for user, share in zip(USERS, (1, 9), strict=True):
        found = status(user=user)
        assert (found["owner"], [r["share"] for r in found["runs"]]) == (user, [share])
        (one,) = only_aggregate(found)["connections"]
        assert one["share"] == share
    (other,) = (r["run"] for r in status(user=USERS[1])["runs"])
    said = fails("env", f"SUDO_UID={USERS[0]}", "netnice", "share", GROUP, str(other), "5")
    assert f"{other} is neither a run of the group {GROUP}" in said
    assert "you have no group" in fails("netnice", "status", "--group", GROUP)
    end(transfers)


def test_a_thousand_connections_share_one_group(kept: Link) -> None:
    count = 1000
    host, port = kept.sink().at.rsplit(":", 1)
    many = kept.sender.start(
        *under(1), PYTHON, "-S", "-E", "-c", OPENS_MANY, host, port, str(count)
    )
    assert many.line() == "open"
    wait_until("all have joined", lambda: len(members()) == count)
    aggregate = only_aggregate(status())
    windows = [c["window"] for c in aggregate["connections"]]
    assert len(windows) == count
    assert None not in windows, "each has a place"
    assert sum(int(w) for w in windows) == pytest.approx(aggregate["window"], abs=0.5)
    many.tell("enough")
    many.succeed()
    wait_until("all have left", lambda: not directory())


# --- errors are sentences -----------------------------------------------------


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--share", "0"], ["share=0 is out of range", "0.001 to 1000"]),
        (["--share", "-1"], ["share=-1 is out of range"]),
        (["--share", "nan"], ["out of range"]),
        (["--share", "much"], ['"much" is not a number']),
        (["--algorithm", "imtcp"], ["own packets", "nice", "mpat"]),
        (["--class", "fair"], ["the class fair (fairbat1)", "own packets", "nice", "mpat"]),
        (["--class", "idle", "--algorithm", "reno"], ["--class", "--algorithm"]),
        (["--scope", "prefix/0"], ["prefix/24"]),
        (["--scope", "net"], ["host, all, or prefix"]),
        (["--group", "a b"], ["letters, digits"]),
        (["--group", "x" * 24], ["1 to 23"]),
        (["--group", ""], ["1 to 23"]),
    ],
)  # fmt: skip
def test_a_wrong_group_is_explained_and_the_command_does_not_start(
    options: list[str], says: list[str]
) -> None:
    named = [] if "--group" in options else ["--group", GROUP]
    said = fails("netnice", "run", *named, *options, "--", "echo", "started")
    for part in says:
        assert part in said


def test_a_share_without_a_group_is_an_error() -> None:
    assert "--group" in fails("netnice", "run", "--share", "2", "--", "echo", "started")


def test_a_group_divides_in_one_way(link: Link) -> None:
    first = link.send(link.limit(RATE_MBIT, QUEUE).sink(), under=under(1))
    wait_until("it is there", members)
    for options, says in (
        (["--scope", "all"], "has the scope host; give this run --scope host or"),
        (["--algorithm", "multcp"], "has the algorithm mpat"),
    ):
        said = fails("netnice", "run", "--group", GROUP, *options, "--", "echo", "started")
        assert says in said
    end([first])


def test_a_wrong_change_of_a_share_is_explained(link: Link) -> None:
    assert "you have no group" in fails("netnice", "share", GROUP, "1", "2")
    run = link.send(link.limit(RATE_MBIT, QUEUE).sink(), under=under(1))
    wait_until("it is there", members)
    for weight, says in (("0", "out of range"), ("-3", "out of range"), ("x", "not a number")):
        assert says in fails("netnice", "share", GROUP, str(run.pid), weight)
    assert "neither a run" in fails("netnice", "share", GROUP, str(os.getpid()), "2")
    assert [r["share"] for r in status()["runs"]] == [1]
    end([run])
