# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""The search for the worst, and that nothing has become worse than it."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from netnice_lab import LabError, stats
from netnice_lab.claims.results import Results
from netnice_lab.engines.sim import Simulator
from netnice_lab.experiment import Context
from netnice_lab.matrix import search, worst
from netnice_lab.scenario import IDEAL, NONE, Section

Json = dict[str, Any]
LAB = str(Path(sys.executable).with_name("netnice-lab"))
VALUES: Json = {
    "rate_mbit": 8.0, "rtt_ms": 50, "bdp": 1.5, "load": 0.5, "fetches_per_s": 10.0, "flows": 4,
    "queue": "drop-tail",
}  # fmt: skip
NICE, EBB = search.Target("nice"), search.Target("ebb")
SAVED = {document["name"]: document for document in worst.saved()}


def test_values_become_the_scenario_that_they_say() -> None:
    k1 = search.scenario(NICE, VALUES)
    assert k1.bottleneck.limit_packets == 50  # 1.5 BDP of 33.3 packets
    assert k1.foreground.mean_bytes == 50_000  # half of 8 Mbit/s, in ten a second
    assert not k1.background[0].hold
    own = search.scenario(EBB, VALUES)
    assert own.background[0].hold
    assert "host" not in own.background[0]
    far = search.scenario(search.Target("ebb", elsewhere=True), VALUES | {"queue": "pie"})
    assert (far.background[0].hold, far.background[0].host) == (True, "elsewhere")
    assert far.bottleneck.limit_packets == 1000


def test_values_that_hardly_differ_count_once() -> None:
    near, far = VALUES | {"rtt_ms": 60}, VALUES | {"rtt_ms": 150}
    other = near | {"queue": "pie"}
    # ln(60/50) is .05 of the range of ln(200/5), ln(150/50) .3 of it
    assert search.unlike([VALUES, near, far, other]) == [VALUES, far, other]


def test_no_seed_is_both_searched_and_reported() -> None:
    assert search.REPORT_SEED + search.REPORT_SEEDS <= search.SEED


def test_the_same_seed_finds_the_same_and_another_does_not(built: Path) -> None:
    def found(seed: int) -> list[Json]:
        document = search.search(
            NICE, trials=2, seeds=1, optimiser_seed=seed, context=Context()
        )  # fmt: skip
        return [point["at"] | {"beyond": point["beyond"]} for point in document["points"]]

    first = found(7)
    assert found(7) == first
    assert [its["rate_mbit"] for its in found(8)] != [its["rate_mbit"] for its in first]
    means = [its["beyond"]["mean"] for its in first]
    assert means == sorted(means, reverse=True)


def test_a_scenario_in_which_no_fetch_ends_is_the_worst(monkeypatch: pytest.MonkeyPatch) -> None:
    def measured(_target: object, every: list[Json], _first: int, _context: Context) -> list[Json]:
        ended = [values["load"] < 0.3 for values in every]
        return [
            {"at": values, "beyond": stats.interval([values["load"]] if ends else [])}
            for values, ends in zip(every, ended, strict=True)
        ]

    monkeypatch.setattr(search, "measured", measured)
    document = search.search(NICE, trials=12, seeds=1, optimiser_seed=1, context=Context())
    none_ended = [point["beyond"]["mean"] is None for point in document["points"]]
    assert none_ended == sorted(none_ended, reverse=True)
    assert 0 < sum(none_ended) < len(none_ended)


def test_fetches_that_did_not_end_stand_beside_the_harm_that_leaves_them_out() -> None:
    def runs(mean: float, unfinished: int) -> Json:
        return {"mean": [mean], "mbit": [1.0], "unfinished": [unfinished]}

    of = {NONE: runs(0.2, 0), IDEAL: runs(0.2, 0), "nice": runs(0.3, 7)}
    found = search.numbers(Results({"name": "x", "points": [{"at": {}, "runs": of}]}), "nice", {})
    assert found["unfinished"] == 7
    point = found | {"at": VALUES, "scenario": search.scenario(NICE, VALUES)}
    _, row = worst.table({"points": [point]})
    assert row[:2] == ["1.50, 7 unfinished", "0.50"]
    # saved before this was kept
    del point["unfinished"]
    assert worst.table({"points": [point]})[1][0] == "1.50"


@pytest.mark.parametrize(
    "words", [["nice", "--elsewhere"], ["nice", "--trials", "0"], ["nice", "--seeds", "x"]]
)
def test_what_cannot_be_searched_is_wrong_usage(
    refused: Callable[..., tuple[int, str]], words: list[str]
) -> None:
    status, _ = refused("search", *words)
    assert status == 2


def test_the_exit_status_of_the_program_is_that_of_wrong_usage() -> None:
    done = subprocess.run([LAB, "search", "nobody"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")


def test_a_target_that_there_is_not_is_an_error_that_says_what_to_do() -> None:
    with pytest.raises(LabError, match=r"No algorithm is called 'nobody'\. Known: reno, .*nice"):
        search.Target("nobody")
    with pytest.raises(LabError, match=r"same to nice: no host holds it\. Leave --elsewhere out"):
        search.Target("nice", elsewhere=True)
    for target in (NICE, EBB, search.Target("ebb", elsewhere=True)):
        assert search.Target.named(target.name) == target


def test_the_worst_of_ebb_and_of_nice_are_saved_as_scenarios_that_run(built: Path) -> None:
    assert set(SAVED) == {"ebb", "ebb-elsewhere", "nice"}
    for name, document in SAVED.items():
        assert len(document["points"]) == search.KEPT
        quickest = min(document["points"], key=lambda point: float(point["at"]["rate_mbit"]))
        runs = Simulator().runs(Section(quickest["scenario"]), search.REPORT_SEED)
        assert [run["background"] for run in runs] == [NONE, IDEAL, name.split("-")[0]]


@pytest.mark.parametrize("name", sorted(SAVED))
def test_nothing_has_become_worse_than_the_worst_that_was_found(built: Path, name: str) -> None:
    """The bound is the end of the interval that the same seeds had when the search was made."""
    worse = [
        f"{now['beyond']['mean']:.2f}, was {was['beyond']['mean']:.2f} to "
        f"{was['beyond']['hi']:.2f}, at {was['at']}"
        for was, now in search.again(SAVED[name], Context(jobs=2))
        if now["beyond"]["mean"] > was["beyond"]["hi"]
    ]
    assert not worse
