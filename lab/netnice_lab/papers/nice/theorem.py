# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Section 3 and appendix A of TCP Nice: Theorem 1 and its lemmas, in the fluid and in packets."""

from __future__ import annotations

import itertools
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, replace
from typing import Any

from ... import fluid
from ...experiment import Context, Procedure, rounded, simulating
from ...fluid import Setting
from .theorem_packets import PIPE, RTT_MS, Nice, Point, losses
from .theorem_points import NAME, SHARE

Json = dict[str, Any]

BUFFERS = (5, 10, 20, 40)
"""B in packets, all below mu tau: a loss then empties the queue, which the paper presumes."""
RENO = (1, 2, 4, 8, 16, 32)
"""m."""
NICE = (4, 16, 64)
"""l."""
MANY = 4096
"""As many Nice flows as stand for any number of them."""
TRIGGERS = (1.0, 2.0, 4.0, 8.0, 16.0)
"""q_t in packets, with the m, l and B of TRIGGERED."""
TRIGGERED = (1, 4, 40)
FINER = (1, 2, 4)
"""How many times as many packets everything has, in the proportions of FINE (m, l, B)."""
FINE = (1, 16, 10)
COURSES = ((4, 2, 20), (1, 16, 20))
"""m, l and B of the periods drawn: both of the paper's cases."""


def setting(reno: int, nice: int, buffer: float, trigger: float | None = None) -> Setting:
    """Return the fluid model's setting for these flows; q_t is SHARE of the queue by default."""
    queue = SHARE * buffer if trigger is None else trigger
    return Setting(reno, nice, buffer, PIPE, queue, tau=RTT_MS / 1000)


def measure(context: Context) -> list[Json]:
    """Compute and simulate everything that the claims and the figures need.

    `part` tells the document's points apart: `grid`, measured in packets, `trigger`, where only q_t
    changes, and `finer` packets, each with what the `model` says of it; `fluid`, the model over the
    grid, and with `many` Nice flows; and the `course` of a period.
    """
    grid = [setting(m, n, b) for b, m, n in itertools.product(BUFFERS, RENO, NICE)]
    many = [replace(s, nice=MANY) for s in grid if s.nice == NICE[-1]]
    m, n, b = TRIGGERED
    places = [("trigger", Point(m, b, tuple(Nice(n, q) for q in TRIGGERS)))]
    m, n, b = FINE
    places += [
        ("finer", Point(m * k, b * k, (Nice(n * k, SHARE * b * k),), PIPE * k)) for k in FINER
    ]
    places += [("grid", Point(m, b, _variants(b))) for b, m in itertools.product(BUFFERS, RENO)]
    pairs = [(part, p, v) for part, p in places for v in p.variants]
    settings = list(filter(None, dict.fromkeys(_modelled(p, v) for _, p, v in pairs)))
    with ProcessPoolExecutor(context.jobs) as pool:
        models = dict(zip(settings, pool.map(_model, settings, chunksize=4), strict=True))
        beyond = list(pool.map(fluid.check, many, chunksize=4))
    entries = losses([p for _, p in places], context)
    for entry, (part, place, variant) in zip(entries, pairs, strict=True):
        drawn = _modelled(place, variant)
        entry["part"] = part
        entry["model"] = models[drawn] if drawn is not None else None
    entries += [{"part": "fluid", **models[s]} for s in grid]
    entries += [{"part": "many", **entry} for entry in beyond]
    entries += [{"part": "course", **course(setting(*c))} for c in COURSES]
    found: list[Json] = rounded(entries)
    return found


def _model(of: Setting) -> Json:
    """Return what the fluid model and the bounds say, for the theorem and for paced windows."""
    return fluid.check(of) | {"interference_paced": fluid.interference(replace(of, paced=True))}


def _modelled(point: Point, variant: Nice) -> Setting | None:
    """Return the fluid model's setting: it does not change when k smaller packets stand for each.

    None where Nice tolerates the whole queue, and so never yields.
    """
    if variant.trigger >= point.buffer:
        return None
    k = point.pipe // PIPE
    return setting(point.reno // k, variant.flows // k, point.buffer / k, variant.trigger / k)


def course(drawn: Setting) -> Json:
    """Return a period of the fluid model for the figure, and the same flows without Nice."""
    settled = fluid.steady(drawn)
    step = drawn.tau / 10
    with_nice = fluid.period(drawn, settled.reno_start, settled.nice_start, step)
    alone = fluid.period(drawn.without_nice(), drawn.gamma * drawn.full, 0, step)
    return {
        "setting": asdict(drawn),
        "intervals": with_nice.intervals,
        "points": with_nice.course.tolist(),
        "alone": alone.course[:, :2].tolist(),
    }


def _variants(buffer: int) -> tuple[Nice, ...]:
    """Return the Nice flows beside the Reno flows of one point of the grid.

    First what the theorem speaks of. Then one thing changed at a time: flows that start late; the
    threshold as the prototype has it, a share of maxRTT - minRTT >= minRTT; milder rules.
    """
    most = NICE[-1]
    return (
        *(Nice(n, SHARE * buffer) for n in NICE),
        Nice(most, SHARE * buffer, late=True),
        Nice(most, SHARE * buffer, mild=True),
        Nice(16, SHARE * (PIPE + 1)),
    )


PREAMBLE = f"""\
**Analysis** (A1 to A10). The fluid model of section 3 was integrated for mu tau = {PIPE} packets,
B = 5 to 40, m = 1 to 32, l = 4 to 64, gamma = 1/2 and q_t = {SHARE} B. The same was simulated as
TCP, with packets of 1024 bytes and {RTT_MS:g} ms. A loss is what Reno's goodput loses against the
same flows without Nice. The bound is (5) with delta from (4)."""


EXPERIMENT = Procedure(NAME, measure, depends=simulating("nice", "reno"))
