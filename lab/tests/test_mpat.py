# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""MPAT's reproduction: verdicts of invented numbers, and scenarios that run."""

from collections.abc import Callable
from typing import Any

import pytest

from netnice_lab.claims.paper import find
from netnice_lab.claims.results import Results
from netnice_lab.experiment import Point, Simulated, head
from netnice_lab.papers.mpat import apart, on_kernel
from netnice_lab.papers.mpat.experiments import (
    AFTER_TO,
    ALONE,
    CM,
    GROUP,
    MOMENTS,
    MPAT,
    MULTCP,
    TCP,
    simulated,
)
from netnice_lab.scenario import IDEAL, NONE, Section, describe_all

Json = dict[str, Any]
KERNELS = {"M1K", "M3K", "M3KH", "M4K"}
World = Callable[[str, Section, Json], float]
"""Total of a background over the number of its flows, in fair shares."""


def papers_world(experiment: str, background: Section, at: Json) -> float:
    """Return numbers with which every claim of the paper holds."""
    name, flows = background.name, background.flows
    if name == CM:
        return 1 / flows
    if experiment == "rules":
        return {"same": 1.1, "other": 0.9}.get(name, 1.0)
    if experiment == "step":
        return 1.5 if at["at"] in ("before", "regained") else 1.0
    if experiment == "variance":
        swing = {MPAT: 0.3, TCP: 0.3, MULTCP: 2.0}[name] / flows**0.5
        return 1 + (swing if MOMENTS.index(at["at"]) % 2 else -swing)
    if experiment == "smooth":
        swing = {GROUP: 0.1, ALONE: 0.2, MPAT: 0.3, TCP: 0.4}[name]
        return 1 + (swing if MOMENTS.index(at["at"]) % 2 else -swing)
    return 0.8 if name == MULTCP and flows > 20 else 1.0


def kernels_points(name: str) -> list[Point]:
    """Return what is measured on the kernel, as scenarios with a background for each division."""
    (base, divisions), found = on_kernel.planned(name), list[Point]()
    for kind in dict.fromkeys(str(d["at"]) for d in divisions):
        same = [d for d in divisions if str(d["at"]) == kind]
        changing = same[0]["at"]["kind"] == "change"
        backgrounds = [
            Section(
                name=d["background"],
                control="nn_mpat",
                flows=len(d["shares"] or []) or d["flows"],
                shares=on_kernel.TURNS[1] if changing else d["shares"],
                group=d["shares"] and MPAT,
            )
            for d in same
        ]
        ats = [{"after": n} for n in on_kernel.TRIPS[:-1]] if changing else [{}]
        found += [Point(same[0]["at"] | at, base.but(background=backgrounds)) for at in ats]
    return found


def invented(world: World, off: float = 1.0) -> dict[str, Json]:
    """Return the documents of all experiments; first flows of groups have `off` of their part."""
    documents: dict[str, Json] = {}
    kernel = [Simulated(name, kernels_points(name)) for name in (on_kernel.NAME, on_kernel.WIDE)]
    for experiment in [*simulated(), apart.simulated(), on_kernel.simulated(), *kernel]:
        points = []
        for point in experiment.points:
            at, cross = dict(point.at), {"tcp mbit": [5.0] * 2, "tcp lost": [0.01] * 2}
            cross |= {f"{c.name} mbit": [float(c.flows)] * 2 for c in point.scenario.cross}
            cross |= {f"{path} mbit": [1.0] * 2 for path in apart.PATHS} | {"fct_s": [1.0] * 2}
            runs = {NONE: dict(cross), IDEAL: dict(cross)}
            for background in point.scenario.background:
                total = background.flows * world(experiment.name, background, at)
                shares = background.shares or [1.0] * background.flows
                if background.change and at["after"] >= 0:
                    shares = AFTER_TO
                rates = [total * share / sum(shares) for share in shares]
                rates[0] *= off if background.shares else 1.0
                runs[background.name] = {
                    "mbit": [total] * 2,
                    "retransmits": [1] * 2,
                    **{f"flow {i}": [rate] * 2 for i, rate in enumerate(rates, 1)},
                    **cross,
                }
            points.append({"at": at, "runs": runs})
        documents[experiment.name] = {
            **head(experiment.name, 2, ["test"]), "points": points,
        }  # fmt: skip
    return documents


def judged(documents: dict[str, Json]) -> dict[str, Any]:
    """Return the claims made of documents."""
    measured = {name: Results(document) for name, document in documents.items()}
    return {s.id: s.judge(measured) for s in find("mpat").claims}


def differing(documents: dict[str, Json]) -> set[str]:
    """Return the claims that differ."""
    found = judged(documents)
    assert all(c.cause for c in found.values() if c.verdict == "differs")
    return {name for name, c in found.items() if c.verdict == "differs"}


def test_every_claim_holds_in_the_papers_world() -> None:
    assert differing(invented(papers_world)) == set()


def test_a_group_that_takes_less_than_its_flows_would_is_found_out() -> None:
    def timid(experiment: str, background: Section, at: Json) -> float:
        return papers_world(experiment, background, at) * (0.9 if background.name == MPAT else 1)

    assert differing(invented(timid)) == {"M1", "M2", "M8", "mappings", "quickack"}


def test_a_group_that_varies_as_much_as_windows_of_reno_is_found_out() -> None:
    def unsteady(experiment: str, background: Section, at: Json) -> float:
        reno = background.but(name=MPAT) if background.name == GROUP else background
        return papers_world(experiment, reno, at)

    assert differing(invented(unsteady)) == {"tfrc"}


@pytest.mark.parametrize(
    ("off", "claims"),
    [
        (0.98, set()),
        (0.8, {"M1", "M3", "M4", "M5", "M8", "mappings", "cubic", "tfrc", "quickack", *KERNELS}),
    ],
)
def test_a_flow_that_misses_its_part_is_found_out(off: float, claims: set[str]) -> None:
    assert differing(invented(papers_world, off)) == claims


def test_the_scenarios_are_within_the_ranges() -> None:
    for experiment in simulated():
        describe_all(point.scenario for point in experiment.points)


def test_a_member_that_slows_its_paths_users_down_is_found_out() -> None:
    documents = invented(papers_world)
    for point in documents[apart.NAME]["points"]:
        if point["at"] == {"users": "london", "members": "cable"}:
            point["runs"][NONE]["fct_s"] = [1.2, 1.2]
    assert differing(documents) == {apart.NAME}


def test_mult_tcp_that_takes_more_at_random_losses_is_found_out() -> None:
    def greedy(experiment: str, background: Section, at: Json) -> float:
        more = experiment == "losses" and background.name == MULTCP
        return papers_world(experiment, background, at) * (1.3 if more else 1)

    assert differing(invented(greedy)) == {"multcp"}


def test_tcp_that_loses_more_beside_groups_is_found_out() -> None:
    documents = invented(papers_world)
    for point in documents["groups"]["points"]:
        if point["at"] == {"kind": "groups"}:
            point["runs"][NONE]["tcp lost"] = [0.02, 0.02]
    assert differing(documents) == {"M6"}


def test_one_seed_in_which_mult_tcp_dies_does_not_speak_for_the_others() -> None:
    documents = invented(papers_world)
    for point in documents["variance"]["points"]:
        for name, run in point["runs"].items():
            rate = run.get("mbit", [0.0])[0]
            odd = MOMENTS.index(point["at"]["at"]) % 2
            run["mbit"] = [5.0, 5.0, 10.0 * odd] if name == MULTCP else [rate] * 3
    assert differing(documents) == {"M7"}
