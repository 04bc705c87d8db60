# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""What the kernel engine refuses to carry, before any virtual machine starts."""

import json
from pathlib import Path
from typing import Any

import pytest

from netnice_lab import LabError, job
from netnice_lab.engines import kernel
from netnice_lab.guest import qdisc, traffic
from netnice_lab.scenario import Section, describe, variants

Table = dict[str, Any]

MINIMAL: Table = {
    "name": "x",
    "bottleneck": {"rate_mbit": 8.0, "rtt_ms": 50.0, "limit_packets": 50},
}
BYTES = {"rate_mbit": 8.0, "rtt_ms": 50.0, "limit_bytes": 50_000}
BULK = {"name": "u", "control": "cubic"}
GROUP: Table = BULK | {"control": "nn_mpat", "group": "g", "flows": 2, "shares": [1.0, 3.0]}


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"profile": "ns2"}, 'profile = "ns2": its TCP is that of Linux'),
        ({"mss_bytes": 1000}, "mss_bytes = 1000: on its Ethernet that is 1448"),
        ({"overhead_ms": 1}, "overhead_ms: its senders do not wait"),
        (
            {"pacing": True, "bottleneck": MINIMAL["bottleneck"] | {"loss": 0.01}},
            "pacing with bottleneck.loss",
        ),
        ({"header_bytes": 40}, "header_bytes = 40: on its Ethernet that is 66"),
        ({"bottleneck": MINIMAL["bottleneck"] | {"trace": "TRACE"}}, "bottleneck.trace"),
        ({"bottleneck": BYTES | {"limit_packets": 9}}, "limit_packets and limit_bytes at once"),
        ({"bottleneck": BYTES | {"queue": "codel"}}, "limit_bytes in queue codel"),
        (
            {"bottleneck": BYTES, "background": [BULK | {"queue": "pie"}]},
            "limit_bytes in queue pie: Linux counts the packets in it",
        ),
        (
            {"route": [{"from": "a", "to": "b", "via": ["bottleneck"]}]},
            "[[route]]: its network has one path",
        ),
        (
            {
                "hosts": [
                    {
                        "name": "c",
                        "at": "b",
                        "count": 2,
                        "rate_mbit": [1, 2],
                        "delay_ms": [1, 2],
                    }
                ]
            },
            "[[hosts]]: its network has a host at each end",
        ),
        ({"foreground": {"window_packets": 9}}, "window_packets in [foreground]"),
        ({"foreground": {"keep_alive": True}}, "keep_alive in [foreground]"),
        ({"background": [BULK | {"window_packets": 9}]}, "window_packets in [[background]] 'u'"),
        ({"background": [BULK | {"from": "b", "to": "a"}]}, "from and to in [[background]] 'u'"),
        ({"foreground": {"senders": 2}}, "senders in [foreground]: all of them are on one host"),
        ({"background": [BULK | {"host": "x"}]}, "host in [[background]] 'u': none but"),
        (
            {"foreground": {"host": "x"}, "bottleneck": MINIMAL["bottleneck"] | {"loss": 0.01}},
            "host in [foreground] with pacing or bottleneck.loss",
        ),
        ({"foreground": {"host": "x"}, "pacing": True}, "host in [foreground] with pacing"),
        ({"background": [BULK | {"hold": True}]}, "hold in [[background]] 'u'"),
        (
            {"background": [BULK | {"control": "nn_nice", "hold": True, "oracle": {}}]},
            "oracle in [[background]] 'u': its host measures its path, and nobody tells it",
        ),
        (
            {"background": [BULK | {"control": "nn_nice", "hold": True, "hold_rate_mbit": 7.6}]},
            "hold_rate_mbit in [[background]] 'u'",
        ),
        (
            {"background": [GROUP | {"queue": "priority"}]},
            "shares in [[background]] 'u': strict priority knows one port",
        ),
        (
            {"background": [GROUP | {"flows": 101, "shares": [1.0] * 101}]},
            "shares in [[background]] 'u': it has 100 runs of a group at most",
        ),
        (
            {"cross": [{"name": "u", "kind": "tcp", "from": "b", "to": "a"}]},
            "from and to in [[cross]] 'u'",
        ),
        ({"cross": [{"name": "u", "kind": "tcp", "group": "g"}]}, "group in [[cross]] 'u'"),
        ({"cross": [{"name": "u", "kind": "tcp", "set": {"share": 2}}]}, "set in [[cross]] 'u'"),
        ({"cross": [{"name": "u", "kind": "cbr", "rate_mbit": 1.0}]}, 'kind = "cbr" in [[cross]]'),
    ],
)
def test_what_the_kernel_does_not_carry_is_refused_with_the_engine_that_does(
    table: Table, said: str, tmp_path: Path, built: Path
) -> None:
    (tmp_path / "trace").write_text("1\n")
    merged = MINIMAL | table
    if "trace" in merged["bottleneck"]:
        merged["bottleneck"]["trace"] = str(tmp_path / "trace")
    scenario = Section(merged)
    with pytest.raises(LabError) as error:
        kernel.plan(scenario, variants(scenario))
    assert said in str(error.value)
    assert str(error.value).startswith("x: the kernel engine does not carry ")
    assert str(error.value).endswith("Use --engine sim.")


def test_a_topology_is_refused_with_the_engine_that_carries_it(built: Path) -> None:
    links = [{"name": "ab", "from": "a", "to": "b", "duplex": True}]
    with pytest.raises(LabError, match=r"\[\[link\]\]: its network is one \[bottleneck\].*sim"):
        kernel.plan(Section(name="x", link=links))


DUPLEX: Table = {
    "name": "ab", "from": "a", "to": "b", "duplex": True,
    "rate_mbit": 16, "delay_ms": 35, "limit_packets": 100,
}  # fmt: skip


def test_a_duplex_link_is_a_bottleneck_in_both_directions(built: Path) -> None:
    back = {"name": "back", "kind": "tcp", "from": "b", "to": "a"}
    scenario = Section(name="x", link=[DUPLEX], cross=[back], background=[GROUP])
    plan = kernel.plan(scenario, variants(scenario)[2:])
    bottleneck = plan.scenario.bottleneck
    assert plan.runs[0]["duplex"]
    assert (bottleneck.rate_mbit, bottleneck.rtt_ms, bottleneck.limit_packets) == (16, 70, 100)
    lines = qdisc.bottleneck_lines("drop-tail", bottleneck, 2, duplex=True)
    there, back_again = lines[:2], lines[2:]
    assert [line.replace("dev rb", "dev ra") for line in there] == back_again
    assert "pfifo limit 100" in back_again[1]
    with pytest.raises(LabError, match=r"\[\[link\]\]"):
        kernel.plan(scenario.but(link=[DUPLEX | {"loss": 0.1}]))


def test_each_flow_with_a_share_is_a_run_of_its_own(built: Path) -> None:
    scenario = describe(Section(MINIMAL, background=[GROUP | {"stagger_s": 0.5}])).scenario
    runs = traffic.runs_of(scenario.background[0])
    assert [(r["share"], r["flows"], r["start_s"]) for r in runs] == [(1, 1, 0), (3, 1, 0.5)]
    sends = traffic.Traffic({"scenario": scenario}, {})
    sends.epoch = 0.0
    words = sends.sender(runs[1], 5002)
    assert words[: words.index("--")] == [
        "netnice", "run", "--algorithm", "mpat", "--group", "g", "--share", "3.0",
    ]  # fmt: skip


def test_flows_over_quic_are_sent_by_netnice_load_under_its_own_control(
    built: Path, tmp_path: Path
) -> None:
    over_quic = {"name": "q", "control": "nn_nice", "quic": True, "set": {"share": 2}, "group": "g"}
    scenario = Section(MINIMAL, foreground={"quic": True}, background=[over_quic])
    plan = kernel.plan(scenario, variants(scenario)[2:])
    sends = traffic.Traffic({"scenario": plan.scenario}, {})
    sends.epoch = 0.0
    words = sends.sender(plan.runs[0]["background"], 5001)
    assert words[:2] == ["nsenter", "--net=/run/netns/a"]
    for option in ("--quic /run/netnice-lab/sink.der", "--set share=2", "--group"):
        assert option in " ".join(words)
    assert traffic.quic(plan.scenario.foreground, "serve")[0] == "--quic"
    # nothing of netnice is loaded into the kernel, where that is all
    prepared = json.loads(job.prepare(plan.scenario, plan.runs, tmp_path).read_text())
    assert (prepared["controls"], prepared["netnice"]) == ([], None)


@pytest.mark.parametrize("key", [{"set": {"alpha": 1}}, {"group": "g"}])
def test_parameters_and_groups_are_refused_of_controls_that_have_none(
    key: Table, built: Path
) -> None:
    scenario = Section(MINIMAL, background=[BULK | key])
    with pytest.raises(LabError, match=r"only nn_\* controls have"):
        kernel.plan(scenario, variants(scenario))
    # Unless that background does not run.
    kernel.plan(scenario)


def test_what_is_out_of_range_is_refused_in_the_words_of_netnice_load(built: Path) -> None:
    scenario = Section(MINIMAL, bottleneck=BYTES | {"loss": 2})
    with pytest.raises(LabError, match=r"^x: `bottleneck.loss` is 2; it must be from 0 to 0.99"):
        kernel.plan(scenario)


def test_a_changed_rate_gives_the_drop_tail_queue_its_limit_back(built: Path) -> None:
    bottleneck = describe(Section(MINIMAL)).scenario.bottleneck
    change = {"at_s": 5.0, "rate_mbit": 1.0, "rtt_ms": 80.0}
    lines = qdisc.change_lines(bottleneck, "drop-tail", change)
    (rate, limit), (rtt,) = lines["r"], lines["b"]
    assert "tbf rate 1.0mbit" in rate
    assert limit.endswith("handle 10: pfifo limit 50")
    assert "netem delay 80.0ms" in rtt
    # Other disciplines keep their own.
    assert len(qdisc.change_lines(bottleneck, "fq_codel", change)["r"]) == 1
