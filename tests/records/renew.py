#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Writes beside figures in pages of which commit's behaviour they are: `tests/records/renew.py`.

A page says `<!-- records: data/k1 -->` on a line of its own; the paragraph after it is written
here, of all records of that name, or of several: `<!-- records: data/nice/flows, data/k1 -->`.
"""

from __future__ import annotations

import os
import re
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

    def anew(mark: re.Match[str]) -> str:
        return f"{mark[1]}{records.sentence(mark[2].split(', '), stale)}\n"

    return MARK.sub(anew, page.read_text())


if __name__ == "__main__":
    for page in pages():
        page.write_text(marked(page))
