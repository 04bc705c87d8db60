# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""What a saved result depends on, and whether that is still so.

A *record* says of one result what was found, when, of which commit, and the *fingerprint* of what
it depends on. The fingerprint is of behaviour, as far as it can be: a comment or a file that moved
changes none. It maps names of what a result may depend on to hashes:

==========================  ======================================================================
``core/nice``               what the algorithm does for a flow: its golden traces
``core/nice/group``         what it does for a group of flows: its golden trace of groups
``sim/nice``                how it fares in the simulator: its row of the small duels
``world``                   every network of the lab in the simulator, with Reno and CUBIC alone
``kernel``                  the host in the kernel: its declarations, in any order, without comments
``hold``                    the same of what holds packets, the path in the core included
``down``                    the same of what lets downloads yield
``quinn``                   the host over QUIC: its source without comments, and quinn's version
``told``                    what hosts carry in the simulator that are told of their path
``scenario/k1``             a scenario, but for its title; what is empty or off does not count
``scenario/k1: cubic x16``  of its backgrounds only this one, which may be ``none``
``data/nice/spare``         a file of docs/data, which a judgement was made of
==========================  ======================================================================

Records are kept in ``docs/records/<suite>.json``. One that is *stale*, which means that a name in
its fingerprint has another hash now, has to stand in ``docs/records/stale.toml`` with a reason.
A change that moved a hash but no behaviour stands in ``docs/records/same.toml``: both hashes, and
what showed it. Then nothing is stale of it.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import re
import subprocess
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path, PurePosixPath
from typing import Any

from . import ROOT, LabError, output
from .scenario import NONE, read
from .source import code_lines, declarations

Json = dict[str, Any]
Fingerprint = dict[str, str | None]
"""Hashes by name; None where there was no such thing."""

DATA, RECORDS = ROOT / "docs" / "data", ROOT / "docs" / "records"
STALE, SAME = RECORDS / "stale.toml", RECORDS / "same.toml"
TRACES = "tests/golden/traces.txt"
SNAPSHOTS = "crates/netnice-sim/tests/snapshots"
DUELS = f"{SNAPSHOTS}/duels__the_small_duels_end_as_they_did.snap"
WORLDS = f"{SNAPSHOTS}/worlds__every_network_of_the_lab_carries_what_it_did.snap"
TOLD = f"{SNAPSHOTS}/told__hosts_that_are_told_carry_what_they_did.snap"
HOST, HOLD, DOWN = ("bpf/cc.bpf.c", "bpf/run.bpf.c"), ("bpf/hold.bpf.c",), ("bpf/down.bpf.c",)
"""What runs in the kernel beside the algorithm; `HOST_ROOMS` has what of their headers counts."""
HOST_ROOMS = ("bpf/", "core/host/")

MEASURED = "measured"
"""The verdict on what only claims judge."""


# ---- provenance


def git(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run git on the source."""
    return subprocess.run(
        ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )  # fmt: skip


def commit() -> str:
    """Return which source was measured, as ``git describe --dirty``, but for changes of results."""
    described = git("describe", "--always").stdout.strip()
    if not described:
        return "unknown"
    changed = git("diff", "--quiet", "HEAD", "--", ".", ":(exclude)docs").returncode
    return described + ("-dirty" if changed else "")


def provenance(command: Sequence[str]) -> Json:
    """Return the keys of a document that say where it is from."""
    return {
        "commit": commit(),
        "command": [Path(command[0]).name, *command[1:]],
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }


# ---- fingerprints


def fingerprint(depends: Iterable[str], commit: str | None = None) -> Fingerprint:
    """Return the hashes of what a result depends on, in the checkout or at a commit."""
    return {name: _hash(name, commit) for name in sorted(set(depends))}


@cache
def _hash(name: str, commit: str | None) -> str | None:
    kind, _, rest = name.partition("/")
    if kind not in _KINDS:
        raise LabError(f"A result cannot depend on {name!r}. Known: {', '.join(_KINDS)}.")
    found = _KINDS[kind](rest, commit)
    return None if found is None else hashlib.sha256(found.encode()).hexdigest()[:16]


def _text(path: str, commit: str | None) -> str | None:
    if commit is None:
        file = ROOT / path
        return file.read_text() if file.exists() else None
    shown = git("show", f"{commit}:{path}")
    return shown.stdout if shown.returncode == 0 else None


def _core(name: str, commit: str | None) -> str | None:
    """Return the golden traces of an algorithm: of flows, or with ``/group`` of groups."""
    algorithm, _, group = name.partition("/")
    lines = (_text(TRACES, commit) or "").splitlines()
    its = [
        line for line in lines
        if line.split()[0] == algorithm and (line.split()[1] == "group") == bool(group)
    ]  # fmt: skip
    return "\n".join(sorted(its)) or None


def _sim(name: str, commit: str | None) -> str | None:
    """Return the cells of a row of the small duels."""
    for line in (_text(DUELS, commit) or "").splitlines():
        if line.startswith(f"{name}  "):
            return " ".join(line.removeprefix(name).split())
    return None


def _snapshot(path: str, name: str, commit: str | None) -> str | None:
    """Return a snapshot of the simulator without its heading."""
    assert not name
    return (_text(path, commit) or "").partition("---\n")[2].partition("---\n")[2] or None


def _over_quic(library: str, name: str, commit: str | None) -> str | None:
    """Return what the host over that library of QUIC is made of."""
    assert not name
    folders = (f"crates/netnice-{library}/src/", "crates/netnice-host/src/")
    listed = git("ls-tree", "-r", "--name-only", commit or "HEAD", *folders).stdout.splitlines()
    texts = [_text(path, commit) or "" for path in listed if not path.endswith("/tests.rs")]
    code = sorted(line for text in texts for line in code_lines(text))
    lock = _text("Cargo.lock", commit) or ""
    locked = re.findall(rf'name = "{library}.*"\nversion = ".*"', lock)
    return "\n".join([*code, *locked]) if code else None


def _declared(files: Sequence[str], name: str, commit: str | None) -> str | None:
    """Return the declarations of files and their headers, in the order of the alphabet."""
    assert not name
    seen: dict[str, str] = {}
    wanted = list(files)
    while wanted:
        path = wanted.pop()
        text = _text(path, commit)
        if path in seen or text is None:
            continue
        seen[path] = text
        for header in re.findall(r'^#include "(.*)"', text, re.MULTILINE):
            beside = _normal(PurePosixPath(path).parent / header)
            wanted += [p for p in (beside, f"core/{header}") if p.startswith(HOST_ROOMS)]
    return "\n".join(sorted(d for text in seen.values() for d in declarations(text))) or None


def _normal(path: PurePosixPath) -> str:
    parts: list[str] = []
    for part in path.parts:
        parts = parts[:-1] if part == ".." else [*parts, part]
    return "/".join(parts)


def _scenario(name: str, commit: str | None) -> str | None:
    """Return a scenario as it is now: its keys that say something, as JSON."""
    if commit is not None:
        raise LabError("Only a result itself knows which scenario it was of: use of_scenario.")
    words, _, background = name.partition(": ")
    file, *overrides = words.split()
    return _saying(read(Path(file), overrides), background)


def _saying(scenario: Mapping[str, Any], background: str) -> str | None:
    found = {k: v for k, v in scenario.items() if k not in ("name", "title")}
    if background:
        several = found.pop("background", [])
        found["background"] = [b for b in several if b["name"] == background]
    return json.dumps(_without_empty(found), sort_keys=True)


def _without_empty(value: Any) -> Any:  # noqa: ANN401 (JSON)
    """Drop what says nothing, as every key does that comes later and is off by default."""
    if isinstance(value, dict):
        plain = {key: _without_empty(its) for key, its in value.items()}
        return {key: its for key, its in plain.items() if its not in (None, 0, "", [], {})}
    if isinstance(value, list):
        return [_without_empty(its) for its in value]
    return float(value) if isinstance(value, int) else value


def _data(name: str, commit: str | None) -> str | None:
    return _text(f"docs/data/{name}.json", commit)


_KINDS: dict[str, Callable[[str, str | None], str | None]] = {
    "core": _core, "sim": _sim, "scenario": _scenario, "data": _data,
    "world": partial(_snapshot, WORLDS), "told": partial(_snapshot, TOLD),
    "kernel": partial(_declared, HOST), "hold": partial(_declared, HOLD),
    "down": partial(_declared, DOWN),
    "quinn": partial(_over_quic, "quinn"), "s2n": partial(_over_quic, "s2n"),
}  # fmt: skip


def of_scenario(name: str, scenario: Mapping[str, Any], background: str = "") -> Fingerprint:
    """Return the fingerprint of a scenario that a result carries; `name` as in ``scenario/``."""
    key = f"scenario/{name}" + (f": {background}" if background else "")
    found = _saying(scenario, background)
    assert found is not None
    return {key: hashlib.sha256(found.encode()).hexdigest()[:16]}


def algorithms() -> list[str]:
    """Return the algorithms of the core, by their golden traces."""
    return list(dict.fromkeys(line.split()[0] for line in (ROOT / TRACES).read_text().splitlines()))


def depends(scenario: Mapping[str, Any], engine: str, background: str | None = None) -> set[str]:
    """Return the names of what decides how a scenario ends on ``sim`` or ``kernel``.

    Of the algorithms that is those of its flows; with `background`, of its backgrounds' only that
    one's. On the kernel the controls that are not ours are the kernel's own.
    """
    flows = [
        f for f in scenario.get("background") or [] if background is None or f["name"] == background
    ]
    others = [scenario.get("foreground"), *(scenario.get("cross") or [])]
    flows += [f for f in others if f and f.get("control")]
    ours = {
        f["control"].removeprefix("nn_") + ("/group" if f.get("group") else "")
        for f in flows
        if engine == "sim" or f["control"].startswith("nn_")
    }
    found = {f"core/{name}" for name in ours}
    for flow in (f for f in flows if f.get("hold")):
        is_told = flow.get("oracle") is not None or flow.get("hold_rate_mbit")
        found |= {"told" if is_told else "hold"}  # of this the simulator has the core's part alone
    if any(flow.get("pull") for flow in flows):
        # of this too; other hosts' traffic is for the algorithm of the first class
        found |= {"down", f"core/{_first_class()}"}
    if engine == "sim":
        rows = {name.removesuffix("/group") for name in ours}
        return found | {"world"} | {f"sim/{name}" for name in rows | {"strict priority"}}
    if any(flow.get("quic") for flow in flows):
        found.add("quinn")
    over_tcp = (flow for flow in flows if not flow.get("quic"))
    return found | ({"kernel"} if any(f["control"].startswith("nn_") for f in over_tcp) else set())


def _first_class() -> str:
    """Return the algorithm of the first class."""
    classes = (ROOT / "core" / "classes.def").read_text()
    found = re.search(r"^NN_CLASS\(\w+, (\w+),", classes, re.MULTILINE)
    assert found, "core/classes.def has a line"
    return found[1]


# ---- records


def keep(
    suite: str,
    key: str,
    *,
    depends: Iterable[str] = (),
    verdict: str,
    numbers: Mapping[str, Any] | None = None,
    seeds: int | None = None,
    wall_s: float | None = None,
    kernel: str | None = None,
    document: Mapping[str, Any] | None = None,
) -> Json:
    """Keep the record of a result that was just found, in place of its older one; return it.

    Of a saved `document` it has the date and commit, otherwise those of now.
    """
    source = document or provenance(("",))
    record: Json = {
        "verdict": verdict,
        "numbers": dict(numbers or {}),
        "seeds": seeds,
        "wall_s": None if wall_s is None else round(wall_s, 1),
        "date": source["date"],
        "commit": source["commit"],
        "kernel": kernel,
        "fingerprint": fingerprint(depends),
    }
    write(suite, {**load(suite), key: record})
    return record


def keep_data(file: Path, document: Mapping[str, Any], depends: Iterable[str] | None) -> None:
    """Keep the record of a document of ``docs/data``; of one that is elsewhere none is kept.

    `depends` None stands for what its former record depends on. Raises LabError if it has none.
    """
    if not file.is_relative_to(DATA):
        return
    key = str(file.relative_to(DATA).with_suffix(""))
    former = load("data").get(key)
    if depends is None and former is None:
        raise LabError(
            f"Nothing says what docs/data/{key}.json depends on. Add a record of it to "
            f"{RECORDS.relative_to(ROOT)}/data.json by hand once, with names as its fingerprint."
        )
    keep(
        "data", key, verdict=MEASURED, seeds=document.get("seeds"), kernel=document.get("kernel"),
        depends=former["fingerprint"] if former and depends is None else depends or (),
        wall_s=document.get("wall_s"), document=document,
    )  # fmt: skip


def keep_runs(
    file: Path,
    document: Mapping[str, Any],
    overrides: Sequence[str] = (),
    only: Sequence[str] | None = None,
) -> None:
    """Keep a record for each background of a document of ``docs/data``, or for `only` these.

    `overrides` are what the scenario's file was read with. Of a document that is elsewhere no
    record is kept.
    """
    if not file.is_relative_to(DATA):
        return
    scenario = document["scenario"]
    words = " ".join([scenario["name"], *overrides])
    in_file = [b["name"] for b in read(Path(scenario["name"])).background]
    for background in dict.fromkeys(run["background"] for run in document["runs"]):
        if only is None or background in only:
            its = depends(scenario, document["engine"], background)
            named = background if background in in_file else NONE
            keep(
                "data", f"{file.relative_to(DATA).with_suffix('')}: {background}",
                depends=its | {f"scenario/{words}: {named}"},
                verdict=MEASURED, kernel=document["kernel"], document=document,
                seeds=sum(run["background"] == background for run in document["runs"]),
            )  # fmt: skip


def load(suite: str) -> dict[str, Json]:
    """Return the records of a suite by key; none if it has no file."""
    file = RECORDS / f"{suite}.json"
    found: dict[str, Json] = json.loads(file.read_text())["records"] if file.exists() else {}
    return found


def write(suite: str, records: Mapping[str, Json]) -> None:
    """Write the records of a suite in the order of their keys, or not at all."""
    document = {"schema": 1, "records": dict(sorted(records.items()))}
    output.write(RECORDS / f"{suite}.json", json.dumps(document, indent=1) + "\n")


def everything() -> dict[str, Json]:
    """Return the records of all suites, by ``suite/key``."""
    suites = sorted(file.stem for file in RECORDS.glob("*.json"))
    return {f"{suite}/{key}": record for suite in suites for key, record in load(suite).items()}


# ---- staleness


def stale(record: Mapping[str, Any]) -> list[str]:
    """Return what has changed since a record, as the words that a sentence can list."""
    changed = [
        name for name, was in record["fingerprint"].items()
        if not same(name, was, fingerprint([name])[name])
    ]  # fmt: skip
    words = []
    for name in changed:
        kind, _, rest = name.partition("/")
        if kind == "sim" and {f"core/{rest}", f"core/{rest}/group"} & set(changed):
            continue  # it fares otherwise because it is another
        words.append({
            "core": rest.replace("/", "'s "),
            "sim": f"the simulator ({rest})",
            "world": "the simulator's networks",
            "kernel": "the host in the kernel",
            "hold": "what holds packets",
            "down": "what lets downloads yield",
            "told": "hosts that are told of their path",
            "quinn": "the host over QUIC",
            "s2n": "the host over s2n-quic",
            "scenario": f"the scenario {rest}",
            "data": f"the data {rest}",
        }[kind])  # fmt: skip
    return words


def same(name: str, was: str | None, now: str | None) -> bool:
    """Return whether two hashes stand for one behaviour, by themselves or by ``same.toml``."""
    entries = tomllib.loads(SAME.read_text())["same"] if SAME.exists() else []
    known = {was}
    for entry in entries:  # in the order of time
        if entry["what"] == name and known & set(entry["hashes"]):
            known |= set(entry["hashes"])
    return now in known


def reasons() -> dict[str, str]:
    """Return why each record that is known to be stale is kept, by ``suite/key``."""
    entries = tomllib.loads(STALE.read_text())["stale"] if STALE.exists() else []
    return {key: entry["because"] for entry in entries for key in entry["records"]}


def age_days(record: Mapping[str, Any], today: datetime.date | None = None) -> int:
    """Return how many days ago a record was made."""
    made = datetime.datetime.fromisoformat(record["date"]).date()
    return ((today or datetime.datetime.now(datetime.UTC).date()) - made).days


def of(names: Iterable[str]) -> dict[str, Json]:
    """Return the records that are called so, or begin so, by ``suite/key``.

    ``data/k1`` stands for ``data/k1: none`` and all its other backgrounds too. Raises LabError for
    a name that no record has.
    """
    every = everything()
    found: dict[str, Json] = {}
    for name in names:
        its = {
            key: record for key, record in every.items()
            if key == name or key.startswith((f"{name}: ", f"{name}/"))
        }  # fmt: skip
        if not its:
            raise LabError(f"No record is called {name!r}.")
        found |= its
    return found


def changes(found: Mapping[str, Json]) -> list[str]:
    """Return what has changed since any of these records, each once."""
    return list(dict.fromkeys(word for record in found.values() for word in stale(record)))


def sentence(names: Iterable[str], why: str) -> str:
    """Return of which commits the records of some names are, and what has changed since.

    `why` is where to read what that means.
    """
    found = of(names)
    days = sorted({(record["date"][:10], record["commit"]) for record in found.values()})
    said = "Measured at " + ", ".join(f"{commit} ({day})" for day, commit in days) + "."
    changed = changes(found)
    if not changed:
        return said
    *most, last = changed
    these = f"{', '.join(most)} and {last} have" if most else f"{last} has"
    return f"{said} Since then {these} changed: [what that means]({why})."
