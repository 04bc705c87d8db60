# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Every saved result is of what is here now, or stands in docs/records/stale.toml with a reason."""

from __future__ import annotations

import json
import warnings

import renew
from netnice_lab import ROOT, records

DATA = ROOT / "docs" / "data"


def test_a_stale_record_stands_in_stale_toml_with_a_reason_and_no_other_does() -> None:
    found = records.everything()
    changed = {name: words for name, its in found.items() if (words := records.stale(its))}
    reasons = records.reasons()
    unlisted = {name: words for name, words in changed.items() if name not in reasons}
    assert not unlisted, (
        f"{len(unlisted)} results are of what has changed since: "
        + "; ".join(f"{name} ({', '.join(words)})" for name, words in unlisted.items())
        + ". Measure them again; or name them in docs/records/stale.toml with a reason; or, if "
        "the change is mechanical, add both hashes to docs/records/same.toml with what shows it: "
        + str(hashes(unlisted))
    )
    fresh = sorted(name for name in reasons if name not in changed)
    assert not fresh, f"docs/records/stale.toml names what is not stale, or no record: {fresh}"
    assert all(reasons.values())
    if changed:
        oldest = max(records.age_days(found[name]) for name in changed)
        warnings.warn(
            f"{len(changed)} of {len(found)} records are stale, the oldest of {oldest} days",
            stacklevel=1,
        )


def hashes(unlisted: dict[str, list[str]]) -> dict[str, list[str | None]]:
    """Return for what has changed its hash in the newest of these records, and its hash now."""
    found = records.everything()
    pairs = {}
    for name in sorted(unlisted, key=lambda n: found[n]["date"]):
        for what, was in found[name]["fingerprint"].items():
            now = records.fingerprint([what])[what]
            if not records.same(what, was, now):
                pairs[what] = [was, now]
    return pairs


def test_each_file_of_saved_data_has_records_of_its_own_date() -> None:
    dates: dict[str, set[str]] = {}
    for name, record in records.everything().items():
        suite, _, key = name.partition("/")
        if suite == "data":
            dates.setdefault(key.split(": ")[0], set()).add(record["date"])
    saved = {
        str(file.relative_to(DATA).with_suffix("")): json.loads(file.read_text())["date"]
        for file in DATA.rglob("*.json")
    }
    assert set(dates) == set(saved)
    # a file of several measurements has the date of the last of them
    other = {name: date for name, date in saved.items() if max(dates[name]) > date}
    assert not other
    alone = {name for name in saved if len(dates[name]) == 1}
    assert {n: saved[n] for n in alone if "validation" not in n} == {
        n: next(iter(dates[n])) for n in alone if "validation" not in n
    }


def test_every_record_says_what_it_found_when_and_of_what() -> None:
    for name, record in records.everything().items():
        assert record["verdict"], name
        assert record["commit"], name
        assert records.age_days(record) >= 0, name


def test_pages_say_beside_their_figures_of_which_commits_behaviour_they_are() -> None:
    assert ROOT / "README.md" in renew.pages()
    old = [str(page) for page in renew.pages() if page.read_text() != renew.marked(page)]
    assert not old, f"{old}: run tests/records/renew.py"
