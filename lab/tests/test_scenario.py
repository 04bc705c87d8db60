# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Scenario files: what is accepted, and how errors read."""

import json
import re
import subprocess
import textwrap
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

from netnice_lab import ROOT, LabError
from netnice_lab.engines.base import check_ranges
from netnice_lab.scenario import (
    IDEAL,
    Arrivals,
    CrossKind,
    Profile,
    Queue,
    Scenario,
    Sizes,
    key_of,
    parse,
    read,
)

SCENARIOS = sorted((ROOT / "lab" / "scenarios").glob("*.toml"))
MINIMAL: dict[str, Any] = {
    "name": "x",
    "bottleneck": {"rate_mbit": 8, "rtt_ms": 50.0, "limit_packets": 50},
}


def test_a_minimal_scenario_gets_the_documented_defaults() -> None:
    scenario = parse(MINIMAL, "x.toml")
    assert scenario.bottleneck is not None
    assert scenario.bottleneck.rate_mbit == 8.0
    assert scenario.bottleneck.queue == "drop-tail"
    assert (scenario.warmup_s, scenario.measure_s, scenario.drain_s) == (3.0, 30.0, 30.0)
    assert scenario.foreground is None
    assert (scenario.ideal.control, scenario.ideal.flows) == ("cubic", 16)


@pytest.mark.parametrize("path", SCENARIOS, ids=str)
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
        ({"link": [{"name": "l", "to": "b"}]}, "the key 'link[1].from' is missing"),
        ({"link": [{"name": "l", "from_": "a"}]}, "unknown key 'link[1].from_'"),
        ({"profile": "ns3"}, "'profile' is 'ns3'; it must be one of linux, ns2"),
        ({"cross": [{"name": "u", "kind": "tcp", "stop_s": False}]}, "must be a number"),
        ({"cross": [{"name": "u", "kind": "udp"}]}, "must be one of tcp, cbr, poisson, onoff"),
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
    assert scenario.bottleneck is not None
    assert scenario.bottleneck.queue == "fq_codel"
    assert scenario.name == "k"


def test_overrides_reach_one_element_of_an_array_or_all() -> None:
    settings = ["background.flows=7", "background[2].set.gamma=0.5", "background[1].queue=red"]
    backgrounds = read(Path("k1"), settings).background
    assert {b.flows for b in backgrounds} == {7}
    assert [b.set for b in backgrounds[:3]] == [{}, {"gamma": 0.5}, {}]
    assert [b.queue for b in backgrounds[:2]] == ["red", None]


@pytest.mark.parametrize(
    "key", ["background[7].flows", "background[0].flows", "name.x", "ideal[1].x"]
)
def test_an_override_without_place_is_refused(key: str) -> None:
    with pytest.raises(LabError, match=r"numbered from 1|is not a section with keys"):
        read(Path("k1"), [f"{key}=1"])


def test_an_override_without_value_is_refused() -> None:
    with pytest.raises(LabError, match="has no value"):
        read(Path("k1"), ["foreground.load"])


def test_an_unknown_scenario_is_answered_with_the_known_ones() -> None:
    with pytest.raises(LabError, match="k1"):
        read(Path("k2"))


def test_a_trace_is_found_from_wherever_the_scenario_is_written(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(
        'name = "s"\n[bottleneck]\nrate_mbit = 8\nrtt_ms = 1\nlimit_packets = 9\ntrace = "up"\n'
    )
    bottleneck = read(tmp_path / "s.toml").bottleneck
    assert bottleneck is not None
    assert bottleneck.trace == str(tmp_path / "up")


def test_a_scenario_survives_being_written_and_read_again() -> None:
    scenario = read(Path("k1"))
    assert parse(scenario.to_dict(), "again") == scenario


EVERYTHING = """
name = "everything"
title = "a topology with every key"
warmup_s = 1
profile = "ns2"
delayed_acks = true
pacing = true
overhead_ms = 1
mss_bytes = 500
header_bytes = 28

[[link]]
name = "ab"
from = "a"
to = "b"
rate_mbit = 8
delay_ms = 20
queue = "red"
limit_packets = 50
limit_bytes = 50000
loss = 0.01
ecn = true
jitter_ms = 1
reorder = 0.1
reorder_ms = 2
duplex = true
change = [{ at_s = 5, rate_mbit = 4, delay_ms = 9 }]

[[link]]
name = "bc"
from = "b"
to = "c"
rate_mbit = 10
limit_packets = 9
trace = "TRACE"
duplex = true

[[hosts]]
name = "clients"
at = "c"
count = 3
rate_mbit = [10, 100]
delay_ms = [1, 2.5]
limit_packets = 9

[[route]]
from = "a"
to = "c"
via = ["ab", "bc"]

[foreground]
from = "a"
to = "clients"
arrivals = "periodic"
window_packets = 20

[[background]]
name = "x"
control = "nice"
set = { threshold = 0.2, quiet = 1 }
stop_s = 9
from = "a"
to = "b"
window_packets = 9

[[cross]]
name = "u"
kind = "onoff"
rate_mbit = 0.5
from = "b"
to = "c"
stop_s = 5

[[cross]]
name = "t"
kind = "tcp"
bytes = 3000
"""


@pytest.mark.parametrize("name", ["everything", *(path.stem for path in SCENARIOS)])
def test_the_lab_and_netnice_load_agree_on_every_default(
    name: str, tmp_path: Path, built: Path
) -> None:
    path = ROOT / "lab" / "scenarios" / f"{name}.toml"
    if name == "everything":
        (tmp_path / "trace").write_text("1\n2\n")
        path = tmp_path / "everything.toml"
        path.write_text(EVERYTHING.replace("TRACE", str(tmp_path / "trace")))
    done = subprocess.run(
        [built / "netnice-load", "scenario", path, "--json", "-"], capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    table = read(path).to_dict()
    assert json.loads(done.stdout)["scenario"] == table
    # What the lab writes is read by both as the same.
    check_ranges(parse(table, "again"))
    assert parse(table, "again").to_dict() == table


def test_every_example_of_the_reference_is_valid(tmp_path: Path, built: Path) -> None:
    reference = (ROOT / "docs" / "scenarios.md").read_text()
    (tmp_path / "cellular.down").write_text("1\n")
    link = "[bottleneck]\nrate_mbit = 8\nrtt_ms = 50\nlimit_packets = 50\n"
    examples = [e for e in re.findall(r"(?:^(?:    .*)?\n)+", reference, re.M) if " = " in e]
    assert len(examples) == 10
    for index, example in enumerate(map(textwrap.dedent, examples)):
        text = example if 'name = "access"' in example else f'name = "example"\n{example}'
        if "[[link]]" not in text and "[bottleneck]" not in text:
            text += f"\n{link}"
        file = tmp_path / f"{index}.toml"
        file.write_text(text)
        check_ranges(read(file))


def test_every_key_is_in_the_reference() -> None:
    reference = (ROOT / "docs" / "scenarios.md").read_text()
    sections: list[type] = [Scenario]
    for section in sections:
        for f in fields(section):
            key = key_of(f.name)
            assert f"`{key}`" in reference or f"[{key}]" in reference, section.__name__
            hint = get_type_hints(section)[f.name]
            sections += [a for a in (hint, *get_args(hint)) if is_dataclass(a)]
    assert len(sections) == 12
    for choices in (Queue, Arrivals, Sizes, Profile, CrossKind):
        for value in get_args(choices):
            assert f"`{value}`" in reference
