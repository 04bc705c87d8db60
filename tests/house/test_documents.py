# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""What the pages say of the tree is so, and their commands are understood."""

import inspect
import re
import subprocess
from pathlib import Path

import pytest
from documents import PROGRAMS, Page, asked_for_help, examples
from netnice_lab.cli import app
from typer.testing import CliRunner

import house as h

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def pages(house: h.House) -> list[Page]:
    return [Page(house.root, name) for name in house.files if name.endswith(".md")]


def refused(words: list[str]) -> str | None:
    """Return why a program of this tree does not understand these words, or None if it does."""
    program, *arguments = words
    if program == "make":
        targets = re.findall(r"^([\w/-]+):", (ROOT / "Makefile").read_text(), re.M)
        named = [word for word in arguments if "=" not in word]  # NAME=VALUE sets a variable
        unknown = [word for word in named if word not in [*targets, "--help"]]
        return f"no targets of the Makefile: {unknown}" if unknown else None
    if program == "netnice-lab":
        result = CliRunner().invoke(app, arguments)
        return result.output if result.exit_code else None
    # The empty PATH finds no command, should a page show one without `--` before it.
    command: list[str | Path] = [ROOT / "target" / "release" / program, *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, env={"PATH": ""}, check=False)
    return ended.stderr if ended.returncode else None


def test_every_command_on_a_page_is_understood_by_its_program(pages: list[Page]) -> None:
    shown = {command: page.name for page in pages for command in page.commands()}
    assert len(shown) > 50, "the pages show that many; fewer are found"
    said = {command: refused(asked_for_help(command)) for command in shown}
    h.kept([f"{shown[c]}: {c}\n{why}" for c, why in said.items() if why])


def helps() -> dict[str, str]:
    """Return the help of each program and of each of its subcommands, 80 columns wide."""
    found = {}
    for program in (p for p in PROGRAMS if p not in ("make", "netnice-lab")):
        command: list[str | Path] = [ROOT / "target" / "release" / program, "--help"]
        said = found[program] = subprocess.check_output(command, text=True)
        listed = re.search(r"^Commands:\n(.*?)\n\n", said, re.M | re.S)
        for name in re.findall(r"^  (\w+) ", listed[1] if listed else "", re.M):
            if name != "help":
                command[1:] = [name, "--help"]
                found[f"{program} {name}"] = subprocess.check_output(command, text=True)
    for part in (app, app.registered_groups[0].typer_instance):
        for lab in part.registered_commands if part else []:
            found[f"netnice-lab {lab.name}"] = inspect.getdoc(lab.callback) or ""
    return found


def test_every_example_of_a_help_is_understood_by_its_program() -> None:
    shown = {command: name for name, text in helps().items() for command in examples(text)}
    assert len(shown) > 50, "the helps show that many; fewer are found"
    said = {command: refused(asked_for_help(command)) for command in shown}
    h.kept([f"{shown[c]}: {c}\n{why}" for c, why in said.items() if why])


def test_every_link_leads_to_a_file_and_a_heading(pages: list[Page]) -> None:
    h.kept([broken for page in pages for broken in page.broken_links()])


def test_the_index_leads_to_every_page_of_docs(pages: list[Page]) -> None:
    index = (ROOT / "docs" / "README.md").read_text()
    parts = ("docs/data/", "docs/README.md")  # text of other pages, and the index
    pages = [page for page in pages if not page.name.startswith(parts)]
    own = {page.name.removeprefix("docs/") for page in pages if page.name.startswith("docs/")}
    h.kept(f"not in docs/README.md: {page}" for page in sorted(own) if f"]({page}" not in index)


def test_every_path_on_a_page_is_there(house: h.House, pages: list[Page]) -> None:
    excepted = [(x["file"], x["path"]) for x in house.exceptions("path")]
    missing = [(page.name, path) for page in pages for path in page.missing_paths()]
    h.kept(
        [
            f"{page} names {path}, which is not there"
            for page, path in missing
            if (page, path) not in excepted
        ]
    )
    h.kept(
        [
            h.stale("path", f"{page}: {path}")
            for page, path in excepted
            if (page, path) not in missing
        ]
    )


def page(root: Path, text: str) -> Page:
    """Return an invented page beside a folder `core/` and a page `other.md`."""
    (root / "core").mkdir()
    (root / "other.md").write_text("# What `netnice run` does, [here](other.md)\n")
    (root / "page.md").write_text(text)
    return Page(root, "page.md")


def test_a_link_to_a_missing_file_or_heading_is_found(tmp_path: Path) -> None:
    links = "[a](other.md) [b](none.md) [c](other.md#what-netnice-run-does-here) [d](#none) [e](http://x)"
    assert list(page(tmp_path, links).broken_links()) == [
        "page.md links to none.md, which is not there",
        "page.md links to #none: no heading there is called so",
    ]


def test_a_missing_path_is_found_and_a_pattern_is_none(tmp_path: Path) -> None:
    paths = "`core/` `core/none.h` `core/<name>.h` `core/NAME` `elsewhere/x`"
    assert list(page(tmp_path, paths).missing_paths()) == ["core/none.h", "core/NAME"]


def test_commands_are_found_in_blocks_and_in_backquotes(tmp_path: Path) -> None:
    text = """
Say `netnice status` or `netnice_x`, netnice said.

    $ sudo netnice run --set a=1 -- rsync  # netnice runs it
    it says netnice run
    netnice probe HOST:PORT | jq .

```sh
target/release/netnice-load send && make test
```
"""
    assert sorted(page(tmp_path, text).commands()) == [
        "make test",
        "netnice probe HOST:PORT",
        "netnice run --set a=1 -- rsync",
        "netnice status",
        "netnice-load send",
    ]


def test_what_stands_behind_two_dashes_is_not_asked() -> None:
    assert asked_for_help("netnice run --seed N [--json] -- rm -r /") == [
        *["netnice", "run", "--seed", "1", "--json", "--help"]
    ]


@pytest.mark.parametrize(
    "command",
    [
        "netnice frobnicate",
        "netnice run --frobnicate -- true",
        "netnice run --class frobnicate -- true",
        "netnice share backups 1 4 5",
        "netnice-sim run lab/scenarios/k1.toml --seeds few",
        "netnice-lab run k1 --frobnicate",
        "netnice-lab frobnicate",
        "make frobnicate",
    ],
)
def test_a_command_that_no_program_understands_is_found(command: str) -> None:
    assert refused(asked_for_help(command))
