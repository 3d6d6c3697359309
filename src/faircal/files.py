"""Writing files so that a reader never sees a half-written one."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from faircal.errors import DataError, ParameterError


@contextmanager
def atomic_path(target: Path) -> Iterator[Path]:
    """Give a temporary path beside `target` that takes its place when the block ends well.

    When the block raises, the temporary file goes and `target` is as it was.
    """
    if target.is_dir():
        raise ParameterError(f"{target} is a folder; give the path of a file to write")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".tmp")
    except OSError as error:
        raise ParameterError(
            f"cannot write {target}: {error.strerror}; choose a folder you may write to"
        ) from error
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(0o644)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(target: Path, text: str) -> None:
    """Write `text` to `target` atomically, as UTF-8 with Unix line ends."""
    with atomic_path(target) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def output_folder(path: str | Path) -> Path:
    """Make the folder `path` and return it; a file in its place is a one-line error."""
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ParameterError(
            f"cannot use {folder} as output folder: {error.strerror}; give another path"
        ) from error
    return folder


def existing(path: str | Path) -> Path:
    """Return `path`, or raise a one-line error when nothing is there or it can't be read."""
    found = Path(path)
    if not found.exists():
        raise DataError(f"{found}: no such file or folder; check the path")
    if not os.access(found, os.R_OK):
        raise DataError(f"{found}: not readable; check its permissions")
    return found


def digest(update: Callable[[Callable[[bytes | memoryview], None]], None]) -> str:
    """Return the SHA-256 of the bytes that `update` feeds to the function it is given."""
    sha = hashlib.sha256()
    update(sha.update)
    return sha.hexdigest()
