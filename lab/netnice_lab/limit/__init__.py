# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""The limit: what the best is that a sender could do, and how far from it what there is.

An oracle (docs/scenarios.md) knows all of others' traffic, a round trip late. Beside it are strict
priority in the router, the sender's own shaper, and the algorithms of the core: harm and share of
each, in a few networks, with the foreground on the same host, half on another, and all on another.
"""
