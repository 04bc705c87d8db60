# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Servers for ssh in the namespaces of a link."""

from __future__ import annotations

import os
from pathlib import Path

from support import IN_VM, MEMORY, RECEIVER, Link, Namespace, call, wait_until

SSH_PORT = 2222
SSHD = "/usr/sbin/sshd"
ROUTER = "10.0.2.254"
"""The router, as the receiver reaches it."""


def listening(namespace: Namespace, port: int) -> None:
    """Wait until a port is open."""
    wait_until(f"port {port}", lambda: namespace.call("ss", "-Hltn", f"sport = :{port}"))


class Shells:
    """Servers for ssh at the receiver and the router, with keys of their own."""

    def __init__(self, link: Link, directory: Path) -> None:
        """Start them; the commands that they start find the netnice under test."""
        assert Path(SSHD).exists(), f"{SSHD} is missing: make build/test-deps"
        for key in ("host", "user"):
            call("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(directory / key))
        self.config = directory / "ssh_config"
        self.config.write_text(
            f"Host *\nPort {SSH_PORT}\nIdentityFile {directory}/user\nIdentitiesOnly yes\n"
            f"UserKnownHostsFile {directory}/known\nBatchMode yes\n"
            f"ConnectTimeout {600 if IN_VM else 10}\n"
        )
        key = (directory / "host.pub").read_text()
        (directory / "known").write_text(
            "".join(f"[{host}]:{SSH_PORT} {key}" for host in (RECEIVER, ROUTER))
        )
        Path("/run/sshd").mkdir(exist_ok=True)
        if IN_VM:  # whose root is locked ("!"), and sshd lets nobody in as such
            Path("/etc/shadow").write_text("root:*:::::::\n")
        self.shell = f"ssh -F {self.config}"
        for namespace, address in (
            (link.receiver, RECEIVER),
            (link.router, ROUTER),
        ):
            server = directory / f"sshd-{address}"
            server.write_text(
                f"ListenAddress {address}:{SSH_PORT}\nHostKey {directory}/host\nUsePAM no\n"
                f"PidFile none\nStrictModes no\nAuthorizedKeysFile {directory}/user.pub\n"
                f"PasswordAuthentication no\nSubsystem sftp internal-sftp\n"
                f"SetEnv PATH={MEMORY}:{os.environ['PATH']} "
                f'"RSYNC_RSH={self.shell}"\n'
            )
            namespace.start(SSHD, "-D", "-e", "-f", str(server))
            listening(namespace, SSH_PORT)
