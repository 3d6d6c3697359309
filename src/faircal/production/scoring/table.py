"""A part of the pairs, scored, as a table."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from faircal._base.errors import DataError
from faircal.data import Dataset
from faircal.data.columns import Column
from faircal.data.writers import decoded
from faircal.methods import Method
from faircal.production.scoring.adding import Adding
from faircal.production.scoring.prior import Shift

_SIDES = ("left", "right")
#: Who is in an image; kept where it is asked for by this name.
IDENTITY = "identity"


def score_part(
    model: Method,
    part: Dataset,
    keep: Sequence[str] = (),
    shift: Shift | None = None,
    adding: Adding | None = None,
) -> pa.Table:
    """Return what `model` says of each pair: ``left``, ``right``, ``score``, ``probability``.

    Parameters
    ----------
    model : Method
    part : Dataset
    keep : sequence of str
        What to carry over: ``genuine``, ``fold``, and ``identity`` and attributes (as
        ``left_NAME`` and ``right_NAME``).
    shift : Shift, optional
        Moves probabilities to another share of genuine pairs; scores stay.
    adding : Adding, optional
        More columns, after these two.
    """
    places = None if adding is None else adding.places(part)  # before the model looks for them
    output = model.apply(part)
    columns: dict[str, Any] = _ids(part)
    probability = output.probability if shift is None else shift(output.probability)
    columns |= {"score": output.score, "probability": probability}
    if adding is not None:
        columns |= adding.columns(part, output, probability, places)
    if "genuine" in keep:
        columns["genuine"] = part.genuine.astype(np.int8)
    if "fold" in keep:
        columns["fold"] = pa.array(part.pairs.fold)
    for name in keep:
        if name in ("genuine", "fold"):
            continue
        column = _column(part, name)
        for side in _SIDES:
            codes = column.take(getattr(part.pairs, side))
            columns[f"{side}_{name}"] = decoded(Column(codes, column.names))
    return pa.table(columns)


def _column(part: Dataset, name: str) -> Column:
    if name != IDENTITY:
        return part.images.attributes[name]
    if part.images.identity is None:
        raise DataError(f"{part.where}: --keep identity: the data does not tell who is in it")
    return part.images.identity


def _ids(part: Dataset) -> dict[str, Any]:
    ids = part.images.ids
    if part.has_images:
        return {side: ids.take(pa.array(getattr(part.pairs, side))) for side in _SIDES}
    # A score table has no image ids: its row numbers, counted from 1, say which pair it is.
    rows = np.asarray(ids)[part.pairs.left] + 1
    return dict.fromkeys(_SIDES, rows)


def needed_columns(model: Method, keep: Sequence[str], attributes: Collection[str]) -> set[str]:
    """Return what must be read of a score table besides its scores to score and keep columns.

    Labels and folds are read in any case: they are checked on the way.
    """
    groups = attributes if model.needs.groups_to_apply else ()
    return {"genuine", "fold", "probability", *keep, *groups}
