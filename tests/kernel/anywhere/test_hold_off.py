# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""`netnice hold`, and where the kernel or the device cannot: said in one sentence, nothing left."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from held import devices, has_fq
from support import MEMORY, Link


def hold(link: Link, *words: str) -> subprocess.CompletedProcess[str]:
    """Run `netnice hold` at the sender."""
    command = link.sender.command("netnice", "hold", *words)
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_device_holds_until_it_is_told_off_or_the_kernel_says_what_it_lacks(link: Link) -> None:
    before = devices(link)
    done = hold(link, "eth")
    if has_fq(link):
        assert (done.returncode, done.stderr) == (0, "")
        assert [h["device"] for h in json.loads(hold(link, "--json").stdout)] == ["eth"]
        assert "holds already" in hold(link, "eth").stderr
        assert hold(link, "--off", "eth").returncode == 0
    else:
        assert done.returncode == 1
        assert "this kernel cannot hold packets: it lacks sch_fq (CONFIG_NET_SCH_FQ)" in done.stderr
        assert "netnice run yields by its window, as ever" in done.stderr
        assert len(done.stderr.splitlines()) == 1  # libbpf has nothing to add
    assert devices(link) == before
    assert "wait at no device" in hold(link).stdout


def test_the_tools_of_root_are_found_with_the_path_that_cron_gives(link: Link) -> None:
    before = devices(link)
    cron = ("env", "-i", "PATH=/usr/bin:/bin", str(MEMORY / "netnice"))
    holds = link.sender.command(*cron, "hold", "eth")
    done = subprocess.run(holds, capture_output=True, text=True, check=False)
    if has_fq(link):
        assert (done.returncode, done.stderr) == (0, "")
        link.sender.call(*cron, "hold", "--off", "eth")
    else:
        assert "this kernel cannot hold packets: it lacks sch_fq" in done.stderr
    assert devices(link) == before


def test_a_mark_of_a_hold_that_cannot_be_ended_keeps_no_run_from_beginning(
    link: Link, tmp_path: Path
) -> None:
    namespace = link.sender.call("stat", "-Lc", "%i", "/proc/self/ns/net").strip()
    mark = Path("/run/netnice/held") / f"{namespace}-999"  # as of a run that was killed
    mark.parent.mkdir(parents=True, exist_ok=True)
    mark.touch()
    # the ip(8) that is to end it does not work
    failing = tmp_path / "ip"
    failing.write_text("#!/bin/sh\nexit 1\n")
    failing.chmod(0o755)
    run = [str(MEMORY / "netnice"), "run", "--no-hold", "--", "/bin/true"]
    done = subprocess.run(
        link.sender.command("env", f"PATH={tmp_path}", *run),
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, mark.exists()) == (0, True), done.stderr
    link.sender.call(*run)
    assert not mark.exists()


def test_what_is_beside_a_device_that_is_gone_is_taken_away_and_nothing_else(link: Link) -> None:
    def add(number: int) -> None:
        for near, far in (("nnwait", "nnback"), ("nncut", "nnsegs")):
            pair = (f"{near}{number}", "type", "veth", "peer", "name", f"{far}{number}")
            link.sender.call("ip", "link", "add", *pair)

    (eth,) = json.loads(link.sender.call("ip", "-json", "link", "show", "dev", "eth"))
    add(eth["ifindex"])
    before = devices(link)
    add(999)
    assert devices(link) > before
    link.sender.call("netnice", "run", "--no-hold", "--", "true")
    assert devices(link) == before


def test_what_cannot_hold_is_refused_in_one_sentence(link: Link) -> None:
    for words, said in (
        (["nosuch"], "there is no device nosuch here; see: ip link"),
        (["lo"], "lo is no Ethernet device"),
        (["--off", "eth"], "eth does not hold; see: netnice hold"),
    ):
        done = hold(link, *words)
        assert done.returncode == 1
        assert done.stderr.startswith(f"netnice: {said}")
        assert len(done.stderr.splitlines()) == 1
