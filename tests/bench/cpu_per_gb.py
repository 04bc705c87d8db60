#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""CPU time for each gigabyte of nn_nice over that of the kernel's cubic. Run as root.

Usage: ``cpu_per_gb.py [--pairs N] [--gigabytes G]``; prints ``name value unit``.

One bulk flow over a veth pair with its default offloads, without a bottleneck: the cost of the
host, not of the network. So that both controls carry the same transfer, nn_nice has the parameters
with which its window is not held back. The runs alternate, and the ratio is the median of the
pairs' ratios: what else the machine does hits both.

Counted is the CPU time of both ends, and of the kernel thread that takes over when much is
received at once. Both are bound to one CPU: a veth then delivers in the sender's own system call,
or in that thread, and nowhere else. The content is not looked at (the tests on the kernel do
that), so that hardly any time is spent outside the kernel.

In the lab's VM (``netnice-lab vm -- python tests/bench/cpu_per_gb.py --pairs 3 --gigabytes 0.3``)
time counts instructions, and no other program has a part in the result.
"""

from __future__ import annotations

import argparse
import os
import resource
import socket
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "kernel"))

from support import Namespace, call, prepare_programs

ADDRESS, PORT = "10.0.0.2", 5001
CHUNK = 1 << 20
UNHINDERED = [f"--set={setting}" for setting in (
    "threshold=1", "alpha=1000", "beta=1000", "gamma=1000"
)]  # fmt: skip
UNDER = {
    "cubic": [],
    "nn_nice": ["netnice", "run", "--dscp", "none", *UNHINDERED, "--"],
}


def cpu_s() -> float:
    """Return the CPU time of this process in seconds."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def send(count: int) -> None:
    """Send `count` bytes; print the CPU time and the congestion control."""
    sock = socket.socket()
    # under netnice run this has no effect
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
    sock.connect((ADDRESS, PORT))
    data = bytes(CHUNK)
    before = cpu_s()
    for _ in range(count // CHUNK):
        sock.sendall(data)
    sock.shutdown(socket.SHUT_WR)
    sock.recv(1)
    used = cpu_s() - before
    control = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\0")
    print(used, control.decode(), flush=True)


def receive(count: int) -> None:
    """Receive `count` bytes; print "ready", then the CPU time."""
    listener = socket.socket()
    listener.bind((ADDRESS, PORT))
    listener.listen()
    print("ready", flush=True)
    sock, _ = listener.accept()
    buffer = bytearray(CHUNK)
    before = cpu_s()
    got = 0
    while size := sock.recv_into(buffer):
        got += size
    used = cpu_s() - before
    sock.sendall(b"!")
    if got != count // CHUNK * CHUNK:
        sys.exit(f"{got} bytes arrived of {count}")
    print(used, flush=True)


def kernel_thread_s(cpu: int) -> float:
    """Return the CPU time of a CPU's ksoftirqd in seconds."""
    for comm in Path("/proc").glob("[0-9]*/comm"):
        if comm.read_text().strip() == f"ksoftirqd/{cpu}":
            return int((comm.parent / "schedstat").read_text().split()[0]) * 1e-9
    raise RuntimeError(f"there is no ksoftirqd/{cpu}")


def transfer(ends: Sequence[Namespace], control: str, count: int, cpu: int) -> float:
    """Transfer `count` bytes; return the CPU seconds for each gigabyte (10^9 bytes)."""
    sender, receiver = ends

    def start(where: Namespace, under: Sequence[str], end: str) -> subprocess.Popen[str]:
        command = where.command(*under, sys.executable, __file__, end, str(count))
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    thread_s = kernel_thread_s(cpu)
    taking = start(receiver, [], "--receive")
    assert taking.stdout is not None
    if taking.stdout.readline() != "ready\n":
        sys.exit("the receiver did not start")
    giving = start(sender, UNDER[control], "--send")
    sent, _ = giving.communicate()
    received, _ = taking.communicate()
    if giving.returncode or taking.returncode:
        sys.exit(f"the transfer with {control} failed")
    sender_s, used = sent.split()
    if used != control:
        sys.exit(f"the transfer was to use {control} and used {used}")
    total_s = float(sender_s) + float(received) + kernel_thread_s(cpu) - thread_s
    return total_s / (count * 1e-9)


@contextmanager
def two_ends() -> Iterator[tuple[Namespace, Namespace]]:
    """Return a sender and a receiver, at ADDRESS, with a veth pair between them."""
    pid = os.getpid()
    ends = Namespace(f"netnice-bench-{pid}-sender"), Namespace(f"netnice-bench-{pid}-receiver")
    try:
        for end in ends:
            call("ip", "netns", "add", end.name)
        a, b = (end.name for end in ends)
        call("ip", "link", "add", "eth", "netns", a, "type", "veth", "peer", "eth", "netns", b)
        for end, address in zip(ends, ("10.0.0.1", ADDRESS), strict=True):
            end.call("ip", "addr", "add", f"{address}/24", "dev", "eth")
            end.call("ip", "link", "set", "eth", "up")
        yield ends
    finally:
        for end in ends:
            subprocess.run(["ip", "netns", "del", end.name], check=False)


def main() -> None:
    """Run the pairs and print the median ratio."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--gigabytes", type=float, default=8.0, help="of one transfer")
    arguments = parser.parse_args()
    count = int(arguments.gigabytes * 1e9)
    cpu = max(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cpu})
    prepare_programs()
    with two_ends() as ends:
        ratios = []
        for pair in range(arguments.pairs):
            # each of the two is first in turn
            order = list(UNDER) if pair % 2 else list(UNDER)[::-1]
            cost = {control: transfer(ends, control, count, cpu) for control in order}
            ratios.append(cost["nn_nice"] / cost["cubic"])
            for control, seconds in sorted(cost.items()):
                print(f"cpu_per_gb_{control} {seconds:.4f} s/GB", flush=True)
    print(f"cpu_per_gb_ratio_least {min(ratios):.4f} ratio")
    print(f"cpu_per_gb_ratio_greatest {max(ratios):.4f} ratio")
    print(f"cpu_per_gb_ratio_nice_vs_cubic {statistics.median(ratios):.4f} ratio")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["--send", size]:
            send(int(size))
        case ["--receive", size]:
            receive(int(size))
        case _:
            main()
