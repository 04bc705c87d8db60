# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""What netnice cannot do it says in one sentence with the right cause and the next step."""

from __future__ import annotations

import socket
import subprocess

import pytest
from agent import below_an_agent
from classes import ALGORITHM, DEFAULT
from client import UNDER, ended
from leftovers import left_behind, sweep
from support import PYTHON, RECEIVER, SENDER, Link, call, registered, status


def fails(*command: str, code: int = 1) -> str:
    """Return what a command says that must fail."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    return done.stderr


def test_a_program_of_a_cgroup_above_that_forbids_others_is_named_as_the_cause() -> None:
    with below_an_agent(flags=0) as above:
        enters = f'echo $$ >{above}/cgroup.procs; exec "$@"'
        said = fails("sh", "-c", enters, "sh", *UNDER, "true", code=125)
    assert registered() <= {DEFAULT}
    assert "A program of a cgroup above forbids others below it" in said
    assert "bpftool cgroup tree" in said
    assert said.count("Operation not permitted") == 1


def test_the_helps_example_lets_ordinary_users_choose() -> None:
    example = f"netnice enable --allow-all {ALGORITHM} && iperf3 -c host -C {DEFAULT}"
    assert example in call("netnice", "--help")


@pytest.mark.usefixtures("cold")
def test_a_failed_enable_leaves_nothing_enabled() -> None:
    read_only = "mount --bind /proc/sys /proc/sys; mount -o remount,bind,ro /proc/sys; exec"
    said = fails(
        "unshare", "-m", "sh", "-c", f'{read_only} "$@"', "sh",
        "netnice", "enable", "--allow-all", "lp",
    )  # fmt: skip
    assert "cannot let unprivileged programs choose" in said
    assert registered() == set()
    assert not any(c["enabled"] for c in status()["controls"])


def test_a_missing_mount_of_sys_is_not_blamed_on_the_kernel() -> None:
    without = 'umount -R -l /sys; exec "$@"'
    said = fails("unshare", "-m", "sh", "-c", without, "sh", *UNDER, "true", code=125)
    assert "/sys is not mounted here; mount it: mount -t sysfs sysfs /sys" in said
    assert "CONFIG_" not in said


@pytest.mark.usefixtures("cold")
@pytest.mark.parametrize("room", [1, 5], ids=["for nothing", "until a mark is put"])
def test_a_full_disk_is_named_and_nothing_begins(room: int) -> None:
    full = f'mkdir -p /run/netnice; mount -t tmpfs -o nr_inodes={room} none /run/netnice; exec "$@"'
    for words, code in (([*UNDER, "echo"], 125), (["netnice", "enable", ALGORITHM], 1)):
        said = fails("unshare", "-m", "sh", "-c", full, "sh", *words, code=code)
        assert "No space left on device" in said
        assert said.count("\n") == 1
        assert left_behind() == {}


def test_an_attached_listener_is_shown_with_its_own_address(link: Link) -> None:
    server = link.sender.start(
        PYTHON, "-u", "-m", "http.server", "--bind", SENDER, "--directory", "/dev", "8080"
    )
    assert "Serving HTTP" in server.line()
    call("netnice", "attach", str(server.pid))
    (line,) = [x for x in call("netnice", "status").splitlines() if x.startswith(f"{DEFAULT}  ")
               and "not registered" not in x and "registered for" not in x]  # fmt: skip
    assert f"{SENDER}:8080" in line and "  listening  " in line
    assert "0.0.0.0:0" not in line
    server.popen.kill()
    server.status()
    sweep()


def test_a_probe_inside_of_a_run_is_told_to_start_outside(link: Link) -> None:
    listener = link.receiver.listen(RECEIVER, 9)
    process = link.sender.start(*UNDER, "netnice", "probe", "--seconds", "1", RECEIVER)
    ended(process, 1)
    assert "inside of a run there is nothing to measure with" in process.errors
    assert "start netnice probe outside of it" in process.errors
    listener.close()


def test_a_probe_finds_its_own_connection_by_an_address_of_ipv4_in_ipv6(link: Link) -> None:
    listening = link.receiver.open_socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.bind((RECEIVER, 9))
    listening.listen()
    done = subprocess.run(
        link.sender.command(
            "netnice", "probe", "--json", "--seconds", "1", f"[::ffff:{RECEIVER}]:9"
        ),
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    # nobody reads there, so nothing is measured; but its connection was seen to send
    assert '"control":"nn_imtcp"' in done.stdout.replace(" ", ""), done.stderr
