# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Containers of podman, docker and containerd under a real systemd: docs/background.md, in order.

They use the host's network, and connect to ports of 127.0.0.1. Root may lack CAP_SYS_RESOURCE here,
and the cgroups the controllers `pids` and `cpu`: no container asks for these.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator

import pytest
from classes import DEFAULT
from own_systemd import Inside, systemd
from support import wait_until

PORTS = range(5001, 5012)
LISTENS = f"""
import socket, time
kept = [socket.create_server(("127.0.0.1", port)) for port in {list(PORTS)}]
time.sleep(3600)
"""
BEGINS = """
mkdir -p /tmp/image/bin /etc/containers
for engine in docker containerd containers; do
    mkdir -p /var/lib/$engine
    mount -t tmpfs none /var/lib/$engine
done
printf '[storage]\\ndriver = "vfs"\\ngraphroot = "/var/lib/containers/storage"\\n' \\
    >/etc/containers/storage.conf
echo 'runroot = "/run/containers/storage"' >>/etc/containers/storage.conf
cp /bin/busybox /tmp/image/bin
tar -C /tmp/image -cf /tmp/image.tar bin
ip link set lo up
systemctl start dbus.socket background.slice
systemd-run --quiet --unit=listens python3 -c "$0"
systemd-run --quiet --unit=dockerd dockerd --exec-opt native.cgroupdriver=systemd \\
    --iptables=false --bridge=none --storage-driver=vfs
podman import -q /tmp/image.tar busybox
until docker version; do sleep 0.1; done
docker import /tmp/image.tar busybox
docker save -o /tmp/saved.tar busybox
"""
PODMAN = ("podman", "run", "-d", "--privileged", "--pids-limit=0")
DOCKER = ("docker", "run", "-d")
CTR = ("ctr", "--address=/run/docker/containerd/containerd.sock")
POD = "2f1e6a10_3c5b_4b7e_9d54_1a2b3c4d5e6f"


@pytest.fixture(scope="module")
def inside() -> Iterator[Inside]:
    """Return what runs a command there, with an image and what containers connect to."""
    for program in ("podman", "crun", "dockerd", "runc", "ctr", "busybox"):
        found = shutil.which(program, path="/usr/sbin:/usr/bin:/bin")
        assert found, f"{program} is missing: make build/recipe-deps"
    with systemd() as runs:
        runs("env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "sh", "-ec", BEGINS, LISTENS)
        yield lambda *words: runs("env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", *words)


def connects(port: int) -> list[str]:
    """Return the command of a container that keeps a connection open."""
    assert port in PORTS
    return ["/bin/busybox", "sh", "-c",
            f"/bin/busybox sleep 3600 | /bin/busybox nc 127.0.0.1 {port}"]  # fmt: skip


def way(inside: Inside, port: int) -> tuple[bool, str]:
    """Return whether a container's connection is in the background, and its TOS."""

    def shown() -> str:
        return inside("ss", "-tinOH", "--tos", "dport", "=", f":{port}")

    line = wait_until("the container connects", shown)
    found = re.search(r"\btos:(\w+)", line)
    assert found
    return DEFAULT in line, found[1]


BACKGROUND = (True, "0x4")
PLAIN = (False, "0")


@pytest.mark.parametrize(
    ("engine", "first"), [(PODMAN, 5001), (DOCKER, 5003)], ids=["podman", "docker"]
)
def test_a_container_in_the_slice_is_in_the_background_and_another_once_it_is_attached(
    inside: Inside, engine: tuple[str, ...], first: int
) -> None:
    start = (*engine, "--network=host")
    inside(*start, "--cgroup-parent=background.slice", "busybox", *connects(first))
    assert way(inside, first) == BACKGROUND
    inside(*start, f"--name=named-{first}", "busybox", *connects(first + 1))
    assert way(inside, first + 1) == PLAIN
    inside("netnice", "attach", "--container", f"named-{first}")
    assert way(inside, first + 1) == BACKGROUND
    inside("netnice", "detach", "--container", f"named-{first}")
    assert not way(inside, first + 1)[0]


def test_podman_calls_the_hook_of_the_package_for_the_annotation(inside: Inside) -> None:
    annotation = ("--annotation", "netnice.class=idle")
    inside(*PODMAN, "--network=host", *annotation, "busybox", *connects(5005))
    assert way(inside, 5005) == BACKGROUND


def containerd(inside: Inside, cgroup: str, port: int) -> None:
    """Start a container of containerd, by runc, in a scope of systemd."""
    inside(
        *CTR, "run", "--detach", "--snapshotter=native", "--net-host", "--cpu-shares=0",
        "--runc-systemd-cgroup", f"--cgroup={cgroup}", "--annotation=netnice.class=idle",
        "docker.io/library/busybox:latest", f"named-{port}", *connects(port),
    )  # fmt: skip


def test_containerd_obeys_the_slice_and_calls_no_hook(inside: Inside) -> None:
    inside(*CTR, "image", "import", "--snapshotter=native", "/tmp/saved.tar")
    containerd(inside, "background.slice:ctr:one", 5006)
    assert way(inside, 5006) == BACKGROUND
    containerd(inside, "machine.slice:ctr:two", 5007)
    assert way(inside, 5007) == PLAIN


def test_pods_of_besteffort_that_containerd_runs_are_in_the_background(inside: Inside) -> None:
    containerd(inside, f"kubepods-besteffort-pod{POD}.slice:cri-containerd:one", 5008)
    assert way(inside, 5008) == PLAIN
    inside("netnice", "attach", "--pods")
    assert way(inside, 5008) == BACKGROUND
    containerd(inside, f"kubepods-besteffort-pod{POD[::-1]}.slice:cri-containerd:two", 5009)
    assert way(inside, 5009) == BACKGROUND
    containerd(inside, f"kubepods-burstable-pod{POD}.slice:cri-containerd:three", 5010)
    assert way(inside, 5010) == PLAIN
