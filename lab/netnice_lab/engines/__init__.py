# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""What runs a scenario: the simulator, or the Linux kernel in virtual machines."""
