"""Images and their vectors, as the workers of a cluster get at them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from faircal._base.errors import DataError
from faircal.data.dataset_folder import read_images
from faircal.data.pair_sources import FolderParts
from faircal.data.types import Embeddings, Images
from faircal.production.spark.blocks.block import images_at

if TYPE_CHECKING:
    from faircal.data import Dataset

Range = tuple[float, float]

#: Images of a block, where blocks are only a way to share work out.
BLOCK = 1 << 16


@dataclass(frozen=True, eq=False)
class Tile:
    """Images of one block or of two, with their vectors.

    Attributes
    ----------
    rows : ndarray of int64, shape (n,)
        Their numbers in the whole gallery, ascending within a block.
    images : Images
        Of these alone; codes of people and groups mean the same throughout.
    features : mapping from name to Embeddings
    """

    rows: NDArray[np.int64]
    images: Images
    features: Mapping[str, Embeddings]


class SparkGallery(ABC):
    """All images of a dataset in blocks; travels to the workers, and is small until it is used.

    Attributes
    ----------
    name, where
        As a `Dataset` has them.
    """

    name: str
    where: str

    @property
    def provenance(self) -> Mapping[str, Any]:
        """What ``dataset.json`` said, where there was one."""
        return {}

    @property
    @abstractmethod
    def images(self) -> Images:
        """What is known of all images: for the driver."""

    @property
    @abstractmethod
    def features(self) -> Mapping[str, Embeddings]:
        """The embeddings by name; where they are in blocks, of no rows: for the driver."""

    @property
    @abstractmethod
    def block_sizes(self) -> NDArray[np.int64]:
        """Images of each block, shape (n_blocks,)."""

    @property
    def n_blocks(self) -> int:
        """How many blocks there are."""
        return len(self.block_sizes)

    @abstractmethod
    def tile(self, i: int, j: int) -> Tile:
        """Return blocks `i` and `j`, i ≤ j; the one block where they are the same."""


class FullGallery(SparkGallery):
    """All images within the reach of each worker."""

    @property
    @abstractmethod
    def parts(self) -> FolderParts:
        """What makes datasets of tables of pairs."""

    @property
    def provenance(self) -> Mapping[str, Any]:
        """What ``dataset.json`` said."""
        return self.parts.provenance

    @property
    def images(self) -> Images:
        """What is known of all images."""
        return self.parts.images

    @property
    def features(self) -> Mapping[str, Embeddings]:
        """The embeddings by name."""
        return self.parts.embeddings

    @cached_property
    def block_sizes(self) -> NDArray[np.int64]:
        """Images of each block, shape (n_blocks,): ranges of rows."""
        ends = np.append(np.arange(0, len(self.images), BLOCK), len(self.images))
        return np.diff(ends).astype(np.int64)

    def tile(self, i: int, j: int) -> Tile:
        """Return blocks `i` and `j`; vectors of one block, or of two in a row, are not copied."""
        n = len(self.images)
        ranges = [slice(k * BLOCK, min((k + 1) * BLOCK, n)) for k in dict.fromkeys((i, j))]
        rows = np.concatenate([np.arange(of.start, of.stop) for of in ranges])
        joined = slice(ranges[0].start, ranges[-1].stop) if j <= i + 1 else rows
        return Tile(rows, images_at(self.images, rows), self._some(joined))

    def _some(self, rows: slice | NDArray[np.int64]) -> dict[str, Embeddings]:
        return {name: replace(of, vectors=of.vectors[rows]) for name, of in self.features.items()}


@dataclass(frozen=True, eq=False)
class MappedGallery(FullGallery):
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

    def __reduce__(self) -> tuple[type[MappedGallery], tuple[object, ...]]:
        # Where to read travels; what was read stays.
        return MappedGallery, tuple(getattr(self, field.name) for field in fields(self))

    @cached_property
    def parts(self) -> FolderParts:
        """The folder, read when first asked for."""
        folder = Path(self.folder)
        if not folder.is_dir():
            raise DataError(
                f"{folder}: the workers do not see this folder; put it on storage that all "
                "machines share, or send the embeddings to them (--embeddings send)"
            )
        folder_images = read_images(folder, self.chosen, self.normalize)
        matrices = {name: matrix for name, (_, matrix) in folder_images.embeddings.items()}
        shape = (len(folder_images.images), *(matrix.dimension for matrix in matrices.values()))
        if self.shape not in ((), shape):
            raise DataError(
                f"{folder}: a worker sees another folder under this name (images and dimensions "
                f"{shape}, expected {self.shape}); give all machines the same"
            )
        return FolderParts(
            folder_images.images,
            matrices,
            str(folder_images.about.get("name", folder.resolve().name)),
            self.folder,
            self.table,
            self.limits,
            folder_images.about,
            {name: str(file) for name, (file, _) in folder_images.embeddings.items()},
        )

    @property
    def name(self) -> str:  # type: ignore[override]
        """Shown in tables and reports."""
        return self.parts.name

    @property
    def where(self) -> str:  # type: ignore[override]
        """The folder, for messages."""
        return self.folder

    def checked(self) -> MappedGallery:
        """Return it with what the driver sees, for workers to compare; without what was read."""
        shape = (len(self.images), *(matrix.dimension for matrix in self.features.values()))
        return replace(self, shape=shape)


@dataclass(frozen=True, eq=False)
class SentGallery(FullGallery):
    """Images and vectors that travel to the workers, each of which holds its own."""

    held: FolderParts

    @classmethod
    def of(cls, parts: FolderParts) -> SentGallery:
        """Take all into memory, since what is mapped from a file can't travel."""
        inside = {
            name: replace(embeddings, vectors=np.array(embeddings.vectors, order="C", subok=False))
            for name, embeddings in parts.embeddings.items()
        }
        return cls(replace(parts, embeddings=inside))

    @classmethod
    def of_data(cls, data: Dataset) -> SentGallery:
        """Take the images and vectors of a dataset in memory."""
        features = {n: f.embeddings for n, f in data.features.items() if f.embeddings is not None}
        return cls.of(
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

    @property
    def parts(self) -> FolderParts:
        """What makes datasets of tables of pairs."""
        return self.held

    @property
    def name(self) -> str:  # type: ignore[override]
        """Shown in tables and reports."""
        return self.held.name

    @property
    def where(self) -> str:  # type: ignore[override]
        """Where they came from, for messages."""
        return self.held.where
