# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""The daemon's units under a real systemd."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from own_systemd import CGROUP, UID, Inside, systemd
from support import call, wait_until


@pytest.fixture(scope="module")
def inside() -> Iterator[Inside]:
    """Return what runs a command there."""
    with systemd() as runs:
        yield runs


def script(inside: Inside, name: str, *words: str) -> None:
    inside("sh", f"/mnt/packaging/scripts/{name}", *words)


def as_user(*words: str) -> list[str]:
    """Return the command that logs the user in for a command."""
    login = ["systemd-run", f"--uid={UID}", "-p", "PAMName=login", "--pipe", "--quiet", "--wait"]
    return [*login, "env", f"XDG_RUNTIME_DIR=/run/user/{UID}", *words]


def test_the_socket_starts_it_and_a_users_run_is_in_a_scope_of_his_systemd(inside: Inside) -> None:
    script(inside, "postinst", "configure", "")
    assert inside("systemctl", "is-active", "netnice.socket") == "active\n"
    inside("systemctl", "start", "dbus.socket", "systemd-logind", f"user@{UID}")
    shown = inside(*as_user("netnice", "run", "--json", "--", "cat", "/proc/self/cgroup"))
    (cgroup,) = (line for line in shown.splitlines() if line.startswith("0::"))
    manager, scope, of_run = cgroup.rsplit("/", 2)
    assert f"/user@{UID}.service/" in manager
    assert scope.removesuffix(".scope") == of_run.replace("-run-", "-")
    assert '"why":"no_connection"' in shown  # the report, by a daemon with this unit's rights
    assert inside("systemctl", "is-active", "netnice.service") == "active\n"


def test_killed_restarted_and_updated_under_a_run_it_tells_what_that_did(inside: Inside) -> None:
    words = " ".join(as_user("netnice", "run", "--json", "--", "sleep", "3"))
    inside("sh", "-c", f"{words} >/tmp/said 2>&1 &")

    def listed() -> bool:
        return "sleep 3" in inside("netnice", "status")

    wait_until("it runs", listed)
    for how in ("kill --signal=KILL", "restart"):
        inside("systemctl", *how.split(), "netnice.service")
        assert listed()
    script(inside, "prerm", "upgrade")
    script(inside, "postinst", "configure", "0.1.0")
    wait_until("it is told", lambda: "no_connection" in inside("cat", "/tmp/said"))


def test_a_request_in_the_middle_of_a_restart_is_answered_by_the_next(inside: Inside) -> None:
    for _ in range(3):
        asks = "netnice run -- echo ran >/tmp/ran 2>&1 &"
        inside("sh", "-c", f"rm -f /tmp/ran; {asks} systemctl restart netnice.service; wait")
        assert "ran\n" in inside("cat", "/tmp/ran")


def test_who_stops_his_scope_ends_the_run(inside: Inside) -> None:
    words = " ".join(as_user("netnice", "run", "--", "sleep", "60"))
    inside("sh", "-c", f"{words} >/dev/null 2>&1 &")
    wait_until("it runs", lambda: "sleep 60" in inside("netnice", "status"))
    inside(*as_user("systemctl", "--user", "stop", "netnice-*.scope"))
    wait_until("it ends", lambda: "sleep 60" not in inside("netnice", "status"), 30)


def states(inside: Inside) -> set[str]:
    """Return whether it is enabled and active."""
    asks = "systemctl is-enabled netnice.socket; systemctl is-active netnice.s*; true"
    return set(inside("sh", "-c", asks).split())


def test_removal_stops_and_disables_it(inside: Inside) -> None:
    script(inside, "prerm", "remove")
    assert states(inside) <= {"disabled", "inactive"}
    assert call("sh", "-c", f"find {CGROUP} -name 'netnice-run-*'") == ""


def test_installed_again_it_serves_users_if_it_did_when_it_was_removed(inside: Inside) -> None:
    # dpkg keeps a package that was removed and not purged, and tells the version that was there
    script(inside, "postinst", "configure", "0.1.0")
    assert {"enabled", "active"} <= states(inside)
    inside("systemctl", "disable", "--now", "netnice.socket", "netnice.service")
    script(inside, "prerm", "remove")
    script(inside, "postinst", "configure", "0.1.0")
    assert states(inside) <= {"disabled", "inactive"}
