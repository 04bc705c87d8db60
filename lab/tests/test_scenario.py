# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Scenario files: what is accepted, and how errors read."""

from pathlib import Path
from typing import Any

import pytest

from netnice_lab import ROOT, LabError
from netnice_lab.scenario import IDEAL, parse, read

MINIMAL: dict[str, Any] = {
    "name": "x",
    "bottleneck": {"rate_mbit": 8, "rtt_ms": 50.0, "limit_packets": 50},
}


def test_a_minimal_scenario_gets_the_documented_defaults() -> None:
    scenario = parse(MINIMAL, "x.toml")
    assert scenario.bottleneck.rate_mbit == 8.0
    assert scenario.bottleneck.queue == "drop-tail"
    assert (scenario.warmup_s, scenario.measure_s, scenario.drain_s) == (3.0, 30.0, 30.0)
    assert scenario.foreground is None
    assert (scenario.ideal.control, scenario.ideal.flows) == ("cubic", 16)


@pytest.mark.parametrize("path", sorted((ROOT / "lab" / "scenarios").glob("*.toml")), ids=str)
def test_every_scenario_of_the_lab_is_read(path: Path) -> None:
    assert read(path).name == path.stem


def test_none_and_strict_priority_are_always_run() -> None:
    table = MINIMAL | {"background": [{"name": "c", "control": "cubic"}]}
    variants = parse(table, "x").variants()
    assert variants[0] is None
    assert [v.name for v in variants[1:] if v] == [IDEAL, "c"]
    assert variants[1] is not None
    assert variants[1].queue == "priority"


def test_only_keeps_the_named_background_and_the_references() -> None:
    table = MINIMAL | {"background": [{"name": n, "control": "cubic"} for n in "cde"]}
    assert [v and v.name for v in parse(table, "x").variants(["d"])] == [None, IDEAL, "d"]


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"titel": "x"}, "unknown key 'titel'. Did you mean 'title'?"),
        ({"foreground": {"laod": 0.5}}, "unknown key 'foreground.laod'. Did you mean 'load'?"),
        ({"foreground": {"load": "half"}}, "'foreground.load' is 'half'; it must be a number"),
        ({"foreground": {"arrivals": "log "}}, "must be one of poisson, log"),
        ({"warmup_s": True}, "'warmup_s' is True; it must be a number"),
        ({"background": [{"name": "a"}]}, "the key 'background[1].control' is missing"),
        ({"background": [{"name": "none", "control": "cubic"}]}, "'none' is taken"),
        (
            {"background": [{"name": "a", "control": "cubic", "set": {"alpha": 1}}]},
            "which only nn_* controls have",
        ),
        ({"bottleneck": {"rate_mbit": 8.0}}, "the key 'bottleneck.rtt_ms' is missing"),
    ],
)
def test_a_wrong_key_or_value_is_named_with_what_would_be_right(
    table: dict[str, Any], said: str
) -> None:
    with pytest.raises(LabError) as error:
        parse(MINIMAL | table, "x.toml")
    assert said in str(error.value)
    assert str(error.value).startswith("x.toml: ")


def test_an_unknown_name_in_only_is_answered_with_the_nearest() -> None:
    table = MINIMAL | {"background": [{"name": "cubic x16", "control": "cubic"}]}
    with pytest.raises(LabError, match="Did you mean 'cubic x16'"):
        parse(table, "x").variants(["cubic x6"])


def test_overrides_are_values_as_in_toml_and_words_need_no_quotes() -> None:
    scenario = read(Path("k1"), ["foreground.load=0.3", "bottleneck.queue=fq_codel", "name=k"])
    assert scenario.foreground is not None
    assert scenario.foreground.load == 0.3
    assert scenario.bottleneck.queue == "fq_codel"
    assert scenario.name == "k"


def test_an_override_without_value_is_refused() -> None:
    with pytest.raises(LabError, match="has no value"):
        read(Path("k1"), ["foreground.load"])


def test_an_unknown_scenario_is_answered_with_the_known_ones() -> None:
    with pytest.raises(LabError, match="k1"):
        read(Path("k2"))


def test_a_scenario_survives_being_written_and_read_again() -> None:
    scenario = read(Path("k1"))
    assert parse(scenario.to_dict(), "again") == scenario
