# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""The virtual machine: Debian's kernel in virtual time."""

from .machine import Exit, Machine, pass_through, run
from .package import Kernel, find_kernel
from .pool import POOL

__all__ = ["POOL", "Exit", "Kernel", "Machine", "find_kernel", "pass_through", "run"]
