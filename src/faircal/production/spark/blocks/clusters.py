"""Clusters of the images in blocks, stored beside them.

The same images come in many tiles. A model that assigns them to clusters each time may spend more
on that than on pairs. So the worker that has assigned a block writes the clusters to a small file
beside it, and others read that.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from faircal._base.errors import DataError, ParameterError
from faircal._base.files import digest
from faircal.data import Dataset
from faircal.methods import Method
from faircal.methods.clusters import ClusterMethod
from faircal.methods.inputs import ImageValues, Space
from faircal.production.spark.blocks.block import BlockEmbeddings, BlockOrigin, block_name

Clusters = NDArray[np.int32]


def recall_clusters(model: Method, part: Dataset) -> None:
    """Give `model` the clusters of the images of `part`, as far as they are stored beside blocks.

    Those of a block are worked out, all at once, when so much of it is used that this is likely to
    pay: where a share s of its images is used, with probability s. However often the block comes
    and wherever, that costs in all about what assigning images one by one has cost before.
    Has no effect but on time: for pairs whose images are in no blocks, and models without clusters,
    none at all.
    """
    embeddings = part.embeddings
    if not isinstance(model, ClusterMethod) or not isinstance(embeddings, BlockEmbeddings):
        return
    origin = embeddings.origin
    if origin is None:
        return
    none = np.empty(0, np.int32)
    model.remember_clusters(embeddings, none.astype(np.intp), none)  # says where they do not fit
    key = _key(model, origin.feature)
    recalled: set[tuple[str, int]] = vars(embeddings).setdefault("recalled", set())
    used = part.used_images()
    stop = 0
    for number, rows in origin.pieces:
        size = int(origin.source.sizes[number])
        start, stop = stop, stop + (size if isinstance(rows, slice) else len(rows))
        if (key, number) in recalled:
            continue
        share = np.searchsorted(used, [start, stop]) / max(size, 1)
        clusters = _stored(origin, number, key)
        if clusters is None and _chance(part, number) < share[1] - share[0]:
            clusters = _assigned(model, origin, number)
            _store(origin, number, key, clusters)
        if clusters is not None:
            model.remember_clusters(embeddings, np.arange(start, stop), clusters[rows])
            recalled.add((key, number))


def _chance(part: Dataset, number: int) -> float:
    """Return a number below 1 by chance, always the same for the same pairs."""
    first = part.pairs
    seed = [number, len(first), int(first.left[0]), int(first.right[0])]
    return float(np.random.default_rng(seed).random())


def _key(model: ClusterMethod, feature: str) -> str:
    """Return a name for the clustering of a feature."""

    def feed(update: Any) -> None:
        update(f"{feature}\0{model.normalize_}\0".encode())
        update(np.ascontiguousarray(model.cluster_centers_).tobytes())

    return digest(feed)[:16]


def _name(number: int, key: str) -> str:
    return block_name(number).replace(".arrow", f".clusters-{key}.arrow")


def _stored(origin: BlockOrigin, number: int, key: str) -> Clusters | None:
    """Return the stored clusters of a block; None where there are none, or damaged ones."""
    with suppress(DataError, KeyError):
        batch = origin.source.place.read_batch(_name(number, key))
        clusters = np.asarray(batch["cluster"], np.int32)
        return clusters if len(clusters) == origin.source.sizes[number] else None
    return None


def _assigned(model: ClusterMethod, origin: BlockOrigin, number: int) -> Clusters:
    """Return the clusters of all images of a block."""
    block = origin.source.read(number)
    embeddings = origin.source.embeddings(origin.feature, [(block, slice(None))])
    space = Space(embeddings.dimension, embeddings.normalize)
    # Those of unusable vectors are as good as any: no pair may use them.
    with np.errstate(invalid="ignore", divide="ignore"):
        clusters: Clusters = ImageValues(space, model.clustering_.assign, np.int32).at(
            embeddings, np.arange(len(embeddings))
        )
    return clusters


def _store(origin: BlockOrigin, number: int, key: str, clusters: Clusters) -> None:
    batch = pa.RecordBatch.from_pydict({"cluster": clusters})
    with suppress(ParameterError, OSError):  # who may not write there finds them again
        origin.source.place.write_batch(_name(number, key), batch)
