# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""The traffic of a scenario: foreground, probes, backgrounds, other flows, on one time line."""

from __future__ import annotations

import json
import time
from typing import Any

from .change import Change
from .copy import Replication
from .network import queue_statistics
from .places import (
    ADDRESSES,
    BULK_PORT,
    CROSS_PORT,
    ECHO_PORT,
    SERVER,
    WEB_PORT,
)  # fmt: skip
from .programs import MEMORY, Json, Program, call, fail, in_netns
from .qdisc import change_lines

RECEIVES = ("netnice", "run", "--no-hold")
"""What receives in the background: its device holds already."""

GREATEST_LAG_S = 0.1
"""A run whose fetches begin later than this after their time does not count."""

HEAD_START_S = 1800.0
"""Guest seconds from starting the programs to the experiment's t = 0; idle time costs nothing."""


class Traffic:
    """The programs of one run, all on one time line that starts at `epoch` (Unix seconds)."""

    def __init__(self, job: Json, run: Json) -> None:
        """Prepare; nothing is started yet."""
        self.job, self.run, self.scenario = job, run, job["scenario"]
        self.bottleneck: Json = self.scenario["bottleneck"]
        self.load = "netnice-load"
        self.end_s = self.scenario["warmup_s"] + self.scenario["measure_s"]

    def timed(self, *arguments: str) -> list[str]:
        """Return netnice-load's command line with the common time origin."""
        return [self.load, *arguments, "--epoch", f"{self.epoch:.6f}"]

    def result(self, name: str) -> Any:  # noqa: ANN401 (JSON)
        """Return the JSON document that a program wrote."""
        return json.loads((MEMORY / f"{name}.json").read_text())

    def measure(self) -> Json:
        """Run the traffic to its end and return the programs' JSON documents."""
        foreground = self.scenario["foreground"]
        fetching = foreground is not None and foreground["load"] > 0
        at = "o" if foreground and foreground["host"] is not None else "a"
        interval = foreground and foreground["probe_interval_ms"]
        background, crosses = self.run["background"], self.scenario["cross"]
        listeners: list[Program] = []
        stopped: list[Program | Change] = []
        awaited: list[Program] = []
        out = str(MEMORY) + "/{}.json"
        replication = Replication(self.job, self.run) if self.run.get("copy") else None
        self.epoch = time.time() + HEAD_START_S
        if fetching:
            serve = ["serve", "--listen", f"{ADDRESSES[at]}:{WEB_PORT}"]
            serve += ["--control", foreground["control"], *quic(foreground, "serve")]
            listeners.append(Program(in_netns(at, self.load, *serve), listens=True))
        if interval:
            echo = ["echo", "--listen", f"{SERVER}:{ECHO_PORT}"]
            listeners.append(Program(in_netns("a", self.load, *echo), listens=True))
        bulks = runs_of(background) if background else []
        listeners += self.bulk_sinks(bulks)
        senders = [Program(self.sender(bulk, BULK_PORT + i)) for i, bulk in enumerate(bulks)]
        listeners += [
            self.sink(CROSS_PORT + i, f"cross{i}", at=cross["to"] or "b")
            for i, cross in enumerate(crosses)
        ]
        stopped += senders
        stopped += [Program(self.sender(c, CROSS_PORT + i)) for i, c in enumerate(crosses)]
        stopped += self.changes(background, senders)
        if fetching:
            fetch = ["fetch", self.job["scenario_file"], "--from"]
            fetch += [f"{ADDRESSES[at]}:{WEB_PORT}"]
            fetch += ["--seed", str(self.run["seed"]), "--data", self.job["data"]]
            fetch += ["--json", out.format("fetch"), *quic(foreground, "serve")]
            awaited.append(Program(in_netns("b", *self.timed(*fetch))))
        if interval:
            probe = ["probe", f"{SERVER}:{ECHO_PORT}", "--interval-ms", str(interval)]
            probe += ["--duration", str(self.end_s), "--json", out.format("probe")]
            awaited.append(Program(in_netns("b", *self.timed(*probe))))
        if time.time() > self.epoch - 1:
            fail("The programs took longer to start than HEAD_START_S in guest/traffic.py allows.")
        copied = None
        if replication:
            copied = replication.copy(self.epoch, self.end_s)
            # Fetches that began beside the copy may end; nobody needs those that would follow.
            time.sleep(self.scenario["drain_s"])
            for program in awaited:
                program.stop()
        else:
            for program in awaited:
                program.wait()
            # A run without foreground lasts as long as one with it.
            time.sleep(max(0.0, self.epoch + self.end_s - time.time()))
        queue = queue_statistics()
        for running in [*stopped, *listeners]:
            running.stop()
        if fetching and (lag := self.result("fetch")["lag_max_s"]) > GREATEST_LAG_S:
            fail(f"A fetch started {lag:.3f} s late: the guest's processor is overloaded.")
        return {
            "queue": queue,
            "fetch": self.result("fetch") if fetching else None,
            "probe": self.result("probe") if interval else None,
            "sink": self.sinks(len(bulks)) if background else None,
            "cross": [self.result(f"cross{i}") for i in range(len(crosses))],
            "copy": {**copied, **replication.compare()} if copied and replication else None,
        }

    def changes(self, background: Json | None, senders: list[Program]) -> list[Change]:
        """Begin to wait for changes of the bottleneck, and of shares."""
        changes = []
        for change in self.bottleneck["change"]:
            lines = change_lines(self.bottleneck, self.run["queue"], change)
            tools = [(["tc", "-n", n, "-batch", "-"], words) for n, words in lines.items()]
            changes.append(Change(self.epoch, change["at_s"], tools))
        for change in background["change"] if background else []:
            assert background is not None
            words = [
                f"netnice share {background['group']} {sender.process.pid} {share} > /dev/null"
                for sender, share in zip(senders, change["shares"], strict=True)
            ]
            tools = [(["sh", "-e"], words)]
            changes.append(Change(self.epoch, change["at_s"], tools))
        return changes

    def bulk_sinks(self, bulks: list[Json]) -> list[Program]:
        """Start the receivers of the background, and have devices hold for it."""
        for end, device, key in (("a", "a0", "hold"), ("b", "b0", "pull")):
            if any(bulk.get(key) for bulk in bulks):
                call(*in_netns(end, "netnice", "hold", device))
        return [self.sink(BULK_PORT + i, f"sink{i}", bulk=bulk) for i, bulk in enumerate(bulks)]

    def sinks(self, count: int) -> Json:
        """Return what the receivers of the background found, as if they were one."""
        found = [self.result(f"sink{i}") for i in range(count)]
        return {**found[0], "flows": [flow for sink in found for flow in sink["flows"]]}

    def sink(self, port: int, name: str, at: str = "b", bulk: Json | None = None) -> Program:
        """Start a receiver of bulk flows, or of those of a background."""
        bulk = bulk or {}
        sink = ["sink", "--listen", f"{ADDRESSES[at]}:{port}"]
        sink += ["--warmup", str(self.scenario["warmup_s"])]
        sink += ["--measure", str(self.scenario["measure_s"])]
        sink += ["--json", str(MEMORY / f"{name}.json"), *quic(bulk, "sink")]
        over_udp = ["--udp-downloads"] if bulk.get("quic") else []
        under = [*RECEIVES, *over_udp, "--"] if bulk.get("pull") else []
        return Program([*under, *in_netns(at, *self.timed(*sink))], listens=True)

    def sender(self, bulk: Json, port: int) -> list[str]:
        """Return the command of a bulk sender, below `netnice run` for what only that can do."""
        at = bulk["from"] or "a"
        send = ["send", f"{ADDRESSES[bulk['to'] or 'b']}:{port}", "--flows", str(bulk["flows"])]
        send += ["--bytes", str(bulk["bytes"]), "--start", str(bulk["start_s"])]
        send += ["--stagger", str(bulk["stagger_s"])]
        if bulk["stop_s"] is not None:
            send += ["--duration", str(bulk["stop_s"])]
        settings = [word for k, v in bulk["set"].items() for word in ("--set", f"{k}={v}")]
        if bulk.get("quic"):
            send += [*quic(bulk, "sink"), "--control", bulk["control"], *settings]
            return in_netns(at, *self.timed(*send, *(["--group"] if bulk["group"] else [])))
        if not bulk["set"] and not bulk["group"] and not bulk.get("hold"):
            return in_netns(at, *self.timed(*send), "--control", bulk["control"])
        wrap = ["netnice", "run", "--algorithm", bulk["control"].removeprefix("nn_")]
        if bulk["group"]:
            wrap += ["--group", bulk["group"]]
        if "share" in bulk:
            wrap += ["--share", str(bulk["share"])]
        wrap += settings
        # netnice joins its cgroup outside of the namespace: it is found in every mount set-up.
        return [*wrap, "--", *in_netns(at, *self.timed(*send))]


def quic(flows: Json, server: str) -> list[str]:
    """Return netnice-load's options for flows over QUIC, whose server has a certificate."""
    return ["--quic", str(MEMORY / f"{server}.der")] if flows.get("quic") else []


def runs_of(background: Json) -> list[Json]:
    """Return the runs of a background: one, or one for each flow that has a share of its own."""
    shares = background["shares"]
    if not shares:
        return [background]
    return [
        {
            **background,
            "flows": 1,
            "share": share,
            "start_s": background["start_s"] + i * background["stagger_s"],
        }
        for i, share in enumerate(shares)
    ]
