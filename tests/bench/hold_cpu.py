#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""What a hold costs: CPU time for each gigabyte over that of the kernel's cubic without one.

Usage, in the lab's VM: ``netnice-lab vm -- python tests/bench/hold_cpu.py [--pairs N]
[--gigabytes G]``; prints ``name value unit``.

One bulk flow over a veth pair with its default offloads, and a bottleneck that leaves the machine
idle for a part of the time. The foreground's passes a device that holds, and whose path is known;
the background's waits. Counted is all that the machine did meanwhile: what leaves a waiting device
does so in nobody's system call. Time counts instructions there, and no other program has a part in
it.
"""

from __future__ import annotations

import argparse
import os
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "kernel"))

from cpu_per_gb import ADDRESS, CHUNK, PORT, two_ends
from support import Namespace, prepare_programs

UNDER = {"plain": (), "background": ("netnice", "run", "--"), "foreground": ()}
TICK_S = 1 / os.sysconf("SC_CLK_TCK")


def busy_s() -> float:
    """Return for how long the machine did something, in seconds."""
    fields = Path("/proc/stat").read_text().splitlines()[0].split()[1:]
    user, nice, system, _idle, _iowait, irq, softirq = (int(field) for field in fields[:7])
    return (user + nice + system + irq + softirq) * TICK_S


def send(count: int) -> None:
    """Send `count` bytes; print the seconds for which the machine was busy, and those it took."""
    data = bytes(CHUNK)
    with socket.create_connection((ADDRESS, PORT)) as sock:
        before_s, started_s = busy_s(), time.monotonic()
        for _ in range(count // CHUNK):
            sock.sendall(data)
        sock.shutdown(socket.SHUT_WR)
        sock.recv(1)
        print(busy_s() - before_s, time.monotonic() - started_s, flush=True)


def transfer(ends: tuple[Namespace, Namespace], name: str, count: int) -> float:
    """Transfer `count` bytes; return the CPU seconds for each gigabyte (10^9 bytes)."""
    sender, receiver = ends

    def start(where: Namespace, file: Path, end: str, *under: str) -> subprocess.Popen[str]:
        command = where.command(*under, sys.executable, str(file), end, str(count))
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    taking = start(receiver, Path(__file__).with_name("cpu_per_gb.py"), "--receive")
    assert taking.stdout is not None
    if taking.stdout.readline() != "ready\n":
        sys.exit("the receiver did not start")
    giving = start(sender, Path(__file__), "--send", *UNDER[name])
    sent, _ = giving.communicate()
    taking.communicate()
    if giving.returncode or taking.returncode:
        sys.exit("a transfer failed")
    used_s, took_s = map(float, sent.split())
    print(f"hold_goodput_{name} {8e-6 * count / took_s:.1f} Mbit/s", flush=True)
    print(f"hold_cpu_per_gb_{name} {used_s / (count * 1e-9):.3f} s/GB", flush=True)
    return used_s


def main() -> None:
    """Run the pairs and print the median ratios."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--gigabytes", type=float, default=0.5, help="of one transfer")
    parser.add_argument("--mbit", type=int, default=200, help="rate of the bottleneck")
    arguments = parser.parse_args()
    count = int(arguments.gigabytes * 1e9)
    prepare_programs()
    with two_ends() as (sender, receiver):
        tbf = f"tbf rate {arguments.mbit}mbit burst 64k limit {arguments.mbit * 2500}"
        sender.call("tc", "qdisc", "add", "dev", "eth", "root", *tbf.split())
        receiver.call("tc", "qdisc", "add", "dev", "eth", "root", "netem", "delay", "5ms")
        ratios: dict[str, list[float]] = {"foreground": [], "background": []}
        for _ in range(arguments.pairs):
            plain = transfer((sender, receiver), "plain", count)
            sender.call("netnice", "hold", "eth", "--fastest", "100000")
            held = transfer((sender, receiver), "background", count)  # and the path is known
            beside = transfer((sender, receiver), "foreground", count)
            print(sender.call("netnice", "hold"), file=sys.stderr)
            sender.call("netnice", "hold", "--off", "eth")
            ratios["background"].append(held / plain)
            ratios["foreground"].append(beside / plain)
    for name, its in ratios.items():
        print(f"hold_cpu_per_gb_ratio_{name} {statistics.median(its):.4f} ratio")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["--send", size]:
            send(int(size))
        case _:
            main()
