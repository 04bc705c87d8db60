# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Claims P5 and P5H on prefetching: Chromium on the cable, by itself and beside downloads."""

from __future__ import annotations

from ...claims.claim import Found, Json, Measured, claim, found
from ...claims.results import Results
from ...scenario import NONE
from . import shown
from .browsing import ALONE, BESIDE, DIRECT, HTTP2
from .kinds import gain_by_kind, waits
from .replays import NICE, PERFECT

NOT_SLOWED = 1.05
"""Mean time of a download over that without prefetching, up to which it is not slowed."""


def is_below(ratio: Json, bound: float) -> bool:
    """Tell whether the whole interval lies below a bound."""
    return ratio["hi"] is not None and bool(ratio["hi"] < bound)


def few(load: Json, trials: Results) -> str:
    """Return that the seeds are too few to tell, if pages are sooner but their interval holds 1."""
    if load["mean"] >= 1 or is_below(load, 1):
        return ""
    return f"{trials.seeds} seeds are too few to tell whether pages gain: walks differ. "


@claim(
    "P5",
    needs=(ALONE.name, BESIDE.name),
    text="Chromium on the cable: pages load sooner with prefetching in the background than "
    "without, be it through the proxy that suggests nothing (none) or straight from nginx (direct; "
    "geometric means, both intervals below 1), and a second browser's downloads take at most "
    f"{100 * (NOT_SLOWED - 1):.0f} % longer",
    paper="no browser",
    ours="pages over none {load}, over direct {direct}{no_gain}; beside downloads over none "
    "{beside}; downloads over none {download}",
    cause="{few}Over none, {gain}.{waits} The ceiling: with a proxy that has learned the very "
    "walks, and suggests all that it foresees, pages take {perfect} times as long; "
    "{perfect_gain}.{perfect_waits} The proxy itself: none takes {proxy} times as long as direct.",
    drawings=(shown.BROWSERS_FIGURE,),
    tables=shown.browsed((ALONE, BESIDE)),
)
def pages_come_sooner(measured: Measured) -> Found:
    """In Chromium pages come sooner, and nobody else notices."""
    alone, beside = measured[ALONE.name], measured[BESIDE.name]
    load, download = alone.harm(NICE, "typical_s"), beside.harm(NICE, "download_s")
    direct = alone.ratio("typical_s", NICE, DIRECT)
    sooner = is_below(load, 1) and is_below(direct, 1)
    return found(
        sooner and download["mean"] <= NOT_SLOWED,
        load,
        load=load,
        direct=direct,
        no_gain="" if sooner else ", no gain that can be told",
        beside=beside.harm(NICE, "typical_s"),
        download=download,
        few=few(load, alone),
        gain=gain_by_kind(alone, NICE),
        waits=waits(alone, NICE, ALONE.rate_mbit),
        perfect=alone.harm(PERFECT, "typical_s"),
        perfect_gain=gain_by_kind(alone, PERFECT),
        perfect_waits=waits(alone, PERFECT, ALONE.rate_mbit),
        proxy=alone.ratio("typical_s", NONE, DIRECT),
    )


@claim(
    "P5H",
    needs=(HTTP2.name,),
    text="Chromium over HTTP/2 beside downloads: pages load sooner with prefetching in the "
    "background than without (geometric mean, its interval below 1), and the downloads take at "
    f"most {100 * (NOT_SLOWED - 1):.0f} % longer",
    paper="no browser",
    ours="over none: pages {load}; downloads {download}",
    cause="{few}Over none, {gain}.{waits}",
    tables=shown.browsed((HTTP2,)),
)
def pages_come_sooner_over_http2(measured: Measured) -> Found:
    """Over HTTP/2, where pages and prefetches have one connection, it is the same."""
    http2 = measured[HTTP2.name]
    load, download = (http2.harm(NICE, key) for key in ("typical_s", "download_s"))
    return found(
        is_below(load, 1) and download["mean"] <= NOT_SLOWED, load, load=load, download=download,
        few=few(load, http2), gain=gain_by_kind(http2, NICE),
        waits=waits(http2, NICE, HTTP2.rate_mbit),
    )  # fmt: skip
