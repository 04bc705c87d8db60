# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""M. Singh, P. Pradhan, P. Francis, "MPAT: Aggregate TCP Congestion Management"."""

from __future__ import annotations

from ...claims.paper import Paper, of_modules
from . import apart, groups, mappings, on_kernel, totals, windows
from .experiments import simulated

PREAMBLE = """\
*MPAT: Aggregate TCP Congestion Management as a Building Block for Internet QoS* (section 4), with
the simulator in place of Emulab and the Internet.

**Setting** (`lab/scenarios/mpat/shares.toml`): 70 ms, a link on which ten flows of TCP get the
paper's 400 kB/s each, a queue of the bandwidth times the round trip, TCP as in Linux. Where a group
is larger the link is wider, so that the fair share stays. *TCP* is Reno, with the same seed.

**Mapping.** The paper sends each packet through a congestion window; a host that sees ACKs only
charges packets to windows when their ACKs come. Verdicts are on the latter, which is what is
deployed: `core/aggregate/windows.h`. Claim M9 compares the paper's rules, *mappings* the two.

**Pace.** Members of a group are paced (`core/aggregate/group.h`), which the paper's are not; the
table of M9 has both. MulTCP and the one shared loop are not paced.

Brackets are 95 % confidence intervals over seeds, whose number the table at the end has. Verdicts
are on means, of M7 on medians, and where an interval is wide a total within 5 % may be so by
chance. Where ACKs are *free* the link of the other way has fq_codel in place of drop-tail, so that
they do not wait behind packets. Windows of CUBIC and the TFRC variant (3.3.4) are those of
`core/alg/` in groups that `core/aggregate/any.h` divides, and paces at 1.5 of their shares.

**On the kernel** (M1K, M3K, M4K; `lab/scenarios/mpat/kernel.toml`) every flow is an iperf3 under a
`netnice run --group NAME` of its own, beside five plain ones, on a link of 16 Mbit/s (M3K: 33.5): a
virtual machine needs a second for one. Seeds decide who starts when.
"""

REPRODUCTION = Paper(
    name="mpat",
    title="MPAT reproduced",
    preamble=PREAMBLE,
    experiments=lambda: [
        *simulated(), apart.simulated(), on_kernel.simulated(), *on_kernel.EXPERIMENTS,
    ],
    claims=of_modules(totals, groups, mappings, windows, apart, on_kernel),
)  # fmt: skip
