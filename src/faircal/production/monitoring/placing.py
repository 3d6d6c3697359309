"""Where images of calibration would lie, had their own person not taken part in the clustering.

K-means moves centres to the images it sees: a person with many may have a cluster of their own,
which nobody else falls into. Images of people in use did not take part, so those of calibration are
held against centres from which their own person is taken out again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from faircal.compute import CPU, Engine
from faircal.compute.clustering import Clustering

Float32 = NDArray[np.float32]
Int64 = NDArray[np.int64]

#: Distances worked out at a time.
_BLOCK = 8192
#: An image whose person must be taken out of more clusters than this is held against those it
#: is nearest to; a "person" of that many clusters is a slip of labels.
_MOST_CLUSTERS = 64


class Placed(NamedTuple):
    """Cluster and distance of each image."""

    cluster: Int64
    distance: Float32


def place_without_own(
    clustered: Float32,
    whose: Int64,
    centers: Float32,
    vectors: Float32,
    people: Int64,
    engine: Engine = CPU,
) -> Placed:
    """Place images among the centres of everybody else's.

    Without the images of person p that cluster k holds, its centre is
    (n_k c_k − Σ x) / (n_k − n_pk).

    Parameters
    ----------
    clustered : ndarray of shape (n, d), float32
        All images that were clustered.
    whose : ndarray of shape (n,)
        Who is in them, by number.
    centers : ndarray of shape (K, d), float32
    vectors : ndarray of shape (m, d), float32
        Images to be placed, among those or not.
    people : ndarray of shape (m,)
        Who is in them.
    """
    k = len(centers)
    own = Clustering(centers, 0.0, 0).assign(clustered, engine).astype(np.int64)
    sizes = np.bincount(own, minlength=k)
    concerned = np.flatnonzero(np.isin(whose, people))
    cells, of = np.unique(whose[concerned] * k + own[concerned], return_inverse=True)
    held, person = cells % k, cells // k
    sums = _sums(clustered, concerned, of, len(cells))
    left = sizes[held] - np.bincount(of, minlength=len(cells))
    # The mean of nobody is nowhere: nobody can be near it.
    others = np.full(sums.shape, np.inf, np.float32)
    there = left > 0
    whole = sizes[held[there], None] * centers[held[there]]
    others[there] = (whole - sums[there]) / left[there, None]
    first = np.searchsorted(person, people, side="left")
    last = np.minimum(np.searchsorted(person, people, side="right"), first + _MOST_CLUSTERS)
    cluster = np.empty(len(vectors), np.int64)
    distance = np.empty(len(vectors), np.float32)
    squares = np.einsum("ij,ij->i", centers, centers)
    for start in range(0, len(vectors), _BLOCK):
        block = slice(start, start + _BLOCK)
        some = vectors[block]
        apart = squares - 2 * (some @ centers.T) + np.einsum("ij,ij->i", some, some)[:, None]
        plain = apart.copy()
        _replace(apart, some, others, held, first[block], last[block])
        alone = ~np.isfinite(apart).any(axis=1)  # nobody else was there
        apart[alone] = plain[alone]
        cluster[block] = apart.argmin(axis=1)
        distance[block] = np.sqrt(np.maximum(apart.min(axis=1), 0.0))
    return Placed(cluster, distance)


def _sums(vectors: Float32, rows: Int64, of: Int64, cells: int) -> Float32:
    """Sum rows of `vectors` by cell."""
    ones = np.ones(len(rows), np.float32)
    found: Float32 = csr_array((ones, (of, rows)), shape=(cells, len(vectors))) @ vectors
    return found


def _replace(
    apart: Float32, some: Float32, others: Float32, held: Int64, first: Int64, last: Int64
) -> None:
    """Put in the squared distances to the centres that are without the image's own person."""
    many = last - first
    rows = np.repeat(np.arange(len(some)), many)
    cells = np.arange(len(rows)) - np.repeat(np.cumsum(many) - many, many) + np.repeat(first, many)
    for start in range(0, len(rows), _BLOCK):
        row, cell = rows[start : start + _BLOCK], cells[start : start + _BLOCK]
        away = some[row] - others[cell]
        apart[row, held[cell]] = np.einsum("ij,ij->i", away, away)
