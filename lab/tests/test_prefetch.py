# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""The parts of the prefetching's reproduction that need no virtual machine."""

from __future__ import annotations

import csv
import gzip
import re
from pathlib import Path
from typing import Any

import pytest

from netnice_lab import ROOT, tools
from netnice_lab.claims.results import Results, load
from netnice_lab.papers.prefetch import (
    REPRODUCTION,
    browsing,
    kinds,
    quality,
    replays,
    shown,
)
from netnice_lab.papers.prefetch.browsing import ALONE, BESIDE
from netnice_lab.papers.prefetch.replays import CABLE, LOADS, MODEM, THRESHOLDS, TRADE_OFF
from netnice_lab.scenario import NONE

Json = dict[str, Any]

p1, p2, p3, p4, p5, p5h = (claim.judge for claim in REPRODUCTION.claims)


def test_demand_goes_through_the_proxy_and_only_reno_needs_a_second_port() -> None:
    how = CABLE.replay(CABLE.trials["aggressive, Reno"], seed=2)
    assert how["second"]
    assert how["site"] == [tools.WEB_LOG.name, "--max-bytes", "1048576"]
    # the options begin with the log, as the site's do, and end with the strategy
    assert how["options"][:3] == how["site"]
    assert how["options"][-4:] == ["--seed", "2", "--prefetch", "aggressive"]
    assert not CABLE.replay(CABLE.trials["aggressive, Nice"], seed=2)["second"]


def test_what_is_kept_of_a_replay() -> None:
    summary = {
        "requests": 4, "hit_share": 0.25, "mean_s": 0.2, "quantiles_s": [0.1, 0.4, 0.5],
        "views_left": 1, "demand_bytes": 2_000_000, "prefetched_bytes": 6_000_000,
        "used_bytes": 1_000_000, "prefetches": [9, 1],
    }  # fmt: skip
    kept = replays.kept(CABLE, {"summary": summary, "queue": {"drops": 5, "sent_packets": 95}})
    # 1.5 Mbit/s carry 0.1875 MB a second
    assert kept["load"] == pytest.approx(2 / (0.1875 * CABLE.duration_s))
    assert (kept["prefetched_mb"], kept["used_mb"], kept["refused"]) == (6.0, 1.0, 1)
    assert kept["drops"] == pytest.approx(0.05)
    assert kept["p95_s"] == 0.4


def results(*settings: replays.Setting, reno: float, ours: float) -> Results:
    """Return results in which prefetching takes so many times as long as none."""
    points = []
    for setting in settings:
        runs = {}
        for name in setting.trials:
            ratio = {"Reno": reno, "Nice": ours}.get(name.split(", ")[-1], 1.0)
            gentle = (ratio + 1) / 2 if name.startswith("conservative") else ratio
            runs[name] = {
                key: [gentle, 1.1 * gentle]
                for key in ("mean_s", "median_s", "p95_s", "hit", "load", "demand_mb", "drops",
                            "prefetched_mb", "used_mb", "refused", "unfinished", "requests")
            }  # fmt: skip
        points.append({"at": dict(setting.at), "runs": runs})
    return Results({"name": settings[0].name, "seeds": 2, "points": points})


def browsed(setting: browsing.Setting, load: float, download: float) -> Results:
    """Return results in which pages and downloads take so many times as long with prefetching."""
    keys = ("p95_s", "cached", "demand_mb", "prefetches", "ahead_mb")
    kinds = dict.fromkeys(browsing.KINDS, 1.0) | {browsing.CACHED: load}
    runs = {
        name: {key: [1.0, 1.0] for key in keys}
        | {"load_s": [load, load], "typical_s": [load, load]}
        | {"download_s": [download, download]}
        | {"each": 2 * [[["/", time, kind, 1.0, 3.0] for kind, time in kinds.items()]]}
        for name in setting.trials
    }
    for name in {NONE, browsing.DIRECT} & runs.keys():
        runs[name] = {key: [1.0, 1.0] for key in runs[name]}
        runs[name]["each"] = 2 * [[["/", 1.0, browsing.UNFORESEEN, 1.0, 0.0] for _ in kinds]]
    document = {"name": setting.name, "seeds": 2, "points": [{"at": {}, "runs": runs}]}
    return Results(document)


def predicted() -> Results:
    """Return the saved comparison of predictors."""
    found = load(ROOT / "docs" / "data" / "prefetch", quality.NAME)
    assert found is not None
    return found


def measured(
    reno: float, ours: float, load: float = 0.8, download: float = 1.0
) -> dict[str, Results]:
    return {
        **{s.name: results(s, reno=reno, ours=ours) for s in (CABLE, MODEM, TRADE_OFF)},
        LOADS[0].name: results(*LOADS, reno=reno, ours=ours),
        quality.NAME: predicted(),
        **{s.name: browsed(s, load, download) for s in browsing.SETTINGS},
    }


@pytest.mark.parametrize("claim", [p1, p2])
def test_a_claim_needs_harm_by_reno_and_none_by_ours(claim: Any) -> None:  # noqa: ANN401
    assert claim(measured(reno=3.0, ours=0.5)).verdict == "holds"
    assert claim(measured(reno=1.1, ours=0.5)).verdict == "differs"
    slower = claim(measured(reno=3.0, ours=1.2))
    assert slower.verdict == "differs"
    assert slower.cause
    assert slower.interval is not None


def test_nice_costs_nothing_at_any_threshold_where_reno_begins_to() -> None:
    assert p3(measured(reno=1.1, ours=0.9)).verdict == "holds"
    assert p3(measured(reno=1.0, ours=0.9)).verdict == "differs"
    assert p3(measured(reno=3.0, ours=1.2)).verdict == "differs"


def test_a_gain_that_cannot_be_told_is_none() -> None:
    found = measured(1.0, 1.0, load=0.9)
    alone = found[ALONE.name].document["points"][0]["runs"]
    alone["Nice"]["typical_s"] = [0.5, 1.3]
    claim = p5(found)
    assert claim.verdict == "differs"
    assert "no gain that can be told" in claim.ours
    assert (claim.cause or "").startswith("2 seeds are too few")


def test_demand_grows_over_the_loads() -> None:
    assert [setting.replay(setting.trials[NONE], 1)["options"][4] for setting in LOADS] == [
        "1", "2", "3", "4",
    ]  # fmt: skip
    assert len({setting.scenario().measure_s for setting in LOADS}) == 1
    assert "times as long as none" in (p1(measured(reno=1.1, ours=0.5)).cause or "")


def test_predictors_are_compared_on_the_logs_third_day() -> None:
    """What is popular needs no predictor: its row is counted again here, from the log."""
    with gzip.open(tools.WEB_LOG, "rt") as lines:
        rows = [
            row for row in csv.DictReader(lines)
            if row["method"] == "GET" and row["status"] in ("200", "304") and row["bot"] == "0"
            and re.fullmatch(r"/(?!/)[^?\"<>\\^`{|}#\s]*", row["path"])
            and browsing.ending(row["path"]) not in (".php", ".cgi", ".pl", ".py", ".rb", ".exe")
        ]  # fmt: skip
    then = [row for row in rows if int(row["time_s"]) >= browsing.LEARNED_S]
    found = predicted()
    row = quality.named(quality.POPULAR)
    assert quality.value(found, "compared", row, quality.BASE) == len(then) == 2283
    assert quality.value(found, "learned", row, quality.BASE) == len(rows) - len(then) == 2911
    # an hour's requests lie within a minute, and a cache is empty after 30: each client and hour
    # asks once for each path that its cache lacks
    wanted = len({(*browsing.section(row), row["path"]) for row in then})
    score = [quality.value(found, key, row, quality.BASE) for key in ("foreseen", "missed")]
    assert sum(score) == wanted
    assert quality.value(found, "recall", row, quality.BASE) == pytest.approx(
        score[0] / wanted, rel=1e-5
    )


def test_ppm_beats_the_popular_and_its_window_is_why_markov_beats_it() -> None:
    found = predicted()
    claim = p4({quality.NAME: found})
    assert claim.verdict == "differs"
    assert (claim.cause or "").startswith("The window is the cause.")
    ppm, markov = quality.named(quality.PPM), quality.named(quality.MARKOV)
    near = quality.BASE | {"n": 1, "w": 1}
    assert quality.both(found, ppm, near) == quality.both(found, markov, near)


def test_what_evaluate_gets() -> None:
    assert quality.options(quality.BASE | {"of": "pages"}) == [
        "--learn", "2d", "--by-referer", "--hours", "48", "-n", "2", "-w", "5", "--pages-only",
    ]  # fmt: skip


def test_browsers_are_sooner_served_and_slow_nobody() -> None:
    assert p5(measured(1.0, 1.0, load=0.9, download=1.04)).verdict == "holds"
    assert p5(measured(1.0, 1.0, load=0.9, download=1.06)).verdict == "differs"
    assert p5(measured(1.0, 1.0, load=1.01, download=1.0)).verdict == "differs"
    assert p5h(measured(1.0, 1.0, load=0.9, download=1.04)).verdict == "holds"
    assert p5h(measured(1.0, 1.0, load=0.9, download=1.06)).verdict == "differs"
    # sooner than through a proxy that suggests nothing is not sooner than without any
    found = measured(1.0, 1.0, load=0.9)
    found[ALONE.name].document["points"][0]["runs"][browsing.DIRECT]["typical_s"] = [0.8, 0.8]
    assert p5(found).verdict == "differs"


def test_pages_are_compared_with_the_same_without_prefetching() -> None:
    found = browsed(ALONE, 0.5, 1.0)
    row = kinds.by_kind(found, "Nice", browsing.CACHED)
    assert (row["mean"], row["pages"], row["all"], row["s"], row["none_s"]) == (0.5, 2, 8, 0.5, 1.0)
    assert kinds.gain_by_kind(found, "Nice").startswith(
        "of 8 pages 2 are the first of a walk (1.00 [1.00, 1.00]), 2 come from the cache (0.50"
    )
    assert len(shown.kind_rows({ALONE.name: found}, (ALONE,))) == 2 * len(browsing.KINDS)
    assert kinds.waits(found, "Nice", ALONE.rate_mbit) == ""
    for seed in kinds.pages(found, "Nice"):
        seed[0][1] = 1.02  # the first pages take 20 ms longer, 3 kB take the cable 16 ms
    told = kinds.waits(found, "Nice", ALONE.rate_mbit)
    assert "take 20 ms longer" in told
    assert "3 kB" in told
    assert told.endswith("take the link 16 ms.")


def test_what_is_kept_of_browsers() -> None:
    page = {"url": "http://site/", "load_ms": 300.0, "bytes": 500}
    log = [
        '1.2.3.4 - - [time] "GET / HTTP/1.1" 200 1000 "-" "agent"',
        '1.2.3.4 - - [time] "GET /b HTTP/1.1" 200 3000 "http://site/" "agent" "prefetch"',
        '1.2.3.4 - - [time] "GET /download.bin HTTP/1.1" 200 9999 "-" "agent"',
    ]
    kept = browsing.kept({
        "walks": [[page, page | {"load_ms": 100.0, "bytes": 0}]], "downloads_ms": [1000.0, 2000.0],
        "log": log, "queue": {"drops": 0, "sent_packets": 10},
    })  # fmt: skip
    assert (kept["load_s"], kept["cached"]) == (pytest.approx(0.2), 0.5)
    assert kept["typical_s"] == pytest.approx(0.03**0.5)
    assert (kept["requests"], kept["demand_mb"]) == (1, 0.001)
    assert (kept["prefetches"], kept["ahead_mb"]) == (1, 0.003)
    assert (kept["downloads"], kept["download_s"]) == (2, 1.5)


def test_kinds_of_pages() -> None:
    answer = '1.2.3.4 - - [time] "GET /{} HTTP/2.0" 200 {} "http://site/{}" "Chromium walk {}"{}'
    log = [
        answer.format("a", 1000, "", 0, ""),
        answer.format("a.png", 500, "a", 0, ""),
        answer.format("b", 2000, "a", 0, ' "prefetch"'),
        answer.format("c", 2000, "b", 0, ' "prefetch"'),
        answer.format("c", 2000, "b", 0, ""),
        answer.format("d", 1000, "", 1, ' "prefetch"'),
        answer.format("d", 1000, "", 0, ""),
    ]
    sizes = {"a": 1000, "b": 0, "c": 2000, "d": 1000}
    pages = [{"url": f"http://site/{n}", "load_ms": 100.0, "bytes": b} for n, b in sizes.items()]
    # what another walk was sent ahead is not there for this one
    assert list(browsing.each({"walks": [pages]}, browsing.Answer.read(log))) == [
        ["/a", 0.1, browsing.FIRST, 1.5, 2.0], ["/b", 0.1, browsing.CACHED, 0.0, 2.0],
        ["/c", 0.1, browsing.LATE, 2.0, 0.0], ["/d", 0.1, browsing.UNFORESEEN, 1.0, 0.0],
    ]  # fmt: skip


def test_foresight_is_a_log_of_two_clients(tmp_path: Path) -> None:
    log = browsing.Log.read()
    with browsing.foreseen(tmp_path, "walks.csv", log.walks[:2], log).open() as lines:
        rows = list(csv.DictReader(lines))
    assert set(rows[0]) == set(log.rows[0])
    pages = [row["path"] for row in rows if browsing.is_page(row["path"])]
    assert pages == 2 * [page for walk in log.walks[:2] for page in walk]
    assert len({row["client"] for row in rows}) == 4


def test_a_walk_follows_referers_and_names_each_page_once() -> None:
    rows = [
        {"path": "/b", "referer_path": "/a"},
        {"path": "/c", "referer_path": ""},
        {"path": "/a", "referer_path": "/elsewhere"},
        {"path": "/c", "referer_path": "/b"},
    ]
    assert browsing.walk(rows) == ["/c", "/a", "/b"]


def test_walks_are_pages_that_the_proxy_has_not_learned() -> None:
    log = browsing.Log.read()
    walks = log.walks
    assert len(walks) == 68
    assert all(browsing.SHORTEST <= len(walk) <= browsing.LONGEST for walk in walks)
    assert all(log.objects[page] is not None for walk in walks for page in walk)
    assert "/style2.css" in (log.objects["/"] or [])


def test_every_table_and_figure_is_made_of_what_was_measured() -> None:
    found = measured(reno=3.0, ours=0.5)
    for statement in REPRODUCTION.claims:
        for drawing in statement.drawings:
            assert drawing.draw(found).axes
        for table in statement.tables:
            assert all(len(row) == len(table.columns) for row in table.rows(found))
    assert shown.rows(found, "cable")[0][0] == NONE
    assert len(shown.rows(found, "thresholds")) == 1 + 2 * (len(THRESHOLDS) + 1)
    both = (ALONE, BESIDE)
    assert len(shown.browser_rows(found, both)) == len(ALONE.trials) + len(BESIDE.trials)
