# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""An eBPF agent: a program of a cgroup that gives each connection a control of its own."""

from __future__ import annotations

import ctypes
import os
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support import cgroup_root, wait_until

BPF_PROG_LOAD, BPF_PROG_ATTACH, BPF_F_ALLOW_MULTI = 5, 8, 2
BPF_PROG_TYPE_SOCK_OPS, BPF_CGROUP_SOCK_OPS = 13, 3
SYS_BPF = {"x86_64": 321, "aarch64": 280}[os.uname().machine]


def bpf(command: int, attributes: bytes) -> int:
    """Call the system call bpf; return its result."""
    result = int(ctypes.CDLL(None, use_errno=True).syscall(
        SYS_BPF, command, ctypes.create_string_buffer(attributes, 128), 128
    ))  # fmt: skip
    assert result >= 0, os.strerror(ctypes.get_errno())
    return result


def agent() -> int:
    """Load a program that gives each connection reno, whenever the kernel asks it anything."""

    def instruction(code: int, to: int = 0, of: int = 0, offset: int = 0, value: int = 0) -> bytes:
        return struct.pack("<BBhi", code, to | of << 4, offset, value)

    program = b"".join([
        instruction(0x18, 3, value=int.from_bytes(b"reno", "little")), instruction(0),  # r3 =
        instruction(0x7B, 10, 3, -8),  # *(r10 - 8) = r3
        instruction(0xBF, 4, 10), instruction(0x07, 4, value=-8),  # r4 = r10 - 8: the value
        instruction(0xB7, 5, value=5),  # its length
        instruction(0xB7, 2, value=socket.IPPROTO_TCP),
        instruction(0xB7, 3, value=13),  # TCP_CONGESTION
        instruction(0x85, value=49),  # bpf_setsockopt(context, r2, r3, r4, r5)
        instruction(0xB7, 0, value=1), instruction(0x95),  # return 1
    ])  # fmt: skip
    text, licence = ctypes.create_string_buffer(program), ctypes.create_string_buffer(b"GPL")
    return bpf(BPF_PROG_LOAD, struct.pack(
        "IIQQ", BPF_PROG_TYPE_SOCK_OPS, len(program) // 8, ctypes.addressof(text),
        ctypes.addressof(licence),
    ))  # fmt: skip


@contextmanager
def below_an_agent(flags: int = BPF_F_ALLOW_MULTI) -> Iterator[Path]:
    """Make a cgroup with the agent; without flags it forbids such programs below."""
    above = cgroup_root() / f"netnice-test-{os.getpid()}"
    above.mkdir()
    program, directory = agent(), os.open(above, os.O_RDONLY)
    try:
        bpf(BPF_PROG_ATTACH, struct.pack("IIII", directory, program, BPF_CGROUP_SOCK_OPS, flags))
        yield above
    finally:
        os.close(directory)
        os.close(program)
        wait_until("the run has ended", lambda: not list(above.glob("*/")))
        # netnice itself was in it, and may still be about to end
        events = above / "cgroup.events"
        wait_until("nobody is in it", lambda: "populated 0" in events.read_text())
        above.rmdir()
