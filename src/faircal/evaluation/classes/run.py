"""Methods compared on rows they were not fitted on: each fold is held out once.

Every method is fitted on the other folds and applied to the one held out. The pooled
probabilities are then measured together, so that every value has one interval and methods are
compared on the same rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from faircal._base.errors import DataError, ParameterError
from faircal._base.jobs import Progress, silent
from faircal.data.classifier_rows import ClassifierRows
from faircal.data.folds import N_FOLDS, deal_people
from faircal.evaluation.classes.methods import CLASS_METHODS, ClassMethod, make_class_method
from faircal.methods.classifier.maps import Shrinkage


@dataclass(frozen=True, eq=False)
class RowFolds:
    """The fold of each row, as codes into `names`, and what is to be said of them."""

    codes: NDArray[np.int64]
    names: tuple[str, ...]
    notes: tuple[str, ...] = ()

    def held_out(self, code: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return the rows to fit on and those of fold `code`."""
        held = self.codes == code
        return np.flatnonzero(~held), np.flatnonzero(held)


def folds_of(data: ClassifierRows, n_folds: int = N_FOLDS, seed: int = 0) -> RowFolds:
    """Return the folds of the table, or draw them: evenly by class, no unit in two of them.

    Parameters
    ----------
    data : Labelled
    n_folds : int
        How many to draw, where the table has no column ``fold``.
    seed : int

    Examples
    --------
    >>> codes = np.array([0, 0, 1, 1])
    >>> data = ClassifierRows("few", np.full((4, 2), 0.5), codes, ("no", "yes"))
    >>> folds = folds_of(data, 2)
    >>> [sorted(codes[folds.codes == fold].tolist()) for fold in (0, 1)], folds.notes
    ([[0, 1], [0, 1]], ('folds drawn: 2 folds of rows, stratified by label, seed 0',))
    """
    if data.fold is not None:
        names, codes = np.unique(data.fold, return_inverse=True)
        if len(names) < 2:
            raise DataError(
                f"{data.name}: column 'fold' has one value only ({names[0]}); give two folds or "
                "more, or drop the column to have folds drawn"
            )
        return RowFolds(codes.astype(np.int64), tuple(map(str, names)), _crossing(data, codes))
    if n_folds < 2:
        raise ParameterError(f"folds: expected a whole number of 2 or more, found {n_folds}")
    units = data.units
    of = "rows" if units is None else "units (identity)"
    count = len(data) if units is None else len(np.unique(units))
    if count < n_folds:
        raise DataError(
            f"{data.name}: expected {n_folds} {of} or more for {n_folds} folds, found {count}; "
            "ask for fewer folds"
        )
    codes = _deal_rows(data, n_folds, seed) if units is None else _deal(data, units, n_folds, seed)
    note = f"folds drawn: {n_folds} folds of {of}, stratified by label, seed {seed}"
    return RowFolds(codes, tuple(str(fold + 1) for fold in range(n_folds)), (note,))


def _crossing(data: ClassifierRows, fold: NDArray[np.intp]) -> tuple[str, ...]:
    """Say how many units have rows in several folds; nothing where there are none."""
    units = data.units
    if units is None:
        return ()
    pairs = np.unique(np.stack([units, fold], axis=1), axis=0)
    crossing = int((np.unique(pairs[:, 0], return_counts=True)[1] > 1).sum())
    note = f"warning: {crossing} units (identity) have rows in several folds: what is held out "
    return (note + "is not independent of what was fitted on",) if crossing else ()


def _labels(data: ClassifierRows) -> NDArray[np.int64]:
    if data.codes is None:
        raise DataError(f"{data.name}: labels are needed to fit and to measure; add them")
    return data.codes


def _deal_rows(data: ClassifierRows, n_folds: int, seed: int) -> NDArray[np.int64]:
    """Deal the rows of each class in rounds; the rounds go on from one class to the next."""
    order = np.random.default_rng(seed).permutation(len(data))
    order = order[np.argsort(_labels(data)[order], kind="stable")]
    fold = np.empty(len(data), dtype=np.int64)
    fold[order] = np.arange(len(data)) % n_folds
    return fold


def _deal(
    data: ClassifierRows, units: NDArray[np.int64], n_folds: int, seed: int
) -> NDArray[np.int64]:
    """Deal units evenly by their most frequent class, heaviest first."""
    _, unit = np.unique(units, return_inverse=True)
    n_units, n_classes = int(unit.max()) + 1, len(data.classes)
    counts = np.bincount(unit * n_classes + _labels(data), minlength=n_units * n_classes)
    counts = counts.reshape(n_units, n_classes)
    rng = np.random.default_rng(seed)
    dealt = deal_people(counts.argmax(axis=1), counts.sum(axis=1), n_folds=n_folds, rng=rng)
    return dealt[unit] - 1


def served(
    data: ClassifierRows, methods: Sequence[str] = (), attribute: str | None = None
) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return the methods that the data can serve, and why others are left out.

    Those asked for by name must all be served.
    """
    left_out = {}
    for name in methods or CLASS_METHODS:
        method = CLASS_METHODS[name]
        if method.needs_features and data.features is None:
            left_out[name] = "it needs features, and there are none"
        elif method.needs_groups and attribute is None:
            left_out[name] = "it needs groups, and there is no attribute"
    for name in methods:
        if name in left_out:
            raise ParameterError(f"method {name}: {left_out[name]}; add them or leave it out")
        if list(methods).count(name) > 1:
            raise ParameterError(f"method {name}: is named more than once; name it once")
    return tuple(name for name in methods or CLASS_METHODS if name not in left_out), left_out


def out_of_fold(
    data: ClassifierRows,
    methods: Sequence[str] = (),
    *,
    attribute: str | None = None,
    calibrator: str = "dirichlet",
    n_clusters: int = 20,
    shrinkage: Shrinkage = "cv",
    seed: int = 0,
    n_folds: int = N_FOLDS,
    folds: RowFolds | None = None,
    progress: Progress = silent,
) -> dict[str, NDArray[np.float64]]:
    """Return each method's probabilities of every row, fitted without the row's fold.

    Parameters
    ----------
    data : Labelled
    methods : sequence of str
        Names in ``CLASS_METHODS``; all that the data can serve unless told.
    attribute : str, optional
        What makes the groups of methods that need them; a+b crosses.
    calibrator, n_clusters, shrinkage
        As of `FairCalClassifier`.
    seed : int
        For drawing folds and for clusters.
    n_folds : int
        How many folds to draw where the table has none.
    folds : RowFolds, optional
        Those of `folds_of`, where it was called already.
    progress : callable

    Returns
    -------
    dict from method to ndarray of shape (n, n_classes)

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(0.05, 0.95, 200)
    >>> heads = (rng.random(200) < p**2).astype(int)
    >>> data = ClassifierRows("coin", np.c_[1 - p, p], heads, ("0", "1"))
    >>> result = out_of_fold(data, ["uncalibrated", "global"])
    >>> {name: array.shape for name, array in result.items()}
    {'uncalibrated': (200, 2), 'global': (200, 2)}
    """
    chosen, _ = served(data, methods, attribute)
    folds = folds or folds_of(data, n_folds, seed)
    labels = _labels(data)
    groups = None if attribute is None else data.groups(attribute).codes
    fresh_methods = {
        name: make_class_method(
            name,
            calibrator=calibrator,
            n_clusters=n_clusters,
            shrinkage=shrinkage,
            random_state=seed,
        )
        for name in chosen
    }
    clustered = any(method.needs_features for method in fresh_methods.values())
    _check_parts(data, labels, folds, n_clusters if clustered else None)
    probabilities = {name: np.empty_like(data.probabilities) for name in chosen}
    total = len(folds.names) * len(fresh_methods)
    for step, (code, name) in enumerate(
        (code, name) for code in range(len(folds.names)) for name in chosen
    ):
        progress("calibrating", step, total, f"{name}, fold {folds.names[code]}")
        fit, held = folds.held_out(code)
        method, units = fresh_methods[name], data.units
        of = None if units is None else np.unique(units[fit], return_inverse=True)[1]
        visible = _visible(data, groups, fit, method)
        method.fit(data.probabilities[fit], labels[fit], units=of, **visible)
        visible = _visible(data, groups, held, method)
        probabilities[name][held] = method.apply(data.probabilities[held], **visible)
    progress("calibrating", total, total, "")
    return probabilities


def _visible(
    data: ClassifierRows,
    groups: NDArray[np.int32] | None,
    rows: NDArray[np.intp],
    method: ClassMethod,
) -> dict[str, NDArray[Any]]:
    """Return what a method may see of `rows`: what it says that it needs, and no more."""
    visible: dict[str, NDArray[Any]] = {}
    if method.needs_features and data.features is not None:
        visible["features"] = data.features[rows]
    if method.needs_groups and groups is not None:
        visible["groups"] = groups[rows]
    return visible


def _check_parts(
    data: ClassifierRows, labels: NDArray[np.int64], folds: RowFolds, n_clusters: int | None
) -> None:
    """Raise where a method can't be fitted without one of the folds."""
    for code, name in enumerate(folds.names):
        fit, _ = folds.held_out(code)
        if (labels[fit] == labels[fit[0]]).all():
            raise DataError(
                f"{data.name}: without fold {name} there are labels of one class only; "
                "use other folds"
            )
        if n_clusters is not None and n_clusters > len(fit):
            raise ParameterError(
                f"clusters: expected at most the {len(fit)} rows to fit on without fold {name}, "
                f"found {n_clusters}; use fewer"
            )
