# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""docs/recipes/timer.md under a real systemd: its units, with restic and a server for ssh."""

from __future__ import annotations

import re
import shutil

from classes import DEFAULT
from own_systemd import systemd
from support import wait_until
from test_manual import ROOT

PAGE = ROOT / "docs" / "recipes" / "timer.md"
FILES = re.findall(r"# (/etc/\S+)\n(.*?)(?=# /etc|\Z)", "\n".join(
    re.findall("^    (.*)$", PAGE.read_text(), re.M)), re.S)  # fmt: skip
BEGINS = """
ip link set lo up
sed -i 's/^root:[^:]*:/root:*:/' /etc/shadow
mkdir -p /root/.ssh /run/sshd /srv /home/x
head -c 20000000 /dev/urandom >/home/x/file
ssh-keygen -q -t ed25519 -N '' -f /tmp/key
cp /tmp/key.pub /root/.ssh/authorized_keys
printf 'Host backup\\nHostName 127.0.0.1\\nIdentityFile /tmp/key\\n' >/root/.ssh/config
echo 'StrictHostKeyChecking no' >>/root/.ssh/config
systemd-run --quiet --unit=server /usr/sbin/sshd -D -f /dev/null -h /tmp/key \\
    -o ListenAddress=127.0.0.1 -o StrictModes=no -o 'Subsystem=sftp internal-sftp'
until ssh backup true 2>/dev/null; do sleep 0.1; done
RESTIC_PASSWORD=secret restic -r /srv/restic init
mkdir /etc/systemd/system/backup.service.d
printf '[Service]\\nEnvironment=RESTIC_PASSWORD=secret\\n' \\
    >/etc/systemd/system/backup.service.d/secret.conf
systemctl start dbus.socket
"""
RESTORES = """
RESTIC_PASSWORD=secret restic -r /srv/restic restore latest --target /tmp/restored
cmp /home/x/file /tmp/restored/home/x/file
"""


def test_the_timers_service_is_in_the_background_and_nothing_else_is() -> None:
    for program in ("restic", "sshd", "ssh-keygen"):
        found = shutil.which(program, path="/usr/sbin:/usr/bin:/bin")
        assert found, f"{program} is missing: make build/recipe-deps"
    with systemd() as inside:
        inside("sh", "-ec", BEGINS)
        for path, text in FILES:
            inside("sh", "-c", 'echo "$0" >"$1"', text, path)
        inside("systemctl", "daemon-reload")
        inside("systemctl", "enable", "--now", "backup.timer")
        assert "backup.service" in inside("systemctl", "list-timers")
        inside("systemd-run", "--quiet", "--unit=other", "ssh", "backup", "sleep 600")
        ways: dict[str, set[tuple[bool, str]]] = {}

        def look() -> bool:
            """Look at what goes to the server; whether the service has ended."""
            lines = inside("ss", "-tinOH", "--tos", "dport", "=", ":22").splitlines()
            for local, line in ((line.split()[3], line) for line in lines):
                tos = re.search(r"\btos:(\w+)", line)
                ways.setdefault(local, set()).add((DEFAULT in line, tos[1] if tos else ""))
            ended = ("-p", "ExecMainExitTimestampMonotonic", "backup.service")
            return inside("systemctl", "show", "--value", *ended).strip() != "0"

        wait_until("somebody else's connection", lambda: look() or ways)
        (other,) = ways
        inside("systemctl", "start", "--no-block", "backup.service")
        wait_until("the backup ends", look)
        assert {background for background, _ in ways.pop(other)} == {False}
        assert set().union(*ways.values()) == {(True, "0x4")}
        inside("sh", "-ec", RESTORES)
