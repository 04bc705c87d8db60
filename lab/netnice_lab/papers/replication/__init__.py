# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Section 6.2 of TCP Nice's report: replication to many hosts, without rates to choose."""

from __future__ import annotations

from ...claims.claim import Drawing, Table
from ...claims.legacy import Statement
from ...claims.paper import Paper
from . import claims, copies, fleet, recovery

PREAMBLE = """\
Section 6.2 of *System Support for Background Replication* on the Linux kernel in virtual time. The
report's servers throttled Reno by one rate for each client; its figure 10 shows ping over
completion time, without numbers that could be compared. Here a server copies 10 MB by rsync to a
client that pings it, over the paths of section 5 (`lab/scenarios/nice`): *modem* 56.6 kbit/s,
120 ms, 5 packets; *cable* 1.5 Mbit/s, 30 ms; *london* 2 Mbit/s, 130 ms; *delaware* 5 Mbit/s, 50 ms,
each with 40 packets of drop-tail, and others' transfers on the last two.

*Reno* is throttled by `rsync --bwlimit` to shares of the capacity, and to the other paths' rates.
*Nice* is the report's rule under `netnice run -- rsync`; *netnice replicate* is our default, with
nothing set. *Strict priority* is the unlimited copy behind a router that sends its packets only
while it has no others: nothing that yields entirely is faster. All copies are compared with their
source byte for byte. Nothing is random on these paths, so there are no intervals. Pings are UDP
echoes, one each 200 ms (modem: 1 s); *ping* is their mean while the copy ran, and "idle" that
without a copy. The bottleneck is a token bucket that lets two packets leave at once after a rest;
R1 also has the modem with one packet after the other, as on a serial line.

For *many destinations* (R4) the server has the uplink of K1 (8 Mbit/s, 50 packets of drop-tail) and
its users, whose fetches are half of it. 32 destinations, eight behind a link of each of these kinds
with its rate, delay and queue, get 250 kB each, in ten files.
"""

REPRODUCTION = Paper(
    name="replication",
    title="Replication in the background",
    preamble=PREAMBLE,
    experiments=lambda: [
        recovery.line(), *copies.EXPERIMENTS, *recovery.EXPERIMENTS, fleet.EXPERIMENT,
    ],
    claims=(
        Statement(
            "R1",
            ("copies", "ours", "ideal", "serialised", "line"),
            claims.r1,
            (
                Drawing(
                    "figure-10",
                    "Figure 10: mean ping against completion time, on four paths",
                    claims.figure_10,
                ),
            ),
            (
                Table(
                    "Every copy: completion time, mean and 95th percentile of the ping",
                    ("path", "copy", "s", "ping ms", "p95 ms"),
                    claims.rows,
                ),
                Table(
                    "The modem with one packet after the other",
                    ("copy", "s", "ping ms", "p95 ms"),
                    claims.line_rows,
                ),
                Table(
                    "Idle lines of other rates in the simulator, one packet after the other, else "
                    "as the modem: share of the rate that is carried, and mean ping in ms",
                    ("Mbit/s", "default", "ping", "Nice", "ping", "decrease=1", "ping"),
                    claims.rate_rows,
                ),
            ),
        ),
        Statement(
            "R2",
            ("copies", "ours", "ideal", "serialised", "settings", "recovery"),
            claims.r2,
            tables=(
                Table(
                    "Worst of the four paths: duration over strict priority's (where a throttle "
                    "was not measured at least what its rate takes), ping over that without a "
                    "copy (where it was measured), and how many times a bound the worse of them is",
                    ("copy", "duration", "ping", "over its bound"),
                    claims.worst_rows,
                ),
                Table(
                    "One flow beside others' transfers, and two and four: duration over strict "
                    "priority's and ping on the kernel (K); throughput over strict priority's and "
                    "RTT of others' packets in the simulator (S, five rhythms of the others)",
                    (
                        "setting", "london K", "ping ms", "S", "others ms",
                        "delaware K", "ping ms", "S", "others ms",
                    ),
                    claims.settings_rows,
                ),
                Table(
                    "The same paths with something changed, duration (K) and throughput (S) as "
                    "above; shares of the capacity that our default leaves idle during others' "
                    "transfers, and between them with a window below and above two packets; its "
                    "mean then, and what fills the path",
                    (
                        "path", "change", "default K", "S", "together=2 K", "S",
                        "others", "below two", "above", "window", "fills",
                    ),
                    claims.changes_rows,
                ),
            ),
        ),
        Statement(
            "R3",
            ("copies", "ours"),
            claims.r3,
            tables=(
                Table(
                    "40 MB over 10 Mbit/s, 0.5 Mbit/s from 10 to 70 s after the start, then 10",
                    (
                        "copy", "s", "before: Mbit/s", "ping ms", "slow: Mbit/s", "ping ms",
                        "after: Mbit/s", "ping ms",
                    ),
                    claims.changed_rows,
                ),
            ),
        ),
        Statement(
            "R4",
            ("fleet",),
            claims.r4,
            tables=(
                Table(
                    "32 destinations: the last one's time, users' completion times over none",
                    ("copies", "s", "mean", "p95"),
                    claims.fleet_rows,
                ),
            ),
        ),
    ),
)  # fmt: skip
