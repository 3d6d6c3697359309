"""The rows that are audited, checked once, and what is measured of a method's probabilities."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from faircal._base.errors import DataError, ParameterError
from faircal._base.registry import did_you_mean
from faircal.data.class_probabilities import as_codes, as_probabilities_matrix
from faircal.data.columns import UNKNOWN, Column
from faircal.evaluation.curves import ScoreHistogram, ScoreSource
from faircal.metrics import DEVIATIONS, Histogram, Ranking, ece, ks, probability_edges
from faircal.metrics.calibration import NLL_EPS
from faircal.metrics.classes import CLASS_METRICS, top_label
from faircal.metrics.decomposition import decompose_binary
from faircal.metrics.intervals.dyadic import Float64, IdentifiedPairs, Int64
from faircal.metrics.measures import check_names
from faircal.metrics.results import ALL, GLOBAL, Result

#: What curves of classes are kept under in place of an attribute.
CLASS = "class"

#: Metrics that are means over rows: each row has a value of its own.
ROW_MEANS = ("accuracy", "nll", "brier")


@dataclass(frozen=True, eq=False)
class ClassRows:
    """Labelled rows of a classifier; build them with `ClassRows.of`.

    Parameters
    ----------
    methods : dict from name to ndarray of float64, shape (n_rows, n_classes)
        What each method says of the same rows.
    codes : ndarray of int64, shape (n_rows,)
    classes : tuple of str
    groups, identity : Column, optional
    """

    methods: dict[str, Float64]
    codes: Int64
    classes: tuple[str, ...]
    groups: Column | None = None
    identity: Column | None = None

    @classmethod
    def of(
        cls,
        probabilities: Any,
        labels: Any,
        *,
        groups: Any = None,
        identity: Any = None,
        classes: Sequence[Any] | None = None,
    ) -> ClassRows:
        """Check arrays; see `faircal.evaluation.classes.audit_classes` for what they are."""
        given = probabilities if isinstance(probabilities, Mapping) else {"": probabilities}
        if not given:
            raise ParameterError("probabilities: expected a method at least, found none")
        matrices = {
            str(name): as_probabilities_matrix(
                matrix, f"probabilities of {name}" if name else "probabilities"
            )
            for name, matrix in given.items()
        }
        shapes = {matrix.shape for matrix in matrices.values()}
        if len(shapes) > 1:
            raise DataError(
                "probabilities: expected the same rows and classes of every method, found shapes "
                f"{', '.join(map(str, sorted(shapes)))}; measure methods on the same rows"
            )
        n, n_classes = shapes.pop()
        if not n:
            raise DataError("probabilities: expected a row at least, found none")
        column = _column(groups, n, "groups")
        check_names(() if column is None else column.names)
        codes, names = _labels(labels, n, n_classes, classes)
        return cls(matrices, codes, names, column, _column(identity, n, "identity"))

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def group_names(self) -> tuple[str, ...]:
        """The groups' names."""
        return () if self.groups is None else self.groups.names

    @cached_property
    def rows(self) -> dict[str, NDArray[np.intp] | slice]:
        """Which rows are in each set: all of them, and those of each group."""
        rows: dict[str, NDArray[np.intp] | slice] = {GLOBAL: slice(None)}
        if self.groups is not None:
            for code, name in enumerate(self.groups.names):
                rows[name] = np.flatnonzero(self.groups.codes == code)
        return rows

    @property
    def per_class(self) -> list[int]:
        """How many rows each class is true of."""
        counts: list[int] = np.bincount(self.codes, minlength=len(self.classes)).tolist()
        return counts

    @cached_property
    def units(self) -> Int64:
        """Each row's unit by number; rows whose unit is not known are each one of their own."""
        return np.arange(len(self)) if self.identity is None else self.identity.apart

    @property
    def independent(self) -> bool:
        """Whether nothing is known of units, so that every row is one."""
        return self.identity is None or not self.identity.names

    @cached_property
    def identified(self) -> dict[str, IdentifiedPairs]:
        """The units of each set: what a sum over rows varies with.

        A row counts with its unit alone, as a genuine pair with its one person.
        """
        identified = {}
        for name, rows in self.rows.items():
            units = self.units[rows]
            if name != GLOBAL or not self.independent:
                units = np.unique(units, return_inverse=True)[1]
            count = int(units.max(initial=-1)) + 1
            identified[name] = IdentifiedPairs(np.ones(len(units), np.bool_), units, units, count)
        return identified

    @cached_property
    def mixed(self) -> bool:
        """Whether some unit has rows in several groups, which then vary together."""
        if self.groups is None or self.independent:
            return False
        once = len(np.unique(self.units[self.groups.codes != UNKNOWN]))
        return sum(self.identified[name].people for name in self.groups.names) > once

    def losses(self, method: str) -> dict[str, Float64]:
        """Return what each row adds to each of `ROW_MEANS`, each of shape (n_rows,)."""
        matrix = self.methods[method]
        true = np.take_along_axis(matrix, self.codes[:, None], axis=1)[:, 0]
        squares = np.einsum("ij,ij->i", matrix, matrix)
        return {
            "accuracy": top_label(matrix, self.codes)[1].astype(np.float64),
            "nll": -np.log(np.maximum(true, NLL_EPS)),
            # The sum over classes of (p − y)²: none below 0 by rounding.
            "brier": np.maximum(squares - 2 * true + 1, 0.0),
        }


def _column(values: Any, n: int, what: str) -> Column | None:
    """Return a column of groups or units with a value for each row."""
    if values is None:
        return None
    column = values if isinstance(values, Column) else Column.of(values, what)
    if len(column) != n:
        raise DataError(
            f"{what}: expected one value per row, {n}; found {len(column)}; "
            "pass columns of the same table"
        )
    return column


def _labels(
    labels: Any, n: int, n_classes: int, classes: Sequence[Any] | None
) -> tuple[Int64, tuple[str, ...]]:
    """Return labels as codes, and the names of the classes.

    Whole numbers beside class names that are text are codes already, not names.
    """
    if classes is None:
        return as_codes(labels, n, n_classes), tuple(map(str, range(n_classes)))
    names = tuple(map(_text, classes))
    if len(names) != n_classes or len(set(names)) != n_classes:
        raise DataError(
            f"classes: expected {n_classes} different names, one per column of the probabilities; "
            f"found {', '.join(names)}"
        )
    named = all(isinstance(each, str) for each in classes)
    if named and getattr(labels, "dtype", np.asarray(labels).dtype).kind in "iu":
        return as_codes(labels, n, n_classes), names
    column = labels if isinstance(labels, Column) else Column.of(labels, "labels")
    if len(column) != n:
        raise DataError(
            f"labels: expected one label per row of the probabilities, {n}; found {len(column)}; "
            "pass two columns of the same table"
        )
    for name in column.names:
        if name not in names:
            raise DataError(f"labels: {name!r} is no class; {did_you_mean(name, names)}")
    if (column.codes == UNKNOWN).any():
        row = int(np.argmax(column.codes == UNKNOWN))
        raise DataError(f"labels: row {row} has none; drop rows without a label")
    places = np.array([names.index(name) for name in column.names], np.int64)
    return places[column.codes], names


def _text(value: Any) -> str:
    """Return a class's name as `Column` spells it: true, 1 for 1.0, no space around."""
    names = Column.of([value], "classes").names
    return names[0] if names else str(value)


#: Calibration errors: of the top label, and of each class and their mean.
TOP, EACH = {"ks": "top_ks", "ece": "top_ece"}, {"ks": "class_ks", "ece": "class_ece"}
#: What the Brier score comes from: miscalibration − discrimination + uncertainty.
PARTS = ("brier_miscalibration", "brier_discrimination", "brier_uncertainty")

Rankings = dict[str, Ranking]


def class_condition(name: str) -> str:
    """Return the condition of a value of one class, as in results: ``class=cat``."""
    return f"{CLASS}={name}"


def rank(rows: ClassRows, probability: Float64, true: NDArray[np.bool_]) -> Rankings:
    """Sort a binary question's rows once; groups are cut out of the sorted order."""
    overall = Ranking.of(probability, true)
    if rows.groups is None:
        return {GLOBAL: overall}
    parts = overall.split(rows.groups.codes, len(rows.groups.names))
    return {GLOBAL: overall} | dict(zip(rows.groups.names, parts, strict=True))


def top_rankings(rows: ClassRows, method: str) -> Rankings:
    """Rank rows by confidence, by whether the top label is right."""
    return rank(rows, *top_label(rows.methods[method], rows.codes))


def class_rankings(rows: ClassRows, method: str) -> Iterator[tuple[str, Rankings]]:
    """Rank rows by the probability of each class, one class after the other."""
    for code, name in enumerate(rows.classes):
        column = np.ascontiguousarray(rows.methods[method][:, code])
        yield name, rank(rows, column, rows.codes == code)


def measure_method(
    rows: ClassRows, method: str, attribute: str = ""
) -> tuple[list[Result], list[ScoreHistogram]]:
    """Measure one method: all rows, each group, each class, over groups."""
    values: dict[tuple[str, str], float] = {}
    curves: list[ScoreHistogram] = []
    for name, loss in rows.losses(method).items():
        for group, which in rows.rows.items():
            part = loss[which]
            values[group, name] = float(part.mean()) if len(part) else float("nan")
    edges = probability_edges()
    source = ScoreSource(method=method, attribute=attribute)
    for group, ranking in top_rankings(rows, method).items():
        values[group, TOP["ks"]], values[group, TOP["ece"]] = ks(ranking), ece(ranking)
        curves.append(ScoreHistogram(source, group, "probability", Histogram.of(ranking, edges)))
    of_classes: list[Result] = []
    for name, rankings in class_rankings(rows, method):
        histogram = Histogram.of(rankings[GLOBAL], edges)
        curves.append(
            ScoreHistogram(source._replace(attribute=CLASS), name, "probability", histogram)
        )
        for group, ranking in rankings.items():
            split = decompose_binary(ranking)
            terms = split.miscalibration, split.discrimination, split.uncertainty
            for part_name, value in zip(PARTS, terms, strict=True):
                values[group, part_name] = values.get((group, part_name), 0.0) + value
            for metric, value in ((EACH["ks"], ks(ranking)), (EACH["ece"], ece(ranking))):
                of_classes.append(_result(group, class_condition(name), metric, value))
                share = value / len(rows.classes)
                values[group, metric] = values.get((group, metric), 0.0) + share
    return [*_listed(values, rows), *of_classes], curves


def _result(group: str, under: str, metric: str, value: float) -> Result:
    return Result(group=group, condition=under, metric=metric, value=value)


def _listed(values: dict[tuple[str, str], float], rows: ClassRows) -> Iterator[Result]:
    """Put values in the order of the metrics, deviations over groups behind those they are of."""
    for metric in (*CLASS_METRICS, *PARTS):
        for group in rows.rows:
            yield _result(group, "", metric, values[group, metric])
        if rows.group_names and metric in CLASS_METRICS:
            of_groups = [values[group, metric] for group in rows.group_names]
            for name, function in DEVIATIONS.items():
                yield _result(ALL, "", f"{metric}_{name}", function(of_groups))
