# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Browsers that walk through a site behind the prefetching proxy."""

from __future__ import annotations

import html
import json
import os
import sys
import time
from pathlib import Path

from .network import PLAIN, queue_statistics, use_control
from .places import ORIGIN_PORT, SERVER, TLS_PORT, WEB_PORT
from .programs import MEMORY, Json, Program, call, fail, in_netns
from .replay import Replay

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
    `walks`, lists of paths, and `think_s`, as in `chromium`; `download`, bytes of the file that the
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
        use_control("a", PLAIN)
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
        """Have `chromium` carry out a task in a namespace, and return what it found."""
        file = MEMORY / "task.json"
        file.write_text(json.dumps(task))
        python = [sys.executable, "-S", "-E", sys.argv[0], "browse", str(file)]
        found: Json = json.loads(call(*in_netns(netns, *python)))
        return found
