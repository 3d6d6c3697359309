"""Writing files so that a reader never sees a half-written one."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from faircal._base.errors import DataError, ParameterError

#: Holds files that are whole and about to take their places.
_READY = ".ready"


@contextmanager
def atomic_path(target: Path, *, folder: bool = False) -> Iterator[Path]:
    """Give a temporary file, or `folder`, beside `target` that takes its place at the block's end.

    When the block raises, what is temporary goes and `target` is as it was.
    """
    if target.is_dir() and not folder:
        raise ParameterError(f"{target} is a folder; give the path of a file to write")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        where = ".tmp", f".{target.name}.", target.parent
        if folder:
            temporary = Path(tempfile.mkdtemp(*where))
        else:
            handle, name = tempfile.mkstemp(*where)
            os.close(handle)
            temporary = Path(name)
    except OSError as error:
        raise ParameterError(
            f"cannot write {target}: {error.strerror}; choose a folder you may write to"
        ) from error
    try:
        yield temporary
        temporary.chmod(0o755 if folder else 0o644)
        temporary.replace(target)
    finally:
        if folder:
            shutil.rmtree(temporary, ignore_errors=True)
        else:
            temporary.unlink(missing_ok=True)


def require_new(target: Path) -> None:
    """Raise where `target` is a file, or a folder with something in it."""
    if target.is_file() or (target.is_dir() and any(target.iterdir())):
        raise ParameterError(f"{target}: there is something already; choose a new folder")
    if target.resolve() == Path.cwd():
        raise ParameterError(f"{target}: is where you are; choose a folder to make")


@contextmanager
def new_folder(target: Path) -> Iterator[Path]:
    """Give a temporary folder beside `target` that becomes it when the block ends well.

    `target` must be new or empty. When the block raises, nothing is left.
    """
    require_new(target)
    with atomic_path(target.resolve(), folder=True) as temporary:  # a link stays one
        yield temporary


@contextmanager
def staged(folder: Path) -> Iterator[Path]:
    """Give a temporary folder inside `folder`; what is in it when the block ends well moves up.

    Files take the place of those of the same name. When the block raises, `folder` is as it was;
    when moving is cut short, `settle` ends it.
    """
    settle(folder)
    temporary = Path(tempfile.mkdtemp(dir=folder, prefix=".", suffix=".tmp"))
    try:
        yield temporary
        temporary.rename(folder / _READY)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    settle(folder)


def settle(folder: Path) -> None:
    """Move up what `staged` had ready, where it was cut short."""
    ready = folder / _READY
    for path in sorted(path for path in ready.rglob("*") if path.is_file()):
        target = folder / path.relative_to(ready)
        target.parent.mkdir(parents=True, exist_ok=True)
        path.chmod(0o644)
        path.replace(target)
    shutil.rmtree(ready, ignore_errors=True)


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


def check_output(path: Path, *, folder: bool = False) -> None:
    """Raise when `path` can't be written, as a file or a `folder`, before any work is done for it.

    Nothing is made.
    """
    if path.is_dir() and not folder:
        raise ParameterError(f"{path} is a folder; give the path of a file to write")
    if folder and path.exists() and not path.is_dir():
        raise ParameterError(f"cannot use {path} as output folder: it is a file; give another path")
    absolute = path.absolute()
    # A file is written beside the old one, which it then takes the place of.
    places = absolute.parents if path.is_file() else (absolute, *absolute.parents)
    home = next(folder for folder in places if folder.exists())
    if not home.is_dir():
        raise ParameterError(f"cannot write {path}: {home} is a file; choose another path")
    if not os.access(home, os.W_OK):
        raise ParameterError(f"cannot write {path}: {home} is not writable; choose another path")


def check_table_name(out: Path) -> None:
    """Raise unless `out` is the name of a table that can be written."""
    if out.suffix not in (".parquet", ".csv"):
        raise ParameterError(
            f"--out {out}: expected a name that ends in .parquet or .csv; choose one"
        )


def existing(path: str | Path) -> Path:
    """Return `path`, or raise a one-line error when nothing is there or it can't be read."""
    target = Path(path)
    if not target.exists():
        raise DataError(f"{target}: no such file or folder; check the path")
    if not os.access(target, os.R_OK):
        raise DataError(f"{target}: not readable; check its permissions")
    return target


def stamp(path: Path) -> bytes:
    """Return what tells whether a file was changed: path, size and time; it is not read."""
    status = path.stat()
    return f"{path.resolve()}\0{status.st_size}\0{status.st_mtime_ns}\0".encode()


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file's contents, read piece by piece."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
