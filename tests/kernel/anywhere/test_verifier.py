# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""The kernel takes every program, has room for larger ones, and computes what is expected."""

from __future__ import annotations

import json

from sizes import MODES, SOAK
from support import IN_VM, ROOT, algorithms, call

EXAMPLES = ROOT / "target" / "release" / "examples"
RECORD = ROOT / "docs" / "records" / "verifier" / "instructions.json"

MOST = 700_000
"""Of the million instructions that the verifier walks through a program before it refuses it
(BPF_COMPLEXITY_LIMIT_INSNS): kernels walk differently, and none may come near."""


MANY = 100_000
"""Less is walked in a tenth of a second."""


def most_recorded() -> dict[str, int]:
    """Return how many were walked through each program, on the kernel that walked most."""
    most: dict[str, int] = {}
    for walked in json.loads(RECORD.read_text())["kernels"].values():
        for name, count in walked.items():
            most[name] = max(count, most.get(name, 0))
    return most


def controls() -> list[str]:
    """Return the controls to load: none named is all.

    On an emulated processor each takes ten seconds: those that take more than half of `MOST` on any
    kernel, as the record has it, or the largest.
    """
    if not IN_VM or SOAK:
        return []
    largest: dict[str, int] = {}
    for name, count in most_recorded().items():
        control = name[name.index("_nn_", len("nn_")) + 1 :]
        largest[control] = max(count, largest.get(control, 0))
    near = min(MOST // 2, max(largest.values()))
    return [control for control, count in largest.items() if count >= near]


def test_no_program_takes_more_than_seven_tenths_of_what_the_verifier_allows() -> None:
    walked = {}
    wanted = controls()
    for line in call(str(EXAMPLES / "instructions"), *wanted).splitlines():
        name, count, unit = line.split()
        assert unit == "instructions"
        walked[name] = int(count)
    print("\n".join(f"{name} {count}" for name, count in walked.items()))
    for control in wanted or [f"nn_{algorithm}" for algorithm in algorithms()]:
        assert any(name.endswith(f"_{control}") for name in walked), control
    assert {name: count for name, count in walked.items() if count > MOST} == {}
    # what costs many times what it did has lost something by which the verifier cuts ways short
    recorded = most_recorded()
    grown = {
        name: (count, recorded[name])
        for name, count in walked.items()
        if count > MANY and count > 3 * recorded.get(name, count)
    }
    assert grown == {}, f"mend it, or write the record anew: {RECORD.name}"


def test_every_algorithm_answers_in_this_kernel_as_its_golden_traces_say() -> None:
    # one for each way in which a host obeys, and one with a loop: all take minutes
    some = [each.split(maxsplit=1)[0] for each in MODES] + ["mpat"]
    wanted = algorithms() if SOAK else some
    lines = [line for each in wanted for line in call(str(EXAMPLES / "golden"), each).splitlines()]
    assert {line.split()[0] for line in lines} == set(wanted)
