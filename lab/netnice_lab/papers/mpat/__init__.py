# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""M. Singh, P. Pradhan, P. Francis, "MPAT: Aggregate TCP Congestion Management"."""

from __future__ import annotations

from ...claims.paper import Paper, of_modules
from . import apart, groups, mappings, on_kernel, totals, windows
from .experiments import simulated

PREAMBLE = """\
*MPAT: Aggregate TCP Congestion Management as a Building Block for Internet QoS* (section 4). The
simulator stands in for Emulab and the Internet.

**Setting** (`lab/scenarios/mpat/shares.toml`): an RTT of 70 ms, and a link on which each of ten
flows of TCP gets the paper's 400 kB/s. The queue is the bandwidth times the RTT. TCP is as in
Linux. Where a group is larger the link is wider, so that the fair share stays the same. *TCP* is
Reno, with the same seed.

**Mapping.** The paper sends each packet through a congestion window. A host that sees only ACKs
charges packets to windows when their ACKs come. That is what is deployed
(`core/aggregate/windows.h`), and verdicts are on it. Claim M9 compares the paper's rules,
*mappings* compares the two.

**Pace.** Members of a group are paced here (`core/aggregate/group.h`), in the paper they are not.
The table of M9 has both. MulTCP and the one shared loop are not paced.

**Numbers.** Brackets are 95 % confidence intervals over seeds; the table at the end has their
number. Verdicts are on means, that of M7 on medians. Where an interval is wide, a total within 5 %
may be chance. Where ACKs are *free* the link of the other way has fq_codel instead of drop-tail,
so they do not wait behind packets. Windows of CUBIC and TFRC (3.3.4) are those of `core/alg/`;
their groups are divided by `core/aggregate/any.h`, and paced at 1.5 times their shares.

**On the kernel** (M1K, M3K, M4K; `lab/scenarios/mpat/kernel.toml`) every flow is an iperf3 under
its own `netnice run --group NAME`, beside five plain ones. The link has 16 Mbit/s (M3K: 33.5).
Seeds decide who starts when: the virtual machine needs a second to start one.
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
