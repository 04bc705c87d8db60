# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Scenarios as the lab has them: read, made, described; and their reference."""

import re
import textwrap
from pathlib import Path

import pytest

from netnice_lab import ROOT, LabError
from netnice_lab.scenario import IDEAL, NONE, Section, describe, describe_all, read, variants

pytestmark = pytest.mark.usefixtures("built")

SCENARIOS = sorted((ROOT / "lab" / "scenarios").glob("*.toml"))
REFERENCE = (ROOT / "docs" / "scenarios.md").read_text()
MINIMAL = Section(name="x", bottleneck=Section(rate_mbit=8, rtt_ms=50.0, limit_packets=50))


def flows(*names: str) -> list[Section]:
    return [Section(name=name, control="cubic") for name in names]


@pytest.mark.parametrize("path", SCENARIOS, ids=str)
def test_every_scenario_of_the_lab_is_read(path: Path) -> None:
    assert read(path).name == path.stem


def test_a_bare_name_is_a_scenario_of_the_lab_with_what_is_set() -> None:
    scenario = read(Path("k1"), ["foreground.load=0.3", "bottleneck.queue=fq_codel"])
    assert (scenario.foreground.load, scenario.bottleneck.queue) == (0.3, "fq_codel")


def test_what_is_made_has_its_defaults_when_it_is_described() -> None:
    known = describe(MINIMAL.but(background=flows("c"), foreground=Section(from_="a")))
    assert known.scenario.background[0].flows == 1
    assert (known.scenario.foreground.from_, known.scenario.foreground.to) == ("a", None)
    # 3 s of warm-up, 30 s that count, 30 s until all has ended
    assert (known.scenario.measure_s, known.end_s) == (30.0, 63.0)
    assert (known.mss_bytes, known.header_bytes) == (1448, 66)
    # what is complete is described as the same
    assert describe(known.scenario) == known


def test_a_key_that_does_not_exist_is_no_key_without_a_value() -> None:
    bottleneck = describe(MINIMAL).scenario.bottleneck
    assert bottleneck.limit_bytes is None
    with pytest.raises(AttributeError, match="'limit_byte' is not among rate_mbit, "):
        _ = bottleneck.limit_byte


def test_a_section_with_other_values_leaves_the_first_as_it_was() -> None:
    first = Section(name="l", from_="a")
    assert first.but(from_="b") == {"name": "l", "from": "b"}
    assert first == {"name": "l", "from": "a"}


def test_none_and_strict_priority_are_always_run() -> None:
    scenario = MINIMAL.but(background=flows("c", "d"))
    assert [v.name for v in variants(scenario)] == [NONE, IDEAL, "c", "d"]
    none, ideal, only = variants(scenario, ["d"])
    assert (none.background, ideal.queue, only.name) == (None, "priority", "d")


def test_an_unknown_name_in_only_is_answered_with_the_known() -> None:
    with pytest.raises(LabError, match=r"called 'cubic x6'. Known: .*, cubic x16\."):
        variants(MINIMAL.but(background=flows("cubic x16")), ["cubic x6"])


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (["foreground.laod=1"], "`foreground.laod`: unknown key `laod`. The nearest known key is"),
        (["foreground.load=half"], '`foreground.load`: this is string "half"; it must be a number'),
        (["background[7].flows=1"], "no number 7"),
        (["foreground.load"], "it has no value"),
    ],
)
def test_what_is_wrong_with_a_scenario_is_wrong_usage(settings: list[str], said: str) -> None:
    with pytest.raises(LabError) as error:
        read(Path("k1"), settings)
    assert said in str(error.value)
    assert error.value.status == 2


def test_of_several_that_one_is_named_that_is_wrong() -> None:
    with pytest.raises(LabError, match=r"^y: two backgrounds are called \"c\""):
        describe_all([MINIMAL, MINIMAL.but(name="y", background=flows("c", "c"))])


def test_an_unknown_scenario_is_answered_with_the_known_ones() -> None:
    with pytest.raises(LabError, match="k1"):
        read(Path("k2"))


def test_a_trace_is_found_from_wherever_the_scenario_is_described(tmp_path: Path) -> None:
    (tmp_path / "up").write_text("1\n2\n")
    (tmp_path / "s.toml").write_text(
        'name = "s"\n[bottleneck]\nrate_mbit = 8\nrtt_ms = 1\nlimit_packets = 9\ntrace = "up"\n'
    )
    scenario = read(tmp_path / "s.toml")
    assert scenario.bottleneck.trace == str(tmp_path / "up")
    assert describe(scenario.but(title="elsewhere")).scenario.bottleneck == scenario.bottleneck


def examples() -> list[str]:
    """Return the scenarios, or parts of one, that the reference shows."""
    found = re.findall(r"(?:^(?:    .*)?\n)+", REFERENCE, re.M)
    return [textwrap.dedent(example) for example in found if " = " in example]


def test_every_example_of_the_reference_is_valid(tmp_path: Path) -> None:
    (tmp_path / "cellular.down").write_text("1\n")
    link = "[bottleneck]\nrate_mbit = 8\nrtt_ms = 50\nlimit_packets = 50\n"
    assert len(examples()) == 13
    for index, example in enumerate(examples()):
        text = example if 'name = "access"' in example else f'name = "example"\n{example}'
        if "[[link]]" not in text and "[bottleneck]" not in text:
            text += f"\n{link}"
        file = tmp_path / f"{index}.toml"
        file.write_text(text)
        assert read(file).name


SECTIONS = """
name = "all"
bottleneck = { rate_mbit = 1, rtt_ms = 1, change = [{ at_s = 1 }] }
link = [{ name = "l", from = "a", to = "b", change = [{ at_s = 1 }] }]
hosts = [{ name = "h", at = "a", count = 1, rate_mbit = [1, 1], delay_ms = [1, 1] }]
route = [{ from = "a", to = "b", via = [] }]
foreground = {}
background = [{ name = "b", control = "reno", change = [{ at_s = 1, shares = [] }] }]
cross = [{ name = "c", kind = "tcp" }]
ideal = {}
"""
"""One of each; what does not fit together is told after what is unknown."""


@pytest.mark.parametrize(
    "place",
    [
        "?", "bottleneck.?", "bottleneck.change.?", "link.?", "link.change.?", "hosts.?", "route.?",
        "foreground.?", "background.?", "background.change.?", "cross.?", "ideal.?",
        "profile=?", "bottleneck.queue=?", "foreground.arrivals=?", "foreground.sizes=?",
        "cross.kind=?",
    ],
)  # fmt: skip
def test_every_key_and_every_word_is_in_the_reference(place: str, tmp_path: Path) -> None:
    file = tmp_path / "all.toml"
    file.write_text(SECTIONS)
    setting = place if "=" in place else f"{place}=1"
    with pytest.raises(LabError) as error:
        read(file, [setting])
    known = str(error.value).partition("All known: ")[2].removesuffix(".").split(", ")
    assert len(known) > 1
    for name in known:
        assert f"`{name}`" in REFERENCE or f"[{name}]" in REFERENCE, name
