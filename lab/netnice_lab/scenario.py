# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Scenarios, as ``netnice-load scenario`` reads, checks and completes them.

It alone knows which keys there are, their defaults and ranges: docs/scenarios.md. Here a scenario
is what it printed, or made of that; what is made has to be described before it is run.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from . import ROOT, LabError, tools

NONE = "none"
IDEAL = "strict priority"
"""The variants that every scenario has."""


class Section(dict[str, Any]):
    """A section of a scenario. Its keys are attributes too, with `from_` for `from`."""

    __slots__ = ()

    def __init__(self, given: Mapping[str, Any] | None = None, **keys: Any) -> None:  # noqa: ANN401
        """Hold what is given, and these keys."""
        super().__init__(given or {}, **{key.removesuffix("_"): keys[key] for key in keys})

    def __getattr__(self, key: str) -> Any:  # noqa: ANN401 (JSON)
        """Return the value of a key, which may be None; AttributeError if there is no such key."""
        try:
            return self[key.removesuffix("_")]
        except KeyError:
            raise AttributeError(f"{key!r} is not among {', '.join(self)}") from None

    def but(self, **keys: Any) -> Section:  # noqa: ANN401 (JSON)
        """Return the same section with other values of these keys."""
        return Section(self, **keys)


Scenario = Section
"""A whole one."""
Description = Section
"""A `scenario` with every default, its `end_s`, the `mss_bytes` and `header_bytes` of its packets,
the `variants` to run, and the `dumbbell` that its network may be."""

_described: dict[str, Description] = {}
"""What is known already, by the JSON of the scenario."""


def read(path: Path, overrides: Sequence[str] = ()) -> Scenario:
    """Read a scenario file with overrides (``section.key=value``), as `--set` takes them.

    Raises LabError with what is wrong with it.
    """
    found = _ask(str(find(path)), *(word for setting in overrides for word in ("--set", setting)))
    return _keep(found).scenario  # type: ignore[no-any-return]


def find(path: Path) -> Path:
    """Return a scenario's file; a bare name such as ``k1`` stands for ``lab/scenarios/k1.toml``.

    Raises LabError if there is none.
    """
    folder = ROOT / "lab" / "scenarios"
    known = path if path.exists() else folder / f"{path}.toml"
    if not known.exists():
        names = ", ".join(sorted(p.stem for p in folder.glob("*.toml")))
        raise LabError(f"There is no scenario {path}. The lab has: {names}.")
    return known


def describe_all(scenarios: Iterable[Scenario]) -> list[Description]:
    """Return what netnice-load says of each; LabError with what is wrong with one, and its name."""
    texts = [json.dumps(scenario) for scenario in scenarios]
    new = [text for text in dict.fromkeys(texts) if text not in _described]
    if new:
        said = _ask("-", "--many", text=f"[{','.join(new)}]")["scenarios"]
        _described.update(zip(new, map(_keep, said), strict=True))
    return [_described[text] for text in texts]


def describe(scenario: Scenario) -> Description:
    """Return what netnice-load says of a scenario; LabError with what is wrong with it."""
    return describe_all([scenario])[0]


def variants(scenario: Scenario, only: Sequence[str] = ()) -> list[Section]:
    """Return what to run, as `name`, `background` and `queue`: none, strict priority, the others.

    Of the others only those called `only`, if any are. Raises LabError for a name that none has.
    """
    every: list[Section] = describe(scenario).variants
    known = [variant.name for variant in every]
    for name in only:
        if name not in known:
            raise LabError(f"No background is called {name!r}. Known: {', '.join(known)}.")
    return [v for v in every if not only or v.name in (NONE, IDEAL, *only)]


def _keep(description: Description) -> Description:
    """Remember it of the scenario with its defaults, too."""
    return _described.setdefault(json.dumps(description.scenario), description)


def _ask(*arguments: str, text: str = "") -> Section:
    """Return the report of netnice-load; LabError with its sentence."""
    done = subprocess.run(
        [tools.built(tools.LOAD), "scenario", *arguments, "--json", "-"],
        input=text, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        said = done.stderr.strip().removeprefix("netnice-load: ")
        raise LabError(said, status=done.returncode)
    report: Section = json.loads(done.stdout, object_hook=Section)
    return report
