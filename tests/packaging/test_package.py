# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""What `make package` wrote: what is in each package, and what is not."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from test_manual import PROGRAMS, ROOT, run

PACKAGE = ROOT / "build" / "package"
MOST = 12e6
"""Bytes of the command, stripped."""
LIBRARIES = {"libc6", "libelf1", "zlib1g"}
KINDS = ("deb", "rpm", "xz")


def package(kind: str) -> Path:
    """Return the only package of a kind."""
    (found,) = PACKAGE.glob(f"*.{kind}")
    return found


@pytest.fixture(scope="module")
def trees(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return what is in each package, unpacked; that of the archive as below /usr/local."""
    at = {kind: tmp_path_factory.mktemp(kind) for kind in KINDS}
    run("dpkg-deb", "-x", package("deb"), at["deb"])
    (at["xz"] / "usr/local").mkdir(parents=True)
    run("tar", "-xf", package("xz"), "-C", at["xz"] / "usr/local", "--strip-components=1")
    with subprocess.Popen(["rpm2archive", "-n", "-"], stdin=package("rpm").open("rb"),
                          stdout=subprocess.PIPE) as archive:  # fmt: skip
        subprocess.run(["tar", "-x", "-C", at["rpm"]], stdin=archive.stdout, check=True)
    return at


def files(tree: Path) -> set[str]:
    """Return the files of a tree as `make install` names them, below its prefix."""
    found = {f.relative_to(tree).as_posix() for f in tree.rglob("*") if not f.is_dir()}
    below = {re.sub(r"^usr/(local/)?", "", f).removesuffix(".gz") for f in found}
    debian = {"share/zsh/vendor-completions": "share/zsh/site-functions"}
    for there, here in debian.items():
        below = {f.replace(there, here) for f in below}
    return below - {"share/doc/netnice/changelog.Debian"}


def test_each_package_has_what_make_install_installs_and_the_list_of_crates(
    trees: dict[str, Path], tmp_path: Path
) -> None:
    run("make", "--silent", "install", f"DESTDIR={tmp_path}", "PREFIX=/usr")
    expected = files(tmp_path) | {"share/doc/netnice/crates.txt"}
    assert {kind: files(tree) ^ expected for kind, tree in trees.items()} == {
        kind: set() for kind in KINDS
    }


def programs(tree: Path) -> list[Path]:
    """Return the programs in a tree."""
    return [next(tree.rglob(f"bin/{name}")) for name in PROGRAMS]


def test_programs_are_stripped_and_the_command_is_small(trees: dict[str, Path]) -> None:
    for tree in trees.values():
        for program in programs(tree):
            assert ".symtab" not in run("readelf", "--sections", program)
        assert programs(tree)[0].stat().st_size <= MOST


def test_nothing_has_a_path_of_the_machine_in_it(trees: dict[str, Path]) -> None:
    paths = [str(ROOT).encode(), str(Path.home()).encode() + b"/.", b"index.crates.io"]
    for tree in trees.values():
        for file in filter(Path.is_file, tree.rglob("*")):
            assert [p for p in paths if p in file.read_bytes()] == [], file


def test_the_archive_needs_no_library(trees: dict[str, Path]) -> None:
    for program in programs(trees["xz"]):
        assert "NEEDED" not in run("readelf", "--dynamic", program)
        assert "INTERP" not in run("readelf", "--segments", program)


def test_the_deb_depends_on_libraries_alone() -> None:
    depends = run("dpkg-deb", "--field", package("deb"), "Depends")
    assert {d.split()[0] for d in depends.split(",")} == LIBRARIES


def test_the_units_calls_what_is_in_the_package(trees: dict[str, Path]) -> None:
    for kind, prefix in {"deb": "/usr", "rpm": "/usr", "xz": "/usr/local"}.items():
        (unit,) = trees[kind].rglob("netnice-replicate@.service")
        called = set(re.findall(r"^Exec\w+=(\S+)", unit.read_text(), re.M))
        assert called == {f"{prefix}/bin/netnice"}


def test_lintian_finds_no_error() -> None:
    said = run("lintian", "--allow-root", "--fail-on", "error", package("deb"))
    assert not re.search(r"^E: ", said, re.M), said


def test_the_rpm_ends_what_is_in_the_kernel_before_it_is_removed() -> None:
    scripts = run("rpm", "-qp", "--scripts", package("rpm"))
    removed = scripts.partition("preuninstall scriptlet")[2].partition("postuninstall")[0]
    assert (ROOT / "packaging/scripts/prerm").read_text().strip() in removed
