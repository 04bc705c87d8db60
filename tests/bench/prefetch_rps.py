#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Requests per second and latency of netnice-prefetch beside nginx as a reverse proxy.

Usage: ``prefetch_rps.py [--rounds N] [--seconds S] [--connections N] [--idle N]``; prints
``name value unit``.

Both stand in front of the same nginx with static files, reach it over kept connections, have as
many workers as there are CPUs, and write no access log. wrk plays fifty visitors that each walk
through a site of a hundred pages of 1 kB, or load images of 100 kB. netnice-prefetch does its whole
work meanwhile: it learns, predicts and suggests. The proxies take turns, and each ratio is the
median of the rounds' ratios: what else the machine does hits both. Load, proxy and origin share the
machine, so the ratio of the CPU time for each request tells more of the proxies alone.

Memory is that of fresh proxies: what idle connections add that have had one answer each.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "target" / "dist" / "netnice-prefetch"
"""As it is installed. The one of the tests is not optimised."""
SIZES = {"1k": (1000, "html"), "100k": (100_000, "png")}
FILES, VISITORS = 100, 50
PATIENCE_S = 10.0
NGINX = """
daemon off;
user root;
pid {here}/{name}.pid;
error_log {here}/{name}.log error;
worker_processes {workers};
worker_rlimit_nofile {files};
events {{ worker_connections {files}; }}
http {{
    access_log off;
    keepalive_requests 100000000;
    sendfile on;
    tcp_nopush on;
    client_body_temp_path {here}/body;
    proxy_temp_path {here}/temp;
    fastcgi_temp_path {here}/temp;
    uwsgi_temp_path {here}/temp;
    scgi_temp_path {here}/temp;
    types {{ text/html html; image/png png; }}
    {what}
}}
"""
ORIGIN = "open_file_cache max=1000; server {{ listen {at} backlog=4096; root {here}/site; }}"
# the largest file fits into the buffers, so that nginx writes no temporary file
PROXY = """
    upstream origin {{ server {origin}; keepalive 256; keepalive_requests 100000000; }}
    server {{
        listen {at} backlog=4096;
        location / {{
            proxy_pass http://origin;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_set_header Host $host;
            proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
            proxy_set_header X-Forwarded-Proto $scheme;
            proxy_buffers 16 16k;
        }}
    }}
"""
CONFIG = """
origin = "http://{origin}"
listen = ["{at}"]
[bounds]
connections = {files}
[learning]
addresses = 1
[background]
control = "{control}"
"""
# requests are made before, so that wrk spends no time on them
LOAD = """
local requests, at = {{}}, 0
function init()
    for step = 0, {files} - 1 do
        for visitor = 0, {visitors} - 1 do
            local page = (step + 7 * visitor) % {files}
            requests[#requests + 1] = wrk.format("GET", "/{size}/" .. page .. ".{ending}", {{
                ["User-Agent"] = "visitor " .. visitor, ["Host"] = "site"
            }})
        end
    end
end
function request()
    at = at % #requests + 1
    return requests[at]
end
function done(summary, latency)
    local e = summary.errors
    io.write(string.format("result %d %d %d %d\\n", summary.requests, summary.duration,
        latency:percentile(99), e.connect + e.read + e.write + e.status + e.timeout))
end
"""


def free_address() -> str:
    """Return an address of loopback with a port that was free a moment ago."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{sock.getsockname()[1]}"


def family(pid: int) -> list[Path]:
    """Return the directories in /proc of a process and its children."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [Path("/proc") / str(one) for one in (pid, *children)]


@dataclass
class Server:
    """A server under way."""

    process: subprocess.Popen[bytes]
    at: str

    def cpu_s(self) -> float:
        """Return the CPU seconds so far."""
        ticks = 0
        for process in family(self.process.pid):
            fields = (process / "stat").read_text().rsplit(")", 1)[1].split()
            ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def memory(self) -> int:
        """Return the resident bytes that it does not share with files."""
        total = 0
        for process in family(self.process.pid):
            status = (process / "status").read_text()
            total += int(status.split("RssAnon:")[1].split()[0]) * 1024
        return total

    def connect(self) -> socket.socket:
        """Open a connection."""
        host, port = self.at.split(":")
        return socket.create_connection((host, int(port)), timeout=PATIENCE_S)


@contextmanager
def run(command: list[str], at: str) -> Iterator[Server]:
    """Run a server until the end of the block."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    server = Server(process, at)
    try:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                server.connect().close()
                break
            except ConnectionRefusedError:
                if process.poll() is not None or time.monotonic() > deadline:
                    sys.exit(f"{command[0]} did not begin to listen: {' '.join(command)}")
                time.sleep(0.05)
        yield server
    finally:
        process.terminate()
        try:
            process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@dataclass
class Site:
    """The files of a bench: those of the site, configurations, and wrk's scripts."""

    here: Path
    files: int  # that a process may open

    def fill(self) -> None:
        """Make the files."""
        for size, (count, ending) in SIZES.items():
            (self.here / "site" / size).mkdir(parents=True)
            for i in range(FILES):
                (self.here / "site" / size / f"{i}.{ending}").write_bytes(b"." * count)
            script = LOAD.format(files=FILES, visitors=VISITORS, size=size, ending=ending)
            (self.here / f"{size}.lua").write_text(script)

    def nginx(self, name: str, what: str, **values: str) -> list[str]:
        """Write a configuration of nginx; return the command that runs it."""
        file = self.here / f"{name}.conf"
        what = what.format(here=self.here, **values)
        workers = len(os.sched_getaffinity(0))
        file.write_text(
            NGINX.format(here=self.here, name=name, workers=workers, files=self.files, what=what)
        )
        return ["nginx", "-c", str(file), "-e", f"{self.here}/{name}.log"]

    @contextmanager
    def origin(self) -> Iterator[Server]:
        """Run the server of the files."""
        at = free_address()
        with run(self.nginx("origin", ORIGIN, at=at), at) as server:
            yield server

    @contextmanager
    def proxy(self, name: str, origin: Server) -> Iterator[Server]:
        """Run a proxy."""
        at = free_address()
        if name == "nginx":
            command = self.nginx("proxy", PROXY, at=at, origin=origin.at)
        else:
            control = background_control()
            config = CONFIG.format(origin=origin.at, at=at, files=self.files, control=control)
            (self.here / "prefetch.toml").write_text(config)
            command = [str(PROGRAM), "serve", "--config", f"{self.here}/prefetch.toml"]
        with run(command, at) as server:
            yield server


def background_control() -> str:
    """Return a control that is not the system's: nothing is prefetched here, so any will do."""
    folder = Path("/proc/sys/net/ipv4")
    default = (folder / "tcp_congestion_control").read_text().strip()
    allowed = (folder / "tcp_allowed_congestion_control").read_text().split()
    return next((control for control in allowed if control != default), default)


@dataclass
class Result:
    """What a round told of one proxy."""

    rps: float
    p99_ms: float
    cpu_us: float


def load(site: Site, server: Server, size: str, seconds: float, connections: int) -> Result:
    """Load a proxy for some seconds."""
    before = server.cpu_s()
    script = str(site.here / f"{size}.lua")
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds:g}s", "-s", script]
    command.append(f"http://{server.at}/")
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    told = done.stdout.split("result ")[1].split()
    requests, duration_us, p99_us, errors = (int(word) for word in told)
    if errors or not requests:
        sys.exit(f"{errors} of {requests} requests failed")
    cpu_us = (server.cpu_s() - before) * 1e6 / requests
    return Result(requests / duration_us * 1e6, p99_us / 1000, cpu_us)


def memory_per_connection(server: Server, count: int) -> float:
    """Return the bytes of an idle connection that has had one answer."""
    request = b"GET /1k/0.html HTTP/1.1\r\nHost: site\r\n\r\n"

    def open_idle() -> socket.socket:
        sock = server.connect()
        sock.sendall(request)
        got = b""
        while not got.endswith(b"." * 1000):
            part = sock.recv(65536)
            if not part:
                sys.exit("the proxy closed an idle connection")
            got += part
        return sock

    warm = [open_idle() for _ in range(20)]
    before = server.memory()
    idle = [open_idle() for _ in range(count)]
    grown = server.memory() - before
    for sock in warm + idle:
        sock.close()
    return grown / count


def check_programs() -> int:
    """Check that all is installed; return how many files a process may open."""
    path = os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin"
    os.environ["PATH"] = path
    for program, package in (("nginx", "nginx-light"), ("wrk", "wrk")):
        if not shutil.which(program):
            sys.exit(f"{program} is missing: apt-get install {package}")
    if not PROGRAM.exists():
        sys.exit(f"{PROGRAM} is not built: packaging/compile")
    _, files = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    return files if files != resource.RLIM_INFINITY else 1 << 20


def main() -> None:
    """Run the rounds and print the ratios."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=2.0, help="of one load")
    parser.add_argument("--connections", type=int, default=50)
    parser.add_argument("--idle", type=int, default=5000, help="connections to measure memory")
    arguments = parser.parse_args()
    files = min(check_programs(), 20_000)
    if files < arguments.idle + 100:
        sys.exit(f"{arguments.idle + 100} open files are needed: ulimit -Hn is {files}")
    with tempfile.TemporaryDirectory(prefix="netnice-bench-") as name:
        site = Site(Path(name), files)
        site.fill()
        with site.origin() as origin:
            names = ("nginx", "netnice")
            memory = {}
            for proxy in names:
                with site.proxy(proxy, origin) as server:
                    memory[proxy] = memory_per_connection(server, arguments.idle)
            with site.proxy("nginx", origin) as nginx, site.proxy("netnice", origin) as netnice:
                compare(site, {"nginx": nginx, "netnice": netnice}, arguments)
    print(f"prefetch_memory_per_idle_connection_nginx {memory['nginx']:.0f} bytes")
    print(f"prefetch_memory_per_idle_connection {memory['netnice']:.0f} bytes")


def compare(site: Site, servers: dict[str, Server], arguments: argparse.Namespace) -> None:
    """Let the proxies take turns and print the ratios."""
    least = []
    for size in SIZES:
        for server in servers.values():
            load(site, server, size, 1, arguments.connections)
        rounds = []
        for number in range(arguments.rounds):
            # each of the two is first in turn
            order = sorted(servers, reverse=bool(number % 2))
            rounds.append(
                {
                    name: load(site, servers[name], size, arguments.seconds, arguments.connections)
                    for name in order
                }
            )

        def median_ratio(field: str, rounds: list[dict[str, Result]] = rounds) -> float:
            ratios = [getattr(r["netnice"], field) / getattr(r["nginx"], field) for r in rounds]
            return float(statistics.median(ratios))

        for name in servers:
            told = [r[name] for r in rounds]
            rps = statistics.median(t.rps for t in told)
            p99_ms = statistics.median(t.p99_ms for t in told)
            cpu_us = statistics.median(t.cpu_us for t in told)
            print(f"prefetch_rps_{name}_{size} {rps:.0f} requests/s")
            print(f"prefetch_p99_{name}_{size} {p99_ms:.2f} ms")
            print(f"prefetch_cpu_per_request_{name}_{size} {cpu_us:.1f} us")
        least.append(median_ratio("rps"))
        print(f"prefetch_p99_ratio_vs_nginx_{size} {median_ratio('p99_ms'):.3f} ratio")
        print(f"prefetch_cpu_ratio_vs_nginx_{size} {median_ratio('cpu_us'):.3f} ratio")
        print(f"prefetch_rps_ratio_vs_nginx_{size} {least[-1]:.3f} ratio", flush=True)
    print(f"prefetch_rps_ratio_vs_nginx {min(least):.3f} ratio")


if __name__ == "__main__":
    main()
