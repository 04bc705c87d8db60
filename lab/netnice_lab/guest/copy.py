# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Copies of a directory from a to b, beside the traffic of a run."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import time
from pathlib import Path

from .network import access_links, queue_statistics, use_control
from .places import CLIENT, RSYNC_PORT
from .programs import MEMORY, Json, Program, call, fail, in_netns


class Replication:
    """rsync, or `netnice replicate`, copies a directory from a to daemons in b.

    `run["copy"]` has: `wrap`, the command below which it runs; `options` for rsync; `control`, the
    congestion control of a; `replicate`, whether netnice shall do it itself; `paths`, a destination
    behind each of these (see `access_links`) instead of a single one; `together`, whether rsync
    copies to all of them at the same time instead of one by one; `sample_s`, the time between looks
    at what has passed the bottleneck. All but the first may be missing.
    """

    def __init__(self, job: Json, run: Json) -> None:
        """Start the daemon with an empty directory to receive into."""
        self.source = MEMORY / "source"
        self.how: Json = run["copy"]
        addresses = [CLIENT]
        if paths := self.how.get("paths"):
            addresses = access_links(paths, job["scenario"]["bottleneck"]["rtt_ms"])
        self.targets = [MEMORY / f"copy{i}" for i in range(len(addresses))]
        self.places = [
            f"rsync://{address}:{RSYNC_PORT}/copy{i}/" for i, address in enumerate(addresses)
        ]
        self.start_s: float = job["scenario"]["warmup_s"]
        if not self.source.exists():
            self.source.mkdir()
            call("tar", "-xf", job["archive"], "-C", str(self.source))
        modules = ""
        for target in self.targets:
            shutil.rmtree(target, ignore_errors=True)
            target.mkdir()
            modules += f"[{target.name}]\npath = {target}\nread only = no\n"
        if control := self.how.get("control"):
            use_control("a", control)
        config = MEMORY / "rsyncd.conf"
        config.write_text(f"use chroot = no\nuid = 0\ngid = 0\n{modules}")
        daemon = ["rsync", "--daemon", "--no-detach", f"--config={config}"]
        self.daemon = Program(in_netns("b", *daemon, f"--port={RSYNC_PORT}"))
        # The daemon does not say when it listens; asking it does.
        list_modules = in_netns("b", "rsync", f"rsync://{CLIENT}:{RSYNC_PORT}/")
        while subprocess.run(list_modules, capture_output=True, check=False).returncode != 0:
            if self.daemon.process.poll() is not None:
                self.daemon.wait()
            time.sleep(0.1)

    def command(self) -> list[str]:
        """Return the command that copies."""
        options: list[str] = self.how.get("options", [])
        if self.how.get("replicate"):
            state = MEMORY / "state"
            shutil.rmtree(state, ignore_errors=True)
            return in_netns("a", "netnice", "replicate", "--state", str(state),
                            f"{self.source}/", *self.places, "--", *options)  # fmt: skip
        sync = ["rsync", "--archive", "--numeric-ids", *options, f"{self.source}/"]
        if len(self.places) == 1:
            return in_netns("a", *self.how["wrap"], *sync, *self.places)
        copies = [shlex.join([*sync, place]) for place in self.places]
        if self.how.get("together"):
            copies = [f'{copy} & all="$all $!"' for copy in copies]
            copies.append("for one in $all; do wait $one; done")
        return in_netns("a", *self.how["wrap"], "sh", "-e", "-c", "\n".join(copies))

    def copy(self, epoch: float, end_s: float) -> Json:
        """Copy, from the end of the warm-up on; return when it ended, in seconds from `epoch`."""
        command = self.command()
        time.sleep(max(0.0, epoch + self.start_s - time.time()))
        program = Program(command)
        samples: list[list[float]] = []
        if step := self.how.get("sample_s"):
            while program.process.poll() is None and time.time() < epoch + end_s:
                samples.append([time.time() - epoch, queue_statistics()["sent_bytes"]])
                time.sleep(step)
        try:
            program.process.wait(epoch + end_s - time.time())
        except subprocess.TimeoutExpired:
            program.stop()
            fail(
                f"{' '.join(command)} had not finished after "
                f"{end_s - self.start_s:.0f} s, when the users stopped. "
                "Copy less (--size), or let them go on (--set measure_s=600)."
            )
        done_s = time.time() - epoch
        program.wait()
        self.daemon.stop()
        return {"start_s": self.start_s, "end_s": done_s, "samples": samples}

    def compare(self) -> Json:
        """Compare the copies with their source byte for byte; any difference ends the VM."""
        files = self.files(self.source)
        size = 0
        for target in self.targets:
            if files != (copied := self.files(target)):
                fail(f"The copy has other files than its source: {sorted(files ^ copied)[:5]}")
            for file in files:
                content = (self.source / file).read_bytes()
                if content != (target / file).read_bytes():
                    fail(f"{file} in the copy differs from its source.")
                size += len(content)
        return {"files": len(self.targets) * len(files), "bytes": size}

    @staticmethod
    def files(top: Path) -> set[str]:
        """Return the relative paths of all files below `top`."""
        return {
            str((Path(where) / name).relative_to(top))
            for where, _, names in os.walk(top)
            for name in names
        }
