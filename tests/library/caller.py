#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""libnetnice by cffi: `caller.py HEADER LIBRARY`. A flow that loses halves its window."""

import re
import sys
from pathlib import Path

from cffi import FFI

header = Path(sys.argv[1]).read_text(encoding="utf-8")
header = re.sub(r'^#.*$|extern "C" \{|^\}$', "", header, flags=re.MULTILINE)
ffi = FFI()
ffi.cdef(header)
lib = ffi.dlopen(sys.argv[2])


def must(error: int) -> None:
    """Fail with the library's sentence."""
    if error:
        raise SystemExit(ffi.string(lib.netnice_strerror(error)).decode())


flow = ffi.new("uint64_t[]", lib.NETNICE_FLOW_WORDS)
now, answer = ffi.new("struct netnice_now *"), ffi.new("struct netnice_answer *")
must(lib.netnice_init(flow, ffi.sizeof(flow), b"reno"))
must(lib.netnice_start(flow, now, 10, answer))
must(lib.netnice_event(flow, lib.NETNICE_LOSS, now, answer))
print(answer.window, answer.recovery)
