# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Harm and share over the paths and users that RFC 9743 asks for, and the worst of them."""
