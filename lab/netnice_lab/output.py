# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Where results and figures go. A file is replaced as a whole; all else is written to as it is."""

from __future__ import annotations

import errno
import os
import secrets
import stat
import tempfile
from pathlib import Path

from . import LabError


def write(path: Path, text: str) -> None:
    """Write a file, whose older content stays until the new one is whole; LabError if that fails.

    Of a link the target is replaced, and a device or a pipe is written to.
    """
    try:
        mode = _mode(path)
        if _is_file(mode):
            _replace(path.resolve(), mode, text)
        else:
            path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise LabError(
            f"{path} cannot be written: {error.strerror}. Make room there, or name another place."
        ) from error


def _replace(path: Path, mode: int | None, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f".{secrets.token_hex(8)}.new")  # short, however long the name is
    try:
        with new.open("x", encoding="utf-8") as file:
            if mode is not None:
                new.chmod(stat.S_IMODE(mode))
            file.write(text)
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)


def require(path: Path, *inputs: Path) -> None:
    """Raise LabError if `path` cannot be written, or is one of the files that are read.

    Ask before what takes hours.
    """
    try:
        mode = _mode(path)
        if _is_file(mode):
            if mode is not None and any(path.samefile(given) for given in inputs):
                raise LabError(f"{path} is read itself. Name another place: --out.", status=2)
            folder = path.resolve().parent
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                pass
        elif path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        elif not os.access(path, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        raise LabError(
            f"Nothing can be saved as {path}: {error.strerror}. Name another place: --out.",
            status=2,
        ) from error


def fresh(path: Path) -> Path:
    """Make an empty file of that name, or with -2, -3 and so on where there is one; return it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    free, number = path, 1
    while True:
        try:
            free.touch(exist_ok=False)
            return free
        except FileExistsError:
            number += 1
            free = path.with_stem(f"{path.stem}-{number}")


def is_file(path: Path) -> bool:
    """Return whether it is a file or can become one, and no device or pipe."""
    return _is_file(_mode(path))


def _mode(path: Path) -> int | None:
    """Return what `path`, or what it leads to, is; None if there is nothing."""
    try:
        return path.stat().st_mode
    except FileNotFoundError:
        return None


def _is_file(mode: int | None) -> bool:
    """Return whether it is a file, or can become one."""
    return mode is None or stat.S_ISREG(mode)
