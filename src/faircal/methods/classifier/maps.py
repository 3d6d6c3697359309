"""One calibration map for each set of rows, pulled to that of all rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from faircal._base.errors import ModelFileError, ParameterError
from faircal._base.jobs import Progress, silent
from faircal.calibrators.beta import EPS
from faircal.calibrators.classes import (
    ClassCalibrator,
    PulledMap,
    Strength,
    TemperatureScaling,
    make_class_calibrator,
)
from faircal.calibrators.classes.base import choose, drawn_folds, log_losses
from faircal.compute.softmax import softmax
from faircal.compute.threads import each

Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]
Shrinkage = float | Literal["cv"]

#: Within these maps are mended by a last power; beyond, rows held out tell of something else.
SHARPNESS = (0.5, 2.0)


@dataclass(frozen=True, eq=False)
class SetMaps:
    """Calibration maps of sets of rows: clusters, or groups.

    Parameters
    ----------
    overall : ClassCalibrator
        The map of all rows.
    sets : list of Pulled or None
        Each set's map; None where the set had no rows, or where the map of all rows does as well.
    strength : Strength
        How strongly the sets' maps are pulled to that of all rows.
    sharpness : float
        Probabilities are raised to this power in the end, and divided by their sum: many maps
        fitted on few rows each are surer, or less sure, of themselves than rows held out bear out.
    """

    overall: ClassCalibrator
    sets: list[PulledMap | None]
    strength: Strength
    sharpness: float = 1.0

    @classmethod
    def fit(
        cls,
        probabilities: Float64,
        codes: Int64,
        sets: NDArray[np.integer[Any]],
        n_sets: int,
        *,
        calibrator: str | ClassCalibrator = "dirichlet",
        shrinkage: Shrinkage = "cv",
        units: Int64 | None = None,
        random_state: int = 0,
        progress: Progress = silent,
    ) -> SetMaps:
        """Fit the map of all rows, choose how strongly to pull to it, fit the sets' maps.

        Parameters
        ----------
        probabilities : ndarray of shape (n, n_classes)
            Checked (`faircal.data.class_probabilities`).
        codes : ndarray of shape (n,)
        sets : ndarray of int, shape (n,)
            The set of each row; −1 for rows of none, which count in the map of all rows only.
        n_sets : int
        calibrator : str or ClassCalibrator
        shrinkage : float or "cv"
            As many rows as the map of all rows counts for in a set: 0 fits each set by itself,
            infinity leaves only the map of all rows. ``"cv"`` takes what has the least log-loss on
            rows held out, and the map of all rows unless that is worse by a standard error.
        units : ndarray of shape (n,), optional
            Whom each row comes from, numbered from 0: those of one are held out together.
        random_state : int
            Draws the folds.
        progress : callable

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> p = rng.random(4000)
        >>> group = rng.integers(0, 2, 4000)
        >>> likely = np.where(group == 0, p**3, p)
        >>> codes = (rng.random(4000) < likely).astype(int)
        >>> maps = SetMaps.fit(np.column_stack([1 - p, p]), codes, group, 2)
        >>> maps.apply(np.array([[0.5, 0.5], [0.5, 0.5]]), np.array([0, 1]))[:, 1].round(1)
        array([0.1, 0.5])
        """
        check_shrinkage(shrinkage)
        progress("calibrating", 0, 3, "the map of all rows")
        overall = make_class_calibrator(calibrator).fit(probabilities, codes, units=units)
        progress("calibrating", 1, 3, "how strongly to pull to it")
        strength, sharpness = Strength(np.inf), 1.0
        if n_sets == 1 and (sets == 0).all():
            pass  # the only set is all rows
        elif n_sets and shrinkage == "cv":
            folds = drawn_folds(len(codes), units, random_state)
            trial = _HeldOutRows(overall, probabilities, codes, sets, n_sets)
            candidates = overall.strengths()
            chosen = choose(len(candidates), folds, trial.losses, cautious=True, units=units)
            strength = candidates[chosen]
            if np.isfinite(strength.rows):
                sharpness = trial.sharpness(folds, strength)
        elif n_sets:
            strength = Strength(float(shrinkage))
        progress("calibrating", 2, 3, "the maps of sets")
        maps = _fit_sets(overall, probabilities, codes, sets, n_sets, [strength], units)
        progress("calibrating", 0, 0, "")
        return cls(overall, _first(maps), strength, sharpness)

    def apply(self, probabilities: Float64, sets: NDArray[np.integer[Any]]) -> Float64:
        """Return calibrated probabilities; rows of set −1 get the map of all rows."""
        order, starts = _by_set(sets, len(self.sets))
        calibrated = np.empty((len(probabilities), self.overall.n_classes_))
        rest = order[: starts[0]]
        calibrated[rest] = self.overall.apply(probabilities[rest])

        def work(part: slice) -> None:
            rows = order[starts[part.start] : starts[part.start + 1]]
            calibrated[rows] = self._of_set(self.sets[part.start], probabilities[rows])

        each(work, len(self.sets), 1)
        return calibrated

    def _of_set(self, pulled: PulledMap | None, probabilities: Float64) -> Float64:
        if pulled is None:
            return self.overall.apply(probabilities)
        mixed = pulled.own.apply(probabilities)
        if pulled.weight < 1.0:
            mixed *= pulled.weight
            mixed += (1.0 - pulled.weight) * self.overall.apply(probabilities)
        if self.sharpness != 1.0:
            mixed = softmax(self.sharpness * np.log(np.maximum(mixed, EPS)))
        return mixed

    def get_state(self) -> dict[str, NDArray[Any]]:
        """Return all of it as arrays, for a model file."""
        weights = [np.nan if pulled is None else pulled.weight for pulled in self.sets]
        state: dict[str, NDArray[Any]] = {
            "weights": np.array(weights, dtype=np.float64),
            "pull": np.array([*self.strength, self.sharpness], dtype=np.float64),
        }
        state |= {f"all/{name}": array for name, array in self.overall.get_state().items()}
        for k, pulled in enumerate(self.sets):
            if pulled is not None:
                arrays = pulled.own.get_state().items()
                state |= {f"{k}/{name}": array for name, array in arrays}
        return state

    @classmethod
    def of_state(cls, state: Mapping[str, Any], calibrator: str | ClassCalibrator) -> SetMaps:
        """Undo `get_state`."""
        parts: dict[str, dict[str, Any]] = {}
        for key, array in state.items():
            of, slash, name = key.partition("/")
            if slash:
                parts.setdefault(of, {})[name] = array
        weights = np.asarray(state["weights"], dtype=np.float64)
        expected = {"all", *(str(k) for k in np.flatnonzero(~np.isnan(weights)))}
        if set(parts) != expected:
            raise ModelFileError("damaged: the maps are not those of its clusters; fit it again")

        def restored(of: str) -> ClassCalibrator:
            return make_class_calibrator(calibrator).set_state(parts[of])

        sets = [
            None if np.isnan(weight) else PulledMap(restored(str(k)), float(weight))
            for k, weight in enumerate(weights)
        ]
        rows, off_diagonal, sharpness = map(float, state["pull"])
        return cls(restored("all"), sets, Strength(rows, off_diagonal), sharpness)


def check_shrinkage(shrinkage: object) -> None:
    """Raise unless it is "cv" or a number of rows, 0 or more."""
    if isinstance(shrinkage, str) and shrinkage == "cv":
        return
    number = isinstance(shrinkage, int | float | np.number) and not isinstance(shrinkage, bool)
    if not number or not float(shrinkage) >= 0:  # type: ignore[arg-type]
        raise ParameterError(
            f"shrinkage: expected 'cv' or a number of rows of 0 or more, found {shrinkage!r}"
        )


@dataclass(frozen=True, eq=False)
class _HeldOutRows:
    """Rows to hold some out of. Nothing is fitted on those, not even the map of all rows.

    Only the regularisation of that is the one that was chosen on all rows.
    """

    overall: ClassCalibrator
    probabilities: Float64
    codes: Int64
    sets: NDArray[np.integer[Any]]
    n_sets: int

    def losses(self, train: Int64, test: Int64) -> Float64:
        """Return the log-loss of each row of `test` under each strength; see `choose`."""
        strengths = self.overall.strengths()
        base, maps = self._fitted(train, strengths[1:])
        # The first strength is infinite: the map of all rows.
        likely = base.apply(self.probabilities[test])
        losses = np.tile(log_losses(likely, self.codes[test]), (len(strengths), 1))
        order, starts = _by_set(self.sets[test], self.n_sets)
        for k, pulled in enumerate(maps):
            part = order[starts[k] : starts[k + 1]]
            rows, before, by_set = test[part], None, likely[part]
            for i, (calibrator, weight) in enumerate(pulled or (), 1):
                if calibrator is not before:
                    before, by_set = calibrator, calibrator.apply(self.probabilities[rows])
                mixed = weight * by_set + (1.0 - weight) * likely[part]
                losses[i, part] = log_losses(mixed, self.codes[rows])
        return losses

    def sharpness(self, folds: Int64, strength: Strength) -> float:
        """Return the power of probabilities that has the least log-loss on rows held out."""
        used = np.flatnonzero(folds >= 0)
        calibrated = np.empty((len(used), self.overall.n_classes_))
        for fold in np.unique(folds[used]):
            held = folds[used] == fold
            base, maps = self._fitted(used[~held], [strength])
            test = used[held]
            without = SetMaps(base, _first(maps), strength)
            calibrated[held] = without.apply(self.probabilities[test], self.sets[test])
        power = TemperatureScaling().fit(calibrated, self.codes[used]).coefficients_[0, 0]
        return float(np.clip(power, *SHARPNESS))

    def _fitted(
        self, train: Int64, strengths: Sequence[Strength]
    ) -> tuple[ClassCalibrator, list[list[PulledMap] | None]]:
        rows = self.probabilities[train], self.codes[train]
        base = self.overall.settled().fit(*rows)
        return base, _fit_sets(base, *rows, self.sets[train], self.n_sets, strengths)


def _first(maps: list[list[PulledMap] | None]) -> list[PulledMap | None]:
    """Return the maps of the first strength."""
    return [None if of_set is None else of_set[0] for of_set in maps]


def _fit_sets(
    overall: ClassCalibrator,
    probabilities: Float64,
    codes: Int64,
    sets: NDArray[np.integer[Any]],
    n_sets: int,
    strengths: Sequence[Strength],
    units: Int64 | None = None,
) -> list[list[PulledMap] | None]:
    """Return each set's maps, one for each strength; None where the map of all rows is meant."""
    if not n_sets or not all(np.isfinite(strength.rows) for strength in strengths):
        return [None] * n_sets
    order, starts = _by_set(sets, n_sets)

    def work(part: slice) -> list[PulledMap] | None:
        rows = order[starts[part.start] : starts[part.start + 1]]
        if not len(rows):
            return None
        if strengths[0].rows == 0:
            of = None if units is None else units[rows]
            return [PulledMap(clone(overall).fit(probabilities[rows], codes[rows], units=of), 1.0)]
        return overall.towards(probabilities[rows], codes[rows], strengths)

    return each(work, n_sets, 1)


def _by_set(sets: NDArray[np.integer[Any]], n_sets: int) -> tuple[Int64, Int64]:
    """Return rows in the order of their sets, and where each set begins and ends: (n_sets + 1,)."""
    order = np.argsort(sets, kind="stable")
    return order, np.searchsorted(sets[order], np.arange(n_sets + 1))
