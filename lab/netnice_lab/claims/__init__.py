# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Claims of papers: listed, judged of saved data, measured by themselves, published.

A paper is a package of `netnice_lab.papers` with a `REPRODUCTION`: experiments, which are measured
and saved as JSON, and claims, which are judged of what was saved. To add a claim, write one
function with the decorator `claim.claim`.
"""
