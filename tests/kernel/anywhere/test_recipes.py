# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""The first command of each recipe in docs/recipes, with its real program and a real server."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from classes import DEFAULT
from replicas import tree
from shells import SSH_PORT, Shells
from support import LE, MEMORY, PORT, RECEIVER, ROOT, Link, Process, call, wait_until

SIZE = 3_000_000


class Job:
    """A recipe in the network of a link: its host `backup` is the receiver."""

    def __init__(self, link: Link, directory: Path, page: str) -> None:
        """Write what the programs read, and the files to send."""
        self.link, self.directory = link, directory
        self.server = directory / "server"
        self.source = directory / "home"
        for made in (self.server, self.source / "a" / "b", directory / "bin"):
            made.mkdir(parents=True)
        for n in range(3):
            (self.source / "a" / f"file {n}").write_bytes(os.urandom(SIZE // 3))
        (self.source / "a" / "b" / "link").symlink_to("../file 1")
        shells = Shells(link, directory)
        # as people have it who share connections, and have one open
        shells.config.write_text(
            f"Host backup\nHostName {RECEIVER}\nHostKeyAlias [{RECEIVER}]:{SSH_PORT}\n"
            f"ControlMaster auto\nControlPath {directory}/master\nControlPersist 60\n"
            + shells.config.read_text()
        )
        ssh = directory / "bin" / "ssh"
        ssh.write_text(f'#!/bin/sh\nexec /usr/bin/ssh -F {shells.config} "$@"\n')
        ssh.chmod(0o755)
        (directory / "rclone.conf").write_text(
            f"[backup]\ntype = sftp\nhost = {RECEIVER}\nport = {SSH_PORT}\nuser = root\n"
            f"key_file = {directory}/user\n"
        )
        (directory / "password").write_text("secret")
        text = (ROOT / "docs" / "recipes" / f"{page}.md").read_text()
        found = re.search(r"^    sudo (netnice run .*)$", text, re.M)
        assert found, page
        self.command = self.here(found[1])

    def here(self, command: str) -> str:
        """Return a command of a page with the places of this test."""
        places = {"/srv": str(self.server), "/home": str(self.source)}
        return re.sub("/srv|(?<!/srv)/home", lambda found: places[found[0]], command)

    def start(self, command: str) -> Process:
        """Start a command with the programs' environment."""
        environment = {
            "PATH": f"{self.directory}/bin:{MEMORY}:{os.environ['PATH']}", "HOME": self.directory,
            "RESTIC_PASSWORD_FILE": self.directory / "password",
            "RCLONE_CONFIG": self.directory / "rclone.conf", "BORG_PASSPHRASE": "secret",
            "BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK": "yes",
            "BORG_RELOCATED_REPO_ACCESS_IS_OK": "yes",  # its server asks for it by its own path
        }  # fmt: skip
        pairs = [f"{name}={value}" for name, value in environment.items()]
        return self.link.sender.start("env", *pairs, "sh", "-ec", command)

    def run(self, command: str) -> None:
        """Run a command to its end, not in the background."""
        self.start(self.here(command)).succeed()


def copied(job: Job) -> None:
    assert tree(job.server / "home") == tree(job.source)


def copied_without_links(job: Job) -> None:
    """SFTP has whole seconds and, to rclone, no symbolic links: compare what is in the files."""
    copy = {path: content for path, (_, _, content) in tree(job.server / "home").items()}
    assert copy == {p: c for p, (_, _, c) in tree(job.source).items() if not p.startswith("a/b")}


def restored_by_restic(job: Job) -> None:
    repository = f"-r {job.server}/restic"
    job.run(f"restic {repository} restore latest --target {job.directory}/restored")
    assert tree(job.directory / "restored" / job.source.relative_to("/")) == tree(job.source)


def restored_by_borg(job: Job) -> None:
    job.run(f"cd {job.server}; borg extract borg::$(borg list --short borg)")
    assert tree(job.server / job.source.relative_to("/")) == tree(job.source)


RECIPES: dict[str, tuple[str, str, Callable[[Job], None]]] = {
    "rsync": ("rsync", "true", copied),
    "restic": ("restic", "restic -r /srv/restic init", restored_by_restic),
    "borg": ("borg", "borg init -e none /srv/borg", restored_by_borg),
    "rclone": ("rclone", "true", copied_without_links),
}
"""By the page: the program, what is done once before, and how it is seen that all has arrived."""


@pytest.mark.parametrize(
    "page", ["rsync", *(pytest.param(p, marks=pytest.mark.soak) for p in list(RECIPES)[1:])]
)
def test_all_connections_of_the_job_and_no_others_are_in_the_background(
    link: Link, tmp_path: Path, page: str
) -> None:
    program, first, arrived = RECIPES[page]
    assert shutil.which(program), f"{program} is missing: make build/recipe-deps"
    link.limit(30, 50)
    job = Job(link, tmp_path, page)
    job.run(first)
    job.run("ssh backup true")  # a master runs from now on
    link.receiver.listen(RECEIVER, PORT)
    other = link.sender.open_socket(2, 1)  # somebody else's
    other.connect((RECEIVER, PORT))
    (master,) = [c.local for c in link.sender.connections() if c.remote.endswith(f":{SSH_PORT}")]
    running = job.start(job.command)
    seen: dict[str, set[tuple[str, int]]] = {}
    control: dict[str, str] = {}

    def ended() -> bool:
        for c in link.sender.connections():
            seen.setdefault(c.local, set()).add((c.control, c.tos))
            control[c.local] = c.remote
        return running.ended()

    wait_until("the job ends", ended)
    running.succeed()
    assert "netnice:" not in running.errors  # which would say what was not in the background
    own = [local for local, remote in control.items() if remote.endswith(f":{SSH_PORT}")]
    own.remove(master)
    assert own
    assert {way for local in own for way in seen[local]} == {(DEFAULT, LE)}
    assert {control for local in seen if local not in own for control, _ in seen[local]} == {"reno"}
    arrived(job)
    call("/usr/bin/ssh", "-F", str(tmp_path / "ssh_config"), "-O", "exit", "backup")


@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "recipes").glob("*.md")), ids=str)
def test_a_recipe_is_short(page: Path) -> None:
    assert len(page.read_text().splitlines()) <= 40
