# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""A. Venkataramani, R. Kokku, M. Dahlin, "System Support for Background Replication": TCP Nice."""

from __future__ import annotations

from ...claims.paper import Paper, of_modules
from . import interference, paths, robustness, theorem, theorem_claims
from .experiments import simulated

PREAMBLE = """\
The technical report of TCP Nice, *System Support for Background Replication* (sections 2 to 5 and
appendices). The simulator stands in for ns-2 (N1 to N10, N12), the Linux kernel in virtual time
for the Internet (N11).

**Two kinds of Nice.** *Nice* is the report's rule to the letter; verdicts are on it. Its threshold
is 0.1, fraction 0.5, alpha 1, beta 3; windows are halved below two packets too, they grow in every
round without congestion, and there is one verdict in a round trip. *Our nice* is `nice` with
its defaults; `core/alg/nice.h` lists its deviations. `netnice run` sends so where packets cannot
wait in the host. Where they can, see [E1 to E6](ebb.md).

**Setting** (`lab/scenarios/nice/web.toml`): a drop-tail queue of 50 packets of 1024 bytes, 50 ms
one way. TCP is as in ns-2: an initial window of 2, NewReno, an ACK for each packet, timeouts of 1
s or more. The report's trace is not public. So the foreground replays our web log, all of it in 15
minutes, with requests cut to 100 kB: a mean demand of 1.42 Mbit/s. The report does not give its
demand; what one flow carries beside one of window 1 (N9) suggests about 1.5 Mbit/s. It has "about
12 active clients"; here about 3 requests are open at a time without background. The link has (1 +
S) times the demand.

**Numbers.** Latency is the report's: from the first sending of a foreground packet to its ACK,
with the time that retransmissions take. *Times* compares with no background and the same seed.
Shares are of the goodput under strict router priority. Brackets are 95 % confidence intervals over
seeds. Where the report has words instead of a number, the claim says in brackets which number was
taken.
"""

REPRODUCTION = Paper(
    name="nice",
    title="TCP Nice reproduced",
    preamble=f"{PREAMBLE.strip()}\n\n{theorem.PREAMBLE}",
    experiments=lambda: [*simulated(), theorem.EXPERIMENT, paths.EXPERIMENT],
    claims=of_modules(interference, robustness, theorem_claims),
)
