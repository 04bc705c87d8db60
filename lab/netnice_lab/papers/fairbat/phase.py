# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Claims F4a to F4d on FAIRBAT: who gets more than its weight on drop-tail (section III.A)."""

from __future__ import annotations

from ...claims.claim import Found, Json, Measured, claim, found, times
from . import kernel_link
from .experiments import (
    OTHER_LINKS,
    OVERHEADS_MS,
    PACED,
    PHASE_FLOWS,
    PHASE_WEIGHTS,
    WAITS,
    fixed,
)
from .figures import FIGURES
from .ratios import phase_ratio, weight
from .tables import PHASES

DROP_TAIL = ("drop-tail", "alpha")
"""Where the paper expects the effect: queue, and how FAIRBAT sends."""


def _ratios(measured: Measured, queue: str, mode: str) -> dict[tuple[int, float], Json]:
    return {
        (n, w): phase_ratio(measured, queue, n, mode, w) for n in PHASE_FLOWS for w in PHASE_WEIGHTS
    }


def _most(measured: Measured, queue: str, mode: str) -> tuple[int, float, Json]:
    """Return k = l, the weight and yi/y0 where a flow gets the most over its weight."""
    ratios = _ratios(measured, queue, mode)
    (n, w), most = max(ratios.items(), key=lambda item: item[1]["mean"] / item[0][1])
    return n, w, most


def _beats(measured: Measured, queue: str, mode: str) -> bool:
    return any(v["mean"] > 1 for v in _ratios(measured, queue, mode).values())


def _and(values: list[float]) -> str:
    return " and ".join(f"{v:g}" for v in values)


@claim(
    "F4a",
    needs=("phase",),
    text="With a weight below 1 alpha-TCP can get more than TCP on drop-tail (figure 2); on RED it "
    "does not, and tau-TCP does on neither",
    paper="> 1 on drop-tail alone",
    ours="yi/y0, where it is the most over the weight: {most} for w = {w:g} (alpha-TCP, drop-tail, "
    "k = l = {n}); {others}",
    cause="More than TCP got: {beaten}.",
    drawings=(FIGURES["2"],),
    tables=(PHASES,),
)
def more_than_tcp_on_drop_tail(measured: Measured) -> Found:
    """Figure 2: "may get more" taken as anywhere on the grid."""
    where = [(queue, mode) for queue in ("drop-tail", "RED") for mode in ("alpha", "tau")]
    beaten = [pair for pair in where if _beats(measured, *pair)]
    by_place = {pair: _most(measured, *pair) for pair in where}
    n, w, most = by_place.pop(DROP_TAIL)
    return found(
        beaten == [DROP_TAIL], most, most=most, w=w, n=n,
        others="; ".join(
            f"{mode}-TCP, {queue} {times(v)} for w = {x:g} (k = l = {m})"
            for (queue, mode), (m, x, v) in by_place.items()
        ),
        beaten=", ".join(f"{mode}-TCP on {queue}" for queue, mode in beaten) or "nobody",
    )  # fmt: skip


@claim(
    "F4b",
    needs=("phase", "waits"),
    text="Nor do random spaces between packets end the effect: alpha-TCP gets more than TCP on "
    "drop-tail then too, with spaces of tens of milliseconds",
    paper="> 1",
    ours="{plain} for w = {w:g} without (k = l = {n}), where it is the most over the weight; "
    "{by_queue}",
    cause="alpha-TCP got more than TCP {beaten}. The waits are those of ns-2 (`overhead_ms`): "
    "before something new is sent the sender waits, for a time that is uniform up to the one "
    "given; then all that the window allows leaves. A packet has 0.57 ms of the link. Where "
    "packets that arrive in turn are dropped in turn, a flow's extra packet in a round trip is "
    "the one that finds the queue full, and a window that grows more slowly has fewer of them. "
    "After waits of many times that all packets are alike, as on RED, and alpha-TCP gets about "
    "its weight. The paper does not give its link, flows or parameter. With RTTs of {rtts} ms "
    "and queues of {queues} packets, waits to {waits} ms left {elsewhere[0]:.2f} to "
    "{elsewhere[1]:.2f} for w = {least:g} (k = l = {flows[0]} and {flows[1]}). Paced over the "
    "RTT (k = l = {flows[1]}) it gets {paced}: less than TCP (F4d has it on the kernel).",
)
def random_spaces_end_it_not(measured: Measured) -> Found:
    """Section III.A: random spaces do not end the effect; pacing is not the paper's."""
    by_queue = {queue: _most(measured, queue, "alpha") for queue in (*WAITS, PACED)}
    n, w, plain = _most(measured, *DROP_TAIL)
    beaten = [queue for queue in WAITS if _beats(measured, queue, "alpha")]
    waits, least = measured["waits"], PHASE_WEIGHTS[0]
    elsewhere = [
        weight(waits, fixed("alpha", least), p["at"]["flows"], p["at"]["flows"], **p["at"])["mean"]
        for p in waits.document["points"]
    ]
    paced = {w: phase_ratio(measured, PACED, PHASE_FLOWS[-1], "alpha", w) for w in PHASE_WEIGHTS}

    def short(queue: str) -> str:
        return queue.removeprefix("drop-tail, ")

    return found(
        WAITS[-1] in beaten,
        by_queue[WAITS[-1]][2],
        plain=plain,
        w=w,
        n=n,
        by_queue="; ".join(
            f"{short(queue)} {times(v)} for w = {x:g} (k = l = {m})"
            for queue, (m, x, v) in by_queue.items()
        ),
        beaten=f"with {' and '.join(map(short, beaten))} only" if beaten else "with none of them",
        rtts=_and(sorted({rtt for rtt, _ in OTHER_LINKS})),
        queues=_and(sorted({packets for _, packets in OTHER_LINKS})),
        waits=_and(list(OVERHEADS_MS[1:])),
        elsewhere=(min(elsewhere), max(elsewhere)),
        least=least,
        flows=(PHASE_FLOWS[0], PHASE_FLOWS[-1]),
        paced=", ".join(f"{times(v)} for w = {w:g}" for w, v in paced.items()),
    )


def _on_both(measured: Measured, name: str, acks: str) -> dict[tuple[str, float], Json]:
    """Return yi/y0 by engine and weight."""
    n = kernel_link.PHASE_FLOWS
    return {
        (engine, w): weight(
            measured[name], fixed("alpha", w), n, n, engine=engine, acks=acks
        )
        for engine in kernel_link.ENGINES
        for w in kernel_link.WEIGHTS
    }  # fmt: skip


def _told(ratios: dict[tuple[str, float], Json], engine: str) -> str:
    return ", ".join(
        f"{times(ratios[engine, w])} for w = {w:g}" for w in kernel_link.WEIGHTS
    )  # fmt: skip


@claim(
    "F4c",
    needs=(kernel_link.PHASE,),
    text="The effect is not the simulator's: on the Linux kernel too alpha-TCP gets more than TCP "
    f"on drop-tail (k = l = {kernel_link.PHASE_FLOWS}), if every packet is acknowledged at once, "
    "as in ns-2",
    paper="> 1",
    ours="{each}",
)
def more_than_tcp_on_the_kernel(measured: Measured) -> Found:
    """Section III.A, of real hosts: the effect is no artefact of a simulator."""
    by_acks = {acks: _on_both(measured, kernel_link.PHASE, acks) for acks in kernel_link.ACKS}
    kernel = [by_acks["at once"]["kernel", w] for w in kernel_link.WEIGHTS]
    return found(
        any(v["mean"] > 1 for v in kernel), kernel[0],
        each="; ".join(
            f"{engine}, ACKs {acks} {_told(ratios, engine)}"
            for engine in kernel_link.ENGINES
            for acks, ratios in by_acks.items()
        ),
    )  # fmt: skip


@claim(
    "F4d",
    needs=(kernel_link.PACED,),
    text="On the Linux kernel too the effect does not survive paced senders (fq): alpha-TCP gets "
    f"more than its weight but less than TCP (drop-tail, k = l = {kernel_link.PHASE_FLOWS}, ACKs "
    "at once as in F4c)",
    paper="not examined",
    ours="{each}",
)
def pacing_ends_it_on_the_kernel(measured: Measured) -> Found:
    """Not the paper's: what F4b finds of pacing, on real hosts."""
    ratios = _on_both(measured, kernel_link.PACED, "at once")
    return found(
        all(w < v["mean"] < 1 for (_, w), v in ratios.items()),
        ratios["kernel", kernel_link.WEIGHTS[0]],
        each="; ".join(f"{engine} {_told(ratios, engine)}" for engine in kernel_link.ENGINES),
    )
