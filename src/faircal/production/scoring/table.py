"""A part of the pairs, scored, as a table: score, probability, and the columns asked for."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from faircal._base.errors import DataError, ParameterError
from faircal._base.registry import did_you_mean
from faircal.data import Dataset
from faircal.data.columns import Column
from faircal.data.tables import decoded
from faircal.methods import Method, Output
from faircal.methods.prior import Float64, Shift, fitted_share
from faircal.metrics import log_likelihood_ratio
from faircal.model import OperatingPoint, Places
from faircal.production.scoring.judging import Placing

_SIDES = ("left", "right")
#: Who is in an image; kept where it is asked for by this name.
IDENTITY = "identity"
#: What can be added, and the columns that it comes to.
COLUMNS = {
    "log_likelihood_ratio": ("log_likelihood_ratio",),
    "similarity": ("similarity",),
    "clusters": ("left_cluster", "right_cluster"),
    "outside": ("left_outside", "right_outside"),
    "decision": ("decision",),
}


@dataclass(frozen=True, eq=False)
class Adding:
    """What to say of pairs besides score and probability.

    Build it with `of`, which checks that the model can.

    Parameters
    ----------
    names : tuple of str
        Of `COLUMNS`.
    share : float
        Of genuine pairs, that the model was fitted at; NaN where nobody needs it.
    placing : Placing, optional
    point : OperatingPoint, optional
    """

    names: tuple[str, ...]
    share: float
    placing: Placing | None
    point: OperatingPoint | None

    @classmethod
    def of(cls, model: Method, names: Sequence[str]) -> Adding:
        """Return what adds the columns of `names`.

        Raises
        ------
        ParameterError
            Where a name is unknown, or the model does not hold what it takes.
        """
        for name in names:
            if name not in COLUMNS:
                raise ParameterError(
                    f"--add {name}: no such column; {did_you_mean(name, list(COLUMNS))}"
                )
        placed = [name for name in names if name in ("clusters", "outside")]
        placing = Placing.of_model(model) if placed else None
        if placed and placing is None:
            raise ParameterError(
                f"--add {placed[0]}: the model says nothing of the images it was fitted on; "
                "fit it again, on embeddings"
            )
        point = model.about_.operating_point
        if "decision" in names and point is None:
            raise ParameterError(
                "--add decision: the model has no operating point; "
                "give it one with 'faircal threshold MODEL DATA --fpr RATE --out MODEL'"
            )
        share = float("nan")
        if "log_likelihood_ratio" in names:
            share = fitted_share(model, "--add log_likelihood_ratio")
        return cls(tuple(dict.fromkeys(names)), share, placing, point)

    def places(self, part: Dataset) -> Places | None:
        """Say where the images of `part` lie, if asked to; the model is told their clusters."""
        if self.placing is None:
            return None
        if part.embeddings is None:
            raise DataError(
                f"{part.where}: has no embeddings, so nothing tells where images lie; "
                "leave clusters and outside out of --add"
            )
        return self.placing(part.embeddings, part.used_images())

    def columns(
        self, part: Dataset, output: Output, told: Float64, places: Places | None
    ) -> dict[str, Any]:
        """Return the columns, a value a pair, in the order they were asked for.

        `told` are the probabilities for the share of genuine pairs that is wanted.
        """
        columns: dict[str, Any] = {}
        for name in self.names:
            if name == "decision" and self.point is not None:
                columns[name] = self.point.decide(output.score, told).astype(np.int8)
            elif name == "log_likelihood_ratio":
                columns[name] = log_likelihood_ratio(output.probability, calibrated_at=self.share)
            elif name == "similarity":
                columns[name] = part.scores
            elif places is not None:
                values = places.cluster if name == "clusters" else places.outside.astype(np.int8)
                for column, side in zip(COLUMNS[name], _SIDES, strict=True):
                    columns[column] = values[getattr(part.pairs, side)]
        return columns


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
    ids = part.images.ids
    columns: dict[str, Any]
    if part.has_images:
        columns = {side: ids.take(pa.array(getattr(part.pairs, side))) for side in _SIDES}
    else:
        # A score table has no image ids: its row numbers, counted from 1, say which pair it is.
        columns = dict.fromkeys(_SIDES, np.asarray(ids)[part.pairs.left] + 1)
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
        column = part.images.identity if name == IDENTITY else part.images.attributes[name]
        if column is None:
            raise DataError(f"{part.where}: --keep identity: the data does not tell who is in it")
        for side in _SIDES:
            codes = column.take(getattr(part.pairs, side))
            columns[f"{side}_{name}"] = decoded(Column(codes, column.names))
    return pa.table(columns)


def needed_columns(model: Method, keep: Sequence[str], attributes: Collection[str]) -> set[str]:
    """Return what must be read of a score table besides its scores to score and keep columns.

    Labels and folds are read in any case: they are checked on the way.
    """
    groups = attributes if model.needs.groups_to_apply else ()
    return {"genuine", "fold", "probability", *keep, *groups}
