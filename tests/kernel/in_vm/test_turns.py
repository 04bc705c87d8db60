# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""A connection that was in the background is in the foreground again what a new one is.

Where time is virtual.
"""

from __future__ import annotations

import json

import pytest
from support import PYTHON, ROOT, SENDER, Link, wait_until

ORIGIN = """
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
class Origin(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        body = bytes(int(self.path.split("-")[1]))
        self.send_response(200)
        self.send_header("Content-Type", "image/png")
        self.send_header("Cache-Control", "max-age=3600")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *words): pass
server = ThreadingHTTPServer(("127.0.0.1", 8080), Origin)
print("listening", flush=True)
server.serve_forever()
"""

# Arguments: address, headers of what is asked for between. Prints the mean seconds of the first
# answer of a connection, which the handshake is not counted for, and of the last.
CLIENT = """
import http.client, json, sys, time
host, headers, rounds, length = sys.argv[1], json.loads(sys.argv[2]), 6, 20000
took = {"first": 0, "between": 0, "last": 0}
for i in range(rounds):
    connection = http.client.HTTPConnection(host, 80)
    connection.connect()
    for name in took:
        begin = time.monotonic()
        asked = headers if name == "between" else {}
        connection.request("GET", f"/{name}{i}-{length}", headers=asked)
        assert len(connection.getresponse().read()) == length
        took[name] += (time.monotonic() - begin) / rounds
    connection.close()
print(json.dumps(took))
"""


@pytest.fixture
def proxy(enabled: Link) -> Link:
    """Start `netnice-prefetch` in front of an origin, at a bottleneck of a cable modem."""
    enabled.limit(1.5, 40).delay(30)
    assert enabled.sender.start(PYTHON, "-S", "-E", "-c", ORIGIN).line() == "listening"
    program = str(ROOT / "target" / "release" / "netnice-prefetch")
    serve = (program, "serve", "--origin", "http://127.0.0.1:8080", "--listen", f"{SENDER}:80")
    process = enabled.sender.start(*serve)
    assert "listening" in process.line()
    said = "prefetches go in the background of each connection"
    wait_until(f"the proxy says that {said}", lambda: said in process.errors)
    return enabled


def means(link: Link, **headers: str) -> dict[str, float]:
    """Return the mean seconds of the answers; `headers` are those of the one between."""
    client = (PYTHON, "-S", "-E", "-c", CLIENT, SENDER, json.dumps(headers))
    took: dict[str, float] = json.loads(link.receiver.call(*client))
    print({name: round(seconds, 3) for name, seconds in took.items()}, headers)
    return took


def test_an_answer_after_a_prefetch_is_as_fast_as_after_a_demand_where_nobody_else_is(
    proxy: Link,
) -> None:
    demand, ahead = means(proxy), means(proxy, Purpose="prefetch")
    # 20 kB are 14 packets, two round trips from an initial window of 10
    assert ahead["last"] <= 1.05 * demand["last"]


def test_an_answer_after_a_prefetch_takes_no_longer_than_on_a_new_connection_beside_others(
    proxy: Link,
) -> None:
    proxy.send(proxy.sink(), "--control", "cubic")
    ahead = means(proxy, Purpose="prefetch")
    means(proxy)  # for docs/prefetch.md
    # by chance more or less: both lose packets. A gap that went on would be four round trips more
    assert ahead["last"] <= 1.5 * ahead["first"]
