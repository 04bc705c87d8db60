# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Scenario files (TOML): the network, the foreground, and the backgrounds to compare.

Keys and types are checked here; ranges, and the rest of the meaning, by ``netnice-load``, which
reads the same file. Every default equals the one documented there.
"""

from __future__ import annotations

import difflib
import tomllib
import types
from collections.abc import Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from . import ROOT, LabError

Queue = Literal["drop-tail", "red", "codel", "fq_codel", "pie", "cake", "priority"]
Arrivals = Literal["poisson", "log", "periodic"]
Sizes = Literal["pareto", "exponential", "empirical", "fixed"]
Profile = Literal["linux", "ns2"]
CrossKind = Literal["tcp", "cbr", "poisson", "onoff"]

NONE = "none"
IDEAL = "strict priority"

# A key that Python reserves, such as `from`, is a field with a `_` at its end.


@dataclass(frozen=True)
class Change:
    """A change of the bottleneck `at_s` seconds after the start; None: as before."""

    at_s: float
    rate_mbit: float | None = None
    rtt_ms: float | None = None


@dataclass(frozen=True)
class Bottleneck:
    """The shared link from "a" to "b".

    Mbit/s, two-way propagation in ms, room in packets or bytes, probabilities of loss and of
    overtaking, ms of jitter and of what is overtaken, a file of Mahimahi's.
    """

    rate_mbit: float
    rtt_ms: float
    limit_packets: int | None = None
    limit_bytes: int | None = None
    queue: Queue = "drop-tail"
    loss: float = 0.0
    ecn: bool = False
    jitter_ms: float = 0.0
    reorder: float = 0.0
    reorder_ms: float = 0.0
    trace: str | None = None
    change: list[Change] = field(default_factory=list)


@dataclass(frozen=True)
class LinkChange:
    """A change of a link `at_s` seconds after the start; None: as before."""

    at_s: float
    rate_mbit: float | None = None
    delay_ms: float | None = None


@dataclass(frozen=True)
class Link:
    """A link of any other network, one-way; without a rate it is infinitely fast."""

    name: str
    from_: str
    to: str
    rate_mbit: float | None = None
    delay_ms: float = 0.0
    limit_packets: int | None = None
    limit_bytes: int | None = None
    queue: Queue = "drop-tail"
    loss: float = 0.0
    ecn: bool = False
    jitter_ms: float = 0.0
    reorder: float = 0.0
    reorder_ms: float = 0.0
    trace: str | None = None
    duplex: bool = False
    change: list[LinkChange] = field(default_factory=list)


@dataclass(frozen=True)
class Hosts:
    """So many hosts at a node, each with a link of its own; least and greatest Mbit/s and ms."""

    name: str
    at: str
    count: int
    rate_mbit: list[float]
    delay_ms: list[float]
    limit_packets: int = 1000


@dataclass(frozen=True)
class Route:
    """The links, by name, that packets from one node to another take."""

    from_: str
    to: str
    via: list[str]


@dataclass(frozen=True)
class Foreground:
    """The flows whose completion times matter; `load` is a share of the bottleneck's rate."""

    control: str = "cubic"
    arrivals: Arrivals = "poisson"
    sizes: Sizes | None = None
    shape: float = 1.5
    mean_bytes: int = 30_000
    max_bytes: int = 10_000_000
    load: float = 0.5
    probe_interval_ms: float | None = None
    window_packets: int | None = None
    from_: str | None = None
    to: str | None = None
    host: str | None = None


@dataclass(frozen=True)
class ShareChange:
    """What each flow of a group gets from `at_s` seconds after the start."""

    at_s: float
    shares: list[float]


@dataclass(frozen=True)
class Background:
    """One variant of bulk traffic; `set` holds algorithm parameters, `bytes` 0 is endless.

    Flows of a `group` share their windows; `shares` are parts of these, one for each flow.
    """

    name: str
    control: str
    flows: int = 1
    bytes: int = 0
    start_s: float = 0.0
    stagger_s: float = 0.0
    set: dict[str, str | float | int] = field(default_factory=dict)
    queue: Queue | None = None
    window_packets: int | None = None
    stop_s: float | None = None
    stop_stagger_s: float = 0.0
    from_: str | None = None
    to: str | None = None
    host: str | None = None
    senders: int | None = None
    group: str | None = None
    shares: list[float] | None = None
    change: list[ShareChange] = field(default_factory=list)


@dataclass(frozen=True)
class Cross:
    """Other traffic in the foreground's class, the same beside every background."""

    name: str
    kind: CrossKind
    flows: int = 1
    control: str = "cubic"
    bytes: int = 0
    window_packets: int | None = None
    rate_mbit: float | None = None
    packet_bytes: int = 1024
    on_ms: float = 250.0
    off_ms: float = 250.0
    shape: float = 1.5
    start_s: float = 0.0
    stagger_s: float = 0.0
    stop_s: float | None = None
    from_: str | None = None
    to: str | None = None
    host: str | None = None
    senders: int | None = None
    set: dict[str, str | float | int] = field(default_factory=dict)
    group: str | None = None
    shares: list[float] | None = None


@dataclass(frozen=True)
class Ideal:
    """The strict-priority reference."""

    control: str = "cubic"
    flows: int = 16


@dataclass(frozen=True)
class Scenario:
    """One experiment; times in seconds. Its network is `bottleneck` or `link`."""

    name: str
    title: str = ""
    warmup_s: float = 3.0
    measure_s: float = 30.0
    drain_s: float = 30.0
    profile: Profile = "linux"
    delayed_acks: bool | None = None
    pacing: bool = False
    overhead_ms: float = 0.0
    mss_bytes: int | None = None
    header_bytes: int | None = None
    bottleneck: Bottleneck | None = None
    link: list[Link] = field(default_factory=list)
    hosts: list[Hosts] = field(default_factory=list)
    route: list[Route] = field(default_factory=list)
    foreground: Foreground | None = None
    background: list[Background] = field(default_factory=list)
    cross: list[Cross] = field(default_factory=list)
    ideal: Ideal = field(default_factory=Ideal)

    def to_dict(self) -> dict[str, Any]:
        """Return the scenario with all defaults filled in, as TOML or JSON would hold it."""
        return to_table(self)

    def variants(self, only: Sequence[str] = ()) -> list[Background | None]:
        """Return what to run: none, strict priority, then the variants called `only` (or all).

        The bulk flows of strict priority go where those of the first background do.
        Raises LabError for a name that no variant has.
        """
        names = [b.name for b in self.background]
        for name in only:
            if name not in (*names, NONE, IDEAL):
                raise LabError(f"No background is called {name!r}.{_nearest(name, names)}")
        ideal = Background(IDEAL, self.ideal.control, self.ideal.flows, queue="priority")
        for first in self.background[:1]:
            ideal = replace(
                ideal, from_=first.from_, to=first.to, host=first.host, senders=first.senders
            )
        return [None, ideal, *(b for b in self.background if not only or b.name in only)]


def to_table(section: Any) -> dict[str, Any]:  # noqa: ANN401 (any dataclass)
    """Return a section as TOML or JSON would hold it: every key that has a value."""
    values = {key_of(f.name): getattr(section, f.name) for f in fields(section)}
    return {key: _plain(value) for key, value in values.items() if value is not None}


def read(path: Path, overrides: Sequence[str] = ()) -> Scenario:
    """Read a scenario file, then set each override (``section.key=value``, value as in TOML).

    Of an array, ``background[2].flows=4`` sets a key of the second element, ``background.flows=4``
    that of all. A bare name such as ``k1`` stands for ``lab/scenarios/k1.toml``.
    """
    if not path.exists():
        known = ROOT / "lab" / "scenarios" / f"{path}.toml"
        if not known.exists():
            names = sorted(p.stem for p in known.parent.glob("*.toml"))
            raise LabError(f"There is no scenario {path}. The lab has: {', '.join(names)}.")
        path = known
    try:
        table = tomllib.loads(path.read_text())
    except tomllib.TOMLDecodeError as error:
        raise LabError(f"{path} is not valid TOML: {error}.") from error
    for override in overrides:
        _override(table, override)
    links = table.get("link")
    for section in [table.get("bottleneck"), *(links if isinstance(links, list) else [])]:
        if isinstance(section, dict) and isinstance(section.get("trace"), str):
            section["trace"] = str((path.parent / section["trace"]).resolve())
    return parse(table, str(path))


def parse(table: dict[str, Any], source: str) -> Scenario:
    """Build a scenario from a TOML table; `source` is what error messages call it."""
    scenario: Scenario = _build(Scenario, table, "", source)
    seen = {NONE, IDEAL}
    for background in scenario.background:
        if background.name in seen:
            raise LabError(
                f"{source}: the background name {background.name!r} is taken. Rename it."
            )
        seen.add(background.name)
    return scenario


def toml_value(text: str) -> Any:  # noqa: ANN401 (TOML values)
    """Return the value that `text` is in TOML; a word needs no quotes."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _override(table: dict[str, Any], override: str) -> None:
    key, equals, text = override.partition("=")
    if not equals:
        raise LabError(f"--set {override!r} has no value. Write it as foreground.load=0.3.")
    value = toml_value(text)
    *sections, last = key.strip().split(".")
    tables = [table]
    for section in sections:
        tables = [inner for outer in tables for inner in _sections(outer, section, override)]
    for inner in tables:
        inner[last] = value


def _sections(table: dict[str, Any], section: str, override: str) -> list[dict[str, Any]]:
    """Return the sections that ``name`` or ``name[2]`` stands for; a new one if there is none."""
    name, bracket, number = section.removesuffix("]").partition("[")
    found = table.setdefault(name, {})
    if isinstance(found, list) and all(isinstance(item, dict) for item in found):
        if not bracket:
            return found
        if number.isdecimal() and 1 <= int(number) <= len(found):
            return [found[int(number) - 1]]
        raise LabError(f"--set {override!r}: there are {len(found)} [[{name}]], numbered from 1.")
    if not isinstance(found, dict) or bracket:
        raise LabError(f"--set {override!r}: {section!r} is not a section with keys.")
    return [found]


def _nearest(name: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, known, 1)
    return f" Did you mean {near[0]!r}?" if near else f" Known: {', '.join(known)}."


def _build(cls: Any, table: Any, at: str, source: str) -> Any:  # noqa: ANN401 (any dataclass)
    """Build dataclass `cls` from a table; `at` is where in the file the table stands."""
    if not isinstance(table, dict):
        raise LabError(f"{source}: {at.rstrip('.')} must be a section with keys.")
    names = {key_of(f.name): f.name for f in fields(cls)}
    types_of = get_type_hints(cls)
    hints = {key: types_of[name] for key, name in names.items()}
    for key in table:
        if key not in hints:
            raise LabError(f"{source}: unknown key {at + key!r}.{_nearest(key, list(hints))}")
    for f in fields(cls):
        key = key_of(f.name)
        if f.default is MISSING and f.default_factory is MISSING and key not in table:
            raise LabError(f"{source}: the key {at + key!r} is missing.")
    return cls(**{names[k]: _value(hints[k], v, at + k, source) for k, v in table.items()})


def key_of(name: str) -> str:
    """Return the key in a scenario file of a field's name."""
    return name.removesuffix("_")


def _value(hint: Any, value: Any, at: str, source: str) -> Any:  # noqa: ANN401 (TOML values)
    """Return `value` as the type `hint`, or raise LabError with what would be right."""
    origin = get_origin(hint)
    if is_dataclass(hint):
        return _build(hint, value, at + ".", source)
    if origin in (Union, types.UnionType) and type(None) in get_args(hint):
        return _value(get_args(hint)[0], value, at, source)
    if origin is Literal:
        choices = get_args(hint)
        if value not in choices:
            raise LabError(
                f"{source}: {at!r} is {value!r}; it must be one of {', '.join(choices)}."
            )
        return value
    if origin is list and isinstance(value, list):
        (item,) = get_args(hint)
        return [_value(item, v, f"{at}[{i}]", source) for i, v in enumerate(value, 1)]
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    kind, wanted = {
        float: (float, "a number"),
        int: (int, "a whole number"),
        bool: (bool, "true or false"),
        str: (str, "a string"),
        list: (list, "an array"),
        dict: (dict, "a table"),
    }[origin or hint]
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise LabError(f"{source}: {at!r} is {value!r}; it must be {wanted}.")
    return value


def _plain(value: Any) -> Any:  # noqa: ANN401 (TOML values)
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return to_table(value) if is_dataclass(value) else value
