# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""A web log, replayed at the prefetching proxy."""

from __future__ import annotations

import json
import time

from .network import PLAIN, queue_statistics, use_control
from .places import ORIGIN_PORT, SERVER, WEB_PORT
from .programs import MEMORY, Json, Program, call, in_netns


class Replay:
    """Clients in b replay a web log at `netnice-prefetch serve` in a, which stands before nginx.

    `run["replay"]` has: `site` and `options`, words for `netnice-prefetch site` and for its
    `replay`, which begin with the log; `second`, whether a second nginx answers the prefetches in
    the foreground instead of the proxy.
    """

    TYPES = "application/octet-stream bz2 gz ico jar pdf png gif jpg tar zip"

    def __init__(self, job: Json, run: Json) -> None:
        """Write the site that the log tells of."""
        del job
        self.how: Json = run["replay"]
        self.site = MEMORY / "site"
        if not self.site.exists():
            call("netnice-prefetch", "site", *self.how["site"], "--root", str(self.site))

    def nginx(self, address: str) -> Program:
        """Start nginx in a, and return it once it listens."""
        config = MEMORY / f"nginx-{address}.conf"
        config.write_text(
            "daemon off; master_process off; error_log stderr; events {}\n"
            f"pid {config}.pid;\n"
            "http {\naccess_log off; default_type text/html;\n"
            f"types {{ {self.TYPES}; text/css css; text/javascript js; }}\n"
            f"server {{ listen {address}:{ORIGIN_PORT}; root {self.site}; "
            "location / { try_files $request_uri $request_uri/index.html =404; } }\n}\n"
        )
        program = Program(in_netns("a", "nginx", "-e", "stderr", "-c", str(config)))
        # It does not say when it listens; the kernel does.
        place = bytes(reversed([int(part) for part in address.split(".")])).hex().upper()
        listening = f"{place}:{ORIGIN_PORT:04X} 00000000:0000 0A"
        while listening not in call(*in_netns("a", "cat", "/proc/net/tcp")):
            if program.process.poll() is not None:
                program.wait()
            time.sleep(0.1)
        return program

    def measure(self) -> Json:
        """Replay, and return what the clients saw."""
        use_control("a", PLAIN)
        servers = [self.nginx("127.0.0.1")]
        proxy = ["netnice-prefetch", "serve", "--listen", f"{SERVER}:{WEB_PORT}"]
        proxy += ["--origin", f"http://127.0.0.1:{ORIGIN_PORT}"]
        servers.append(Program(in_netns("a", *proxy), listens=True))
        replay = ["netnice-prefetch", "replay", *self.how["options"], "--json"]
        replay += ["--to", f"{SERVER}:{WEB_PORT}"]
        if self.how["second"]:
            servers.append(self.nginx(SERVER))
            replay += ["--prefetch-to", f"{SERVER}:{ORIGIN_PORT}"]
        found: Json = json.loads(call(*in_netns("b", *replay)))["summary"]
        queue = queue_statistics()
        for server in reversed(servers):
            server.stop()
        return {"summary": found, "queue": queue}
