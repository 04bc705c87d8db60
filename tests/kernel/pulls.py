# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Recipes that download: a job at home beside pages that somebody loads there, and its servers.

Home is the sender of a link, since recipes run there; the servers are its receiver.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import shutil
import statistics
import tarfile
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from netnice_lab.guest.programs import closure
from recipes import NGINX, REGISTRY_NAME, Job, Watched, have
from shells import listening
from support import IN_VM, MEMORY, RECEIVER, ROOT, Json, Link, wait_until

RATE_MBIT, RTT_MS, ROOM = 8.0, 50.0, 50
SCENARIO = ROOT / "lab" / "scenarios" / "downloads.toml"
PAGES_PORT, GIT_SOCKET = 8080, "git.socket"
HEAD_START_S, LONGEST_S, DRAIN_S = 100.0, 120.0, 3.0
"""Before the first page; of pages that are planned; for pages when a job has ended."""
LOOK_S = 0.25
RUN = "netnice run -- "
GIT = """location ~ [.]git/ {{ fastcgi_pass unix:{directory}/{socket};
  fastcgi_param SCRIPT_FILENAME /usr/lib/git-core/git-http-backend;
  fastcgi_param GIT_PROJECT_ROOT {root}; fastcgi_param GIT_HTTP_EXPORT_ALL 1;
  fastcgi_param PATH_INFO $uri; fastcgi_param QUERY_STRING $query_string;
  fastcgi_param REQUEST_METHOD $request_method; fastcgi_param CONTENT_TYPE $content_type;
  fastcgi_param HTTP_CONTENT_ENCODING $http_content_encoding;
  fastcgi_param GIT_PROTOCOL $http_git_protocol; }}"""
APT = """Dir::State "{directory}/apt/state"; Dir::State::status "{directory}/apt/status";
Dir::Cache "{source}/apt"; Dir::Etc::sourcelist "{directory}/apt/sources.list";
Dir::Etc::sourceparts "/dev/null"; Dir::Etc::preferencesparts "/dev/null";
APT::Architecture "amd64"; APT::Architectures {{ "amd64"; }}; APT::Sandbox::User "root";
APT::Get::Download-Only "true"; Acquire::Languages "none";
"""
"""It upgrades what this file says is installed, and keeps what it would install."""


def in_memory(files: Iterable[str | Path]) -> None:
    """Have the virtual machine keep files that it would read from the host each time.

    They lie below a layer in memory: what is written to is copied there first.
    """
    if IN_VM:
        for file in map(Path, files):
            file.chmod(file.stat().st_mode & 0o7777)


@dataclass(frozen=True)
class Ran:
    """How long a job had connections, and how long pages took that began meanwhile."""

    began_s: float
    ended_s: float
    pages: list[Json]

    def mean_s(self, other: Ran | None = None) -> float:
        """Return the mean time of its pages; with another run, of those that began beside that."""
        of = other or self
        its = [p for p in self.pages if of.began_s <= p["start_s"] < of.ended_s]
        assert len(its) > 20, len(its)
        return statistics.mean(float(p["fct_s"] or p["elapsed_s"]) for p in its)


class Pull(Job):
    """A recipe that downloads, in the network of K1 (lab/scenarios/downloads.toml)."""

    def __init__(self, link: Link, directory: Path, programs: Iterable[str]) -> None:
        """Serve pages; keep the programs of the job and its servers at hand."""
        super().__init__(link, directory)
        have(*programs)
        self.home, self.servers = link.sender, link.receiver
        path = f"{os.environ['PATH']}:/usr/sbin"
        used = [shutil.which(p, path=path) for p in (*programs, "unshare", "mount", "env")]
        in_memory(closure(Path(os.path.realpath(p)) for p in used if p))
        # servers as they are; reno is what tells the job's connections from others
        self.servers.call("sh", "-c", "echo cubic > /proc/sys/net/ipv4/tcp_congestion_control")
        self.servers.start("netnice-load", "serve", "--listen", f"{RECEIVER}:{PAGES_PORT}").line()

    def slow_down(self) -> None:
        """Make the network as slow as it shall be; until then it is fast."""
        self.link.limit(RATE_MBIT, ROOM, towards="left")
        self.link.netem(self.home, "eth", "delay", f"{RTT_MS}ms")

    def here(self, command: str) -> str:
        """Return a command of a page with the places of this test, and without TLS."""
        command = super().here(command).replace("https://", "http://")
        return command.replace("skopeo copy docker:", "skopeo copy --src-tls-verify=false docker:")

    def environment(self) -> dict[str, object]:
        """Return that of uploads, and where packages are."""
        return {
            **super().environment(),
            "APT_CONFIG": self.directory / "apt.conf",
            "PIP_INDEX_URL": "http://example.org/simple", "PIP_TRUSTED_HOST": "example.org",
            "PIP_TARGET": self.source / "site", "PIP_NO_CACHE_DIR": "1", "PIP_NO_COMPILE": "1",
            "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_ROOT_USER_ACTION": "ignore",
            "GIT_CONFIG_GLOBAL": "/dev/null",
        }  # fmt: skip

    def serve_files(self) -> None:
        """Start nginx for what is in the server's directory."""
        have("nginx")
        more = GIT.format(directory=self.directory, socket=GIT_SOCKET, root=self.server)
        self.write("nginx.conf", NGINX.format(
            directory=self.directory, address=RECEIVER, root=self.server,
            more=f"autoindex on; {more}",
        ))  # fmt: skip
        self.servers.start("nginx", "-p", str(self.directory), "-c", f"{self.directory}/nginx.conf")
        listening(self.servers, 80)

    def serve_git(self) -> None:
        """Start what runs git's own server for nginx."""
        socket = self.directory / GIT_SOCKET
        self.servers.start("fcgiwrap", "-s", f"unix:{socket}")
        wait_until("git's server", socket.exists)

    def job(self, command: str) -> None:
        """Run a command at home to its end, in a clean directory."""
        shutil.rmtree(self.source)
        self.source.mkdir()
        self.run(f"cd /home; {command}")

    def downloads(self) -> Json:
        """Return what home knows of the path that downloads come by."""
        (hold,) = json.loads(self.home.call("netnice", "hold", "--json"))
        return hold["downloads"][0]

    def beside_pages(self, command: str, seed: int, watched: Watched) -> Ran:
        """Run a command at home in a clean directory, beside pages."""
        shutil.rmtree(self.source)
        self.source.mkdir()
        pages = Pages(self, seed)
        others = set(watched.ways)
        process = self.start(f"cd {self.source}; {self.here(command)}")
        began = None
        while not process.ended():
            before = pages.now_s()
            watched.look()
            if began is None and any(
                not remote.endswith(f":{PAGES_PORT}") for _, remote in set(watched.ways) - others
            ):
                began = before
            time.sleep(LOOK_S if began is None else 2 * LOOK_S)  # to look costs time, too
        ended = pages.now_s()
        process.succeed()
        assert "netnice:" not in process.errors, process.errors
        assert began is not None, "no connection of it was seen"
        time.sleep(DRAIN_S)
        return Ran(began, ended, pages.report())

    def pages_alone(self, until_s: float, seed: int) -> Ran:
        """Load pages beside nothing."""
        pages = Pages(self, seed)
        time.sleep(until_s - pages.now_s() + DRAIN_S)
        return Ran(0, until_s, pages.report())


class Pages:
    """What somebody loads at home: the foreground of K1, from time 0 on."""

    def __init__(self, pull: Pull, seed: int) -> None:
        """Start, and wait for the first."""
        self.file = MEMORY / "pages.json"
        self.epoch = time.time() + HEAD_START_S
        self.process = pull.home.start(
            "netnice-load", "fetch", str(SCENARIO), "--from", f"{RECEIVER}:{PAGES_PORT}",
            "--set", "warmup_s=0", "--set", f"measure_s={LONGEST_S}", "--seed", str(seed),
            "--epoch", f"{self.epoch:.6f}", "--json", str(self.file),
        )  # fmt: skip
        time.sleep(self.epoch - time.time())

    def now_s(self) -> float:
        """Return the time since the first could begin."""
        return time.time() - self.epoch

    def report(self) -> list[Json]:
        """End, and return the pages that began."""
        self.process.popen.terminate()
        assert self.process.status() == 0, self.process.errors
        report = json.loads(self.file.read_text())
        return [flow for flow in report["flows"] if flow["lag_s"] is not None]


def image(directory: Path, name: str, content: bytes) -> None:
    """Write an image with one file in one layer, as the Open Container Initiative lays it out."""
    blobs = directory / "blobs" / "sha256"
    blobs.mkdir(parents=True)

    def blob(data: bytes, kind: str) -> Json:
        digest = hashlib.sha256(data).hexdigest()
        (blobs / digest).write_bytes(data)
        media = f"application/vnd.oci.image.{kind}"
        return {"mediaType": media, "digest": f"sha256:{digest}", "size": len(data)}

    def document(value: Json, kind: str) -> Json:
        return blob(json.dumps(value).encode(), f"{kind}.v1+json")

    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as archive:
        member = tarfile.TarInfo(name)
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    tar = layer.getvalue()
    config = {
        "architecture": "amd64", "os": "linux", "config": {},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(tar).hexdigest()}"]},
    }  # fmt: skip
    manifest = document({
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": document(config, "config"),
        "layers": [blob(gzip.compress(tar, 1), "layer.v1.tar+gzip")],
    }, "manifest")  # fmt: skip
    (directory / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [manifest]}))
    (directory / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')


__all__ = ["APT", "REGISTRY_NAME", "RUN", "Pull", "Ran", "image", "in_memory"]
