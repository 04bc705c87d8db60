# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Programs that download, from real servers, where their receiver holds: docs/recipes.

Beside each the same host loads pages, at half the load of the line (K1). Prints figures as
`name value unit`, which the record of the soak keeps.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import shutil
import sys
import tarfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from pulls import APT, PAGES_PORT, REGISTRY_NAME, RUN, Pull, image, in_memory
from recipes import BACKGROUND, PLAIN, Watched, command, fill
from replicas import tree
from support import Link, call, wait_until

SIZE = 1_500_000
PARTS = 16
SEEDS = [1, 2]
PIP = Path("/usr/lib/python3/dist-packages/pip")


def file_to_fetch(pull: Pull) -> None:
    (pull.server / "large.iso").write_bytes(os.urandom(SIZE))
    pull.serve_files()


def file_fetched(pull: Pull) -> None:
    assert (pull.source / "large.iso").read_bytes() == (pull.server / "large.iso").read_bytes()


def files_to_fetch(pull: Pull) -> None:
    mirror = pull.server / "mirror"
    mirror.mkdir()
    for n in range(PARTS):
        (mirror / f"file{n}").write_bytes(os.urandom(SIZE // PARTS))
    urls = "".join(f"http://example.org/mirror/{file.name}\n" for file in mirror.iterdir())
    (pull.server / "list.txt").write_text(urls)
    pull.write("rclone.conf", "[mirror]\ntype = http\nurl = http://example.org/\n")
    pull.serve_files()


def files_fetched(pull: Pull) -> None:
    for file in (pull.server / "mirror").iterdir():
        assert (pull.source / "mirror" / file.name).read_bytes() == file.read_bytes()


def packages_to_upgrade(pull: Pull) -> None:
    """Three packages, whose former versions are installed."""
    installed, offered = "", ""
    (pull.server / "pool").mkdir()
    (pull.directory / "apt" / "state").mkdir(parents=True)
    for n in range(3):
        root = pull.directory / f"package{n}"
        (root / "DEBIAN").mkdir(parents=True)
        (root / "content").write_bytes(os.urandom(SIZE // 3))
        said = f"Package: example{n}\nArchitecture: all\nMaintainer: x <x@example.org>\n"
        (root / "DEBIAN" / "control").write_text(f"{said}Version: 2\nDescription: example\n")
        file = pull.server / "pool" / f"example{n}_2_all.deb"
        call("dpkg-deb", "--build", "-Znone", str(root), str(file))
        installed += f"{said}Version: 1\nStatus: install ok installed\nDescription: example\n\n"
        offered += (
            f"{said}Version: 2\nDescription: example\nFilename: pool/{file.name}\n"
            f"Size: {file.stat().st_size}\n"
            f"SHA256: {hashlib.sha256(file.read_bytes()).hexdigest()}\n\n"
        )
    (pull.server / "Packages.gz").write_bytes(gzip.compress(offered.encode()))
    (pull.server / "Release").write_text("Origin: example\n")
    pull.write("apt.conf", APT.format(directory=pull.directory, source=pull.source))
    pull.write("apt/status", installed)
    pull.write("apt/sources.list", "deb [trusted=yes] http://example.org/ ./\n")
    in_memory(Path("/usr/lib/apt/methods").iterdir())
    pull.serve_files()
    pull.job("apt-get -q update")


def packages_fetched(pull: Pull) -> None:
    fetched = {f.name: f.read_bytes() for f in pull.source.glob("apt/archives/*.deb")}
    assert fetched == {f.name: f.read_bytes() for f in (pull.server / "pool").iterdir()}


def wheel_to_install(pull: Pull) -> None:
    index = pull.server / "simple" / "example"
    index.mkdir(parents=True)
    content = os.urandom(SIZE)
    (pull.server / "content").write_bytes(content)
    info = "example-1.dist-info"
    with zipfile.ZipFile(index / "example-1-py3-none-any.whl", "w") as wheel:
        wheel.writestr("example/content", content)
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: example\nVersion: 1\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: x\n"
                       "Root-Is-Purelib: true\nTag: py3-none-any\n")  # fmt: skip
        wheel.writestr(f"{info}/RECORD", "")
    pull.serve_files()
    library = Path(f"/usr/lib/python3.{sys.version_info.minor}")
    in_memory(f for top in (library, PIP) for f in top.rglob("*.py*") if "test" not in f.parts)
    (pull.directory / "bin" / "pip").symlink_to("/usr/bin/pip")


def wheel_installed(pull: Pull) -> None:
    content = pull.source / "site" / "example" / "content"
    assert content.read_bytes() == (pull.server / "content").read_bytes()


def repository_to_clone(pull: Pull) -> None:
    made, bare = pull.directory / "project", pull.server / "project.git"
    fill(made, SIZE)
    git = f"git -C {made} -c user.name=x -c user.email=x@example.org"
    pull.run(f"git init -q {made}; {git} add .; {git} commit -q -m x; "
             f"git clone -q --bare {made} {bare}; git -C {bare} repack -adq")  # fmt: skip
    pull.serve_files()
    pull.serve_git()


def repository_cloned(pull: Pull) -> None:
    for part in ("a/file 0", "a/file 1", "a/file 2", "a/b/link"):
        original = (pull.directory / "project" / part).read_bytes()
        assert (pull.source / "project" / part).read_bytes() == original


def image_to_pull(pull: Pull) -> None:
    (pull.server / "content").write_bytes(os.urandom(SIZE))
    image(pull.server / "image", "content", (pull.server / "content").read_bytes())
    pull.serve_registry()
    pull.job(f"skopeo copy -q --dest-tls-verify=false oci:/srv/image docker://{REGISTRY_NAME}/app")


def image_pulled(pull: Pull) -> None:
    (layer,) = (f for f in pull.source.glob("app/blobs/sha256/*") if f.stat().st_size > SIZE)
    with tarfile.open(layer) as archive:
        content = archive.extractfile("content")
        assert content
        assert content.read() == (pull.server / "content").read_bytes()


def image_stored(pull: Pull) -> None:
    (stored,) = pull.directory.glob("images/vfs/dir/*/content")
    assert stored.read_bytes() == (pull.server / "content").read_bytes()
    shutil.rmtree(pull.directory / "images")


def tree_to_copy(pull: Pull) -> None:
    fill(pull.server / "home", SIZE)
    in_memory(["/usr/sbin/sshd"])
    pull.serve_shells()


def tree_copied(pull: Pull) -> None:
    assert tree(pull.source) == tree(pull.server / "home")


@dataclass(frozen=True)
class Download:
    """Where a command stands, what it needs, and how it is seen that all has arrived."""

    page: str
    begins: str
    programs: tuple[str, ...]
    first: Callable[[Pull], None]
    arrived: Callable[[Pull], None]
    connections: int = 1
    """At least so many for each run."""


GIT = ("git", "fcgiwrap", "nginx",
       *(f"/usr/lib/git-core/git-{part}" for part in ("remote-http", "http-backend")))  # fmt: skip

DOWNLOADS = {
    "curl": Download("updates", "curl", ("curl", "nginx"), file_to_fetch, file_fetched),
    "aria2": Download(
        "updates", "aria2c", ("aria2c", "nginx"), files_to_fetch, files_fetched, PARTS
    ),
    "apt": Download(
        "updates", "apt-get", ("apt-get", "nginx"), packages_to_upgrade, packages_fetched
    ),
    "pip": Download("updates", "pip", ("python3", "nginx"), wheel_to_install, wheel_installed),
    "git": Download("updates", "git", GIT, repository_to_clone, repository_cloned),
    "podman": Download(
        "registry",
        "podman pull",
        ("podman", "skopeo", "docker-registry"),
        image_to_pull,
        image_stored,
    ),
    "skopeo": Download(
        "registry",
        "skopeo copy docker:",
        ("skopeo", "docker-registry"),
        image_to_pull,
        image_pulled,
    ),
    "rsync": Download(
        "rsync",
        "rsync -e 'ssh -o ControlPath=none' -a backup:",
        ("rsync", "ssh", "sshd", "bash"),
        tree_to_copy,
        tree_copied,
    ),
    "rclone": Download(
        "rclone", "rclone sync mirror:", ("rclone", "nginx"), files_to_fetch, files_fetched, 4
    ),
}


@pytest.mark.soak
@pytest.mark.parametrize("name", DOWNLOADS)
def test_all_of_a_download_yields_and_pages_of_the_same_host_hardly_wait(
    link: Link, tmp_path: Path, name: str
) -> None:
    download = DOWNLOADS[name]
    pull = Pull(link, tmp_path, download.programs)
    download.first(pull)
    pull.slow_down()
    run = command(download.page, RUN + download.begins)
    pull.home.call("netnice", "hold", "eth")
    watched = Watched(pull.home)
    polite = []
    for seed in SEEDS:
        polite.append(pull.beside_pages(run, seed, watched))
        download.arrived(pull)
    assert set().union(*watched.by(lambda port: port == PAGES_PORT)) == {PLAIN}
    own = watched.by(lambda port: port != PAGES_PORT)
    assert set().union(*own) == {BACKGROUND}
    assert len(own) >= len(SEEDS) * download.connections
    known = pull.downloads()
    fetched = len(SEEDS) * SIZE
    print(known)
    assert known["narrowed"] > 0
    assert fetched <= known["background_bytes"] <= 1.1 * fetched
    wait_until("no connection of it is open", lambda: pull.downloads()["connections"] == 0)
    pull.home.call("netnice", "hold", "--off", "eth")

    plain = []
    for seed in SEEDS:
        plain.append(pull.beside_pages(run.removeprefix(RUN), seed, watched))
        download.arrived(pull)
    runs = {"yields": polite, "plain": plain}
    until_s = [max(r.ended_s for r in beside) for beside in zip(*runs.values(), strict=True)]
    alone = [pull.pages_alone(s, seed) for s, seed in zip(until_s, SEEDS, strict=True)]
    harms = {}
    for way, its in runs.items():
        harm = sum(r.mean_s() for r in its) / sum(
            a.mean_s(r) for a, r in zip(alone, its, strict=True)
        )
        took = sum(r.ended_s - r.began_s for r in its) / len(its)
        harms[way] = harm
        print(f"\ndownloads/{name}/{way}/harm {harm:.3f} ratio\n"
              f"downloads/{name}/{way}/took {took:.1f} s", flush=True)  # fmt: skip
    assert harms["yields"] < 1.2
    assert harms["yields"] < harms["plain"]
