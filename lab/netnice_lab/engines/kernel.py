# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""The kernel engine: every background with every seed, spread over virtual machines."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from .. import LabError, job, stats, vm
from ..guest.places import BULK_PORT, CROSS_PORT, HEADERS, PAYLOAD
from ..scenario import NONE, Scenario, Section, describe
from .base import Planned, document

Json = dict[str, Any]

FOREGROUND = "[foreground]"

_COUNT_PACKETS = ("codel", "fq_codel", "pie", "cake")
"""Queues of Linux whose room is a number of packets, not of bytes on the wire."""


MOST_SHARES = CROSS_PORT - BULK_PORT
"""Flows that have shares are each a run with a port of its own, below those of `[[cross]]`."""


@dataclass(frozen=True)
class OnKernel(Planned):
    """What runs in virtual machines, worked out once."""

    scenario: Scenario
    """As given; one duplex link between a and b is its bottleneck, which is in both directions."""
    runs: Sequence[Json]
    """As the guest reads them, in the order of seeds, then variants."""

    def digest(self, outcome: Json) -> Json:
        """Turn what the guest's programs reported of a run into its entry."""
        return digest(self.scenario, self.runs[outcome["run"]], outcome)

    @property
    def timeout_s(self) -> float:
        """Return wall seconds after which a machine with all of it must have hung."""
        return timeout_s(self.scenario, len(self.runs))


def plan(
    scenario: Scenario, variants: Sequence[Section] = (), seeds: Sequence[int] = (1,)
) -> OnKernel:
    """Return what shall run of a scenario that this engine carries; else raise LabError.

    Without `variants` that is no background.
    """
    known = describe(scenario)
    given, dumbbell, variants = known.scenario, known.dumbbell, variants or known.variants[:1]
    reasons = chain(
        _network(given, dumbbell), _traffic(given, variants, dumbbell), _room(variants, dumbbell)
    )
    for what, why in reasons:
        raise LabError(
            f"{given.name}: the kernel engine does not carry {what}: {why}. Use --engine sim."
        )
    for background in (v.background for v in variants if v.background):
        if background.control.startswith("nn_"):
            continue
        for key, what in (("set", "sets parameters"), ("group", "is a group")):
            if background[key]:
                raise LabError(
                    f"{given.name}: the background {background.name!r} {what}, which on the "
                    f"kernel only nn_* controls have. Remove `{key}`, or choose an nn_* control."
                )
    runs = [
        {
            "index": index,
            "seed": seed,
            "queue": variant.queue or dumbbell.bottleneck.queue,
            "background": variant.background,
            "duplex": dumbbell.duplex,
        }
        for index, (seed, variant) in enumerate((s, v) for s in seeds for v in variants)
    ]
    flat = given.but(bottleneck=dumbbell.bottleneck, link=[])
    return OnKernel(given, seeds, variants, flat, runs)


def _network(scenario: Scenario, dumbbell: Section | None) -> Iterator[tuple[str, str]]:
    """Yield what this engine does not have of the network and its ends, and why."""
    if dumbbell is None:
        yield (
            "[[link]]",
            "its network is one [bottleneck], or one duplex link of a rate from a to b",
        )
    elif dumbbell.bottleneck.trace is not None:
        yield "bottleneck.trace", "its bottleneck has a rate"
    elif scenario.pacing and dumbbell.bottleneck.loss:
        yield "pacing with bottleneck.loss", "both are the queue of its sender's link"
    elif (
        scenario.foreground
        and scenario.foreground.host is not None
        and (scenario.pacing or dumbbell.bottleneck.loss)
    ):
        yield (
            "host in [foreground] with pacing or bottleneck.loss",
            "both are on the link of the background's host alone",
        )
    if scenario.route:
        yield "[[route]]", "its network has one path"
    if scenario.hosts:
        yield "[[hosts]]", "its network has a host at each end"
    if scenario.profile != "linux":
        yield f'profile = "{scenario.profile}"', "its TCP is that of Linux"
    if scenario.overhead_ms:
        yield "overhead_ms", "its senders do not wait"
    known = describe(scenario)
    for key, of_ethernet in (("mss_bytes", PAYLOAD), ("header_bytes", HEADERS)):
        if known[key] != of_ethernet:
            yield f"{key} = {known[key]}", f"on its Ethernet that is {of_ethernet}"


def _traffic(
    scenario: Scenario, variants: Sequence[Section], dumbbell: Section
) -> Iterator[tuple[str, str]]:
    """Yield what this engine does not have of the traffic, and why."""
    backgrounds = [v.background for v in reversed(variants) if v.background]
    if scenario.foreground and scenario.foreground.keep_alive:
        yield "keep_alive in [foreground]", "each of its fetches has a connection of its own"
    for section, flows in (
        *((f"[[cross]] {cross.name!r}", cross) for cross in scenario.cross),
        *((f"[[background]] {b.name!r}", b) for b in backgrounds),
        *([(FOREGROUND, scenario.foreground)] if scenario.foreground else []),
    ):
        if flows.window_packets is not None:
            yield f"window_packets in {section}", "its receivers tune their windows themselves"
        yield from _hosts(section, flows)
        back = dumbbell.duplex and flows in scenario.cross and (flows.from_, flows.to) == ("b", "a")
        if not back and (flows.from_ not in (None, "a") or flows.to not in (None, "b")):
            yield (
                f"from and to in {section}",
                'its data flows from "a" to "b"; that of [[cross]] back too, over a duplex link',
            )
    for background in backgrounds:
        section = f"[[background]] {background.name!r}"
        if background.stop_stagger_s:
            yield f"stop_stagger_s in {section}", "its flows stop together"
        if background.shares and (background.queue or dumbbell.bottleneck.queue) == "priority":
            yield f"shares in {section}", "strict priority knows one port of bulk flows"
        if background.shares and background.flows > MOST_SHARES:
            yield f"shares in {section}", f"it has {MOST_SHARES} runs of a group at most"
    for cross in scenario.cross:
        section = f"[[cross]] {cross.name!r}"
        if cross.group is not None:
            yield f"group in {section}", "it has groups of backgrounds"
        if cross.set:
            yield f"set in {section}", "it sets parameters for backgrounds"
        if cross.kind != "tcp":
            yield f'kind = "{cross.kind}" in {section}', "it sends TCP"


def _hosts(section: str, flows: Section) -> Iterator[tuple[str, str]]:
    """Yield what this engine does not have of the hosts that flows are on, and why."""
    if flows.host is not None and section != FOREGROUND:
        yield f"host in {section}", "none but the foreground has a host of its own"
    if flows.get("senders") is not None:
        yield f"senders in {section}", "all of them are on one host"
    if flows.get("hold") and not flows.control.startswith("nn_"):
        yield f"hold in {section}", "it holds what netnice run marks: a control of netnice, nn_..."
    if flows.get("pull") and flows.control.startswith("nn_"):
        yield f"pull with a control of netnice in {section}", "its senders know nothing of netnice"
    for key in ("hold_rate_mbit", "oracle"):
        if flows.get(key) is not None:
            yield f"{key} in {section}", "its host measures its path, and nobody tells it"


def _room(variants: Sequence[Section], dumbbell: Section) -> Iterator[tuple[str, str]]:
    """Yield what this engine does not have of the queue's room, and why."""
    bottleneck = dumbbell.bottleneck
    if bottleneck.limit_bytes is None:
        return
    if bottleneck.limit_packets is not None:
        yield "limit_packets and limit_bytes at once", "its queues have one of them"
    for variant in variants:
        queue = variant.queue or bottleneck.queue
        if queue in _COUNT_PACKETS:
            yield f"limit_bytes in queue {queue}", "Linux counts the packets in it"


def timeout_s(scenario: Scenario, runs: int) -> float:
    """Return wall seconds after which a machine with so many runs must have hung."""
    return 300 + runs * (60 + 20 * float(describe(scenario).end_s))


@dataclass(frozen=True)
class Kernel:
    """The engine: Linux in virtual machines, `jobs` at a time; with controls of `modules`, too."""

    modules: Sequence[Path] = ()

    def plan(
        self, scenario: Scenario, seeds: Sequence[int], variants: Sequence[Section]
    ) -> OnKernel:
        """Return what `plan` does."""
        return plan(scenario, variants, seeds)

    def run(
        self,
        plan: OnKernel,
        *,
        jobs: int,
        command: Sequence[str],
        progress: Callable[[Json], None],
    ) -> Json:
        """Run it; see `Engine.run`."""
        entries: dict[int, Json] = {}
        lock = threading.Lock()

        def collect(outcome: Json) -> None:
            entry = plan.digest(outcome)
            with lock:
                entries[outcome["run"]] = entry
                progress(entry)

        job.run_all(
            plan.scenario, plan.runs, vms=jobs, modules=self.modules, timeout_s=plan.timeout_s,
            each=collect,
        )  # fmt: skip
        ordered = [entries[index] for index in sorted(entries)]
        version = vm.find_kernel().version
        return document(plan.given, "kernel", version, command, ordered)


def digest(scenario: Scenario, planned: Json, outcome: Json) -> Json:
    """Turn what the guest's programs reported into the entry of one run."""
    background = planned["background"]
    flows = [f for f in outcome["fetch"]["flows"] if f["counted"]] if outcome["fetch"] else []
    rtts = [p["rtt_ms"] for p in outcome["probe"]["samples"]] if outcome["probe"] else None
    rates = _rates(scenario, outcome["sink"]) if background else []
    entry = {
        "background": background["name"] if background else NONE,
        "control": background["control"] if background else None,
        "flows": background["flows"] if background else 0,
        "seed": planned["seed"],
        "foreground": stats.foreground(flows, scenario.measure_s),
        "probe": stats.probe(rtts) if rtts is not None else None,
        "background_goodput_mbit": sum(rates),
        "background_flow_mbit": rates,
        "queue": outcome["queue"],
    }
    if scenario.cross:
        entry["cross"] = [
            {"name": cross.name, "goodput_mbit": sum(_rates(scenario, sink))}
            for cross, sink in zip(scenario.cross, outcome["cross"], strict=True)
        ]
    return entry


def _rates(scenario: Scenario, sink: Json) -> list[float]:
    """Return the goodput of each flow in the measured window, in Mbit/s."""
    return [f["window_bytes"] * 8e-6 / scenario.measure_s for f in sink["flows"]]
