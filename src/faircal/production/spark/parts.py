"""Where the workers of a cluster get images and vectors, and what they make of rows: datasets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from faircal._base.errors import DataError
from faircal.data.columns import SOMEWHERE
from faircal.data.dataset_folder import read_images
from faircal.data.pair_sources import FolderParts, TableParts

if TYPE_CHECKING:
    from faircal.data import Dataset

Range = tuple[float, float]

#: Pairs of a part, about: Spark's own batches (10,000 rows unless told) are too short to be quick.
PART = 1 << 18


@dataclass(frozen=True, eq=False)
class MappedFolder:
    """A dataset folder on storage that all workers see; they map its vectors into memory.

    All workers of one machine share the pages.

    Parameters
    ----------
    folder : str
    chosen : tuple of str or None
        Features to read; None: all.
    normalize : bool
    limits : (float, float) or None
        Where ready-made scores must lie.
    table : str
        Where the pairs are, for messages.
    shape : tuple of int
        Images, and the dimension of each feature, as the driver sees them.
    """

    folder: str
    chosen: tuple[str, ...] | None
    normalize: bool
    limits: Range | None
    table: str
    shape: tuple[int, ...] = ()

    def __reduce__(self) -> tuple[type[MappedFolder], tuple[object, ...]]:
        # Where to read travels; what was read stays.
        return MappedFolder, tuple(getattr(self, field.name) for field in fields(self))

    @cached_property
    def here(self) -> FolderParts:
        """The folder, read when first asked for."""
        folder = Path(self.folder)
        if not folder.is_dir():
            raise DataError(
                f"{folder}: the workers do not see this folder; put it on storage that all "
                "machines share, or send the embeddings to them (--embeddings send)"
            )
        read = read_images(folder, self.chosen, self.normalize)
        matrices = {name: matrix for name, (_, matrix) in read.embeddings.items()}
        shape = (len(read.images), *(matrix.dimension for matrix in matrices.values()))
        if self.shape not in ((), shape):
            raise DataError(
                f"{folder}: a worker sees another folder under this name (images and dimensions "
                f"{shape}, expected {self.shape}); give all machines the same"
            )
        return FolderParts(
            read.images,
            matrices,
            str(read.about.get("name", folder.resolve().name)),
            self.folder,
            self.table,
            self.limits,
            read.about,
            {name: str(file) for name, (file, _) in read.embeddings.items()},
        )

    def checked(self) -> MappedFolder:
        """Return it with what the driver sees, for workers to compare."""
        matrices = self.here.embeddings.values()
        shape = (len(self.here.images), *(matrix.dimension for matrix in matrices))
        return replace(self, shape=shape)


def in_memory(parts: FolderParts) -> FolderParts:
    """Return `parts` with all vectors in memory: what is mapped from a file can't be sent."""
    inside = {
        name: replace(embeddings, vectors=np.array(embeddings.vectors, order="C", subok=False))
        for name, embeddings in parts.embeddings.items()
    }
    return replace(parts, embeddings=inside)


def images_of(data: Dataset) -> FolderParts:
    """Return the images and vectors of a dataset in memory, to be sent to the workers."""
    features = {n: f.embeddings for n, f in data.features.items() if f.embeddings is not None}
    return in_memory(
        FolderParts(
            data.images,
            features,
            data.name,
            data.where,
            "pairs",
            data.score_range,
            data.provenance,
        )
    )


@dataclass(frozen=True, eq=False)
class PartReader:
    """Makes datasets of the Arrow batches of a frame.

    Travels to the workers, where it stays for as long as their processes do: what is costly is
    made there when first asked for, and kept.

    Parameters
    ----------
    source : MappedFolder, FolderParts or TableParts
        Images that are mapped or were sent; of a score table, its columns.
    score_range : (float, float)
        Of the scores; as `Dataset.score_range`.
    feature : str
        The one in use.
    text_folds : bool
        Whether folds are text.
    """

    source: MappedFolder | FolderParts | TableParts
    score_range: Range
    feature: str
    text_folds: bool

    @property
    def here(self) -> FolderParts | TableParts:
        """What makes datasets, where this runs."""
        return self.source.here if isinstance(self.source, MappedFolder) else self.source

    def parts(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Dataset]:
        """Yield the pairs of `batches`, some 2¹⁸ at a time."""
        return map(self.dataset, gathered(batches))

    def dataset(self, table: pa.Table) -> Dataset:
        """Make one dataset of pairs; those of known images share images and embeddings."""
        part = self.here.build(table, SOMEWHERE, self.text_folds, self.score_range)
        return part if part.feature == self.feature else part.select(self.feature)


def gathered(batches: Iterable[pa.RecordBatch], rows: int = PART) -> Iterator[pa.Table]:
    """Put batches together until there are `rows` rows; nothing comes of none.

    Examples
    --------
    >>> batches = [pa.record_batch({"left": [1, 2]}), pa.record_batch({"left": [3]})] * 2
    >>> [table.num_rows for table in gathered(batches, rows=3)]
    [3, 3]
    """
    held: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        if batch.num_rows:
            held.append(batch)
            count += batch.num_rows
        if count >= rows:
            yield pa.Table.from_batches(held)
            held, count = [], 0
    if held:
        yield pa.Table.from_batches(held)
