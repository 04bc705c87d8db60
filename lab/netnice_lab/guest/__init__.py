# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""What runs inside the virtual machine; Python's standard library only (see `__main__`)."""
