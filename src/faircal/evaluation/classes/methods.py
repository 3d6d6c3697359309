"""What FairCal is compared with: ways to calibrate a classifier, each on rows it was not fitted on.

Every method is fitted on all folds but one and applied to the one held out. The pooled
probabilities are then measured together, so that every value has one interval and methods are
compared on the same rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from faircal._base.errors import DataError, ParameterError
from faircal._base.jobs import Progress, silent
from faircal._base.registry import Registry
from faircal.calibrators.classes import ClassCalibrator
from faircal.data.classifier_rows import ClassifierRows
from faircal.data.folds import N_FOLDS, deal_people
from faircal.methods.classifier import FairCalClassifier, SetMaps
from faircal.methods.classifier.maps import Shrinkage

Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]

#: The probabilities as they come: what others are made of.
UNCALIBRATED = "uncalibrated"


class MethodRows(NamedTuple):
    """What a method sees of rows; group −1 is unknown, units are numbered from 0."""

    probabilities: Float64
    features: NDArray[np.float32] | None = None
    groups: NDArray[np.integer[Any]] | None = None
    units: Int64 | None = None


@dataclass(frozen=True)
class ClassMethod:
    """A way to calibrate: what has a map of its own.

    Parameters
    ----------
    title : str
    maps_of : {"", "rows", "features", "groups"}
        No map; one for all rows; one for each cluster of features, or for each group.
    pulled : bool
        Whether the groups' maps are pulled to that of all rows, or each is fitted by itself.
    yardstick : bool
        Shown apart and never best: it knows what others are not given.

    Examples
    --------
    >>> p = np.tile([[0.9, 0.1], [0.1, 0.9]], (50, 1))
    >>> right = np.tile([0, 1, 1, 1], 25)
    >>> calibrated = CLASS_METHODS["global"].fit(MethodRows(p), right, calibrator="histogram")
    >>> calibrated(MethodRows(p[:2])).round(2)
    array([[0.5, 0.5],
           [0. , 1. ]])
    """

    title: str
    maps_of: Literal["", "rows", "features", "groups"]
    pulled: bool = True
    yardstick: bool = False

    @property
    def needs_features(self) -> bool:
        """Whether it must be given features."""
        return self.maps_of == "features"

    @property
    def needs_groups(self) -> bool:
        """Whether it must be given each row's group."""
        return self.maps_of == "groups"

    def fit(
        self,
        rows: MethodRows,
        codes: Int64,
        *,
        calibrator: str | ClassCalibrator = "dirichlet",
        n_clusters: int = 20,
        shrinkage: Shrinkage = "cv",
        random_state: int = 0,
    ) -> Callable[[MethodRows], Float64]:
        """Learn from labelled rows; return what calibrates others.

        Parameters
        ----------
        rows : MethodRows
        codes : ndarray of shape (n,)
            The column of the true class.
        calibrator, n_clusters, shrinkage, random_state
            As of `FairCalClassifier`; `shrinkage` also pulls the maps of groups.
        """
        if not self.maps_of:
            return lambda other: other.probabilities
        fitting: dict[str, Any] = {"calibrator": calibrator, "random_state": random_state}
        fitting["shrinkage"] = shrinkage if self.pulled else 0.0
        if self.needs_features:
            model = FairCalClassifier(n_clusters=n_clusters, **fitting)
            model.fit_calibration(
                rows.probabilities,
                codes,
                features=_given(rows.features, self.title, "features"),
                classes=np.arange(rows.probabilities.shape[1]),
                units=rows.units,
            )
            return lambda other: model.calibrate(
                other.probabilities, features=_given(other.features, self.title, "features")
            )
        groups = self._groups(rows)
        n_groups = int(groups.max(initial=-1)) + 1
        maps = SetMaps.fit(rows.probabilities, codes, groups, n_groups, units=rows.units, **fitting)

        def apply(other: MethodRows) -> Float64:
            # A group that the calibration rows had none of gets the map of all.
            sets = self._groups(other)
            return maps.apply(other.probabilities, np.where(sets < n_groups, sets, -1))

        return apply

    def _groups(self, rows: MethodRows) -> NDArray[np.integer[Any]]:
        """Return the group of each row; −1 where the method is not given it."""
        if not self.needs_groups:
            return np.full(len(rows.probabilities), -1)
        return _given(rows.groups, self.title, "groups")


def _given(values: NDArray[Any] | None, title: str, what: str) -> NDArray[Any]:
    if values is None:
        raise ParameterError(f"{title}: expected the {what} of the rows, found none")
    return values


CLASS_METHODS: Registry[ClassMethod] = Registry("method of classes")
CLASS_METHODS.register(UNCALIBRATED, ClassMethod("Uncalibrated", ""))
CLASS_METHODS.register("global", ClassMethod("Global", "rows"))
CLASS_METHODS.register("faircal", ClassMethod("FairCal", "features"))
CLASS_METHODS.register(
    "groupwise", ClassMethod("Group-wise", "groups", pulled=False, yardstick=True)
)
CLASS_METHODS.register("oracle", ClassMethod("Oracle", "groups", yardstick=True))


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


# --------------------------------------------------------------------- folds


@dataclass(frozen=True, eq=False)
class RowFolds:
    """The fold of each row, as codes into `names`, and what is to be said of them."""

    codes: Int64
    names: tuple[str, ...]
    notes: tuple[str, ...] = ()


def folds_of(data: ClassifierRows, n_folds: int = N_FOLDS, seed: int = 0) -> RowFolds:
    """Return the folds of the table, or draw them: evenly by class, no unit in two of them.

    Parameters
    ----------
    data : ClassifierRows
        Labelled.
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
    of = "rows" if data.units is None else "units (identity)"
    count = len(data) if data.units is None else len(np.unique(data.units))
    if count < n_folds:
        raise DataError(
            f"{data.name}: expected {n_folds} {of} or more for {n_folds} folds, found {count}; "
            "ask for fewer folds"
        )
    note = f"folds drawn: {n_folds} folds of {of}, stratified by label, seed {seed}"
    codes = _dealt(data, n_folds, np.random.default_rng(seed))
    return RowFolds(codes, tuple(str(fold + 1) for fold in range(n_folds)), (note,))


def _crossing(data: ClassifierRows, fold: NDArray[np.intp]) -> tuple[str, ...]:
    """Say how many units have rows in several folds; nothing where there are none."""
    if data.units is None:
        return ()
    pairs = np.unique(np.stack([data.units, fold], axis=1), axis=0)
    crossing = int((np.unique(pairs[:, 0], return_counts=True)[1] > 1).sum())
    note = f"warning: {crossing} units (identity) have rows in several folds: what is held out "
    return (note + "is not independent of what was fitted on",) if crossing else ()


def _labels(data: ClassifierRows) -> Int64:
    if data.codes is None:
        raise DataError(f"{data.name}: labels are needed to fit and to measure; add them")
    return data.codes


def _dealt(data: ClassifierRows, n_folds: int, rng: np.random.Generator) -> Int64:
    """Return a fold for each row."""
    labels = _labels(data)
    if data.units is None:
        # The rows of each class are dealt in rounds, which go on from one class to the next.
        order = rng.permutation(len(data))
        order = order[np.argsort(labels[order], kind="stable")]
        fold = np.empty(len(data), dtype=np.int64)
        fold[order] = np.arange(len(data)) % n_folds
        return fold
    # Units are dealt evenly by their most frequent class, heaviest first.
    names, unit = np.unique(data.units, return_inverse=True)
    counts = np.zeros((len(names), len(data.classes)), np.int64)
    np.add.at(counts, (unit, labels), 1)
    dealt = deal_people(counts.argmax(axis=1), counts.sum(axis=1), n_folds=n_folds, rng=rng)
    return dealt[unit] - 1


def out_of_fold(
    data: ClassifierRows,
    methods: Sequence[str] = (),
    *,
    attribute: str | None = None,
    folds: RowFolds | None = None,
    n_clusters: int = 20,
    seed: int = 0,
    progress: Progress = silent,
    **settings: Any,
) -> dict[str, Float64]:
    """Return each method's probabilities of every row, fitted without the row's fold.

    Parameters
    ----------
    data : ClassifierRows
        Labelled.
    methods : sequence of str
        Names in ``CLASS_METHODS``; all that the data can serve by default.
    attribute : str, optional
        What makes the groups of methods that need them; a+b crosses.
    folds : RowFolds, optional
        Those of `folds_of` by default.
    n_clusters, seed
        As of `FairCalClassifier`; the seed also draws folds.
    progress : callable
    **settings
        ``calibrator`` and ``shrinkage`` of `ClassMethod.fit`.

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
    folds = folds or folds_of(data, seed=seed)
    labels = _labels(data)
    groups = None if attribute is None else data.groups(attribute).codes
    clustered = any(CLASS_METHODS[name].needs_features for name in chosen)
    _check_parts(data, labels, folds, n_clusters if clustered else None)
    probabilities = {name: np.empty_like(data.probabilities) for name in chosen}
    total = len(folds.names) * len(chosen)
    for step, (code, name) in enumerate(
        (code, name) for code in range(len(folds.names)) for name in chosen
    ):
        progress("calibrating", step, total, f"{name}, fold {folds.names[code]}")
        held, method = folds.codes == code, CLASS_METHODS[name]
        calibrate = method.fit(
            _visible(data, groups, np.flatnonzero(~held), method),
            labels[~held],
            n_clusters=n_clusters,
            random_state=seed,
            **settings,
        )
        rows = np.flatnonzero(held)
        probabilities[name][rows] = calibrate(_visible(data, groups, rows, method))
    progress("calibrating", total, total, "")
    return probabilities


def _visible(
    data: ClassifierRows,
    groups: NDArray[np.int32] | None,
    rows: NDArray[np.intp],
    method: ClassMethod,
) -> MethodRows:
    """Return what a method may see of `rows`: what it says that it needs, and no more."""
    features = data.features if method.needs_features else None
    groups = groups if method.needs_groups else None
    units = data.units
    return MethodRows(
        data.probabilities[rows],
        None if features is None else features[rows],
        None if groups is None else groups[rows],
        None if units is None else np.unique(units[rows], return_inverse=True)[1],
    )


def _check_parts(
    data: ClassifierRows, labels: Int64, folds: RowFolds, n_clusters: int | None
) -> None:
    """Raise where a method can't be fitted without one of the folds."""
    for code, name in enumerate(folds.names):
        fit = np.flatnonzero(folds.codes != code)
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
