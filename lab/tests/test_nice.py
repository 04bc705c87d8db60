# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""TCP Nice's reproduction: verdicts of invented numbers, scenarios that run, the page's files."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from netnice_lab.claims import page
from netnice_lab.claims.paper import Places, find, saved
from netnice_lab.claims.results import Results, save
from netnice_lab.experiment import head
from netnice_lab.papers.nice import path_changes, paths
from netnice_lab.papers.nice.experiments import FLOOR, PAPER, SPARE, WEB, linked, simulated
from netnice_lab.scenario import IDEAL, NONE, describe, read

Json = dict[str, Any]
World = Callable[[str, Json], tuple[float, float]]
"""Latency over none, and Mbit/s, of a background at a point."""

SIMULATED = [f"N{i}" for i in range(1, 13) if i != 11]


def papers_world(background: str, at: Json) -> tuple[float, float]:
    """Return numbers with which every claim of TCP Nice's report holds."""
    flows = at.get("flows", 16)
    if background in (NONE, IDEAL):
        return (1.0, 0.0) if background == NONE else (1.01, 1.0)
    if background.startswith("nice without"):
        return (2.0 if background == FLOOR else 3.0) if flows >= 10 else 1.02, 1.0
    if background in ("nice", "netnice"):
        if at.get("threshold", 0) > 0.9:
            return 18.0, 1.0
        return 1.02, 0.5 if flows == 1 and "setting" not in at else 0.75
    if background == "window 1":
        return 100.0 if flows == 64 else 1.1, 0.05 * flows
    return 20.0, 1.2


def udp_world(background: str, at: Json) -> tuple[float, float]:
    """Return the same for bursts of UDP, where one flow gets 70 % and Nice is not priority."""
    harm, mbit = papers_world(background, at)
    return (1.2, 0.7) if background in ("nice", "netnice") else (harm, mbit)


def renos_world(background: str, at: Json) -> tuple[float, float]:
    """Return numbers with which Nice is no better than Reno."""
    return papers_world(
        "reno" if background.split(maxsplit=1)[0] in ("nice", "netnice") else background, at
    )


def invented(world: World, udp: World, kept: float = 0.99) -> dict[str, Json]:
    """Return the documents of all experiments with the numbers of a world, for two seeds."""
    documents = {}
    for experiment in simulated():
        chosen = udp if experiment.name.startswith("udp") else world
        points = []
        for point in experiment.points:
            runs = {}
            for name in [NONE, IDEAL, *(b.name for b in point.scenario.background)]:
                harm, mbit = chosen(name, dict(point.at)) if "path" not in point.at else (1, 1)
                runs[name] = {
                    "packet_rtt_ms": [100 * harm, 110 * harm], "p99_ms": [200, 200],
                    "lost": [0.01, 0.01], "fct_s": [0.4 * harm, 0.5 * harm], "open": [3, 3],
                    "unfinished": [0, 0], "mbit": [mbit, mbit], "queue_ms": [10 * harm, 10 * harm],
                }  # fmt: skip
            points.append({"at": dict(point.at), "runs": runs})
        documents[experiment.name] = {
            **head(experiment.name, 2, ["test"]), "points": points,
        }  # fmt: skip
    actions = {"Reno/Reno": 0.5, "Reno/Reno8": 0.1, paths.ALONE: 1.0, paths.NICE_ALONE: 0.9}
    for name in ("Nice", "Nice8", "netnice", "netnice8"):
        actions[f"Reno/{name}"] = kept
    runs = {name: {"transfer_s": [10 / share], "mbit": [1.0]} for name, share in actions.items()}
    documents[paths.NAME] = {
        **head(paths.NAME, 1, ["test"]),
        "kernel": "6.1",
        "points": [{"at": {"path": path}, "runs": runs} for path in paths.PATHS],
    }
    return documents


def judged(documents: dict[str, Json]) -> dict[str, Any]:
    measured = {name: Results(document) for name, document in documents.items()}
    statements = [s for s in find("nice").claims if set(s.needs) <= set(measured)]
    return {s.id: s.judge(measured) for s in statements}


def test_every_claim_of_nice_holds_in_the_papers_world() -> None:
    claims = judged(invented(papers_world, udp_world))
    assert {*SIMULATED, "N11"} <= claims.keys()
    assert {name: c.verdict for name, c in claims.items()} == dict.fromkeys(claims, "holds")
    # 102/100 in both seeds, and 0.75 of strict priority's 1 Mbit/s.
    assert claims["N1"].ours.startswith("1.02 [1.02, 1.02] times as long, 75 % [75, 75]")
    # 0.50 Mbit/s of one Nice flow over 0.05 of one with window 1.
    assert "one Nice flow carries 10.0 [10.0, 10.0] times as much" in claims["N9"].ours


def test_claims_on_harm_differ_with_their_cause_if_nice_is_no_better_than_reno() -> None:
    claims = judged(invented(renos_world, renos_world, kept=0.5))
    differing = {name for name, c in claims.items() if c.verdict == "differs"}
    assert differing >= {"N1", "N3", "N4", "N5", "N6", "N9", "N10", "N11", "N12"}
    assert all(claims[name].cause for name in differing)
    # Reno harms all the same, and nothing depends on Nice's parameters.
    assert {"N2", "N8"}.isdisjoint(differing)


def test_one_number_beyond_its_bound_changes_one_verdict() -> None:
    def with_share(share: float) -> str:
        def world(background: str, at: Json) -> tuple[float, float]:
            if background == PAPER and at == {"flows": 16}:
                return 1.02, share
            return papers_world(background, at)

        return str(judged(invented(world, udp_world))["N1"].verdict)

    assert with_share(0.71) == "holds"
    assert with_share(0.69) == "differs"


def test_the_link_has_one_plus_s_times_a_demand_that_stays() -> None:
    base = read(WEB)
    demands = []
    for spare in SPARE:
        scenario = linked(base, spare)
        assert scenario.bottleneck is not None
        assert scenario.foreground is not None
        demands.append(scenario.bottleneck.rate_mbit * scenario.foreground.load)
        assert scenario.bottleneck.rate_mbit == pytest.approx(1.422 * (1 + spare))
    assert demands == pytest.approx([1.422] * len(SPARE))


def test_every_scenario_of_nice_can_run(built: Path) -> None:
    for experiment in simulated():
        assert len({str(p.at) for p in experiment.points}) == len(experiment.points)
    for path in paths.PATHS:
        scenario = read(Path(f"nice/{path}"))
        assert len(paths.batches(path)) == 3
        for change in path_changes.changes(path):
            describe(path_changes.changed(scenario, change))


def test_each_secondary_transfer_is_an_action_of_the_report() -> None:
    beside, renos, nobody = paths.batches("cable")
    assert [v.name for v in beside.variants] == [
        NONE, "Reno/Nice", "Reno/netnice", "Reno/Nice8", "Reno/netnice8",
    ]  # fmt: skip
    assert [v.name for v in renos.variants] == ["Reno/Reno", "Reno/Reno8"]
    assert [v.name for v in nobody.variants] == [NONE]
    assert nobody.scenario.foreground.control == "nn_nice"
    # A transfer of 10 s is half of the load, so that one starts every 20 s, the first after 10 s.
    variants = (*beside.variants[1:], *renos.variants)
    assert {v.background.start_s for v in variants} == {10.0}
    ends = [s.warmup_s + s.measure_s for s in (beside.scenario, renos.scenario)]
    assert ends == [60.0, 20.0]


def test_the_report_says_what_the_saved_files_say(tmp_path: Path) -> None:
    paper, places = find("nice"), Places(tmp_path, "nice")
    documents = invented(papers_world, udp_world)
    for document in documents.values():
        save(document, places.data)
    page.write(paper, saved(paper, tmp_path), tmp_path)
    report = places.page.read_text()
    assert "1.02 [1.02, 1.02] times as long, 75 % [75, 75]" in report
    for number in (2, 3, 4, 5, 6, 7, 11, 12, 13, 14, 15, 16):
        assert f"../figures/nice/figure-{number}.svg" in report
        assert (places.figures / f"figure-{number}.svg").read_text().startswith("<?xml")
    figure = (places.figures / "figure-3.svg").read_bytes()
    # Nice with 16 flows as it is in one file: 4 % instead of 2 %.
    (at_16,) = [p for p in documents["flows"]["points"] if p["at"] == {"flows": 16}]
    at_16["runs"]["nice"]["packet_rtt_ms"] = [104, 114.4]
    save(documents["flows"], places.data)
    page.write(paper, saved(paper, tmp_path), tmp_path)
    assert "1.04 [1.04, 1.04] times as long, 75 % [75, 75]" in places.page.read_text()
    assert (places.figures / "figure-3.svg").read_bytes() != figure


def test_a_report_of_a_part_tells_of_that_part(tmp_path: Path) -> None:
    paper, places = find("nice"), Places(tmp_path, "nice")
    save(invented(papers_world, udp_world)["fraction"], places.data)
    page.write(paper, saved(paper, tmp_path), tmp_path)
    report = places.page.read_text()
    assert "1 of 1 hold" in report
    assert "## N8" in report
    assert "## N1" not in report
