# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""What the report of TCP Nice claims in section 3 and appendix A, and what was found.

Every number is of the document that `theorem.measure` returned. A cause stands beside the numbers
of the experiment that shows it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from ...claims.claim import Judgement as Claim
from ...claims.legacy import judge

Json = dict[str, Any]

SHARE = 0.2
"""q_t as a share of the queue: the prototype's threshold (section 2.3)."""


def plain(document: Json) -> list[Json]:
    """Return the points of the grid that are as the theorem has it, q_t a share of the buffer."""
    return [p for p in part(document, "grid") if not p["late"] and not p["mild"] and _fits(p)]


def literal(document: Json) -> list[Json]:
    """Return the points of the grid with the prototype's threshold, whatever the buffer."""
    return [p for p in part(document, "grid") if not _fits(p)]


def part(document: Json, name: str) -> list[Json]:
    """Return the points of one part of the document; see `theorem.measure`."""
    return [p for p in document["points"] if p["part"] == name]


def where(rows: Iterable[Json], **wanted: object) -> list[Json]:
    """Return the points, or settings, that have these values."""
    return [row for row in rows if all(_flat(row)[k] == v for k, v in wanted.items())]


def one(rows: Iterable[Json], **wanted: object) -> Json:
    """Return the one point that has these values."""
    (found,) = where(rows, **wanted)
    return found


def share(value: float) -> str:
    """Return a share of the model's in percent, or a small one as a power of ten."""
    return f"{100 * value:.2g} %" if abs(value) >= 1e-5 or value == 0 else f"{value:.0e}"


def lost(value: Json) -> str:
    """Return a measured share in percent, with its interval."""
    low, mean, high = (value[k] for k in ("lo", "mean", "hi"))
    if low is None:
        return f"{100 * mean:.1f} %"
    return f"{100 * mean:.1f} % [{100 * low:.1f}, {100 * high:.1f}]"


def least(value: Json) -> float:
    """Return the lower end of an interval, or the mean where there is none."""
    return float(value["mean"] if value["lo"] is None else value["lo"])


def _fits(p: Json) -> bool:
    return math.isclose(p["trigger"], SHARE * p["buffer"])


def _flat(row: Json) -> Json:
    setting: Json = row.get("setting", row)
    return setting


def _place(row: Json) -> str:
    s = _flat(row)
    return f"m = {s['reno']}, l = {s['nice']}, B = {s['buffer']:g}"


def a1(document: Json) -> Claim:
    """Theorem 1 in its own model."""
    model = part(document, "fluid")
    above = [c for c in model if c["interference"] > c["bound"]]
    slides = [c for c in model if c["interference"] > c["bound_slides"]]
    longer = [c for c in above if not c["lemma_3"]["holds"]]
    repaired = [c for c in model if c["interference"] <= c["bound_repaired"]]
    worst = max(model, key=lambda c: float(c["interference"] / c["bound"]))
    return judge(
        "A1",
        "Theorem 1: in the fluid model Reno's loss of throughput I is within the bound",
        paper="I <= 2 delta/((mu tau + B)(1 - gamma²)), delta by (4)",
        ours=f"within it in {len(model) - len(above)} of {len(model)} settings; {_place(worst)}: "
        f"I = {share(worst['interference'])}, bound {share(worst['bound'])}. The slides' bound, "
        "4 m e^(-B (1 - t) gamma/m)/((mu tau + B) gamma), 2.47 times this one, is exceeded in "
        f"{len(slides)}",
        first=None,
        holds=not above,
        cause=f"The proof needs Lemma 3 (A5), which is false in {len(longer)} of these "
        f"{len(above)}: Nice gives way under a queue, so that Reno's windows grow over longer "
        "round trips than alone. I <= 2 delta/(mu tau + B) + (T - T')/T', with T - T' bounded by "
        "the queue q_t under which Nice gives way, does without the lemma and holds in "
        f"{len(repaired)} of {len(model)}; it does not fall exponentially.",
    )


def a2(document: Json) -> Claim:
    """Equation (4), and the form that appendix A derives."""
    model = part(document, "fluid")
    above = [c for c in model if c["delta"] > c["delta_4"]]
    appendix = [c for c in model if c["delta"] > c["delta_appendix"] * (1 + 1e-4)]
    exact = [c for c in model if c["delta"] <= c["delta_exact"] * (1 + 1e-4)]
    return judge(
        "A2",
        "What Nice has outstanding when packets are lost, delta, is bounded by (4), which is the "
        "form of appendix A for gamma = 1/2",
        paper="delta <= (m/gamma) e^(-(1 + (B - q_t)/m) gamma), and 2m e^(-(1 + (B - q_t)/2m))",
        ours=f"(4) holds in {len(model) - len(above)} of {len(model)} settings of the fluid model, "
        f"the appendix's form in {len(model) - len(appendix)}, and they are e^(1/2) = 1.65 times "
        "apart",
        first=None,
        holds=not above and not appendix,
        cause="(4) multiplies the 1 in the exponent by gamma as well, the appendix does not. The "
        "appendix ends the integral of (6) at W_r = mu tau + B, not mu tau + B - delta; the exact "
        f"solution, by Lambert's W, bounds delta in {len(exact)} of {len(model)}. The factor of "
        "(4) makes up for that slip unless (B - q_t)/m < 0.39.",
    )


def a3(document: Json) -> Claim:
    """Lemma 1."""
    found = [c["lemma_1"] for c in part(document, "fluid")]
    apart = max(f["differs"] for f in found)
    return judge(
        "A3",
        "Lemma 1: the windows at the beginning of periods settle after several losses, and every "
        "period thereafter lasts T",
        paper="proved",
        ours=f"all {len(found)} settings settle, within "
        f"{max(f['periods'] for f in found)} periods; T from two different starts differs by "
        f"{apart:.0e} at most",
        first=None,
        holds=apart < 1e-5,
        cause="",
    )


def a4(document: Json) -> Claim:
    """Lemma 2."""
    apart = max(c["lemma_2"]["differs"] for c in part(document, "fluid"))
    return judge(
        "A4",
        "Lemma 2: what Reno sends in a period depends on its first and last window only",
        paper="(W_r(t₀ + T)² - W_r(t₀)²)/2m",
        ours=f"what was integrated differs from that by {apart:.0e} at most",
        first=None,
        holds=apart < 1e-5,
        cause="",
    )


def a5(document: Json) -> Claim:
    """Lemma 3."""
    model = part(document, "fluid")
    false = [c for c in model if not c["lemma_3"]["holds"]]
    worst = max(model, key=lambda c: float(c["lemma_3"]["longer"]))
    apart = max(c["lemma_3"]["differs"] for c in model)
    return judge(
        "A5",
        "Lemma 3: with Nice a period is shorter than Reno's own",
        paper="T < T'",
        ours=f"T < T' in {len(model) - len(false)} of {len(model)} settings; {_place(worst)}: T is "
        f"longer by {share(worst['lemma_3']['longer'])}",
        first=None,
        holds=not false,
        cause="The proof takes dW_r/dW < 1 throughout a period, but it is above 1 whenever W_n "
        "falls. m (T - T') is -(the integral of the queueing delay over dW_n) - tau (1 - gamma) "
        f"delta: this gives every T/T' to {apart:.0e}, and is positive unless delta is large.",
    )


def a6(document: Json) -> Claim:
    """Theorem 1 in packets."""
    grid, finer = plain(document), part(document, "finer")
    above = [p for p in grid if least(p["loss"]) > p["model"]["bound"]]
    beyond = [p for p in above if least(p["loss"]) > p["model"]["bound_repaired"]]
    rest = [p for p in beyond if least(p["loss"]) > p["model"]["interference_paced"]]
    worst = max(grid, key=lambda p: least(p["loss"]))
    return judge(
        "A6",
        "Theorem 1 in packets: what Reno loses to Nice in the simulator is within the bound",
        paper="I <= bound",
        ours=f"up to {lost(worst['loss'])} ({_place(worst)}; bound "
        f"{share(worst['model']['bound'])}); above the bound, with its whole interval, in "
        f"{len(above)} of {len(grid)} settings",
        first=worst["loss"],
        holds=not above,
        cause=f"Of these {len(above)}, {len(above) - len(beyond)} are within the bound that does "
        f"without Lemma 3 (A1). Of the others {len(beyond) - len(rest)} are within the loss of the "
        "model whose windows below two packets hear of the queue as seldom as they do (A7). The "
        f"last {len(rest)} have few Reno flows, m <= {max((p['reno'] for p in rest), default=0)}, "
        f"and packets too coarse for a fluid: with {finer[-1]['pipe']} packets "
        f"in the pipe instead of {finer[0]['pipe']}, and everything else in proportion, the loss "
        f"of {_place(finer[0])} goes from {lost(finer[0]['loss'])} to {lost(finer[-1]['loss'])}; "
        "the model's does not change.",
    )


def a7(document: Json) -> Claim:
    """No l in the bound, which appendix A says of m << l too."""
    grid = plain(document)
    grown = max(
        many["interference"]
        / one(
            part(document, "fluid"), nice=64, reno=many["setting"]["reno"],
            buffer=many["setting"]["buffer"],
        )["interference"]
        for many in part(document, "many")
    )  # fmt: skip
    few, many = (one(grid, reno=1, buffer=40, nice=n) for n in (4, 64))
    mild = one(part(document, "grid"), mild=True, reno=1, buffer=40, nice=64)
    paced = [share(p["model"]["interference_paced"]) for p in (few, many)]
    fluid = [share(p["model"]["interference"]) for p in (few, many)]
    return judge(
        "A7",
        "Interference is bounded irrespective of the number of Nice flows, also for m << l",
        paper="no l in (4) and (5)",
        ours=f"in packets {lost(few['loss'])} with 4 flows, {lost(many['loss'])} with 64 (m = 1, "
        f"B = 40). In the fluid model 4096 flows interfere at most {grown:.2f} times as much as 64",
        first=few["loss"],
        holds=least(many["loss"]) <= few["loss"]["mean"],
        cause="The proof lets every window be halved each round trip. A window w < 2 hears of the "
        "queue once in 2/w round trips (2.3) and is never below 1/48, so that W_n falls as 1/t and "
        f"not exponentially. With this the fluid model goes from {paced[0]} to {paced[1]}, a part "
        f"of the rise, and without it from {fluid[0]} to {fluid[1]}. A harder cut below two "
        f"packets and growth after quiet rounds only (`shrink`, `quiet`) give "
        f"{lost(mild['loss'])} with 64 flows.",
    )


def a8(document: Json) -> Claim:
    """Dependence on the buffer."""
    rows = sorted(where(plain(document), reno=1, nice=4), key=lambda p: int(p["buffer"]))
    largest = rows[-1]
    low, high = (part(document, "trigger")[i] for i in (0, -1))
    return judge(
        "A8",
        "Interference falls exponentially with the buffer, as the bound does",
        paper="bound for m = 1, B = "
        + ", ".join(f"{p['buffer']}: {share(p['model']['bound'])}" for p in rows),
        ours="in packets, l = 4: " + ", ".join(lost(p["loss"]) for p in rows),
        first=rows[0]["loss"],
        holds=least(largest["loss"]) <= largest["model"]["bound"],
        cause="The loss goes with the queue q_t that Nice tolerates, which is a share of the "
        f"buffer: with q_t from {low['trigger']:g} to {high['trigger']:g} of {low['buffer']} "
        f"packets, and nothing else changed, from {lost(low['loss'])} to {lost(high['loss'])} "
        f"(fluid model: {share(low['model']['interference'])} to "
        f"{share(high['model']['interference'])}), where the bound is "
        f"{share(high['model']['bound'])} at most.",
    )


def a9(document: Json) -> Claim:
    """Where the paper expects its bound to break."""
    points = sorted(where(plain(document), buffer=5, nice=16), key=lambda p: int(p["reno"]))
    first, last = points[0], points[-1]
    return judge(
        "A9",
        "Non-interference begins to break down as the Reno flows approach the size of the queue",
        paper="(B - q_t)/m in (4)",
        ours=f"in packets, B = 5, l = 16: {lost(first['loss'])} with m = {first['reno']}, "
        f"{lost(last['loss'])} with m = {last['reno']}. In the fluid model "
        f"{share(first['model']['interference'])} and {share(last['model']['interference'])}",
        first=first["loss"],
        holds=least(last["loss"]) > first["loss"]["mean"],
        cause="In the model all flows lose packets at the same instant, and the link then has room "
        f"for Nice: Reno alone leaves {share(last['model']['idle_alone'])} of it idle whatever m "
        f"is. In packets they do so one after the other: {share(1 - first['alone']['mean'])} is "
        f"idle with m = {first['reno']}, {share(1 - last['alone']['mean'])} with "
        f"m = {last['reno']}, and beside so many Nice gets "
        f"{share(last['nice_share']['mean'])} of the link.",
    )


def a10(document: Json) -> Claim:
    """Queues that the analysis presumes to be detected."""
    grid = plain(document)
    first = one(grid, reno=32, buffer=40, nice=64)
    late = one(part(document, "grid"), late=True, reno=32, buffer=40, nice=64)
    known = one(grid, reno=4, buffer=10, nice=16)
    found = one(literal(document), reno=4, buffer=10)
    return judge(
        "A10",
        "What matters is that Nice detects queues above q_t",
        paper="presumed by the analysis",
        ours=f"{lost(first['loss'])} if each Nice flow has seen the empty link, "
        f"{lost(late['loss'])} if it starts beside Reno and takes a queue for minRTT (m = 32, "
        f"B = 40, l = 64). {lost(known['loss'])} with q_t = B/5, {lost(found['loss'])} with "
        "0.2 (maxRTT - minRTT) as in the prototype: maxRTT starts at 2 minRTT, q_t is then a fifth "
        "of mu tau and larger than the queue, and Nice never yields (m = 4, B = 10, l = 16)",
        first=first["loss"],
        holds=least(late["loss"]) > first["loss"]["mean"]
        and least(found["loss"]) > known["loss"]["mean"],
        cause="Undetected queues made no difference.",
    )
