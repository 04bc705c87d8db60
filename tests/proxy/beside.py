# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""netnice-prefetch and nginx as reverse proxies before the same origin, which tells what it saw."""

from __future__ import annotations

import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROXY = ROOT / "target" / "release" / "netnice-prefetch"
PATIENCE_S = 20.0

OK = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b"
# what each proxy adds for itself, and what says how a body is framed, which may change on the way
NOT_COMPARED = {"via", "connection", "content-length", "transfer-encoding"}


@dataclass(frozen=True)
class Seen:
    """A request that reached the origin whole."""

    line: str
    headers: tuple[str, ...]
    body: bytes


def _body(stream: socket.SocketIO, headers: list[str]) -> bytes | None:
    """Read what follows a head; None if it breaks off."""
    fields = dict(line.lower().split(": ", 1) for line in headers if ": " in line)
    if "transfer-encoding" not in fields:
        length = int(fields.get("content-length", "0"))
        got = b""
        while len(got) < length:
            part = stream.read(length - len(got))
            if not part:
                return None
            got += part
        return got
    body = b""
    while True:
        size = _line(stream)
        if not size:
            return None
        length = int(size, 16)
        chunk = b""
        while len(chunk) < length + 2:
            part = stream.read(length + 2 - len(chunk))
            if not part:
                return None
            chunk += part
        if length == 0:
            return body
        body += chunk[:-2]


def _line(stream: socket.SocketIO) -> str | None:
    got = b""
    while not got.endswith(b"\n"):
        byte = stream.read(1)
        if not byte:
            return None
        got += byte
    return got.rstrip(b"\r\n").decode("latin-1")


class Origin:
    """A web server that gives each request the same answer, and remembers what came whole.

    The body of OK is the target that was asked for, also where the method is HEAD. An answer of
    b"" ends the connection. `/first` is always answered, and its connection kept;
    `/slow` takes its time.
    """

    def __init__(self) -> None:
        """Listen on a port of this machine."""
        self.answer = OK
        self.seen: list[Seen] = []
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=100)
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            connection, _ = self._listener.accept()
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            stream = socket.SocketIO(connection, "rw")
            try:
                while self._answered(connection, stream):
                    pass
            except OSError:
                pass  # the proxy has given up

    def _answered(self, connection: socket.socket, stream: socket.SocketIO) -> bool:
        head: list[str] = []
        while line := _line(stream):
            head.append(line)
        if not head:
            return False
        body = _body(stream, head[1:])
        if body is None:
            return False
        kept = [line for line in head[1:] if line.split(":")[0].lower() not in NOT_COMPARED]
        headers = tuple(sorted(name.lower() + ":" + value for name, value in map(_split, kept)))
        self.seen.append(Seen(head[0], headers, body))
        if " /slow " in head[0]:
            time.sleep(0.5)  # what else the proxy may hear of its client comes first
        answer = OK if " /first " in head[0] else self.answer
        if answer != OK:
            connection.sendall(answer)
            return False
        target = head[0].split(" ")[1].encode("latin-1")
        connection.sendall(OK % (len(target), target))
        return True


def _split(line: str) -> tuple[str, str]:
    name, _, value = line.partition(":")
    return name, value


def exchange(port: int, *sent: bytes, half_closes: bool = False) -> bytes:
    """Send pieces on one connection and return what comes until it is closed, or quiet for 3 s."""
    with socket.create_connection(("127.0.0.1", port), PATIENCE_S) as client:
        for number, piece in enumerate(sent):
            if number:
                time.sleep(0.05)  # so that it comes as a piece of its own
            try:
                client.sendall(piece)
            except OSError:
                break  # refused before all was sent
        if half_closes:
            client.shutdown(socket.SHUT_WR)
        client.settimeout(3)
        got = b""
        try:
            while part := client.recv(1 << 16):
                got += part
        except OSError:
            pass
        return got


NGINX = """
daemon off; master_process off; pid {prefix}/pid; error_log {prefix}/error.log;
events {{ worker_connections 256; }}
http {{
  access_log off;
  client_body_temp_path {prefix}/body; proxy_temp_path {prefix}/proxy; fastcgi_temp_path {prefix}/f;
  uwsgi_temp_path {prefix}/u; scgi_temp_path {prefix}/s;
  upstream origin {{ server 127.0.0.1:{origin} max_fails=0; keepalive 8; }}
  server {{
    listen 127.0.0.1:{port};
    location / {{
      proxy_pass http://origin; proxy_http_version 1.1; proxy_set_header Connection "";
      proxy_set_header Host $host; proxy_set_header X-Forwarded-Proto $scheme;
      proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for; proxy_read_timeout 5s;
    }}
  }}
}}
"""


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


@contextmanager
def _ended(process: subprocess.Popen[str]) -> Iterator[None]:
    try:
        yield
    finally:
        process.terminate()
        process.wait(PATIENCE_S)


@contextmanager
def nginx(origin: Origin, prefix: Path) -> Iterator[int]:
    """Run nginx before an origin; give its port."""
    program = shutil.which("nginx", path="/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin")
    assert program, "nginx is missing: apt install nginx-light (make build/test-deps)"
    port = _free_port()
    config = prefix / "nginx.conf"
    config.write_text(NGINX.format(prefix=prefix, origin=origin.port, port=port))
    command = [program, "-p", str(prefix), "-c", str(config), "-e", str(prefix / "error.log")]
    process = subprocess.Popen(command, text=True)
    with _ended(process):
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            assert process.poll() is None, (prefix / "error.log").read_text()
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                time.sleep(0.02)
        yield port


@contextmanager
def netnice(origin: Origin, prefix: Path) -> Iterator[int]:
    """Run netnice-prefetch before an origin; give its port."""
    assert PROXY.exists(), "netnice-prefetch is not built: make build"
    config = prefix / "proxy.toml"
    config.write_text('[background]\nmode = "off"\n')
    origin_url = f"http://127.0.0.1:{origin.port}"
    command = [PROXY, "serve", "--config", config, "--origin", origin_url]
    process = subprocess.Popen(
        [*map(str, command), "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True
    )
    with _ended(process):
        assert process.stdout
        line = process.stdout.readline()
        assert line.startswith("listening "), line
        yield int(line.rsplit(":", 1)[1])
