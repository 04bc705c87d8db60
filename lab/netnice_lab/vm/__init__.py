# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""The virtual machine: Debian's kernel in virtual time."""

from .machine import Exit, pass_through, run
from .package import Kernel, find_kernel

__all__ = ["Exit", "Kernel", "find_kernel", "pass_through", "run"]
