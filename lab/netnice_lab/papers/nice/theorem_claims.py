# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""What the report of TCP Nice claims in section 3 and appendix A, and what was found.

Every number is of the document that `theorem.measure` returned. A cause stands beside the numbers
of the experiment that shows it.
"""

from __future__ import annotations

from functools import partial

from ...claims.claim import Drawing, Found, Json, Measured, Table, claim, found
from . import theorem_figures as figures
from . import theorem_tables as tables
from .theorem_points import NAME, least, literal, lost, one, part, place, plain, share, where

theorem_claim = partial(claim, needs=(NAME,))


def _document(measured: Measured) -> Json:
    return measured[NAME].document


@theorem_claim(
    "A1",
    text="Theorem 1: in the fluid model Reno's loss of throughput I is within the bound",
    paper="I <= 2 delta/((mu tau + B)(1 - gamma²)), delta by (4)",
    ours="within it in {within} of {settings} settings; {worst}: I = {loss}, bound {bound}. The "
    "slides' bound, 4 m e^(-B (1 - t) gamma/m)/((mu tau + B) gamma), 2.47 times this one, is "
    "exceeded in {above_slides}",
    cause="The proof needs Lemma 3 (A5), which is false in {longer} of these {above}: Nice gives "
    "way under a queue, so that Reno's windows grow over longer round trips than alone. "
    "I <= 2 delta/(mu tau + B) + (T - T')/T', with T - T' bounded by the queue q_t under which "
    "Nice gives way, does without the lemma and holds in {repaired} of {settings}; it does not "
    "fall exponentially.",
    drawings=(
        Drawing(
            "theorem-loss",
            "Bound, fluid model and packets over B/m. Arrows: the interval reaches below no loss. "
            "Dotted: the fluid model in which a window w < 2 hears of the queue once in 2/w round "
            "trips and is 1/48 or more (2.3)",
            lambda measured: figures.loss(_document(measured)),
        ),
    ),
)
def theorem_1_in_its_model(measured: Measured) -> Found:
    """Theorem 1 in its own model."""
    model = part(_document(measured), "fluid")
    above = [c for c in model if c["interference"] > c["bound"]]
    worst = max(model, key=lambda c: float(c["interference"] / c["bound"]))
    return found(
        not above,
        settings=len(model),
        within=len(model) - len(above),
        above=len(above),
        worst=place(worst),
        loss=share(worst["interference"]),
        bound=share(worst["bound"]),
        above_slides=sum(c["interference"] > c["bound_slides"] for c in model),
        longer=sum(not c["lemma_3"]["holds"] for c in above),
        repaired=sum(c["interference"] <= c["bound_repaired"] for c in model),
    )


@theorem_claim(
    "A2",
    text="What Nice has outstanding when packets are lost, delta, is bounded by (4), which is the "
    "form of appendix A for gamma = 1/2",
    paper="delta <= (m/gamma) e^(-(1 + (B - q_t)/m) gamma), and 2m e^(-(1 + (B - q_t)/2m))",
    ours="(4) holds in {within} of {settings} settings of the fluid model, the appendix's form in "
    "{appendix}, and they are e^(1/2) = 1.65 times apart",
    cause="(4) multiplies the 1 in the exponent by gamma as well, the appendix does not. The "
    "appendix ends the integral of (6) at W_r = mu tau + B, not mu tau + B - delta; the exact "
    "solution, by Lambert's W, bounds delta in {exact} of {settings}. The factor of (4) makes up "
    "for that slip unless (B - q_t)/m < 0.39.",
)
def what_nice_has_outstanding(measured: Measured) -> Found:
    """Equation (4), and the form that appendix A derives."""
    model = part(_document(measured), "fluid")
    within = sum(c["delta"] <= c["delta_4"] for c in model)
    appendix = sum(c["delta"] <= c["delta_appendix"] * (1 + 1e-4) for c in model)
    return found(
        within == appendix == len(model), settings=len(model), within=within, appendix=appendix,
        exact=sum(c["delta"] <= c["delta_exact"] * (1 + 1e-4) for c in model),
    )  # fmt: skip


@theorem_claim(
    "A3",
    text="Lemma 1: the windows at the beginning of periods settle after several losses, and every "
    "period thereafter lasts T",
    paper="proved",
    ours="all {settings} settings settle, within {periods} periods; T from two different starts "
    "differs by {apart:.0e} at most",
    cause="",
)
def periods_settle(measured: Measured) -> Found:
    """Lemma 1."""
    lemma = [c["lemma_1"] for c in part(_document(measured), "fluid")]
    apart = max(f["differs"] for f in lemma)
    return found(
        apart < 1e-5, settings=len(lemma), periods=max(f["periods"] for f in lemma), apart=apart
    )


@theorem_claim(
    "A4",
    text="Lemma 2: what Reno sends in a period depends on its first and last window only",
    paper="(W_r(t₀ + T)² - W_r(t₀)²)/2m",
    ours="what was integrated differs from that by {apart:.0e} at most",
    cause="",
)
def what_reno_sends_in_a_period(measured: Measured) -> Found:
    """Lemma 2."""
    apart = max(c["lemma_2"]["differs"] for c in part(_document(measured), "fluid"))
    return found(apart < 1e-5, apart=apart)


@theorem_claim(
    "A5",
    text="Lemma 3: with Nice a period is shorter than Reno's own",
    paper="T < T'",
    ours="T < T' in {within} of {settings} settings; {worst}: T is longer by {longer}",
    cause="The proof takes dW_r/dW < 1 throughout a period, but it is above 1 whenever W_n falls. "
    "m (T - T') is -(the integral of the queueing delay over dW_n) - tau (1 - gamma) delta: this "
    "gives every T/T' to {apart:.0e}, and is positive unless delta is large.",
    drawings=(
        Drawing(
            "theorem-windows",
            "A period of the fluid model. Nice fills the pipe after a loss and gives way under a "
            "queue, where Reno grows by a packet in a longer round trip than alone",
            lambda measured: figures.windows(_document(measured)),
        ),
    ),
)
def periods_are_shorter(measured: Measured) -> Found:
    """Lemma 3."""
    model = part(_document(measured), "fluid")
    within = sum(c["lemma_3"]["holds"] for c in model)
    worst = max(model, key=lambda c: float(c["lemma_3"]["longer"]))
    return found(
        within == len(model), settings=len(model), within=within, worst=place(worst),
        longer=share(worst["lemma_3"]["longer"]),
        apart=max(c["lemma_3"]["differs"] for c in model),
    )  # fmt: skip


@theorem_claim(
    "A6",
    text="Theorem 1 in packets: what Reno loses to Nice in the simulator is within the bound",
    paper="I <= bound",
    ours="up to {loss} ({worst}; bound {bound}); above the bound, with its whole interval, in "
    "{above} of {settings} settings",
    cause="Of these {above}, {repaired} are within the bound that does without Lemma 3 (A1). Of "
    "the others {paced} are within the loss of the model whose windows below two packets hear of "
    "the queue as seldom as they do (A7). The last {rest} have few Reno flows, m <= {most_reno}, "
    "and packets too coarse for a fluid: with {fine_pipe} packets in the pipe instead of {pipe}, "
    "and everything else in proportion, the loss of {coarse} goes from {coarse_loss} to "
    "{fine_loss}; the model's does not change.",
    drawings=(
        Drawing(
            "theorem-breaks",
            "Loss over the bound: above the line it is broken",
            lambda measured: figures.breaks(_document(measured)),
        ),
    ),
    tables=(
        Table(
            tables.FINER_CAPTION,
            tables.FINER_COLUMNS,
            lambda measured: tables.finer(_document(measured)),
        ),
    ),
)
def theorem_1_in_packets(measured: Measured) -> Found:
    """Theorem 1 in packets."""
    document = _document(measured)
    grid, finer = plain(document), part(document, "finer")
    above = [p for p in grid if least(p["loss"]) > p["model"]["bound"]]
    beyond = [p for p in above if least(p["loss"]) > p["model"]["bound_repaired"]]
    rest = [p for p in beyond if least(p["loss"]) > p["model"]["interference_paced"]]
    worst = max(grid, key=lambda p: least(p["loss"]))
    return found(
        not above,
        worst["loss"],
        loss=lost(worst["loss"]),
        worst=place(worst),
        bound=share(worst["model"]["bound"]),
        above=len(above),
        settings=len(grid),
        repaired=len(above) - len(beyond),
        paced=len(beyond) - len(rest),
        rest=len(rest),
        most_reno=max((p["reno"] for p in rest), default=0),
        pipe=finer[0]["pipe"],
        fine_pipe=finer[-1]["pipe"],
        coarse=place(finer[0]),
        coarse_loss=lost(finer[0]["loss"]),
        fine_loss=lost(finer[-1]["loss"]),
    )


@theorem_claim(
    "A7",
    text="Interference is bounded irrespective of the number of Nice flows, also for m << l",
    paper="no l in (4) and (5)",
    ours="in packets {few} with 4 flows, {many} with 64 (m = 1, B = 40). In the fluid model 4096 "
    "flows interfere at most {grown:.2f} times as much as 64",
    cause="The proof lets every window be halved each round trip. A window w < 2 hears of the "
    "queue once in 2/w round trips (2.3) and is never below 1/48, so that W_n falls as 1/t and not "
    "exponentially. With this the fluid model goes from {paced[0]} to {paced[1]}, a part of the "
    "rise, and without it from {fluid[0]} to {fluid[1]}. A harder cut below two packets and growth "
    "after quiet rounds only (`shrink`, `quiet`) give {mild} with 64 flows.",
)
def however_many_nice_flows(measured: Measured) -> Found:
    """No l in the bound, which appendix A says of m << l too."""
    document = _document(measured)
    few, many = (one(plain(document), reno=1, buffer=40, nice=n) for n in (4, 64))
    mild = one(part(document, "grid"), mild=True, reno=1, buffer=40, nice=64)

    def as_64(of_many: Json) -> Json:
        setting = of_many["setting"]
        return one(part(document, "fluid"), nice=64, reno=setting["reno"], buffer=setting["buffer"])

    return found(
        least(many["loss"]) <= few["loss"]["mean"],
        few["loss"],
        few=lost(few["loss"]),
        many=lost(many["loss"]),
        grown=max(
            p["interference"] / as_64(p)["interference"] for p in part(document, "many")
        ),
        paced=[share(p["model"]["interference_paced"]) for p in (few, many)],
        fluid=[share(p["model"]["interference"]) for p in (few, many)],
        mild=lost(mild["loss"]),
    )  # fmt: skip


@theorem_claim(
    "A8",
    text="Interference falls exponentially with the buffer, as the bound does",
    paper="bound for m = 1, B = {bounds}",
    ours="in packets, l = 4: {losses}",
    cause="The loss goes with the queue q_t that Nice tolerates, which is a share of the buffer: "
    "with q_t from {low[trigger]:g} to {high[trigger]:g} of {low[buffer]} packets, and nothing "
    "else changed, from {low_loss} to {high_loss} (fluid model: {low_model} to {high_model}), "
    "where the bound is {high_bound} at most.",
    drawings=(
        Drawing(
            "theorem-trigger",
            "Loss over the queue that Nice tolerates, q_t",
            lambda measured: figures.trigger(_document(measured)),
        ),
    ),
)
def interference_falls_with_the_buffer(measured: Measured) -> Found:
    """Dependence on the buffer."""
    document = _document(measured)
    rows = sorted(where(plain(document), reno=1, nice=4), key=lambda p: int(p["buffer"]))
    largest = rows[-1]
    low, high = (part(document, "trigger")[i] for i in (0, -1))
    return found(
        least(largest["loss"]) <= largest["model"]["bound"],
        rows[0]["loss"],
        bounds=", ".join(f"{p['buffer']}: {share(p['model']['bound'])}" for p in rows),
        losses=", ".join(lost(p["loss"]) for p in rows),
        low=low,
        high=high,
        low_loss=lost(low["loss"]),
        high_loss=lost(high["loss"]),
        low_model=share(low["model"]["interference"]),
        high_model=share(high["model"]["interference"]),
        high_bound=share(high["model"]["bound"]),
    )


@theorem_claim(
    "A9",
    text="Non-interference begins to break down as the Reno flows approach the size of the queue",
    paper="(B - q_t)/m in (4)",
    ours="in packets, B = 5, l = 16: {few} with m = {few_reno}, {many} with m = {many_reno}. In "
    "the fluid model {few_model} and {many_model}",
    cause="In the model all flows lose packets at the same instant, and the link then has room for "
    "Nice: Reno alone leaves {idle_model} of it idle whatever m is. In packets they do so one "
    "after the other: {few_idle} is idle with m = {few_reno}, {many_idle} with m = {many_reno}, "
    "and beside so many Nice gets {nice} of the link.",
)
def where_it_breaks_down(measured: Measured) -> Found:
    """Where the paper expects its bound to break."""
    grid = plain(_document(measured))
    points = sorted(where(grid, buffer=5, nice=16), key=lambda p: int(p["reno"]))
    few, many = points[0], points[-1]
    return found(
        least(many["loss"]) > few["loss"]["mean"],
        few["loss"],
        few=lost(few["loss"]),
        many=lost(many["loss"]),
        few_reno=few["reno"],
        many_reno=many["reno"],
        few_model=share(few["model"]["interference"]),
        many_model=share(many["model"]["interference"]),
        idle_model=share(many["model"]["idle_alone"]),
        few_idle=share(1 - few["alone"]["mean"]),
        many_idle=share(1 - many["alone"]["mean"]),
        nice=share(many["nice_share"]["mean"]),
    )


@theorem_claim(
    "A10",
    text="What matters is that Nice detects queues above q_t",
    paper="presumed by the analysis",
    ours="{first} if each Nice flow has seen the empty link, {late} if it starts beside Reno and "
    "takes a queue for minRTT (m = 32, B = 40, l = 64). {known} with q_t = B/5, {prototype} with "
    "0.2 (maxRTT - minRTT) as in the prototype: maxRTT starts at 2 minRTT, q_t is then a fifth of "
    "mu tau and larger than the queue, and Nice never yields (m = 4, B = 10, l = 16)",
    cause="Undetected queues made no difference.",
    tables=(
        Table(
            tables.CHANGES_CAPTION,
            tables.CHANGES_COLUMNS,
            lambda measured: tables.changes(_document(measured)),
        ),
    ),
)
def queues_must_be_detected(measured: Measured) -> Found:
    """Queues that the analysis presumes to be detected."""
    document = _document(measured)
    first = one(plain(document), reno=32, buffer=40, nice=64)
    late = one(part(document, "grid"), late=True, reno=32, buffer=40, nice=64)
    known = one(plain(document), reno=4, buffer=10, nice=16)
    prototype = one(literal(document), reno=4, buffer=10)
    return found(
        least(late["loss"]) > first["loss"]["mean"]
        and least(prototype["loss"]) > known["loss"]["mean"],
        first["loss"],
        first=lost(first["loss"]),
        late=lost(late["loss"]),
        known=lost(known["loss"]),
        prototype=lost(prototype["loss"]),
    )
