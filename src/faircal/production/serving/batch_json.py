"""Batches: their two sides, joined into one matrix and the rows of its pairs, and read from JSON.

In JSON a side is a list of embeddings or of templates' ids; or pairs come one by one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from faircal.data import Embeddings, Groups
from faircal.production.serving import fields
from faircal.production.serving.bodies import only
from faircal.production.serving.fields import check_length
from faircal.production.serving.model_in_use import pair_groups
from faircal.production.serving.problems import Refused, too_many, unprocessable

Rows = NDArray[np.intp]


@dataclass(eq=False)
class BatchSide:
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

    def enrolled(self, templates: Mapping[str, NDArray[np.float32]]) -> BatchSide:
        """Return the side with the vectors of its templates."""
        if self.vectors is not None:
            return self
        for number, name in enumerate(self.ids):
            if name not in templates:
                row = int(np.argmax(self.rows == number))
                raise Refused(
                    404, "template", "no such template; enrol it first", f"{self.name}[{row}]"
                )
        names = list(dict.fromkeys(self.ids))
        place = {name: i for i, name in enumerate(names)}
        rows = np.array([place[name] for name in self.ids], dtype=np.intp)[self.rows]
        return BatchSide(self.name, rows, np.stack([templates[name] for name in names]), names)

    @property
    def templates(self) -> list[str] | None:
        """The template of each pair; None where vectors were sent."""
        return [self.ids[row] for row in self.rows] if self.ids else None


def join_sides(
    left: BatchSide, right: BatchSide, dimension: int | None, normalize: bool
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
    for side, matrix in ((left, one), (right, other)):
        check_length(matrix.shape[1], side.name, dimension)
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


_GROUPS = ("left_group", "right_group")


def read_batch(
    body: dict[str, Any], max_pairs: int
) -> tuple[BatchSide, BatchSide, Groups | None, float | None]:
    """Return both sides of the pairs, their groups and the wanted share of genuine pairs.

    Examples
    --------
    >>> left, right, groups, prior = read_batch({"left": [[1, 2]], "right": [[2, 1]]}, 10)
    >>> left.vectors
    array([[1., 2.]], dtype=float32)
    """
    prior = fields.share(body, "prior")
    if "pairs" in body:
        only(body, "pairs", "prior")
        body = _columns(_list(body["pairs"], "pairs", max_pairs))
    else:
        only(body, "left", "right", *_GROUPS, "prior")
    left = _side(_list(body.get("left"), "left", max_pairs), "left")
    right = _side(_list(body.get("right"), "right", max_pairs), "right")
    if len(left.rows) != len(right.rows):
        raise unprocessable(
            f"expected as many left as right, found {len(left.rows)} and {len(right.rows)}",
            "right",
        )
    return left, right, _groups(body, len(left.rows)), prior


def _list(value: Any, where: str, most: int) -> list[Any]:
    if type(value) is not list or not value:
        raise unprocessable("expected a list with an entry for each pair", where)
    if len(value) > most:
        raise too_many(most)
    return value


def _columns(pairs: list[Any]) -> dict[str, Any]:
    for row, pair in enumerate(pairs):
        if type(pair) is not dict:
            raise unprocessable("expected an object with left and right", f"pairs[{row}]")
        only(pair, "left", "right", *_GROUPS)
    columns = {name: [pair.get(name) for pair in pairs] for name in ("left", "right")}
    for name in _GROUPS:
        if any(name in pair for pair in pairs):
            columns[name] = [pair.get(name) for pair in pairs]
    return columns


def _side(values: list[Any], name: str) -> BatchSide:
    """Return one side: all embeddings, or all templates."""
    kinds = {type(value) for value in values}
    rows = np.arange(len(values))
    if kinds <= {dict, str}:
        ids = [value.get("template") if type(value) is dict else value for value in values]
        return BatchSide(
            name, rows, ids=[fields.template_id(v, f"{name}[{i}]") for i, v in enumerate(ids)]
        )
    if kinds != {list}:
        raise unprocessable("expected embeddings, or ids of templates, in all rows of a side", name)
    wide = len(values[0])
    vectors = [fields.vector(value, f"{name}[{i}]", wide) for i, value in enumerate(values)]
    return BatchSide(name, rows, vectors=np.stack(vectors))


def _groups(body: dict[str, Any], n: int) -> Groups | None:
    given = [body.get(name) for name in _GROUPS]
    if given[0] is None and given[1] is None:
        return None
    sides: list[list[str | None]] = []
    for name, value in zip(_GROUPS, given, strict=True):
        if type(value) is not list or len(value) != n:
            raise unprocessable("expected a list with a group for each pair", name)
        sides.append([fields.text({name: each}, name) for each in value])
    return pair_groups(sides[0], sides[1])
