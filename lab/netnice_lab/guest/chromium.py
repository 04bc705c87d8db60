# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Headless Chromium walks through a site, another one downloads meanwhile, both take the time.

Browsers are told what to do by their DevTools protocol, over a pipe.

A task has `ask`, URLs that are fetched without any browser, marked as prefetches; or it has

- `program`, Chromium's, `flags` for it, and `profile`, a directory for what it stores;
- `walks`, lists of URLs that are visited in turn, each walk with nothing cached and as a client of
  its own, each page `think_s` seconds after the one before was loaded;
- `download`, a URL that a second browser fetches again and again meanwhile, or null.
"""

from __future__ import annotations

import fcntl
import http.client
import json
import os
import shutil
import ssl
import sys
import threading
import time
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

Json = dict[str, Any]

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--remote-debugging-pipe",
)  # fmt: skip

WARM = "data:text/html,<title>w</title><p>warm"
"""A page without network, so that no measured one loads fonts and the like."""

TIMING = """
(() => {
    const { loadEventEnd, transferSize } = performance.getEntriesByType("navigation")[0];
    return { load_ms: loadEventEnd, bytes: transferSize };
})()
"""
"""What the browser knows of a page: milliseconds from navigationStart to loadEventEnd; bytes of the
document over the network, 0 if it came from the cache."""

DOWNLOAD = """
(async () => {
    const begun = performance.now();
    await (await fetch(%s, { cache: "no-store" })).arrayBuffer();
    return performance.now() - begun;
})()
"""

LOADED = "Page.loadEventFired"


class Browser:
    """A running Chromium."""

    def __init__(self, program: str, flags: list[str], profile: Path) -> None:
        """Start it."""
        shutil.rmtree(profile, ignore_errors=True)
        # It reads commands at descriptor 3 and answers at 4.
        commands, answers = os.pipe(), os.pipe()
        theirs = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10) for fd in (commands[0], answers[1])]
        self.pid = os.posix_spawn(
            program, [program, *FLAGS, *flags, f"--user-data-dir={profile}"], os.environ,
            file_actions=[
                *((os.POSIX_SPAWN_DUP2, fd, at) for at, fd in enumerate(theirs, 3)),
                *((os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_WRONLY, 0) for fd in (1, 2)),
            ],
        )  # fmt: skip
        for fd in (commands[0], answers[1], *theirs):
            os.close(fd)
        self.commands = os.fdopen(commands[1], "wb", 0)
        self.answers = os.fdopen(answers[0], "rb", 0)
        self.events: list[Json] = []
        self.calls, self.rest = 0, b""

    def receive(self) -> Json:
        """Return its next message."""
        while b"\0" not in self.rest:
            part = self.answers.read(1 << 16)
            if not part:
                sys.exit("The browser ended.")
            self.rest += part
        message, _, self.rest = self.rest.partition(b"\0")
        found: Json = json.loads(message)
        return found

    def call(self, method: str, parameters: Json, session: str | None = None) -> Json:
        """Call a method of the protocol and return its result."""
        self.calls += 1
        call = {"id": self.calls, "method": method, "params": parameters}
        if session:
            call["sessionId"] = session
        self.commands.write(json.dumps(call).encode() + b"\0")
        while (message := self.receive()).get("id") != self.calls:
            self.events.append(message)
        if "error" in message:
            sys.exit(f"{method} {parameters}: {message['error']['message']}")
        result: Json = message["result"]
        return result

    def close(self) -> None:
        """End it: it does so when nobody holds its pipe."""
        self.commands.close()
        self.answers.close()
        os.waitpid(self.pid, 0)


class Client:
    """A browser's page with nothing cached, whose user agent tells it from all others."""

    def __init__(self, browser: Browser, name: str) -> None:
        """Open it, empty."""
        self.browser = browser
        self.context = browser.call("Target.createBrowserContext", {})["browserContextId"]
        place = {"url": "about:blank", "browserContextId": self.context}
        target = browser.call("Target.createTarget", place)["targetId"]
        flat = {"targetId": target, "flatten": True}
        self.session: str = browser.call("Target.attachToTarget", flat)["sessionId"]
        agent = browser.call("Browser.getVersion", {})["userAgent"]
        self.call("Emulation.setUserAgentOverride", userAgent=f"{agent} {name}")
        self.call("Page.enable")
        self.load(WARM, by_link=False)

    def call(self, method: str, **parameters: object) -> Json:
        """Call a method of the page's protocol."""
        return self.browser.call(method, parameters, self.session)

    def evaluate(self, script: str) -> Any:  # noqa: ANN401 (JSON)
        """Return what a script in the page comes to."""
        how = {"awaitPromise": True, "returnByValue": True}
        found = self.call("Runtime.evaluate", expression=script, **how)
        if "exceptionDetails" in found:
            sys.exit(f"{script} failed: {found['exceptionDetails']}")
        return found["result"].get("value")

    def load(self, url: str, *, by_link: bool) -> Json:
        """Go to a page, as a link or as the user does, and return its times once it is loaded."""
        self.browser.events.clear()
        if by_link:
            self.evaluate(f"location.href = {json.dumps(url)}; null")
        else:
            self.call("Page.navigate", url=url)
        events = self.browser.events
        while (events.pop(0) if events else self.browser.receive()).get("method") != LOADED:
            pass
        while not (found := self.evaluate(TIMING))["load_ms"]:
            time.sleep(0.001)
        return dict(found)

    def walk(self, urls: list[str], think_s: float) -> list[Json]:
        """Visit pages and return their times."""
        found = []
        for at, url in enumerate(urls):
            found.append({"url": url, **self.load(url, by_link=at > 0)})
            time.sleep(think_s)
        self.browser.call("Target.disposeBrowserContext", {"browserContextId": self.context})
        return found


def download(client: Client, url: str, enough: threading.Event, found: list[float]) -> None:
    """Fetch a file again and again; add the milliseconds that each took."""
    client.load(urljoin(url, "/no-such-page"), by_link=False)  # of the same origin as the file
    while not enough.is_set():
        took_ms = client.evaluate(DOWNLOAD % json.dumps(url))
        if not enough.is_set():
            found.append(took_ms)


def browse(task: Json) -> Json:
    """Walk, with downloads meanwhile; return the times."""
    profile = Path(task["profile"])
    first = Browser(task["program"], task["flags"], profile / "first")
    downloads: list[float] = []
    enough = threading.Event()
    if task["download"]:
        second = Browser(task["program"], task["flags"], profile / "second")
        other = Client(second, "downloads")
        thread = threading.Thread(
            target=download, args=(other, task["download"], enough, downloads), daemon=True
        )  # fmt: skip
        thread.start()
    walks = []
    for number, urls in enumerate(task["walks"]):
        walks.append(Client(first, f"walk {number}").walk(urls, task["think_s"]))
    first.close()
    if task["download"]:
        enough.set()
        thread.join()
        second.close()
    return {"walks": walks, "downloads_ms": downloads}


def ask(urls: list[str]) -> Json:
    """Fetch as a browser that prefetches does; return how many answers were not 200."""
    connections: dict[str, http.client.HTTPConnection] = {}
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    failed = 0
    for url in urls:
        parts = urlsplit(url)
        if parts.netloc not in connections:
            connections[parts.netloc] = (
                http.client.HTTPSConnection(parts.netloc, context=trusting)
                if parts.scheme == "https"
                else http.client.HTTPConnection(parts.netloc)
            )
        connection = connections[parts.netloc]
        connection.request("GET", parts.path, headers={"Sec-Purpose": "prefetch"})
        answer = connection.getresponse()
        answer.read()
        failed += answer.status != 200
    return {"failed": failed}


def perform(task: Json) -> Json:
    """Carry out a task and return what was found."""
    return ask(task["ask"]) if "ask" in task else browse(task)
