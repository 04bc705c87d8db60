# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Each rule of the house finds what breaks it, in small invented trees."""

from pathlib import Path

import edges as e
import pytest

import house as h

RULES = """
max_lines = 3
test_parts = ["tests"]
room.alg = { paths = ["core/alg"], may = ["ground"] }
room.ground = { paths = ["core"], may = [] }
room.host = { paths = ["bpf", "crates/host"], may = ["alg", "ground"] }
names = { list = "core/algorithms.def", hosts = ["bpf", "crates"] }
"""


def tree(root: Path, files: dict[str, str], rules: str = "") -> h.House:
    """Write an invented tree, and return it with the rules above and some more."""
    said = {"docs/house.toml": RULES + rules, "core/algorithms.def": "NN_ALGORITHM(kind)\n"} | files
    for file, text in said.items():
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).write_text(text)
    return h.House.of(root, said)


def test_a_file_outside_all_rooms_is_found(tmp_path: Path) -> None:
    house = tree(tmp_path, {"core/a.h": "", "attic/a.py": "", "attic/run": "#!/bin/sh\n"})
    assert h.homeless(house) == ["attic/a.py is in no room", "attic/run is in no room"]


def test_a_file_is_in_the_room_with_the_longest_path(tmp_path: Path) -> None:
    house = tree(tmp_path, {})
    assert [house.room(f) for f in ("core/alg/x.h", "core/algebra.h")] == ["alg", "ground"]


def test_a_header_that_includes_the_room_above_is_found(tmp_path: Path) -> None:
    house = tree(
        tmp_path,
        {
            "core/a.h": '#include "alg/x.h"\n',
            "core/alg/x.h": '# include "../b.h"\n',
            "core/b.h": "",
        },
    )
    edges = e.c_edges(tmp_path, house.files)
    assert edges == {("core/a.h", "core/alg/x.h"), ("core/alg/x.h", "core/b.h")}
    assert h.forbidden(house, edges) == ["core/a.h uses core/alg/x.h: ground may not use alg"]


def test_an_excepted_edge_passes_and_one_no_longer_there_fails(tmp_path: Path) -> None:
    excepted = 'exceptions.edge = [{ from = "core/a.h", to = "bpf/b.h", why = "old" }]\n'
    house = tree(tmp_path, {"core/a.h": "", "bpf/b.h": ""}, excepted)
    assert h.forbidden(house, {("core/a.h", "bpf/b.h")}) == []
    (said,) = h.forbidden(house, set())
    assert "no longer needed" in said


def test_never_wins_over_what_a_room_may(tmp_path: Path) -> None:
    never = (
        '[[never]]\nfrom = ["bpf"]\nto = ["core/alg", "cargo:"]\nbut = ["bpf/z.c"]\nwhy = "so"\n'
    )
    house = tree(tmp_path, {}, never)
    edges = {("bpf/a.c", "core/alg/x.h"), ("bpf/a.c", "cargo:clap"), ("bpf/z.c", "cargo:clap")}
    assert h.forbidden(house, edges) == [
        "bpf/a.c uses cargo:clap: never: so",
        "bpf/a.c uses core/alg/x.h: never: so",
    ]


def test_a_test_may_use_everything(tmp_path: Path) -> None:
    house = tree(tmp_path, {})
    assert h.forbidden(house, {("core/tests/a.c", "bpf/a.c")}) == []


CRATE = "crates/host/src/"


def rust(root: Path, files: dict[str, str]) -> set[e.Edge]:
    """Return the edges of an invented crate, without the folder that it is in."""
    tree(root, {CRATE + file: text for file, text in files.items()})
    targets = [(k, CRATE + f) for k, f in (("lib", "lib.rs"), ("bin", "main.rs")) if f in files]
    found = e.rust_edges(root, "the-host", targets)
    return {(a.removeprefix(CRATE), b.removeprefix(CRATE)) for a, b in found}


@pytest.mark.parametrize(
    "a",
    [
        "use crate::b::B;",
        "use super::b;",
        "use crate::{c::C, b::{self, B}};",
        "fn f() { crate::b::g() }",
        "use crate::B;",  # lib.rs shows it again, and is not used by that
    ],
)
def test_a_path_leads_to_the_file_that_defines_what_it_names(tmp_path: Path, a: str) -> None:
    files = {"lib.rs": "mod a; mod b; mod c;\npub use b::B;", "a.rs": a, "b.rs": "", "c.rs": ""}
    assert ("a.rs", "b.rs") in rust(tmp_path, files)
    assert ("a.rs", "lib.rs") not in rust(tmp_path, files)


@pytest.mark.parametrize(
    "a",
    [
        "// use crate::b::B;",
        '/* crate::b::f() */ const A: &str = "crate::b::g()";',
        '#[cfg(test)]\nmod tests {\n    const A: &str = "}";\n    use crate::b::B;\n}',
    ],
)
def test_comments_strings_and_inline_tests_are_no_edges(tmp_path: Path, a: str) -> None:
    assert rust(tmp_path, {"lib.rs": "mod a; mod b;", "a.rs": a, "b.rs": ""}) == set()


def test_a_program_uses_its_own_library_by_the_name_of_the_package(tmp_path: Path) -> None:
    files = {"lib.rs": "pub mod a;", "a.rs": "", "main.rs": "use the_host::a::A;"}
    assert rust(tmp_path, files) == {("main.rs", "a.rs")}


def test_a_module_in_a_folder_and_one_with_a_path_are_followed(tmp_path: Path) -> None:
    files = {"lib.rs": 'mod a;\n#[path = "x/y.rs"]\nmod y;', "x/y.rs": "use crate::a::b::B;"}
    edges = rust(tmp_path, files | {"a/mod.rs": "pub mod b;", "a/b.rs": "use super::super::y;"})
    assert edges == {("x/y.rs", "a/b.rs"), ("a/b.rs", "x/y.rs")}


def test_a_circle_of_three_files_is_found_and_named(tmp_path: Path) -> None:
    files = {"lib.rs": "mod a; mod b; mod c;", "a.rs": "use crate::b::B;", "b.rs": "use super::c;"}
    edges = rust(tmp_path, files | {"c.rs": "fn f() { super::a::g() }"})
    house = h.House.of(tmp_path, [])
    inside = {(CRATE + a, CRATE + b) for a, b in edges}
    assert h.circular(house, inside) == [f"a circle: {CRATE}a.rs, {CRATE}b.rs, {CRATE}c.rs"]
    assert h.circular(house, inside - {(f"{CRATE}c.rs", f"{CRATE}a.rs")}) == []


def test_a_module_and_those_inside_it_are_one_but_not_the_root(tmp_path: Path) -> None:
    house = tree(tmp_path, {})
    both = {(f"{CRATE}a.rs", f"{CRATE}a/b.rs"), (f"{CRATE}a/b.rs", f"{CRATE}a.rs")}
    assert h.circular(house, both) == []
    root = {(f"{CRATE}lib.rs", f"{CRATE}b.rs"), (f"{CRATE}b.rs", f"{CRATE}lib.rs")}
    assert h.circular(house, root) == [f"a circle: {CRATE}b.rs, {CRATE}lib.rs"]


def test_an_excepted_circle_may_lose_files_but_not_win_any(tmp_path: Path) -> None:
    excepted = 'exceptions.circle = [{ files = ["bpf/a.h", "bpf/b.h"], why = "old" }]\n'
    house = tree(tmp_path, {}, excepted)
    two = {("bpf/a.h", "bpf/b.h"), ("bpf/b.h", "bpf/a.h")}
    assert h.circular(house, two) == []
    three = two | {("bpf/b.h", "bpf/c.h"), ("bpf/c.h", "bpf/b.h")}
    assert h.circular(house, three) == ["a circle: bpf/a.h, bpf/b.h, bpf/c.h"]
    assert len(h.circular(house, set())) == 2, "neither file is in a circle any more"


def test_imports_of_python_are_edges_and_packages_have_names(tmp_path: Path) -> None:
    files = {
        "lab/p/__init__.py": "",
        "lab/p/a.py": "import json\nimport numpy.linalg\nfrom . import b, V\nfrom .c import d\n",
        "lab/p/b.py": "def f():\n    from p.c import d\n",
        "lab/p/c/__init__.py": "",
        "lab/p/c/d.py": "from ..a import x\n",
    }
    tree(tmp_path, files)
    assert e.python_edges(tmp_path, files, ["lab"]) == {
        ("lab/p/a.py", "python:numpy"),
        ("lab/p/a.py", "lab/p/b.py"),
        ("lab/p/a.py", "lab/p/__init__.py"),
        ("lab/p/a.py", "lab/p/c/d.py"),
        ("lab/p/b.py", "lab/p/c/d.py"),
        ("lab/p/c/d.py", "lab/p/a.py"),
    }


@pytest.mark.parametrize(
    ("file", "text", "found"),
    [
        ("bpf/a.c", "int x = nn_kind_window(c);", True),
        ("crates/host/a.rs", 'let a = "kind";', True),
        ("crates/host/a.rs", 'let a = "nn_kind";', True),
        ("crates/host/a.rs", '// "kind"\nlet a = "kind or other";', False),
        ("crates/host/a.rs", '#[cfg(test)]\nmod tests { const A: &str = "kind"; }', False),
        ("crates/host/tests/a.rs", 'let a = "kind";', False),
        ("core/a.h", "int nn_kind;", False),
    ],
)
def test_an_algorithm_that_a_host_names_is_found(
    tmp_path: Path, file: str, text: str, found: bool
) -> None:
    assert h.named(tree(tmp_path, {file: text})) == [f"{file} names the algorithm kind"] * found


def test_a_long_file_fails_and_a_listed_one_may_only_shrink(tmp_path: Path) -> None:
    files = {"bpf/a.c": "\n" * 4, "bpf/b.c": "\n" * 5, "bpf/c.c": "\n" * 3}
    listed = """exceptions.lines = [
        { file = "bpf/b.c", most = 4, why = "old" }, { file = "bpf/c.c", most = 9, why = "old" },
    ]\n"""
    assert h.too_long(tree(tmp_path, files, listed)) == [
        "bpf/a.c has 4 lines, at most 3",
        "bpf/b.c has 5 lines, at most 4",
        h.stale("lines", "bpf/c.c"),
    ]


def test_an_exception_without_a_reason_fails(tmp_path: Path) -> None:
    listed = 'exceptions.lines = [{ file = "bpf/a.c", most = 9, why = "" }]\n'
    assert len(h.unreasoned(tree(tmp_path, {}, listed))) == 1
