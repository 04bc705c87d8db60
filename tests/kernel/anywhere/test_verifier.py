# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""The kernel takes every program, has room for larger ones, and computes what is expected."""

from __future__ import annotations

from support import ROOT, algorithms, call

EXAMPLES = ROOT / "target" / "release" / "examples"

MOST = 700_000
"""Of the million instructions that the verifier walks through a program before it refuses it
(BPF_COMPLEXITY_LIMIT_INSNS): kernels walk differently, and none may come near."""


def test_no_program_takes_more_than_seven_tenths_of_what_the_verifier_allows() -> None:
    walked = {}
    for line in call(str(EXAMPLES / "instructions")).splitlines():
        name, count, unit = line.split()
        assert unit == "instructions"
        walked[name] = int(count)
    print("\n".join(f"{name} {count}" for name, count in walked.items()))
    for algorithm in algorithms():
        assert any(name.endswith(f"_nn_{algorithm}") for name in walked), algorithm
    assert {name: count for name, count in walked.items() if count > MOST} == {}


def test_every_algorithm_answers_in_this_kernel_as_its_golden_traces_say() -> None:
    call(str(EXAMPLES / "golden"))
