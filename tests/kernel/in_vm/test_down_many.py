# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Thousands of downloads while what holds them ends, begins anew and is killed: all arrive whole.

Where fq is (Debian's kernels), and time is virtual. `make soak` has 10,000 of them.
"""

from __future__ import annotations

import json
import random
import time
from dataclasses import dataclass, field

import pytest
from support import PYTHON, SENDER, Link, Namespace, Process

RATE_MBIT, RTT_MS, ROOM = 4.0, 20.0, 60
PORT = 7000
DOWNLOADS = 10_000
WORKERS, AT_ONCE = 4, 6
UNDER = ("netnice", "run", "--no-hold", "--")
"""The device holds already, but for when it does not."""

CONTENT = """
import random

def content(n):
    # 1 to 33 kB, with bytes of its own
    r = random.Random(n)
    return r.randbytes(r.randrange(1000, 33000))
"""
SERVES = f"""
import asyncio, sys
{CONTENT}
async def serve(reader, writer):
    try:
        writer.write(content(int(await reader.readline())))
        await writer.drain()
        writer.close()
    except (OSError, ValueError):
        pass # whoever asked was killed

async def main():
    server = await asyncio.start_server(serve, *sys.argv[1:], backlog=512)
    print("serves", flush=True)
    await server.serve_forever()

asyncio.run(main())
"""
# `n stall end` when download n is whole: its longest wait, and the clock at its end, in seconds
LOADS = f"""
import asyncio, sys, time
{CONTENT}
async def load(host, port, n):
    while True: # while the interface is down there is no route
        try:
            reader, writer = await asyncio.open_connection(host, port)
            break
        except OSError:
            await asyncio.sleep(0.1)
    got, stall, last = bytearray(), (0.0, 0.0), time.monotonic()
    writer.write(b"%d\\n" % n)
    while part := await reader.read(65536):
        now = time.monotonic()
        stall, last = max(stall, (now - last, now)), now
        got += part
    writer.close()
    assert bytes(got) == content(n), n
    print(n, *stall, flush=True)

async def main():
    host, port, at_once, *numbers = sys.argv[1:]
    numbers = iter(map(int, numbers))
    async def work():
        for n in numbers:
            await load(host, port, n)
    await asyncio.gather(*(work() for _ in range(int(at_once))))

asyncio.run(main())
"""


@dataclass
class Worker:
    """A program that downloads, and what of its work is done."""

    link: Link
    under: tuple[str, ...]
    left: list[int]
    process: Process = field(init=False)
    stalls: list[tuple[float, float]] = field(default_factory=list)

    def start(self) -> None:
        """Begin with what is left."""
        words = (PYTHON, "-S", "-E", "-c", LOADS, SENDER, str(PORT), str(AT_ONCE))
        self.process = self.link.receiver.start(*self.under, *words, *map(str, self.left))

    def look(self) -> None:
        """Read what it has done, to its end."""
        assert self.process.popen.stdout is not None
        for n, stall, end in map(str.split, self.process.popen.stdout):
            self.left.remove(int(n))
            self.stalls.append((float(stall), float(end)))

    def kill(self) -> None:
        """Kill it, and begin anew with what is left."""
        self.process.popen.kill()
        self.look()
        self.start()


def downloads(link: Link, under: tuple[str, ...], count: int, disturb: list[str]) -> float:
    """Run so many downloads, disturbed; return the longest stall that one had, in seconds."""
    chance = random.Random(1)
    workers = [Worker(link, under, list(range(n, count, WORKERS))) for n in range(WORKERS)]
    for worker in workers:
        worker.start()
    done = Disturbs(link, workers, chance)
    while not all(worker.process.ended() for worker in workers):
        # what one has delayed is over before the next: each timeout of TCP is twice the last
        time.sleep(chance.uniform(4, 8))
        done.do(chance.choice(disturb))
    for worker in workers:
        worker.look()
        assert worker.process.status() == 0, worker.process.errors
        assert worker.left == []
    stalls = sorted(stall for worker in workers for stall in worker.stalls)
    assert len(stalls) == count
    print(f"\n{' '.join(under) or 'plainly'}: {count} downloads, {len(done.what)} disturbances")
    for stall, end in stalls[-5:]:
        beside = [what for what in done.what if what[1] > end - stall - 2 and what[0] < end]
        print(f"stalled for {stall:.2f} s, from {end - stall:.2f} on, beside", *beside)
    return stalls[-1][0]


class Disturbs:
    """What happens to a host while it downloads."""

    def __init__(self, link: Link, workers: list[Worker], chance: random.Random) -> None:
        """Do it to the receiver's device, and to these workers."""
        self.link, self.at, self.workers, self.chance = link, link.receiver, workers, chance
        self.what: list[tuple[float, float, str]] = []

    def do(self, what: str) -> None:
        """Do one of these, and note when."""
        began = round(time.monotonic(), 2)
        getattr(self, what)()
        self.what.append((began, round(time.monotonic(), 2), what))

    def interface(self) -> None:
        """Have the interface go down and come back."""
        routes = [route for route in self.at.call("ip", "route").splitlines() if " via " in route]
        # in one call: to begin a program takes virtual time, and once took five seconds
        self.at.call("ip", "-batch", "-", stdin="\n".join([
            "link set eth down",
            "link set eth up",
            *(f"route replace {route}" for route in routes),  # as whoever manages networks does
        ]))  # fmt: skip

    def program(self) -> None:
        """Kill a program that downloads: its connections end, others begin."""
        self.chance.choice(self.workers).kill()

    def hold(self) -> None:
        """End the hold, and begin it anew."""
        self.at.call("netnice", "hold", "--off", "eth")
        self.at.call("netnice", "hold", "eth")

    def netnice(self) -> None:
        """Kill netnice while it ends or begins a hold."""
        for words in (["--off", "eth"], ["eth"]):
            killed = self.at.start("netnice", "hold", *words)
            time.sleep(self.chance.uniform(0, 0.3))
            killed.popen.kill()
            killed.popen.wait()
        hold_again(self.at)

    def devices(self) -> None:
        """Take the waiting devices away, as somebody who does not know them."""
        links = json.loads(self.at.call("ip", "-json", "link"))
        near = [link["ifname"] for link in links if link["ifname"].startswith("nnwait")]
        for name in near:
            self.at.call("ip", "link", "del", name)
        hold_again(self.at)

    def moves(self) -> None:
        """Take the connections of a program out of the background, and put them into it again."""
        pid = str(self.chance.choice(self.workers).process.pid)
        for word in ("detach", "attach"):
            self.at.start("netnice", word, pid).status()  # it may have none at the moment


def hold_again(at: Namespace) -> None:
    """Have the device hold, whatever was left of it."""
    at.start("netnice", "hold", "--off", "eth").status()
    at.call("netnice", "hold", "eth")


@pytest.mark.soak
def test_whatever_happens_to_the_hold_all_arrive_whole_and_none_stalls_longer_than_plainly(
    link: Link,
) -> None:
    link.limit(RATE_MBIT, ROOM).delay(RTT_MS)
    server = link.sender.start(PYTHON, "-S", "-E", "-c", SERVES, SENDER, str(PORT))
    assert server.line() == "serves"
    plain = downloads(link, (), DOWNLOADS // 5, ["interface", "program"])
    link.receiver.call("netnice", "hold", "eth")
    all_of_them = ["interface", "program", "hold", "netnice", "devices", "moves"]
    longest = downloads(link, UNDER, DOWNLOADS, all_of_them)
    link.receiver.clear()
    link.sender.clear()
    link.receiver.call("netnice", "hold", "--off", "eth")
    assert longest <= plain + 1
