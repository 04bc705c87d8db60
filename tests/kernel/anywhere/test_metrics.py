# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""`netnice metrics` offers the jobs to Prometheus."""

from __future__ import annotations

import re
import socket
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from client import UNDER
from support import Link, Process, call, wait_until

SAMPLE = re.compile(r'(netnice_\w+)(?:\{(\w+="[^"\\]*"(?:,\w+="[^"\\]*")*)\})? (\S+)')
"""A line of Prometheus' text format 0.0.4, as far as it is used here."""


@pytest.fixture
def exporter(nothing_left: None) -> Iterator[str]:
    """Start `netnice metrics`; return where it answers."""
    process = Process(["netnice", "metrics", "--listen", "127.0.0.1:0"])
    yield process.line()
    process.end()


def scrape(url: str, accept: str = "text/plain") -> str:
    request = urllib.request.Request(url, headers={"Accept": accept})
    with urllib.request.urlopen(request, timeout=30) as answer:
        assert answer.headers["Content-Type"].startswith(accept)
        text: bytes = answer.read()
        return text.decode()


def samples(text: str) -> dict[tuple[str, str], float]:
    """Return the numbers of a text, by metric and labels; fail at a line that is none."""
    found = {}
    for line in text.splitlines():
        if not line.startswith(("# HELP netnice_", "# TYPE netnice_")):
            match = SAMPLE.fullmatch(line)
            assert match, line
            found[match[1], match[2] or ""] = float(match[3])
    return found


def described(text: str) -> set[str]:
    """Return the metrics that a text describes."""
    helped = set(re.findall(r"^# HELP (\w+) \S", text, re.MULTILINE))
    assert helped == set(re.findall(r"^# TYPE (\w+) (?:gauge|counter)$", text, re.MULTILINE))
    return helped


def test_a_job_is_offered_with_its_bytes_and_gone_when_it_ends(link: Link, exporter: str) -> None:
    sender = link.send(link.limit(8, 50).sink(), under=UNDER)
    wait_until("a job", lambda: 'name="netnice-load"' in scrape(exporter))
    assert samples(scrape(exporter))["netnice_jobs", ""] >= 1

    def of_job(metric: str) -> float:
        (value,) = (v for (name, _), v in samples(scrape(exporter)).items() if name == metric)
        return value

    first = of_job("netnice_job_sent_bytes_total")
    wait_until("progress", lambda: of_job("netnice_job_sent_bytes_total") > first)
    text = scrape(exporter)
    labels = next(labels for name, labels in samples(text) if name == "netnice_job_connections")
    assert re.fullmatch(r'job="run \d+",kind="run",name="netnice-load"', labels)
    names = {name for name, _ in samples(text)}
    assert names <= described(text)
    opened = scrape(exporter, "application/openmetrics-text")
    assert opened.endswith("# EOF\n") and "netnice_job_sent_bytes_total{" in opened
    sender.popen.terminate()
    sender.succeed()
    wait_until("no job", lambda: "netnice-load" not in scrape(exporter))


def test_other_requests_and_strange_ones_get_an_answer_and_do_no_harm(exporter: str) -> None:
    host, port = exporter.removeprefix("http://").removesuffix("/metrics").split(":")

    def ask(words: bytes) -> bytes:
        with socket.create_connection((host, int(port)), timeout=30) as asking:
            asking.sendall(words)
            return asking.makefile("rb").readline()

    assert b" 404 " in ask(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    assert b" 405 " in ask(b"POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
    assert b" 400 " in ask(b"\x00\xff\r\n\r\n")
    # as many as are answered at a time, and more, which say nothing
    silent = [socket.create_connection((host, int(port))) for _ in range(10)]
    assert "netnice_jobs" in scrape(exporter)
    for one in silent:
        one.close()


def test_a_place_that_is_taken_is_named(exporter: str) -> None:
    place = exporter.removeprefix("http://").removesuffix("/metrics")
    command = ["netnice", "metrics", "--listen", place]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith(f"netnice: cannot listen at {place}: ")
    assert done.stderr.endswith("; choose another address or port\n")
    for words in (["metrics", "--listen"], ["daemon", "--metrics"]):
        done = subprocess.run(
            ["netnice", *words, "localhost"], capture_output=True, text=True, check=False
        )
        assert done.returncode == 2
        assert "write an IP address and a port, such as 127.0.0.1:9464" in done.stderr


@pytest.mark.soak
def test_promtool_finds_nothing_wrong(link: Link, exporter: str, tmp_path: Path) -> None:
    subprocess.run(["apt-get", "download", "prometheus"], cwd=tmp_path, check=True)
    (package,) = tmp_path.glob("*.deb")
    call("dpkg-deb", "--extract", str(package), str(tmp_path / "prometheus"))
    promtool = tmp_path / "prometheus" / "usr" / "bin" / "promtool"
    sender = link.send(link.sink(), under=UNDER)
    wait_until("a job", lambda: "name=" in scrape(exporter))
    assert call(str(promtool), "check", "metrics", stdin=scrape(exporter)) == ""
    sender.popen.terminate()
    sender.succeed()


def test_the_daemon_offers_them_too(nothing_left: None, tmp_path: Path) -> None:
    served = ("--socket", str(tmp_path / "socket"), "--metrics", "127.0.0.1:0")
    daemon = Process(["netnice", "daemon", *served])
    wait_until("it serves users", lambda: "served at" in daemon.errors)
    (place,) = wait_until("it serves Prometheus", lambda: re.findall(
        r"http://\S+/metrics", daemon.errors
    ))  # fmt: skip
    assert samples(scrape(place))["netnice_jobs", ""] == 0
    daemon.end()
