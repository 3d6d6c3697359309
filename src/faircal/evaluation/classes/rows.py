"""The rows that are audited: what methods say of them, labels, groups and units, checked once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from faircal._base.errors import DataError, ParameterError
from faircal._base.registry import did_you_mean
from faircal.data.class_probabilities import as_codes, as_probabilities_matrix
from faircal.data.columns import UNKNOWN, Column
from faircal.metrics.calibration import NLL_EPS
from faircal.metrics.classes import top_label
from faircal.metrics.intervals.crowd import Crowd
from faircal.metrics.intervals.sharing import Float64, Int64
from faircal.metrics.measures import check_names
from faircal.metrics.results import GLOBAL

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
        found = {
            str(name): as_probabilities_matrix(
                matrix, f"probabilities of {name}" if name else "probabilities"
            )
            for name, matrix in given.items()
        }
        shapes = {matrix.shape for matrix in found.values()}
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
        return cls(found, codes, names, column, _column(identity, n, "identity"))

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def group_names(self) -> tuple[str, ...]:
        """The groups' names."""
        return () if self.groups is None else self.groups.names

    @cached_property
    def rows(self) -> dict[str, NDArray[np.intp] | slice]:
        """Which rows are in each set: all of them, and those of each group."""
        found: dict[str, NDArray[np.intp] | slice] = {GLOBAL: slice(None)}
        if self.groups is not None:
            for code, name in enumerate(self.groups.names):
                found[name] = np.flatnonzero(self.groups.codes == code)
        return found

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
    def crowds(self) -> dict[str, Crowd]:
        """The units of each set: what a sum over rows varies with.

        A row counts with its unit alone, as a genuine pair with its one person.
        """
        found = {}
        for name, rows in self.rows.items():
            units = self.units[rows]
            if name != GLOBAL or not self.independent:
                units = np.unique(units, return_inverse=True)[1]
            count = int(units.max(initial=-1)) + 1
            found[name] = Crowd(np.ones(len(units), np.bool_), units, units, count)
        return found

    @cached_property
    def mixed(self) -> bool:
        """Whether some unit has rows in several groups, which then vary together."""
        if self.groups is None or self.independent:
            return False
        once = len(np.unique(self.units[self.groups.codes != UNKNOWN]))
        return sum(self.crowds[name].people for name in self.groups.names) > once

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
    found = Column.of([value], "classes").names
    return found[0] if found else str(value)
