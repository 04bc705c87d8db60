# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""`netnice run`: the command passes through, and errors are sentences."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess

import pytest
from classes import DEFAULT
from client import RUN, UNDER, ended
from support import MEMORY, NOBODY, PYTHON, Link, Process, call, cgroup_root, registered

NO_CONNECTION = "netnice: no TCP connection was made here; "

# --- as nice(1) ---------------------------------------------------------------


@pytest.mark.parametrize("code", [0, 1, 7, 255])
def test_the_exit_status_of_the_command_is_that_of_netnice(code: int) -> None:
    done = subprocess.run([*UNDER, "sh", "-c", f"exit {code}"], check=False)
    assert done.returncode == code


def test_a_command_that_is_not_found_ends_with_127_and_its_name() -> None:
    done = subprocess.run([*UNDER, "no-such-command"], capture_output=True, text=True, check=False)
    assert done.returncode == 127
    assert done.stderr == "netnice: command not found: no-such-command\n"


def test_a_file_that_cannot_be_run_ends_with_126_and_the_reason() -> None:
    done = subprocess.run([*UNDER, "/etc/passwd"], capture_output=True, text=True, check=False)
    assert done.returncode == 126
    assert "/etc/passwd" in done.stderr
    assert "Permission denied" in done.stderr


@pytest.mark.parametrize("name", ["SIGTERM", "SIGKILL", "SIGSEGV", "SIGINT", "SIGHUP"])
def test_the_caller_sees_the_signal_that_ended_the_command(name: str) -> None:
    done = subprocess.run(
        [*UNDER, PYTHON, "-S", "-E", "-c",
         "import os, signal, resource;"
         "resource.setrlimit(resource.RLIMIT_CORE, (0, 0));"
         f"signal.signal(signal.{name}, signal.SIG_DFL) if '{name}' != 'SIGKILL' else 0;"
         f"os.kill(os.getpid(), signal.{name})"], check=False,
    )  # fmt: skip
    assert done.returncode == -signal.Signals[name]


@pytest.mark.parametrize("name", ["TERM", "INT", "HUP", "USR1", "QUIT"])
def test_a_signal_to_netnice_reaches_the_command_which_decides_what_it_means(name: str) -> None:
    script = f"trap 'echo {name}; exit 3' {name}; echo ready; read forever"
    process = Process([*UNDER, "sh", "-c", script])
    assert process.line() == "ready"
    os.kill(process.pid, signal.Signals[f"SIG{name}"])
    assert process.line() == name
    ended(process, 3)


COUNTS_SIGNALS = """
import os, signal
signal.signal(signal.SIGINT, lambda *_: os.write(1, b"INT\\n"))
signal.signal(signal.SIGUSR1, lambda *_: os.write(1, b"USR1\\n"))
os.write(1, b"ready\\n")
while True:
    signal.pause()
"""


def test_ctrl_c_on_a_terminal_reaches_the_command_once() -> None:
    pid, terminal = pty.fork()
    if pid == 0:
        os.execvp("netnice", [*UNDER, PYTHON, "-S", "-E", "-c", COUNTS_SIGNALS])
    shown = b""

    def read_until(text: bytes) -> None:
        nonlocal shown
        while text not in shown:
            shown += os.read(terminal, 1024)

    read_until(b"ready")
    os.write(terminal, b"\x03")
    read_until(b"INT")
    # netnice passes signals on in order: a second INT from it would come before this one
    os.kill(pid, signal.SIGUSR1)
    read_until(b"USR1")
    os.write(terminal, b"\x1c")  # Ctrl-\ ends it
    _, status = os.waitpid(pid, 0)
    os.close(terminal)
    assert shown.count(b"INT") == 1
    assert os.waitstatus_to_exitcode(status) == -signal.SIGQUIT


def test_standard_input_and_output_are_the_commands_own() -> None:
    data = os.urandom(1 << 20)
    done = subprocess.run([*UNDER, "cat"], input=data, capture_output=True, check=False)
    assert done.returncode == 0
    assert done.stdout == data
    assert done.stderr.startswith(NO_CONNECTION.encode())


def test_the_command_sees_its_arguments_as_they_were_given() -> None:
    odd = ["--", "-v", "--help", "a b", "", "$HOME", "\xe4"]
    script = "for a; do printf '[%s]' \"$a\"; done"
    assert call(*UNDER, "sh", "-c", script, "sh", *odd) == "".join(f"[{a}]" for a in odd)


# --- errors are sentences -----------------------------------------------------


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--algorithm", "nicee"], ['no algorithm "nicee"', '"nice"?', "netnice algorithms"]),
        (["--set", "treshold=0.1"], ['no parameter "treshold"', 'did you mean "threshold"']),
        (["--set", "threshold=1.5"], ["threshold=1.5", "out of range", "from 0 to 1"]),
        (["--set", "threshold=-1"], ["threshold=-1", "out of range", "from 0 to 1"]),
        (["--set", "threshold=nan"], ["threshold", "out of range"]),
        (["--set", "threshold=much"], ["threshold=much", "NAME=NUMBER"]),
        (["--set", "threshold"], ["threshold", "="]),
        (["-a", "reno", "--set", "alpha=1"], ['reno has no parameter "alpha"']),
        (["--class", "fair", "--set", "mode=beta"], ['mode cannot be "beta"', "alpha, tau"]),
    ],
)  # fmt: skip
def test_a_wrong_choice_is_explained_and_the_command_does_not_start(
    options: list[str], says: list[str]
) -> None:
    done = subprocess.run(
        [*RUN, *options, "--", "echo", "started"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 125
    assert done.stdout == ""
    assert done.stderr.startswith("netnice: ")
    for part in says:
        assert part in done.stderr


@pytest.mark.parametrize("options", [
    ["--dscp", "ef"], ["--no-such-option"], [],
    ["--class", "rude", "true"], ["--class", "fair", "--algorithm", "nice", "true"],
])  # fmt: skip
def test_a_usage_error_ends_with_125_as_it_is_netnice_that_failed(options: list[str]) -> None:
    done = subprocess.run([*RUN, *options], capture_output=True, text=True, check=False)
    assert done.returncode == 125
    assert "--help" in done.stderr


@pytest.mark.parametrize("call_", [
    ["enable"], ["disable"], ["hold"], ["attach", "--cgroup", "user.slice"],
    ["attach", "--unit", "cron"], ["attach", "--container", "c"], ["detach", "--all"],
], ids=" ".join)  # fmt: skip
def test_without_root_the_missing_capabilities_are_named(call_: list[str]) -> None:
    done = subprocess.run(
        ["setpriv", f"--reuid={NOBODY}", "--clear-groups", MEMORY / "netnice", *call_],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "CAP_NET_ADMIN and CAP_SYS_ADMIN" in done.stderr
    assert "sudo netnice" in done.stderr


def test_only_the_capability_that_is_missing_is_named() -> None:
    done = subprocess.run(
        ["setpriv", "--bounding-set=-sys_admin", *UNDER, "true"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 125
    assert "CAP_SYS_ADMIN" in done.stderr
    assert "CAP_NET_ADMIN" not in done.stderr
    # to root, nobody says to be root
    assert "sudo" not in done.stderr and "CapabilityBoundingSet=" in done.stderr


@pytest.mark.parametrize(("file", "most"), [("cgroup.max.descendants", 0), ("cgroup.max.depth", 0)])
def test_a_limit_on_cgroups_is_named_with_its_file(file: str, most: int) -> None:
    above = cgroup_root() / f"netnice-test-{os.getpid()}"
    above.mkdir()
    limit = above / file
    try:
        limit.write_text(str(most))
        done = subprocess.run(
            ["sh", "-c", f'echo $$ >{above}/cgroup.procs; exec "$@"', "sh", *UNDER, "true"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    finally:
        above.rmdir()
    assert registered() <= {DEFAULT}  # a start that is refused leaves nothing else
    assert done.returncode == 125
    assert f"{limit} allows {most}; raise it: echo max >{limit}" in done.stderr


# --- plain instead of not at all ----------------------------------------------

WITHOUT_SYS_ADMIN = ["setpriv", "--bounding-set=-sys_admin"]


def test_with_or_plain_the_command_runs_where_netnice_cannot_and_the_reason_is_said() -> None:
    done = subprocess.run(
        [*WITHOUT_SYS_ADMIN, *RUN, "--or-plain", "--", "sh", "-c", "echo done; exit 7"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (7, "done\n")
    assert done.stderr.startswith("netnice: the command runs, but not in the background ")
    assert "CAP_SYS_ADMIN" in done.stderr and done.stderr.count("\n") == 1


def test_or_plain_changes_nothing_where_netnice_works() -> None:
    done = subprocess.run(
        [*RUN, "--or-plain", "--", "sh", "-c", "cat /proc/self/cgroup; exit 7"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 7
    assert "netnice-run-" in done.stdout
    assert done.stderr.startswith(NO_CONNECTION)


def test_or_plain_is_no_excuse_for_a_mistake() -> None:
    done = subprocess.run(
        [*RUN, "--or-plain", "-a", "nicee", "--", "true"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 125
    assert 'no algorithm "nicee"' in done.stderr


# --- the summary --------------------------------------------------------------

SUMMARY = re.compile(
    r"netnice: (?P<bytes>\d+) bytes in (?P<seconds>[\d.]+) s "
    r"\((?P<rate>[\d.]+) (?P<unit>\w*bit/s)\) over "
    r"(?P<connections>\d+) connections, each yielding for (?P<yielding>[\d.]+) s on average; "
    r"(?P<retransmits>\d+) packets retransmitted"
)


def test_the_summary_says_what_was_sent(link: Link) -> None:
    count, size = 4, 1_000_000
    # 20 Mbit/s: 1.6 s, so that the tenth of a second to which times are printed is little
    sink = link.limit(20, 50).sink()
    sender = link.send(
        sink, "--flows", str(count), "--bytes", str(size), under=[*RUN, "--verbose", "--"]
    )
    ended(sender)
    found = SUMMARY.search(sender.errors)
    assert found, sender.errors
    assert sink.report()["bytes"] == count * size
    # each flow has a header of 16 bytes; the kernel counts SYN and FIN as a byte each
    sent = count * (size + 16)
    assert sent <= int(found["bytes"]) <= sent + 2 * count
    assert int(found["connections"]) == count
    seconds = float(found["seconds"])
    # at no time faster than the bottleneck
    assert seconds >= sent * 8 / 20e6
    # the printed seconds are off by at most 0.05 s
    assert found["unit"] == "Mbit/s"
    assert float(found["rate"]) == pytest.approx(sent * 8e-6 / seconds, rel=0.1 / seconds)
    # four flows that keep one queue must yield now and then, and nobody longer than the run took
    assert 0 < float(found["yielding"]) <= seconds + 0.1


def test_without_connections_the_summary_says_so() -> None:
    done = subprocess.run([*RUN, "-v", "true"], capture_output=True, text=True, check=False)
    found = SUMMARY.search(done.stderr)
    assert found, done.stderr
    assert (found["bytes"], found["connections"], found["yielding"]) == ("0", "0", "0.0")
