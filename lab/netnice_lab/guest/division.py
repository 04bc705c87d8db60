# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""A group of transfers that divide their entitlement, beside plain ones."""

from __future__ import annotations

import re
import time

from .network import PLAIN, queue_statistics, use_control
from .places import CLIENT, IPERF_PORT
from .programs import Json, Program, call, fail, in_netns


class Division:
    """Endless transfers by iperf3 from a to b, each to a server of its own: a group's, plain ones.

    `run["division"]` has: `shares` of the group's members, each a `netnice run --group`, or None
    for as many plain ones; `beside`, the number of other plain ones; `starts_s`, for all of them
    when they start; `steps`, each with `wait_s` and maybe other `shares`, which it gives the
    members after having waited. All that is plain is Reno.
    """

    def __init__(self, job: Json, run: Json) -> None:
        """Start nothing yet."""
        del job
        self.how: Json = run["division"]
        # What iperf3 leaves unsent at its end still has its place in the group for a while.
        self.group = f"run{run['index']}"
        self.clients: dict[int, Program] = {}
        self.begin_s = 0.0

    def start(self, port: int, share: float | None) -> Program:
        """Start a transfer to a server at that port."""
        client = in_netns("a", "iperf3", "--client", CLIENT, "--port", str(port))
        client += ["--time", "80000", "--interval", "0"]
        if share is not None:
            client = ["netnice", "run", "--group", self.group, "--share", str(share), "--", *client]
        return Program(client)

    def arrived(self) -> Json:
        """Return the time, and the bytes that each transfer has had acknowledged by then."""
        shown = call(*in_netns("a", "ss", "-tinOH", "state", "established"))
        at_s, found = time.time() - self.begin_s, [0] * len(self.clients)
        for line in shown.splitlines():
            port = int(line.split()[3].rsplit(":", 1)[1])
            if acked := re.search(r"\bbytes_acked:(\d+)", line):
                # the other connection to the server, for control, has less
                found[port - IPERF_PORT] = max(found[port - IPERF_PORT], int(acked[1]))
        return {"at_s": at_s, "acked": found}

    def give(self, shares: list[float]) -> None:
        """Give the members these shares, all at once."""
        orders = [
            Program(["netnice", "share", self.group, str(client.process.pid), str(share)])
            for client, share in zip(
                (self.clients[port] for port in sorted(self.clients)), shares, strict=False
            )
        ]
        for order in orders:
            order.wait()

    def measure(self) -> Json:
        """Return what had arrived after each step."""
        use_control("a", PLAIN)
        members = self.how["shares"] or [None] * self.how["flows"]
        shares = [*members, *[None] * self.how["beside"]]
        ports = range(IPERF_PORT, IPERF_PORT + len(shares))
        servers = [Program(in_netns("b", "iperf3", "--server", "--port", str(p))) for p in ports]
        while len(call(*in_netns("b", "ss", "-tlnH")).splitlines()) < len(servers):
            time.sleep(0.1)
        self.begin_s = time.time() + 1
        for at_s, port, share in sorted(
            zip(self.how["starts_s"], ports, shares, strict=True), key=lambda flow: flow[0]
        ):
            time.sleep(max(0.0, self.begin_s + at_s - time.time()))
            self.clients[port] = self.start(port, share)
        samples = []
        for step in self.how["steps"]:
            time.sleep(step["wait_s"])
            if step.get("shares"):
                self.give(step["shares"])
            samples.append(self.arrived())
        queue = queue_statistics()
        for program in [*self.clients.values(), *servers]:
            if program.process.poll() is not None:
                program.wait()
                fail(f"{' '.join(program.command)} has ended by itself.")
            program.process.terminate()
            program.process.wait()  # iperf3 takes it for an error
        return {"samples": samples, "queue": queue}
