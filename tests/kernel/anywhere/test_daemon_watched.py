# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""`netnice top` and `metrics` without root: what is a user's own, look after look."""

from __future__ import annotations

import json
import re
import socket
import urllib.error
import urllib.request

import pytest
import starving
from client import UNDER
from daemon import HERE, OTHER, SOCKET, Daemon, ask, netnice, run, user
from support import NOBODY, PYTHON, RECEIVER, Json, Link, Namespace, Process, status, wait_until

RATE_MBIT, QUEUE = 8, 50
TOP = ("netnice", "top", *HERE)


def top(where: Namespace, uid: int, seconds: float = 0.5) -> Json:
    words = (*user(uid), *TOP, "--once", "--json", "--interval", str(seconds))
    view: Json = json.loads(where.call(*words))
    return view


def received(link: Link) -> int:
    """Return how many bytes of TCP's payload the receiver has got."""
    (device,) = json.loads(link.receiver.call("ip", "-json", "-statistics", "link", "show", "eth"))
    got = device["stats64"]["rx"]
    # Ethernet, IPv4, TCP with time stamps: 14 + 20 + 32 bytes of each packet
    return int(got["bytes"] - 66 * got["packets"])


def end(*senders: Process) -> None:
    for sender in senders:
        sender.popen.terminate()
        sender.status()


def test_a_user_watches_his_own_job_and_of_others_learns_how_many_there_are(
    link: Link, daemon: Daemon
) -> None:
    his = link.send(link.limit(RATE_MBIT, QUEUE).sink(), under=run(NOBODY))
    wait_until("half a megabyte", lambda: received(link) > 500_000)
    view = top(link.sender, NOBODY, 2)
    (job,) = view["jobs"]
    assert (job["pid"], job["kind"], job["connections"]) == (his.pid, "run", 1)
    assert 0 < job["rate_bits"] < 1.1 * RATE_MBIT * 1e6
    assert job["why"]["reason"] not in ("not_yet_known", "unknown")
    assert view["left_out"] == {"runs": 0, "connections": 0, "jobs": 0}
    theirs = [link.send(link.sink(), under=prefix) for prefix in (run(OTHER), UNDER)]
    wait_until("all send", lambda: len(status()["connections"]) == 3)
    view = top(link.sender, NOBODY)
    assert [job["pid"] for job in view["jobs"]] == [his.pid]
    assert view["left_out"] == {"runs": 2, "connections": 2, "jobs": 0}
    text = link.sender.call(*user(NOBODY), *TOP, "--once", "--interval", "0.2")
    assert text.endswith(
        "\nNot shown: 2 runs and 2 connections of other users; all: sudo netnice top\n"
    )
    assert all(len(line) <= 80 for line in text.splitlines())
    # neither numbers nor names of theirs
    of_theirs = [f'"run {r["run"]}"' for r in status()["runs"] if r["began"] != his.pid]
    of_theirs += [f'"pid": {sender.pid}' for sender in theirs]
    assert len(of_theirs) == 4 and not [mark for mark in of_theirs if mark in json.dumps(view)]
    assert json.loads(link.sender.call("netnice", "top", "--once", "--json"))["left_out"] is None
    end(his, *theirs)


def test_what_else_is_sent_is_told_as_a_sum_where_the_user_is_and_from_elsewhere_no_device(
    link: Link, daemon: Daemon
) -> None:
    his = link.send(link.limit(RATE_MBIT, QUEUE).sink(), under=run(NOBODY))
    foreground = link.send(link.sink())
    wait_until("it has left slow start", lambda: received(link) > 2_000_000)
    (job,) = top(link.sender, NOBODY, 3)["jobs"]
    # Reno alone fills the path; what its queue drops was sent, too
    assert 0.5 * RATE_MBIT < job["others"]["bits"] / 1e6 < 1.2 * RATE_MBIT
    assert job["why"]["reason"] == "yielding_to_host", job
    # the test itself is in another network namespace, whose devices are not the daemon's
    elsewhere = json.loads(netnice(NOBODY, "top", *HERE, "--once", "--json").stdout)
    assert (elsewhere["paths"], elsewhere["downloads"]) == ([], [])
    assert [job["pid"] for job in elsewhere["jobs"]] == [his.pid]
    end(his, foreground)


def test_who_has_nothing_in_the_background_is_told_how_to_begin(daemon: Daemon) -> None:
    done = netnice(NOBODY, "top", *HERE, "--once", "--interval", "0.1")
    said = "No jobs of yours in the background. Start one: netnice run -- COMMAND\n"
    assert (done.returncode, done.stdout, done.stderr) == (0, said, "")


class Looks:
    """A connection of root that looks again and again."""

    def __init__(self) -> None:
        """Connect."""
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(str(SOCKET))
        self.answers = self.socket.makefile()

    def look(self, line: bytes = b'{"v":1,"do":"look"}\n') -> Json:
        """Say a line; return the answer."""
        self.socket.sendall(line)
        answer: Json = json.loads(self.answers.readline() or "null")
        return answer


def test_one_connection_looks_again_and_again_and_has_the_rates_in_between(
    link: Link, daemon: Daemon
) -> None:
    sender = link.send(link.limit(RATE_MBIT, QUEUE).sink(), under=run(NOBODY))
    wait_until("it sends", lambda: received(link) > 100_000)
    looks = Looks()
    answers = [looks.look() for _ in range(4)]
    got = received(link)
    assert [answer["is"] for answer in answers] == ["view"] * 4
    views = [answer["view"] for answer in answers]
    jobs = [view["jobs"][0] for view in views]
    assert [len(job["history_bits"]) for job in jobs] == [0, 1, 2, 3]
    assert (views[0]["seconds"], jobs[0]["rate_bits"]) == (None, None)
    for view, job, before in zip(views[1:], jobs[1:], jobs, strict=False):
        assert view["seconds"] >= 0.1  # however fast it asks
        sent = job["bytes_sent"] - before["bytes_sent"]
        assert job["rate_bits"] == pytest.approx(sent * 8 / view["seconds"], rel=1e-6)
    # what is acknowledged has come; SYN counts as a byte
    assert 0 < jobs[0]["bytes_sent"] < jobs[-1]["bytes_sent"] <= got + 1
    # a request that is none keeps neither the next one waiting nor the daemon
    assert looks.look(b'{"v":1,"do":"raise"}\n')["is"] == "refused"
    assert looks.answers.readline() == ""
    # two at once are answered one after the other, and whatever else ends it
    both = Looks()
    assert both.look(b'{"v":1,"do":"look"}\n{"v":1,"do":"hello"}\n')["is"] == "view"
    assert json.loads(both.answers.readline())["is"] == "hello"
    assert both.answers.readline() == ""
    end(sender)


def test_four_programs_of_a_user_look_and_neither_his_requests_nor_others_wait_for_them(
    daemon: Daemon,
) -> None:
    words = (*user(NOBODY), *TOP, "--interval", "0.2")
    four = [daemon.where.start(*words) for _ in range(4)]
    for process in four:
        assert process.line().startswith("No jobs of yours")
    fifth = netnice(NOBODY, "top", *HERE, "--once")
    assert (fifth.returncode, fifth.stderr.count("\n")) == (1, 1)
    assert "4 programs of yours look already" in fifth.stderr
    assert "end one" in fifth.stderr
    assert netnice(OTHER, "top", *HERE, "--once", "--interval", "0.1").returncode == 0
    # of requests he has all that he may have: 8 are waited for, the ninth is not
    requests = [
        daemon.where.start(*user(NOBODY), PYTHON, "-S", "-E", "-c", HOLDS) for _ in range(8)
    ]
    for request in requests:
        assert request.line() == "connected"
    assert "too many requests" in netnice(NOBODY, "status", *HERE).stderr
    for request in requests:
        request.end()
    four[0].end()
    wait_until("his place is free", lambda: not netnice(NOBODY, *TOP[1:], "--once").returncode)
    for process in four[1:]:
        process.end()


HOLDS = f"""
import socket, time
held = socket.socket(socket.AF_UNIX)
held.connect({str(SOCKET)!r})
print("connected", flush=True)
time.sleep(60)
"""


BREAKS_OFF = f"""
import socket
SAID = (
    '{{"v":1,"do":"look"}}\\n', '{{"v":1,"do":"look"}}\\n{{"v":1,"do":"look"',
    '{{"v":1,"do":"look"}}\\ngarbage\\n', '{{"v":1,"do":"look","uid":0}}\\n',
    '{{"v":1,"do":"look"}}\\n' * 50,
)
for i in range(100):
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect({str(SOCKET)!r})
        connection.sendall(SAID[i % len(SAID)].encode())
        connection.recv(i % 3)
"""


def test_whoever_breaks_looks_off_leaves_neither_memory_nor_places_behind(daemon: Daemon) -> None:
    def attack() -> None:
        Process([*user(NOBODY), PYTHON, "-S", "-E", "-c", BREAKS_OFF]).succeed()
        one = (*TOP[1:], "--once", "--interval", "0.1")
        wait_until("a place is free", lambda: not netnice(NOBODY, *one).returncode)

    assert daemon.growth_kb(attack) <= 1024


def test_a_daemon_that_is_restarted_is_said_and_the_next_looks_go_on(
    link: Link, daemon: Daemon
) -> None:
    sender = link.send(link.limit(RATE_MBIT, QUEUE).sink(), under=run(NOBODY))
    watching = daemon.where.start(*user(NOBODY), *TOP, "--interval", "0.2")
    wait_until("a table", lambda: "1 job, " in watching.line())
    daemon.kill()
    daemon.follow()
    anew = "netnice: netnice's daemon was restarted: rates and histories begin anew\n"
    wait_until("it is said", lambda: watching.errors == anew)
    wait_until("a table again", lambda: "1 job, " in watching.line())
    # one that does not come again: with the next step, after the time that a restart may take
    daemon.kill()
    assert watching.status() == 1
    told = watching.errors.removeprefix(anew)
    assert re.fullmatch(r"netnice: netnice's daemon does not answer at .*; start it: .*\n", told)
    daemon.follow()
    end(sender)


@pytest.mark.soak
def test_a_users_run_that_starves_says_so_once_as_roots_does(link: Link, daemon: Daemon) -> None:
    starving.says_so_once(link, run(NOBODY))


def test_metrics_of_a_user_are_of_his_jobs_and_outlive_the_daemon(
    link: Link, daemon: Daemon
) -> None:
    his = link.send(link.limit(RATE_MBIT, QUEUE).sink(), under=run(NOBODY))
    others = link.send(link.sink(), under=run(OTHER))
    wait_until("both send", lambda: len(status()["connections"]) == 2)
    words = ("netnice", "metrics", *HERE, "--listen", "127.0.0.1:0")
    exporter = Process([*user(NOBODY), *words])
    url = exporter.line()
    wait_until("it is said", lambda: exporter.errors)
    assert exporter.errors == (
        "netnice: these are of your own jobs; of all: sudo netnice metrics\n"
    )

    def scraped() -> str:
        with urllib.request.urlopen(url, timeout=30) as answer:
            return str(answer.read().decode())

    (of_his,) = [r["run"] for r in status()["runs"] if r["began"] == his.pid]
    assert "\nnetnice_jobs 1\n" in scraped()
    assert set(re.findall(r'job="([^"]*)"', scraped())) == {f"run {of_his}"}
    daemon.kill()
    with pytest.raises(urllib.error.HTTPError) as failed:
        scraped()
    assert failed.value.code == 500
    assert b"start it: sudo systemctl enable" in failed.value.read()
    daemon.follow()
    assert "\nnetnice_jobs 1\n" in scraped()
    exporter.end()
    end(his, others)


def test_what_a_user_attached_is_a_job_of_his_and_what_root_attached_is_not(
    link: Link, daemon: Daemon
) -> None:
    with link.receiver.listen(RECEIVER) as listener:
        port = str(listener.getsockname()[1])
        plain = [
            link.sender.start(*user(NOBODY), "busybox", "nc", RECEIVER, port) for _ in range(2)
        ]
        accepted = [listener.accept()[0] for _ in plain]
    assert netnice(NOBODY, "attach", *HERE, str(plain[0].pid)).returncode == 0
    (job,) = top(link.sender, NOBODY)["jobs"]
    assert (job["id"], job["kind"]) == (f"pid {plain[0].pid}", "attached")
    assert top(link.sender, OTHER)["left_out"] == {"runs": 0, "connections": 1, "jobs": 0}
    assert ask(do="look")["view"]["left_out"]["connections"] == 0  # root asks: all are his
    for sock in accepted:
        sock.close()
    end(*plain)
