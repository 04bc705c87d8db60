# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Holding a background in its host until the path has room: what netnice promises of it."""

from __future__ import annotations

from ...claims.paper import Paper, of_modules
from . import claims, on_kernel
from .experiments import simulated

PREAMBLE = """\
What the default of `netnice run` has to keep: strict priority from the sender, with no rate typed
in (`core/host/path.h`).

**Setting** (`lab/scenarios/ebb.toml`): K1, 8 Mbit/s, 50 ms, 50 packets of drop-tail; web fetches
are half of the load. The background's algorithm is `ebb`, and its host holds it. E2 is Linux in
virtual time, the others are the simulator.

**Numbers.** Harm is the mean completion time of a fetch over that without background, with the
same seed. Shares are of the goodput under strict router priority. Brackets are 95 % confidence
intervals over seeds. The simulator's seeds begin at 101; constants were chosen on 1 to 24. Verdicts
are on means: where an interval crosses the aim, as E1's, E2's and E6's do, other seeds may say
otherwise.
"""

REPRODUCTION = Paper(
    name="ebb",
    title="Strict priority from the sender",
    preamble=PREAMBLE,
    experiments=lambda: [*simulated(), on_kernel.experiment()],
    claims=of_modules(claims),
    whose="aim",
)
