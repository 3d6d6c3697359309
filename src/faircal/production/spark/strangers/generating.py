"""From numbers of items to pairs of strangers, on the workers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from faircal._base.errors import DataError
from faircal.data import Dataset
from faircal.data.columns import Column
from faircal.data.dataset import COSINE_RANGE, check_vectors
from faircal.data.groups import cross
from faircal.data.types import Embeddings, Feature, Images, Pairs
from faircal.production.spark.blocks.merging import some
from faircal.production.spark.blocks.tiles import Tiled
from faircal.production.spark.blocks.tiling import FEW
from faircal.production.spark.gallery import Gallery, Whole
from faircal.production.spark.readers import Reader
from faircal.production.spark.strangers.drawing import PART, Strangers
from faircal.production.spark.strangers.headcount import Items

Ints = NDArray[np.int64]
Codes = tuple[NDArray[Any], NDArray[Any] | None]

#: Pairs that a model is checked against.
_HEAD = 16


@dataclass(frozen=True)
class Rule:
    """Which pairs are made; see `imposters`."""

    groups: str
    attribute: str | None
    n: int | None
    seed: int

    def columns(self, images: Images, where: str) -> tuple[Column, Column | None]:
        """Return who is in each image, and of which group it is, where that counts."""
        if images.identity is None:
            raise DataError(
                f"{where}: expected a column 'identity' in the images, found none; add it: who is "
                "in them tells which pairs are imposters"
            )
        if self.attribute is None:
            return images.identity, None
        return images.identity, cross(images.attributes, self.attribute, where)

    def codes(self, images: Images, where: str) -> Codes:
        """Return the same as numbers; −1: unknown."""
        person, group = self.columns(images, where)
        return person.codes, None if group is None else group.codes


@dataclass(frozen=True, eq=False)
class _Known:
    """Images with their vectors, some of which pairs are made of."""

    images: Images
    features: Mapping[str, Embeddings]

    @cached_property
    def has_unusable(self) -> bool:
        """Whether there is a vector that no pair may use: all are looked at, once."""
        return any(bool(found.unusable.any()) for found in self.features.values())


@dataclass(frozen=True, eq=False)
class _Tile:
    """What a tile's pairs are made of.

    `known` is None where only the images of some pairs are read; `at` is where the tile's images
    are among those known, `rows` where they are in the gallery.
    """

    strangers: Strangers
    rows: Ints
    at: Ints
    known: _Known | None


@dataclass(frozen=True, eq=False)
class Generated(Reader):
    """Makes the pairs of items; batches have nothing but their numbers.

    Parameters
    ----------
    gallery : Gallery
    rule : Rule
    items : Items
    feature : str
        The one in use.
    """

    gallery: Gallery
    rule: Rule
    items: Items
    feature: str
    score_range: tuple[float, float] = COSINE_RANGE
    _held: dict[Any, _Tile] = field(default_factory=dict, init=False, repr=False)

    def __reduce__(self) -> tuple[type[Generated], tuple[object, ...]]:
        # What was loaded stays.
        return Generated, (self.gallery, self.rule, self.items, self.feature, self.score_range)

    def parts(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Dataset]:
        """Yield the pairs of the items that `batches` name."""
        for batch in batches:
            for item in batch.column(0).to_pylist():
                yield from self._pairs(item)

    def local(self, table: pa.Table) -> Dataset:
        """Make a few pairs of the first of some items."""
        part = next(self._pairs(table.column(0)[0].as_py()))
        return part.subset(np.arange(min(len(part), _HEAD)))

    def _pairs(self, item: int) -> Iterator[Dataset]:
        """Yield the pairs of an item: always the same ones."""
        i, j, start, stop, take = self.items.item(item)
        tile = self._tile(i, j, take)
        if self.rule.n is None:
            found = tile.strangers.listed(start, stop)
        else:
            rng = np.random.default_rng([self.rule.seed, i, j, start, 2])
            found = tile.strangers.drawn(start, stop, take, rng)
        for one, two in _together(found):
            turned = tile.rows[one] > tile.rows[two]
            left, right = np.where(turned, two, one), np.where(turned, one, two)
            if tile.known is None:
                yield self._dataset(*self._alone(i, j, left, right))
            else:
                yield self._dataset(tile.known, tile.at[left], tile.at[right])

    def _dataset(self, known: _Known, left: Ints, right: Ints) -> Dataset:
        gallery = self.gallery
        pairs = Pairs(left, right, np.zeros(len(left), dtype=bool))
        features = {name: Feature(found) for name, found in known.features.items()}
        data = Dataset.assemble(
            gallery.name, known.images, pairs, features, where=gallery.where, seed=None
        )
        if known.has_unusable:
            check_vectors(data)
        return data

    # ------------------------------------------------------------------ tiles

    def _tile(self, i: int, j: int, pairs: int) -> _Tile:
        """Return a tile; the last one is held, as the next item most often is of the same."""
        sizes = self.gallery.block_sizes
        whole = isinstance(self.gallery, Whole)
        few = isinstance(self.gallery, Tiled) and FEW * pairs < sizes[i] + (i != j) * sizes[j]
        if (i, j, few) not in self._held:
            self._held.clear()  # before there is another
            self._held[i, j, few] = self._within(i, j) if whole else self._loaded(i, j, few)
        return self._held[i, j, few]

    def _within(self, i: int, j: int) -> _Tile:
        """Take a tile from images within reach: all parts share what is worked out of images."""
        known, (person, group) = self._everybody
        ends = np.append(0, np.cumsum(self.gallery.block_sizes))
        rows = np.concatenate([np.arange(ends[k], ends[k + 1]) for k in dict.fromkeys((i, j))])
        codes = person[rows], None if group is None else group[rows]
        return _Tile(self._strangers(codes, i, j), rows, rows, known)

    @cached_property
    def _everybody(self) -> tuple[_Known, Codes]:
        gallery = self.gallery
        features = {self.feature: gallery.features[self.feature]}
        known = _Known(gallery.images, features)
        return known, self.rule.codes(gallery.images, gallery.where)

    def _loaded(self, i: int, j: int, few: bool) -> _Tile:
        """Load a tile; where its pairs are few, without its vectors."""
        tile = self.gallery.tile(i, j)
        strangers = self._strangers(self.rule.codes(tile.images, self.gallery.where), i, j)
        places = np.arange(len(tile.rows))
        if few:
            return _Tile(strangers, tile.rows, places, None)
        known = _Known(tile.images, {self.feature: tile.features[self.feature]})
        return _Tile(strangers, tile.rows, places, known)

    def _strangers(self, codes: Codes, i: int, j: int) -> Strangers:
        first = None if i == j else int(self.gallery.block_sizes[i])
        return Strangers.of(*codes, first, self.rule.groups == "across")

    def _alone(self, i: int, j: int, left: Ints, right: Ints) -> tuple[_Known, Ints, Ints]:
        """Return the images of these pairs alone, and the pairs as places among them."""
        gallery, name = self.gallery, self.feature
        if not isinstance(gallery, Tiled):
            raise TypeError(f"expected images in blocks, found {type(gallery).__name__}")
        used = np.unique(np.concatenate([left, right]))
        first = int(gallery.block_sizes[i])
        rows = [used[used < first], used[used >= first] - first][: 1 + (i != j)]
        pieces = list(zip(gallery.held(i, j), rows, strict=True))
        vectors = gallery.blocks.embeddings(name, pieces)
        known = _Known(some(gallery.tile(i, j).images, used), {name: vectors})
        return known, np.searchsorted(used, left), np.searchsorted(used, right)


def _together(pairs: Iterable[tuple[Ints, Ints]]) -> Iterator[tuple[Ints, Ints]]:
    """Put few pairs together, up to `PART`."""
    held: list[tuple[Ints, Ints]] = []
    count = 0
    for one, two in pairs:
        if held and count + len(one) > PART:
            yield _joined(held)
            held, count = [], 0
        held.append((one, two))
        count += len(one)
    if held:
        yield _joined(held)


def _joined(held: list[tuple[Ints, Ints]]) -> tuple[Ints, Ints]:
    one, two = (np.concatenate(side) for side in zip(*held, strict=True))
    return one, two
