# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""`netnice attach --pods` on the cgroups that the kubelet makes, with pods that come and go."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest
import yaml  # type: ignore[import-untyped]
from cgroups import Tree, entering, netnice
from classes import DEFAULT
from leftovers import swept
from recipes import BACKGROUND, PAGES, Job, Watched, contents, fill, have
from support import LE, MEMORY, PORT, RECEIVER, ROOT, Link, Process, status, wait_until

MANIFEST = ROOT / "packaging" / "kubernetes" / "netnice.yaml"
ID = "0123456789abcdef" * 4
UID = "2f1e6a10_3c5b_4b7e_9d54_1a2b3c4d5e6f"
LAYOUTS = {
    "systemd": (
        "kubepods.slice",
        f"kubepods-besteffort.slice/kubepods-besteffort-pod{UID}.slice/cri-containerd-{ID}.scope",
        f"kubepods-pod{UID}.slice/cri-containerd-{ID}.scope",
    ),
    "cgroupfs": ("kubepods", f"besteffort/pod{UID}/{ID}", f"pod{UID}/{ID}"),
    "a cgroup of its own": (
        "kubelet.slice",
        "kubelet-kubepods.slice/kubelet-kubepods-besteffort.slice/"
        f"kubelet-kubepods-besteffort-pod{UID}.slice/crio-{ID}.scope",
        f"kubelet-kubepods.slice/kubelet-kubepods-pod{UID}.slice/crio-{ID}.scope",
    ),
}
"""By the kubelet's cgroup driver: the root, below it a BestEffort container, a Guaranteed one."""


@pytest.fixture
def keeper(nothing_left: None, link: Link) -> Iterator[Process]:
    """Start what attaches the pods whenever they are there."""
    (container,) = yaml.safe_load(MANIFEST.read_text())["spec"]["template"]["spec"]["containers"]
    process = Process([str(MEMORY / "netnice"), *container["command"][1:]])
    wait_until("it looked once", lambda: "waiting for it" in process.errors)
    assert "does the kubelet run" in process.errors
    yield process
    process.end()
    for tree in Pods.made:
        tree.remove()
    Pods.made.clear()
    wait_until("what was attached is closed", swept)


def attached() -> list[str]:
    """Return the cgroups that are attached as a whole."""
    return [run["cgroup"] for run in status()["runs"] if run["cgroup"]]


class Pods:
    """The cgroups of two pods."""

    made: ClassVar[list[Tree]] = []

    def __init__(self, link: Link, layout: str) -> None:
        """Make them."""
        root, best_effort, guaranteed = LAYOUTS[layout]
        self.link, self.tree = link, Tree(root)
        self.made.append(self.tree)
        self.ours, self.other = self.tree.below(best_effort), self.tree.below(guaranteed)

    def are_in_the_background(self) -> None:
        """Let each open a connection, once they are attached, and end."""
        wait_until("the pods are attached", attached)
        clients = [self.tree.client(self.link.sender, pod) for pod in (self.ours, self.other)]
        for client, port in zip(clients, (PORT, PORT + 1), strict=True):
            client.do("open AF_INET SOCK_STREAM")
            client.do(f"connect {RECEIVER} {port}")
        seen = {c.remote: (c.control, c.tos) for c in self.link.sender.connections()}
        assert seen[f"{RECEIVER}:{PORT}"] == (DEFAULT, LE)
        assert seen[f"{RECEIVER}:{PORT + 1}"] == ("reno", 0)
        for client in clients:
            client.process.end()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_pods_of_best_effort_are_in_the_background_and_no_others(
    link: Link, keeper: Process, layout: str
) -> None:
    for port in (PORT, PORT + 1):
        link.receiver.listen(RECEIVER, port)
    pods = Pods(link, layout)
    pods.are_in_the_background()
    if layout == "systemd":  # the node was drained, and the cgroups are made anew
        pods.tree.remove()
        wait_until("the programs are gone", lambda: not attached())
        pods = Pods(link, layout)
        pods.are_in_the_background()
    keeper.popen.terminate()
    keeper.succeed()
    assert "is out of the background again" in keeper.errors
    assert attached() == []
    assert "is not attached" in netnice("detach", "--pods", status=1)


@pytest.mark.soak
def test_the_cronjob_of_the_recipe_is_in_the_background(
    link: Link, keeper: Process, tmp_path: Path
) -> None:
    have("rclone")
    job = Job(link, tmp_path)
    fill(job.source)
    job.serve_shells()
    text = "\n".join(re.findall("^    (.*)$", (PAGES / "cronjob.md").read_text(), re.M))
    manifest = yaml.safe_load(text.partition("kubectl ")[0])
    assert (manifest["apiVersion"], manifest["kind"]) == ("batch/v1", "CronJob")
    pod = manifest["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert "resources" not in container  # so the kubelet puts it where BestEffort pods are
    mounts = {mount["name"] for mount in container["volumeMounts"]}
    assert mounts == {volume["name"] for volume in pod["volumes"]}
    pods = Pods(link, "systemd")
    wait_until("the pods are attached", attached)
    watched = Watched(link.sender)
    running = job.start(job.here(shlex.join(container["command"])), *entering(pods.ours))
    wait_until("the job ends", lambda: watched.until_end_of(running))
    running.succeed()
    assert watched.to(RECEIVER) == {BACKGROUND}
    assert contents(job.server / "home") == contents(job.source)
    link.sender.clear()
