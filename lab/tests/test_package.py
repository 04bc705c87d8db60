# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Which of Debian's kernels a virtual machine boots."""

from pathlib import Path

import pytest

from netnice_lab import LabError
from netnice_lab.vm import package

UNPACKED = ("6.1.0-9-amd64", "6.1.0-56-amd64", "6.12.9+deb12-amd64", "6.12.117+deb12-amd64")


@pytest.fixture
def unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for version in UNPACKED:
        (tmp_path / version / "boot").mkdir(parents=True)
        (tmp_path / version / "boot" / f"vmlinux-{version}").touch()
    monkeypatch.setattr(package, "KERNEL_DIR", tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("series", "newest"),
    [(None, "6.1.0-56-amd64"), ("6.1", "6.1.0-56-amd64"), ("6.12", "6.12.117+deb12-amd64")],
)
def test_the_newest_release_of_a_series_is_booted(
    series: str | None, newest: str, unpacked: Path
) -> None:
    # releases are numbers: 56 comes after 9
    found = package.find_kernel(series)
    assert found.version == newest
    assert found.image == unpacked / newest / "boot" / f"vmlinux-{newest}"


def test_a_series_that_the_lab_does_not_have_is_named_with_those_that_it_has() -> None:
    with pytest.raises(LabError, match=r"no Linux 5\.10 in the lab\. It has: 6\.1, 6\.12"):
        package.find_kernel("5.10")


def test_an_image_packed_otherwise_is_refused_with_what_to_do(unpacked: Path) -> None:
    # the header of a bzImage: 512 bytes and as many more sectors; then where in what follows
    # the packed kernel stands, and its length
    image = bytearray(2048)
    image[0x1F1] = 1
    image[0x248:0x250] = (16).to_bytes(4, "little") + (8).to_bytes(4, "little")
    image[1040:1048] = b"\x1f\x8b\x08 gzip"[:8]
    file = unpacked / "vmlinuz-x"
    file.write_bytes(image)
    with pytest.raises(ValueError, match="neither by xz nor by zstd"):
        package._uncompressed(file)
