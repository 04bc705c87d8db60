# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""A run in a cgroup of another run, as of a container engine: the inner one decides, alone."""

from __future__ import annotations

import json
import socket

import pytest
from classes import DEFAULT
from client import RUN, Client, accept, ended, only, received
from support import (
    LE,
    NOBODY,
    PORT,
    RECEIVER,
    SENDER,
    Link,
    call,
    cgroup_root,
    flows,
    status,
    wait_until,
)

ENTERS = f"""
own={cgroup_root()}$(sed -n 's/^0:://p' /proc/self/cgroup)/own
mkdir $own
echo $$ >$own/cgroup.procs
exec "$@"
"""
BELOW = ["sh", "-ec", ENTERS, "sh"]
INNER = [*RUN, "--set", "threshold=0.3", "--dscp", "none", "--"]


def runs() -> dict[str, int]:
    """Return how many connections each run has had, by their controls."""
    return {run["control"]: run["connections"] for run in status()["runs"]}


NAMES = f"""
own={cgroup_root()}$(sed -n 's/^0:://p' /proc/self/cgroup)/own
mkdir $own
echo $$ >$own/cgroup.procs
chown -R {NOBODY} $own
exec setpriv --reuid={NOBODY} --clear-groups sh -ec '
    mkdir $0/netnice-run-1
    echo $$ >$0/netnice-run-1/cgroup.procs
    exec "$@"' $own "$@"
"""
NAMED = ["sh", "-ec", NAMES, "sh"]


def test_a_user_does_not_leave_a_run_by_the_name_of_a_cgroup_that_he_makes_in_it(
    link: Link,
) -> None:
    listener = link.receiver.listen(RECEIVER, PORT)
    client = Client(link.sender, *RUN, "--json", "-a", "reno", "--", *NAMED)
    client.do("open AF_INET SOCK_STREAM")
    client.do(f"connect {RECEIVER} {PORT}")
    accepted = accept(listener, link.receiver)
    client.do("send 100")
    assert received(accepted, 100) == b"x" * 100
    # one that is connected, and whose control is the run's: that it did not choose
    client.do("set IPPROTO_TCP TCP_CONGESTION cubic")
    seen = only(link.sender.connections())
    assert (seen.control, seen.tos) == ("nn_reno", LE)
    client.do("close")
    ended(client.process)
    report = json.loads(client.process.errors)
    assert (report["connections"], report["not_governed"]) == (1, [])
    # neither SYN nor FIN may be acknowledged yet
    assert 0 <= report["bytes_sent"] + report["bytes_unsent"] - 100 <= 2


@pytest.mark.parametrize(
    "container", [pytest.param([], id="visible"), pytest.param(["unshare", "-C"], id="hidden")]
)
def test_a_run_in_a_cgroup_of_a_run_has_its_own_settings(link: Link, container: list[str]) -> None:
    listener = link.receiver.listen(RECEIVER, PORT)
    client = Client(link.sender, *RUN, "--json", "-a", "reno", "--", *BELOW, *container, *INNER)
    client.do("open AF_INET SOCK_STREAM")
    # the inner run leaves marks to the command; 184 is Expedited Forwarding
    client.do("set IPPROTO_IP IP_TOS 184")
    client.do("set IPPROTO_TCP TCP_CONGESTION cubic")
    client.do(f"connect {RECEIVER} {PORT}")
    accepted = accept(listener, link.receiver)
    client.do("send 100")
    seen = only(link.sender.connections())
    assert (seen.control, seen.tos) == (DEFAULT, 184)
    (flow,) = flows()
    assert flow["control"] == DEFAULT
    assert flow["parameters"]["threshold"] == pytest.approx(0.3, abs=1e-4)
    assert runs() == {"nn_reno": 0, DEFAULT: 1}
    assert flow["run"] in {run["run"] for run in status()["runs"] if run["control"] == DEFAULT}
    accepted.close()
    ended(client.process)
    (line,) = (line for line in client.process.errors.splitlines() if line.startswith("{"))
    report = json.loads(line)
    assert (report["control"], report["connections"]) == ("nn_reno", 0)


def test_what_a_run_in_a_cgroup_of_a_run_accepts_has_its_settings(link: Link) -> None:
    capture = link.capture()
    server = Client(link.sender, *RUN, "-a", "reno", "--dscp", "none", "--", *BELOW, *RUN, "--")
    server.do("open AF_INET SOCK_STREAM")
    server.do(f"listen {SENDER} {PORT}")
    client = link.receiver.open_socket(socket.AF_INET, socket.SOCK_STREAM)
    client.connect((SENDER, PORT))
    answer = capture.first("a SYN-ACK", lambda p: p.syn and p.sport == PORT)
    assert answer.tos & ~3 == LE
    seen = only(link.sender.connections())
    assert (seen.control, seen.tos) == (DEFAULT, LE)
    assert runs() == {"nn_reno": 0, DEFAULT: 1}
    client.close()
    ended(server.process)


def test_what_the_outer_run_itself_opens_stays_its_own(link: Link) -> None:
    listener = link.receiver.listen(RECEIVER, PORT)
    client = Client(link.sender, *RUN, "-a", "reno", "--", *BELOW)
    client.do("open AF_INET SOCK_STREAM")
    client.do("set IPPROTO_IP IP_TOS 184")
    client.do(f"connect {RECEIVER} {PORT}")
    accept(listener, link.receiver)
    seen = only(link.sender.connections())
    assert (seen.control, seen.tos) == ("nn_reno", LE)
    assert runs() == {"nn_reno": 1}
    ended(client.process)


def test_the_share_of_a_run_in_a_cgroup_of_a_run_can_be_changed(link: Link) -> None:
    grouped = [*RUN, "--group", "g", "--share"]
    sink = link.sink()
    sender = link.send(sink, under=[*grouped, "1", "--", *BELOW, *grouped, "4", "--"])
    (flow,) = wait_until("a flow", flows)
    assert flow["parameters"]["share"] == 4
    call("netnice", "share", "g", str(sender.pid), "2")
    (flow,) = flows()
    assert flow["parameters"]["share"] == 2
    sender.popen.terminate()
    ended(sender)
