# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""The recipes for servers: what they send to some is in the background, what to others is not."""

from __future__ import annotations

import gzip
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from cgroups import Tree, entering, netnice
from leftovers import swept
from recipes import BACKGROUND, NGINX, PAGES, PLAIN, Watched, command, contents, fill, have
from shells import listening
from support import PORT, RECEIVER, SENDER, Link, Namespace, Process, call, wait_until

pytestmark = pytest.mark.soak
ROUTER = "10.0.1.254"
"""The router, as the sender reaches it."""
POSTGRES = Path("/usr/lib/postgresql/15/bin")
ORDINARY = ["unshare", "--map-user=65534"]
"""PostgreSQL refuses to be root: here it sees itself as nobody."""
APT_MIRROR = """set base_path {directory}
set run_postmirror 0
set _tilde 0
deb http://{address}/ ./
"""
SYNCTHING = """<configuration version="36">
  <device id="{sender}"><address>tcp://{sender_address}:22000</address></device>
  <device id="{receiver}"><address>tcp://{receiver_address}:22000</address></device>
  <folder id="home" path="{path}">
    <device id="{sender}"/><device id="{receiver}"/>
  </folder>
  <gui enabled="true"><address>127.0.0.1:8384</address></gui>
  <options>
    <listenAddress>{listen}</listenAddress>
    <globalAnnounceEnabled>false</globalAnnounceEnabled>
    <localAnnounceEnabled>false</localAnnounceEnabled>
    <relaysEnabled>false</relaysEnabled>
    <natEnabled>false</natEnabled>
    <startBrowser>false</startBrowser>
    <autoUpgradeIntervalH>0</autoUpgradeIntervalH>
    <crashReportingEnabled>false</crashReportingEnabled>
    <urAccepted>-1</urAccepted>
  </options>
</configuration>
"""


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
    link.remove()
    made.tree.remove()
    wait_until("nothing is left", swept)


def run(where: Namespace, *words: str, watched: Watched) -> str:
    """Run a program to its end, and watch meanwhile."""
    process = where.start(*words)
    wait_until(f"{words[0]} ends", lambda: watched.until_end_of(process))
    return process.succeed()


def test_a_base_backup_and_a_replica_are_in_the_background_and_queries_of_others_are_not(
    service: Service,
) -> None:
    programs = [
        str(POSTGRES / name)
        for name in ("initdb", "postgres", "pg_basebackup", "pg_isready", "psql", "pg_verifybackup")
    ]
    have(*programs)
    initdb, postgres, pg_basebackup, pg_isready, psql, pg_verifybackup = programs
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

    def wait_for(where: Namespace, address: str) -> None:
        """Wait until a server lets clients in: before, it listens and says that it starts up."""
        ready = (pg_isready, "-q", "-h", address)
        wait_until(f"{address} answers", lambda: where.start(*ready).status() == 0)

    primary = service.start(*server(data, SENDER))
    wait_for(link.sender, SENDER)
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
    run(link.receiver, pg_basebackup, "-h", SENDER, "-U", "postgres", "-D", str(copy), "-R",
        "-c", "fast", watched=watched)  # fmt: skip
    link.receiver.call(pg_verifybackup, str(copy))  # every file's checksum is the server's
    replica = link.receiver.start(*server(copy, RECEIVER))
    wait_for(link.receiver, RECEIVER)
    digest = "select count(*), md5(string_agg(md5, '' order by md5)) from t"
    user.tell("insert into t select md5(n::text) from generate_series(1, 20000) n;")
    assert user.line() == "INSERT 0 20000"
    expected = query(link.router, SENDER, digest)
    assert expected.startswith("60000|")
    wait_until("the replica has caught up", lambda: watched.look() or
               query(link.receiver, RECEIVER, digest) == expected)  # fmt: skip
    assert watched.to(RECEIVER) == {BACKGROUND}
    assert watched.to(ROUTER) == {PLAIN}
    for running in (replica, primary):
        running.popen.send_signal(signal.SIGINT)  # without waiting for its clients
        running.succeed()


def test_an_apt_mirror_serves_mirrors_in_the_background_and_others_as_before(
    service: Service,
) -> None:
    have("nginx", "apt-mirror", "wget", "dpkg-deb", "dpkg-scanpackages")
    link, directory = service.link, service.directory
    fill(directory / "package" / "usr")
    (directory / "package" / "DEBIAN").mkdir()
    (directory / "package" / "DEBIAN" / "control").write_text(
        "Package: example\nVersion: 1\nArchitecture: all\nMaintainer: x <x@example.net>\n"
        "Description: example\n"
    )
    pool = directory / "home" / "pool"
    pool.mkdir(parents=True)
    call(
        "dpkg-deb", "--build", "-Znone", str(directory / "package"), str(pool / "example_1_all.deb")
    )
    index = subprocess.run(
        ["dpkg-scanpackages", "pool"], cwd=pool.parent, capture_output=True, check=True
    ).stdout
    (pool.parent / "Packages").write_bytes(index)
    (pool.parent / "Packages.gz").write_bytes(gzip.compress(index))
    (pool.parent / "Release").write_text("Origin: example\n")
    (directory / "nginx.conf").write_text(
        NGINX.format(directory=directory, address=SENDER, root=directory / "home", more="")
    )
    service.start("nginx", "-p", str(directory), "-c", f"{directory}/nginx.conf")
    listening(link.sender, 80)
    service.attach("apt-mirror")
    watched = Watched(link.sender)
    (directory / "mirror.list").write_text(
        APT_MIRROR.format(directory=directory / "copy", address=SENDER)
    )
    for made in ("mirror", "skel", "var"):
        (directory / "copy" / made).mkdir(parents=True)
    user = link.router.start(
        "wget", "-q", "--limit-rate=1m", "-O", f"{directory}/got",
        f"http://{SENDER}/pool/example_1_all.deb",
    )  # fmt: skip
    wait_until("somebody downloads", lambda: watched.look() or watched.to(ROUTER))
    run(link.receiver, "apt-mirror", f"{directory}/mirror.list", watched=watched)
    wait_until("somebody's download ends", lambda: watched.until_end_of(user))
    user.succeed()
    expected = (pool / "example_1_all.deb").read_bytes()
    assert (directory / "got").read_bytes() == expected
    copy = directory / "copy" / "mirror" / SENDER / "pool" / "example_1_all.deb"
    assert copy.read_bytes() == expected
    assert watched.to(RECEIVER) == {BACKGROUND}
    assert watched.to(ROUTER) == {PLAIN}


def test_syncthing_sends_in_the_background_and_nobody_else(service: Service) -> None:
    have("syncthing")
    link, directory = service.link, service.directory
    fill(directory / "sender" / "home")
    expected = contents(directory / "sender" / "home")
    (directory / "receiver" / "home").mkdir(parents=True)
    listen = re.search("^    (tcp://.*)$", (PAGES / "syncthing.md").read_text(), re.M)
    assert listen
    ids = {}
    for host in ("sender", "receiver"):
        state = f"--home={directory}/{host}/state"
        call("syncthing", "generate", state, "--no-default-folder", "--skip-port-probing")
        ids[host] = call("syncthing", state, "--device-id").strip()
    link.receiver.listen(RECEIVER, PORT)
    link.sender.open_socket(2, 1).connect((RECEIVER, PORT))  # somebody else's
    watched = Watched(link.sender)
    (other,) = watched.ways

    for host, start in (("sender", service.start), ("receiver", link.receiver.start)):
        (directory / host / "state" / "config.xml").write_text(SYNCTHING.format(
            **ids, sender_address=SENDER, receiver_address=RECEIVER, listen=listen[1],
            path=directory / host / "home",
        ))  # fmt: skip
        start("env", f"HOME={directory}", "syncthing", f"--home={directory}/{host}/state",
              "--no-browser", "--no-restart", "--no-upgrade")  # fmt: skip
        if host == "sender":
            service.attach("syncthing")

    def copied() -> bool:
        watched.look()
        with suppress(FileNotFoundError):  # which has its final name meanwhile
            return expected.items() <= contents(directory / "receiver" / "home").items()
        return False

    wait_until("the copy is the same", copied)
    assert watched.ways.pop(other) == {PLAIN}
    assert watched.to(RECEIVER) == {BACKGROUND}
