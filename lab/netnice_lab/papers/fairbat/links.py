# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Claims F5a to F5c on FAIRBAT: two links, beside what always yields."""

from __future__ import annotations

from ...claims.claim import Found, Json, Measured, claim, found, times
from .experiments import LINK_FLOWS, REFERENCE
from .figures import FIGURES

FAIR_LINKS = ("FB-I tau", "FB-II tau")
LESS = ("LEDBAT", "TCP-LP")
FLOWS_TOLD = ", ".join(map(str, LINK_FLOWS))

ByFlows = dict[int, Json]


def _over_tcp(measured: Measured, key: str, *more: str) -> dict[str, ByFlows]:
    """Return what each algorithm has over what TCP has, by the number of its flows."""
    return {
        name: {
            n: measured["two-links"].ratio(key, name, REFERENCE, fair=n) for n in LINK_FLOWS
        }
        for name in (*FAIR_LINKS, *LESS, "LEDBAT, 100 ms", *more)
    }  # fmt: skip


def _told(ratios: dict[str, ByFlows]) -> str:
    return "; ".join(
        f"{name} {', '.join(times(v) for v in values.values())}" for name, values in ratios.items()
    )


@claim(
    "F5a",
    needs=("two-links",),
    text="Two links: FB-I and FB-II get much of what TCP gets, nearer to it than to what LEDBAT, "
    "which lets 25 ms of queue pass, and TCP-LP get (figure 7)",
    paper="near 1, LBE far below",
    ours="of TCP's throughput with " + FLOWS_TOLD + " flows: {each}",
    cause="FB is far above LEDBAT and TCP-LP, but with gamma = 1 its weight is well below 1 on "
    "this link: see the theory of the single link for as many flows. LEDBAT with the target of "
    "RFC 6817, 100 ms of 119, hardly yields.",
    drawings=(FIGURES["7"],),
)
def throughput_on_two_links(measured: Measured) -> Found:
    """Figure 7; "much closer to TCP than to LBE" as the distance to each."""
    got = _over_tcp(measured, "mbit", "FB-I alpha")
    closer = all(
        1 - got[fair][n]["mean"] < got[fair][n]["mean"] - got[less][n]["mean"]
        for fair in FAIR_LINKS for less in LESS for n in LINK_FLOWS
    )  # fmt: skip
    return found(closer, got[FAIR_LINKS[0]][LINK_FLOWS[0]], each=_told(got))


@claim(
    "F5b",
    needs=("two-links",),
    text="Two links: short flows on the second link are delayed less beside FB-I and FB-II than "
    "beside LEDBAT and TCP-LP, nearly as little as beside TCP (within 1.5 times; figure 8a)",
    paper="near 1, LBE far above",
    ours="over that beside TCP with " + FLOWS_TOLD + " flows: {each}",
    cause="What FB leaves to the TCP flows on the first link they take on the second.",
    drawings=(FIGURES["8"],),
)
def delays_on_two_links(measured: Measured) -> Found:
    """Figure 8a; "close to" taken as within 1.5 times."""
    over = _over_tcp(measured, "fct_s")
    lower = all(
        over[fair][n]["mean"] < over[less][n]["mean"]
        for fair in FAIR_LINKS for less in LESS for n in LINK_FLOWS
    )  # fmt: skip
    near = all(over[fair][n]["mean"] < 1.5 for fair in FAIR_LINKS for n in LINK_FLOWS)
    return found(lower and near, over[FAIR_LINKS[0]][LINK_FLOWS[0]], each=_told(over))


@claim(
    "F5c",
    needs=("two-links",),
    text="Two links: a lower gamma, 0.5 instead of 1, gives FB-I more and delays short flows less "
    "(figure 8b)",
    paper="> 1, < 1",
    ours="with " + FLOWS_TOLD + " flows {more} times the throughput and {less} times the delay",
    cause="The difference is smaller than that of the seeds.",
)
def lower_gamma(measured: Measured) -> Found:
    """Figure 8b."""
    more, less = (
        [
            measured["two-links"].ratio(key, "FB-I tau, gamma 0.5", FAIR_LINKS[0], fair=n)
            for n in LINK_FLOWS
        ]
        for key in ("mbit", "fct_s")
    )
    return found(
        all(v["mean"] > 1 for v in more) and all(v["mean"] < 1 for v in less), more[0],
        more=", ".join(map(times, more)), less=", ".join(map(times, less)),
    )  # fmt: skip
