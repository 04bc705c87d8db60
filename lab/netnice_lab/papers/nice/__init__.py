# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""A. Venkataramani, R. Kokku, M. Dahlin, "System Support for Background Replication": TCP Nice."""

from __future__ import annotations

from ...claims.paper import Paper, of_modules
from . import interference, paths, robustness, theorem, theorem_claims
from .experiments import simulated

PREAMBLE = """\
The technical report of TCP Nice, *System Support for Background Replication* (sections 2 to 5 and
appendices), with the simulator in place of ns-2 (N1 to N10, N12) and the Linux kernel in
virtual time in place of the Internet (N11).

**Two kinds of Nice.** *Nice* is the report's literal rule, which verdicts are on: threshold 0.1,
fraction 0.5, alpha 1, beta 3, windows halved below two packets too, growth in every round without
congestion, one verdict a round trip. *Our default* is `nice` as it is deployed, with the
deviations that `core/alg/nice.h` lists.

**Setting** (`lab/scenarios/nice/web.toml`): 50 packets of 1024 bytes of drop-tail, 50 ms one way,
TCP as in ns-2 (an initial window of 2, NewReno, an ACK for each packet, timeouts of 1 s and
more). The foreground replays our web log, since the report's trace is not public: all of it in 15
minutes, requests cut to 100 kB, a mean demand of 1.42 Mbit/s. The report does not give its
demand, but what one flow carries beside one of window 1 (N9) asks for 1.5 Mbit/s or so. Its
"about 12 active clients" are not met: about 3 requests are open at a time without background. The
link has (1 + S) times the demand.

**Numbers.** Latency is the report's: from the first sending of a foreground packet to its ACK,
waiting for retransmissions included. Where it says *times*, that is over no background with the
same seed. Shares are of the goodput under strict router priority. Brackets are 95 % confidence
intervals over seeds. Where the report has words instead of a number, what was taken for it stands
in the claim.
"""

REPRODUCTION = Paper(
    name="nice",
    title="TCP Nice reproduced",
    preamble=f"{PREAMBLE.strip()}\n\n{theorem.PREAMBLE}",
    experiments=lambda: [*simulated(), theorem.EXPERIMENT, paths.EXPERIMENT],
    claims=of_modules(interference, robustness, theorem_claims),
)
