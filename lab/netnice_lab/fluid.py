# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""The fluid model of TCP Nice (section 3 and appendix A of its report), integrated numerically.

`m` Reno and `l` Nice flows share a queue of `B` packets behind a pipe of `mu tau` packets. Packets
are infinitely small, windows are real numbers, and a full queue makes every flow multiply its
window by `gamma` at the same instant. A *period* lasts from one such loss to the next:

    interval        ends when             dW_r/dt    dW_n/dt                             equation
    FILL            W = mu tau            m/tau      l/tau                               (1), (13)
    VEGAS           W = mu tau + q_t      m mu/W     -min(l, m) mu/W                     (2), (14)
    FLOOR           W = mu tau + q_t      m mu/W     0, once W_n = l                     (14)
    BALANCE         W_n = m/cut           m mu/W     -m mu/W                             (3), (15)
    YIELD           W = mu tau + B        m mu/W     -cut W_n mu/W                       (3), (6)
    LEAST           W = mu tau + B        m mu/W     0, once W_n = l/48 (`paced` only)   2.3

W_r and W_n are the packets of all Reno and all Nice flows, W their sum. A window is not below one
in VEGAS (proof of Lemma 1, case m < l of 9.3), and may be in YIELD. In (3) and (15) Nice halves
its windows each round trip, but gives up no more than Reno takes: the `min` of the two rates.

Where the paper's formulas do not follow from its own equations, the functions here say so; `check`
returns the numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import solve_ivp
from scipy.special import lambertw

from . import LabError

Json = dict[str, Any]
Vector = NDArray[np.float64]

PERIODS = 500
"""Periods after which a model that has not settled is given up."""
PACED_PERIODS = 60
"""Periods after which a `paced` one is taken as it is: its windows may shrink as slowly as 1/n."""
LEAST = 1 / 48
"""Least window of a Nice flow, packets (2.3)."""
SETTLED = 1e-8
"""Relative change of a period's windows and duration below which it has settled."""


@dataclass(frozen=True)
class Setting:
    """One link and its flows, in packets and seconds; the paper's symbols in brackets."""

    reno: int
    """Reno flows [m], at least one."""
    nice: int
    """Nice flows [l]; 0 is the system without them."""
    buffer: float
    """Room in the queue [B]."""
    pipe: float
    """Packets that the link holds without a queue [mu tau]."""
    trigger: float
    """Queue above which Nice yields [q_t], below `buffer`."""
    tau: float = 0.1
    """Round-trip time without queueing, seconds [tau]. It scales durations and nothing else."""
    gamma: float = 0.5
    """What a loss leaves of a window [gamma]."""
    cut: float = 0.5
    """Share of its window that Nice gives up each round trip while it yields: 1/2 in (3) and (15).
    Equation (4) writes gamma for it too, which only gamma = 1/2 makes right: what is left after
    giving up `cut` is 1 - cut."""
    paced: bool = False
    """Whether a window w < 2 hears of the queue once in 2/w round trips and is 1/48 or more, as 2.3
    has it, and not once in every round trip and without limit, as section 3 has it. Such a window
    then grows by one packet, or is cut, once in 2/w round trips."""

    def __post_init__(self) -> None:
        """Raise LabError for values without meaning."""
        wrong = [
            text
            for ok, text in (
                (self.reno >= 1, "reno is below 1"),
                (self.nice >= 0, "nice is negative"),
                (self.pipe > 0, "pipe is not positive"),
                (0 <= self.trigger < self.buffer, "trigger is not in [0, buffer)"),
                (self.tau > 0, "tau is not positive"),
                (0 < self.gamma < 1, "gamma is not between 0 and 1"),
                (0 < self.cut <= 1, "cut is not in (0, 1]"),
            )
            if not ok
        ]
        if wrong:
            raise LabError(f"The fluid model cannot start: {', '.join(wrong)}. Change {self}.")

    @property
    def full(self) -> float:
        """Total window at which packets are lost, mu tau + B."""
        return self.pipe + self.buffer

    @property
    def rate(self) -> float:
        """Packets that the link carries per second [mu]."""
        return self.pipe / self.tau

    @property
    def gap(self) -> float:
        """What a loss empties of the pipe, mu tau - gamma (mu tau + B); 0 if the queue remains."""
        return max(0.0, self.pipe - self.gamma * self.full)

    @property
    def most(self) -> float:
        """W_n above which Nice gives up as much as Reno takes, m/cut; 2m in the appendix."""
        return self.reno / self.cut

    @property
    def balanced(self) -> float:
        """W_n below which Nice gives up less than Reno takes: `most`, unless pacing says later."""
        late = self.paced and self.most < 2 * self.nice
        return math.sqrt(2 * self.nice * self.most) if late else self.most

    @property
    def least(self) -> float:
        """Least W_n: none in section 3, l/48 in 2.3."""
        return self.nice * LEAST if self.paced else 0.0

    def decisions(self, nice: float) -> float:
        """Return how often in a round trip a Nice flow decides, when all have `nice` packets."""
        return min(1.0, nice / (2 * self.nice)) if self.paced and self.nice else 1.0

    def without_nice(self) -> Setting:
        """Return the same link with the Reno flows alone."""
        return replace(self, nice=0)


@dataclass(frozen=True)
class Period:
    """One period: windows in packets at its ends, what was sent, and its course."""

    reno_start: float
    nice_start: float
    reno_end: float
    nice_end: float
    """W_n just before the loss [delta]."""
    duration_s: float
    """T."""
    reno_packets: float
    """Sent by all Reno flows, integrated as in (7)."""
    nice_packets: float
    """Sent by all Nice flows."""
    waited: float
    """Integral of the queueing delay over dW_n, in packets times seconds; see `lemma_3`."""
    course: Vector
    """Rows of seconds, W_r, W_n."""
    intervals: dict[str, float]
    """When each interval ended, seconds since the loss."""

    @property
    def reno_rate(self) -> float:
        """Packets per second of all Reno flows."""
        return self.reno_packets / self.duration_s

    @property
    def nice_rate(self) -> float:
        """Packets per second of all Nice flows."""
        return self.nice_packets / self.duration_s


_INTERVALS: dict[str, tuple[Callable[[Setting, float], float], Callable[[Setting, Vector], float]]]
# Each: dW_n in packets per round trip; what is left until its end (positive before it).
_INTERVALS = {
    "FILL": (lambda s, n: s.nice * s.decisions(n), lambda s, w: s.pipe - w[0] - w[1]),
    "VEGAS": (
        lambda s, n: -min(s.nice * s.decisions(n), s.reno),
        lambda s, w: min(s.pipe + s.trigger - w[0] - w[1], w[1] - s.nice),
    ),
    "FLOOR": (lambda _s, _n: 0.0, lambda s, w: s.pipe + s.trigger - w[0] - w[1]),
    "BALANCE": (lambda s, _: -s.reno, lambda s, w: w[1] - s.balanced),
    "YIELD": (
        lambda s, n: -s.cut * n * s.decisions(n),
        lambda s, w: min(s.full - w[0] - w[1], w[1] - s.least),
    ),
    "LEAST": (lambda _s, _n: 0.0, lambda s, w: s.full - w[0] - w[1]),
}


def period(setting: Setting, reno: float, nice: float, step_s: float = math.inf) -> Period:
    """Integrate one period that starts with W_r = `reno` and W_n = `nice`, just after a loss.

    `step_s` is the longest step, and so the distance of the points of `course`.
    """
    s = setting
    # W_r, W_n, packets sent by either, and the queueing delay summed over dW_n.
    state: Vector = np.array([reno, nice, 0.0, 0.0, 0.0])
    now, courses, ends = 0.0, [np.array([[0.0, reno, nice]])], {}
    longest = (s.full / s.reno + 1) * s.full / s.rate
    for name, (growth, left) in _INTERVALS.items():
        if left(s, state) > SETTLED * s.full:

            def rates(_: float, w: Vector, growth: Callable[..., float] = growth) -> list[float]:
                rtt = max(s.tau, (w[0] + w[1]) / s.rate)
                change = growth(s, w[1]) / rtt
                return [s.reno / rtt, change, w[0] / rtt, w[1] / rtt, (rtt - s.tau) * change]

            def end(_: float, w: Vector, left: Callable[..., float] = left) -> float:
                return left(s, w)

            end.terminal = True  # type: ignore[attr-defined]
            solved = solve_ivp(
                rates, (now, now + longest), state, method="DOP853", events=end,
                rtol=1e-11, atol=1e-15 * s.full, max_step=step_s,
            )  # fmt: skip
            if solved.status != 1:
                raise LabError(f"{name} does not end: {solved.message} Change {s}.")
            now, state = float(solved.t[-1]), solved.y[:, -1]
            courses.append(np.column_stack([solved.t, solved.y[0], solved.y[1]])[1:])
        ends[name] = now
    reno_end, nice_end, reno_packets, nice_packets, waited = (float(v) for v in state)
    return Period(
        reno, nice, reno_end, nice_end, now, reno_packets, nice_packets, waited,
        course=np.concatenate(courses), intervals=ends,
    )  # fmt: skip


@lru_cache(maxsize=4096)
def periods(setting: Setting, nice_share: float = 0.5) -> tuple[Period, ...]:
    """Return the periods until two in a row are alike (Lemma 1), the first just after a loss.

    `nice_share` of the windows at the first loss are Nice's. Raises LabError if they never settle,
    but with `paced`, of which the lemma does not speak, returns PACED_PERIODS.
    """
    s = setting
    most = PACED_PERIODS if s.paced else PERIODS
    start = s.gamma * s.full
    nice = max(start * nice_share, s.least) if s.nice else 0.0
    reno = start - nice
    run: list[Period] = []
    for _ in range(most):
        run.append(period(s, reno, nice))
        if len(run) > 1:
            last, before = run[-1], run[-2]
            moved = abs(last.nice_end - before.nice_end) / s.full
            longer = abs(last.duration_s - before.duration_s) / before.duration_s
            if max(moved, longer) < SETTLED:
                return tuple(run)
        reno = s.gamma * run[-1].reno_end
        nice = max(s.gamma * run[-1].nice_end, s.least)
    if s.paced:
        return tuple(run)
    raise LabError(f"The periods have not settled after {PERIODS}. Change {s}.")


def steady(setting: Setting) -> Period:
    """Return the period to which the others converge."""
    return periods(setting)[-1]


def interference(setting: Setting) -> float:
    """Return I of the model: the share of their throughput that the Reno flows lose to Nice."""
    alone = steady(setting.without_nice()).reno_rate
    return 1 - steady(setting).reno_rate / alone


def residual_4(setting: Setting) -> float:
    """Return the bound on delta of equation (4): (m/cut) e^{-(1 + (B - q_t)/m) cut}."""
    s = setting
    return s.most * math.exp(-(1 + (s.buffer - s.trigger) / s.reno) * s.cut)


def residual_appendix(setting: Setting) -> float:
    """Return the bound on delta that appendix A derives: (m/cut) e^{-(1 + cut (B - q_t)/m)}.

    Its `cut` is 1/2. It is *not* equation (4), which is larger by e^{1 - cut} (1.65 for 1/2): there
    cut multiplies the 1 too. And it is no upper bound: see `residual_exact`.
    """
    s = setting
    return s.most * math.exp(-(1 + s.cut * (s.buffer - s.trigger) / s.reno))


def residual_exact(setting: Setting) -> float:
    """Return delta of Corollary 1: the solution of (6) from W_n = m/cut to W = mu tau + B.

    W_r ends at mu tau + B - delta, and not at mu tau + B, where appendix A ends its integral. So
    x = cut delta/m solves x e^{-x} = e^{-(1 + cut (B - q_t)/m)}: by Lambert's W, e^x times what the
    appendix has, up to e times. Equation (4) is a bound on it where x <= 1 - cut; the form of the
    slides, with e^{-cut (B - q_t)/m} alone, always.
    """
    s = setting
    small = math.exp(-(1 + s.cut * (s.buffer - s.trigger) / s.reno))
    return float(-s.most * lambertw(-small).real)


def interference_5(setting: Setting, delta: float) -> float:
    """Return Theorem 1's bound on I, equation (5): 2 delta / ((mu tau + B)(1 - gamma^2))."""
    return 2 * delta / (setting.full * (1 - setting.gamma**2))


def interference_slides(setting: Setting) -> float:
    """Return the slides' bound on I: 4 m e^{-B (1 - t) gamma/m} / ((mu tau + B) gamma), t B = q_t.

    Larger than (4) in (5) by 2 (1 - gamma^2) e^gamma: 2.47 times for gamma = 1/2.
    """
    s = setting
    return 4 * s.most * math.exp(-s.cut * (s.buffer - s.trigger) / s.reno) / s.full


def interference_repaired(setting: Setting) -> float:
    """Return a bound on I that does not rest on Lemma 3 (which fails, see `lemma_3`).

    I = 1 - (T'/T)(1 - delta/(mu tau + B))^2 <= 2 delta/(mu tau + B) + (T - T')/T', with delta as in
    Corollary 1. By (*) below m mu (T - T') is at most the integral of the queue q over -dW_n,
    and that is at most q_t W_n(t_1) + (m/cut) min(W_n(t_1), m/cut): until YIELD q <= q_t, and there
    dq <= dW_r = -(m/cut) dW_n/W_n, by parts. W_n(t_1) is what is left of delta, and Nice's part of
    the gap. m mu T' is the integral of W, at least mu tau, over the windows of a period.

        (*)  m (T - T') = -integral of (RTT - tau) dW_n - tau (1 - gamma) delta
    """
    s = setting
    delta = residual_exact(s)
    nice = s.gamma * delta + s.gap * s.nice / (s.nice + s.reno)
    longer = s.trigger * nice + s.most * min(nice, s.most)
    alone = s.pipe * s.gap + (s.full**2 - max(s.pipe, s.gamma * s.full) ** 2) / 2
    return 2 * delta / s.full + longer / alone


def lemma_1(setting: Setting, shares: Sequence[float] = (0.5, 0.98)) -> Json:
    """Lemma 1: periods converge to one duration T, wherever they start.

    Returns the periods it took, T in seconds, and how far T differs between starts (relative);
    `shares` are Nice's of the first windows.
    """
    runs = [periods(setting, share) for share in shares]
    ends = [run[-1].duration_s for run in runs]
    return {
        "periods": max(len(run) for run in runs),
        "duration_s": ends[0],
        "differs": max(ends) / min(ends) - 1,
    }


def lemma_2(setting: Setting) -> Json:
    """Lemma 2: the Reno flows send (W_r(t_0 + T)^2 - W_r(t_0)^2) / (2m) packets in a period, (9).

    Returns what was integrated, the formula's value, and their relative difference. The 1/m before
    the integral of (7) is a slip: it appears when (8) is put in, once.
    """
    p = steady(setting)
    formula = (p.reno_end**2 - p.reno_start**2) / (2 * setting.reno)
    return {
        "integrated": p.reno_packets,
        "formula": formula,
        "differs": abs(p.reno_packets / formula - 1),
    }


def lemma_3(setting: Setting) -> Json:
    """Lemma 3: T < T', the period of the Reno flows alone. It does not hold.

    Its proof takes dW_r/dW < 1 throughout the period, but while W_n falls, W_r rises faster than W.
    Since dW_r = m dt/RTT, T and T' are the integrals of RTT/m over dW_r, and so (*) holds: Nice's
    windows grow while the queue is empty and fall while it is not, so that Reno's growth meets
    longer round trips than it would alone. Only what Nice still holds at the loss makes a period
    shorter, by tau (1 - gamma) delta / m.

    Returns both, T/T' - 1, the same computed by (*), and how far these two differ.
    """
    s = setting
    p, alone = steady(s), steady(s.without_nice())
    longer = p.duration_s / alone.duration_s - 1
    by_delay = -(p.waited + s.tau * (p.nice_end - p.nice_start)) / s.reno / alone.duration_s
    return {
        "with_nice_s": p.duration_s,
        "alone_s": alone.duration_s,
        "longer": longer,
        "by_delay": by_delay,
        "differs": abs(longer - by_delay),
        "holds": p.duration_s < alone.duration_s,
    }


def check(setting: Setting) -> Json:
    """Return every number of the analysis for one setting; interferences are shares of one."""
    p = steady(setting)
    alone = steady(setting.without_nice())
    delta = residual_4(setting)
    return {
        "setting": asdict(setting),
        "reno_start": p.reno_start,
        "reno_end": p.reno_end,
        "nice_start": p.nice_start,
        "delta": p.nice_end,
        "delta_4": delta,
        "delta_appendix": residual_appendix(setting),
        "delta_exact": residual_exact(setting),
        "interference": interference(setting),
        "bound": interference_5(setting, delta),
        "bound_slides": interference_slides(setting),
        "bound_repaired": interference_repaired(setting),
        "reno_share": p.reno_rate / setting.rate,
        "nice_share": p.nice_rate / setting.rate,
        "idle_alone": 1 - alone.reno_rate / setting.rate,
        "lemma_1": lemma_1(setting),
        "lemma_2": lemma_2(setting),
        "lemma_3": lemma_3(setting),
    }
