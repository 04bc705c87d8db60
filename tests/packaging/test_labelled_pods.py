# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Pods with a label, as a real containerd tells of them: docs/kubernetes.md.

A pod here is its sandbox alone, in a cgroup as the kubelet names it, on the host's network. It
needs the cgroup controller `cpu`, as every distribution's kernel has it: in the virtual machine.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from classes import DEFAULT
from own_systemd import Inside, systemd
from support import wait_until
from test_engines import BACKGROUND, LISTENS, PLAIN, connects

CONTROLLERS = Path("/sys/fs/cgroup/cgroup.subtree_control")
CONFIG = """
version = 2
root = "/tmp/cri/root"
state = "/run/cri"
[plugins."io.containerd.grpc.v1.cri".containerd]
snapshotter = "native"
disable_snapshot_annotations = true
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
SystemdCgroup = true
[plugins."io.containerd.grpc.v1.cri"]
restrict_oom_score_adj = true
sandbox_image = "localhost/pod:latest"
"""
BEGINS = """
ip link set lo up
mkdir -p /tmp/image/bin /tmp/cri /etc/containers /var/lib/containers
mount -t tmpfs none /var/lib/containers
printf '[storage]\\ndriver = "vfs"\\ngraphroot = "/var/lib/containers/storage"\\n' \\
    >/etc/containers/storage.conf
echo 'runroot = "/run/containers/storage"' >>/etc/containers/storage.conf
cp /bin/busybox /tmp/image/bin
tar -C /tmp/image -cf /tmp/image.tar bin
echo "$1" >/tmp/cri/config.toml
systemctl start dbus.socket
systemd-run --quiet --unit=listens python3 -c "$0"
systemd-run --quiet --unit=cri containerd --config /tmp/cri/config.toml
"""
IMAGE = """
podman import -q --change "CMD $0" /tmp/image.tar localhost/pod:latest
podman save -q --format oci-archive -o /tmp/pod.tar localhost/pod:latest
until ctr --namespace k8s.io images import --snapshotter native /tmp/pod.tar; do sleep 1; done
"""
# RunPodSandbox of CRI, field by field, as the kubelet asks for it
RUNS = r"""
import sys, grpc

def field(number, content):
    if isinstance(content, int):
        return bytes([number << 3, content])
    content = content.encode() if isinstance(content, str) else content
    low, high = len(content) & 127, len(content) >> 7
    return bytes([number << 3 | 2, *([low | 128, high] if high else [low])]) + content

name, uid, cgroup, key, value = sys.argv[1:]
metadata = field(1, name) + field(2, uid) + field(3, "shop")
label = field(1, key) + field(2, value)
node, container = 2, 1
namespaces = field(1, node) + field(2, container) + field(3, node)
linux = field(1, cgroup) + field(2, field(1, namespaces))
config = field(1, metadata) + field(3, "/tmp/cri") + field(6, label) + field(8, linux)
channel = grpc.insecure_channel("unix:///run/containerd/containerd.sock")
runs = channel.unary_unary("/runtime.v1.RuntimeService/RunPodSandbox")
runs(field(1, config), timeout=120)
"""
PORT = 5001
UIDS = {
    name: f"2f1e6a10-3c5b-4b7e-9d54-1a2b3c4d5e6{n}"
    for n, name in enumerate(["first", "other", "second"])
}


@pytest.fixture(scope="module")
def inside() -> Iterator[Inside]:
    """Return what runs a command there, with a containerd that answers."""
    for program in ("podman", "runc", "containerd", "ctr", "busybox"):
        found = shutil.which(program, path="/usr/sbin:/usr/bin:/bin")
        assert found, f"{program} is missing: make build/recipe-deps"
    CONTROLLERS.write_text("+cpu", encoding="ascii")  # refused: this kernel lacks it
    with systemd() as runs:
        env = ("env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin")
        runs(*env, "sh", "-ec", BEGINS, LISTENS, CONFIG)
        command = ", ".join(f'"{word}"' for word in connects(PORT))
        runs(*env, "sh", "-ec", IMAGE, f"[{command}]")
        yield lambda *words: runs(*env, *words)


def slice_of(name: str) -> str:
    """Return the cgroup of a pod, as the kubelet names it."""
    return f"kubepods-burstable-pod{UIDS[name].replace('-', '_')}.slice"


def start(inside: Inside, name: str, value: str) -> None:
    """Start a pod with the label netnice/class."""
    words = (name, UIDS[name], slice_of(name), "netnice/class", value)
    inside("python3", "-c", RUNS, *words)


def way(inside: Inside, name: str) -> tuple[bool, str]:
    """Return whether a pod's connection is in the background, and its TOS."""
    cgroup = f"/sys/fs/cgroup/kubepods.slice/kubepods-burstable.slice/{slice_of(name)}"

    def shown() -> str:
        pids = inside("sh", "-c", f"cat {cgroup}/*/cgroup.procs").split()
        lines = inside("ss", "-tinOHp", "--tos", "dport", "=", f":{PORT}").splitlines()
        return next((line for line in lines for pid in pids if f"pid={pid}," in line), "")

    line = wait_until("the pod connects", shown)
    found = re.search(r"\btos:(\w+)", line)
    assert found
    return DEFAULT in line, found[1]


def test_pods_with_the_label_are_in_the_background_and_new_ones_within_seconds(
    inside: Inside,
) -> None:
    start(inside, "first", "idle")
    start(inside, "other", "fair")
    assert way(inside, "first") == PLAIN
    keep = ("netnice", "attach", "--keep", "--pods", "--label", "netnice/class=idle")
    inside("systemd-run", "--quiet", "--unit=keeps", *keep)
    wait_until("it is attached", lambda: way(inside, "first") == BACKGROUND)
    start(inside, "second", "idle")
    wait_until("the new one too", lambda: way(inside, "second") == BACKGROUND)
    assert way(inside, "other") == PLAIN
    said = inside("journalctl", "--unit=keeps", "--output=cat")
    assert "netnice: the pod shop/first is in the background: moved 1 connection;" in said
    assert said.count("there is no cgroup of BestEffort pods") == 1
    inside("systemctl", "kill", "--signal=TERM", "keeps")
    wait_until("they are as before", lambda: not way(inside, "second")[0])
    assert not way(inside, "first")[0]
