# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Tables of the page on FAIRBAT."""

from __future__ import annotations

from ...claims.claim import Measured, Table, times
from . import ratios
from .experiments import (
    ALPHA,
    FLOWS,
    PHASE_FLOWS,
    PHASE_WEIGHTS,
    QUEUES,
    REFERENCE,
    TAU,
    TCP,
    WEIGHTS,
    fixed,
)


def _weights(measured: Measured) -> list[list[str]]:
    results, rows = measured["single"], []
    for name in (*ALPHA, *TAU):
        for k in TCP:
            cells = [name, str(k)]
            for n in FLOWS:
                value = ratios.weight(results, name, k, n, tcp=k, fair=n)
                expected = ratios.theory(name, k, n)
                cells += [times(value, 3), f"{expected:.3f}"]
                if name in TAU:
                    cells[-1] += f" ({ratios.tau_theory(name, k, n):.3f})"
            rows.append(cells)
    return rows


def _harm(measured: Measured) -> list[list[str]]:
    results, rows = measured["single"], []
    for k in TCP:
        for n in FLOWS:
            cells = [str(k), str(n)]
            for name in (*ALPHA, *TAU, REFERENCE):
                harm = results.harm(name, "fct_s", tcp=k, fair=n)
                tail = results.harm(name, "fct_p95_s", tcp=k, fair=n)
                mbit = results.mean("mbit", name, tcp=k, fair=n)
                cells.append(f"{times(harm)}; {times(tail)}; {times(mbit, 1)}")
            rows.append(cells)
    return rows


def _phases(measured: Measured) -> list[list[str]]:
    return [
        [f"{mode}-TCP", queue]
        + [
            times(ratios.phase_ratio(measured, queue, n, mode, w))
            for n in PHASE_FLOWS
            for w in PHASE_WEIGHTS
        ]
        for mode in ("alpha", "tau")
        for queue in QUEUES
    ]


def _fixed(measured: Measured) -> list[list[str]]:
    rows = []
    for mode in ("alpha", "tau"):
        for w in WEIGHTS:
            name = fixed(mode, w)
            share, delay = ratios.shares(measured, mode, w)
            got = ratios.weight(measured["weights"], name, 1, 10)
            rows.append([f"{mode}-TCP", f"{w:g}", times(got, 3), times(share), times(delay, 1)])
    return rows


SHARES = Table(
    "Weights and theory by the number of FAIRBAT flows, gamma = 1; in brackets what tau-TCP can "
    "reach",
    ("", "k", *(c for n in FLOWS for c in (f"l = {n}", "theory"))),
    _weights,
)
HARM = Table(
    "Completion times of short flows over those without the background (with the k TCP flows), "
    "mean and 95th percentile, and Mbit/s of the background; strict priority would leave it "
    "nothing here, since TCP takes all",
    ("k", "l", *ALPHA, *TAU, REFERENCE),
    _harm,
)
PHASES = Table(
    "yi/y0 of fixed weights beside as much TCP, by queue and by how all send",
    ("", "queue", *(f"k = l = {n}, w = {w:g}" for n in PHASE_FLOWS for w in PHASE_WEIGHTS)),
    _phases,
)
FIXED = Table(
    "Fixed weights beside one TCP flow, l = 10",
    ("", "weight set", "yi/y0", "share of the spare", "delay of a short flow, s"),
    _fixed,
)
