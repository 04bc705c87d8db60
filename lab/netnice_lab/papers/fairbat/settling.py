# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Claims F7a to F8 on FAIRBAT: whether weights settle, wherefrom, with which gains, and where."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...claims.claim import Found, Json, Measured, claim, found, times
from . import convergence, kernel_link
from .experiments import ALPHA, FAIR, GAINS, GAMMA_FLOWS, SILENCES, SILENT, STARTS, TAU, fixed
from .figures import FIGURES
from .ratios import error, signed, weight

ALIKE = 0.1
"""Relative difference from the default's weight, or from theory, that is none."""
SAME = 0.05
"""Relative difference within which two equilibria are the same."""
KERNEL = 0.2
"""Relative difference from theory that is allowed on the kernel."""


@claim(
    "F7a",
    needs=("starts",),
    text="Weights that start at 0.1 and at 1 end alike (k = l = 10, with short flows; within 5 %)",
    paper="one equilibrium",
    ours="{ends}",
    cause="They differ by up to {worst:.0f} %.",
)
def from_below_and_above(measured: Measured) -> Found:
    """Weights from below and above, with short flows; within 5 %."""
    n = GAMMA_FLOWS
    ends = {
        name: [weight(measured["starts"], name, n, n, start=start) for start in STARTS]
        for name in FAIR
    }
    worst = max(abs(a["mean"] / b["mean"] - 1) for a, b in ends.values())
    return found(
        worst <= SAME, ends[FAIR[0]][0], worst=100 * worst,
        ends="; ".join(f"{name} {times(a, 3)} and {times(b, 3)}" for name, (a, b) in ends.items()),
    )  # fmt: skip


@claim(
    "F7b",
    needs=("gains", "silences"),
    text="The equilibrium does not depend on T, the gains and the periods, which the paper leaves "
    "open (within 10 %)",
    paper="(3)",
    ours="{changes}",
    cause="It does: {beyond}. Periods of 5 to 10 s are too short for this link. III.B asks for "
    "longer ones, because after a silence windows share the link anew within some seconds. With "
    "no short flows a tau-TCP flow of a fixed weight of {silent:g} gets {silences} (k = l = "
    "{n}). No flow that is TCP for half of the time gets more than {most:.2f} there, since it "
    "meets itself while it sends.",
)
def whatever_the_gains(measured: Measured) -> Found:
    """Parameters that the paper does not give; within 10 % of the default's weight."""
    gains, n = measured["gains"], GAMMA_FLOWS
    usual = {name: weight(gains, name, n, n, gains="default") for name in (ALPHA[0], TAU[0])}
    off = {
        f"{name}, {changed}": error(weight(gains, name, n, n, gains=changed), usual[name]["mean"])
        for name in usual
        for changed in GAINS
        if changed != "default" and not (name == ALPHA[0] and changed.startswith("periods"))
    }
    silences = {
        period: weight(measured["silences"], fixed("tau", SILENT), n, n, period=period)
        for period in SILENCES
    }
    beyond = [f"{what}: {signed(v)}" for what, v in off.items() if abs(v) > ALIKE]
    return found(
        not beyond,
        usual[ALPHA[0]],
        changes="; ".join(f"{what} {signed(v)}" for what, v in off.items()),
        beyond="; ".join(beyond),
        silent=SILENT,
        silences=", ".join(
            f"{times(v)} of TCP with d_c = d_r = {period} s" for period, v in silences.items()
        ),
        n=n,
        most=SILENT * (n + SILENT * n) / (n + 1 + SILENT * (n - 1)),
    )


def _missed(points: Sequence[Json], half: int) -> float:
    """Return the greatest difference from theory before or after k doubles."""
    ends = [float((p["before"], p["after"])[half] / p["theory"][half] - 1) for p in points]
    return max(ends, key=abs)


def _where(point: Json) -> str:
    at = point["at"]
    return f"{at['name']}, l = {at['fair']}"


@claim(
    "F7c",
    needs=(convergence.NAME,),
    text="Weights settle from below and above at the same value, follow when k doubles (within 10 "
    "% of theory), and do not oscillate (standard deviation over time below 10 %), with 1 to 100 "
    "flows; and so with other gains",
    paper="converge",
    ours="settled after {settled:.0f} s at the latest ({settled_at}); from both sides within "
    "{apart:.0f} %; standard deviation at most {spread:.0f} % ({spread_at}), of a single flow "
    "{own:.0f} % ({own_at}); at most {before} from theory before k doubles, {after} after; l = "
    "{flows}, {by_gains}",
    cause="Not settled when k doubled: {unsettled}.",
    drawings=(FIGURES["weights"],),
)
def weights_over_time(measured: Measured) -> Found:
    """Weights over time; "no oscillation" taken as a standard deviation below 10 %."""
    every: list[Json] = measured[convergence.NAME].document["points"]
    by_gains: dict[str, list[Json]] = {
        gains: [p for p in every if p["at"]["gains"] == gains]
        for gains in (convergence.DEFAULT, *convergence.CHANGED)
    }
    points = by_gains.pop(convergence.DEFAULT)
    settled = max(points, key=lambda p: float(p["settled_s"]))
    restless, own = (max(points, key=lambda p: float(max(p[key]))) for key in ("spread", "own"))
    both = [
        [p["before"] for p in points
         if (p["at"]["name"], p["at"]["fair"]) == (name, convergence.FROM_BOTH)]
        for name in FAIR
    ]  # fmt: skip
    apart = max(abs(a / b - 1) for a, b in both)
    limit = convergence.CHANGE_S - convergence.SETTLED_S
    unsettled = [
        f"{_where(p)}: {p['before']:.2f} of {p['theory'][0]:.2f}"
        for p in points if p["settled_s"] > limit
    ]  # fmt: skip
    return found(
        not unsettled
        and apart <= SAME
        and all(abs(_missed(of, 1)) <= ALIKE for of in (points, *by_gains.values()))
        and all(max(p["spread"]) <= ALIKE for p in every),
        settled=settled["settled_s"],
        settled_at=_where(settled),
        apart=100 * apart,
        spread=100 * max(restless["spread"]),
        spread_at=_where(restless),
        own=100 * max(own["own"]),
        own_at=_where(own),
        before=signed(_missed(points, 0)),
        after=signed(_missed(points, 1)),
        flows=convergence.FROM_BOTH,
        by_gains="; ".join(
            f"{gains}: {signed(_missed(of, 0))} and {signed(_missed(of, 1))}, standard deviation "
            f"at most {100 * max(max(p['spread']) for p in of):.0f} %, of a single flow "
            f"{100 * max(max(p['own']) for p in of):.0f} %"
            for gains, of in by_gains.items()
        ),
        unsettled=", ".join(unsettled) or "none",
    )


def _by_start(values: Mapping[float, Json]) -> str:
    return " and ".join(times(v, 3) for v in values.values())


@claim(
    "F8",
    needs=(kernel_link.NAME,),
    text="On the Linux kernel, one link with RED, k = l = 3: weights within 20 % of theory, both "
    "algorithms, alpha-TCP and tau-TCP, from " + " and ".join(f"{w:g}" for w in STARTS),
    paper="(3), (4)",
    ours="{each}",
    cause="Beyond 20 %: {beyond}.",
)
def on_the_kernel(measured: Measured) -> Found:
    """On the kernel, from either start; within 20 % of theory."""
    results, n = measured[kernel_link.NAME], kernel_link.FLOWS
    kernel, simulated = (
        {
            name: {w: weight(results, name, n, n, engine=engine, start=w) for w in STARTS}
            for name in FAIR
        }
        for engine in kernel_link.ENGINES
    )
    expected = {name: kernel_link.theory(name) for name in FAIR}
    off = {
        name: max((error(v, expected[name]) for v in of.values()), key=abs)
        for name, of in kernel.items()
    }
    return found(
        all(abs(v) <= KERNEL for v in off.values()),
        kernel[FAIR[0]][STARTS[0]],
        each="; ".join(
            f"{name} {_by_start(of)}, theory {expected[name]:.3f} ({signed(off[name])}), "
            f"simulated {_by_start(simulated[name])}"
            for name, of in kernel.items()
        ),
        beyond=", ".join(name for name, v in off.items() if abs(v) > KERNEL),
    )
