# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""The real Chromium at the prefetching proxy, over HTTP/2 and HTTP/3."""

from __future__ import annotations

import http.client
import os
import signal
import ssl
import subprocess
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from netnice_lab.guest.chromium import LOADED, Browser, Client
from netnice_lab.papers.prefetch.browsing import CHROMIUM, certificate

Json = dict[str, Any]

PROXY = Path(__file__).parents[2] / "target" / "release" / "netnice-prefetch"
PATIENCE_S = 60.0
"""For whatever must happen: no measure of speed, only no hanging."""

PAGE = b"<!doctype html><title>p</title><img src=/image.gif><p>a page</p>"


class Site(BaseHTTPRequestHandler):
    """Answers every path with a page, which browsers may keep for a minute."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Answer."""
        is_page = not self.path.endswith(".gif")
        body = PAGE if is_page else b"GIF89a"
        self.send_response(200)
        self.send_header("Content-Type", "text/html" if is_page else "image/gif")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "max-age=60")
        self.end_headers()
        with suppress(OSError):  # the proxy may end meanwhile
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@dataclass
class Proxy:
    """A proxy that knows that /b follows /a."""

    port: int
    admin: int
    log: Path
    flags: list[str]

    def metric(self, name: str) -> float:
        """Return what a metric says; 0 if it says nothing yet."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.admin}/metrics") as answer:
            lines = answer.read().decode().splitlines()
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(name + " "))

    def lines(self, path: str) -> list[str]:
        """Return what its log has of a path, from Chromium."""
        found = self.log.read_text().splitlines()
        return [line for line in found if f'"GET {path} ' in line and "Chrome" in line]


@contextmanager
def proxy(folder: Path, *, http3: bool) -> Iterator[Proxy]:
    """Run the proxy before a site of two pages that a visitor has seen."""
    site = ThreadingHTTPServer(("127.0.0.1", 0), Site)
    threading.Thread(target=site.serve_forever, daemon=True).start()
    (cert, key), trust = certificate(folder)
    log = folder / "access.log"
    allowed = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control").read_text().split()
    default = Path("/proc/sys/net/ipv4/tcp_congestion_control").read_text().strip()
    # HTTP/3 needs nothing of the kernel; for HTTP/2, any control but the default will do here
    control = "" if http3 else f'control = "{next(c for c in allowed if c != default)}"'
    config = folder / "proxy.toml"
    config.write_text(
        f'origin = "http://127.0.0.1:{site.server_port}"\nlisten = ["127.0.0.1:0"]\n'
        f'admin = "127.0.0.1:0"\naccess_log = "{log}"\n[learning]\naddresses = 1\n'
        f'[tls]\ncert = "{cert}"\nkey = "{key}"\nhttp3 = {str(http3).lower()}\n'
        f"[background]\n{control}\n"
    )
    process = subprocess.Popen(
        [PROXY, "serve", "--config", config], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout
        port, admin = (int(process.stdout.readline().rsplit(":", 1)[1]) for _ in range(2))
        trusting = ssl.create_default_context(cafile=str(cert))
        trusting.check_hostname = False
        visitor = http.client.HTTPSConnection("127.0.0.1", port, context=trusting)
        head = {"Host": f"site:{port}", "User-Agent": "first", "Referer": f"https://site:{port}/a"}
        for path in ("/a", "/image.gif", "/b"):
            visitor.request("GET", path, headers=head)
            visitor.getresponse().read()
        visitor.close()
        flags = [trust, "--host-resolver-rules=MAP site 127.0.0.1"]
        yield Proxy(port, admin, log, flags)
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0
        site.shutdown()


def answers(client: Client, url: str, wanted: set[str]) -> dict[str, Json]:
    """Go to a page, until it is shown; return what Chromium says of the answers for these paths."""
    browser = client.browser
    gives_up = threading.Timer(PATIENCE_S, os.kill, (browser.pid, signal.SIGKILL))
    gives_up.start()
    client.call("Network.enable")
    client.call("Page.navigate", url=url)
    found: dict[str, Json] = {}
    shown = False
    while not (shown and wanted <= found.keys()):
        event = browser.events.pop(0) if browser.events else browser.receive()
        shown |= event.get("method") == LOADED
        if event.get("method") == "Network.responseReceived":
            response = event["params"]["response"]
            found[urlsplit(response["url"]).path] = response
    gives_up.cancel()
    return found


def until(what: str, happens: Callable[[], bool]) -> None:
    """Wait for what must happen."""
    end = time.monotonic() + PATIENCE_S
    while not happens():
        assert time.monotonic() < end, f"never: {what}"
        time.sleep(0.02)


@contextmanager
def client(served: Proxy, folder: Path, *flags: str) -> Iterator[Client]:
    """Run a Chromium that has no cache yet."""
    browser = Browser(str(CHROMIUM), [*served.flags, *flags], folder / "profile")
    yield Client(browser, "browser")
    browser.close()


@pytest.mark.parametrize("version", ["h2", "h3"])
def test_chromium_prefetches_on_the_connection_that_the_page_came_over(
    version: str, tmp_path: Path
) -> None:
    with proxy(tmp_path, http3=version == "h3") as served:
        site = f"site:{served.port}"
        forced = [f"--origin-to-force-quic-on={site}"] if version == "h3" else []
        with client(served, tmp_path, *forced) as user:
            found = answers(user, f"https://{site}/a", {"/a", "/b", "/image.gif"})
            for path, answer in found.items():
                assert (answer["protocol"], answer["status"]) == (version, 200), path
            # of what came from the memory of the page, such as its image, it names none
            assert found["/a"]["connectionId"] == found["/b"]["connectionId"] != 0
            assert found["/a"]["headers"]["link"] == "</b>; rel=prefetch"
            until("the prefetch is in the log", lambda: len(served.lines("/b")) == 1)
            shown = answers(user, f"https://{site}/b", {"/b"})["/b"]
            assert shown["fromDiskCache"] or shown["fromPrefetchCache"]
            answers(user, f"https://{site}/c", {"/c"})
            until("the next page is in the log", lambda: len(served.lines("/c")) == 1)
            assert served.metric("netnice_prefetch_connections") == 1
        asked = "GET /{} HTTP/" + ("3.0" if version == "h3" else "2.0")
        [page], [ahead] = served.lines("/a"), served.lines("/b")  # shown from the cache: asked once
        assert asked.format("a") in page and not page.endswith('"prefetch"')
        assert asked.format("b") in ahead and ahead.endswith('"prefetch"')


def test_chromium_asks_for_http_3_where_an_answer_over_http_2_says_it_is(tmp_path: Path) -> None:
    log = tmp_path / "net.json"
    with proxy(tmp_path, http3=True) as served:
        with client(served, tmp_path, f"--log-net-log={log}") as user:
            for path in ("/a", "/c"):
                found = answers(user, f"https://site:{served.port}{path}", {path})
                # it does so in vain: over QUIC, it takes no certificate of a root of one's own
                assert found[path]["protocol"] == "h2"
        assert f'"alt_svc":"quic site:{served.port}' in log.read_text()
