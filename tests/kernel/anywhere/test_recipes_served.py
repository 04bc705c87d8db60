# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""The recipes for servers: what they send to some is in the background, what to others is not."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from cgroups import Tree, entering, netnice
from leftovers import sweep
from recipes import BACKGROUND, PLAIN, Watched, command, have
from shells import listening
from support import RECEIVER, SENDER, Link, Namespace, Process, wait_until

pytestmark = pytest.mark.soak
POSTGRES = Path("/usr/lib/postgresql/15/bin")
DATABASE_PORT = 5432
ORDINARY = ["unshare", "--map-user=65534"]
"""PostgreSQL refuses to be root: here it sees itself as nobody."""


class Service:
    """A unit of systemd, as far as netnice sees it: programs in a cgroup at the sender."""

    def __init__(self, link: Link, directory: Path) -> None:
        """Make the cgroup."""
        self.link, self.directory, self.tree = link, directory, Tree()

    def start(self, *words: str) -> Process:
        """Start a program of it."""
        return self.link.sender.start(*entering(self.tree.path), *words)

    def attach(self, page: str) -> None:
        """Run the command of a page, with this cgroup for the unit and the receiver for a net."""
        words = command(page).replace("--keep ", "").replace("192.0.2.0/24", RECEIVER)
        unit, found = re.subn(r"--unit \S+", f"--cgroup {self.tree.path}", words)
        assert found == 1
        netnice(*unit.split()[1:])


@pytest.fixture
def service(link: Link, tmp_path: Path) -> Iterator[Service]:
    """Make a service, and end it."""
    link.limit(200, 50)
    made = Service(link, tmp_path)
    yield made
    link.sender.clear()
    made.tree.remove()
    sweep()


def run(where: Namespace, *words: str, watched: Watched) -> str:
    """Run a program to its end, and watch meanwhile."""
    process = where.start(*words)
    wait_until(f"{words[0]} ends", lambda: watched.until_end_of(process))
    return process.succeed()


def test_a_base_backup_and_a_replica_are_in_the_background_and_queries_of_others_are_not(
    service: Service,
) -> None:
    programs = ("initdb", "postgres", "pg_basebackup", "psql", "pg_verifybackup")
    have(*(str(POSTGRES / program) for program in programs))
    initdb, postgres, pg_basebackup, psql, pg_verifybackup = (str(POSTGRES / p) for p in programs)
    link, data, copy = service.link, service.directory / "data", service.directory / "copy"
    link.sender.call(*ORDINARY, initdb, "-U", "postgres", "-A", "trust", "-N", "-D", str(data))
    with (data / "pg_hba.conf").open("a") as file:
        file.write("host all,replication postgres 10.0.0.0/8 trust\n")

    def server(of: Path, address: str) -> list[str]:
        options = [f"listen_addresses={address}", "unix_socket_directories=", "fsync=off"]
        settings = [word for option in options for word in ("-c", option)]
        return [*ORDINARY, postgres, "-D", str(of), *settings]

    def query(where: Namespace, address: str, text: str) -> str:
        return where.call(psql, "-h", address, "-U", "postgres", "-Atc", text).strip()

    primary = service.start(*server(data, SENDER))
    listening(link.sender, DATABASE_PORT)
    query(
        link.router,
        SENDER,
        "create table t as select md5(n::text) from generate_series(1, 40000) n",
    )
    service.attach("postgresql")
    watched = Watched(link.sender)
    user = link.router.start(psql, "-h", SENDER, "-U", "postgres", "-At")  # somebody waits for it
    user.tell("select 1;")
    assert user.line() == "1"
    run(link.receiver, pg_basebackup, "-c", "fast", "-h", SENDER, "-U", "postgres", "-R", "-D", str(copy),
        watched=watched)  # fmt: skip
    link.receiver.call(pg_verifybackup, str(copy))  # every file's checksum is the server's
    replica = link.receiver.start(*server(copy, RECEIVER))
    wait_until("the replica answers", lambda: link.receiver.call("ss", "-Hltn"))
    digest = "select count(*), md5(string_agg(md5, '' order by md5)) from t"
    user.tell("insert into t select md5(n::text) from generate_series(1, 20000) n;")
    assert user.line() == "INSERT 0 20000"
    expected = query(link.router, SENDER, digest)
    assert expected.startswith("60000|")
    wait_until("the replica has caught up", lambda: watched.look() or
               query(link.receiver, RECEIVER, digest) == expected)  # fmt: skip
    assert watched.to(RECEIVER) == {BACKGROUND}
    assert watched.to("10.0.1.254") == {PLAIN}
    for running in (replica, primary):
        running.popen.send_signal(signal.SIGINT)  # without waiting for its clients
        running.succeed()
