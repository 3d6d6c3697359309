"""Pairs of a batch: two sides, put together into one matrix and the rows of its pairs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from faircal.data import Embeddings
from faircal.production.serving.fields import check_length
from faircal.production.serving.problems import Refused, unprocessable

Rows = NDArray[np.intp]


@dataclass(eq=False)
class Side:
    """The left or the right images of pairs.

    Attributes
    ----------
    name : str
        ``left`` or ``right``.
    rows : ndarray of shape (n_pairs,)
        Which of the vectors, or of the ids, each pair has.
    vectors : ndarray of shape (n, d), optional
    ids : list of str
        Of templates, in place of vectors or beside those that were looked up.
    """

    name: str
    rows: Rows
    vectors: NDArray[Any] | None = None
    ids: list[str] = field(default_factory=list)

    def enrolled(self, known: Mapping[str, NDArray[np.float32]]) -> Side:
        """Return the side with the vectors of its templates."""
        if self.vectors is not None:
            return self
        for number, name in enumerate(self.ids):
            if name not in known:
                row = int(np.argmax(self.rows == number))
                raise Refused(
                    404, "template", "no such template; enrol it first", f"{self.name}[{row}]"
                )
        names = list(dict.fromkeys(self.ids))
        place = {name: i for i, name in enumerate(names)}
        rows = np.array([place[name] for name in self.ids], dtype=np.intp)[self.rows]
        return Side(self.name, rows, np.stack([known[name] for name in names]), names)

    @property
    def templates(self) -> list[str] | None:
        """The template of each pair; None where vectors were sent."""
        return [self.ids[row] for row in self.rows] if self.ids else None


def joined(
    left: Side, right: Side, dimension: int | None, normalize: bool
) -> tuple[Embeddings, Rows, Rows]:
    """Return the embeddings of both sides, one below the other, and the rows of the pairs.

    Raises
    ------
    Refused
        Where vectors are of another length, or one is NaN, infinite or zero; it names the pair.
    """
    one, other = left.vectors, right.vectors
    if one is None or other is None:
        raise ValueError("expected sides whose templates were looked up")
    for side, found in ((left, one), (right, other)):
        check_length(found.shape[1], side.name, dimension)
    if one.shape[1] != other.shape[1]:
        raise unprocessable(
            "expected left and right of one length; use one network for both", "right", "dimension"
        )
    half = one.dtype == other.dtype == np.float16
    vectors = np.empty((len(one) + len(other), one.shape[1]), np.float16 if half else np.float32)
    with np.errstate(over="ignore"):  # becomes infinite, and is refused below
        vectors[: len(one)], vectors[len(one) :] = one, other
    embeddings = Embeddings(vectors, normalize)
    rows = (left.rows, right.rows + len(one))
    bad = embeddings.unusable
    if bad.any():
        for side, each in zip((left, right), rows, strict=True):
            if bad[each].any():
                raise unprocessable(
                    "expected finite numbers of moderate size, not all 0; leave this pair out",
                    f"{side.name}[{int(np.argmax(bad[each]))}]",
                )
    return embeddings, *rows
