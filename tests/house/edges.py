# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Who includes, uses or imports whom: edges between files, read from sources.

A file is named by its path below the root. A dependency from outside the tree is named by its
registry, as "cargo:clap" or "python:typer".
"""

import ast
import json
import posixpath
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path, PurePosixPath

Edge = tuple[str, str]

C_SUFFIXES = (".c", ".h", ".cc")
PYTHON_SHEBANG = re.compile(r"#!.*python")
C_INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)
COMMENT_OR_STRING = re.compile(
    r"""//[^\n]*|/\*.*?\*/|b?r(#*)".*?"\1|b?"(?:\\.|[^"\\])*"|b?'(?:\\.[^']*|[^'\\])'""", re.S
)
RUST_MOD = re.compile(r'(?:#\[path\s*=\s*"([^"]+)"\]\s*)?\bmod\s+(\w+)\s*;')
RUST_TESTS = re.compile(r"#\[cfg\(test\)\]\s*(?:pub\S*\s+)?mod\s+\w+\s*\{")
RUST_USE = re.compile(r"\b(pub(?:\([^)]*\))?\s+)?use\s+([^;]+);")
RUST_PATH = re.compile(r"(?<![\w:])\w+(?:::\w+)+")


def read(root: Path, file: str) -> str:
    """Return the text of a file below the root."""
    return (root / file).read_text(encoding="utf-8")


def c_edges(root: Path, files: Iterable[str], include: Iterable[str] = ("core",)) -> set[Edge]:
    """Return the edges of `#include "..."`: beside the file, else below a folder of `include`."""
    known = set(files)
    edges = set()
    for file in known:
        if file.endswith((*C_SUFFIXES, ".def")):
            folders = [str(PurePosixPath(file).parent), *include]
            for name in C_INCLUDE.findall(read(root, file)):
                found = [posixpath.normpath(f"{folder}/{name}") for folder in folders]
                edges |= {(file, f) for f in [f for f in found if f in known][:1]}
    return edges


def without_comments(text: str, keep_strings: bool = False) -> str:
    """Remove comments of C or Rust, and what stands in strings, or the braces in them."""

    def instead(match: re.Match[str]) -> str:
        comment = match[0].startswith("/")
        kept = match[0].replace("{", " ").replace("}", " ")
        return " " if comment else kept if keep_strings else '""'

    return COMMENT_OR_STRING.sub(instead, text)


def without_tests(text: str) -> str:
    """Remove inline test modules of Rust; `text` comes from without_comments."""
    while start := RUST_TESTS.search(text):
        at, depth = start.end(), 1
        while depth and at < len(text):
            depth += {"{": 1, "}": -1}.get(text[at], 0)
            at += 1
        text = text[: start.start()] + text[at:]
    return text


def flat_use(tree: str) -> Iterator[tuple[str, ...]]:
    """Yield the paths of a use tree: `a::{b, c::d}` is a::b and a::c::d."""
    depth, part, parts = 0, "", []
    for char in tree.strip() + ",":
        depth += {"{": 1, "}": -1}.get(char, 0)
        if char == "," and depth == 0:
            parts.append(part.strip())
            part = ""
        else:
            part += char
    for path in filter(None, parts):
        head, brace, rest = path.partition("{")
        prefix = tuple(name for name in re.split(r"\s*::\s*", head.split(" as ")[0]) if name)
        if brace:
            yield from (prefix + below for below in flat_use(rest.rpartition("}")[0]))
        else:
            yield prefix


class Crate:
    """The files of one target of a crate, by the path of their modules.

    Who uses a name that a module only shows again (`pub use`) uses the module that defines it.
    """

    def __init__(self, root: Path, entry: str) -> None:
        """Read the file `entry` and every module that it declares, and theirs."""
        self.files: dict[tuple[str, ...], str] = {}
        self.paths: dict[str, list[tuple[str, ...]]] = {}
        self.uses: dict[str, list[tuple[str, ...]]] = {}
        self.add(root, (), entry, str(PurePosixPath(entry).parent))

    def add(self, root: Path, module: tuple[str, ...], file: str, folder: str) -> None:
        """Read a module, and those inside it, whose files are in `folder` or where a path says."""
        self.files[module] = file
        raw = read(root, file)
        text = without_tests(without_comments(raw))
        uses = [
            (path, public) for public, tree in RUST_USE.findall(text) for path in flat_use(tree)
        ]
        inline = [tuple(path.split("::")) for path in RUST_PATH.findall(RUST_USE.sub("", text))]
        self.uses[file] = [path for path, _ in uses]
        self.paths[file] = [path for path, public in uses if not public] + inline
        for path, name in RUST_MOD.findall(without_comments(raw, keep_strings=True)):
            beside = str(PurePosixPath(file).parent)
            tries = (
                [f"{beside}/{path}"] if path else [f"{folder}/{name}.rs", f"{folder}/{name}/mod.rs"]
            )
            for child in filter(lambda child: (root / child).is_file(), tries):
                below = (
                    str(PurePosixPath(child).parent)
                    if child.endswith("/mod.rs")
                    else f"{folder}/{name}"
                )
                self.add(root, (*module, name), posixpath.normpath(child), below)

    def owner(self, module: tuple[str, ...], path: tuple[str, ...], hops: int = 8) -> str | None:
        """Return the file that defines what `path` names when it stands in `module`."""
        at: tuple[str, ...] = ()
        if path[0] == "crate":
            rest = path[1:]
        elif path[0] in ("super", "self") or (*module, path[0]) in self.files:
            at, rest = module, path
        else:
            return None
        while rest and (rest[0] in ("super", "self") or (*at, rest[0]) in self.files):
            at = at[:-1] if rest[0] == "super" else at if rest[0] == "self" else (*at, rest[0])
            rest = rest[1:]
        file = self.files.get(at)
        if file and rest and hops:
            for used in self.uses[file]:
                if used[-1] == rest[0] and (where := self.owner(at, used, hops - 1)):
                    return where
        return file

    def edges(self, library: tuple[str, "Crate"] | None = None) -> set[Edge]:
        """Return the edges between its files, and to its library where it is a program."""
        edges = set()
        for module, file in self.files.items():
            for path in self.paths[file]:
                to = self.owner(module, path)
                if library and path[0] == library[0]:
                    to = library[1].owner((), ("crate", *path[1:]))
                if to and to != file:
                    edges.add((file, to))
        return edges


def rust_edges(root: Path, package: str, targets: Iterable[tuple[str, str]]) -> set[Edge]:
    """Return the edges among the files of a package, of whose targets (kind, file) are given."""
    targets = list(targets)
    library = [(package.replace("-", "_"), Crate(root, f)) for kind, f in targets if kind == "lib"]
    edges = set()
    for _, file in targets:
        edges |= Crate(root, file).edges(library[0] if library else None)
    return edges


def cargo_packages(root: Path) -> list[dict[str, object]]:
    """Return the packages of the workspace as `cargo metadata` describes them."""
    command = ["cargo", "metadata", "--no-deps", "--format-version", "1", "--locked", "--offline"]
    said = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout
    packages: list[dict[str, object]] = json.loads(said)["packages"]
    return packages


def cargo_edges(root: Path, packages: Iterable[dict[str, object]]) -> set[Edge]:
    """Return the edges of the files of the packages, and of their Cargo.toml to what they need."""
    edges: set[Edge] = set()
    for package in packages:
        manifest = below(root, str(package["manifest_path"]))
        targets = [
            (str(target["kind"][0]), below(root, target["src_path"]))
            for target in package["targets"]  # type: ignore[attr-defined]
        ]
        edges |= rust_edges(root, str(package["name"]), targets)
        for need in package["dependencies"]:  # type: ignore[attr-defined]
            path = need.get("path")
            to = f"{below(root, path)}/Cargo.toml" if path else f"cargo:{need['name']}"
            edges.add((manifest, to))
    return edges


def below(root: Path, path: str) -> str:
    """Return an absolute path as one below the root."""
    return Path(path).resolve().relative_to(root.resolve()).as_posix()


def python_edges(root: Path, files: Iterable[str], roots: Iterable[str]) -> set[Edge]:
    """Return the edges of imports; a module is looked for beside the file and below `roots`."""
    known = set(files)
    edges: set[Edge] = set()
    for file in known:
        text = read(root, file)
        if not file.endswith(".py") and not PYTHON_SHEBANG.match(text):
            continue
        folder = str(PurePosixPath(file).parent)
        for level, module, names in imports(ast.parse(text)):
            start = [folder, *roots]
            if level:
                start = [posixpath.normpath("/".join([folder, *[".."] * (level - 1)]))]
            found = find(known, start, module, names)
            edges |= {(file, to) for to in found if to != file}
            package = module.split(".")[0]
            if not found and not level and package not in sys.stdlib_module_names:
                edges.add((file, f"python:{package}"))
    return edges


def imports(tree: ast.AST) -> Iterator[tuple[int, str, list[str]]]:
    """Yield level, module and imported names of each import statement."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((0, alias.name, []) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.level, node.module or "", [alias.name for alias in node.names]


def find(known: set[str], folders: Iterable[str], module: str, names: list[str]) -> set[str]:
    """Return the files of a module and of the names that are modules themselves."""
    for folder in folders:
        base = "/".join(filter(None, [posixpath.normpath(folder), *module.split(".")]))
        inner = {n: f for n in names if (f := of_module(known, f"{base}/{n}"))}
        own = of_module(known, base)
        if inner or own:
            return set(inner.values()) | (
                {own} if own and len(inner) < max(len(names), 1) else set()
            )
    return set()


def of_module(known: set[str], base: str) -> str | None:
    """Return the file of the module at `base`, a path without its suffix."""
    return next((f for f in (f"{base}.py", f"{base}/__init__.py") if f in known), None)


def circles(edges: Iterable[Edge], group: Callable[[str], str | None]) -> list[list[str]]:
    """Return the sets of files of one group (a crate, a package) that lead to each other."""
    near: dict[str, set[str]] = {}
    for a, b in edges:
        if group(a) is not None and group(a) == group(b):
            near.setdefault(a, set()).add(b)
    reached = {}
    for start in near:
        seen: set[str] = set()
        todo = [start]
        while todo:
            fresh = near.get(todo.pop(), set()) - seen
            seen |= fresh
            todo += fresh
        reached[start] = seen
    found = {
        frozenset(b for b in seen if a in reached.get(b, ()))
        for a, seen in reached.items()
        if a in seen
    }
    return sorted(sorted(circle) for circle in found)
