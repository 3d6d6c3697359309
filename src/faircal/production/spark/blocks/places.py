"""Folders that all machines see: a path on shared storage, or an address that Arrow knows."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.ipc as ipc

from faircal._base.errors import DataError, ParameterError
from faircal._base.files import atomic_path
from faircal._base.registry import short

#: What reading a file that is gone or damaged raises.
_FAILED = (OSError, pa.ArrowException, ValueError)
#: A worker has one core.
_ALONE = ipc.IpcReadOptions(use_threads=False)


@dataclass(frozen=True)
class SharedFolder:
    """A folder of files that appear whole or not at all.

    Parameters
    ----------
    path : str
        A path, or an address such as ``s3://bucket/folder`` or ``hdfs://host/folder``.
    """

    path: str

    def __reduce__(self) -> tuple[type[SharedFolder], tuple[object, ...]]:
        # A worker makes its own connection.
        return type(self), tuple(getattr(self, field.name) for field in fields(self))

    def __str__(self) -> str:
        return self.path

    @cached_property
    def _at(self) -> tuple[pafs.FileSystem, str]:
        if "://" not in self.path:
            return pafs.LocalFileSystem(), str(Path(self.path).absolute())
        try:
            system, path = pafs.FileSystem.from_uri(self.path)
        except _FAILED as error:
            raise ParameterError(
                f"{self.path}: not a place for files ({short(error)}); give a folder on shared "
                "storage, or an address that Arrow knows (s3://…, hdfs://…)"
            ) from error
        return system, path

    @property
    def local(self) -> Path | None:
        """The folder, where it has a path on this machine."""
        system, path = self._at
        return Path(path) if isinstance(system, pafs.LocalFileSystem) else None

    def names(self) -> list[str]:
        """Return the names of all that is in the folder; none where it is not there."""
        system, path = self._at
        try:
            files = system.get_file_info(pafs.FileSelector(path, allow_not_found=True))
        except _FAILED as error:
            raise ParameterError(
                f"{self.path}: expected a folder ({short(error)}); give another path"
            ) from error
        return [of.base_name for of in files]

    def write(self, name: str, write: Callable[[Any], None]) -> None:
        """Have a file written to a stream; it then takes the place of the one of its name.

        Who writes the same at the same time does no harm.
        """
        if self.local is not None:
            with atomic_path(self.local / name) as temporary, temporary.open("wb") as stream:
                write(stream)
            return
        system, path = self._at
        system.create_dir(path)
        temporary_name = f"{path}/.{name}.{uuid4().hex}.tmp"
        try:
            with system.open_output_stream(temporary_name) as stream:
                write(stream)
            system.move(temporary_name, f"{path}/{name}")
        except _FAILED as error:
            with suppress(*_FAILED):
                system.delete_file(temporary_name)
            raise ParameterError(
                f"cannot write {path}/{name} ({short(error)}); choose a folder you may write to"
            ) from error

    def remove(self, name: str) -> None:
        """Remove a file, where it is there."""
        system, path = self._at
        with suppress(*_FAILED):
            system.delete_file(f"{path}/{name}")

    def read(self, name: str) -> bytes | None:
        """Return the contents of a small file; None where there is none."""
        system, path = self._at
        if system.get_file_info(f"{path}/{name}").type != pafs.FileType.File:
            return None
        with system.open_input_stream(f"{path}/{name}") as stream:
            content: bytes = stream.read()
            return content

    def write_batch(self, name: str, batch: pa.RecordBatch) -> None:
        """Write an Arrow file with one batch."""

        def write(stream: Any) -> None:
            with ipc.new_file(stream, batch.schema) as writer:
                writer.write_batch(batch)

        self.write(name, write)

    def read_batch(self, name: str) -> pa.RecordBatch:
        """Read an Arrow file with one batch; a local one is mapped into memory, not copied."""
        system, path = self._at
        try:
            if self.local is not None:
                source = pa.memory_map(str(self.local / name))
            else:
                source = system.open_input_file(f"{path}/{name}")
            with ipc.open_file(source, options=_ALONE) as reader:
                batch = reader.get_batch(0)
            batch.validate(full=True)
        except FileNotFoundError as error:
            raise DataError(
                f"{path}/{name}: no such file; put the blocks where all machines see them, or "
                "write them again"
            ) from error
        except _FAILED as error:
            raise DataError(
                f"{path}/{name}: cannot be read ({short(error)}); write the blocks again"
            ) from error
        return batch
