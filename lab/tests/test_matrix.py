# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""The matrix: what RFC 9743 asks for is in it, and the page says what its saved data say."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from netnice_lab import LabError, stats
from netnice_lab.experiment import Context
from netnice_lab.matrix import measure, page, worst
from netnice_lab.matrix.axes import (
    AXES,
    CALL,
    CORNERS,
    CUBIC,
    EBB,
    ELSEWHERE,
    LONG,
    LP,
    NICE,
    Axis,
    Cell,
    packets,
)  # fmt: skip
from netnice_lab.matrix.figure import draw
from netnice_lab.scenario import IDEAL, NONE, describe_all

Json = dict[str, Any]
LAB = str(Path(sys.executable).with_name("netnice-lab"))
BY_NAME = {axis.name: axis for axis in AXES}


def test_the_axes_reach_as_far_as_the_rfc_asks_for() -> None:
    reach = {name: list(axis.cells) for name, axis in BY_NAME.items()}
    assert (reach["buffer"][0], reach["buffer"][-1]) == ("0.1", "10")
    assert reach["queue"] == ["drop-tail", "pie", "codel", "fq_codel"]
    assert (reach["rate"][0], reach["fast"][-1]) == ("1", "1000")
    assert (reach["rtt"][0], reach["rtt"][-1]) == ("5", "200")
    assert reach["flows"] == ["1", "4", "16", "64", "100"]
    assert {"web", "video", "downloads", "one", "a"} == {
        name.split()[0].rstrip(",") for name in reach["users"]
    }


def test_one_thing_is_varied_at_a_time_but_for_corners() -> None:
    k1 = Cell()
    for axis in AXES:
        for name, cell in axis.cells.items():
            # a user that is no fetch is foreground and other traffic, and hosts go together
            varied = {
                "path": cell.bottleneck != k1.bottleneck,
                "flows": cell.flows != k1.flows,
                "users": (cell.foreground, cell.cross, cell.host) != ({}, (), None),
            }
            assert sum(varied.values()) <= (1 if axis.name != CORNERS else 3), (axis.name, name)


def test_a_buffer_of_one_and_a_half_bdp_is_that_of_k1() -> None:
    assert packets(8, 50, 1.5) == 50  # 8 Mbit/s for 50 ms are 33.3 packets of 12000 bits
    assert Cell().bottleneck["limit_packets"] == 50


def test_every_cell_is_a_scenario_with_all_backgrounds() -> None:
    known = describe_all(cell.scenario() for axis in AXES for cell in axis.cells.values())
    names = [NONE, IDEAL, EBB, ELSEWHERE, NICE, LP, CUBIC]
    assert all([v.name for v in of.variants] == names for of in known)
    hosts = [{b.name: b.host for b in of.scenario.background}[ELSEWHERE] for of in known]
    assert set(hosts) == {"elsewhere"}


def test_what_users_notice_is_the_longer_the_worse() -> None:
    fetches = {"fct_mean_s": 0.2, "fct_p95_s": 0.4, "unfinished": 1}
    run = {"foreground": fetches, "cross": [], "background_goodput_mbit": 3.0}
    assert measure.kept(run) == {
        "mbit": 3.0, "mean": 0.2, "p95": 0.4, "unfinished": 1, "lost": None,
    }  # fmt: skip
    of = {"goodput_mbit": 4.0, "packet_rtt_mean_ms": 60.0, "packet_rtt_p95_ms": 80.0, "lost": 3}
    long = measure.kept(run | {"cross": [of | {"name": LONG, "packets": 100}]})
    assert (long["mean"], long["p95"]) == (0.25, None)  # 1 / 4 Mbit/s
    call = measure.kept(run | {"cross": [of | {"name": CALL, "packets": 100}]})
    assert (call["mean"], call["p95"], call["lost"]) == (60.0, 80.0, 0.03)
    starved = measure.kept(run | {"cross": [of | {"name": LONG, "goodput_mbit": 0.0}]})
    assert starved["mean"] is None


def test_a_share_is_of_the_sums_so_that_an_empty_seed_does_not_decide_it() -> None:
    # The mean of the ratios is (1 + 10) / 2; together it is 2.1 of 2.01.
    share = stats.of_sums([2.0, 0.1], [2.0, 0.01])
    assert share["mean"] == pytest.approx(2.1 / 2.01)
    # the residuals are 2 - 2.0896 and 0.1 - 0.0104, over the mean 1.005: +-0.0891
    half = 12.706 * 0.0891  # Student's t of one degree of freedom, by the standard error of two
    assert share["hi"] - share["mean"] == pytest.approx(half, rel=1e-3)
    assert stats.of_sums([1.0], [0.0])["mean"] is None


def cell() -> Json:
    def its(harm: float, share: float, mbit: float, **more: Any) -> Json:  # noqa: ANN401
        within = {"mean": harm, "lo": harm - 0.02, "hi": harm + 0.02}
        return {
            "harm": within, "p95": {"mean": None, "lo": None, "hi": None}, "mbit": mbit,
            "over_priority": {"mean": harm / 1.1}, **more,
            "share": {"mean": share, "lo": share - 0.03, "hi": share + 0.03},
        }  # fmt: skip

    return {
        "at": {"flows": "1"}, IDEAL: its(1.1, 1.0, 4.0), EBB: its(1.12, 0.98, 3.9),
        ELSEWHERE: its(2.2, 0.5, 2.0, unfinished=3), NICE: its(1.2, 0.2, 0.8, lost=0.012),
        LP: its(1.3, 0.3, 1.2), CUBIC: its(3.0, 1.4, 5.6),
    }  # fmt: skip


def test_an_entry_has_harm_and_share_together() -> None:
    assert page.entry(cell(), EBB) == "1.12 ± 0.02 / – / 98 ± 3 %"  # noqa: RUF001
    assert page.entry(cell(), EBB, within=False) == "1.12 / – / 98 %"  # noqa: RUF001
    assert page.entry(cell(), IDEAL).count("/") == 1  # its share is 100 % by definition
    assert page.entry(cell(), ELSEWHERE).endswith("/ 50 ± 3 %, 3 unfinished")
    assert page.entry(cell(), NICE).endswith(", 1.2 % lost")


def test_where_nothing_is_spare_mbits_are_shown_instead_of_a_share() -> None:
    none = cell()
    none[IDEAL]["mbit"] = 0.05
    assert page.entry(none, EBB).endswith("/ 3.90 Mbit/s")
    assert page.entry(none, IDEAL).endswith("/ 0.05 Mbit/s")


def test_two_seeds_of_a_cell_give_every_number_with_its_interval(built: Path) -> None:
    axis = Axis("load", "load", {"0.5": Cell()})
    document = measure.measure(axis, Context(seeds=2))
    assert (document["kind"], document["seeds"]) == ("matrix", 2)
    (found,) = document["points"]
    assert set(found) == {"at", NONE, IDEAL, EBB, ELSEWHERE, NICE, LP, CUBIC}
    assert found[NONE]["mean"] > 0
    for name in (IDEAL, EBB, CUBIC):
        for key in ("harm", "p95", "share"):
            assert found[name][key]["lo"] <= found[name][key]["mean"] <= found[name][key]["hi"]
    assert found[IDEAL]["share"]["mean"] == 1
    assert found[EBB]["harm"]["mean"] < found[CUBIC]["harm"]["mean"]


def test_an_axis_that_there_is_not_is_an_error_that_names_all() -> None:
    with pytest.raises(LabError, match=r"No axis is called 'speed'\. Known: flows, buffer") as said:
        measure.chosen(["speed"])
    assert said.value.status == 2
    done = subprocess.run([LAB, "matrix", "--only", "speed"], capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (2, b"")
    assert [axis.name for axis in measure.chosen(["rtt", "flows"])] == ["flows", "rtt"]


def test_every_axis_and_cell_is_saved_and_no_single_run() -> None:
    saved = list(measure.saved())
    assert [axis for axis, _ in saved] == list(AXES)
    for axis, document in saved:
        assert [point["at"] for point in document["points"]] == [
            {axis.name: name} for name in axis.cells
        ]
    assert sum(file.stat().st_size for file in measure.FOLDER.iterdir()) < 1_000_000


def test_the_page_and_the_figure_say_what_the_saved_data_say(tmp_path: Path) -> None:
    saved = list(measure.saved())
    text = page.PAGE.read_text()
    assert page.with_section(text, page.section(saved, list(worst.saved()))) == text
    draw(saved, tmp_path / "matrix.svg")
    assert (tmp_path / "matrix.svg").read_bytes() == page.FIGURE.read_bytes()


def test_a_page_without_marks_is_not_written(tmp_path: Path) -> None:
    file = tmp_path / "page.md"
    file.write_text("# Other\n")
    with pytest.raises(LabError, match="Add them"):
        page.write([], [], file)
    assert file.read_text() == "# Other\n"
