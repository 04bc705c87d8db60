# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""`netnice hook oci` under a real OCI runtime: crun, with a container of busybox."""

from __future__ import annotations

import json
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from cgroups import Tree, netnice
from classes import DEFAULT
from leftovers import swept
from support import LE, MEMORY, PORT, RECEIVER, Link, Process, call, flows, status, wait_until

ID = "0123456789abcdef" * 4
UNIFIED = 'mount -t cgroup2 none /sys/fs/cgroup; exec "$@"'
"""As systemd mounts it, also where this machine has it elsewhere."""


class Container:
    """A bundle, and what runs of it."""

    def __init__(self, directory: Path, link: Link) -> None:
        """Make the bundle; the process sends once a line comes."""
        self.directory, self.link = directory, link
        assert shutil.which("crun"), "crun is missing: make build/test-deps"
        (directory / "rootfs" / "bin").mkdir(parents=True)
        shutil.copy("/bin/busybox", directory / "rootfs" / "bin")
        call("crun", "spec", "-b", str(directory))
        self.tree = Tree()

    def start(self, annotations: dict[str, str], *hook: str) -> Process:
        """Start it with the hook of the package, in the network of the sender."""
        file = self.directory / "config.json"
        config = json.loads(file.read_text())
        config["process"] |= {"terminal": False, "args": [
            "/bin/busybox", "sh", "-c",
            f"echo runs; /bin/busybox head -c 100000 /dev/zero | /bin/busybox nc {RECEIVER} {PORT}"
            "; echo sent; read end",
        ]}  # fmt: skip
        config["linux"] = {
            "cgroupsPath": f"/{self.tree.path.name}/libpod-{ID}",
            "namespaces": [{"type": kind} for kind in ("mount", "pid")],
        }
        config.pop("hostname", None)
        # crun writes what hooks say there alone
        self.said = self.directory / "said"
        config["annotations"] = annotations | {"run.oci.hooks.stderr": str(self.said)}
        packaged = json.loads(Path("packaging/containers/netnice.json").read_text())
        args = [*packaged["hook"]["args"], *hook]
        (stage,) = packaged["stages"]
        config["hooks"] = {stage: [{"path": str(MEMORY / "netnice"), "args": args}]}
        file.write_text(json.dumps(config))
        return self.link.sender.start(
            "unshare", "-m", "sh", "-ec", UNIFIED, "sh",
            "crun", "--root", str(self.directory / "state"), "--cgroup-manager=cgroupfs",
            "run", "-b", str(self.directory), ID,
        )  # fmt: skip


def received_all(accepted: socket.socket) -> None:
    """Receive what a container sends, and close the connection: nc waits for that."""
    got = 0
    while got < 100_000 and (part := accepted.recv(1 << 16)):
        got += len(part)
    accepted.close()
    assert got == 100_000


@pytest.fixture
def container(link: Link, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Container]:
    """Make a container, and remove what is left of it."""
    monkeypatch.chdir(Path(__file__).parents[3])
    made = Container(tmp_path, link)
    yield made
    link.sender.clear()
    made.tree.remove()
    wait_until("what was attached is closed", swept)


def test_a_container_with_the_annotation_is_in_the_background_from_its_first_packet(
    container: Container,
) -> None:
    link = container.link
    listener = link.receiver.listen(RECEIVER, PORT)
    capture = link.capture()
    running = container.start({"netnice.class": "idle"})
    assert running.line() == "runs"
    assert capture.first("a SYN", lambda p: p.syn and p.dport == PORT).tos == LE
    accepted, _ = listener.accept()
    (flow,) = wait_until("a flow", flows)
    assert flow["control"] == DEFAULT
    (run,) = status()["runs"]
    assert run["cgroup"].endswith(f"/libpod-{ID}")
    # it is known by its id, too, and how that begins
    netnice("detach", "--container", ID[:12])
    netnice("attach", "--container", ID, "--class", "fair")
    received_all(accepted)
    assert running.line() == "sent"
    running.tell("")
    running.succeed()
    # what ended is no container any more
    assert "there is no container" in netnice("detach", "--container", ID, status=1)


def test_a_container_without_the_annotation_is_left_alone(container: Container) -> None:
    listener = container.link.receiver.listen(RECEIVER, PORT)
    running = container.start({"other": "idle"})
    assert running.line() == "runs"
    accepted, _ = listener.accept()
    assert (flows(), status()["runs"]) == ([], [])
    received_all(accepted)
    running.tell("")
    running.succeed()


def test_a_container_that_asks_for_what_is_not_there_starts_only_with_or_plain(
    container: Container,
) -> None:
    listener = container.link.receiver.listen(RECEIVER, PORT)
    refused = container.start({"netnice.class": "slow"})
    assert refused.status() != 0
    assert 'there is no class "slow"; there are idle' in container.said.read_text()
    running = container.start({"netnice.class": "slow"}, "--or-plain")
    assert running.line() == "runs"
    received_all(listener.accept()[0])
    running.tell("")
    running.succeed()
    assert "the container starts, but not in the background" in container.said.read_text()


@pytest.mark.parametrize(
    ("state", "text"),
    [
        ("", "no state of a container"),
        ("x" * 2_000_000, "longer than 1048576 bytes"),
        ('{"ociVersion":"2.0","id":"a","status":"created"}', 'version "2.0"'),
        (
            '{"ociVersion":"1.0","id":"a","status":"created","pid":1,'
            '"annotations":{"netnice.class":"idle"}}',
            "no cgroup of version 2 of its own",
        ),
        (
            '{"ociVersion":"1.0","id":"a","status":"created","pid":999999999,'
            '"annotations":{"netnice.class":"idle"}}',
            "has ended",
        ),
    ],
)
def test_what_is_no_container_of_its_own_is_refused_in_one_line(state: str, text: str) -> None:
    errors = netnice("hook", "oci", status=1, stdin=state)
    assert text in errors
    assert errors.count("\n") == 1
