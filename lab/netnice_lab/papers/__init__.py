# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""The papers whose claims are measured here, one package each."""
