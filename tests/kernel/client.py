# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""A client that obeys, under netnice or not."""

from __future__ import annotations

import socket
from collections.abc import Sequence

from support import PATIENCE_S, PYTHON, Connection, Namespace, Process

RUN = ("netnice", "run")
UNDER = (*RUN, "--")

# A client that obeys lines: connects, sets options, says what it sees, waits for the next line.
CLIENT = """
import socket, sys
sock = None
def show(*what): print(*what, flush=True)
show("ready")
for line in sys.stdin:
    word, *args = line.split()
    if word == "open":
        sock = socket.socket(*[getattr(socket, arg) for arg in args])
    elif word == "set":
        level, option, value = args
        value = int(value) if value.isdigit() else value.encode()
        sock.setsockopt(getattr(socket, level), getattr(socket, option), value)
    elif word == "get":
        show(sock.getsockopt(getattr(socket, args[0]), getattr(socket, args[1])))
    elif word == "connect":
        sock.connect((args[0], int(args[1])))
    elif word == "listen":
        sock.bind((args[0], int(args[1])))
        sock.listen()
    elif word == "send":
        sock.sendall(b"x" * int(args[0]))
    elif word == "close":
        sock.close()
    show("done")
"""


# A server at an address and a port, which keeps what it accepts.
SERVES = """
import socket, sys
listener = socket.create_server((sys.argv[1], int(sys.argv[2])))
print("ready", flush=True)
held = []
while True:
    held.append(listener.accept())
    print("accepted", flush=True)
"""


class Client:
    """`CLIENT`, under netnice or another prefix."""

    def __init__(self, where: Namespace, *prefix: str) -> None:
        """Start it and wait until it obeys."""
        self.process = where.start(*prefix, PYTHON, "-S", "-E", "-c", CLIENT)
        assert self.process.line() == "ready"

    def do(self, order: str) -> str:
        """Have an order carried out; return what it showed."""
        self.process.tell(order)
        shown = ""
        while (line := self.process.line()) != "done":
            shown += line
        return shown


def accept(listener: socket.socket, where: Namespace) -> socket.socket:
    """Accept a connection, and keep it until the namespace is removed."""
    accepted, _ = listener.accept()
    accepted.settimeout(PATIENCE_S)
    where.sockets.append(accepted)
    return accepted


def received(accepted: socket.socket, count: int) -> bytes:
    """Return so many bytes, or what came before the end.

    MSG_WAITALL does not wait where a socket has a timeout: then Python has it not block.
    """
    got = b""
    while len(got) < count and (part := accepted.recv(count - len(got))):
        got += part
    return got


def only(found: Sequence[Connection]) -> Connection:
    """Return the only one that there must be."""
    assert len(found) == 1, found
    return found[0]


def ended(process: Process, status: int = 0) -> None:
    """Wait for its end, with this status."""
    assert process.status() == status, process.errors
