# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Chromium on paths of the web log: how long pages take, and what a second browser notices."""

from __future__ import annotations

import base64
import csv
import gzip
import hashlib
import random
import re
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import groupby
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from ... import ROOT, LabError, tools
from ...experiment import Context, Procedure, as_points, running
from ...scenario import NONE, Scenario, read
from .replays import NICE, PERFECT

Json = dict[str, Any]
Row = Mapping[str, str]

CHROMIUM = Path("/usr/lib/chromium/chromium-headless-shell")
WINDOWED = "chromium"
"""The program beside it that shows windows, which would fill the machine's memory."""
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
    def read(cls, file: Path = tools.WEB_LOG) -> Log:
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
class Trial:
    """What pages come through."""

    proxy: str | None
    """More of the proxy's configuration; None: Chromium asks nginx itself."""
    foresees: bool = False
    """The proxy has learned nothing but the walks that are to come, not the log."""


DIRECT = "direct"

TRIALS = {
    NONE: Trial("[suggestions]\nmax_objects = 0"),
    DIRECT: Trial(None),
    NICE: Trial("[learning]\naddresses = 2"),
    PERFECT: Trial("[learning]\naddresses = 1\n[suggestions]\nper_reply = 50", foresees=True),
}
"""Through the proxy that suggests nothing, without it, with its defaults, and with foresight.

Its default of `addresses` is for sites of more visitors.
"""


@dataclass(frozen=True)
class Setting:
    """What one experiment browses."""

    name: str
    walks: int
    """Of each seed."""
    download: int
    """Bytes of the file that a second browser fetches again and again; 0: there is none."""
    trials: Sequence[str]
    tls: bool = False
    """Over HTTP/2, not HTTP/1.1."""

    @property
    def rate_mbit(self) -> float:
        """Return the cable's rate."""
        return float(self.scenario().bottleneck.rate_mbit)

    def scenario(self) -> Scenario:
        """Return the cable with nothing on it but browsers."""
        return read(Path("nice/cable")).but(
            name=self.name, warmup_s=0.0, measure_s=2 * self.walks * LONGEST * THINK_S, drain_s=0.0,
            foreground=None, background=[],
        )  # fmt: skip


ALONE = Setting("browser", 2, 0, (NONE, DIRECT, NICE, PERFECT))
BESIDE = Setting("browsers", 2, DOWNLOAD_BYTES, (NONE, DIRECT, NICE))
HTTP2 = Setting("browsers-http2", 2, DOWNLOAD_BYTES, (NONE, NICE), tls=True)

SETTINGS = (ALONE, BESIDE, HTTP2)

KINDS = FIRST, UNFORESEEN, LATE, CACHED = "first", "not foreseen", "late", "cached"
"""Of pages: a walk's first; one that Chromium did not ask for ahead; one that it did ask for ahead,
and yet loaded; one that came from the cache."""


@dataclass(frozen=True)
class Answer:
    """A line of the proxy's access log."""

    path: str
    size: int
    referer: str
    agent: str
    ahead: bool

    @classmethod
    def read(cls, lines: Iterable[str]) -> list[Answer]:
        """Return the answers of a log, but for downloads."""
        form = re.compile(r'"GET (\S+) [^"]*" \d+ (\d+) "([^"]*)" "([^"]*)"( "prefetch")?$')
        found = filter(None, map(form.search, lines))
        answers = (cls(m[1], int(m[2]), m[3], m[4], m[5] is not None) for m in found)
        return [answer for answer in answers if not answer.path.startswith("/download")]

    def is_of(self, page: str) -> bool:
        """Tell whether it is a page, or what the page needs."""
        needed = not is_page(self.path) and urlsplit(self.referer).path == page
        return needed or self.path == page


def kind(page: Json, number: int, answers: Iterable[Answer]) -> str:
    """Return the kind of a walk's page, of those answered to this walk."""
    if number == 0:
        return FIRST
    if page["bytes"] == 0:
        return CACHED
    path = urlsplit(page["url"]).path
    return LATE if any(a.ahead and a.path == path for a in answers) else UNFORESEEN


def each(outcome: Json, answers: Iterable[Answer]) -> Iterable[list[Any]]:
    """Return for each page its path, its time to load, its kind, and kB.

    The first kB are what it waited for, the second what Chromium asked for ahead because of it.
    """
    for number, pages in enumerate(outcome["walks"]):
        mine = [answer for answer in answers if answer.agent.endswith(f" walk {number}")]
        for at, page in enumerate(pages):
            path = urlsplit(page["url"]).path
            waited = sum(a.size for a in mine if not a.ahead and a.is_of(path))
            ahead = sum(a.size for a in mine if a.ahead and urlsplit(a.referer).path == path)
            load_s = page["load_ms"] / 1000
            yield [path, load_s, kind(page, at, mine), waited / 1000, ahead / 1000]


def kept(outcome: Json) -> Json:
    """Return what is kept of one run.

    `load_s` is the mean time from navigationStart to loadEventEnd, `typical_s` the geometric mean,
    in which each page counts alike whether it takes .1 s or 30 s; `cached` the share of the pages
    that came from the cache; `requests` and `demand_mb`, `prefetches` and `ahead_mb` what the proxy
    answered in the foreground and in the background, of the downloads nothing; `download_s` the
    mean time of a download; `each` the pages one by one.
    """
    answers = Answer.read(outcome["log"])
    pages = list(each(outcome, answers))
    loads = [load_s for _, load_s, *_ in pages]
    sizes = {ahead: [a.size for a in answers if a.ahead == ahead] for ahead in (False, True)}
    downloads = outcome["downloads_ms"]
    queue = outcome["queue"]
    return {
        "pages": len(pages), "load_s": float(np.mean(loads)),
        "typical_s": float(np.exp(np.mean(np.log(loads)))),
        "p95_s": float(np.quantile(loads, 0.95)),
        "cached": sum(kind == CACHED for _, _, kind, *_ in pages) / len(pages),
        "requests": len(sizes[False]), "demand_mb": sum(sizes[False]) * 1e-6,
        "prefetches": len(sizes[True]), "ahead_mb": sum(sizes[True]) * 1e-6,
        "downloads": len(downloads),
        "download_s": float(np.mean(downloads)) / 1000 if downloads else None,
        "drops": queue["drops"] / (queue["drops"] + queue["sent_packets"]), "each": pages,
    }  # fmt: skip


def learned(folder: Path) -> Path:
    """Write what of the log the proxy has learned; return the file."""
    with gzip.open(tools.WEB_LOG, "rt") as lines:
        header, *rows = lines
    file = folder / "learned.csv"
    file.write_text(header + "".join(r for r in rows if int(r.split(",", 1)[0]) < LEARNED_S))
    return file


def foreseen(folder: Path, name: str, walks: Sequence[Sequence[str]], log: Log) -> Path:
    """Write walks as a log, twice, since the proxy trusts no single client; return the file."""
    file = folder / name
    with file.open("w") as out:
        lines = csv.writer(out)
        lines.writerow(log.rows[0])
        for client, pages in enumerate([*walks, *walks]):
            at, before = 3 * HOUR_S * client, ""
            for page in pages:
                lines.writerow([at, client, "GET", page, 200, 1, before, 0])
                for path in log.objects[page] or []:
                    lines.writerow([at, client, "GET", path, 200, 1, page, 0])
                at, before = at + 60, page
    return file


def certificate(folder: Path) -> tuple[list[Path], str]:
    """Make a certificate; return it and its key, and the flag with which Chromium trusts it.

    Chromium stores nothing that came under a certificate that it was merely told to ignore.
    """
    cert, key = folder / "cert.pem", folder / "key.pem"
    openssl: str | Path = tools.tool("openssl")
    make = [openssl, "req", "-x509", "-nodes", "-newkey", "ec", "-pkeyopt",
            "ec_paramgen_curve:prime256v1", "-days", "36500", "-subj", "/CN=site"]  # fmt: skip
    subprocess.run([*make, "-keyout", key, "-out", cert], check=True, capture_output=True)
    public = [openssl, "pkey", "-in", key, "-pubout", "-outform", "DER"]
    der = subprocess.run(public, check=True, capture_output=True).stdout
    pin = base64.b64encode(hashlib.sha256(der).digest()).decode()
    return [cert, key], f"--ignore-certificate-errors-spki-list={pin}"


def measure(setting: Setting, context: Context) -> list[Json]:
    """Browse with every trial and seed; return the only point."""
    if not CHROMIUM.exists():
        raise LabError(f"{CHROMIUM} was not found. Install it: apt-get install {CHROMIUM.name}")
    scenario, log = setting.scenario(), Log.read()
    trials = context.among(setting.trials)
    cases = [(seed, name) for seed in context.numbers for name in trials]
    walks = {seed: random.Random(seed).sample(log.walks, setting.walks) for seed in context.numbers}
    (ROOT / "build").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="browse-", dir=ROOT / "build") as name:
        work = Path(name)
        files = {NONE: learned(work)} | {
            seed: foreseen(work, f"walks-{seed}.csv", walks[seed], log) for seed in walks
        }
        tls, flag = certificate(work)
        plan = [
            {
                "seed": seed, "queue": scenario.bottleneck.queue, "background": None,
                "browse": {
                    "site": [tools.WEB_LOG.name, "--max-bytes", str(MAX_BYTES)],
                    "learn": files[seed if TRIALS[name].foresees else NONE].name,
                    "proxy": TRIALS[name].proxy,
                    "tls": [file.name for file in tls] if setting.tls else None,
                    "program": CHROMIUM.name, "flags": [flag], "think_s": THINK_S,
                    "walks": walks[seed], "download": setting.download,
                },
            }
            for seed, name in cases
        ]  # fmt: skip
        outcomes = context.on_kernel(
            scenario, plan,
            programs=[
                tools.built(tools.NETNICE), tools.built(tools.PREFETCH), tools.tool("nginx"),
                *(
                    file for file in CHROMIUM.parent.iterdir()
                    if file.is_file() and file.name != WINDOWED
                ),
                *files.values(), *tls,
            ],
            more={
                "controls": ["nn_ebb", "nn_nice", "reno"], "netnice": tools.NETNICE.name,
                "objects": log.objects,
            },
            memory=MEMORY,
        )  # fmt: skip
    return as_points(
        ({}, {"background": name, **kept(outcome)})
        for (_, name), outcome in zip(cases, outcomes, strict=True)
    )


EXPERIMENTS = [
    Procedure(s.name, partial(measure, s), seeds=8, kernel=True, depends=running("nice"))
    for s in SETTINGS
]
