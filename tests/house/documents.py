# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""What documents say of the tree: links, paths and commands."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PROGRAMS = ("netnice", "netnice-sim", "netnice-load", "netnice-prefetch", "netnice-lab", "make")
FENCE = re.compile(r"^```.*?^```", re.M | re.S)
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+\s+(.*)$", re.M)
SPAN = re.compile(r"`([^`\n]+)`")
COMMAND = re.compile(rf"(?:\$ )?(?:sudo )?(?:target/release/)?((?:{'|'.join(PROGRAMS)})(?: .*)?)$")
PLACEHOLDER = re.compile(r"\b[A-Z]+\b(?:\|[A-Z]+\b)*|\$\([^)]*\)")
PATH = re.compile(r"(?:core|bpf|crates|lab|tests|docs|packaging|\.ci)/[\w./-]*")


@dataclass(frozen=True)
class Page:
    """A page of Markdown, named by its path below the root."""

    root: Path
    name: str

    @property
    def text(self) -> str:
        """Return all of it."""
        return (self.root / self.name).read_text(encoding="utf-8")

    def prose(self) -> str:
        """Return it without its fenced blocks."""
        return FENCE.sub("", self.text)

    def anchors(self) -> set[str]:
        """Return what links can point at: each heading as GitHub writes it in an address."""
        said = (re.sub(r"[`*_]|\[|\]\([^)]*\)", "", h) for h in HEADING.findall(self.prose()))
        return {re.sub(r"[^\w\- ]", "", h.strip().lower()).replace(" ", "-") for h in said}

    def broken_links(self) -> Iterator[str]:
        """Yield a sentence for each link to a file or a heading that is not there."""
        for link in LINK.findall(self.prose()):
            if re.match(r"\w+:", link):
                continue
            path, _, anchor = link.partition("#")
            target = (self.root / self.name).parent / path if path else self.root / self.name
            if not target.exists():
                yield f"{self.name} links to {link}, which is not there"
            elif anchor and target.suffix == ".md":
                page = Page(self.root, target.resolve().relative_to(self.root).as_posix())
                if anchor not in page.anchors():
                    yield f"{self.name} links to {link}: no heading there is called so"

    def missing_paths(self) -> Iterator[str]:
        """Yield each path in backquotes that is not there; one with `<name>` in it is a pattern."""
        for span in SPAN.findall(self.text):
            if PATH.fullmatch(span) and not (self.root / span).exists():
                yield span

    def commands(self) -> Iterator[str]:
        """Yield each command that is shown: a line of a block, or in backquotes in the text."""
        blocks = "\n".join(FENCE.findall(self.text)).splitlines()
        indented = [line for line in self.prose().splitlines() if line.startswith("    ")]
        for line in [*blocks, *indented, *SPAN.findall(self.prose())]:
            yield from shown(line)


def shown(line: str) -> Iterator[str]:
    """Yield each command of this tree in a line of shell."""
    code = re.split(r"\s#\s", line, maxsplit=1)[0]
    for part in re.split(r"\s[|<>]\s|&&", code):
        if found := COMMAND.match(part.strip()):
            yield found[1]


def examples(help_text: str) -> Iterator[str]:
    """Yield each command that a program's help shows as an example."""
    text = help_text.replace("\\\n", " ")
    for line in re.findall(r"^(?:Example: | {2,4})((?:sudo )?netnice.*)$", text, re.M):
        yield from shown(line)


def asked_for_help(command: str) -> list[str]:
    """Return the words of a command that asks for help instead of being done.

    A parser reads the words before `--help` and refuses those that it does not know, then prints
    its help and ends. So the words of a page are held to the parser itself, and nothing is done.
    NAME, N and the like become 1, which is a name, a number and a file; `[...]` is what may be
    given; what stands behind `--` is another command.
    """
    own = command.split(" -- ", maxsplit=1)[0].removesuffix(" --")
    words = shlex.split(PLACEHOLDER.sub("1", re.sub(r"\.\.\.|[\[\]]", "", own)))
    return [*words, "--help"]
