#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Time and memory in which netnice-prefetch learns a million requests.

Usage: ``prefetch_learn.py [--requests N]``; prints ``name value unit``.

A synthetic site: the popularity of its 20,000 pages is Zipf's, each page links to ten others, drawn
by popularity, and visitors follow links, of which the first are taken most; one visit in ten pages
ends. The log is in the combined format, in time order.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import tempfile
import time
from pathlib import Path
from random import Random

from netnice_lab.tools import PREFETCH

PAGES, LINKS, VISITORS = 20_000, 10, 500
GO_ON = 0.9
AGENT = "Mozilla/5.0 (X11; Linux x86_64) Gecko/20100101 Firefox/128.0"


def write_log(file: Path, requests: int) -> None:
    """Write the log of a synthetic site."""
    random = Random(1)
    weights = [1 / rank for rank in range(1, PAGES + 1)]
    links = [random.choices(range(PAGES), weights, k=LINKS) for _ in range(PAGES)]
    starts = iter(random.choices(range(PAGES), weights, k=requests))
    follow = random.choices(range(LINKS), [1 / rank for rank in range(1, LINKS + 1)], k=requests)
    visits: list[tuple[int, int]] = [(0, next(starts)) for _ in range(VISITORS)]
    visitors = VISITORS
    with file.open("w") as log:
        for i in range(requests):
            at = random.randrange(VISITORS)
            who, page = visits[at]
            minutes, seconds = divmod(i // 100 % 3600, 60)
            hours, days = i // 360_000 % 24, 1 + i // 8_640_000
            log.write(
                f"10.{who >> 16 & 255}.{who >> 8 & 255}.{who & 255} - - "
                f"[{days:02}/Jan/2026:{hours:02}:{minutes:02}:{seconds:02} +0000] "
                f'"GET /page/{page}/ HTTP/1.1" 200 {1000 + page} "-" "{AGENT}"\n'
            )
            if random.random() < GO_ON:
                visits[at] = (who, links[page][follow[i]])
            else:
                visitors += 1
                visits[at] = (visitors, next(starts))


def main() -> None:
    """Learn the log and print what it took."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--requests", type=int, default=1_000_000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        log = Path(name) / "access.log"
        write_log(log, arguments.requests)
        command = [str(PREFETCH), "learn", "--json", "--model", f"{name}/model", str(log)]
        began = time.monotonic()
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
        took = time.monotonic() - began
    learned = json.loads(done.stdout)["learned"]
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"prefetch_learned {learned} requests")
    print(f"prefetch_learn_time {took:.2f} s")
    print(f"prefetch_learn_cpu {used.ru_utime + used.ru_stime:.2f} s")
    print(f"prefetch_learn_memory {used.ru_maxrss / 1000:.1f} MB")


if __name__ == "__main__":
    main()
