"""The rows that are audited, checked once, and the binary questions that are asked of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from faircal._base.errors import DataError, ParameterError
from faircal.data.class_probabilities import as_codes, as_probabilities_matrix, label_codes
from faircal.data.columns import UNKNOWN, Column
from faircal.metrics import Ranking
from faircal.metrics.classes import top_label
from faircal.metrics.intervals.dyadic import Float64, IdentifiedPairs, Int64
from faircal.metrics.intervals.sufficient_data import NOT_ENOUGH, insufficient_data_reason
from faircal.metrics.measures import check_names
from faircal.metrics.results import ALL, GLOBAL

Rankings = dict[str, Ranking]


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
        by_group = None if groups is None else _column(groups, n, "groups")
        check_names(() if by_group is None else by_group.names)
        people = None if identity is None else _column(identity, n, "identity")
        if people is not None and not people.names:
            people = None  # nobody is named: every row is a unit of its own
        return cls(matrices, *_labels(labels, n, n_classes, classes), by_group, people)

    @property
    def group_names(self) -> tuple[str, ...]:
        """The groups' names."""
        return () if self.groups is None else self.groups.names

    @cached_property
    def sets(self) -> dict[str, NDArray[np.intp] | slice]:
        """Which rows are in each set: all of them, and those of each group."""
        sets: dict[str, NDArray[np.intp] | slice] = {GLOBAL: slice(None)}
        if self.groups is not None:
            for code, name in enumerate(self.groups.names):
                sets[name] = np.flatnonzero(self.groups.codes == code)
        return sets

    @cached_property
    def units(self) -> Int64:
        """Each row's unit by number; each row is one where nothing is known of its unit."""
        return np.arange(len(self.codes)) if self.identity is None else self.identity.apart

    @cached_property
    def identified(self) -> dict[str, IdentifiedPairs]:
        """The units of each set: what a sum over rows varies with.

        A row counts with its unit alone, as a genuine pair with its one person.
        """
        identified = {}
        for name, rows in self.sets.items():
            units = np.unique(self.units[rows], return_inverse=True)[1]
            count = int(units.max(initial=-1)) + 1
            identified[name] = IdentifiedPairs(np.ones(len(units), np.bool_), units, units, count)
        return identified

    def count(self, group: str = GLOBAL) -> int:
        """Return the number of rows."""
        return len(self.identified[group].genuine)

    def effective_units(self, group: str = GLOBAL) -> float:
        """Return how many units, each with equally many rows, would tell as much."""
        identified = self.identified[group]
        if len(identified.people) == len(identified.genuine):  # each row is a unit
            return float(len(identified.people))
        return identified.trials["fnr"].effective_people

    @cached_property
    def mixed(self) -> bool:
        """Whether some unit has rows in several groups, which then vary together."""
        if self.groups is None or self.identity is None:
            return False
        once = len(np.unique(self.units[self.groups.codes != UNKNOWN]))
        return sum(len(self.identified[name].people) for name in self.groups.names) > once

    @cached_property
    def withheld(self) -> dict[str, str]:
        """Why values must not be shown, by set; empty where they may.

        Values over groups may be shown where two groups, or the only one, have enough data: of one
        among several, noise would decide.
        """
        withheld: dict[str, str] = {}
        for name in self.sets:
            n, units = self.count(name), self.effective_units(name)
            reason = insufficient_data_reason("", n, units, of="rows", who=("unit", "units"))
            withheld[name] = reason or withheld.get(GLOBAL, "")
        reportable = sum(not withheld[name] for name in self.group_names)
        withheld[ALL] = "" if reportable >= min(2, len(self.group_names)) else NOT_ENOUGH
        return withheld

    @property
    def reportable(self) -> list[str]:
        """The groups with enough data."""
        return [name for name in self.group_names if not self.withheld[name]]

    def top_rankings(self, method: str) -> Rankings:
        """Rank rows by confidence, by whether the top label is right."""
        return self._ranked(*top_label(self.methods[method], self.codes))

    def class_rankings(self, method: str) -> Iterator[tuple[str, Rankings]]:
        """Rank rows by the probability of each class, one class after the other."""
        for code, name in enumerate(self.classes):
            column = np.ascontiguousarray(self.methods[method][:, code])
            yield name, self._ranked(column, self.codes == code)

    def _ranked(self, probability: Float64, true: NDArray[np.bool_]) -> Rankings:
        """Sort a binary question's rows once; groups are cut out of the sorted order."""
        overall = Ranking.of(probability, true)
        if self.groups is None:
            return {GLOBAL: overall}
        parts = overall.split(self.groups.codes, len(self.groups.names))
        return {GLOBAL: overall} | dict(zip(self.groups.names, parts, strict=True))


def _column(values: Any, n: int, what: str) -> Column:
    """Return a column with a value for each row."""
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
    # As `Column` spells a name: true, 1 for 1.0, no space around.
    spelt = (Column.of([name], "classes").names or (str(name),) for name in classes)
    names = tuple(name for (name,) in spelt)
    if len(names) != n_classes or len(set(names)) != n_classes:
        raise DataError(
            f"classes: expected {n_classes} different names, one per column of the probabilities; "
            f"found {', '.join(names)}"
        )
    named = all(isinstance(each, str) for each in classes)
    if named and getattr(labels, "dtype", np.asarray(labels).dtype).kind in "iu":
        return as_codes(labels, n, n_classes), names
    column = _column(labels, n, "labels")
    return label_codes(column, names), names
