# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Network namespaces, programs in them, and what netnice may not leave behind."""

from __future__ import annotations

import ctypes
import functools
import itertools
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self, TypeVar

from netnice_lab.guest.places import BULK_PORT, CLIENT, CLIENT6, PACKET, SERVER, SERVER6
from netnice_lab.guest.programs import closure, into_memory
from netnice_lab.guest.row import Row
from netnice_lab.tools import LOAD, NETNICE

ROOT = Path(__file__).resolve().parents[2]
IN_VM = "virtme" in Path("/proc/cmdline").read_text()

PATIENCE_S = 900.0 if IN_VM else 120.0
"""How long a condition may take. Virtual time runs on while the VM waits for the host's files."""

MEMORY = Path("/run/netnice-test")
"""On a tmpfs: programs that other users may run, and that the VM need not fetch from the host."""

NOBODY = 65534
LE = 1 << 2
"""The TOS octet of DSCP LE (RFC 8622): the code point 1 above the two bits of ECN."""

TCP_CONGESTION = 13
CONTROLS = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
TOOLS = ("ip", "tc", "ss", "ethtool", "nsenter", "bpftool", "setpriv", "busybox", "sh", "cat")
PYTHON = "/usr/bin/python3"
"""For commands under test: other users may run it."""

Json = Any
Condition = TypeVar("Condition")


def wait_until(
    what: str, condition: Callable[[], Condition], timeout_s: float = PATIENCE_S
) -> Condition:
    """Return the first true value of `condition`; fail with `what` after `timeout_s` seconds."""
    deadline = time.monotonic() + timeout_s
    pause_s = 0.01
    while True:
        late = time.monotonic() > deadline
        if value := condition():
            return value
        if late:
            raise AssertionError(f"after {timeout_s:.0f} s still not: {what}")
        time.sleep(pause_s)
        # looking costs more than waiting where time is virtual
        pause_s = min(2 * pause_s, 1.0 if IN_VM else 0.05)


def prepare_programs() -> None:
    """Copy what is under test into memory, in the VM the tools too, and make PATH lead there."""
    shutil.rmtree(MEMORY, ignore_errors=True)
    ours = [NETNICE, LOAD]
    for program in ours:
        if not program.exists():
            raise RuntimeError(f"{program} is not built. Run make build.")
    sbin = os.environ["PATH"] + ":/usr/sbin:/sbin"
    tools = {name: shutil.which(name, path=sbin) for name in TOOLS}
    for name, found in tools.items():
        if found is None:
            raise RuntimeError(f"{name} was not found. Install it (iproute2, ethtool, util-linux, "
                               "bpftool, busybox-static).")  # fmt: skip
    if IN_VM:
        into_memory(closure([*ours, *(Path(found) for found in tools.values() if found)]), MEMORY)
        os.environ["LD_LIBRARY_PATH"] = str(MEMORY)
    else:
        into_memory(map(str, ours), MEMORY)
    os.environ["PATH"] = f"{MEMORY}:{sbin}"


def call(*command: str, stdin: str | None = None) -> str:
    """Run a command to its end and return its output; its failure fails the test."""
    done = subprocess.run(
        command, input=stdin, capture_output=True, text=True, check=False, timeout=PATIENCE_S
    )
    if done.returncode != 0:
        given = f" given\n{stdin}" if stdin else ""
        raise AssertionError(f"{' '.join(command)}: {done.returncode}: {done.stderr}{given}")
    return done.stdout


def _runs(stat: Path) -> bool:
    return stat.read_text().rpartition(")")[2].split()[0] != "T"


class Process:
    """A program under test, in a session of its own; killed with its group at the end."""

    def __init__(self, command: Sequence[str], *, stdin: int = subprocess.PIPE) -> None:
        """Start `command`; its output is text, its standard error goes where the test's goes."""
        self.command = list(command)
        self.popen = subprocess.Popen(
            self.command, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            start_new_session=True, text=True, bufsize=1,
        )  # fmt: skip
        self.pid = self.popen.pid
        self.errors = ""
        self._reader = threading.Thread(target=self._read_errors, daemon=True)
        self._reader.start()

    def _read_errors(self) -> None:
        assert self.popen.stderr is not None
        for line in self.popen.stderr:
            self.errors += line

    def line(self) -> str:
        """Return the next line of the output; fail if there is none."""
        assert self.popen.stdout is not None
        line = self.popen.stdout.readline()
        if not line:
            self.popen.wait(PATIENCE_S)
            self._reader.join(PATIENCE_S)
            raise AssertionError(f"{self} ended: {self.popen.returncode}: {self.errors}")
        return line.rstrip("\n")

    def tell(self, text: str) -> None:
        """Write a line to its standard input."""
        assert self.popen.stdin is not None
        self.popen.stdin.write(text + "\n")
        self.popen.stdin.flush()

    def stop(self) -> None:
        """Stop it, until SIGCONT. A thread that has not noticed yet may still take a connection."""
        self.popen.send_signal(signal.SIGSTOP)
        tasks = Path(f"/proc/{self.pid}/task")
        wait_until("it stops", lambda: not [s for s in tasks.glob("*/stat") if _runs(s)])

    def ended(self) -> bool:
        """Whether it has ended."""
        return self.popen.poll() is not None

    def status(self, timeout_s: float = PATIENCE_S) -> int:
        """Close its standard input, wait for its end and return its status; -N is signal N."""
        assert self.popen.stdin is not None
        with suppress(BrokenPipeError):
            self.popen.stdin.close()
        try:
            status = self.popen.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self} did not end within {timeout_s:.0f} s") from None
        self._reader.join(PATIENCE_S)
        return status

    def succeed(self) -> str:
        """Wait for its end, require status 0, and return the rest of its output."""
        assert self.popen.stdout is not None
        rest: list[str] = []
        reader = threading.Thread(target=lambda: rest.append(self.popen.stdout.read()))  # type: ignore[union-attr]
        reader.start()
        status = self.status()
        reader.join(PATIENCE_S)
        assert status == 0, f"{self}: {status}: {self.errors}"
        return "".join(rest)

    def end(self) -> None:
        """Ask it to end, so that it can clean up; kill its process group if it does not."""
        if not self.ended():
            self.popen.send_signal(signal.SIGCONT)
            self.popen.terminate()
            with suppress(subprocess.TimeoutExpired):
                self.popen.wait(PATIENCE_S / 6)
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self.popen.wait(PATIENCE_S)
        self._reader.join(PATIENCE_S)

    def __str__(self) -> str:
        """Return the command line."""
        return " ".join(self.command)


_LIBC = ctypes.CDLL(None, use_errno=True)
_CLONE_NEWNET = 0x40000000


@dataclass
class Namespace:
    """A network namespace, and what was started in it."""

    name: str
    processes: list[Process] = field(default_factory=list)
    sockets: list[socket.socket] = field(default_factory=list)

    def command(self, *command: str) -> list[str]:
        """Return the command that runs `command` here, in the mount namespace of the tests."""
        return ["nsenter", f"--net=/run/netns/{self.name}", *command]

    def call(self, *command: str, stdin: str | None = None) -> str:
        """Run a command here to its end, as `call`."""
        return call(*self.command(*command), stdin=stdin)

    def start(self, *command: str) -> Process:
        """Start a program here."""
        process = Process(self.command(*command))
        self.processes.append(process)
        return process

    def open_socket(self, family: int, kind: int, protocol: int = 0) -> socket.socket:
        """Make a socket of this process that lives in the namespace."""
        made: list[socket.socket] = []
        failed: list[OSError] = []

        def make() -> None:
            try:
                fd = os.open(f"/run/netns/{self.name}", os.O_RDONLY | os.O_CLOEXEC)
                try:
                    if _LIBC.setns(fd, _CLONE_NEWNET) != 0:
                        raise OSError(ctypes.get_errno(), f"setns to {self.name} failed")
                finally:
                    os.close(fd)
                made.append(socket.socket(family, kind, protocol))
            except OSError as error:
                failed.append(error)

        thread = threading.Thread(target=make)  # the namespace is that of a thread
        thread.start()
        thread.join()
        if failed:
            raise failed[0]
        made[0].settimeout(PATIENCE_S)
        self.sockets.append(made[0])
        return made[0]

    def listen(self, address: str, port: int = 0, protocol: int = 0) -> socket.socket:
        """Return a listening socket here, of TCP by default."""
        listener = self.open_socket(_family(address), socket.SOCK_STREAM, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address, port))
        listener.listen(128)
        return listener

    def connections(self) -> list[Connection]:
        """Return every established TCP connection that this namespace has an end of."""
        lines = self.call("ss", "-tinOH", "--tos", "state", "established").splitlines()
        return [_connection(line) for line in lines]

    def clear(self) -> None:
        """End everything that was started here."""
        for sock in self.sockets:
            sock.close()
        for process in self.processes:
            process.end()
        # what a command left: all of these processes entered a namespace that is ours; the
        # companion of a run ends with it
        for pid in call("ip", "netns", "pids", self.name).split():
            with suppress(ProcessLookupError, FileNotFoundError):
                if b"netnice\0run\0" not in Path(f"/proc/{pid}/cmdline").read_bytes():
                    os.kill(int(pid), signal.SIGKILL)


def _family(address: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in address else socket.AF_INET


@dataclass(frozen=True)
class Connection:
    """A connection as ss shows it."""

    local: str
    remote: str
    control: str
    rtt_ms: float
    cwnd: int
    tos: int


def _connection(line: str) -> Connection:
    fields = line.split()

    def number(pattern: str, otherwise: str) -> str:
        found = re.search(pattern, line)
        return found[1] if found else otherwise

    # the name of the control stands without a value among the options
    control = re.search(r"\b(cubic|reno|bbr|vegas|lp|dctcp|nn_\w+)\b", line)
    return Connection(
        local=fields[2], remote=fields[3], control=control[1] if control else "",
        rtt_ms=float(number(r"\brtt:([\d.]+)", "0")), cwnd=int(number(r"\bcwnd:(\d+)", "0")),
        tos=int(number(r"\btos:0x([0-9a-f]+)", number(r"\btclass:0x([0-9a-f]+)", "0")), 16),
    )  # fmt: skip


SENDER, SENDER6 = SERVER, SERVER6
RECEIVER, RECEIVER6 = CLIENT, CLIENT6
PORT = BULK_PORT
_SERIAL = itertools.count()


class Link:
    """Three namespaces in a row: sender, router, receiver; veth between them, no delay, no limit.

    The interfaces: `eth` at either end, `left` and `right` at the router.
    """

    def __init__(self) -> None:
        """Make the namespaces, links, addresses and routes."""
        prefix = f"netnice-test-{os.getpid()}-{next(_SERIAL)}"
        self.sender = Namespace(f"{prefix}-sender")
        self.router = Namespace(f"{prefix}-router")
        self.receiver = Namespace(f"{prefix}-receiver")
        self.namespaces = (self.sender, self.router, self.receiver)
        names = (self.sender.name, self.router.name, self.receiver.name)
        self._row = Row(names, ("eth", "left", "right", "eth"))
        try:
            self._build()
        except BaseException:
            self.remove()
            raise

    def _build(self) -> None:
        call("ip", "-batch", "-", stdin=self._row.links())
        plain = "echo reno > /proc/sys/net/ipv4/tcp_congestion_control"
        for name, script in self._row.scripts().items():
            call(*Namespace(name).command("sh", "-e", "-c", f"{script}\n{plain}"))

    def without_offloads(self) -> Self:
        """Make the interfaces carry one packet at a time, as a wire does."""
        return self.offload("off")

    def offload(self, state: str) -> Self:
        """Switch on or off that hosts handle several packets as one (TSO, GSO, GRO)."""
        for namespace, device in (
            (self.sender, "eth"), (self.router, "left"),
            (self.router, "right"), (self.receiver, "eth"),
        ):  # fmt: skip
            namespace.call("ethtool", "-K", device, "tso", state, "gso", state, "gro", state)
        return self

    def limit(self, rate_mbit: float, packets: int, *, towards: str = "right") -> Self:
        """Make the router towards the receiver, or `left`, a bottleneck with a drop-tail queue."""
        self.without_offloads()
        self.router.call("tc", "qdisc", "replace", "dev", towards, "root", "handle", "1:", "tbf",
                         "rate", f"{rate_mbit}mbit", "burst", str(2 * PACKET),
                         "limit", str(packets * PACKET))  # fmt: skip
        return self

    def netem(self, where: Namespace, device: str, *options: str) -> None:
        """Set netem at an interface's egress."""
        where.call("tc", "qdisc", "replace", "dev", device, "root", "netem", "limit", "100000",
                   *options)  # fmt: skip

    def delay(self, ms: float) -> Self:
        """Make the round trip `ms` longer, in the direction of the ACKs."""
        self.netem(self.receiver, "eth", "delay", f"{ms}ms")
        return self

    def capture(self) -> Capture:
        """Capture what the sender sends, as the router gets it."""
        return Capture(self.router, "left")

    def sink(self, address: str = RECEIVER) -> Sink:
        """Start a program at the receiver that takes and checks bulk flows."""
        return Sink(self.receiver, address)

    def send(self, sink: Sink, *options: str, under: Sequence[str] = ()) -> Process:
        """Start bulk flows from the sender to `sink`, by default 1 endless one."""
        return self.sender.start(*under, "netnice-load", "send", sink.at, *options)

    def remove(self) -> None:
        """Remove the namespaces and all in them."""
        existing = {line.split()[0] for line in call("ip", "netns", "list").splitlines() if line}
        for namespace in self.namespaces:
            if namespace.name in existing:
                namespace.clear()
        call("ip", "-batch", "-", stdin="".join(
            f"netns del {n.name}\n" for n in self.namespaces if n.name in existing
        ))  # fmt: skip


Enabled = Callable[..., Link]
"""The fixture `enabled`: registers the algorithms named, and returns the link."""


class Sink:
    """`netnice-load sink`: receives bulk flows and compares every byte with what must be sent."""

    def __init__(self, namespace: Namespace, address: str, under: Sequence[str] = ()) -> None:
        """Start it at a free port."""
        self.report_file = MEMORY / f"sink-{next(_SERIAL)}.json"
        host = f"[{address}]" if ":" in address else address
        to = ("--listen", f"{host}:0", "--json", str(self.report_file))
        self.process = namespace.start(*under, "netnice-load", "sink", *to)
        self.at = self.process.line().removeprefix("listening ")

    def report(self) -> Json:
        """End it and return what it received."""
        self.process.popen.terminate()
        status = self.process.status()
        report = json.loads(self.report_file.read_text())
        assert status == 0, f"{self.process}: {status}: {self.process.errors}"
        return report


@dataclass(frozen=True)
class Packet:
    """A captured IP packet with TCP or UDP in it."""

    time_s: float
    family: int
    tos: int
    protocol: int
    syn: bool
    payload: int
    seq: int
    sport: int
    dport: int
    options: bytes  # of TCP


_SO_TIMESTAMPNS, _ETH_P_ALL, _PACKET_OUTGOING = 35, 3, 4


class Capture:
    """Packets that arrive at an interface, with the kernel's time stamps."""

    def __init__(self, namespace: Namespace, device: str) -> None:
        """Start to capture."""
        self.socket = namespace.open_socket(socket.AF_PACKET, socket.SOCK_DGRAM, 0)
        # root may exceed rmem_max: SO_RCVBUFFORCE
        self.socket.setsockopt(socket.SOL_SOCKET, 33, 64 << 20)
        self.socket.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        # bound last: until then it gets nothing, and not from any other interface
        self.socket.bind((device, _ETH_P_ALL))

    def packets(self) -> Iterator[Packet]:
        """Yield packets as they arrive, for ever; fail after a while without any."""
        while True:
            data, ancillary, _, address = self.socket.recvmsg(256, 256)
            if address[2] == _PACKET_OUTGOING:
                continue
            stamps = [d for _, kind, d in ancillary if kind == _SO_TIMESTAMPNS]
            seconds, nanoseconds = struct.unpack("qq", stamps[0])
            packet = _parse(data, seconds + nanoseconds * 1e-9)
            if packet is not None:
                yield packet

    def first(self, what: str, wanted: Callable[[Packet], bool]) -> Packet:
        """Return the first packet that is `wanted`."""
        for packet in self.packets():
            if wanted(packet):
                return packet
        raise AssertionError(f"no packet was {what}")


def _parse(data: bytes, time_s: float) -> Packet | None:
    version = data[0] >> 4
    if version == 4:
        family, header = socket.AF_INET, 4 * (data[0] & 15)
        tos, protocol, length = data[1], data[9], int.from_bytes(data[2:4], "big") - header
    elif version == 6:
        family, header = socket.AF_INET6, 40
        tos = int.from_bytes(data[:2], "big") >> 4 & 255
        protocol, length = data[6], int.from_bytes(data[4:6], "big")
    else:
        return None
    if protocol not in (socket.IPPROTO_TCP, socket.IPPROTO_UDP):
        return None
    inner = data[header:]
    tcp = protocol == socket.IPPROTO_TCP
    at = 4 * (inner[12] >> 4) if tcp else 8
    return Packet(
        time_s=time_s, family=family, tos=tos, protocol=protocol,
        syn=tcp and bool(inner[13] & 2),
        payload=length - at, options=inner[20:at] if tcp else b"",
        seq=int.from_bytes(inner[4:8], "big") if tcp else 0,
        sport=int.from_bytes(inner[0:2], "big"), dport=int.from_bytes(inner[2:4], "big"),
    )  # fmt: skip


def status() -> Json:
    """Return what `netnice status --json` says."""
    return json.loads(call("netnice", "status", "--json"))


def flows() -> list[Json]:
    """Return the background connections that netnice knows."""
    found: list[Json] = status()["connections"]
    return found


@functools.cache
def listed() -> dict[str, dict[str, Json]]:
    """Return netnice's algorithms by name, each with its parameters by name."""
    # while pytest collects, what is in memory is of an earlier session, and may be another build
    found = json.loads(call(str(NETNICE), "algorithms", "--json"))
    return {a["name"]: {p["name"]: p for p in a["parameters"]} for a in found}


def algorithms() -> list[str]:
    """Return the names of netnice's algorithms."""
    return list(listed())


def wide(algorithm: str) -> list[str]:
    """Return the options of `netnice run` that lift a bound on the window, if there is one.

    A bound of one packet is one packet for each delayed ACK: minutes for a few megabytes.
    """
    bound = listed()[algorithm].get("window")
    return ["--set", f"window={bound['most']}"] if bound else []


def registered() -> set[str]:
    """Return the names of netnice's controls that the kernel offers."""
    return {name for name in CONTROLS.read_text().split() if name.startswith("nn_")}


def cgroup_root() -> Path:
    """Return where cgroup v2 is mounted."""
    for line in Path("/proc/mounts").read_text().splitlines():
        _, where, kind, *_ = line.split()
        if kind == "cgroup2":
            return Path(where)
    raise AssertionError("cgroup v2 is not mounted; mount it: mount -t cgroup2 none /sys/fs/cgroup")
