# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Chromium on paths of the web log: how long pages take, and what a second browser notices."""

from __future__ import annotations

import csv
import gzip
import random
import re
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from ... import ROOT, LabError, job, vm
from ...kernel import timeout_s
from ...scenario import NONE, Scenario, read
from ..measure import columns, head
from .replays import NICE

Json = dict[str, Any]
Row = Mapping[str, str]

CHROMIUM = Path("/usr/lib/chromium/chromium-headless-shell")
MEMORY = "3G"
"""Of the virtual machine: it holds the browser and all its libraries twice."""

MAX_BYTES = 1 << 20
LEARNED_S = 2 * 86400
"""Seconds of the log that the proxy has learned; paths are of the time behind them."""

HOUR_S = 3600
SHORTEST, LONGEST = 2, 5
"""Pages of a walk, of which longer ones lose their end."""

THINK_S = 10.0
DOWNLOAD_BYTES = 250_000


def ending(path: str) -> str:
    """Return the ending of a file's name, in small letters; nothing if it has none."""
    return Path(path).suffix.lower() if not path.endswith("/") else ""


def is_page(path: str) -> bool:
    """Tell whether a path looks like a page, as the proxy does."""
    return ending(path) in ("", ".htm", ".html", ".shtml", ".xhtml")


@dataclass(frozen=True)
class Log:
    """The web log: what people got by GET that may be prefetched."""

    rows: Sequence[Row]

    @classmethod
    def read(cls, file: Path = job.WEB_LOG) -> Log:
        """Read the lab's CSV."""
        with gzip.open(file, "rt") as lines:
            return cls([row for row in csv.DictReader(lines) if is_fit(row)])

    @cached_property
    def objects(self) -> dict[str, list[str] | None]:
        """Return every path, with what visitors of a page loaded because of it."""
        found: dict[str, set[str]] = defaultdict(set)
        for row in self.rows:
            if not is_page(row["path"]):
                found[row["referer_path"]].add(row["path"])
        paths = sorted({row["path"] for row in self.rows})
        return {path: sorted(found[path]) if is_page(path) else None for path in paths}

    @cached_property
    def walks(self) -> list[list[str]]:
        """Return the pages of each client and hour after what was learned, if there are enough."""
        pages = [r for r in self.rows if is_page(r["path"]) and int(r["time_s"]) >= LEARNED_S]
        pages.sort(key=section)
        found = [walk(list(rows)) for _, rows in groupby(pages, section)]
        return [paths[:LONGEST] for paths in found if len(paths) >= SHORTEST]


def is_fit(row: Row) -> bool:
    """Tell whether a request is a person's for something static that can be prefetched."""
    return (
        (row["method"], row["status"], row["bot"]) == ("GET", "200", "0")
        and 0 < int(row["bytes"]) <= MAX_BYTES
        and re.fullmatch(r"/(?!/)[^?\"<>\\^`{|}#\s]*", row["path"]) is not None
        and ending(row["path"]) not in (".php", ".cgi", ".pl", ".py", ".rb", ".exe")
    )


def section(row: Row) -> tuple[str, int]:
    """Return whose request it is, and in which hour."""
    return row["client"], int(row["time_s"]) // HOUR_S


def walk(rows: list[Row]) -> list[str]:
    """Return the pages of a section, each once, in the order in which they led to each other.

    The log's seconds are in random order within an hour, so a page comes after the one that its
    `Referer` names, and the log's order decides only between others.
    """
    found: list[str] = []
    while rows:
        left = {row["path"] for row in rows}
        free = (r for r in rows if r["referer_path"] not in left - {r["path"]})
        row = next(free, rows[0])
        rows = [r for r in rows if r["path"] != row["path"]]
        found.append(row["path"])
    return found


@dataclass(frozen=True)
class Setting:
    """What one experiment browses."""

    name: str
    walks: int
    """Of each seed."""
    download: int
    """Bytes of the file that a second browser fetches again and again; 0: there is none."""

    def scenario(self) -> Scenario:
        """Return the cable with nothing on it but browsers."""
        return replace(
            read(Path("nice/cable")), name=self.name, warmup_s=0.0,
            measure_s=2 * self.walks * LONGEST * THINK_S, drain_s=0.0, foreground=None,
            background=[],
        )  # fmt: skip


TRIALS = {
    NONE: "[suggestions]\nmax_objects = 0",
    NICE: "",
}
"""What the proxy is configured to: to suggest nothing, or its defaults."""

ALONE, BESIDE = Setting("browser", 4, 0), Setting("browsers", 2, DOWNLOAD_BYTES)


def kept(outcome: Json) -> Json:
    """Return what is kept of one run.

    `load_s` is the mean time from navigationStart to loadEventEnd, `typical_s` the geometric mean,
    in which each page counts alike whether it takes .1 s or 30 s; `cached` the share of the pages
    that came from the cache; `requests` and `demand_mb`, `prefetches` and `ahead_mb` what the proxy
    answered in the foreground and in the background, of the downloads nothing; `download_s` the
    mean time of a download.
    """
    pages = [page for pages in outcome["walks"] for page in pages]
    answers = {mark: list(sizes(outcome["log"], mark)) for mark in (False, True)}
    loads = [page["load_ms"] / 1000 for page in pages]
    downloads = outcome["downloads_ms"]
    queue = outcome["queue"]
    return {
        "pages": len(pages), "load_s": float(np.mean(loads)),
        "typical_s": float(np.exp(np.mean(np.log(loads)))),
        "p95_s": float(np.quantile(loads, 0.95)),
        "cached": sum(page["bytes"] == 0 for page in pages) / len(pages),
        "requests": len(answers[False]), "demand_mb": sum(answers[False]) * 1e-6,
        "prefetches": len(answers[True]), "ahead_mb": sum(answers[True]) * 1e-6,
        "downloads": len(downloads),
        "download_s": float(np.mean(downloads)) / 1000 if downloads else None,
        "drops": queue["drops"] / (queue["drops"] + queue["sent_packets"]),
    }  # fmt: skip


def sizes(lines: Iterable[str], ahead: bool) -> Iterable[int]:
    """Return the bytes of each answer in an access log, of prefetches or of others."""
    for line in lines:
        found = re.search(r'"GET (\S+) [^"]*" \d+ (\d+) ', line)
        if found and "/download" not in found[1] and line.endswith('"prefetch"') == ahead:
            yield int(found[2])


def learned(folder: Path) -> Path:
    """Write what of the log the proxy has learned; return the file."""
    with gzip.open(job.WEB_LOG, "rt") as lines:
        header, *rows = lines
    file = folder / "learned.csv"
    file.write_text(header + "".join(r for r in rows if int(r.split(",", 1)[0]) < LEARNED_S))
    return file


def measure(
    setting: Setting,
    *,
    seeds: int,
    jobs: int,
    command: Sequence[str],
    folder: Path,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> Json:
    """Browse with every trial and seed; return the experiment's document."""
    del folder
    if not CHROMIUM.exists():
        raise LabError(f"{CHROMIUM} was not found. Install it: apt-get install {CHROMIUM.name}")
    scenario, log = setting.scenario(), Log.read()
    assert scenario.bottleneck is not None
    cases = [(seed, name) for seed in range(1, seeds + 1) for name in TRIALS]
    plan = [
        {
            "index": index, "seed": seed, "queue": scenario.bottleneck.queue, "background": None,
            "browse": {
                "site": [job.WEB_LOG.name, "--max-bytes", str(MAX_BYTES)], "learn": "learned.csv",
                "proxy": TRIALS[name], "program": CHROMIUM.name, "think_s": THINK_S,
                "walks": random.Random(seed).sample(log.walks, setting.walks),
                "download": setting.download,
            },
        }
        for index, (seed, name) in enumerate(cases)
    ]  # fmt: skip
    outcomes: dict[int, Json] = {}

    def collect(outcome: Json) -> None:
        outcomes[outcome["run"]] = outcome
        progress(len(outcomes), len(plan))

    (ROOT / "build").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="browse-", dir=ROOT / "build") as work:
        job.run_all(
            scenario, plan, vms=jobs, timeout_s=timeout_s(scenario, len(plan)), each=collect,
            programs=[
                job.built(job.NETNICE), job.built(job.PREFETCH), job.tool("nginx"),
                *(file for file in CHROMIUM.parent.iterdir() if file.is_file()),
                learned(Path(work)),
            ],
            more={
                "controls": ["nn_nice", "reno"], "netnice": job.NETNICE.name,
                "objects": log.objects,
            },
            memory=MEMORY,
        )  # fmt: skip
    runs = [{"background": name, **kept(outcomes[i])} for i, (_, name) in enumerate(cases)]
    return {
        **head(setting.name, seeds, command),
        "kernel": vm.find_kernel().version,
        "points": [{"at": {}, "runs": columns([runs])}],
    }
