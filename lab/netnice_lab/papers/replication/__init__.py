# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Section 6.2 of TCP Nice's report: replication to many hosts, without rates to choose."""

from __future__ import annotations

from ...claims.paper import Paper, of_modules
from . import claims, copies, fleet, recovery

PREAMBLE = """\
Section 6.2 of *System Support for Background Replication* on the Linux kernel in virtual time. The
report's servers throttled Reno by one rate for each client. Its figure 10 shows ping against
completion time, without numbers that could be compared.

**Setting.** A server copies 10 MB by rsync to a client that pings it, over the paths of section 5
(`lab/scenarios/nice`): *modem* 56.6 kbit/s, 120 ms, 5 packets; *cable* 1.5 Mbit/s, 30 ms; *london*
2 Mbit/s, 130 ms; *delaware* 5 Mbit/s, 50 ms. The last three have 40 packets of drop-tail, the last
two also others' transfers. The bottleneck is a token bucket that lets two packets leave at once
after a rest. R1 also has the modem with one packet after the other, as on a serial line.

**What is compared.** *Reno* is throttled by `rsync --bwlimit` to shares of the capacity, and to
the other paths' rates. *Nice* is the report's rule under `netnice run -- rsync`. *netnice
replicate* has nothing set: it holds its packets ([ebb](ebb.md)). With one packet after the other it
is of 2026-11-24, when it sent as *our nice* does: `netnice run --algorithm nice`. *Strict priority*
is the unlimited copy behind a router that sends its packets only while it has no others: nothing
that yields entirely is faster. All copies are compared with their source byte for byte.

**Numbers.** Pings are UDP echoes, one every 200 ms (modem: 1 s). *Ping* is their mean while the
copy ran, "idle" their mean without a copy. Nothing is random on these paths, so there are no
intervals.

**Many destinations** (R4). The server has the uplink of K1 (8 Mbit/s, 50 packets of drop-tail) and
its users, whose fetches are half of it. 32 destinations get 250 kB each, in ten files. Eight are
behind a link of each of these kinds, with its rate, delay and queue.
"""

REPRODUCTION = Paper(
    name="replication",
    title="Replication in the background",
    preamble=PREAMBLE,
    experiments=lambda: [
        recovery.line(), *copies.EXPERIMENTS, *recovery.EXPERIMENTS, fleet.EXPERIMENT,
    ],
    claims=of_modules(claims),
)  # fmt: skip
