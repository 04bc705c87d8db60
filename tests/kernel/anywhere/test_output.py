# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Output that nobody can read never ends the work, nor changes an exit status."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from support import MEMORY, PATIENCE_S, wait_until


def run(command: Sequence[str], redirection: str) -> subprocess.CompletedProcess[str]:
    """Run `command` with a shell's redirections."""
    script = f'exec "$@" {redirection}'
    return subprocess.run(
        ["bash", "-c", script, "bash", *command], capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("redirection", ["2>/dev/full", "2>&-", "2> >(true)"])
@pytest.mark.parametrize(
    ("command", "status"),
    [
        (["run", "-v", "--", "sh", "-c", "exit 7"], 7),
        (["run", "--", "no-such-command"], 127),
        (["run", "--algorithm", "no", "--", "true"], 125),
        (["run", "--no-such-option"], 125),
        (["attach", "999999999"], 1),
        (["algorithms", "no"], 1),
    ],
)
def test_standard_error_that_takes_nothing_changes_no_exit_status(
    command: list[str], status: int, redirection: str
) -> None:
    assert run(["netnice", *command], redirection).returncode == status


@pytest.mark.parametrize("redirection", ["2>/dev/full", "2>&-"])
def test_copies_are_made_without_standard_error(tmp_path: Path, redirection: str) -> None:
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "file").write_text("content")
    command = ["netnice", "replicate", "--state", str(tmp_path / "state"),
               f"{tmp_path}/source/", f"{tmp_path}/copy/"]  # fmt: skip
    assert run(command, redirection).returncode == 0
    assert (tmp_path / "copy" / "file").read_text() == "content"


def fill(pipe: int) -> None:
    """Write into a pipe until it takes nothing more, as if its reader were a pager's first page."""
    os.set_blocking(pipe, False)
    with pytest.raises(BlockingIOError):
        while os.write(pipe, b"x" * 4096):
            pass
    os.set_blocking(pipe, True)


def test_copies_are_kept_current_though_nobody_reads_what_is_said(tmp_path: Path) -> None:
    ours, theirs = os.pipe()
    fill(theirs)
    source, copy = tmp_path / "source", tmp_path / "copy"
    source.mkdir()
    process = subprocess.Popen(
        ["netnice", "replicate", "--watch", "--state", str(tmp_path / "state"),
         f"{source}/", f"{copy}/"], stderr=theirs,
    )  # fmt: skip
    said = b""
    try:
        wait_until("the first copy", copy.exists)
        for name in ("a", "b"):
            (source / name).write_text(name)
            wait_until(f"a copy of {name}", (copy / name).exists)
        os.read(ours, 1 << 20)  # the pager's user comes back,
        (source / "c").write_text("c")
        while b": current, " not in said:
            said += os.read(ours, 1 << 20)
        fill(theirs)  # and goes again
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) in (0, 3)  # 3: it was told to end before rsync had
    finally:
        process.kill()
        process.wait()
        os.close(ours)
        os.close(theirs)
    assert b"(nobody read " in said, said


@pytest.mark.parametrize(
    "command",
    [
        ["algorithms"],
        ["algorithms", "--json"],
        ["status"],
        ["status", "--json"],
        ["check"],
        ["check", "--json"],
        ["status", "--help"],
        ["--version"],
    ],
)
@pytest.mark.parametrize(
    ("redirection", "says"), [(">/dev/full", "No space left"), (">&-", "Bad file descriptor")]
)
def test_a_list_that_cannot_be_written_is_a_failure_with_one_sentence(
    command: list[str], redirection: str, says: str
) -> None:
    done = run(["netnice", *command], redirection)
    assert done.returncode == 1
    assert done.stderr.startswith("netnice: cannot write to standard output: ")
    assert says in done.stderr and done.stderr.count("\n") == 1


@pytest.mark.parametrize("command", [["algorithms"], ["status"], ["probe", "127.0.0.1:9"]])
def test_no_output_contains_a_stack_trace(command: list[str]) -> None:
    ours, theirs = os.pipe()
    os.close(ours)
    done = subprocess.run(
        ["netnice", *command], stdout=theirs, stderr=subprocess.PIPE, text=True, check=False,
        env={**os.environ, "RUST_BACKTRACE": "1"},
    )  # fmt: skip
    os.close(theirs)
    assert done.returncode != 0
    assert "panicked" not in done.stderr
    assert "stack backtrace" not in done.stderr


@pytest.mark.parametrize("told", ["algorithms", "status", "check", "--help"])
def test_what_is_told_to_a_reader_that_left_ends_as_other_programs_do(told: str) -> None:
    ours, theirs = os.pipe()
    os.close(ours)
    done = subprocess.run(["netnice", told], stdout=theirs, stderr=subprocess.PIPE, check=False)
    os.close(theirs)
    assert (done.returncode, done.stderr) == (-signal.SIGPIPE, b"")


def test_a_caller_who_ignores_sigpipe_gets_an_exit_status_as_from_other_programs() -> None:
    ours, theirs = os.pipe()
    os.close(ours)
    program = MEMORY / "netnice"
    done = subprocess.run(
        ["sh", "-c", f"trap '' PIPE; exec {program} algorithms"],
        stdout=theirs, stderr=subprocess.PIPE, check=False, restore_signals=False,
    )  # fmt: skip
    os.close(theirs)
    assert done.returncode == 1
    assert b"Broken pipe" in done.stderr
