"""All imposter pairs of a gallery, or some drawn evenly, made by the workers that use them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from faircal._base.errors import DataError, ParameterError
from faircal._base.files import digest, stamp
from faircal._base.registry import check_whole, did_you_mean
from faircal.data import Dataset
from faircal.data.dataset import why_no_groups
from faircal.production.spark.gallery import Gallery, Whole
from faircal.production.spark.opening import How, gallery_of, pairs_of
from faircal.production.spark.pairs import SparkPairs
from faircal.production.spark.session import require, told
from faircal.production.spark.strangers.generating import Generated, Rule
from faircal.production.spark.strangers.headcount import GROUPS, Headcount, Items

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from faircal.production.spark.blocks.folder import Blocks

#: As many tasks as items up to that many tasks; beyond, tasks have more items, up to `_MOST`.
_TASKS, _MOST = 2000, 64
_KINDS = {"any": "", "within": " within groups", "across": " across groups"}


def imposters(
    spark: SparkSession,
    templates: str | Path | Dataset | Blocks | Gallery,
    *,
    n: int | None = None,
    attribute: str | None = None,
    groups: str = "any",
    seed: int = 0,
    features: Sequence[str] | None = None,
    normalize: bool = True,
    embeddings: str = "auto",
    blocks: str | Path | None = None,
) -> SparkPairs:
    """Make imposter pairs of a gallery: all there are, or `n` of them drawn without replacement.

    They are never stored. Spark's frame has a line for some ten million of them, and the worker
    that uses them makes them of who is in the images. Each two images of two known people are a
    pair once; the image that comes first in the gallery is on the left.

    Who is in how many images of each block is counted first (of block files by a job), so that the
    number of pairs is known. `n` pairs are dealt over the blocks as if drawn from all pairs at
    once: each set of `n` is as likely as any other. The same seed gives the same pairs whatever the
    machines, cores and tasks are; other blocks give others.

    Parameters
    ----------
    spark : SparkSession
        Its settings stay as they are.
    templates : path, Dataset, Blocks or Gallery
        A dataset folder (its pairs are not read), a dataset in memory, or blocks made before.
        Images must tell who is in them; one of nobody known is in no pair, as with ``faircal
        pairs``.
    n : int, optional
        Draw so many pairs. None: all.
    attribute : str, optional
        What makes groups; ``a+b`` crosses, None: all attributes crossed.
    groups : {"any", "within", "across"}
        The two images of a pair are of any groups, of one group, or of two. An image of unknown
        group is in no group: where groups matter it is in no pair.
    seed : int
        For drawing.
    features, normalize, embeddings, blocks
        As for `open_pairs`.

    Returns
    -------
    pairs : SparkPairs
        With ``genuine`` false throughout, for `score`, `audit` and, with genuine pairs beside them,
        `fit`. ``pairs.as_frame()`` is a lazy frame of their ids.

    Examples
    --------
    >>> pairs = imposters(spark, "/shared/faces", n=10**9, groups="within")  # doctest: +SKIP
    >>> found = audit(pairs, model=model)  # doctest: +SKIP
    """
    require()
    how = How.of(features, normalize, None, embeddings, blocks)
    _check(n, attribute, groups, seed)
    gallery = gallery_of(spark, templates, how, "imposters")
    if not gallery.features:
        raise DataError(f"{gallery.where}: expected embeddings, found none; embed the images")
    rule = Rule(groups, _attribute(gallery, attribute, groups), n, seed)
    strangers = _headcount(spark, gallery, rule).strangers(groups)
    there = int(strangers.sum())
    if not there:
        raise DataError(
            f"{gallery.where}: expected images of two known people to pair{_KINDS[groups]}, found "
            "none; add people, or choose other groups"
        )
    if n is not None and n > there:
        raise ParameterError(
            f"n: expected {there:,} at most, all imposter pairs{_KINDS[groups]} of "
            f"{gallery.where}, found {n:,}; leave it out to take all"
        )
    return _pairs(spark, gallery, rule, strangers, _mark(templates, gallery))


@dataclass(frozen=True, eq=False)
class Imposters(SparkPairs):
    """Pairs that are made when they are used; `imposters` makes one.

    Attributes
    ----------
    strangers : ndarray of shape (n_blocks, n_blocks)
        How many there are in each tile, `Headcount.strangers`.
    """

    strangers: NDArray[np.int64] | None = None

    def head(self) -> Dataset:
        """Return a few pairs, here, to check a model against."""
        return self.reader.local(pa.table({"item": [0]}))

    def sample(self, most: int, seed: int = 0) -> Dataset:
        """Return `most` pairs, here: all where there are no more, else others drawn like these."""
        reader, strangers = self.reader, self.strangers
        some: SparkPairs = self
        if isinstance(reader, Generated) and strangers is not None and most < len(self):
            rule = replace(reader.rule, n=most, seed=seed)
            some = _pairs(self.spark, reader.gallery, rule, strangers, self.mark)
            some = some.select(self.feature)
        found = pairs_of(some.as_frame(), self.gallery, name=self.name)
        return found.select(self.feature).sample(most)


def _pairs(
    spark: SparkSession, gallery: Gallery, rule: Rule, strangers: NDArray[np.int64], mark: str
) -> Imposters:
    items = Items.of(strangers, rule.n, rule.seed)
    tasks = min(len(items), max(_TASKS, -(-len(items) // _MOST)))
    return Imposters(
        spark.range(0, len(items), 1, tasks).toDF("item"),
        Generated(gallery, rule, items, next(iter(gallery.features))),
        gallery,
        gallery.name,
        gallery.where,
        f"{mark} {rule}",
        gallery.provenance,
        n_pairs=int(items.take.sum()),
        strangers=strangers,
    )


def _check(n: int | None, attribute: str | None, groups: str, seed: int) -> None:
    if groups not in GROUPS:
        raise ParameterError(f"groups: unknown kind {groups!r}; {did_you_mean(groups, GROUPS)}")
    if attribute is not None and groups == "any":
        raise ParameterError(
            "attribute: expected groups 'within' or 'across' with it, found 'any'; choose one of "
            "them, or leave the attribute out"
        )
    if n is not None:
        check_whole("n", n, 1)
    check_whole("seed", seed, 0)


def _attribute(gallery: Gallery, attribute: str | None, groups: str) -> str | None:
    """Return what makes the groups, where they matter; one that is not there is an error now."""
    images = gallery.tile(0, 0).images
    found = None
    if groups != "any":
        found = attribute or "+".join(images.crossed)
        if not found:
            raise DataError(f"{gallery.where}: {why_no_groups(images.attributes)}")
    Rule(groups, found, None, 0).columns(images, gallery.where)
    return found


# ------------------------------------------------------------------ counting


def _headcount(spark: SparkSession, gallery: Gallery, rule: Rule) -> Headcount:
    """Count the images of each block by person and group."""
    n_blocks = gallery.n_blocks
    if isinstance(gallery, Whole):
        block = np.repeat(np.arange(n_blocks), gallery.block_sizes)
        return Headcount.of(n_blocks, block, *rule.codes(gallery.images, gallery.where))
    with told():
        lines = spark.range(0, n_blocks, 1, n_blocks).mapInArrow(
            _counter(gallery, rule), "block long, person string, cell string, images long"
        )
        found: pa.Table = lines.toArrow()
    person, cell = (_codes(found[name]) for name in ("person", "cell"))
    return Headcount.of(
        n_blocks, np.asarray(found["block"]), person, cell, np.asarray(found["images"])
    )


def _codes(column: pa.ChunkedArray) -> NDArray[np.int64]:
    coded = column.combine_chunks().dictionary_encode()
    return np.asarray(coded.indices, dtype=np.int64)


def _counter(gallery: Gallery, rule: Rule) -> Any:
    """Return what counts the images of blocks, by names: codes are those of a block."""

    def count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield _count(gallery, rule, number)

    return count


def _count(gallery: Gallery, rule: Rule, number: int) -> pa.RecordBatch:
    person, group = rule.columns(gallery.tile(number, number).images, gallery.where)
    cell = np.zeros_like(person.codes) if group is None else group.codes
    known = (person.codes >= 0) & (cell >= 0)
    width = 1 if group is None else len(group.names) + 1
    home = person.codes[known].astype(np.int64) * width + cell[known]
    homes, images = np.unique(home, return_counts=True)
    of_person, of_group = np.divmod(homes, width)
    cells = pa.array([""] if group is None else group.names, pa.string())
    return pa.record_batch(
        {
            "block": pa.array(np.full(len(homes), number)),
            "person": pa.array(person.names, pa.string()).take(pa.array(of_person)),
            "cell": cells.take(pa.array(of_group)),
            "images": pa.array(images.astype(np.int64)),
        }
    )


def _mark(templates: Any, gallery: Gallery) -> str:
    """Return a hash of what tells whether the gallery is the same as another time."""

    def feed(update: Any) -> None:
        update(f"{gallery.name}\0{gallery.where}\0{gallery.block_sizes.tolist()}\0".encode())
        if isinstance(templates, Dataset):
            update(templates.hash().encode())
        folder = Path(gallery.where)
        for path in sorted(folder.rglob("*")) if folder.is_dir() else ():
            update(stamp(path))

    return digest(feed)
