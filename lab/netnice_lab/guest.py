# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""What runs inside the virtual machine: the network, the traffic, the measurement.

Usage: ``python3 -S -E guest.py JOB.json``. Standard library only; one JSON line on stdout for each
run that ended. The network of one run, made afresh each time:

    a (servers, bulk sender) ---- r (router) ---- b (clients, bulk receiver)
      10.0.1.1  fd00:1::1          bottleneck ->    10.0.2.2  fd00:2::2

- The bottleneck is ``tbf`` on r towards b; the queue under test is its child.
- The whole two-way delay is netem on b's egress, in the direction of the ACKs: the queue under test
  is then followed by a bare wire, and netem never holds (nor reorders, nor drops) data.
- Random loss is netem on a's egress, before the bottleneck: it takes no room in the queue.
- What paces is fq there.
- Jitter and reordering are netem on what b receives, behind the queue; that netem has a rate, so
  high that it takes no time, since netem then keeps the order of packets whose delays vary.
- A tbf that has rested lets two packets leave at once. Where a run is `serialised` it is one, and
  netem on what b receives takes the bottleneck's time for it: whatever arrives leaves both as it
  would a line that sends one packet after the other.
- Where a run is `duplex`, there is such a bottleneck on r towards a, too, and traffic from b to a.
"""

from __future__ import annotations

import html
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, NoReturn

MEMORY = Path("/run/netnice-lab")
"""In the guest's memory: programs and files that a run touches (see `vm`)."""

SERVER = "10.0.1.1"
CLIENT = "10.0.2.2"
ADDRESSES = {"a": SERVER, "b": CLIENT}
WEB_PORT = 80
TLS_PORT = 443
BULK_PORT = 5001
CROSS_PORT = 5101
"""Port of the first `[[cross]]`; the others follow."""

ECHO_PORT = 7
RSYNC_PORT = 873
ORIGIN_PORT = 8080
"""Of nginx behind the proxy, and of a second one that answers prefetches itself."""
IPERF_PORT = 5201
"""Port of the first server of iperf3; the others follow."""

PACKET = 1514
"""Bytes of a full Ethernet frame, the unit of a queue's limit."""

PACKET_MEMORY = 2304
"""Bytes of the guest's memory that a full packet occupies, the unit of CAKE's limit."""

HEAD_START_S = 1800.0
"""Guest seconds from starting the programs to the experiment's t = 0; idle time costs nothing."""

GREATEST_LAG_S = 0.1
"""A run whose fetches or changes come later than this after their time does not count."""

GREATEST_SHARES_LAG_S = 0.25
"""Likewise for changed shares: each is a call of `netnice share`, 50 ms of the guest's time."""

TCP_CONTROLS = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")

Json = dict[str, Any]


def fail(what: str) -> NoReturn:
    """End this VM with a sentence on stderr."""
    print(what, file=sys.stderr, flush=True)
    sys.exit(1)


def call(*command: str, stdin: str | None = None) -> str:
    """Run a command to its end and return what it printed; a failure ends the VM."""
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        given = f" given\n{stdin}" if stdin else ""
        fail(f"{' '.join(command)} failed ({done.returncode}): {done.stderr.strip()}{given}")
    return done.stdout


def into_memory(paths: list[str]) -> None:
    """Copy programs, their libraries and data into memory, and make everything use the copies."""
    MEMORY.mkdir(parents=True)
    for path in paths:
        shutil.copy(path, MEMORY)
    os.environ["PATH"] = f"{MEMORY}:{os.environ['PATH']}"
    os.environ["LD_LIBRARY_PATH"] = str(MEMORY)
    os.chdir(MEMORY)


def load_controls(modules: list[str], names: list[str], netnice: str | None) -> None:
    """Make every congestion control that the runs use available."""
    for module in modules:
        done = subprocess.run(["insmod", module], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            fail(
                f"The module {module} cannot be loaded into {os.uname().release}: "
                f"{done.stderr.strip()}. Build it against linux-headers-{os.uname().release}."
            )
    if any(name.startswith("nn_") for name in names):
        if netnice is None:
            fail("The nn_* controls need target/release/netnice. Run make build.")
        call(netnice, "enable")
    for name in names:
        if name not in TCP_CONTROLS.read_text().split():
            subprocess.run(["modprobe", "-q", f"tcp_{name}"], check=False)
        available = TCP_CONTROLS.read_text().split()
        if name not in available:
            fail(
                f"The congestion control {name} is neither in this kernel nor a module of it. "
                f"Available: {', '.join(sorted(available))}; "
                "give an out-of-tree one with --module FILE.ko."
            )


def in_netns(name: str, *command: str) -> list[str]:
    """Return the command that runs `command` in a network namespace, other mounts unchanged."""
    return ["nsenter", f"--net=/run/netns/{name}", *command]


def fifo(bottleneck: Json) -> str:
    """Return the `tc` words of a drop-tail queue with the bottleneck's room."""
    if "limit_bytes" in bottleneck:
        return f"bfifo limit {bottleneck['limit_bytes']}"
    return f"pfifo limit {bottleneck['limit_packets']}"


def queue_lines(queue: str, bottleneck: Json) -> list[str]:
    """Return the `tc` lines that put the queue under test below the bottleneck's tbf (1:)."""
    under = "qdisc add dev rb parent 1: handle 10:"
    limit: Any = bottleneck.get("limit_packets")
    ecn = " ecn" if bottleneck["ecn"] else ""
    if queue == "drop-tail":
        return [f"{under} {fifo(bottleneck)}"]
    if queue == "red":
        # tc-red(8): min a third of max, burst for (2 min + max) / 3 average packets.
        size = bottleneck["limit_bytes"] if limit is None else limit * PACKET
        top, low = size // 2, size // 6
        burst = (2 * low + top) // (3 * 1000) + 1
        return [
            f"{under} red limit {size} min {low} max {top} avpkt 1000 burst {burst} "
            f"probability 0.02 bandwidth {bottleneck['rate_mbit']}mbit{ecn}"
        ]
    if queue in ("codel", "fq_codel", "pie"):
        return [f"{under} {queue} limit {limit}{ecn}"]
    if queue == "cake":
        return [f"{under} cake unlimited memlimit {limit * PACKET_MEMORY}"]
    # Priority: all in band 1 but what is marked DSCP LE (RFC 8622), or is bulk of this lab.
    lines = [
        f"{under} prio bands 2 priomap {' '.join(['0'] * 16)}",
        f"qdisc add dev rb parent 10:1 handle 11: {fifo(bottleneck)}",
        f"qdisc add dev rb parent 10:2 handle 12: {fifo(bottleneck)}",
    ]
    matches = [("ip", "ip dsfield 0x04 0xfc"), ("ipv6", "ip6 priority 0x04 0xfc")]
    matches += [("ip", f"ip dport {port} 0xffff") for port in (BULK_PORT, RSYNC_PORT)]
    for priority, (protocol, match) in enumerate(matches, 1):
        lines.append(
            f"filter add dev rb parent 10: protocol {protocol} prio {priority} "
            f"u32 match {match} flowid 10:2"
        )
    return lines


def build_network(
    scenario: Json, queue: str, *, serialised: bool = False, duplex: bool = False
) -> None:
    """Make the three namespaces, links, addresses, delay, loss, and the queue under test."""
    bottleneck: Json = scenario["bottleneck"]
    rate_mbit, jitter, later = (bottleneck[k] for k in ("rate_mbit", "jitter_ms", "reorder_ms"))
    if serialised and (jitter > 0 or later > 0 or bottleneck["change"]):
        fail("A serialised bottleneck has neither jitter, nor reordering, nor changes here.")
    delayed_acks = scenario.get("delayed_acks", True)
    call(
        "ip", "-batch", "-",
        stdin="netns add a\nnetns add r\nnetns add b\n"
        "link add a0 netns a type veth peer name ra netns r\n"
        "link add rb netns r type veth peer name b0 netns b\n",
    )  # fmt: skip
    addresses = {
        "a": [("a0", "10.0.1.1/24", "fd00:1::1/64")],
        "r": [("ra", "10.0.1.254/24", "fd00:1::254/64"), ("rb", "10.0.2.254/24", "fd00:2::254/64")],
        "b": [("b0", "10.0.2.2/24", "fd00:2::2/64")],
    }
    for netns, links in addresses.items():
        lines = ["link set lo up"]
        for link, v4, v6 in links:
            lines += [f"addr add {v4} dev {link}", f"addr add {v6} dev {link} nodad"]
            lines += [f"link set {link} up"]
        if netns != "r":
            net = {"a": 1, "b": 2}[netns]
            at_once = " quickack 1" if netns == "b" and not delayed_acks else ""
            lines += [f"route add default via 10.0.{net}.254{at_once}"]
            lines += [f"route add default via fd00:{net}::254{at_once}"]
        call("ip", "-n", netns, "-batch", "-", stdin="\n".join(lines))
        settings = [f"ethtool -K {link} tso off gso off gro off" for link, _, _ in links]
        if netns == "r":
            settings += ["echo 1 > /proc/sys/net/ipv4/ip_forward"]
            settings += ["echo 1 > /proc/sys/net/ipv6/conf/all/forwarding"]
        else:
            settings += ["echo 1 > /proc/sys/net/ipv4/tcp_no_metrics_save"]
            settings += ["echo cubic > /proc/sys/net/ipv4/tcp_congestion_control"]
            if bottleneck["ecn"]:
                settings += ["echo 1 > /proc/sys/net/ipv4/tcp_ecn"]
        call(*in_netns(netns, "sh", "-e", "-c", "\n".join(settings)))

    lines = bottleneck_lines(queue, bottleneck, 1 if serialised else 2, duplex=duplex)
    call("tc", "-n", "r", "-batch", "-", stdin="\n".join(lines))
    if bottleneck["rtt_ms"] > 0:
        call("tc", "-n", "b", *delay(bottleneck["rtt_ms"]))
    if bottleneck["loss"] > 0:
        loss = f"loss {100 * bottleneck['loss']}% limit 1000000"
        call("tc", "-n", "a", "-batch", "-", stdin=f"qdisc add dev a0 root netem {loss}")
    if scenario.get("pacing"):
        call("tc", "-n", "a", "qdisc", "add", "dev", "a0", "root", "fq")
    if serialised:
        receive_through(f"rate {rate_mbit}mbit")
    if jitter > 0 or later > 0:
        reorder = f"reorder {100 * bottleneck['reorder']}%" if bottleneck["reorder"] else ""
        # netem draws from the mean -/+ the second number, uniformly.
        receive_through(f"delay {later + jitter / 2}ms {jitter / 2}ms {reorder} rate 1000gbit")


def bottleneck_lines(queue: str, bottleneck: Json, at_once: int, *, duplex: bool) -> list[str]:
    """Return the `tc` lines of the bottleneck; if it is `duplex`, towards a as towards b."""
    # tbf's own limit would be a second queue; its child replaces that queue at once.
    shaper = f"qdisc add dev rb root handle 1: {shape(bottleneck['rate_mbit'], at_once)}"
    lines = [shaper, *queue_lines(queue, bottleneck)]
    return lines + ([line.replace("dev rb", "dev ra") for line in lines] if duplex else [])


def receive_through(netem: str) -> None:
    """Have what b receives pass netem, in an ifb, since only what leaves a device can wait."""
    call("ip", "-n", "b", "-batch", "-", stdin="link add ifb0 type ifb\nlink set ifb0 up\n")
    call(
        "tc", "-n", "b", "-batch", "-",
        stdin=f"qdisc add dev ifb0 root netem {netem} limit 1000000\n"
        "qdisc add dev b0 ingress\n"
        "filter add dev b0 parent ffff: matchall action mirred egress redirect dev ifb0\n",
    )  # fmt: skip


def shape(rate_mbit: float, packets: int = 2) -> str:
    """Return the `tc` words of the bottleneck's rate, and of what leaves at once after a rest."""
    return f"tbf rate {rate_mbit}mbit burst {packets * PACKET} limit 1000000"


def delay(rtt_ms: float) -> list[str]:
    """Return the `tc` words that set the whole two-way delay, in b."""
    return ["qdisc", "replace", *f"dev b0 root netem delay {rtt_ms}ms limit 1000000".split()]


def change_lines(bottleneck: Json, queue: str, change: Json) -> dict[str, list[str]]:
    """Return the `tc` lines that carry out a `[[bottleneck.change]]`, by network namespace."""
    lines: dict[str, list[str]] = {}
    if "rate_mbit" in change:
        lines["r"] = [f"qdisc change dev rb root handle 1: {shape(change['rate_mbit'])}"]
        if queue == "drop-tail":
            # tbf has given its own limit to a FIFO below it.
            lines["r"] += [f"qdisc change dev rb parent 1: handle 10: {fifo(bottleneck)}"]
    if "rtt_ms" in change:
        lines["b"] = [" ".join(delay(change["rtt_ms"]))]
    return lines


def remove_network() -> None:
    """Delete the namespaces, and with them their links and queues."""
    call("ip", "-batch", "-", stdin="netns del a\nnetns del r\nnetns del b\n")


def queue_statistics() -> Json:
    """Return what passed the bottleneck, what it dropped, and what it marked if it can."""
    shown = json.loads(call("tc", "-n", "r", "-s", "-j", "qdisc", "show", "dev", "rb"))
    (root,) = [q for q in shown if q.get("root")]
    (queue,) = [q for q in shown if q["handle"] == "10:"]
    out = {"drops": root["drops"], "sent_packets": root["packets"], "sent_bytes": root["bytes"]}
    for name in ("marked", "ecn_mark"):
        if name in queue:
            out["marks"] = queue[name]
    return out


class Program:
    """A running program of the traffic; `wait` and `stop` fail loudly if it failed."""

    def __init__(self, command: list[str], *, listens: bool = False) -> None:
        """Start it; if it `listens`, return once it says so."""
        self.command = command
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        if listens:
            assert self.process.stdout is not None
            line = self.process.stdout.readline()
            if not line.startswith("listening"):
                self.wait()
                fail(f"{' '.join(command)} said {line!r} where 'listening ADDRESS' was expected.")

    def wait(self) -> None:
        """Wait for its end."""
        self._check(self.process.wait())

    def stop(self) -> None:
        """Ask it to end, and wait."""
        self.process.terminate()
        # Programs without results to write end by the signal itself.
        self._check(self.process.wait(), -signal.SIGTERM, 128 + signal.SIGTERM)

    def _check(self, status: int, *good: int) -> None:
        if status not in (0, *good):
            fail(f"{' '.join(self.command)} ended with status {status}.")


def access_links(paths: list[Json], rtt_ms: float) -> list[str]:
    """Put destinations behind links of their own; return their addresses in b.

    Of each link the rate, the room of its queue and the two-way delay are given: its queue is on
    what b receives (by way of an ifb), its delay on what b sends. All else has `rtt_ms`.
    """
    addresses = [f"10.0.2.{i}" for i in range(1, 254) if f"10.0.2.{i}" != CLIENT][: len(paths)]
    if len(addresses) < len(paths):
        fail(f"There is room for {len(addresses)} destinations.")
    links = [f"addr add {address}/24 dev b0\n" for address in addresses]
    links += ["link add ifb0 type ifb\nlink set ifb0 up\n"]
    call("ip", "-n", "b", "-batch", "-", stdin="".join(links))
    delays = sorted({path["rtt_ms"] for path in paths})
    lines = [
        f"qdisc replace dev b0 root handle 1: prio bands {len(delays) + 1} priomap{16 * ' 0'}",
        f"qdisc add dev b0 parent 1:1 netem delay {rtt_ms}ms limit 1000000",
        *(
            f"qdisc add dev b0 parent 1:{band:x} netem delay {delay_ms}ms limit 1000000"
            for band, delay_ms in enumerate(delays, 2)
        ),
        "qdisc add dev b0 ingress",
        "filter add dev b0 parent ffff: matchall action mirred egress redirect dev ifb0",
        "qdisc add dev ifb0 root handle 2: htb direct_qlen 1000",
    ]
    for number, (path, address) in enumerate(zip(paths, addresses, strict=True), 1):
        rate, band = path["rate_mbit"], delays.index(path["rtt_ms"]) + 2
        u32 = "protocol ip prio 1 u32 match ip"
        lines += [
            f"filter add dev b0 parent 1: {u32} src {address}/32 flowid 1:{band:x}",
            f"class add dev ifb0 parent 2: classid 2:{number:x} htb rate {rate}mbit "
            f"burst {2 * PACKET} cburst {2 * PACKET}",
            f"qdisc add dev ifb0 parent 2:{number:x} pfifo limit {path['limit_packets']}",
            f"filter add dev ifb0 parent 2: {u32} dst {address}/32 flowid 2:{number:x}",
        ]
    call("tc", "-n", "b", "-batch", "-", stdin="\n".join(lines))
    return addresses


class Replication:
    """rsync, or `netnice replicate`, copies a directory from a to daemons in b.

    `run["copy"]` has: `wrap`, the command below which it runs; `options` for rsync; `control`, the
    congestion control of a; `replicate`, whether netnice shall do it itself; `paths`, a destination
    behind each of these (see `access_links`) instead of a single one; `together`, whether rsync
    copies to all of them at the same time instead of one by one; `sample_s`, the time between looks
    at what has passed the bottleneck. All but the first may be missing.
    """

    def __init__(self, job: Json, run: Json) -> None:
        """Start the daemon with an empty directory to receive into."""
        self.source = MEMORY / "source"
        self.how: Json = run["copy"]
        addresses = [CLIENT]
        if paths := self.how.get("paths"):
            addresses = access_links(paths, job["scenario"]["bottleneck"]["rtt_ms"])
        self.targets = [MEMORY / f"copy{i}" for i in range(len(addresses))]
        self.places = [
            f"rsync://{address}:{RSYNC_PORT}/copy{i}/" for i, address in enumerate(addresses)
        ]
        self.start_s: float = job["scenario"]["warmup_s"]
        if not self.source.exists():
            self.source.mkdir()
            call("tar", "-xf", job["archive"], "-C", str(self.source))
        modules = ""
        for target in self.targets:
            shutil.rmtree(target, ignore_errors=True)
            target.mkdir()
            modules += f"[{target.name}]\npath = {target}\nread only = no\n"
        if control := self.how.get("control"):
            setting = "/proc/sys/net/ipv4/tcp_congestion_control"
            call(*in_netns("a", "sh", "-c", f"echo {control} > {setting}"))
        config = MEMORY / "rsyncd.conf"
        config.write_text(f"use chroot = no\nuid = 0\ngid = 0\n{modules}")
        daemon = ["rsync", "--daemon", "--no-detach", f"--config={config}"]
        self.daemon = Program(in_netns("b", *daemon, f"--port={RSYNC_PORT}"))
        # The daemon does not say when it listens; asking it does.
        list_modules = in_netns("b", "rsync", f"rsync://{CLIENT}:{RSYNC_PORT}/")
        while subprocess.run(list_modules, capture_output=True, check=False).returncode != 0:
            if self.daemon.process.poll() is not None:
                self.daemon.wait()
            time.sleep(0.1)

    def command(self) -> list[str]:
        """Return the command that copies."""
        options: list[str] = self.how.get("options", [])
        if self.how.get("replicate"):
            state = MEMORY / "state"
            shutil.rmtree(state, ignore_errors=True)
            return in_netns("a", "netnice", "replicate", "--state", str(state),
                            f"{self.source}/", *self.places, "--", *options)  # fmt: skip
        sync = ["rsync", "--archive", "--numeric-ids", *options, f"{self.source}/"]
        if len(self.places) == 1:
            return [*self.how["wrap"], *in_netns("a", *sync, *self.places)]
        copies = [shlex.join([*sync, place]) for place in self.places]
        if self.how.get("together"):
            copies = [f'{copy} & all="$all $!"' for copy in copies]
            copies.append("for one in $all; do wait $one; done")
        return [*self.how["wrap"], *in_netns("a", "sh", "-e", "-c", "\n".join(copies))]

    def copy(self, epoch: float, end_s: float) -> Json:
        """Copy, from the end of the warm-up on; return when it ended, in seconds from `epoch`."""
        command = self.command()
        time.sleep(max(0.0, epoch + self.start_s - time.time()))
        program = Program(command)
        samples: list[list[float]] = []
        if step := self.how.get("sample_s"):
            while program.process.poll() is None and time.time() < epoch + end_s:
                samples.append([time.time() - epoch, queue_statistics()["sent_bytes"]])
                time.sleep(step)
        try:
            program.process.wait(epoch + end_s - time.time())
        except subprocess.TimeoutExpired:
            program.stop()
            fail(
                f"{' '.join(command)} had not finished after "
                f"{end_s - self.start_s:.0f} s, when the users stopped. "
                "Copy less (--size), or let them go on (--set measure_s=600)."
            )
        done_s = time.time() - epoch
        program.wait()
        self.daemon.stop()
        return {"start_s": self.start_s, "end_s": done_s, "samples": samples}

    def compare(self) -> Json:
        """Compare the copies with their source byte for byte; any difference ends the VM."""
        files = self.files(self.source)
        size = 0
        for target in self.targets:
            if files != (copied := self.files(target)):
                fail(f"The copy has other files than its source: {sorted(files ^ copied)[:5]}")
            for file in files:
                content = (self.source / file).read_bytes()
                if content != (target / file).read_bytes():
                    fail(f"{file} in the copy differs from its source.")
                size += len(content)
        return {"files": len(self.targets) * len(files), "bytes": size}

    @staticmethod
    def files(top: Path) -> set[str]:
        """Return the relative paths of all files below `top`."""
        return {
            str((Path(where) / name).relative_to(top))
            for where, _, names in os.walk(top)
            for name in names
        }


class Replay:
    """Clients in b replay a web log at `netnice-prefetch serve` in a, which stands before nginx.

    `run["replay"]` has: `site` and `options`, words for `netnice-prefetch site` and for its
    `replay`, which begin with the log; `second`, whether a second nginx answers the prefetches in
    the foreground instead of the proxy.
    """

    TYPES = "application/octet-stream bz2 gz ico jar pdf png gif jpg tar zip"

    def __init__(self, job: Json, run: Json) -> None:
        """Write the site that the log tells of."""
        del job
        self.how: Json = run["replay"]
        self.site = MEMORY / "site"
        if not self.site.exists():
            call("netnice-prefetch", "site", *self.how["site"], "--root", str(self.site))

    def nginx(self, address: str) -> Program:
        """Start nginx in a, and return it once it listens."""
        config = MEMORY / f"nginx-{address}.conf"
        config.write_text(
            "daemon off; master_process off; error_log stderr; events {}\n"
            f"pid {config}.pid;\n"
            "http {\naccess_log off; default_type text/html;\n"
            f"types {{ {self.TYPES}; text/css css; text/javascript js; }}\n"
            f"server {{ listen {address}:{ORIGIN_PORT}; root {self.site}; "
            "location / { try_files $request_uri $request_uri/index.html =404; } }\n}\n"
        )
        program = Program(in_netns("a", "nginx", "-e", "stderr", "-c", str(config)))
        # It does not say when it listens; the kernel does.
        place = bytes(reversed([int(part) for part in address.split(".")])).hex().upper()
        listening = f"{place}:{ORIGIN_PORT:04X} 00000000:0000 0A"
        while listening not in call(*in_netns("a", "cat", "/proc/net/tcp")):
            if program.process.poll() is not None:
                program.wait()
            time.sleep(0.1)
        return program

    @staticmethod
    def use_reno() -> None:
        """Have everything in a leave under Reno that is not told otherwise."""
        setting = "/proc/sys/net/ipv4/tcp_congestion_control"
        call(*in_netns("a", "sh", "-c", f"echo reno > {setting}"))

    def measure(self) -> Json:
        """Replay, and return what the clients saw."""
        self.use_reno()
        servers = [self.nginx("127.0.0.1")]
        proxy = ["netnice-prefetch", "serve", "--listen", f"{SERVER}:{WEB_PORT}"]
        proxy += ["--origin", f"http://127.0.0.1:{ORIGIN_PORT}"]
        servers.append(Program(in_netns("a", *proxy), listens=True))
        replay = ["netnice-prefetch", "replay", *self.how["options"], "--json"]
        replay += ["--to", f"{SERVER}:{WEB_PORT}"]
        if self.how["second"]:
            servers.append(self.nginx(SERVER))
            replay += ["--prefetch-to", f"{SERVER}:{ORIGIN_PORT}"]
        found: Json = json.loads(call(*in_netns("b", *replay)))["summary"]
        queue = queue_statistics()
        for server in reversed(servers):
            server.stop()
        return {"summary": found, "queue": queue}


GIF = bytes.fromhex(
    "47494638396101000100800000000000ffffff21f90401000000002c00000000010001000002024401003b"
)
"""An image of one point, which may have any bytes behind it."""


def tag(path: str) -> str:
    """Return what makes a page need an object, or nothing for what is not part of a page."""
    quoted = html.escape(path)
    if path.endswith(".css"):
        return f'<link rel=stylesheet href="{quoted}">\n'
    if path.endswith(".js"):
        return f'<script src="{quoted}"></script>\n'
    if path.endswith((".gif", ".ico", ".jpg", ".png")):
        return f'<img src="{quoted}">\n'
    return ""


class Browse(Replay):
    """Chromium in b walks through the site, and maybe a second one downloads from it meanwhile.

    `run["browse"]` has: `site`, words for `netnice-prefetch site`; `learn`, the log that the proxy
    has learned; `proxy`, more of its configuration, or null for nginx without it; `tls`, files of
    its certificate and key, or null for plain HTTP; `program`, Chromium, and `flags` for it;
    `walks`, lists of paths, and `think_s`, as in `browse`; `download`, bytes of the file that the
    second browser fetches again and again, or 0 for no such browser. `job["objects"]` has every
    path, with the paths of what a page needs, or null for what is no page.
    """

    TYPES = "image/gif gif ico jpg png; application/octet-stream bin bz2 gz jar pdf tar zip"

    FILE = "download.bin"
    AGE_S = 30 * 86400
    """Of the site's files, from which browsers derive how long they may use them."""

    def __init__(self, job: Json, run: Json) -> None:
        """Write the site as browsers need it."""
        self.how: Json = run["browse"]
        self.site = MEMORY / "site"
        self.objects: dict[str, list[str] | None] = job["objects"]
        if not self.site.exists():
            call("netnice-prefetch", "site", *self.how["site"], "--root", str(self.site))
            for path, objects in self.objects.items():
                self.dress(path, objects)
            (self.site / self.FILE).write_bytes(bytes(self.how["download"]))
            long_ago = time.time() - self.AGE_S
            for file in self.site.rglob("*"):
                os.utime(file, (long_ago, long_ago))

    def dress(self, path: str, objects: list[str] | None) -> None:
        """Make a page of an object's bytes, or an image, if it is one."""
        file = self.site / path.strip("/")
        file = file / "index.html" if file.is_dir() else file
        content = file.read_bytes()
        if objects is not None:
            tags = "".join(map(tag, objects))
            head = f"<!doctype html><title>{path}</title>\n{tags}<p>{path}</p>\n<!--".encode()
            content = head + content[len(head) + 3 :] + b"-->"
        elif tag(path).startswith("<img"):
            content = GIF + content[len(GIF) :]
        file.write_bytes(content)

    def measure(self) -> Json:
        """Walk, and return what the browsers saw."""
        self.use_reno()
        log = MEMORY / "access.log"
        log.write_text("")
        if self.how["proxy"] is None:
            servers = [self.nginx(SERVER)]
            base = f"http://{SERVER}:{ORIGIN_PORT}"
        else:
            servers = [self.nginx("127.0.0.1"), self.proxy(log)]
            base = f"{'https' if self.how['tls'] else 'http'}://{SERVER}"
        # It suggests only what it has seen the origin answer.
        asked = self.task("a", ask=[base + path for path in self.objects])
        if asked["failed"]:
            fail(f"{asked['failed']} of {len(self.objects)} objects were not served.")
        seen = log.stat().st_size
        before = queue_statistics()
        found = self.task(
            "b", program=str(MEMORY / self.how["program"]), flags=self.how["flags"],
            profile=str(MEMORY / "profile"),
            walks=[[base + path for path in walk] for walk in self.how["walks"]],
            think_s=self.how["think_s"],
            download=f"{base}/{self.FILE}" if self.how["download"] else None,
        )  # fmt: skip
        queue = queue_statistics()
        for server in reversed(servers):
            server.stop()
        with log.open() as lines:
            lines.seek(seen)
            answers = lines.read().splitlines()
        return {
            **found, "log": answers, "queue": {key: queue[key] - before[key] for key in queue}
        }  # fmt: skip

    def proxy(self, log: Path) -> Program:
        """Start the proxy in a, before nginx, and return it once it listens."""
        model, config = MEMORY / "model", MEMORY / "proxy.toml"
        call("netnice-prefetch", "learn", "--anew", "--model", str(model), self.how["learn"])
        port, tls = WEB_PORT, ""
        if self.how["tls"]:
            port, files = TLS_PORT, [MEMORY / name for name in self.how["tls"]]
            tls = '[tls]\ncert = "{}"\nkey = "{}"\n'.format(*files)
        config.write_text(
            f'listen = ["{SERVER}:{port}"]\norigin = "http://127.0.0.1:{ORIGIN_PORT}"\n'
            f'model = "{model}"\naccess_log = "{log}"\n{self.how["proxy"]}\n{tls}'
        )
        serve = ["netnice-prefetch", "serve", "--config", str(config)]
        return Program(in_netns("a", *serve), listens=True)

    def task(self, netns: str, **task: object) -> Json:
        """Have `browse` carry out a task in a namespace, and return what it found."""
        file = MEMORY / "task.json"
        file.write_text(json.dumps(task))
        program = Path(__file__).with_name("browse.py")
        python = [sys.executable, "-S", "-E", str(program), str(file)]
        found: Json = json.loads(call(*in_netns(netns, *python)))
        return found


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
        Replay.use_reno()
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
        foreground = self.scenario.get("foreground")
        fetching = foreground is not None and foreground["load"] > 0
        interval = (foreground or {}).get("probe_interval_ms")
        background, crosses = self.run["background"], self.scenario["cross"]
        listeners: list[Program] = []
        stopped: list[Program | Change] = []
        awaited: list[Program] = []
        out = str(MEMORY) + "/{}.json"
        replication = Replication(self.job, self.run) if self.run.get("copy") else None
        self.epoch = time.time() + HEAD_START_S
        if fetching:
            serve = ["serve", "--listen", f"{SERVER}:{WEB_PORT}"]
            serve += ["--control", foreground["control"]]
            listeners.append(Program(in_netns("a", self.load, *serve), listens=True))
        if interval:
            echo = ["echo", "--listen", f"{SERVER}:{ECHO_PORT}"]
            listeners.append(Program(in_netns("a", self.load, *echo), listens=True))
        bulks = runs_of(background) if background else []
        listeners += [self.sink(BULK_PORT + i, f"sink{i}") for i in range(len(bulks))]
        senders = [Program(self.sender(bulk, BULK_PORT + i)) for i, bulk in enumerate(bulks)]
        listeners += [
            self.sink(CROSS_PORT + i, f"cross{i}", at=cross.get("to", "b"))
            for i, cross in enumerate(crosses)
        ]
        stopped += senders
        stopped += [Program(self.sender(c, CROSS_PORT + i)) for i, c in enumerate(crosses)]
        stopped += self.changes(background, senders)
        if fetching:
            fetch = ["fetch", self.job["scenario_file"], "--from", f"{SERVER}:{WEB_PORT}"]
            fetch += ["--seed", str(self.run["seed"]), "--data", self.job["data"]]
            fetch += ["--json", out.format("fetch")]
            awaited.append(Program(in_netns("b", *self.timed(*fetch))))
        if interval:
            probe = ["probe", f"{SERVER}:{ECHO_PORT}", "--interval-ms", str(interval)]
            probe += ["--duration", str(self.end_s), "--json", out.format("probe")]
            awaited.append(Program(in_netns("b", *self.timed(*probe))))
        if time.time() > self.epoch - 1:
            fail("The programs took longer to start than HEAD_START_S in guest.py allows.")
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
            changes.append(Change(self.epoch, change["at_s"], tools, GREATEST_SHARES_LAG_S))
        return changes

    def sinks(self, count: int) -> Json:
        """Return what the receivers of the background found, as if they were one."""
        found = [self.result(f"sink{i}") for i in range(count)]
        return {**found[0], "flows": [flow for sink in found for flow in sink["flows"]]}

    def sink(self, port: int, name: str, at: str = "b") -> Program:
        """Start a receiver of bulk flows."""
        sink = ["sink", "--listen", f"{ADDRESSES[at]}:{port}"]
        sink += ["--warmup", str(self.scenario["warmup_s"])]
        sink += ["--measure", str(self.scenario["measure_s"])]
        sink += ["--json", str(MEMORY / f"{name}.json")]
        return Program(in_netns(at, *self.timed(*sink)), listens=True)

    def sender(self, bulk: Json, port: int) -> list[str]:
        """Return the command of a bulk sender, below `netnice run` for parameters and a group."""
        at = bulk.get("from", "a")
        send = ["send", f"{ADDRESSES[bulk.get('to', 'b')]}:{port}", "--flows", str(bulk["flows"])]
        send += ["--bytes", str(bulk["bytes"]), "--start", str(bulk["start_s"])]
        send += ["--stagger", str(bulk["stagger_s"])]
        if "stop_s" in bulk:
            send += ["--duration", str(bulk["stop_s"])]
        if not bulk.get("set") and "group" not in bulk:
            return in_netns(at, *self.timed(*send), "--control", bulk["control"])
        wrap = ["netnice", "run", "--algorithm", bulk["control"].removeprefix("nn_")]
        if "group" in bulk:
            wrap += ["--group", bulk["group"]]
        if "share" in bulk:
            wrap += ["--share", str(bulk["share"])]
        for name, value in bulk["set"].items():
            wrap += ["--set", f"{name}={value}"]
        # netnice joins its cgroup outside of the namespace: it is found in every mount set-up.
        return [*wrap, "--", *in_netns(at, *self.timed(*send))]


def runs_of(background: Json) -> list[Json]:
    """Return the runs of a background: one, or one for each flow that has a share of its own."""
    shares = background.get("shares")
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


class Change(threading.Thread):
    """Carries out a change of the bottleneck, or of a group's shares, at its time.

    What it needs runs and waits long before: to start a program takes a tenth of a second here, and
    far longer if it comes from the host.
    """

    def __init__(
        self,
        epoch: float,
        at_s: float,
        tools: list[tuple[list[str], list[str]]],
        greatest_lag_s: float = GREATEST_LAG_S,
    ) -> None:
        """Begin to wait; each of the tools reads its words."""
        super().__init__(daemon=True)
        self.at_s, self.greatest_lag_s = at_s, greatest_lag_s
        self.epoch = epoch
        self.tools = [
            (subprocess.Popen(tool, stdin=subprocess.PIPE), words) for tool, words in tools
        ]
        self.stopped = threading.Event()
        self.lag_s: float | None = None
        self.start()

    def run(self) -> None:
        """Wait, then change it, unless it is stopped."""
        due = not self.stopped.wait(max(0.0, self.epoch + self.at_s - time.time()))
        for tool, words in self.tools:
            tool.communicate("\n".join(words).encode() if due else b"")
        if due and not any(tool.returncode for tool, _ in self.tools):
            self.lag_s = time.time() - self.epoch - self.at_s

    def stop(self) -> None:
        """Wait no longer; fail loudly if the change was due, and was not made in time."""
        due = time.time() >= self.epoch + self.at_s
        self.stopped.set()
        self.join()
        if due and (self.lag_s is None or self.lag_s > self.greatest_lag_s):
            fail(f"The change at {self.at_s} s was not made in time (lag: {self.lag_s} s).")


def main() -> None:
    """Carry out the job named on the command line."""
    job: Json = json.loads(Path(sys.argv[1]).read_text())
    into_memory(job["memory"])
    load_controls(job["modules"], job["controls"], job["netnice"])
    for run in job["runs"]:
        build_network(
            job["scenario"], run["queue"], serialised=bool(run.get("serialised")),
            duplex=bool(run.get("duplex")),
        )  # fmt: skip
        kinds: Json = {"replay": Replay, "browse": Browse, "division": Division}
        kind = next((kinds[name] for name in kinds if run.get(name)), Traffic)
        outcome = kind(job, run).measure()
        remove_network()
        print(json.dumps({"run": run["index"], **outcome}), flush=True)


if __name__ == "__main__":
    main()
