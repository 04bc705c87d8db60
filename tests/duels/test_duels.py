# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Duels on the real kernel in virtual time: it shows what the simulator says of many seeds.

One seed tells an algorithm that yields from one that does not. Statistics over seeds are the
simulator's (crates/netnice-sim/tests/k1.rs), and the kernel's in `make soak` (tests/soak).

Ratios are to no background, shares to strict priority, from the same invocation and seed.
"""

from __future__ import annotations

import json

from netnice_lab.cli import app
from typer.testing import CliRunner

SHORT = ("--json", "--seeds", "1", "--set", "measure_s=20", "--set", "drain_s=10", "--jobs", "1")
"""33 virtual seconds for each background, for none, and for strict priority."""


def harm_and_share(scenario: str, *backgrounds: str) -> tuple[dict[str, float], dict[str, float]]:
    """Run a scenario on the kernel; return both by background.

    In this process, whose scenarios share a virtual machine: to boot one takes as long as a run.
    """
    only = (word for name in backgrounds for word in ("--only", name))
    done = CliRunner().invoke(app, ["run", scenario, *SHORT, *only])
    assert done.exit_code == 0, done.stderr + str(done.exception)
    rows = {row["background"]: row for row in json.loads(done.stdout)["summary"]}
    harm = {name: row["fct_ratio_mean"]["mean"] for name, row in rows.items()}
    share = {name: row["share"]["mean"] for name, row in rows.items()}
    print(f"harm {harm}, share {share}")
    return harm, share


def test_beside_nice_users_hardly_wait_where_beside_cubic_they_wait_many_times_as_long() -> None:
    harm, share = harm_and_share("k1", "nn_nice x16", "cubic x16")
    # The simulator has 1.09 over 60 seeds, with a standard deviation of 0.06 between them: 1.3 is
    # beyond any of them. A nice that takes no queue for congestion has 2.3 there.
    assert harm["nn_nice x16"] <= 1.3
    assert share["nn_nice x16"] >= 0.1
    # 16 CUBIC flows keep the 50 packets of the queue full: 76 ms more for each of the round trips
    # of a fetch that takes about 170 ms alone, and losses. Without that the lab measures nothing.
    assert harm["cubic x16"] > 3


def test_held_in_their_host_four_flows_take_what_users_leave_and_users_do_not_notice() -> None:
    harm, share = harm_and_share("ebb", "nn_ebb x4")
    # the simulator has 1.02 and 0.97 over 16 seeds, with deviations of 0.03 and 0.04 between them
    assert harm["nn_ebb x4"] <= harm["strict priority"] + 0.12
    assert share["nn_ebb x4"] >= 0.8
