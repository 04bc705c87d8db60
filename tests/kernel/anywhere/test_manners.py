# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""`netnice run` has the manners of nice(1): each test runs both, and compares.

docs/manners.md has a line for each of these tests.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from support import PATIENCE_S, PYTHON, Process, call, cgroup_root, wait_until

NICE = ("nice", "-n", "0")
NETNICE = ("netnice", "run", "--")
PREFIXES = [pytest.param(NICE, id="nice"), pytest.param(NETNICE, id="netnice")]
Prefix = tuple[str, ...]


def both(
    command: Sequence[str], prepare: Callable[[], None] | None = None, **options: object
) -> list[tuple[int, str]]:
    """Return status and output of `command` under nice and under netnice."""
    return [
        (done.returncode, done.stdout)
        for prefix in (NICE, NETNICE)
        for done in [
            subprocess.run(  # type: ignore[call-overload]
                [*prefix, *command], stdout=subprocess.PIPE, text=True, check=False,
                preexec_fn=prepare, **options,
            )
        ]
    ]  # fmt: skip


def same(command: Sequence[str], prepare: Callable[[], None] | None = None) -> tuple[int, str]:
    nice, netnice = both(command, prepare)
    assert netnice == nice
    return netnice


SIGNALS = ["grep", "-E", "Sig(Blk|Ign|Cgt)", "/proc/self/status"]


def test_what_is_tested_ignores_none_of_them_however_the_tests_were_started() -> None:
    shown = call(*SIGNALS)
    ignored = int(shown.split("SigIgn:")[1].split()[0], 16)
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
        assert not ignored & 1 << number - 1, number


@pytest.mark.parametrize("name", ["HUP", "INT", "QUIT", "PIPE", "TERM", "CHLD", "TSTP", "USR1"])
def test_signals_that_the_caller_ignores_are_ignored(name: str) -> None:
    number = signal.Signals[f"SIG{name}"]
    _, shown = same(SIGNALS, lambda: _ignore(number))
    ignored = int(shown.split("SigIgn:")[1].split()[0], 16)
    assert ignored & 1 << number - 1


def _ignore(number: int) -> None:
    signal.signal(number, signal.SIG_IGN)


def test_signals_that_the_caller_blocks_are_blocked() -> None:
    _, shown = same(SIGNALS, lambda: _block(signal.SIGUSR1))
    assert int(shown.split("SigBlk:")[1].split()[0], 16) & 1 << signal.SIGUSR1 - 1


def _block(number: int) -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, [number])


def test_the_exit_status_arrives_where_the_caller_ignores_sigchld() -> None:
    assert same(["sh", "-c", "exit 7"], lambda: _ignore(signal.SIGCHLD))[0] == 7


@pytest.mark.parametrize(
    "name", ["KILL", "STOP", "ALRM", "TERM", "HUP", "INT", "USR1", "SEGV", "XCPU"]
)
@pytest.mark.parametrize("prefix", PREFIXES)
def test_every_signal_to_its_number_is_the_commands(prefix: Prefix, name: str) -> None:
    number = signal.Signals[f"SIG{name}"]
    script = "ulimit -c 0; echo $$; exec sleep 1000.75"
    process = Process([*prefix, "sh", "-c", script])
    assert process.line() == str(process.pid)
    os.kill(process.pid, number)
    if name == "STOP":
        state = Path(f"/proc/{process.pid}/stat")
        wait_until("it stands", lambda: state.read_text().split()[2] == "T")
        number = signal.SIGKILL
        os.kill(process.pid, number)
    assert process.status() == -number


@pytest.mark.parametrize("prefix", PREFIXES)
def test_a_caller_that_gives_up_leaves_no_orphan(prefix: Prefix) -> None:
    process = Process([*prefix, "sh", "-c", "echo begun; exec sleep 1000.125"])
    assert process.line() == "begun"
    process.popen.kill()  # as subprocess.run does after its timeout
    assert process.popen.wait(PATIENCE_S) == -signal.SIGKILL
    # the command as it began, or as it went on; netnice's companion ends soon
    commands = ["pgrep", "-xf", "(sh -c echo begun; exec )?sleep 1000.125"]
    found = subprocess.run(commands, capture_output=True, text=True, check=False)
    assert found.stdout == ""


def test_the_core_file_is_the_commands_and_only_one_is_written(tmp_path: Path) -> None:
    script = "import ctypes, os, sys; os.chdir(sys.argv[1]); ctypes.string_at(0)"
    allowing = ["sh", "-c", 'ulimit -c 2097152; exec "$@"', "sh"]  # a GiB
    dumped, written = [], []
    for number, prefix in enumerate((NICE, NETNICE)):
        place = tmp_path / str(number)
        place.mkdir()
        crashes = [*prefix, PYTHON, "-S", "-E", "-c", script, str(place)]
        child = subprocess.Popen([*allowing, *crashes])
        _, status = os.waitpid(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        assert child.returncode == -signal.SIGSEGV
        dumped.append(os.WCOREDUMP(status))
        written.append([core.read_bytes() for core in place.iterdir()])
    nice, netnice = written
    assert dumped[0] == dumped[1]
    # where the system writes them into the directory
    assert len(nice) == len(netnice) <= 1
    assert all(b"string_at" in core for core in (*nice, *netnice))


@pytest.mark.parametrize("text", ["echo $1 $0", "", ":"])
def test_a_script_without_an_interpreter_is_one_for_sh(tmp_path: Path, text: str) -> None:
    script = tmp_path / "script"
    script.write_text(text)
    script.chmod(0o755)
    assert same([str(script), "word"])[0] == 0


@pytest.mark.parametrize(
    ("command", "status"),
    [(["no-such-command"], 127), (["/etc/passwd"], 126), (["/"], 126), (["/etc/passwd/x"], 126),
     ([""], 127), (["true"], 0), (["false"], 1)],
)  # fmt: skip
def test_the_exit_status_says_why_a_command_did_not_run(command: list[str], status: int) -> None:
    assert same(command)[0] == status


@pytest.mark.parametrize("closed", ["", "<&-", ">&-", "2>&-", "<&- 2>&-", "7</dev/null"])
def test_the_command_has_the_descriptors_that_the_caller_has(closed: str, tmp_path: Path) -> None:
    each = 'for n in 0 1 2 3 4 5 6 7 8 9; do test -e /proc/$$/fd/$n && x="$x $n"; done'
    seen = []
    for prefix in (NICE, NETNICE):
        out = tmp_path / prefix[0]
        inner = f'{each}; echo "$x" >{out}'
        outer = ["bash", "-c", f'exec "$@" {closed}', "bash", *prefix, "bash", "-c", inner]
        subprocess.run(outer, stdin=subprocess.DEVNULL, check=False)
        seen.append(out.read_text())
    assert seen[1] == seen[0]


def test_limits_directory_mask_and_environment_are_the_callers() -> None:
    same(["sh", "-c", "ulimit -a; ulimit -Ha; pwd; umask; env | grep -v ^_= | sort"])


@pytest.mark.parametrize("prefix", PREFIXES)
def test_what_the_command_was_told_about_its_number_is_true(prefix: Prefix) -> None:
    # as systemd tells a service that it activates by a socket
    script = 'exec "$@"'
    done = subprocess.run(
        [
            "sh",
            "-c",
            f"LISTEN_PID=$$ {script}",
            "sh",
            *prefix,
            "sh",
            "-c",
            'test "$LISTEN_PID" = $$',
        ],
        check=False,
    )
    assert done.returncode == 0


@pytest.mark.parametrize("prefix", PREFIXES)
def test_the_command_has_no_child_that_it_did_not_start(prefix: Prefix) -> None:
    script = "import os\ntry: os.wait()\nexcept ChildProcessError: print('none')"
    done = subprocess.run(
        [*prefix, PYTHON, "-S", "-E", "-c", script], capture_output=True, text=True, check=False
    )
    assert done.stdout == "none\n"


@pytest.mark.parametrize("prefix", PREFIXES)
def test_a_reader_waits_for_no_more_than_what_the_command_leaves(prefix: Prefix) -> None:
    # the child keeps neither of the pipes: nor does netnice
    script = "sleep 1000.25 >/dev/null 2>&1 & echo $!"
    done = subprocess.run([*prefix, "sh", "-c", script], capture_output=True, text=True, timeout=30,
                          check=False)  # fmt: skip
    os.kill(int(done.stdout), signal.SIGKILL)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.usefixtures("cold")
@pytest.mark.parametrize("prefix", PREFIXES)
def test_ctrl_c_while_it_prepares_ends_it(prefix: Prefix) -> None:
    for moment in range(10):
        process = subprocess.Popen([*prefix, "sleep", "1000.5"])
        try:
            process.wait(moment / 100)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
        assert process.wait(20) == -signal.SIGINT
    # one that ended between its cgroup and its companion leaves that to the next netnice
    call("netnice", "run", "--", "true")


@pytest.mark.parametrize("prefix", PREFIXES)
def test_below_a_cgroup_of_threads_the_command_runs_too(prefix: Prefix) -> None:
    above = cgroup_root() / f"netnice-test-{os.getpid()}"
    threads = above / "threads"
    threads.mkdir(parents=True)
    try:
        (threads / "cgroup.type").write_text("threaded")
        (above / "cgroup.procs").write_text("0")
        (threads / "cgroup.threads").write_text("0")
        done = subprocess.run(
            [*prefix, "echo", "done"], capture_output=True, text=True, check=False
        )
    finally:
        (cgroup_root() / "cgroup.procs").write_text("0")
        wait_until("the run has ended", lambda: not list(threads.glob("*/")))
        inside = threads / "cgroup.threads"
        wait_until("the companion has ended", lambda: not inside.read_text())
        threads.rmdir()
        above.rmdir()
    assert (done.returncode, done.stdout) == (0, "done\n")


def test_a_number_that_an_older_run_left_is_no_reason_not_to_run() -> None:
    # the run goes on in a child; the number of its first process is free, and taken again
    script = "mkdir $1/netnice-run-$$; exec netnice run -- echo done"
    root = cgroup_root()
    done = subprocess.run(
        ["sh", "-c", script, "sh", str(root)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "done\n")


@pytest.mark.parametrize("plain", [True, False], ids=["plain", "not run"])
def test_where_there_is_no_room_for_the_companion_nothing_is_in_the_background(plain: bool) -> None:
    # the first process of the namespace has ended, and so no other can begin there
    script = '/bin/true; exec "$@"'
    words = ["netnice", "run", "--no-hold", *(["--or-plain"] if plain else []), "--"]
    full = ["unshare", "--pid", "sh", "-c", script, "sh", *words, "cat", "/proc/self/cgroup"]
    done = subprocess.run(full, capture_output=True, text=True, check=False)
    assert "cannot start the companion: Cannot allocate memory" in done.stderr
    assert done.returncode == (0 if plain else 125)
    assert bool(done.stdout) is plain
    assert "netnice-run" not in done.stdout
    assert "the command runs, but not in the background" in done.stderr or not plain
    assert not list(cgroup_root().rglob("netnice-run-*"))


def test_a_command_that_leaves_the_run_is_told_of() -> None:
    script = f"echo $$ >{cgroup_root()}/cgroup.procs; exec sleep 0.2"
    done = subprocess.run(
        [*NETNICE, "sh", "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0
    assert done.stderr.startswith("netnice: 1 process left the run: ")
