# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""The lab on the real kernel. These boot virtual machines, and fail if they cannot."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.vm

LAB = [str(Path(sys.executable).with_name("netnice-lab"))]


def lab(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*LAB, *arguments], capture_output=True, text=True, check=False)


def test_a_command_in_the_vm_passes_output_and_exit_status_through() -> None:
    done = lab("vm", "--", "sh", "-c", "uname -r; echo to stderr >&2; exit 7")
    assert done.returncode == 7, done.stderr
    assert done.stdout.startswith("6.1.0-")
    assert done.stderr == "to stderr\n"


def test_a_vm_that_takes_too_long_is_killed_and_says_so() -> None:
    done = lab("vm", "--timeout", "30", "--", "sh", "-c", "while :; do :; done")
    assert done.returncode == 1
    assert "still running after 30 s and was killed" in done.stderr


def test_an_idle_hour_in_the_vm_takes_less_than_an_hour() -> None:
    begun = time.monotonic()
    done = lab(
        "vm",
        "--",
        "sh",
        "-c",
        "read a _ </proc/uptime; sleep 3600; read b _ </proc/uptime; echo $a $b",
    )
    before, after = map(float, done.stdout.split())
    assert after - before >= 3600
    assert time.monotonic() - begun < after - before


def test_the_smoke_scenario_runs_and_its_numbers_make_sense(tmp_path: Path) -> None:
    saved = tmp_path / "smoke.json"
    done = lab("run", "smoke", "--seed", "1", "--out", str(saved), "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(saved.read_text())
    assert json.loads(done.stdout) == result
    none, ideal, cubic = result["runs"]
    assert none["foreground"]["flows"] > 20
    # The same fetches each time.
    assert none["foreground"]["flows"] == ideal["foreground"]["flows"]
    assert sorted(none["foreground"]["sizes"]) == sorted(ideal["foreground"]["sizes"])
    # No fetch beats the two-way delay twice (handshake, then request and answer): 2 x 20 ms.
    assert min(none["foreground"]["fct_s"]) > 0.04
    assert none["probe"]["rtt_mean_ms"] >= 20
    # The link's 4 Mbit/s hold all: less than that, more than nothing, nothing without background.
    assert none["background_goodput_mbit"] == 0
    for run in (ideal, cubic):
        assert 1 < run["background_goodput_mbit"] < 4
        assert len(run["background_flow_mbit"]) == 4
        assert run["queue"]["drops"] > 0
    # Strict priority spares the fetches what CUBIC in the same queue costs them.
    summary = {entry["background"]: entry for entry in result["summary"]}
    harm = {name: entry["fct_ratio_mean"]["mean"] for name, entry in summary.items()}
    assert harm["none"] == 1
    assert 0.9 < harm["strict priority"] < 1.5 < harm["cubic x4"]
    assert (
        summary["cubic x4"]["probe_rtt_ratio_mean"]
        > summary["strict priority"]["probe_rtt_ratio_mean"]
    )


def test_a_run_in_virtual_time_does_not_depend_on_how_busy_the_host_is(tmp_path: Path) -> None:
    quiet, busy = tmp_path / "quiet.json", tmp_path / "busy.json"
    arguments = ["run", "smoke", "--seed", "1", "--jobs", "1", "--only", "cubic x4", "--out"]
    assert lab(*arguments, str(quiet)).returncode == 0
    load = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"])
        for _ in range(2 * (os.cpu_count() or 1))
    ]
    try:
        assert lab(*arguments, str(busy)).returncode == 0
    finally:
        for process in load:
            process.kill()
            process.wait()
    first, second = (
        json.loads(path.read_text())["runs"][0]["foreground"]["fct_mean_s"]
        for path in (quiet, busy)
    )
    assert second == pytest.approx(first, rel=0.05)


@pytest.mark.parametrize("queue", ["red", "fq_codel", "cake"])
def test_every_queue_carries_traffic_and_drops_at_its_limit(queue: str, tmp_path: Path) -> None:
    saved = tmp_path / "r.json"
    done = lab("run", "smoke", "--seed", "1", "--set", f"bottleneck.queue={queue}",
               "--set", "measure_s=4", "--out", str(saved))  # fmt: skip
    assert done.returncode == 0, done.stderr
    cubic = json.loads(saved.read_text())["runs"][2]
    assert 1 < cubic["background_goodput_mbit"] < 4
    assert cubic["queue"]["drops"] > 0


def test_random_loss_slows_fetches_and_takes_no_room_in_the_queue(tmp_path: Path) -> None:
    saved = tmp_path / "r.json"
    done = lab("run", "smoke", "--seed", "1", "--set", "bottleneck.loss=0.05",
               "--set", "bottleneck.limit_packets=1000", "--set", "foreground.load=0.2",
               "--only", "cubic x4", "--out", str(saved))  # fmt: skip
    assert done.returncode == 0, done.stderr
    none = json.loads(saved.read_text())["runs"][0]
    assert none["probe"]["lost"] > 0
    assert none["queue"]["drops"] == 0


def test_an_unknown_congestion_control_is_named_with_those_available(tmp_path: Path) -> None:
    scenario = tmp_path / "s.toml"
    text = (Path(__file__).parents[1] / "scenarios" / "smoke.toml").read_text()
    scenario.write_text(text.replace('control = "cubic"', 'control = "qubic"'))
    done = lab("run", str(scenario), "--seed", "1")
    assert done.returncode == 1
    assert "congestion control qubic" in done.stderr
    assert "cubic" in done.stderr
    assert "--module FILE.ko" in done.stderr
