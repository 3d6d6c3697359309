"""`FairCalClassifier`: a scikit-learn classifier whose probabilities hold in every region."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import NotFittedError as SklearnNotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import _safe_indexing
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d, validate_data

from faircal._base.errors import DataError, ModelFileError, NotFittedError
from faircal._base.jobs import Progress, silent
from faircal._base.registry import check_integer, short
from faircal.calibrators.classes import ClassCalibrator, make_class_calibrator
from faircal.compute import CPU
from faircal.data.class_probabilities import as_probabilities_matrix, as_units
from faircal.methods.classifier.inputs import (
    Floats,
    class_codes,
    class_probabilities,
    column_classes,
    column_names,
    cross_fitted,
    different,
    feature_matrix,
    same_columns,
    two_columns,
)
from faircal.methods.classifier.maps import SetMaps, Shrinkage, check_shrinkage
from faircal.model import About

Float64 = npt.NDArray[np.float64]
Float32 = npt.NDArray[np.float32]

#: Most rows that K-means looks at; a random part where there are more.
MOST_CLUSTERED = 200_000
#: Columns of a model file are spread at least so far.
_SMALLEST = 1e-30
#: How far maps of a model file may be made surer.
_SHARPEST = 1e6
#: What of X is clustered: None for all of it, columns, or a function of the fitted estimator and X.
Features = Callable[[Any, Any], npt.ArrayLike] | Sequence[int] | Sequence[str] | None


class ClassifierNotFittedError(NotFittedError, SklearnNotFittedError):  # type: ignore[misc]
    """A classifier was asked before ``fit``; scikit-learn knows this error too."""


class FairCalClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier with calibrated probabilities that mean the same everywhere in feature space.

    Rows are clustered by their features, without labels or sensitive attributes; each cluster has a
    calibration map of its own, pulled to that of all rows as strongly as cross-validation finds
    best. A new row's cluster decides its map. This is the multi-class extension that the paper
    sketches (its section on multi-class classification).

    It wraps an estimator (`fit`, `predict_proba`), or takes class probabilities of any origin
    (`fit_calibration`, `calibrate`).

    Parameters
    ----------
    estimator : classifier, optional
        What to calibrate; a logistic regression on standardised columns by default. `fit` trains
        copies of it on all folds but one and calibrates their probabilities of that one; then it
        trains one on all rows, which is the one in use. An estimator that is trained already is
        given as ``sklearn.frozen.FrozenEstimator(estimator)``; then `fit` needs rows that it was
        not trained on.
    n_clusters : int, default=20
        Number of clusters; as many as there are different rows where those are fewer.
    calibrator : str or ClassCalibrator, default="dirichlet"
        ``dirichlet``, ``dirichlet-diagonal``, ``temperature``, ``vector``, ``matrix``,
        ``isotonic`` or ``histogram``.
    features : None, sequence of columns or callable, default=None
        What of X is clustered: all of X, the named or numbered columns, or what
        ``features(estimator, X)`` gives, such as the activations of a penultimate layer, shape
        (n, d). Columns are standardised first.
    shrinkage : float or "cv", default="cv"
        As many rows as the map of all rows counts for in a cluster; chosen by cross-validation
        by default. 0 fits every cluster by itself, ``inf`` is one map for all.
    cv : int, splitter or iterable of splits, default=5
        How `fit` holds rows out for the estimator.
    n_init : int, default=1
        Starts of K-means.
    random_state : int, default=0

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    estimator_ : classifier
        The one in use; only after `fit`.
    feature_names_ : tuple of str
        The features' columns, where they have names.
    about_ : About
        What a model file says of the rows that it was fitted on; `faircal.describe` tells it.
    n_clusters_ : int
    cluster_centers_ : ndarray of shape (n_clusters_, d), float32
        In units of the features.
    cluster_counts_ : ndarray of shape (n_clusters_,)
        Calibration rows in each cluster.
    maps_ : SetMaps
    shrinkage_ : float
        The strength that is used.
    n_features_in_ : int
        Columns of X; only after `fit`.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.model_selection import train_test_split
    >>> X, y = load_digits(return_X_y=True)
    >>> X, X_new, y, y_new = train_test_split(X, y, random_state=0)
    >>> model = FairCalClassifier(n_clusters=10).fit(X, y)
    >>> model.predict_proba(X_new).shape
    (450, 10)
    >>> bool(model.score(X_new, y_new) > 0.95)
    True
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        n_clusters: int = 20,
        calibrator: str | ClassCalibrator = "dirichlet",
        features: Features = None,
        shrinkage: Shrinkage = "cv",
        cv: Any = 5,
        n_init: int = 1,
        random_state: int = 0,
    ) -> None:
        self.estimator = estimator
        self.n_clusters = n_clusters
        self.calibrator = calibrator
        self.features = features
        self.shrinkage = shrinkage
        self.cv = cv
        self.n_init = n_init
        self.random_state = random_state

    # ------------------------------------------------------ around an estimator

    def fit(self, X: Any, y: npt.ArrayLike) -> Self:
        """Train the estimator, unless it is frozen, and calibrate it on rows that it did not see.

        Parameters
        ----------
        X : array-like of shape (n, d)
            What the estimator takes.
        y : array-like of shape (n,)
            Classes.
        """
        self._check_parameters()
        raw = X
        X, labels = self._checked(X, y)
        classes = different(labels)
        check_classification_targets(labels)
        if len(classes) < 2:
            raise DataError(
                "y: expected two classes at least, found one class only; give rows of others, too"
            )
        if isinstance(self.estimator, FrozenEstimator):
            fitted = self.estimator
            classes = np.asarray(getattr(fitted, "classes_", classes))
            given = class_probabilities(fitted, X, classes)
        else:
            made = self.estimator
            if made is None:
                made = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
            given = cross_fitted(made, X, labels, classes, self.cv)
            fitted = clone(made).fit(X, labels)
        self.estimator_ = fitted
        self.feature_names_: tuple[str, ...] = ()  # X is checked where it comes in
        checked = as_probabilities_matrix(given)
        return self._calibrate_on(checked, labels, self._features_of(raw, X), classes)

    def predict_proba(self, X: Any) -> Float64:
        """Return calibrated class probabilities, shape (n, n_classes)."""
        self._check_fitted()
        if not hasattr(self, "estimator_"):
            raise ClassifierNotFittedError(
                "this FairCalClassifier was fitted on probabilities and has no estimator; "
                "call calibrate(probabilities, features=…)"
            )
        checked = self._checked(X)
        given = class_probabilities(self.estimator_, checked, self.classes_)
        return self.calibrate(given, features=self._features_of(X, checked))

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the likeliest class of each row, shape (n,)."""
        best = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[best])

    # ------------------------------------------------- probabilities by themselves

    def fit_calibration(
        self,
        probabilities: npt.ArrayLike,
        y: npt.ArrayLike,
        *,
        features: npt.ArrayLike,
        feature_names: Sequence[str] = (),
        classes: npt.ArrayLike | None = None,
        units: npt.ArrayLike | None = None,
        progress: Progress = silent,
    ) -> Self:
        """Learn the maps from class probabilities of any classifier.

        Parameters
        ----------
        probabilities : array-like of shape (n, n_classes), or (n,) for two classes
            Of rows that the classifier was not trained on. One column only is taken as the
            probability of the second class.
        y : array-like of shape (n,)
            The true classes.
        features : array-like of shape (n, d)
            What to cluster, such as the activations of the penultimate layer.
        feature_names : sequence of str, optional
            What the columns are called; a data frame says it itself, and is then asked for the same
            columns in `calibrate`, in whatever order.
        classes : array-like of shape (n_classes,), optional
            The class of each column; by default the sorted values of `y`, or the numbers from 0
            where `y` has only some of those.
        units : array-like of shape (n,), optional
            Whom each row comes from (a person, a patient), where several come from one:
            cross-validation then holds them out together.
        progress : callable

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> X, p = rng.normal(size=(1000, 2)), rng.random(1000)
        >>> y = rng.random(1000) < np.where(X[:, 0] > 0, p, p**3)
        >>> model = FairCalClassifier(n_clusters=2).fit_calibration(p, y, features=X)
        >>> model.calibrate([0.5, 0.5], features=[[2.0, 0.0], [-2.0, 0.0]]).shape
        (2, 2)
        """
        self._check_parameters()
        given = two_columns(probabilities)
        labels = np.asarray(y)
        if labels.shape != (len(given),):
            raise DataError(
                f"y: expected one class per row of the probabilities, shape ({len(given)},); "
                f"found shape {labels.shape}"
            )
        if not len(given):
            raise DataError("probabilities: expected one row at least, found none")
        names = column_classes(labels, given.shape[1], classes)
        whom = None if units is None else as_units(units, len(given))
        for name in ("estimator_", "n_features_in_", "feature_names_in_"):  # of a `fit` before
            if hasattr(self, name):
                delattr(self, name)
        self.feature_names_ = tuple(feature_names) or column_names(features)
        return self._calibrate_on(given, labels, features, names, whom, progress)

    def calibrate(
        self,
        probabilities: npt.ArrayLike,
        *,
        features: npt.ArrayLike,
        feature_names: Sequence[str] = (),
    ) -> Float64:
        """Return calibrated probabilities of new rows, shape (n, n_classes).

        Parameters
        ----------
        probabilities : array-like of shape (n, n_classes), or (n,) for two classes
        features : array-like of shape (n, d)
        feature_names : sequence of str, optional
            As for `fit_calibration`.
        """
        self._check_fitted()
        given = two_columns(probabilities)
        if given.shape[1] != len(self.classes_):
            raise DataError(
                f"probabilities: expected {len(self.classes_)} columns, one for each class, "
                f"found {given.shape[1]}"
            )
        return self.maps_.apply(given, self.clusters(features, len(given), feature_names))

    def clusters(
        self,
        features: npt.ArrayLike,
        n: int | None = None,
        feature_names: Sequence[str] = (),
    ) -> npt.NDArray[np.int32]:
        """Return the cluster of each row, shape (n,).

        Parameters
        ----------
        features : array-like of shape (n, d)
        n : int, optional
            Rows that there have to be.
        feature_names : sequence of str, optional
        """
        self._check_fitted()
        named = same_columns(features, feature_names, self.feature_names_)
        scaled = self._scaled(feature_matrix(named, n, len(self.center_)))
        return CPU.assign(scaled, self._centers)

    @property
    def shrinkage_(self) -> float:
        """As many rows as the map of all rows counts for in a cluster."""
        self._check_fitted()
        return self.maps_.strength.rows

    @property
    def n_clusters_(self) -> int:
        """Number of clusters."""
        self._check_fitted()
        return len(self._centers)

    @property
    def cluster_centers_(self) -> Float32:
        """Centres in units of the features, shape (n_clusters_, d)."""
        self._check_fitted()
        return np.asarray(self._centers * self.scale_ + self.center_, dtype=np.float32)

    def save(self, path: str | Path) -> None:
        """Write the calibration (clusters and maps, no estimator) to a ``.faircal`` file."""
        from faircal.methods.modelfile import save_model

        save_model(self, path)

    # --------------------------------------------------------------------- inner

    def _calibrate_on(
        self,
        probabilities: Float64,
        labels: npt.NDArray[Any],
        features: npt.ArrayLike,
        classes: npt.NDArray[Any],
        units: npt.NDArray[np.int64] | None = None,
        progress: Progress = silent,
    ) -> Self:
        codes = class_codes(labels, classes)
        matrix = feature_matrix(features, len(labels))
        center = matrix.mean(axis=0, dtype=np.float64)
        spread = matrix.std(axis=0, dtype=np.float64)
        # What is within rounding of one value is one value.
        rounding = 8 * np.finfo(matrix.dtype).eps * np.abs(matrix).max(axis=0)
        scale = np.where(spread > rounding, spread, 1.0)
        self.classes_, self.about_ = classes, About()
        self.center_, self.scale_ = center, scale
        vectors = self._scaled(matrix)
        # Centres need no more rows than this to be where they are.
        sample = vectors
        if len(vectors) > MOST_CLUSTERED:
            rng = np.random.default_rng(self.random_state)
            sample = vectors[np.sort(rng.choice(len(vectors), MOST_CLUSTERED, replace=False))]
        # Different rows are counted among all of them only where the first have too few.
        n_different = len(np.unique(sample[: 4 * self.n_clusters], axis=0))
        if n_different < self.n_clusters:
            n_different = len(np.unique(sample, axis=0))
        clustering = CPU.kmeans(
            sample,
            min(self.n_clusters, n_different),
            n_init=self.n_init,
            random_state=self.random_state,
            progress=progress,
        )
        self._centers = clustering.centers
        sets = CPU.assign(vectors, clustering.centers)
        self.cluster_counts_ = np.bincount(sets, minlength=len(self._centers))
        self.maps_ = SetMaps.fit(
            probabilities,
            codes,
            sets,
            len(self._centers),
            calibrator=self.calibrator,
            shrinkage=self.shrinkage,
            units=units,
            random_state=self.random_state,
            progress=progress,
        )
        return self

    def _scaled(self, features: Floats) -> Float32:
        # Double precision where it came so: it may be far from 0 and close together.
        center, scale = (of.astype(features.dtype) for of in (self.center_, self.scale_))
        scaled = np.subtract(features, center)
        scaled /= scale
        return np.asarray(scaled, dtype=np.float32)

    def _features_of(self, given: Any, X: Any) -> Any:
        """Return what is clustered of X, which had names as it was `given`."""
        if self.features is None:
            return X
        if callable(self.features):
            return self.features(self.estimator_, X)
        try:
            return _safe_indexing(given, list(self.features), axis=1)
        except (TypeError, ValueError, IndexError, KeyError) as error:
            raise DataError(f"features: {short(error)}") from error

    def _checked(self, X: Any, *y: Any) -> Any:
        """Check X, and y where it is given; the user's own estimator is to check X itself."""
        given: dict[str, Any] = {"y": y[0]} if y else {}
        skip = self.estimator is not None
        validated = validate_data(self, X, **given, reset=bool(y), skip_check_array=skip)
        return (validated[0], column_or_1d(validated[1])) if y else validated

    def _check_parameters(self) -> None:
        check_integer("n_clusters", self.n_clusters, 1)
        check_integer("n_init", self.n_init, 1)
        check_integer("random_state", self.random_state, 0)
        check_shrinkage(self.shrinkage)
        make_class_calibrator(self.calibrator)

    def _check_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            raise ClassifierNotFittedError(
                f"this {type(self).__name__} is not fitted yet; call fit or fit_calibration first"
            )

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "maps_")

    # For model files.

    def _get_state(self) -> dict[str, npt.NDArray[Any]]:
        state = {
            "center": self.center_,
            "scale": self.scale_,
            "centers": self._centers,
            "cluster_counts": self.cluster_counts_,
        }
        return state | {f"maps/{name}": array for name, array in self.maps_.get_state().items()}

    def _set_state(self, classes: npt.NDArray[Any], state: Mapping[str, Any]) -> None:
        self.classes_ = classes
        self.center_, self.scale_ = state["center"], state["scale"]
        self._centers, self.cluster_counts_ = state["centers"], state["cluster_counts"]
        maps = {key.removeprefix("maps/"): array for key, array in state.items() if "/" in key}
        self.maps_ = SetMaps.of_state(maps, self.calibrator)
        k, d = self._centers.shape
        sizes = len(self.center_), len(self.scale_), len(self.cluster_counts_), len(classes)
        fitting = sizes == (d, d, k, self.maps_.overall.n_classes_) and len(self.maps_.sets) == k
        vectors = self.center_.ndim == self.scale_.ndim == self.cluster_counts_.ndim == 1
        if not (fitting and vectors and 1 <= k <= self.n_clusters and d):
            raise ModelFileError("damaged: its parts do not fit together; fit it again")
        if not (self.scale_ >= _SMALLEST).all() or (self.cluster_counts_ < 0).any():
            raise ModelFileError("damaged: scales and counts below 0; fit it again")
        self._try_maps(len(classes))

    def _try_maps(self, n_classes: int) -> None:
        """Raise unless every map makes probabilities of probabilities."""
        by_cluster = {k: pulled for k, pulled in enumerate(self.maps_.sets) if pulled is not None}
        given = np.full((len(by_cluster) + 1, n_classes), 1.0 / n_classes)
        calibrated = self.maps_.apply(given, np.array([-1, *by_cluster]))
        sound = (
            np.allclose(calibrated.sum(axis=1), 1.0, rtol=0, atol=1e-6)
            and (calibrated >= 0).all()
            and all(0 <= pulled.weight <= 1 for pulled in by_cluster.values())
            and 0 < self.maps_.sharpness <= _SHARPEST
            and self.maps_.strength.rows >= 0
        )
        if not sound:
            raise ModelFileError("damaged: its maps make no probabilities; fit it again")
