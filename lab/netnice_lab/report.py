# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Tables and sentences from results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich import box
from rich.table import Table

from . import stats
from .scenario import IDEAL, NONE

Json = dict[str, Any]


def number(value: float | None, digits: int = 2) -> str:
    """Return a number for a table; a dash for none."""
    return "–" if value is None else f"{value:.{digits}f}"  # noqa: RUF001 (a real dash)


def with_interval(value: Json, scale: float = 1.0, digits: int = 2) -> str:
    """Return ``mean [lo, hi]``, scaled; the mean alone where there is no interval."""
    if value["mean"] is None:
        return number(None)
    text = number(value["mean"] * scale, digits)
    if value["lo"] is None:
        return text
    return f"{text} [{value['lo'] * scale:.{digits}f}, {value['hi'] * scale:.{digits}f}]"


def unshared(summary: Sequence[Json]) -> str | None:
    """Return why these backgrounds have no share that says anything; None if they have."""
    for entry in summary:
        if (paired := entry.get("share_seeds")) is not None:
            left_out = entry["seeds"] - paired
            return (
                "strict priority leaves nothing to compare with in "
                f"{left_out} of {entry['seeds']} seeds"
            )
        if entry["background"] == IDEAL and entry["background_goodput_mbit"] < stats.LITTLE:
            return f"strict priority carries less than {stats.LITTLE} Mbit/s to compare with"
    return None


def starved(summary: Sequence[Json]) -> str:
    """Return the names of the backgrounds beside which no fetch at all finished."""
    return ", ".join(
        entry["background"] for entry in summary
        if entry["fct_mean_s"] is None and entry["unfinished"]
    )  # fmt: skip


def of_seeds(entry: Json) -> str:
    """Return of how many seeds the FCT ratios of a background are; nothing if of all."""
    paired = entry.get("fct_seeds")
    return "" if paired is None else f"of {paired} of {entry['seeds']} seeds"


def named(entry: Json) -> str:
    """Return the name of a background, with `of_seeds`."""
    return f"{entry['background']} ({of})" if (of := of_seeds(entry)) else str(entry["background"])


def _and_starved(*summaries: Sequence[Json]) -> str:
    """Return what the caption adds of a table with ratios of some seeds only."""
    every = (entry for summary in summaries for entry in summary)
    few = dict.fromkeys(named(entry) for entry in every if of_seeds(entry))
    if not few:
        return ""
    return f"; ratios of the seeds in which fetches finished: {', '.join(few)}"


def share(entry: Json, summary: Sequence[Json]) -> Json:
    """Return the share of a background in a summary; one without a mean where it says nothing."""
    found: Json = stats.interval([]) if unshared(summary) else entry["share"]
    return found


_NO_SHARE = (
    f"; no share where strict priority carries less than {stats.LITTLE} Mbit/s, or nothing with "
    "some seed"
)


def _and_unshared(*summaries: Sequence[Json]) -> str:
    """Return what the caption adds of a table that has no shares."""
    why = next(filter(None, map(unshared, summaries)), None)
    return f"; no shares: {why}" if why else ""


def table(result: Json) -> Table:
    """Return the one table of a result: a row for each background."""
    scenario, summary = result["scenario"], result["summary"]
    seeds = max(entry["seeds"] for entry in summary)
    brackets = "; [95 % confidence interval]" if seeds > 1 else ""
    out = Table(
        title=f"{scenario['name']}: {scenario.get('title', '')}",
        caption=f"ratios to no background, shares to strict priority; seeds: {seeds}{brackets}"
        + _and_starved(summary)
        + _and_unshared(summary),
        box=box.SIMPLE_HEAD,
    )
    out.add_column("background", no_wrap=True)
    whose, rtts = _rtt_ratios(summary)
    columns = ["FCT\nmean s", "FCT ratio\nmean", "ratio\np95", "ratio\np99"]
    columns += [f"{whose}\nRTT ratio", "background\nMbit/s", "share\n%"]
    for column in columns:
        out.add_column(column, justify="right", no_wrap=True)
    for entry, rtt in zip(summary, rtts, strict=True):
        out.add_row(
            entry["background"],
            number(entry["fct_mean_s"], 3),
            with_interval(entry["fct_ratio_mean"]),
            number(entry["fct_ratio_p95"]["mean"]),
            number(entry["fct_ratio_p99"]["mean"]),
            number(rtt),
            number(entry["background_goodput_mbit"]),
            with_interval(share(entry, summary), 100, 0),
        )
    return out


def _rtt_ratios(summary: Sequence[Json]) -> tuple[str, list[float | None]]:
    """Return whose RTTs are known, and their ratios: of the users' packets, or else of probes."""
    own = [(entry.get("packet_rtt_ratio_mean") or {}).get("mean") for entry in summary]
    if any(ratio is not None for ratio in own):
        return "packet", own
    return "probe", [entry["probe_rtt_ratio_mean"] for entry in summary]


def engines(kernel: Json, sim: Json) -> Table:
    """Return what both engines say about the same scenario, side by side."""
    seeds = max(entry["seeds"] for entry in kernel["summary"])
    out = Table(
        title=f"{kernel['scenario']['name']}: {kernel['scenario'].get('title', '')}",
        caption="FCT ratios to no background, shares to strict priority, "
        f"the simulator's difference from the kernel; seeds: {seeds}"
        + ("; [95 % confidence interval]" if seeds > 1 else "")
        + _and_starved(kernel["summary"], sim["summary"])
        + _and_unshared(kernel["summary"], sim["summary"]),
        box=box.SIMPLE_HEAD,
    )
    out.add_column("background", no_wrap=True)
    for column in (
        "FCT ratio\nkernel",
        "\nsim",
        "diff.\n%",
        "share %\nkernel",
        "\nsim",
        "diff.\n%",
    ):
        out.add_column(column, justify="right", no_wrap=True)
    shared = [
        [entry | {"share": share(entry, its["summary"])} for entry in its["summary"]]
        for its in (kernel, sim)
    ]
    for entry in stats.compare(*shared):
        harm, used = entry["fct_ratio_mean"], entry["share"]
        out.add_row(
            entry["background"],
            *(with_interval(harm[engine]) for engine in ("kernel", "sim")),
            percent(harm["difference"]),
            *(with_interval(used[engine], 100, 0) for engine in ("kernel", "sim")),
            percent(used["difference"]),
        )
    return out


def percent(value: float | None) -> str:
    """Return a share as a signed percentage for a table; a dash for none."""
    return number(None) if value is None else f"{100 * value:+.0f}"


def sweep(result: Json) -> Table:
    """Return the table of a sweep: a row for each setting and background."""
    brackets = "; [95 % confidence interval]" if result["seeds"] > 1 else ""
    out = Table(
        title=f"{result['scenario']['name']}: {result['scenario'].get('title', '')}",
        caption="FCT ratios to no background, shares to strict priority; "
        f"seeds: {result['seeds']}{brackets}"
        + _and_starved(*(point["summary"] for point in result["results"]))
        + (_NO_SHARE if any(unshared(point["summary"]) for point in result["results"]) else ""),
        box=box.SIMPLE_HEAD,
    )
    for key in result["vary"]:
        out.add_column("\n".join(key.rsplit(".", 1)), justify="right")
    out.add_column("background", no_wrap=True)
    for column in ("FCT ratio\nmean", "ratio\np95", "ratio\np99", "share\n%"):
        out.add_column(column, justify="right", no_wrap=True)
    for point in result["results"]:
        for entry in point["summary"]:
            if entry["background"] == NONE:
                continue
            out.add_row(
                *(str(point["settings"][key]) for key in result["vary"]),
                entry["background"],
                with_interval(entry["fct_ratio_mean"]),
                number(entry["fct_ratio_p95"]["mean"]),
                number(entry["fct_ratio_p99"]["mean"]),
                with_interval(share(entry, point["summary"]), 100, 0),
            )
    return out


def sentence(result: Json) -> str:
    """Return in words what the table means, with its numbers."""
    summary = result["summary"]
    variants = [e for e in summary if e["background"] not in (NONE, IDEAL)]
    rated = [e for e in variants if e["fct_ratio_mean"]["mean"] is not None]
    text = ""
    if rated:
        best = min(rated, key=lambda e: float(e["fct_ratio_mean"]["mean"]))
        worst = max(rated, key=lambda e: float(e["fct_ratio_mean"]["mean"]))
        text = f"With {best['background']} in the background a fetch takes {_harm(best, summary)}"
        if worst is not best:
            text += f"; with {worst['background']} {_harm(worst, summary)}"
        text += "."
    elif any(e["unfinished"] or e["fct_mean_s"] is not None for e in summary):
        text = "No seed has finished fetches both with and without a background."
    elif variants:
        rates = [float(e["background_goodput_mbit"]) for e in variants]
        text = (
            "Without foreground there is no harm to compare; the backgrounds move "
            f"{number(min(rates))} to {number(max(rates))} Mbit/s."
        )
    if names := starved(summary):
        text += f" No fetch finished with {names}."
    return f"{text} {late(summary)}".strip()


def late(summary: Sequence[Json]) -> str:
    """Return in words how many fetches these entries leave out; nothing if none."""
    entries = [entry for entry in summary if entry["unfinished"]]
    if not entries:
        return ""
    names = dict.fromkeys(entry["background"] for entry in entries)
    return (
        f"{sum(entry['unfinished'] for entry in entries)} fetches ({', '.join(names)}) had not "
        "finished when the run ended; the means do not hold them, so the true harm is larger."
    )


def _harm(entry: Json, summary: Sequence[Json]) -> str:
    text = f"{number(entry['fct_ratio_mean']['mean'])} times as long as without one"
    if of := of_seeds(entry):
        text += f" (the mean {of})"
    if (used := share(entry, summary)["mean"]) is not None:
        text += f", and the background gets {100 * used:.0f} % of what is spare"
    return text
