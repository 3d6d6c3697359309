"""What pairs are built from, validated once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from faircal._base.errors import ParameterError
from faircal.data.pairing.plan import PairPlan
from faircal.data.pairing.sampling import Ints

Vectors = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Inputs:
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
    ) -> Inputs:
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
