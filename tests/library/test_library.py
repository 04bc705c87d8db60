# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""libnetnice: what it exports and calls, its callers in other languages, and every misuse.

Beside a C compiler it needs clang, and Debian's abigail-tools and python3-cffi.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HERE, ROOM = ROOT / "tests" / "library", ROOT / "libnetnice"
HEADER, RECORDED = ROOM / "netnice.h", ROOM / "netnice.abi"
SANITIZE = "-g -O1 -fsanitize=address,undefined -fno-sanitize-recover=all"
ABI = ("--no-corpus-path", "--no-comp-dir-path", "--no-show-locs")


def run(*words: str | Path, **environment: str) -> str:
    """Run a command that succeeds; return what it prints."""
    done = subprocess.run(
        [str(w) for w in words],
        env=os.environ | environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
    return done.stdout


def make(out: Path, *words: str) -> Path:
    """Build what `make lib` builds into another folder."""
    run("make", "-s", "-j2", "-C", ROOM, f"OUT={out}", *words)
    return out


@pytest.fixture(scope="module")
def built() -> Path:
    """Return the folder with the libraries."""
    return make(ROOT / "build" / "lib")


@pytest.fixture(scope="module")
def installed(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the prefix below which all is installed."""
    place = tmp_path_factory.mktemp("place")
    make(built, "install", f"PREFIX={place}")
    return place


@pytest.fixture(scope="module")
def watched() -> list[Path]:
    """Return the objects, compiled with sanitizers."""
    out = make(ROOT / "build" / "lib-watched", "objects", f"CFLAGS={SANITIZE}")
    return sorted(out.glob("*.o"))


def flags(prefix: Path) -> list[str]:
    """Return what pkg-config says."""
    path = str(prefix / "lib" / "pkgconfig")
    return run("pkg-config", "--cflags", "--libs", "netnice", PKG_CONFIG_PATH=path).split()


def declared() -> set[str]:
    """Return the functions of the public header."""
    return set(re.findall(r"^[a-z][\w ]*[ *](netnice_\w+)\(", HEADER.read_text(), re.M))


def names(*words: str | Path) -> set[str]:
    """Return the names that nm prints, without versions."""
    lines = run("nm", *words).splitlines()
    return {line.split()[-1].partition("@")[0] for line in lines if line.startswith((" ", "0"))}


def test_it_exports_what_the_header_declares_and_calls_memcpy_and_memset_at_most(
    built: Path,
) -> None:
    shared, static = built / "libnetnice.so", built / "libnetnice.a"
    versions = {"NETNICE_0.1"}
    assert names("-D", "--defined-only", shared) - versions == declared()
    assert names("-g", "--defined-only", static) == declared()
    assert names("-D", "--undefined-only", shared) <= {"memcpy", "memset"}
    table = {"_GLOBAL_OFFSET_TABLE_"}  # the linker's
    assert names("--undefined-only", static) - table <= {"memcpy", "memset"}


def test_its_soname_and_its_symbols_have_versions(built: Path) -> None:
    assert "[libnetnice.so.0]" in run("readelf", "-d", built / "libnetnice.so")
    assert "netnice_ack@@NETNICE_0.1" in run("nm", "-D", built / "libnetnice.so")


def test_no_data_of_it_can_be_written(built: Path) -> None:
    sections = re.findall(
        r" (\.\w[\w.]*) +\w+ +\w+ +\w+ +(\w+)", run("readelf", "-SW", built / "libnetnice.so")
    )
    assert not [
        (name, size) for name, size in sections if name in {".data", ".bss"} and int(size, 16)
    ]


def test_its_abi_is_the_recorded_one(built: Path, tmp_path: Path) -> None:
    now = tmp_path / "now.abi"
    run("abidw", *ABI, "--out-file", now, built / "libnetnice.so")
    differs = subprocess.run(
        ["abidiff", str(RECORDED), str(now)], capture_output=True, text=True, check=False
    )  # fmt: skip
    assert differs.returncode == 0, f"{differs.stdout}\nOn purpose? Then: libnetnice/record-abi"


def test_a_change_of_the_abi_is_noticed(built: Path, tmp_path: Path) -> None:
    changed = tmp_path / "changed.abi"
    text = RECORDED.read_text()
    assert text.count("name='netnice_ack'") >= 1
    changed.write_text(
        text.replace("netnice_ack'", "netnice_ackn'").replace("netnice_ack@", "netnice_ackn@")
    )
    differs = subprocess.run(
        ["abidiff", str(changed), str(built / "libnetnice.so")], capture_output=True, check=False
    )  # fmt: skip
    assert differs.returncode != 0


def test_every_misuse_is_answered_with_its_error(watched: list[Path], tmp_path: Path) -> None:
    program = tmp_path / "misuse"
    run("cc", "-std=c11", *SANITIZE.split(), "-o", program, HERE / "misuse.c", *watched)
    assert run(program) == "every misuse has its error\n"


def test_the_golden_steps_give_the_answers_of_the_core(watched: list[Path], tmp_path: Path) -> None:
    program = tmp_path / "same"
    run("cc", "-std=c11", *SANITIZE.split(), "-o", program, HERE / "same.c", *watched)
    listed = re.findall(r"^NN_ALGORITHM\(", (ROOT / "core" / "algorithms.def").read_text(), re.M)
    assert run(program).startswith(f"{len(listed)} algorithms, ")


def test_a_group_whose_flows_go_to_different_hosts_does_not_take_a_longer_path_for_a_queue(
    watched: list[Path], tmp_path: Path
) -> None:
    program = tmp_path / "paths"
    run("cc", "-std=c11", *SANITIZE.split(), "-o", program, HERE / "paths.c", *watched)
    assert int(run(program, "apart")) > 100 * int(run(program))


def test_cplusplus_can_call_it(installed: Path, tmp_path: Path) -> None:
    program = tmp_path / "caller"
    run("c++", "-Wall", "-Wextra", "-Werror", "-o", program, HERE / "caller.cc", *flags(installed))
    assert run(program, LD_LIBRARY_PATH=str(installed / "lib")) == "smaller window\n"


def test_python_can_call_it(installed: Path) -> None:
    caller = HERE / "caller.py"
    library = installed / "lib" / "libnetnice.so.0"
    found = run("/usr/bin/python3", caller, installed / "include" / "netnice.h", library)
    assert found == "5 5\n"  # half of ten packets


@pytest.fixture
def echo() -> Iterator[int]:
    """Return the port of a peer that returns the first bytes of packets, but for one in fifty."""
    peer = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    peer.bind(("127.0.0.1", 0))

    def serve() -> None:
        for i in range(1 << 20):
            packet, sender = peer.recvfrom(2000)
            if not packet:
                return
            if i % 50 != 49:
                peer.sendto(packet[:4], sender)

    thread = threading.Thread(target=serve)
    thread.start()
    port = int(peer.getsockname()[1])
    yield port
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"", ("127.0.0.1", port))
    thread.join()
    peer.close()


def test_the_example_delivers_all_but_what_is_lost(
    installed: Path, echo: int, tmp_path: Path
) -> None:
    program = tmp_path / "udp"
    source = installed / "share" / "doc" / "netnice" / "examples" / "udp.c"
    run("cc", "-Wall", "-Wextra", "-Werror", "-o", program, source, *flags(installed))
    told = run(program, str(echo), "1000", LD_LIBRARY_PATH=str(installed / "lib"))
    delivered, lost = map(int, re.findall(r"\d+", told))
    assert delivered + lost == 1000
    assert 20 <= lost <= 40  # 1 in 50, and what was late


def test_nothing_is_left_of_it_after_it_was_removed(built: Path, tmp_path: Path) -> None:
    make(built, "install", "PREFIX=/usr", f"DESTDIR={tmp_path}")
    found = {f.name for f in tmp_path.rglob("*") if not f.is_dir()}
    shared = {"libnetnice.so", "libnetnice.so.0", "libnetnice.so.0.1.0"}
    assert found == shared | {"libnetnice.a", "netnice.h", "netnice.pc", "udp.c"}
    assert "prefix=/usr\n" in (tmp_path / "usr" / "lib" / "pkgconfig" / "netnice.pc").read_text()
    make(built, "uninstall", "PREFIX=/usr", f"DESTDIR={tmp_path}")
    assert not [f for f in tmp_path.rglob("*") if not f.is_dir()]


def test_what_is_needed_is_here() -> None:
    assert shutil.which("abidiff") and shutil.which("pkg-config"), "make build/lib-deps"
