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
from dataclasses import MISSING, asdict, dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from . import ROOT, LabError

Queue = Literal["drop-tail", "red", "fq_codel", "cake", "priority"]
Arrivals = Literal["poisson", "log"]
Sizes = Literal["pareto", "exponential", "empirical", "fixed"]

NONE = "none"
IDEAL = "strict priority"


@dataclass(frozen=True)
class Bottleneck:
    """The shared link: Mbit/s, two-way propagation in ms, room in packets, loss probability."""

    rate_mbit: float
    rtt_ms: float
    limit_packets: int
    queue: Queue = "drop-tail"
    loss: float = 0.0


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


@dataclass(frozen=True)
class Background:
    """One variant of bulk traffic; `set` holds algorithm parameters, `bytes` 0 is endless."""

    name: str
    control: str
    flows: int = 1
    bytes: int = 0
    start_s: float = 0.0
    stagger_s: float = 0.0
    set: dict[str, str | float | int] = field(default_factory=dict)
    queue: Queue | None = None


@dataclass(frozen=True)
class Ideal:
    """The strict-priority reference."""

    control: str = "cubic"
    flows: int = 16


@dataclass(frozen=True)
class Scenario:
    """One experiment; times in seconds."""

    name: str
    bottleneck: Bottleneck
    title: str = ""
    warmup_s: float = 3.0
    measure_s: float = 30.0
    drain_s: float = 30.0
    foreground: Foreground | None = None
    background: list[Background] = field(default_factory=list)
    ideal: Ideal = field(default_factory=Ideal)

    def to_dict(self) -> dict[str, Any]:
        """Return the scenario with all defaults filled in, as TOML or JSON would hold it."""
        table: dict[str, Any] = _without_none(asdict(self))
        return table

    def variants(self, only: Sequence[str] = ()) -> list[Background | None]:
        """Return what to run: none, strict priority, then the variants called `only` (or all).

        Raises LabError for a name that no variant has.
        """
        names = [b.name for b in self.background]
        for name in only:
            if name not in (*names, NONE, IDEAL):
                raise LabError(f"No background is called {name!r}.{_nearest(name, names)}")
        ideal = Background(IDEAL, self.ideal.control, self.ideal.flows, queue="priority")
        return [None, ideal, *(b for b in self.background if not only or b.name in only)]


def read(path: Path, overrides: Sequence[str] = ()) -> Scenario:
    """Read a scenario file, then set each override (``section.key=value``, value as in TOML).

    A bare name such as ``k1`` stands for ``lab/scenarios/k1.toml``.
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
        if background.set and not background.control.startswith("nn_"):
            raise LabError(
                f"{source}: {background.name!r} sets parameters, which only nn_* controls have. "
                "Remove `set`, or choose an nn_* control."
            )
    return scenario


def _override(table: dict[str, Any], override: str) -> None:
    key, equals, text = override.partition("=")
    if not equals:
        raise LabError(f"--set {override!r} has no value. Write it as foreground.load=0.3.")
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text  # a word needs no quotes on the command line
    *sections, last = key.split(".")
    for section in sections:
        table = table.setdefault(section, {})
        if not isinstance(table, dict):
            raise LabError(f"--set {override!r}: {section!r} is not a section with keys.")
    table[last] = value


def _nearest(name: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, known, 1)
    return f" Did you mean {near[0]!r}?" if near else f" Known: {', '.join(known)}."


def _build(cls: Any, table: Any, at: str, source: str) -> Any:  # noqa: ANN401 (any dataclass)
    """Build dataclass `cls` from a table; `at` is where in the file the table stands."""
    if not isinstance(table, dict):
        raise LabError(f"{source}: {at.rstrip('.')} must be a section with keys.")
    hints = get_type_hints(cls)
    for key in table:
        if key not in hints:
            raise LabError(f"{source}: unknown key {at + key!r}.{_nearest(key, list(hints))}")
    for f in fields(cls):
        if f.default is MISSING and f.default_factory is MISSING and f.name not in table:
            raise LabError(f"{source}: the key {at + f.name!r} is missing.")
    return cls(**{k: _value(hints[k], v, at + k, source) for k, v in table.items()})


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
        str: (str, "a string"),
        list: (list, "an array"),
        dict: (dict, "a table"),
    }[origin or hint]
    if not isinstance(value, kind) or isinstance(value, bool):
        raise LabError(f"{source}: {at!r} is {value!r}; it must be {wanted}.")
    return value


def _without_none(value: Any) -> Any:  # noqa: ANN401 (JSON)
    """Drop keys without a value, which TOML cannot write."""
    if isinstance(value, dict):
        return {k: _without_none(v) for k, v in value.items() if v is not None}
    if isinstance(value, list):
        return [_without_none(v) for v in value]
    return value
