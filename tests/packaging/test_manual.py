# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""What `make install` installs beside the programs: man pages, completions, the unit, examples."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ("netnice", "netnice-prefetch")
BUILT = "BIN=target/release"
COMPLETIONS = {
    "bash": ("share/bash-completion/completions", "{}"),
    "zsh": ("share/zsh/site-functions", "_{}"),
    "fish": ("share/fish/vendor_completions.d", "{}.fish"),
}
"""Where each shell looks, and the name of a program's file there."""
HERE = [shell for shell in COMPLETIONS if shutil.which(shell)]


def run(*words: str | Path, env: dict[str, str] | None = None) -> str:
    """Return what a command says on both outputs; its failure fails the test."""
    done = subprocess.run(
        words, cwd=ROOT, env=os.environ | (env or {}), text=True, check=False,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    assert done.returncode == 0, f"{words}: {done.returncode}: {done.stdout}"
    return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory into which `make install` installed, below /opt/nn there."""
    place = tmp_path_factory.mktemp("installed")
    run("make", "--silent", "install", f"DESTDIR={place}", "PREFIX=/opt/nn", BUILT)
    return place / "opt" / "nn"


def subcommands(program: str, *below: str) -> list[str]:
    """Return the words after a program's name of all that its help lists, and what is below it."""
    said = run(ROOT / "target" / "release" / program, *below, "--help")
    listed = re.search(r"^Commands:\n(.*?)\n\n", said, re.M | re.S)
    names = re.findall(r"^  ([\w-]+) ", listed[1] if listed else "", re.M)
    found = [(*below, name) for name in names if name != "help"]
    return [" ".join(below), *(n for words in found for n in subcommands(program, *words))]


def test_each_command_that_help_lists_has_a_man_page_and_nothing_else_has(installed: Path) -> None:
    listed = {f"{p} {n}".strip().replace(" ", "-") for p in PROGRAMS for n in subcommands(p)}
    assert len(listed) > 20
    assert {page.name for page in (installed / "share/man/man1").iterdir()} == {
        f"{name}.1" for name in listed
    }


def test_man_has_no_warning_for_any_page(installed: Path) -> None:
    for page in (installed / "share/man/man1").iterdir():
        words = ["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", str(page)]
        done = subprocess.run(words, capture_output=True, check=True, env={"PATH": "/usr/bin:/bin"})
        assert done.stderr == b"", page.name


def test_a_man_page_has_the_examples_of_the_help_a_line_each(installed: Path) -> None:
    page = run("man", "-l", installed / "share/man/man1/netnice-run.1", env={"MANWIDTH": "200"})
    said = run(ROOT / "target" / "release" / "netnice", "run", "--help")
    examples = re.findall(r"^  ((?:sudo )?netnice run .*)$", said, re.M)
    assert len(examples) > 3
    for example in examples:
        assert re.search(rf"^ +{re.escape(example)}$", page, re.M), example


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("shell", HERE)
def test_a_shell_reads_its_completions(installed: Path, shell: str, program: str) -> None:
    folder, name = COMPLETIONS[shell]
    assert run(shell, "-n", installed / folder / name.format(program)) == ""


def test_bash_completes_a_subcommand_and_an_option(installed: Path) -> None:
    file = installed / "share/bash-completion/completions/netnice"
    for words, expected in {"netnice repl": "replicate", "netnice run --verb": "--verbose"}.items():
        script = f"""
            source {file}
            COMP_WORDS=({words}) COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
            _netnice netnice "${{COMP_WORDS[-1]}}" "${{COMP_WORDS[-2]}}"
            echo "${{COMPREPLY[@]}}"
        """
        assert run("bash", "-c", script).split() == [expected]


def test_the_unit_calls_the_program_that_was_installed(installed: Path) -> None:
    for name in ("netnice-replicate@.service", "netnice-hold@.service"):
        unit = (installed / "lib/systemd/system" / name).read_text()
        assert re.findall(r"^Exec\w+=-?(\S+)", unit, re.M) == ["/opt/nn/bin/netnice"] * 2, name
    unit = (installed / "lib/systemd/system/netnice.service").read_text()
    assert re.findall(r"^Exec\w+=(\S+)", unit, re.M) == ["/opt/nn/bin/netnice"]


def test_the_daemon_s_unit_is_exposed_by_3_of_10_at_most() -> None:
    unit = "packaging/systemd/netnice.service"
    said = run("systemd-analyze", "security", "--offline=yes", "--threshold=30", unit)
    assert float(re.search(r"exposure level for \S+: (\S+)", said)[1]) <= 3.0  # type: ignore[index]


def test_what_others_start_calls_the_program_that_was_installed(installed: Path) -> None:
    hook = json.loads((installed / "share/containers/oci/hooks.d/netnice.json").read_text())
    assert hook["hook"]["path"] == "/opt/nn/bin/netnice"
    service = (installed / "lib/systemd/system/netnice-background.service").read_text()
    assert re.findall(r"^ExecStart=(\S+)", service, re.M) == ["/opt/nn/bin/netnice"]


def test_the_example_of_a_job_is_understood(installed: Path, tmp_path: Path) -> None:
    job = (installed / "share/doc/netnice/examples/www.toml").read_text()
    (tmp_path / "www.toml").write_text(job.replace("/srv/www/", f"{tmp_path}/", 1))
    run(installed / "bin/netnice", "replicate", "check", tmp_path / "www.toml")


def test_uninstall_leaves_no_file(tmp_path: Path) -> None:
    (tmp_path / "usr/bin").mkdir(parents=True)
    (tmp_path / "usr/bin/other").touch()
    for target in ("install", "uninstall"):
        run("make", "--silent", target, f"DESTDIR={tmp_path}", "PREFIX=/usr", BUILT)
    assert [f.name for f in tmp_path.rglob("*") if not f.is_dir()] == ["other"]


def test_a_kernel_that_refuses_keeps_nobody_from_removing_it() -> None:
    path = {"PATH": f"{ROOT / 'target/release'}:/usr/bin:/bin"}
    powerless = ["setpriv", "--bounding-set", "-all", "--inh-caps", "-all"]
    said = run(*powerless, "packaging/scripts/prerm", "remove", env=path)
    assert "CAP_SYS_ADMIN" in said
    assert "stays until the next boot" in said


def test_what_the_tests_programs_compile_fast_is_optimised_where_it_is_installed() -> None:
    profile = tomllib.loads((ROOT / "Cargo.toml").read_text())["profile"]
    fast = {n for n, p in profile["release"]["package"].items() if p["opt-level"] == 0}
    assert profile["dist"]["opt-level"] == 3
    assert fast
    assert all(profile["dist"]["package"][name]["opt-level"] in (3, "s") for name in fast)
