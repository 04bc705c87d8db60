#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Writes beside figures in pages of which commit's behaviour they are: `tests/records/renew.py`.

A page says `<!-- records: data/k1 -->` on a line of its own; the paragraph after it is written
here, of all records of that name.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from netnice_lab import ROOT, records

MARK = re.compile(r"(<!-- records: (.+?) -->\n)(?:.+\n)*")


def pages() -> list[Path]:
    """Return the pages that have marks."""
    found = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [page for page in found if MARK.search(page.read_text())]


def marked(page: Path) -> str:
    """Return the text of a page with the paragraphs after its marks as they have to be."""
    stale = os.path.relpath(records.STALE, page.parent)
    return MARK.sub(lambda m: m[1] + sentence(m[2], stale) + "\n", page.read_text())


def sentence(name: str, stale: str) -> str:
    """Return of which commits the records of a name are, and what has changed since."""
    found = {
        key: record for key, record in records.everything().items()
        if key == name or key.startswith((f"{name}: ", f"{name}/"))
    }  # fmt: skip
    if not found:
        sys.exit(f"No record is called {name!r}.")
    days = sorted({(record["date"][:10], record["commit"]) for record in found.values()})
    said = "Measured at " + ", ".join(f"{commit} ({day})" for day, commit in days) + "."
    changed = dict.fromkeys(word for record in found.values() for word in records.stale(record))
    if not changed:
        return said
    *most, last = changed
    these = f"{', '.join(most)} and {last} have" if most else f"{last} has"
    return f"{said} Since then {these} changed: [what that means]({stale})."


if __name__ == "__main__":
    for page in pages():
        page.write_text(marked(page))
