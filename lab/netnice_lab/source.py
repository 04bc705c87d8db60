# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""What a source says to a compiler: without comments, in pieces whose order is of no matter."""

from __future__ import annotations

import re


def declarations(source: str) -> list[str]:
    """Return the top-level declarations and macros of C, without comments and includes."""
    literal_or_comment = r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/'
    code = re.sub(
        literal_or_comment, lambda m: m[1] or " ", source.replace("\\\n", " "), flags=re.DOTALL
    )
    found, current, depth = [], "", 0
    for line in code.splitlines():
        if line.startswith("#"):
            if not re.match(r"#(include|pragma once|endif|ifndef \w+_H\b|define \w+_H\s*$)", line):
                found.append(" ".join(line.split()))
            continue
        for piece in re.split(r"([{};])", line):
            depth += (piece == "{") - (piece == "}")
            current += f" {piece}"
            if depth == 0 and piece in ("}", ";"):
                found.append(" ".join(current.split()))
                current = ""
    return [d for d in found if d != ";"]


def code_lines(source: str) -> list[str]:
    """Return the lines of Rust that are not comments, without spaces that say nothing."""
    lines = (" ".join(line.split("//")[0].split()) for line in source.splitlines())
    return [line for line in lines if line]
