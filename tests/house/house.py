# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""The rules of docs/house.toml: each function returns what breaks one, as sentences."""

import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edges import Edge, circles, read, without_comments, without_tests

SHEBANG = re.compile(r"#!.*(sh|python3?)\b")
SOURCES = (".c", ".h", ".cc", ".def", ".rs", ".py", ".sh")


@dataclass(frozen=True)
class House:
    """A tree with its rules; `files` are the paths of all its files, below `root`."""

    root: Path
    files: list[str]
    rules: dict[str, Any]

    @classmethod
    def of(cls, root: Path, files: Iterable[str]) -> "House":
        """Read the rules of the tree at `root`."""
        return cls(root, sorted(files), tomllib.loads(read(root, "docs/house.toml")))

    def sources(self) -> list[str]:
        """Return the files of code: by their suffix, or by the first line of a script."""
        return [f for f in self.files if f.endswith(SOURCES) or self.is_script(f)]

    def is_script(self, file: str) -> bool:
        """Whether a file without a suffix begins as a script does."""
        if "." in Path(file).name or not (self.root / file).is_file():
            return False
        return bool(SHEBANG.match((self.root / file).read_bytes()[:80].decode("utf-8", "replace")))

    def room(self, file: str) -> str | None:
        """Return the room with the longest path that a file's path begins with."""
        paths = [
            (len(path), name)
            for name, room in self.rules["room"].items()
            for path in room["paths"]
            if within(file, path)
        ]
        return max(paths)[1] if paths else None

    def is_test(self, file: str) -> bool:
        """Whether a file is a test, which may use everything."""
        return bool(set(file.split("/")) & set(self.rules["test_parts"]))

    def exceptions(self, rule: str) -> list[dict[str, Any]]:
        """Return the exceptions to a rule."""
        found: list[dict[str, Any]] = self.rules.get("exceptions", {}).get(rule, [])
        return found


def kept(broken: Iterable[str]) -> None:
    """Fail with the sentences about what is broken, if any is."""
    sentences = list(broken)
    assert not sentences, "\n" + "\n".join(sentences)


def within(path: str, prefix: str) -> bool:
    """Whether a path is a prefix or below it; a prefix that ends in `/` or `:` is one of text."""
    return path == prefix or path.startswith(prefix if prefix[-1] in "/:" else prefix + "/")


def homeless(house: House) -> list[str]:
    """Every file of code is in a room."""
    return [f"{f} is in no room" for f in house.sources() if house.room(f) is None]


def forbidden(house: House, edges: Iterable[Edge]) -> list[str]:
    """Every edge is allowed, and by no `never` forbidden."""
    excepted = {(e["from"], e["to"]) for e in house.exceptions("edge")}
    wrong = {edge: why for edge in edges if (why := why_not(house, *edge))}
    return [
        f"{a} uses {b}: {why}" for (a, b), why in sorted(wrong.items()) if (a, b) not in excepted
    ] + [stale("edge", f"{a} -> {b}") for a, b in sorted(excepted - set(wrong))]


def why_not(house: House, a: str, b: str) -> str | None:
    """Return why `a` may not use `b`, or None if it may."""
    for never in house.rules.get("never", []):
        applies = not any(within(a, path) for path in never.get("but", []))
        if (
            applies
            and any(within(a, p) for p in never["from"])
            and any(within(b, p) for p in never["to"])
        ):
            return f"never: {never['why']}"
    own, other = house.room(a), house.room(b)
    if house.is_test(a) or None in (own, other) or own == other:
        return None
    return None if other in house.rules["room"][own]["may"] else f"{own} may not use {other}"


def circular(house: House, edges: Iterable[Edge]) -> list[str]:
    """No file of a crate or package leads back to itself.

    A module of Rust and the modules inside it may name each other, as they are one; the root of a
    crate may not: everything is inside it.
    """
    excepted = [frozenset(e["files"]) for e in house.exceptions("circle")]
    found = circles([e for e in edges if not is_inside(*e)], package)
    free = [c for c in found if not any(set(c) <= e for e in excepted)]
    still = {file for circle in found for file in circle}
    return ["a circle: " + ", ".join(c) for c in free] + [
        stale("circle", file) for e in excepted for file in sorted(e - still)
    ]


def is_inside(a: str, b: str) -> bool:
    """Whether `b` is a module inside the module `a` of Rust, which is not the root of its crate."""
    folder = a.removesuffix("/mod.rs").removesuffix(".rs")
    return a.endswith(".rs") and not a.endswith(("/lib.rs", "/main.rs")) and within(b, folder)


def package(file: str) -> str | None:
    """Return the crate or the top folder of a file, among whose files no circle may be."""
    if ":" in file or file.endswith("Cargo.toml"):
        return None
    parts = file.split("/")
    return "/".join(parts[: 2 if parts[0] == "crates" else 1])


def too_long(house: House) -> list[str]:
    """No file of code is longer than max_lines; a listed one not longer than it was."""
    most = {e["file"]: int(e["most"]) for e in house.exceptions("lines")}
    limit = house.rules["max_lines"]
    lines = {file: len(read(house.root, file).splitlines()) for file in house.sources()}
    return [
        f"{file} has {n} lines, at most {most.get(file, limit)}"
        for file, n in lines.items()
        if n > most.get(file, limit)
    ] + [stale("lines", file) for file in most if lines.get(file, 0) <= limit]


def algorithms_named(house: House) -> Iterator[tuple[str, str]]:
    """Yield (file, name) of each algorithm that a host names, as a string or as nn_NAME."""
    listed = re.findall(
        r"^NN_ALGORITHM\((\w+)\)", read(house.root, house.rules["names"]["list"]), re.M
    )
    name = "|".join(sorted(listed, key=len, reverse=True))
    string = re.compile(rf"""(["'])(?:nn_)?({name})\1""")
    symbol = re.compile(rf"\bnn_({name})(?:_\w+)?\b")
    for file in house.sources():
        if house.is_test(file) or not any(
            within(file, host) for host in house.rules["names"]["hosts"]
        ):
            continue
        text = read(house.root, file)
        is_c_like = file.endswith((".rs", ".c", ".h"))
        strings = without_tests(without_comments(text, keep_strings=True)) if is_c_like else text
        code = without_comments(text) if is_c_like else ""
        yield from ((file, match[2]) for match in string.finditer(strings))
        yield from ((file, match[1]) for match in symbol.finditer(code))


def named(house: House) -> list[str]:
    """No host names an algorithm."""
    excepted = {(e["file"], name) for e in house.exceptions("name") for name in e["names"]}
    found = set(algorithms_named(house))
    return [f"{file} names the algorithm {name}" for file, name in sorted(found - excepted)] + [
        stale("name", f"{file}: {name}") for file, name in sorted(excepted - found)
    ]


def unreasoned(house: House) -> list[str]:
    """Every exception says why it is one."""
    return [
        f"no reason: {rule} {entry}"
        for rule, entries in house.rules.get("exceptions", {}).items()
        for entry in entries
        if not entry.get("why")
    ]


def stale(rule: str, what: str) -> str:
    """Return the sentence about an exception that is not needed."""
    return f"docs/house.toml: the exception `{rule}` for {what} is no longer needed: delete it"
