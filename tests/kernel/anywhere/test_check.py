# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""`netnice check`: what works, line by line, with what to do; nothing is left."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence

import pytest
from classes import DEFAULT
from daemon import HERE, SOCKET, Daemon, user
from held import devices, has_fq
from support import NOBODY, Link, registered

NOWHERE = ["--socket", "/nowhere"]


def check(link: Link, *words: str, under: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
    """Run `netnice check` at the sender."""
    command = link.sender.command(*under, "netnice", "check", *words)
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.usefixtures("cold")
def test_what_works_is_said_line_by_line_and_nothing_is_left(link: Link) -> None:
    before = devices(link)
    done = check(link)
    assert (done.returncode, done.stderr) == (0, "")
    said = {line.split()[0]: line.split(maxsplit=2)[1:] for line in done.stdout.splitlines()}
    assert list(said) == ["rights", "kernel", "types", "run", "hold", "replicate", "daemon"]
    assert {said[what][0] for what in ("rights", "kernel", "types", "run")} == {"yes"}
    assert DEFAULT in said["run"][1]
    if has_fq(link):
        assert said["hold"] == ["yes", "packets wait in this host at eth"]
    else:
        assert said["hold"][0] == "no"
        assert "it lacks sch_fq" in said["hold"][1]
    assert devices(link) == before
    assert not registered()


def test_scripts_read_json_and_the_status(link: Link) -> None:
    found = json.loads(check(link, "--json").stdout)
    assert found["works"]
    assert [f["what"] for f in found["findings"] if f["needed"]] == [
        "rights", "kernel", "types", "run",
    ]  # fmt: skip
    without = check(link, *NOWHERE, under=["setpriv", "--bounding-set=-sys_admin"])
    assert without.returncode == 1
    first, daemon, last = without.stdout.splitlines()  # what needs it is not tried
    assert first.startswith("rights     no   this needs CAP_SYS_ADMIN")
    assert daemon.startswith("daemon     no   netnice's daemon does not answer")
    assert last == "netnice run does not work here."


def test_where_sys_is_not_mounted_that_is_said(link: Link) -> None:
    without = ["unshare", "--mount", "sh", "-c", 'umount -R /sys && exec "$@"', "sh"]
    done = check(link, *NOWHERE, under=without)
    assert done.returncode == 1
    assert "types      no   /sys is not mounted here; mount it: mount -t sysfs" in done.stdout


def test_without_root_it_works_if_the_daemon_runs(link: Link) -> None:
    started = Daemon(link.sender)
    done = check(link, *HERE, under=user(NOBODY))
    assert done.returncode == 0
    first, second = done.stdout.splitlines()
    assert first.startswith("rights     no ")
    assert second.startswith(f"daemon     yes  users without root are served at {SOCKET}")
    started.end()
    done = check(link, *HERE, under=user(NOBODY))
    assert done.returncode == 1
    assert "start it: sudo systemctl enable --now netnice.socket" in done.stdout
