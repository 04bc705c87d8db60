# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""What every test on the kernel starts from, and must leave."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import came
import leftovers
import pytest
import replicas
import sizes
import support
from cgroups import Tree
from daemon import Daemon


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave to `make soak` what is marked so; pytest says how many it deselected."""
    items[:], left = sizes.only_soaked(items)
    config.hook.pytest_deselected(items=left)


def _stay(*_: object) -> None:
    """Be a signal's handler, which does nothing; what is started has the default again."""


@pytest.fixture(scope="session", autouse=True)
def prepared() -> None:
    """Refuse to run without root, or where netnice is in use; put the programs into memory."""
    if os.geteuid() != 0:
        pytest.exit("The tests on the kernel make namespaces and load BPF: run them as root.", 1)
    # a background job of a script ignores both, and all that it starts would, too
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    # ended by kill as by Ctrl-C: what a test has made comes down
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    # so does a hangup; but not under nohup, which all that the tests start would not know of
    under_nohup = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    signal.signal(signal.SIGHUP, _stay if under_nohup else signal.default_int_handler)
    support.prepare_programs()
    leftovers.remove_stale_namespaces()
    leftovers.sweep()
    try:
        support.wait_until("nothing of netnice", lambda: not leftovers.left_behind(), 10.0)
    except AssertionError:
        found = leftovers.left_behind()
        pytest.exit(f"netnice is in use here, and the tests would disturb it: {found}. "
                    "Let its transfers end, then: netnice disable", 1)  # fmt: skip


@pytest.fixture(autouse=True, scope="module")
def nothing_ready() -> Iterator[None]:
    """Take away, after all tests of a file, the control that stays ready for the next run.

    To load it takes as long as most tests.
    """
    yield
    if support.registered():
        leftovers.sweep()
    require_nothing(leftovers.left_behind)


@pytest.fixture(autouse=True, scope="module" if support.IN_VM else "function")
def nothing_left(nothing_ready: None) -> Iterator[None]:
    """Fail a test after which something of netnice stays. Comes down after `link`.

    To look costs seconds of an emulated processor, to load an algorithm more: there both are done
    once for each file.
    """
    yield
    if support.IN_VM:
        support.call("netnice", "disable")
    # the kernel frees a closed socket's control after a grace period of RCU
    require_nothing(leftovers.needless)


def require_nothing(left: Callable[[], dict[str, list[str]]]) -> None:
    """Fail unless nothing is left soon; then end it, or every test that follows waited too."""
    try:
        support.wait_until("nothing of netnice is left", lambda: not left())
    except AssertionError:
        found = leftovers.left_behind()
        leftovers.end_all()
        raise AssertionError(f"netnice left behind: {found}") from None


@pytest.fixture
def cold(nothing_left: None) -> None:
    """Begin without the control that a test before left ready, to see all that is registered."""
    leftovers.sweep()


@pytest.fixture
def link(nothing_left: None) -> Iterator[support.Link]:
    """Make three namespaces in a row, and remove them."""
    made = support.Link()
    yield made
    made.remove()


@pytest.fixture
def tree(link: support.Link) -> Iterator[Tree]:
    """Make a cgroup; it ends before the link does, and takes its programs with it."""
    made = Tree()
    yield made
    for namespace in link.namespaces:
        namespace.clear()
    made.remove()
    support.wait_until("what was attached is closed", leftovers.swept)


@pytest.fixture
def pulls(link: support.Link) -> Iterator[support.Link]:
    """Return the path of K1, at whose receiving end downloads yield."""
    link.limit(came.RATE_MBIT, came.ROOM).delay(came.RTT_MS)
    link.receiver.call("netnice", "hold", "eth")
    yield link
    link.sender.clear()
    link.receiver.clear()
    link.receiver.call("netnice", "hold", "--off", "eth")


@pytest.fixture
def enabled(link: support.Link) -> Iterator[support.Enabled]:
    """Return what registers algorithms for the whole system, for connections over `link`.

    Each is a program to verify: a test names those that it uses. In the virtual machine they stay
    until the end of the file.
    """

    def enable(*names: str) -> support.Link:
        support.call("netnice", "enable", *names)
        return link

    yield enable
    if not support.IN_VM:
        support.call("netnice", "disable")


@pytest.fixture
def setting(link: support.Link, tmp_path: Path) -> Iterator[replicas.Setting]:
    """Make a source and a place for copies."""
    yield replicas.Setting(link, tmp_path)


@pytest.fixture
def daemon(link: support.Link) -> Iterator[Daemon]:
    """Start a daemon at the sender."""
    started = Daemon(link.sender)
    yield started
    started.end()
    for namespace in link.namespaces:
        namespace.clear()
    support.wait_until("what users attached is closed", leftovers.swept)
