# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""The Helm chart is the manifest with its default values in it."""

from __future__ import annotations

import json
import re
import tomllib
from functools import reduce
from typing import Any

import yaml  # type: ignore[import-untyped]
from test_manual import ROOT

KUBERNETES = ROOT / "packaging" / "kubernetes"
CHART = KUBERNETES / "chart"


def test_the_chart_with_its_defaults_in_kube_system_is_the_manifest() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    names: dict[str, Any] = {"Values": values, "Release": {"Namespace": "kube-system"}}

    def as_json(found: re.Match[str]) -> str:
        return json.dumps(reduce(lambda value, key: value[key], found[1].split("."), names))

    template = (CHART / "templates" / "daemonset.yaml").read_text()
    filled = re.sub(r"\{\{ \.([\w.]+) \| toJson \}\}", as_json, template)
    assert "{{" not in filled
    assert yaml.safe_load(filled) == yaml.safe_load((KUBERNETES / "netnice.yaml").read_text())


def test_the_chart_is_of_this_version() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    version = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    assert (chart["version"], chart["appVersion"]) == (version, version)
