# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""The commands of docs/recipes, and which connections of the sender were in the background."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

from classes import DEFAULT
from replicas import tree
from shells import SSH_PORT, Shells, listening
from support import LE, MEMORY, RECEIVER, ROOT, Link, Namespace, Process

PAGES = ROOT / "docs" / "recipes"
SIZE = 3_000_000
BACKGROUND = (DEFAULT, LE)
PLAIN = ("reno", 0)
REGISTRY_NAME = "registry.example.net"
REGISTRY_PORT = 80

REGISTRY = """version: 0.1
storage: {{filesystem: {{rootdirectory: {directory}/server/registry}}}}
http: {{addr: "{address}:{port}"}}
"""
REGISTRIES = """[[registry]]
location = "{name}"
insecure = true
"""
STORAGE = """[storage]
driver = "vfs"
graphroot = "{directory}/images"
runroot = "{directory}/run"
"""
NGINX = """daemon off;
user root;
pid {directory}/pid;
events {{}}
http {{
  access_log off;
  client_body_temp_path {directory}/b; proxy_temp_path {directory}/p;
  fastcgi_temp_path {directory}/f; uwsgi_temp_path {directory}/u; scgi_temp_path {directory}/s;
  server {{ listen {address}:80; root {root}; {more} }}
}}
"""
NAMED = 'mount --bind "$0" /etc/hosts; exec "$@"'
"""Runs a command for which a file has the names of hosts."""


def command(page: str, begins: str = "netnice ") -> str:
    """Return the first command of a page that begins so, without sudo."""
    text = (PAGES / f"{page}.md").read_text()
    found = re.search(rf"^    (?:sudo )?({re.escape(begins)}.*)$", text, re.M)
    assert found, (page, begins)
    return found[1]


def have(*programs: str) -> None:
    """Fail if one of these is not installed."""
    for program in programs:
        found = shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin")
        assert found, f"{program} is missing: make build/recipe-deps"


def fill(home: Path, size: int = SIZE) -> None:
    """Write a few files."""
    (home / "a" / "b").mkdir(parents=True)
    for n in range(3):
        (home / "a" / f"file {n}").write_bytes(os.urandom(size // 3))
    (home / "a" / "b" / "link").symlink_to("../file 1")


def contents(root: Path) -> dict[str, object]:
    """Return what is in the files, for what keeps no links, or times of whole seconds."""
    found = tree(root).items()
    return {path: content for path, (_, _, content) in found if not path.startswith("a/b")}


class Watched:
    """How each connection of a namespace was seen to be sent."""

    def __init__(self, where: Namespace) -> None:
        """Begin with those that are there."""
        self.where = where
        self.ways: dict[tuple[str, str], set[tuple[str, int]]] = {}
        self.look()

    def look(self) -> bool:
        """Look once more; return nothing that is true."""
        for c in self.where.connections():
            self.ways.setdefault((c.local, c.remote), set()).add((c.control, c.tos))
        return False

    def until_end_of(self, process: Process) -> bool:
        """Look, and whether a process has ended."""
        return self.look() or process.ended()

    def by(self, wanted: Callable[[int], bool]) -> list[set[tuple[str, int]]]:
        """Return how each to a port was sent that is `wanted`."""
        return [w for (_, remote), w in self.ways.items() if wanted(int(remote.split(":")[-1]))]

    def to(self, address: str) -> set[tuple[str, int]]:
        """Return how those to a host were sent."""
        names = (f"{address}:", f"[::ffff:{address}]:")  # the second: a listener for both IPs
        found = [ways for (_, remote), ways in self.ways.items() if remote.startswith(names)]
        return set().union(*found)


class Job:
    """A recipe in the network of a link: its hosts `backup` and the registry are the receiver."""

    def __init__(self, link: Link, directory: Path) -> None:
        """Write what the programs read."""
        self.link, self.directory = link, directory
        self.server = directory / "server"
        self.source = directory / "home"
        for made in (self.server, self.source, directory / "bin", directory / ".ssh"):
            made.mkdir()
        self.write("rclone.conf", f"[backup]\ntype = sftp\nhost = {RECEIVER}\nport = {SSH_PORT}\n"
                   f"user = root\nkey_file = {directory}/user\n")  # fmt: skip
        self.write("password", "secret")
        places = {
            "directory": directory,
            "address": RECEIVER,
            "port": REGISTRY_PORT,
            "name": REGISTRY_NAME,
        }
        self.write("registry.yml", REGISTRY.format(**places))
        self.write("hosts", f"127.0.0.1 localhost\n{RECEIVER} {REGISTRY_NAME} example.org\n")
        self.write("registries.conf", REGISTRIES.format(**places))
        self.write("storage.conf", STORAGE.format(**places))

    def write(self, name: str, text: str) -> None:
        """Write a file of settings."""
        (self.directory / name).write_text(text)

    def here(self, command: str) -> str:
        """Return a command of a page with the places of this test."""
        places = {"/srv": str(self.server), "/home": str(self.source)}
        return re.sub("/srv|(?<!/srv)/home", lambda found: places[found[0]], command)

    def environment(self) -> dict[str, object]:
        """Return what the programs find in their environment."""
        return {
            "PATH": f"{self.directory}/bin:{MEMORY}:{os.environ['PATH']}", "HOME": self.directory,
            "RESTIC_PASSWORD_FILE": self.directory / "password", "PASSPHRASE": "secret",
            "RCLONE_CONFIG": self.directory / "rclone.conf", "BORG_PASSPHRASE": "secret",
            "BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK": "yes",
            "BORG_RELOCATED_REPO_ACCESS_IS_OK": "yes",  # its server asks for it by its own path
            "CONTAINERS_STORAGE_CONF": self.directory / "storage.conf",
            "CONTAINERS_REGISTRIES_CONF": self.directory / "registries.conf",
        }  # fmt: skip

    def start(self, command: str, *under: str) -> Process:
        """Start a command with the programs' environment."""
        pairs = [f"{name}={value}" for name, value in self.environment().items()]
        return self.link.sender.start(
            *under, "unshare", "-m", "sh", "-ec", NAMED, f"{self.directory}/hosts",
            "env", *pairs, "sh", "-ec", command,
        )  # fmt: skip

    def run(self, command: str) -> None:
        """Run a command to its end, not in the background."""
        self.start(self.here(command)).succeed()

    def serve_shells(self) -> None:
        """Start sshd at the receiver, and have ssh as people do who share connections."""
        shells = Shells(self.link, self.directory)
        host = f"Host backup\nHostName {RECEIVER}\n"
        # duplicity's own ssh reads these
        self.write(".ssh/config", host + shells.config.read_text())
        shutil.copy(self.directory / "known", self.directory / ".ssh" / "known_hosts")
        shells.config.write_text(
            f"{host}HostKeyAlias [{RECEIVER}]:{SSH_PORT}\n"
            f"ControlMaster auto\nControlPath {self.directory}/master\nControlPersist 60\n"
            + shells.config.read_text()
        )
        ssh = self.directory / "bin" / "ssh"
        ssh.write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F {shells.config} "$@"\n')
        ssh.chmod(0o755)

    def serve_registry(self) -> None:
        """Start a container registry at the receiver."""
        have("docker-registry")
        self.link.receiver.start("docker-registry", "serve", f"{self.directory}/registry.yml")
        listening(self.link.receiver, REGISTRY_PORT)
