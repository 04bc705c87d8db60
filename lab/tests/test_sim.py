# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""The lab with the simulator: the same documents as from the kernel, and sweeps."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from netnice_lab import LabError, stats, sweep
from netnice_lab.engines import sim
from netnice_lab.engines.base import measure
from netnice_lab.scenario import read

Json = dict[str, Any]

LAB = str(Path(sys.executable).with_name("netnice-lab"))


def lab(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([LAB, *arguments], capture_output=True, text=True, check=False)


def smoke(**more: Any) -> Json:  # noqa: ANN401
    arguments = {"seeds": [1, 2], "jobs": 2, "command": ["x"], **more}
    return measure(sim.Simulation(), read(Path("smoke")), **arguments)


def test_a_simulated_document_has_the_keys_of_the_kernels(result: Json, built: Path) -> None:
    document = smoke()
    assert (document["schema"], document["engine"], document["kernel"]) == (1, "sim", None)
    assert document["scenario"] == read(Path("smoke"))
    seen = [(r["seed"], r["background"]) for r in document["runs"]]
    names = ["none", "strict priority", "cubic x4"]
    assert seen == [(seed, name) for seed in (1, 2) for name in names]
    for kernel, simulated in (
        (result["summary"], document["summary"]), (result["runs"], document["runs"]),
    ):  # fmt: skip
        assert kernel[0].keys() <= simulated[0].keys()
    # As on the kernel: the link holds 4 Mbit/s, and CUBIC in the same queue harms the fetches.
    harm = {e["background"]: e["fct_ratio_mean"]["mean"] for e in document["summary"]}
    assert harm["none"] == 1
    assert 0.9 < harm["strict priority"] < 1.5 < harm["cubic x4"]
    assert all(1 < r["background_goodput_mbit"] < 4 for r in document["runs"] if r["control"])


@pytest.mark.parametrize(
    "settings",
    [
        ["--seeds", "1"],  # no interval
        ["--seeds", "2", "--set", "foreground.load=0"],  # no fetch, and no ratio to one
        ["--seeds", "5", "--set", "foreground.load=0.2"],
        ["--seeds", "3", "--set", "foreground.load=0.8", "--set", "bottleneck.loss=0.1"],
    ],
)
def test_the_lab_summarises_what_was_measured_as_the_simulator_does(
    built: Path, tmp_path: Path, settings: list[str]
) -> None:
    """Both are needed: the lab has the kernel's runs, the simulator a table of its own."""
    scenario = tmp_path / "s.toml"
    text = (Path(__file__).parents[1] / "scenarios" / "smoke.toml").read_text()
    scenario.write_text(
        f'{text}\n[[cross]]\nname = "t"\nkind = "tcp"\ncontrol = "reno"\nwindow_packets = 4\n'
        '[[cross]]\nname = "u"\nkind = "onoff"\nrate_mbit = 0.2\n'
    )
    command = [built / "netnice-sim", "run", scenario, *settings, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    document = json.loads(done.stdout)
    for ours, theirs in zip(
        stats.summarise(document["runs"]), document["summary"], strict=True
    ):  # fmt: skip
        assert set(ours) == set(theirs)
        assert flat(ours) == pytest.approx(flat(theirs), rel=1e-9, nan_ok=True)
    window_s = document["scenario"]["measure_s"]
    for run in document["runs"]:
        theirs = run["foreground"]
        finished = [
            {"bytes": size, "fct_s": fct}
            for size, fct in zip(theirs["sizes"], theirs["fct_s"], strict=True)
        ]
        lost = [{"bytes": 0, "fct_s": None}] * theirs["unfinished"]
        ours = stats.foreground([*finished, *lost], window_s)
        assert flat(ours) == pytest.approx(
            flat({key: theirs[key] for key in ours}), rel=1e-9, nan_ok=True
        )
    if "bottleneck.loss=0.1" in settings:
        assert any(run["foreground"]["unfinished"] for run in document["runs"])


def flat(value: Any) -> list[float]:  # noqa: ANN401 (JSON)
    """Return the numbers in a document in the order of their keys; NaN for none."""
    if isinstance(value, dict):
        return [n for key in sorted(value) for n in flat(value[key])]
    if isinstance(value, list):
        return [n for item in value for n in flat(item)]
    if value is None:
        return [float("nan")]
    return [] if isinstance(value, str) else [value]


def test_the_same_seeds_give_the_same_runs_in_any_number_of_processes(built: Path) -> None:
    assert smoke(jobs=1)["runs"] == smoke(jobs=4)["runs"]


def test_only_keeps_the_named_background_and_the_references(built: Path, tmp_path: Path) -> None:
    saved = tmp_path / "r.json"
    done = lab("run", "k1", "--engine", "sim", "--seed", "7", "--set", "measure_s=2",
               "--only", "cubic x16", "--out", str(saved))  # fmt: skip
    assert done.returncode == 0, done.stderr
    runs = json.loads(saved.read_text())["runs"]
    assert [r["background"] for r in runs] == ["none", "strict priority", "cubic x16"]
    assert {r["seed"] for r in runs} == {7}
    assert "cubic x16" in done.stdout


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--seed", "5", "--seeds", "3"], "--seed is one seed only. Leave --seeds out, or --seed."),
        (["--seed", "5", "--first-seed", "9"], "Leave --first-seed out, or --seed."),
        (["--seed", "-1"], "greater than or equal to 0"),
    ],
)
def test_one_seed_is_not_many_and_none_is_negative(
    refused: Callable[..., tuple[int, str]], more: list[str], said: str
) -> None:
    status, sentence = refused("run", "smoke", "--engine", "sim", *more)
    assert status == 2
    assert said in sentence
    assert "netnice-sim" not in sentence


def test_a_value_out_of_range_is_refused_with_file_key_and_range(
    refused: Callable[..., tuple[int, str]], built: Path, tmp_path: Path
) -> None:
    file = tmp_path / "own.toml"
    file.write_text((Path(__file__).parents[1] / "scenarios" / "smoke.toml").read_text())
    for setting, said in (
        ("bottleneck.rate_mbit=-1", "`bottleneck.rate_mbit` is -1; it must be from 0.001 to"),
        ("bottleneck.limit_packets=0", "`bottleneck.limit_packets` is 0; it must be from 1 to"),
        ("foreground.to=c", 'no route from "a" to "c": add a [[link]] or a [[route]]'),
    ):
        status, sentence = refused("run", str(file), "--engine", "sim", "--set", setting)
        assert status == 2
        assert f"{file}: {said}" in sentence


def test_what_the_simulator_refuses_is_said_in_its_words(built: Path) -> None:
    with pytest.raises(LabError, match=r"^smoke, seed 1: netnice-sim failed.*cake"):
        measure(
            sim.Simulation(), read(Path("smoke"), ["bottleneck.queue=cake"]), seeds=[1], jobs=1,
            command=["x"],
        )  # fmt: skip


def test_a_sweep_has_a_summary_for_every_combination(built: Path, tmp_path: Path) -> None:
    saved = tmp_path / "sweep.json"
    vary = ["--vary", "foreground.load=0.2,0.4", "--vary", "bottleneck.queue=drop-tail,fq_codel"]
    done = lab("sweep", "smoke", *vary, "--seeds", "2", "--out", str(saved))
    assert done.returncode == 0, done.stderr
    document = json.loads(saved.read_text())
    assert [point["settings"] for point in document["results"]] == [
        {"foreground.load": load, "bottleneck.queue": queue}
        for load in (0.2, 0.4)
        for queue in ("drop-tail", "fq_codel")
    ]
    # The same numbers as from netnice-lab run.
    settings = ["foreground.load=0.4", "bottleneck.queue=fq_codel"]
    alone = measure(
        sim.Simulation(), read(Path("smoke"), settings), seeds=[1, 2], jobs=2, command=["x"]
    )
    assert document["results"][3]["summary"] == alone["summary"]
    # A row for each combination with each of strict priority and cubic x4.
    assert done.stdout.count("cubic x4") == done.stdout.count("strict priority ") == 4
    again = lab("table", str(saved))
    assert again.stdout == done.stdout


def test_a_sweep_runs_on_the_workers_of_a_scheduler(built: Path, tmp_path: Path) -> None:
    from distributed import LocalCluster  # noqa: PLC0415 (takes long to import)

    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster:
        options = ["--scheduler", cluster.scheduler_address, "--out", str(tmp_path / "s.json")]
        done = lab("sweep", "smoke", "--vary", "foreground.load=0.2,0.4", "--seeds", "1", *options)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("cubic x4") == 2


def test_a_sweep_that_fails_says_what_the_simulator_said(built: Path, tmp_path: Path) -> None:
    done = lab("sweep", "smoke", "--vary", "bottleneck.queue=cake,red", "--seeds", "1")
    assert done.returncode == 1
    assert "netnice-sim failed" in done.stderr
    assert "cake" in done.stderr
    assert "Traceback" not in done.stderr


ENDLESS = {
    "run": ["k1", "--engine", "sim", "--seeds", "1000"],
    "sweep": ["k1", "--vary", "foreground.load=0.3,0.5", "--seeds", "1000"],
    "sweep with a point that fails": ["k1", "--vary", "bottleneck.queue=drop-tail,cake"],
}


@pytest.mark.parametrize(
    ("what", "how"),
    [
        ("run", signal.SIGTERM),
        ("run", signal.SIGINT),
        ("sweep", signal.SIGTERM),
        ("sweep", signal.SIGINT),
        ("sweep with a point that fails", None),
    ],
)
def test_a_lab_that_ends_early_leaves_no_simulation_and_no_file(
    built: Path, tmp_path: Path, what: str, how: signal.Signals | None
) -> None:
    command = [LAB, what.partition(" ")[0], *ENDLESS[what], "--jobs", "2"]
    with subprocess.Popen(
        command, env=os.environ | {"TMPDIR": str(tmp_path)}, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    ) as process:  # fmt: skip
        if how is not None:
            until = time.monotonic() + 60
            while "netnice-sim" not in session(process.pid):
                assert time.monotonic() < until
                time.sleep(0.05)
            process.send_signal(how)  # to the lab alone
        _, said = process.communicate(timeout=60)
    assert process.returncode not in (0, -9)
    assert "Traceback" not in said
    assert session(process.pid) == []
    assert list(tmp_path.iterdir()) == []


def session(leader: int) -> list[str]:
    """Return the names of the processes of a session."""
    names = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            name, _, rest = stat.read_text().partition("(")[2].rpartition(") ")
            if int(rest.split()[3]) == leader:
                names.append(name)
    return names


@pytest.mark.parametrize(
    ("vary", "said"),
    [
        (["foreground.load"], "has no values"),
        (["foreground.load="], "has no values"),
        (["ideal.flows=1", "ideal.flows=2"], "names ideal.flows twice"),
    ],
)
def test_values_that_cannot_be_read_are_refused(vary: list[str], said: str) -> None:
    with pytest.raises(LabError, match=said):
        sweep.parse_vary(vary)


def test_a_scheduler_that_does_not_answer_is_named_with_how_to_start_one(
    refused: Callable[..., tuple[int, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep, "CONNECT_S", 1)
    at = "tcp://127.0.0.1:1"
    status, sentence = refused("sweep", "smoke", "--vary", "ideal.flows=1,2", "--scheduler", at)
    assert status == 1
    assert f"No Dask scheduler answers at {at}" in sentence
    assert "dask scheduler" in sentence
