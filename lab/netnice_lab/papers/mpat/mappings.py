# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Claims on how packets are mapped to the windows of a group, and on receivers and MulTCP."""

from __future__ import annotations

from ...claims.claim import Found, Measured, claim, found, times
from .experiments import (
    BOTH,
    EACH,
    FREE,
    LOSS,
    LOSSY,
    MPAT,
    MULTCP,
    ONE,
    PAPERS,
    RULES,
    TCP,
    UNPACED,
    split,
)
from .ratios import near, over, parts, total, worst
from .shown import RULE_TABLE

WAYS = (BOTH, ONE)
ANY = RULES[2]
"""The paper's own rule."""


@claim(
    "M9",
    needs=("rules",),
    text="Of the three rules that map packets to windows, the last one's is aggressive, another "
    "one's is timid, any one's right (within 5 %), with traffic both ways",
    paper="in words",
    ours="{each}; any, unpaced as in the paper {unpaced}",
    cause="The rules differ in where the second loss of a burst goes. The means are in the "
    "paper's order here, too, if members are paced. Unpaced, the rule *any* is right with "
    "traffic one way: {one_way}. With traffic both ways, where ACKs wait for packets, it is "
    "not; if ACKs have a queue of their own it has {free}.",
    tables=(RULE_TABLE,),
)
def three_rules(measured: Measured) -> Found:
    """Section 3.3.3."""
    rules = measured["rules"]
    totals = {r: total(rules, r, traffic=BOTH) for r in RULES}
    unpaced = total(rules, PAPERS, traffic=BOTH)
    return found(
        totals["same"]["mean"] > totals["any"]["mean"] > totals["other"]["mean"]
        and near(totals["any"])
        and near(unpaced),
        totals["any"],
        each="; ".join(f"{r} {times(v)}" for r, v in totals.items()),
        unpaced=unpaced,
        one_way=total(rules, PAPERS, traffic=ONE),
        free=total(rules, PAPERS, traffic=FREE),
    )


@claim(
    "mappings",
    needs=("rules",),
    text="Charging packets when their ACKs come, as on the kernel, agrees with sending each "
    "through a window, as in the paper (total and ratio within 5 %)",
    paper="not in the paper",
    ours="totals {totals}; of a flow's part at worst {part:3} and {papers_part:3}",
    cause="Two things. First, runs keep the losses of a burst together: over a window drawn for "
    "each ACK they have {runs[both ways]:3} both ways and {runs[one way]:3} one way. Second, "
    "ACKs wait behind packets: with a window drawn for each ACK the totals are {drawn[both "
    "ways]} of the paper's mapping both ways, {drawn[one way]} one way, and "
    "{drawn[" + FREE + "]} both ways if ACKs have a queue of their own; with runs it is {free} "
    "there.",
)
def both_kinds_of_host(measured: Measured) -> Found:
    """Both kinds of host."""
    rules, shares = measured["rules"], split("1 to N", 5)
    totals = {w: rules.ratio("mbit", MPAT, ANY, traffic=w) for w in WAYS}
    part, papers_part = (
        worst([worst(parts(rules, b, shares, traffic=w)) for w in WAYS]) for b in (MPAT, ANY)
    )
    return found(
        all(near(v) for v in (*totals.values(), part, papers_part)),
        totals[BOTH],
        totals=", ".join(f"{w} {times(v)}" for w, v in totals.items()),
        part=part,
        papers_part=papers_part,
        runs={w: rules.ratio("mbit", MPAT, EACH, traffic=w) for w in WAYS},
        drawn={w: rules.ratio("mbit", EACH, ANY, traffic=w) for w in (*WAYS, FREE)},
        free=rules.ratio("mbit", MPAT, ANY, traffic=FREE),
    )


@claim(
    "quickack",
    needs=("quickack",),
    text="Where receivers acknowledge each packet, not each second one, five flows at 1:2:3:4:5 "
    "have the total of five flows of TCP as well (5 %), and each gets its part (5 %)",
    paper="not in the paper",
    ours="{totals}; at worst {part:3} of a flow's part",
    cause="Both ways, pace is the cause, together with ACKs that share a queue with packets: "
    "unpaced the total is {unpaced}, paced with ACKs in a queue of their own {free}. The "
    "mapping is not: with the paper's it is {any} paced, {papers} unpaced. For what it gets the "
    "group retransmits {again} times as many packets as flows of TCP do. Why paced packets meet "
    "so many losses there was not found, nor why the total is more than theirs one way.",
)
def receivers_without_delayed_acks(measured: Measured) -> Found:
    """Receivers that do not delay ACKs."""
    results, shares = measured["quickack"], split("1 to N", 5)
    totals = {w: total(results, traffic=w) for w in WAYS}
    part = worst([worst(parts(results, MPAT, shares, traffic=w)) for w in WAYS])
    again = [
        [
            packets / mbit
            for packets, mbit in zip(
                *(results.values(key, b, traffic=BOTH) for key in ("retransmits", "mbit")),
                strict=True,
            )
        ]
        for b in (MPAT, TCP)
    ]
    return found(
        all(near(v) for v in (*totals.values(), part)),
        totals[BOTH],
        totals=", ".join(f"{way} {times(v)}" for way, v in totals.items()),
        part=part,
        unpaced=total(results, UNPACED, traffic=BOTH),
        free=total(results, traffic=FREE),
        any=total(results, "any", traffic=BOTH),
        papers=total(results, PAPERS, traffic=BOTH),
        again=over(*again),
    )


@claim(
    "multcp",
    needs=("losses",),
    text=f"Where {100 * LOSS:.1f} % of the packets are lost at random, not by a queue that "
    "overflows, MulTCP has the total of as many flows of TCP with 2, 5 and 10 flows (5 %)",
    paper="not in the paper",
    ours="{multcp}; MPAT {mpat}",
)
def multcp_at_random_losses(measured: Measured) -> Found:
    """Section 4.1, without a queue that overflows."""
    totals = {
        b: {n: total(measured["losses"], b, flows=n) for n in LOSSY} for b in (MULTCP, MPAT)
    }  # fmt: skip
    return found(
        near(worst(list(totals[MULTCP].values()))), totals[MULTCP][LOSSY[0]],
        **{b: ", ".join(f"{n}: {times(v)}" for n, v in of.items()) for b, of in totals.items()},
    )  # fmt: skip
