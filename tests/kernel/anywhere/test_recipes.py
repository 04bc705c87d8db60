# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""The first command of each recipe in docs/recipes, with its real program and a real server."""

from __future__ import annotations

import subprocess
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from recipes import (
    BACKGROUND,
    PAGES,
    PLAIN,
    REGISTRY_PORT,
    Job,
    Watched,
    command,
    contents,
    fill,
    have,
)
from replicas import tree
from shells import SSH_PORT
from support import PORT, RECEIVER, Link, wait_until


def copied(job: Job) -> None:
    assert tree(job.server / "home") == tree(job.source)


def copied_without_links(job: Job) -> None:
    assert contents(job.server / "home") == contents(job.source)


def restored_by_restic(job: Job) -> None:
    repository = f"-r {job.server}/restic"
    job.run(f"restic {repository} restore latest --target {job.directory}/restored")
    assert tree(job.directory / "restored" / job.source.relative_to("/")) == tree(job.source)


def restored_by_borg(job: Job) -> None:
    job.run(f"cd {job.server}; borg extract borg::$(borg list --short borg)")
    assert tree(job.server / job.source.relative_to("/")) == tree(job.source)


def restored_by_duplicity(job: Job) -> None:
    job.run(f"duplicity restore file://{job.server}/duplicity {job.directory}/restored")
    assert contents(job.directory / "restored") == contents(job.source)


def pulled(job: Job) -> None:
    """Fetch the image as others do; the archive that it was made of is its only layer."""
    job.run(
        f"skopeo copy --src-tls-verify=false "
        f"docker://registry.example.net/app dir:{job.directory}/pulled"
    )
    (layer,) = filter(is_gzip, (job.directory / "pulled").iterdir())
    with tarfile.open(layer) as archive:
        archive.extractall(job.directory / "unpacked", filter="data")
    assert contents(job.directory / "unpacked") == contents(job.source)


def is_gzip(file: Path) -> bool:
    return file.read_bytes().startswith(b"\x1f\x8b")


def registry_with_an_image_to_push(job: Job) -> None:
    job.serve_registry()
    job.run("tar -cf /srv/app.tar -C /home a; "
            "podman import -q /srv/app.tar registry.example.net/app")  # fmt: skip


@dataclass(frozen=True)
class Recipe:
    """What a page needs, and how it is seen that all has arrived."""

    programs: tuple[str, ...]
    first: Callable[[Job], None]
    arrived: Callable[[Job], None]
    port: int = SSH_PORT


def runs(command: str) -> Callable[[Job], None]:
    return lambda job: job.run(command)


RECIPES = {
    "rsync": Recipe(("rsync",), runs("true"), copied),
    "restic": Recipe(("restic",), runs("restic -r /srv/restic init"), restored_by_restic),
    "borg": Recipe(("borg",), runs("borg init -e none /srv/borg"), restored_by_borg),
    "rclone": Recipe(("rclone",), runs("true"), copied_without_links),
    "duplicity": Recipe(("duplicity", "gpg"), runs("mkdir /srv/duplicity"), restored_by_duplicity),
    "registry": Recipe(
        ("podman", "skopeo"), registry_with_an_image_to_push, pulled, REGISTRY_PORT
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    "page", ["rsync", *(pytest.param(p, marks=pytest.mark.soak) for p in list(RECIPES)[1:])]
)
def test_all_connections_of_the_job_and_no_others_are_in_the_background(
    link: Link, tmp_path: Path, page: str
) -> None:
    recipe = RECIPES[page]
    have(*recipe.programs)
    link.limit(30, 50)
    job = Job(link, tmp_path)
    fill(job.source)
    job.serve_shells()
    recipe.first(job)
    job.run("ssh backup true")  # a master runs from now on
    link.receiver.listen(RECEIVER, PORT)
    other = link.sender.open_socket(2, 1)  # somebody else's
    other.connect((RECEIVER, PORT))
    watched = Watched(link.sender)
    others = set(watched.ways)
    assert len(others) == 2
    running = job.start(job.here(command(page)))
    wait_until("the job ends", lambda: watched.until_end_of(running))
    running.succeed()
    assert "netnice:" not in running.errors  # which would say what was not in the background
    own = {ends: ways for ends, ways in watched.ways.items() if ends not in others}
    assert own
    assert {remote for _, remote in own} == {f"{RECEIVER}:{recipe.port}"}
    assert set().union(*own.values()) == {BACKGROUND}
    assert {control for ends in others for control, _ in watched.ways[ends]} == {PLAIN[0]}
    recipe.arrived(job)
    # after ControlPersist the shared connection ends by itself
    leave = ["/usr/bin/ssh", "-F", str(tmp_path / "ssh_config"), "-O", "exit", "backup"]
    subprocess.run(leave, capture_output=True, check=False)


@pytest.mark.parametrize("page", sorted(PAGES.glob("*.md")), ids=str)
def test_a_recipe_is_short(page: Path) -> None:
    assert len(page.read_text().splitlines()) <= 40
