"""Where the images of blocks come from: a dataset folder, or a frame of templates."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from faircal._base.errors import DataError
from faircal._base.files import existing
from faircal.data.build import MOST_GROUPS, require_crossable
from faircal.data.dataset_folder import read_images
from faircal.data.tables import choose, decoded, find_table
from faircal.data.types import Images
from faircal.production.spark.blocks.block import ATTRIBUTE, VECTOR, VectorKind
from faircal.production.spark.blocks.folder import Stamps
from faircal.production.spark.blocks.places import SharedFolder
from faircal.production.spark.blocks.tiles import NUMBERS, TEXT, as_id, id_kind
from faircal.production.spark.tables import spark_address as address

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

#: The images of a folder, for Spark to read; gone when their blocks are there.
LISTED = "block-images.parquet"
#: Bytes of an embedding file that are mapped at a time.
_WINDOW = 1 << 26
#: Columns of a frame of templates that make groups, where they have few values.
_TEXTS = ("string", "varchar", "char", "boolean", "date")
_NUMBERS = ("byte", "short", "integer", "long", "decimal", "float", "double")

#: Of each block: the values of each attribute, at least as many as tell that they are too many;
#: None where it makes no groups.
Found = Iterable[Mapping[str, list[str] | None]]


@dataclass(frozen=True, eq=False)
class BlockSource(ABC):
    """Images with vectors. Travels to the workers, which ask it for `vectors`.

    Attributes
    ----------
    name, where, provenance
        As a `Dataset` has them.
    n_images : int
    ids : {"int64", "string"}
    kinds : mapping from feature to VectorKind
    people : bool
        Whether identities are known.
    attributes : tuple of str
        All that may be.
    stamps : mapping or None
        What tells whether it has changed.
    """

    name: str
    where: str
    provenance: Mapping[str, Any]
    n_images: int
    ids: str
    kinds: Mapping[str, VectorKind]
    people: bool
    attributes: tuple[str, ...]
    stamps: Stamps | None

    #: Orders the images of a block.
    order = "row"

    @abstractmethod
    def frame(self, spark: SparkSession, place: SharedFolder) -> DataFrame:
        """Return the images as a frame: ``image_id``, and what there is to know of them.

        Attributes and vectors are numbered: Spark does not take any name everywhere. What has to be
        written for it is left in `place`, as `LISTED`.
        """

    @abstractmethod
    def vectors(self, feature: str, table: pa.Table, rows: NDArray[np.int64]) -> NDArray[Any]:
        """Return the vectors of the images in `table`, whose numbers are `rows`; on a worker."""

    @abstractmethod
    def groups(self, found: Found) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the attributes, and those that make groups when none is named."""


@dataclass(frozen=True, eq=False)
class FolderSource(BlockSource):
    """A dataset folder: ids are dealt out, vectors are read where they lie."""

    files: Mapping[str, str] = field(default_factory=dict)
    crossed: tuple[str, ...] = ()
    table: pa.Table | None = None

    @classmethod
    def of(cls, folder: Path, features: Sequence[str] | None) -> FolderSource:
        """Read the images of a folder; their vectors are not."""
        folder = existing(folder).resolve()
        found = read_images(folder, features)
        files = {name: path for name, (path, _) in found.embeddings.items()}
        for path in files.values():
            if path.suffix != ".npy":
                raise DataError(
                    f"{path}: cannot be read row by row; save its arrays with numpy.save, one .npy "
                    "file a network"
                )
        if not files:
            raise DataError(f"{folder}: has no embeddings to write blocks of; add them")
        kinds = {
            name: VectorKind(matrix.dimension, matrix.vectors.dtype.name)
            for name, (_, matrix) in found.embeddings.items()
        }
        stamped = {"images": find_table(folder, "images"), "about": folder / "dataset.json"}
        stamped |= {f"embeddings {name}": path for name, path in files.items()}
        images = found.images
        return cls(
            str(found.about.get("name", folder.name)),
            str(folder),
            found.about,
            len(images),
            NUMBERS if pa.types.is_integer(images.ids.type) else TEXT,
            kinds,
            images.identity is not None,
            tuple(images.attributes),
            {key: _stamp(path) for key, path in stamped.items()},
            {name: str(path) for name, path in files.items()},
            images.crossed,
            _table(images),
        )

    def __reduce__(self) -> tuple[Any, ...]:
        # Workers get the images from Spark, each its own.
        values = [getattr(self, name) for name in self.__dataclass_fields__ if name != "table"]
        return type(self), tuple(values)

    def frame(self, spark: SparkSession, place: SharedFolder) -> DataFrame:
        """Return the images as a frame."""
        if place.local is None:
            return spark.createDataFrame(self.table)
        # A frame made of a table is held by Java, which may have room for less than a million
        # images; one that is read is not.
        place.write(LISTED, partial(pq.write_table, self.table))
        return spark.read.parquet(address(place.local / LISTED))

    def vectors(self, feature: str, table: pa.Table, rows: NDArray[np.int64]) -> NDArray[Any]:  # noqa: ARG002
        """Return the vectors of the images `rows`, ascending."""
        path, kind = self.files[feature], self.kinds[feature]
        taken = np.empty((len(rows), kind.dimension), kind.dtype)
        if not len(rows):
            return taken
        step = max(1, _WINDOW // (kind.dimension * taken.itemsize))
        cuts = np.searchsorted(rows, np.arange(0, int(rows[-1]) + step + 1, step))
        for start, stop in pairwise(cuts.tolist()):
            if stop > start:
                # Mapped anew, so that no more of the file than a window stays in memory.
                with np.errstate(over="ignore"):  # becomes infinite, and is reported as such
                    taken[start:stop] = self._mapped(path, kind)[rows[start:stop]]
        return taken

    def _mapped(self, path: str, kind: VectorKind) -> NDArray[Any]:
        try:
            array: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            raise DataError(
                f"{path}: a worker cannot read it; put the folder on storage that all machines see"
            ) from error
        if array.shape != (self.n_images, kind.dimension):
            expected = (self.n_images, kind.dimension)
            raise DataError(
                f"{path}: a worker sees another file under this name (shape {array.shape}, "
                f"expected {expected}); give all machines the same"
            )
        return array

    def groups(self, found: Found) -> tuple[tuple[str, ...], tuple[str, ...]]:  # noqa: ARG002
        """Return the attributes, and those that make groups when none is named."""
        return self.attributes, self.crossed


def _stamp(path: Path) -> tuple[str, int, int] | None:
    if not path.exists():
        return None
    found = path.stat()
    return str(path.resolve()), found.st_size, found.st_mtime_ns


def _table(images: Images) -> pa.Table:
    columns = {"row": pa.array(np.arange(len(images))), "image_id": images.ids}
    if images.identity is not None:
        columns["identity"] = decoded(images.identity)
    for k, column in enumerate(images.attributes.values()):
        columns[f"{ATTRIBUTE}{k}"] = decoded(column)
    return pa.table(columns)


@dataclass(frozen=True, eq=False)
class FrameSource(BlockSource):
    """A frame of templates: everything comes from Spark."""

    given: DataFrame | None = None

    order = "image_id"

    @classmethod
    def of(cls, frame: DataFrame, features: Sequence[str] | None) -> FrameSource:
        """Look at the columns of a frame, count its rows, and take one to see the dimensions."""
        where = "templates"
        if "image_id" not in frame.columns:
            raise DataError(f"{where}: expected a column 'image_id', found none; add or rename it")
        kinds = {column.name: column.dataType for column in frame.schema}
        vectors = [
            name
            for name, kind in kinds.items()
            if kind.typeName() == "array" and kind.elementType.typeName() in ("float", "double")
        ]
        chosen = choose(vectors, features, where, "column of vectors")
        if not chosen:
            raise DataError(
                f"{where}: expected a column with an array of float or double, found none; "
                "of a vector of Spark's, make one with vector_to_array"
            )
        attributes = [
            name
            for name, kind in kinds.items()
            if kind.typeName() in _TEXTS + _NUMBERS and name not in ("image_id", "identity", "fold")
        ]
        require_crossable(attributes, where)
        return cls(
            where,
            where,
            {},
            int(frame.count()),
            id_kind(frame, "image_id", where),
            _dimensions(frame, chosen, where),
            "identity" in kinds,
            tuple(attributes),
            None,
            frame,
        )

    def __reduce__(self) -> tuple[Any, ...]:
        # A frame is the driver's.
        values = [getattr(self, name) for name in self.__dataclass_fields__ if name != "given"]
        return type(self), tuple(values)

    def frame(self, spark: SparkSession, place: SharedFolder) -> DataFrame:  # noqa: ARG002
        """Return the images as a frame, with their vectors."""
        frame = self.given
        if frame is None:
            raise DataError("a frame of templates is its driver's")
        columns = [as_id(frame, "image_id", self.ids, self.where).alias("image_id")]
        columns += [_quoted(frame, "identity").alias("identity")] if self.people else []
        for kind, names in ((ATTRIBUTE, self.attributes), (VECTOR, tuple(self.kinds))):
            columns += [_quoted(frame, name).alias(f"{kind}{k}") for k, name in enumerate(names)]
        return frame.select(columns)

    def vectors(self, feature: str, table: pa.Table, rows: NDArray[np.int64]) -> NDArray[Any]:
        """Return the vectors in `table`, float32."""
        column = table[f"{VECTOR}{list(self.kinds).index(feature)}"]
        kind = self.kinds[feature]
        taken = np.empty((len(rows), kind.dimension), np.float32)
        lengths = pc.list_value_length(column).fill_null(-1)
        wrong = np.flatnonzero(np.asarray(lengths) != kind.dimension)
        if len(wrong):
            raise DataError(
                f"{self.where}, column '{feature}': expected vectors of {kind.dimension} numbers, "
                f"found one of {max(0, lengths[int(wrong[0])].as_py())} (image "
                f"{table['image_id'][int(wrong[0])]}); embed these images again or drop them"
            )
        start = 0
        for chunk in column.chunks:
            values = chunk.flatten()
            with np.errstate(over="ignore"):  # becomes infinite, and is reported as such
                # A number that is missing is none: NaN, which no pair may use.
                numbers = values.to_numpy(zero_copy_only=False)
                taken[start : start + len(chunk)] = numbers.reshape(len(chunk), -1)
            start += len(chunk)
        return taken

    def groups(self, found: Found) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the attributes, and those that make groups when none is named."""
        values: dict[str, set[str] | None] = {name: set() for name in self.attributes}
        for block in found:
            for name, some in block.items():
                seen = values[name]
                if some is None:
                    values[name] = None
                elif seen is not None and len(seen) <= MOST_GROUPS:
                    seen.update(some)
        kept = {name: seen for name, seen in values.items() if seen is not None}
        crossed = [name for name, seen in kept.items() if 0 < len(seen) <= MOST_GROUPS]
        return tuple(kept), tuple(crossed)


def _dimensions(frame: DataFrame, features: Sequence[str], where: str) -> dict[str, VectorKind]:
    """Return what the vectors of the first row are like."""
    from pyspark.sql import functions as F  # noqa: N812

    sizes = [F.size(_quoted(frame, name)).alias(name) for name in features]
    first = frame.select(sizes).limit(1).toArrow().to_pylist()
    if not first:
        raise DataError(f"{where}: expected at least one image, found none; check the frame")
    for name, size in first[0].items():
        if size is None or size < 1:
            raise DataError(
                f"{where}, column '{name}': expected vectors, found an empty one; drop such images"
            )
    return {name: VectorKind(int(size), "float32") for name, size in first[0].items()}


def _quoted(frame: DataFrame, name: str) -> Column:
    """Return a column whatever is in its name."""
    return frame["`" + name.replace("`", "``") + "`"]
