"""The calibration population, counted: what pairs in use are compared with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from faircal._base.errors import DataError

Float32 = NDArray[np.float32]
Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]


class Places(NamedTuple):
    """Where images lie: nearest centre, how far from it, whether outside of the population."""

    cluster: NDArray[np.int32]
    distance: Float32
    outside: NDArray[np.bool_]


def _none(*shape: int) -> Callable[[], Int64]:
    """Return what makes counts of nothing."""
    return lambda: np.zeros(shape, np.int64)


@dataclass(frozen=True, eq=False)
class Population:
    """What the images and scores of calibration were like. No image, no embedding is in it.

    Counts come in two rows, imposter pairs first, genuine pairs second. Tables by *bucket* tell how
    counts vary with who took part: people are dealt to G buckets, and a pair is counted in those of
    both of its people (once where that is the same one), so a table's sum can exceed the pairs.

    Attributes
    ----------
    centers : ndarray of shape (K, d), float32
        Of clusters of the images; those of the model where it has some. K is 0 where there were
        scores only.
    reach : ndarray of shape (K,), float32
        An image further from its nearest centre is outside of the population.
    score_edges : ndarray of shape (B + 1,)
        Bins of the similarity (cosine), for pictures.
    genuine_counts, imposter_counts : ndarray of shape (B,), int64
        Calibration pairs in each.
    region : ndarray of shape (K,), int64
        Clusters next to each other make up R regions, few enough that each has many people.
    stratum : ndarray of shape (R, R), int64
        Pairs of regions whose imposters score alike make up strata 1 … H.
    ranked_edges : ndarray of shape (1 + H, S − 1)
        Between S bins of what the model ranks by: of all pairs, then of each stratum. An imposter
        pair of calibration is as likely in a bin of one stratum as in that of another.
    ranked_counts : ndarray of shape (2, 2, S), int64
        Pairs in them: in bins of all, and in those of their strata.
    ranked_buckets : ndarray of shape (2, 2, G, S), int64
    place_buckets : ndarray of shape (2, G, R), int64
        Images as pairs use them, each in its person's bucket; where each would lie had its
        person not taken part in the clustering.
    place_pairs : ndarray of shape (2, 2, R, R), int64
        Pairs by the regions of left and right image: those in one bucket, then those in two.
    outside_buckets : ndarray of shape (2, G, 2), int64
        Images within, and those that would be outside, counted as in `place_buckets`.
    outside_pairs : ndarray of shape (2, 2, 2, 2), int64
        As `place_pairs`, by whether left and right image would be outside.
    counted_by : str
        Who was dealt to buckets: ``people``, or ``pairs`` where nobody is identified.
    people : int
        How many of those there were.
    effects : mapping
        For ``scores``, ``clusters`` and ``outside``: how many times larger the variance is over
        people than over images; 1 where people are unknown.
    """

    centers: Float32
    reach: Float32
    score_edges: Float64
    genuine_counts: Int64
    imposter_counts: Int64
    region: Int64 = field(default_factory=_none(0))
    stratum: Int64 = field(default_factory=_none(1, 1))
    ranked_edges: Float64 = field(default_factory=lambda: np.zeros((1, 0)))
    ranked_counts: Int64 = field(default_factory=_none(2, 2, 1))
    ranked_buckets: Int64 = field(default_factory=_none(2, 2, 0, 1))
    place_buckets: Int64 = field(default_factory=_none(2, 0, 1))
    place_pairs: Int64 = field(default_factory=_none(2, 2, 1, 1))
    outside_buckets: Int64 = field(default_factory=_none(2, 0, 2))
    outside_pairs: Int64 = field(default_factory=_none(2, 2, 2, 2))
    counted_by: str = "pairs"
    people: int = 0
    effects: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not len(self.region) and len(self.centers):  # nobody made any: one of all
            object.__setattr__(self, "region", np.zeros(len(self.centers), np.int64))

    @property
    def watchable(self) -> bool:
        """Whether there is something to compare pairs in use with."""
        return bool(self.ranked_counts[0].sum(axis=1).min() and self.ranked_buckets.shape[2] > 1)

    @property
    def stratified(self) -> bool:
        """Whether scores can be compared with those of the same stratum."""
        return len(self.ranked_edges) > 1

    def place(self, vectors: Float32, clusters: NDArray[np.int32]) -> Places:
        """Say where images lie whose nearest centres are `clusters`."""
        away = vectors - self.centers[clusters]
        distance = np.sqrt(np.einsum("ij,ij->i", away, away))
        return Places(clusters, distance, distance > self.reach[clusters])

    def parts(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return numbers and texts for the header of a model file, and arrays by name there."""
        values = {"lots_of": self.counted_by, "people": self.people, "effects": dict(self.effects)}
        return values, {name: getattr(self, key) for name, (key, _, _) in _ARRAYS.items()}

    @classmethod
    def restore(cls, values: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Population:
        """Undo `parts`.

        Raises
        ------
        DataError
            Where arrays are missing, do not fit each other, or hold what cannot be.
        """
        missing = [name for name in _ARRAYS if name not in arrays]
        if missing:
            raise DataError(f"population: expected an array {missing[0]}; fit the model again")
        sizes: dict[str, int] = {"2": 2}
        for name, (_, kind, shape) in _ARRAYS.items():
            _check(name, np.asarray(arrays[name]), kind, shape, sizes)
        population = cls(
            **{key: np.asarray(arrays[name]) for name, (key, _, _) in _ARRAYS.items()},
            counted_by=str(values.get("lots_of", "pairs")),
            people=int(values.get("people", 0)),
            effects={str(k): float(v) for k, v in dict(values.get("effects", {})).items()},
        )
        if len(population.region) and population.region.max() >= population.place_buckets.shape[2]:
            raise DataError("population: region: expected numbers of regions; fit the model again")
        if population.stratum.max(initial=0) >= len(population.ranked_edges):
            raise DataError("population: stratum: expected numbers of strata; fit the model again")
        return population


#: What model files call each array, whose *buckets* have been *lots* there since schema 1; kind and
#: shape, where letters that are the same stand for the same size.
_ARRAYS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "centers": ("centers", "real", ("K", "d")),
    "reach": ("reach", "real", ("K",)),
    "score_edges": ("score_edges", "edges", ("B+1",)),
    "genuine_counts": ("genuine_counts", "counts", ("B",)),
    "imposter_counts": ("imposter_counts", "counts", ("B",)),
    "region": ("region", "counts", ("K",)),
    "stratum": ("stratum", "counts", ("R", "R")),
    "ranked_edges": ("ranked_edges", "edges", ("H", "S-1")),
    "ranked_counts": ("ranked_counts", "counts", ("2", "2", "S")),
    "ranked_lots": ("ranked_buckets", "counts", ("2", "2", "G", "S")),
    "place_lots": ("place_buckets", "counts", ("2", "G", "R")),
    "place_pairs": ("place_pairs", "counts", ("2", "2", "R", "R")),
    "outside_lots": ("outside_buckets", "counts", ("2", "G", "2")),
    "outside_pairs": ("outside_pairs", "counts", ("2", "2", "2", "2")),
}


def _check(
    key: str, array: NDArray[Any], kind: str, shape: tuple[str, ...], sizes: dict[str, int]
) -> None:
    """Raise unless an array is of its kind and fits those before it, whose `sizes` are known."""
    number = np.integer if kind == "counts" else np.floating
    fine = array.ndim == len(shape) and np.issubdtype(array.dtype, number)
    for letter, size in zip(shape, array.shape, strict=False):
        name, one, _ = letter.partition("+1")
        name, less, _ = name.partition("-1")
        size += bool(less) - bool(one)
        fine = fine and sizes.setdefault(name, size) == size
    if fine and kind == "counts":
        fine = bool((array >= 0).all())
    elif fine:
        fine = bool(np.isfinite(array).all() and (kind == "real" or (np.diff(array) >= 0).all()))
    if not fine:
        what = {"counts": "counts", "real": "finite numbers", "edges": "ascending numbers"}[kind]
        raise DataError(
            f"population: {key}: expected {what} of shape ({', '.join(shape)}), found "
            f"{array.dtype} of shape {array.shape}; fit the model again"
        )
