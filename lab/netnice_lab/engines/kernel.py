# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""The kernel engine: every background with every seed, spread over virtual machines."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

from .. import LabError, job, stats, vm
from ..guest.places import BULK_PORT, CROSS_PORT
from ..scenario import NONE, Background, Bottleneck, Cross, Foreground, Link, Scenario
from .base import Planned, check_ranges, document

Json = dict[str, Any]

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
    scenario: Scenario,
    variants: Sequence[Background | None] = (None,),
    seeds: Sequence[int] = (1,),
) -> OnKernel:
    """Return what shall run of a scenario that this engine carries; else raise LabError."""
    check_ranges(scenario)
    duplex, flat = is_duplex(scenario), flattened(scenario)
    reasons = chain(_network(flat), _traffic(flat, variants, duplex), _room(flat, variants))
    for what, why in reasons:
        raise LabError(
            f"{scenario.name}: the kernel engine does not carry {what}: {why}. Use --engine sim."
        )
    for background in variants:
        if background is None or background.control.startswith("nn_"):
            continue
        for key, what in (("set", "sets parameters"), ("group", "is a group")):
            if getattr(background, key):
                raise LabError(
                    f"{scenario.name}: the background {background.name!r} {what}, which on the "
                    f"kernel only nn_* controls have. Remove `{key}`, or choose an nn_* control."
                )
    assert flat.bottleneck is not None
    runs = [
        {
            "index": index,
            "seed": seed,
            "queue": (variant and variant.queue) or flat.bottleneck.queue,
            "background": job.background_json(variant),
            "duplex": duplex,
        }
        for index, (seed, variant) in enumerate((s, v) for s in seeds for v in variants)
    ]
    return OnKernel(scenario, seeds, variants, flat, runs)


def flattened(scenario: Scenario) -> Scenario:
    """Return the scenario with its one duplex link between a and b as a bottleneck, if it has one.

    The bottleneck then is one in both directions: see `is_duplex`.
    """
    if not is_duplex(scenario):
        return scenario
    (link,) = scenario.link
    assert link.rate_mbit is not None
    bottleneck = Bottleneck(
        rate_mbit=link.rate_mbit,
        rtt_ms=2 * link.delay_ms,
        limit_packets=link.limit_packets,
        limit_bytes=link.limit_bytes,
        queue=link.queue,
        ecn=link.ecn,
    )
    return replace(scenario, bottleneck=bottleneck, link=[])


def is_duplex(scenario: Scenario) -> bool:
    """Return whether the network is one link of a rate, with a queue at each of its ends."""
    if scenario.bottleneck is not None or len(scenario.link) != 1:
        return False
    (link,) = scenario.link
    plain = replace(
        link, name="", rate_mbit=None, delay_ms=0.0, limit_packets=None, limit_bytes=None,
        queue="drop-tail", ecn=False,
    )  # fmt: skip
    bare = Link(name="", from_="a", to="b", duplex=True)
    return link.rate_mbit is not None and plain == bare


def _network(scenario: Scenario) -> Iterator[tuple[str, str]]:
    """Yield what this engine does not have of the network and its ends, and why."""
    if scenario.bottleneck is None:
        yield (
            "[[link]]",
            "its network is one [bottleneck], or one duplex link of a rate from a to b",
        )
    elif scenario.bottleneck.trace is not None:
        yield "bottleneck.trace", "its bottleneck has a rate"
    elif scenario.pacing and scenario.bottleneck.loss:
        yield "pacing with bottleneck.loss", "both are the queue of its sender's link"
    if scenario.route:
        yield "[[route]]", "its network has one path"
    if scenario.hosts:
        yield "[[hosts]]", "its network has a host at each end"
    if scenario.profile != "linux":
        yield f'profile = "{scenario.profile}"', "its TCP is that of Linux"
    if scenario.overhead_ms:
        yield "overhead_ms", "its senders do not wait"
    if scenario.mss_bytes not in (None, 1448):
        yield f"mss_bytes = {scenario.mss_bytes}", "on its Ethernet that is 1448"
    if scenario.header_bytes not in (None, 66):
        yield f"header_bytes = {scenario.header_bytes}", "on its Ethernet that is 66"


def _traffic(
    scenario: Scenario, variants: Sequence[Background | None], duplex: bool
) -> Iterator[tuple[str, str]]:
    """Yield what this engine does not have of the traffic, and why."""
    queue = scenario.bottleneck.queue if scenario.bottleneck else None
    traffic: list[tuple[str, Foreground | Background | Cross]] = [
        *((f"[[cross]] {cross.name!r}", cross) for cross in scenario.cross),
        *((f"[[background]] {b.name!r}", b) for b in reversed(variants) if b),
    ]
    if scenario.foreground is not None:
        traffic.append(("[foreground]", scenario.foreground))
    for section, flows in traffic:
        if flows.window_packets is not None:
            yield f"window_packets in {section}", "its receivers tune their windows themselves"
        if flows.host is not None or getattr(flows, "senders", None) is not None:
            yield f"host and senders in {section}", "all of its senders are on one host"
        back = duplex and isinstance(flows, Cross) and (flows.from_, flows.to) == ("b", "a")
        if not back and (flows.from_ not in (None, "a") or flows.to not in (None, "b")):
            yield (
                f"from and to in {section}",
                'its data flows from "a" to "b"; that of [[cross]] back too, over a duplex link',
            )
        if isinstance(flows, Background) and flows.stop_stagger_s:
            yield f"stop_stagger_s in {section}", "its flows stop together"
        if isinstance(flows, Cross) and flows.group is not None:
            yield f"group in {section}", "it has groups of backgrounds"
        if isinstance(flows, Background) and flows.shares:
            if flows.queue == "priority" or (not flows.queue and queue == "priority"):
                yield f"shares in {section}", "strict priority knows one port of bulk flows"
            if flows.flows > MOST_SHARES:
                yield f"shares in {section}", f"it has {MOST_SHARES} runs of a group at most"
        if isinstance(flows, Cross) and flows.set:
            yield f"set in {section}", "it sets parameters for backgrounds"
        if isinstance(flows, Cross) and flows.kind != "tcp":
            yield f'kind = "{flows.kind}" in {section}', "it sends TCP"


def _room(scenario: Scenario, variants: Sequence[Background | None]) -> Iterator[tuple[str, str]]:
    """Yield what this engine does not have of the queue's room, and why."""
    bottleneck = scenario.bottleneck
    if bottleneck is None or bottleneck.limit_bytes is None:
        return
    if bottleneck.limit_packets is not None:
        yield "limit_packets and limit_bytes at once", "its queues have one of them"
    for variant in variants:
        queue = (variant and variant.queue) or bottleneck.queue
        if queue in _COUNT_PACKETS:
            yield f"limit_bytes in queue {queue}", "Linux counts the packets in it"


def timeout_s(scenario: Scenario, runs: int) -> float:
    """Return wall seconds after which a machine with so many runs must have hung."""
    longest = scenario.warmup_s + scenario.measure_s + scenario.drain_s
    return 300 + runs * (60 + 20 * longest)


@dataclass(frozen=True)
class Kernel:
    """The engine: Linux in virtual machines, `jobs` at a time; with controls of `modules`, too."""

    modules: Sequence[Path] = ()

    def plan(
        self, scenario: Scenario, seeds: Sequence[int], variants: Sequence[Background | None]
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
        return document(plan.given.to_dict(), "kernel", version, command, ordered)


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
