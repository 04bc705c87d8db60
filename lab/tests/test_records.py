# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Fingerprints are of behaviour: what moves them, and what does not."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from pathlib import Path

import pytest

from netnice_lab import LabError, records, source

TRACES = "nice defaults ab 1\nnice others cd 2\nnice group ef 3\nreno defaults 12 4\n"
DUELS = "header\n\nbackground  drop-tail x1\nnice        1.03 /  6\nnice_too    1.50 / 20\n"
HOST = '#include "pace.h"\nint a(void)\n{\n\treturn 1; /* one */\n}\n'
PACE = "static int b(void) { return 2; }\n"
SCENARIO = {
    "name": "k", "title": "K", "measure_s": 30, "cross": [],
    "foreground": {"control": "cubic"},
    "background": [
        {"name": "n", "control": "nn_nice", "flows": 1},
        {"name": "g", "control": "nn_mpat", "flows": 2, "group": "x"},
        {"name": "c", "control": "cubic", "flows": 3},
    ],
}  # fmt: skip


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a checkout of which the fingerprints are."""
    monkeypatch.setattr(records, "ROOT", tmp_path)
    monkeypatch.setattr(records, "DATA", tmp_path / "docs/data")
    monkeypatch.setattr(records, "RECORDS", tmp_path / "docs/records")
    monkeypatch.setattr(records, "STALE", tmp_path / "docs/records/stale.toml")
    monkeypatch.setattr(records, "SAME", tmp_path / "docs/records/same.toml")
    for path, text in (
        (records.TRACES, TRACES), (records.DUELS, DUELS), (records.HOST[0], HOST),
        ("bpf/pace.h", PACE), ("docs/records/stale.toml", "stale = []\n"),
    ):  # fmt: skip
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    records._hash.cache_clear()
    yield tmp_path
    records._hash.cache_clear()


def change(root: Path, path: str, old: str, new: str) -> None:
    """Replace text that a file has."""
    text = (root / path).read_text()
    assert old in text
    (root / path).write_text(text.replace(old, new))
    records._hash.cache_clear()


def test_another_golden_trace_of_an_algorithm_makes_what_ran_it_stale_and_nothing_else(
    root: Path,
) -> None:
    flow, group, other = ({"fingerprint": records.fingerprint([name])} for name in
                          ("core/nice", "core/nice/group", "core/reno"))  # fmt: skip
    change(root, records.TRACES, "ab 1", "ac 1")
    assert [records.stale(r) for r in (flow, group, other)] == [["nice"], [], []]
    change(root, records.TRACES, "ef 3", "ee 3")
    assert [records.stale(r) for r in (flow, group, other)] == [["nice"], ["nice's group"], []]


def test_a_row_of_the_small_duels_is_of_its_algorithm_alone(root: Path) -> None:
    # the name of one begins with that of the other
    nice, too = ({"fingerprint": records.fingerprint([f"sim/{n}"])} for n in ("nice", "nice_too"))
    change(root, records.DUELS, "1.50", "1.51")
    assert (records.stale(nice), records.stale(too)) == ([], ["the simulator (nice_too)"])


def test_a_comment_another_order_and_another_file_leave_the_kernels_host_the_same(
    root: Path,
) -> None:
    before = records.fingerprint(["kernel"])
    change(root, "bpf/cc.bpf.c", "/* one */", "// 1;")
    change(root, "bpf/cc.bpf.c", "int a", "static int b(void)\n{ return 2; }\nint a")
    change(root, "bpf/pace.h", PACE, "")
    assert records.fingerprint(["kernel"]) == before
    change(root, "bpf/cc.bpf.c", "return 2", "return 3")
    assert records.fingerprint(["kernel"]) != before


def test_a_statement_that_moves_within_a_function_is_another_host() -> None:
    one = source.declarations('int f(void) { a("//"); b(); }')
    assert one == ['int f(void) { a("//") ; b() ; }']
    assert one != source.declarations('int f(void) { b(); a("//"); }')


def test_a_key_that_comes_later_and_is_off_leaves_a_scenario_the_same() -> None:
    before = records.of_scenario("k", SCENARIO)
    later = {**SCENARIO, "title": "other", "link": [], "ecn": False, "limit": None}
    assert records.of_scenario("k", later) == before
    assert records.of_scenario("k", {**SCENARIO, "ecn": True}) != before
    # of one background, what the others are does not matter
    fewer = {**SCENARIO, "background": SCENARIO["background"][:1]}
    assert records.of_scenario("k", fewer, "n") == records.of_scenario("k", SCENARIO, "n")


def test_a_result_depends_on_the_algorithms_of_its_flows() -> None:
    # on the kernel CUBIC is the kernel's own, and where no flow is ours the host does nothing
    assert records.depends(SCENARIO, "kernel", "n") == {"core/nice", "kernel"}
    assert records.depends(SCENARIO, "kernel", "g") == {"core/mpat/group", "kernel"}
    assert records.depends(SCENARIO, "kernel", "c") == set()
    held = {**SCENARIO, "background": [{**SCENARIO["background"][0], "hold": True}]}
    assert records.depends(held, "kernel", "n") == {"core/nice", "kernel", "hold"}
    told = {**SCENARIO, "background": [{**held["background"][0], "oracle": {"part": 1.0}}]}
    assert "told" in records.depends(told, "sim", "n")
    assert "hold" not in records.depends(told, "sim", "n")
    assert records.depends(SCENARIO, "sim", "n") == {
        "core/nice", "core/cubic", "sim/nice", "sim/cubic", "sim/strict priority", "world",
    }  # fmt: skip


def test_hashes_that_same_toml_joins_are_one_in_a_chain(root: Path) -> None:
    (root / "docs/records/same.toml").write_text(
        '[[same]]\nwhat = "kernel"\nhashes = ["a", "b"]\nbecause = "moved"\n'
        '[[same]]\nwhat = "kernel"\nhashes = ["b", "c"]\nbecause = "moved again"\n'
    )
    assert records.same("kernel", "a", "c")
    assert not records.same("core/nice", "a", "c")
    assert not records.same("kernel", "a", "d")


def test_a_kept_record_is_fresh_and_says_when_it_is_no_more(root: Path) -> None:
    records.keep("duels", "k: n", depends=["core/nice"], verdict="pass", numbers={"harm": 1.02})
    record = records.load("duels")["k: n"]
    assert record["numbers"] == {"harm": 1.02}
    said = f"Measured at {record['commit']} ({record['date'][:10]})."
    assert records.sentence(["duels/k"], "stale.toml") == said
    change(root, records.TRACES, "ab 1", "ac 1")
    since = records.sentence(["duels/k"], "stale.toml").removeprefix(said)
    assert since == " Since then nice has changed: [what that means](stale.toml)."


def test_runs_that_were_measured_anew_have_records_of_their_own_and_others_keep_theirs(
    root: Path,
) -> None:
    file = root / "docs/data/some/k1.json"
    scenario = {**SCENARIO, "name": "k1"}
    runs = [{"background": b, "seed": s} for b in ("none", "n", "c") for s in (1, 2)]
    old = {
        "scenario": scenario, "engine": "kernel", "kernel": "6.1", "commit": "a", "runs": runs,
        "date": "2026-11-20T10:00:00+00:00",
    }  # fmt: skip
    records.keep_runs(file, old)
    new = {**old, "commit": "b", "date": "2026-11-24T10:00:00+00:00"}
    records.keep_runs(file, new, only=["n"])
    kept = records.load("data")
    assert {name: (r["commit"], r["seeds"]) for name, r in kept.items()} == {
        "some/k1: none": ("a", 2), "some/k1: n": ("b", 2), "some/k1: c": ("a", 2),
    }  # fmt: skip
    assert set(kept["some/k1: n"]["fingerprint"]) == {"core/nice", "kernel", "scenario/k1: none"}
    records.keep_runs(root / "results/k1.json", new)
    assert records.load("data") == kept


def test_a_document_depends_on_what_it_did_unless_somebody_says_otherwise(root: Path) -> None:
    document = {"seeds": 3, "commit": "a", "date": "2026-11-20T10:00:00+00:00", "wall_s": 7.0}
    file = root / "docs/data/nice/spare.json"
    with pytest.raises(LabError, match="Nothing says what docs/data/nice/spare"):
        records.keep_data(file, document, None)
    records.keep_data(file, document, ["core/nice"])
    records.keep_data(file, {**document, "commit": "b"}, None)
    record = records.load("data")["nice/spare"]
    assert (record["seeds"], record["commit"], record["wall_s"]) == (3, "b", 7.0)
    assert list(record["fingerprint"]) == ["core/nice"]
    records.keep_data(root / "results/spare.json", document, None)  # keeps nothing


def test_age_is_in_days() -> None:
    record = {"date": "2026-11-20T23:59:00+00:00"}
    assert records.age_days(record, datetime.date(2026, 11, 25)) == 5


def test_a_name_of_no_known_kind_is_refused() -> None:
    with pytest.raises(LabError, match="cannot depend on 'weather'"):
        records.fingerprint(["weather"])
