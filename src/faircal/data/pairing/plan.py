"""What is asked for, and what comes of it."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real

import numpy as np
from numpy.typing import ArrayLike, NDArray

from faircal._base.errors import ParameterError
from faircal._base.registry import check_whole, did_you_mean
from faircal.data.pairing.sampling import Ints

#: The kinds of imposter pairs.
IMPOSTERS = ("random", "group", "cross", "cluster", "matched", "hard")
#: Those that are drawn by what the embeddings say.
BY_EMBEDDING = ("cluster", "matched", "hard")


_MOST, _LARGEST = 1e6, 10**12


@dataclass(frozen=True)
class PairPlan:
    """Which pairs are to be built.

    Parameters
    ----------
    imposters : str
        The two images of an imposter pair are: ``random``, any of two people; ``group``, of one
        group; ``cross``, of two groups; ``cluster``, of one K-means cluster, found without
        attributes; ``matched``, of two people who are alike, likewise; ``hard``, the most similar
        ones.
    genuine : int, optional
        At most so many genuine pairs a person, drawn at random. None: all.
    ratio : float
        Imposter pairs for each genuine pair.
    size : int, optional
        At most so many pairs in all, in the given ratio. None: no limit.
    cap : int
        At most so many imposter pairs of the same two people.
    n_folds : int
        Folds to draw; not used where folds are given.
    n_clusters : int, optional
        Number of clusters, for ``cluster``, or of cells of people, for ``matched``. None: 30, or
        10, and fewer where people are few, so that ten of each are in a fold.
    seed : int

    Examples
    --------
    >>> PairPlan(imposters="hrad")
    Traceback (most recent call last):
    ...
    faircal.ParameterError: imposters: unknown kind 'hrad'; did you mean hard? (known: ...)
    """

    imposters: str = "random"
    genuine: int | None = 300
    ratio: float = 3.0
    size: int | None = None
    cap: int = 10
    n_folds: int = 5
    n_clusters: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.imposters not in IMPOSTERS:
            hint = did_you_mean(str(self.imposters), IMPOSTERS)
            raise ParameterError(f"imposters: unknown kind {self.imposters!r}; {hint}")
        ratio: object = self.ratio
        number = isinstance(ratio, Real) and not isinstance(ratio, bool)
        if not number or not 0 < float(self.ratio) <= _MOST:
            raise ParameterError(f"ratio: expected a number above 0, found {ratio!r}")
        if self.genuine is not None:
            check_whole("genuine", self.genuine, 1)
        if self.size is not None:
            check_whole("size", self.size, 2)
        check_whole("cap", self.cap, 1)
        for name in ("genuine", "size", "cap"):
            value = getattr(self, name)
            if value is not None and value > _LARGEST:
                raise ParameterError(f"{name}: expected {_LARGEST:,} at most, found {value}")
        check_whole("n_folds", self.n_folds, 2)
        if self.n_clusters is not None:
            check_whole("n_clusters", self.n_clusters, 1)
        check_whole("seed", self.seed, 0)


@dataclass(frozen=True, eq=False)
class BuiltPairs:
    """Pairs of images, each once, sorted by fold, genuine first, left, right.

    Attributes
    ----------
    left, right : ndarray of shape (n_pairs,), intp
        Rows of images; left < right.
    genuine : ndarray of shape (n_pairs,), bool
    fold : ndarray of shape (n_pairs,), int64
        1…`n_folds`, or the folds that were given.
    notes : tuple of str
        What was done and what fell short, a line each.
    """

    left: NDArray[np.intp]
    right: NDArray[np.intp]
    genuine: NDArray[np.bool_]
    fold: NDArray[np.int64]
    notes: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.left)


Vectors = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class PairingInputs:
    """Columns over all images, as `build_pairs` describes them, and embeddings."""

    people: Ints
    strata: Ints | None
    groups: Ints | None
    folds: Ints | None
    vectors: Vectors | None

    @classmethod
    def of(
        cls,
        people: ArrayLike,
        strata: ArrayLike | None,
        groups: ArrayLike | None,
        folds: ArrayLike | None,
        vectors: Vectors | None,
    ) -> PairingInputs:
        """Check types and lengths."""
        codes = _column("people", people)
        n = len(codes)
        optional = {"strata": strata, "groups": groups, "folds": folds}
        columns = {
            name: None if values is None else _column(name, values, n)
            for name, values in optional.items()
        }
        vectors = None if vectors is None else np.asanyarray(vectors)
        if vectors is not None and (vectors.ndim != 2 or len(vectors) != n):
            raise ParameterError(
                f"vectors: expected {n:,} rows, one for each image, found shape {vectors.shape}"
            )
        return cls(codes, columns["strata"], columns["groups"], columns["folds"], vectors)

    def needed_groups(self, plan: PairPlan) -> Ints:
        """Return the groups, without which this plan can't be carried out."""
        if self.groups is None:
            raise ParameterError(
                f"imposters {plan.imposters!r}: expected the group of each image, found none; "
                "name an attribute (--attribute)"
            )
        return self.groups

    def needed_vectors(self, plan: PairPlan) -> Vectors:
        """Return the embeddings, without which this plan can't be carried out."""
        if self.vectors is None:
            raise ParameterError(
                f"imposters {plan.imposters!r}: expected embeddings, found none; "
                "run faircal embed first"
            )
        return self.vectors


def _column(name: str, values: ArrayLike, n: int | None = None) -> Ints:
    column = np.asarray(values)
    if column.ndim != 1 or (column.size and column.dtype.kind not in "iu"):
        raise ParameterError(
            f"{name}: expected a whole number for each image, found {column.dtype} of shape "
            f"{column.shape}; give codes, −1 for unknown"
        )
    if n is not None and len(column) != n:
        raise ParameterError(
            f"{name}: expected {n:,} values, one for each image, found {len(column):,}"
        )
    return column.astype(np.int64)
