"""What Dirichlet calibration and the scalings share: a softmax regression on log-probabilities."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from itertools import product
from numbers import Real
from typing import ClassVar, Literal, Self

import numpy as np
from sklearn.base import clone

from faircal._base.errors import ParameterError
from faircal.calibrators.beta import EPS, BetaCalibrator
from faircal.calibrators.classes.base import (
    MOST_ROWS,
    ClassCalibrator,
    Float64,
    Int64,
    PulledMap,
    Strength,
    choose,
    drawn_folds,
    log_losses,
)
from faircal.compute.softmax import (
    GAIN,
    MOST_NEWTON,
    Diagonal,
    Form,
    Full,
    Pull,
    Scalar,
    SoftmaxRows,
    fit,
    softmax,
)
from faircal.compute.threads import each

#: What is tried for the regularisation, strongest first; of large matrices the first three.
REGULARIZATIONS = (1.0, 0.1, 1e-2, 1e-3, 1e-4, 1e-6)
#: A choice does not hang on more digits than this.
_ROUGH = 1e-7
_BLOCK = 4096
#: Rows whose n-th part is enough to begin with.
_PARTS, _MANY = 16, 10_000


class LinearCalibrator(ClassCalibrator):
    """A map softmax(W z + b) of inputs z that are made from log-probabilities.

    Attributes
    ----------
    coefficients_ : ndarray of shape (n_classes, n_classes + 1)
        The slopes W and, last, the intercepts b.
    curvature_ : ndarray of shape (size,)
        Mean second derivative of the log-loss in each free coefficient: what a row tells of it.
    regularization_ : ndarray of shape (2,)
        The weights of off-diagonal slopes and of intercepts.
    """

    _arrays: ClassVar[tuple[str, ...]] = ("coefficients", "curvature", "regularization")

    off_diagonal: float | Literal["cv"]
    intercept: float | None

    @property
    def n_classes_(self) -> int:
        """Number of classes."""
        return len(self.coefficients_)

    @abstractmethod
    def _form(self, n_classes: int) -> Form:
        """Return which coefficients are free."""

    def _inputs(self, probabilities: Float64) -> Float64:
        """Return z, shape (n, n_classes): the log-probabilities unless a subclass knows better."""
        return np.log(np.clip(probabilities, EPS, 1.0))

    def _least(self, n_classes: int) -> Float64 | None:  # noqa: ARG002
        """Return the least value of each coefficient; None where all are free."""
        return None

    def strengths(self) -> Sequence[Strength]:
        """Return the strengths to choose among; full matrices have one more thing to choose."""
        if not isinstance(self._form(self.n_classes_), Full):
            return super().strengths()
        rows = [strength.rows for strength in super().strengths()]
        pulls = [Strength(*pull) for pull in product(rows[1:], (10.0, 1.0))]
        return [Strength(rows[0]), *pulls]

    def towards(
        self, probabilities: Float64, codes: Int64, strengths: Sequence[Strength]
    ) -> list[PulledMap]:
        """Fit a set's map with the coefficients pulled to those of this one.

        A coefficient's pull is as strong as what `strength.rows` rows tell of it.
        """
        form, n = self._form(self.n_classes_), len(codes)
        center = form.flat(self.coefficients_)
        rows = SoftmaxRows(form, self._inputs(probabilities), codes)
        off = ~_on_diagonal(form)
        theta, maps = center, []
        for strength in strengths:
            weight = self.curvature_ * np.where(off, strength.off_diagonal, 1.0)
            pull = Pull(center, (strength.rows * weight + 1e-9) / n)
            theta = fit(rows, pull, theta, least=self._least(form.n_classes), gain=_ROUGH)
            of_set = clone(self)
            of_set._set(form, theta, self.curvature_, self.regularization_)
            maps.append(PulledMap(of_set, 1.0))
        return maps

    def settled(self) -> Self:
        """Return an unfitted copy with the regularisation that was chosen."""
        off, intercept = map(float, self.regularization_)
        copy: Self = clone(self)
        if "off_diagonal" in copy.get_params():
            copy.set_params(off_diagonal=off, intercept=intercept)
        return copy

    def _fit(self, probabilities: Float64, codes: Int64, units: Int64 | None = None) -> None:
        n_classes = probabilities.shape[1]
        form = self._form(n_classes)
        rows = SoftmaxRows(form, self._inputs(probabilities), codes)
        regularization = self._chosen(rows, units)
        # A part of the rows brings it near; few passes over all of them are left.
        start, part = form.identity, len(codes) // _PARTS
        if part >= _MANY:
            sample = SoftmaxRows(form, rows.z[::_PARTS], codes[::_PARTS])
            start = self._fitted(sample, regularization, start, _ROUGH)
        theta = self._fitted(rows, regularization, start)
        self._set(form, theta, rows.curvature(theta), regularization)

    def _set(
        self,
        form: Form,
        theta: Float64,
        curvature: Float64,
        regularization: Float64 | tuple[float, float],
    ) -> None:
        self.coefficients_, self.curvature_ = form.matrix(theta).copy(), curvature
        self.regularization_ = np.array(regularization)

    def _fitted(
        self,
        rows: SoftmaxRows,
        regularization: tuple[float, float],
        start: Float64,
        gain: float = GAIN,
    ) -> Float64:
        form = rows.form
        off, intercept = regularization
        weights = np.zeros((form.n_classes, form.n_classes + 1))
        weights[:, :-1] = 2.0 * off * (1.0 - np.eye(form.n_classes))
        weights[:, -1] = 2.0 * intercept
        pull = Pull(form.identity, form.flat(weights))
        if isinstance(form, Scalar):
            # Next to nothing; it decides where rows are all alike and tell nothing.
            pull = Pull(form.identity, np.full(1, 1e-12))
        return fit(rows, pull, start, least=self._least(form.n_classes), gain=gain)

    def _chosen(self, rows: SoftmaxRows, units: Int64 | None) -> tuple[float, float]:
        """Return the regularisation, by cross-validation where it is not given."""
        if self.off_diagonal != "cv":
            off = float(self.off_diagonal)
            return off, off if self.intercept is None else float(self.intercept)
        if self.intercept is not None and not isinstance(rows.form, Full):
            return 0.0, float(self.intercept)  # there is nothing else
        few = rows.form.size <= MOST_NEWTON
        pairs = [
            (value, value if self.intercept is None else float(self.intercept))
            for value in (REGULARIZATIONS if few else REGULARIZATIONS[:3])
        ]

        def losses(train: Int64, test: Int64) -> Float64:
            part = SoftmaxRows(rows.form, rows.z[train], rows.codes[train])
            theta, by_pair = rows.form.identity, []
            for pair in pairs:
                theta = self._fitted(part, pair, theta, _ROUGH)
                p = softmax(rows.form.log_odds(theta, rows.z[test]))
                by_pair.append(log_losses(p, rows.codes[test]))
            return np.array(by_pair)

        folds = drawn_folds(len(rows.codes), units, 0, MOST_ROWS if few else MOST_ROWS // 5)
        return pairs[choose(len(pairs), folds, losses)]

    def apply(self, probabilities: Float64) -> Float64:
        """Return softmax(W z + b) of checked rows."""
        form, calibrated = self._form(self.n_classes_), np.empty_like(probabilities)
        theta = form.flat(self.coefficients_)

        def work(part: slice) -> None:
            calibrated[part] = softmax(form.log_odds(theta, self._inputs(probabilities[part])))

        each(work, len(probabilities), _BLOCK)
        return calibrated

    def _check_parameters(self) -> None:
        if self.off_diagonal != "cv":
            _check_weight("off_diagonal", self.off_diagonal, "'cv' or a number")
        if self.intercept is not None:
            _check_weight("intercept", self.intercept, "None or a number")


def _check_weight(name: str, value: object, expected: str) -> None:
    if not isinstance(value, Real) or not 0 <= float(value) < np.inf:
        raise ParameterError(f"{name}: expected {expected} of 0 or more, found {value!r}")


def _on_diagonal(form: Form) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """Tell the slopes of own classes and the intercepts from the other slopes."""
    matrix = np.eye(form.n_classes, form.n_classes + 1)
    matrix[:, -1] = 1.0
    return form.flat(matrix) > 0


class DirichletCalibrator(LinearCalibrator):
    """Dirichlet calibration (Kull et al., 2019), fitted exactly.

    ``p(q) = softmax(W log q + b)``

    It minimises the mean log-loss plus ``λ Σ_{i≠j} W_ij² + μ Σ_i b_i²``
    (off-diagonal and intercept regularisation). Two classes are beta calibration, without
    regularisation and with slopes of zero or more, so that the map never decreases.

    Parameters
    ----------
    form : {"full", "diagonal"}, default="full"
        Whether W is a full or a diagonal matrix.
    off_diagonal : float or "cv", default="cv"
        λ; ``"cv"`` chooses it by five-fold cross-validation. It does not apply to two classes.
    intercept : float, optional
        μ; as λ by default.

    Attributes
    ----------
    coefficients_ : ndarray of shape (n_classes, n_classes + 1)
        W and, last, b.
    regularization_ : ndarray of shape (2,)
        λ and μ.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> q = rng.dirichlet([0.5, 0.5, 0.5], size=2000)
    >>> overconfident = q**2 / (q**2).sum(axis=1, keepdims=True)
    >>> codes = (q.cumsum(axis=1) < rng.random((2000, 1))).sum(axis=1)
    >>> calibrator = DirichletCalibrator().fit(overconfident, codes)
    >>> bool(abs(calibrator.predict(overconfident) - q).mean() < 0.02)
    True
    """

    def __init__(
        self,
        *,
        form: Literal["full", "diagonal"] = "full",
        off_diagonal: float | Literal["cv"] = "cv",
        intercept: float | None = None,
    ) -> None:
        self.form = form
        self.off_diagonal = off_diagonal
        self.intercept = intercept

    def _form(self, n_classes: int) -> Form:
        # Two classes have as many coefficients either way.
        diagonal = n_classes == 2 or self.form == "diagonal"
        return Diagonal(n_classes) if diagonal else Full(n_classes)

    def _least(self, n_classes: int) -> Float64 | None:
        return np.array([0.0, 0.0, -np.inf, -np.inf]) if n_classes == 2 else None

    def _fit(self, probabilities: Float64, codes: Int64, units: Int64 | None = None) -> None:
        if probabilities.shape[1] > 2:
            super()._fit(probabilities, codes, units)
            return
        beta = BetaCalibrator(score_range=(0.0, 1.0)).fit(probabilities[:, 1], codes)
        theta, form = np.array([beta.b_, beta.a_, 0.0, beta.c_]), Diagonal(2)
        curvature = SoftmaxRows(form, self._inputs(probabilities), codes).curvature(theta)
        self._set(form, theta, curvature, (0.0, 0.0))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.form not in ("full", "diagonal"):
            raise ParameterError(f"form: expected full or diagonal, found {self.form!r}")


class TemperatureScaling(LinearCalibrator):
    """Temperature scaling (Guo et al., 2017): softmax(z / T).

    One number for all classes: it makes probabilities more or less sure, and never changes which
    class is the likeliest.

    Attributes
    ----------
    coefficients_ : ndarray of shape (n_classes, n_classes + 1)
        1 / T on the diagonal.

    Examples
    --------
    >>> calibrator = TemperatureScaling().fit([[0.9, 0.1], [0.9, 0.1], [0.1, 0.9]], [0, 1, 1])
    >>> calibrator.predict([[0.9, 0.1]]).round(3)
    array([[0.667, 0.333]])
    >>> round(calibrator.temperature_, 2)
    3.17
    """

    off_diagonal = 0.0
    intercept = None

    @property
    def temperature_(self) -> float:
        """T: above 1 where the classifier was too sure; infinite where it knew nothing."""
        slope = float(self.coefficients_[0, 0])
        return 1.0 / slope if slope else float("inf")

    def _form(self, n_classes: int) -> Form:
        return Scalar(n_classes)

    def _least(self, n_classes: int) -> Float64:  # noqa: ARG002
        return np.zeros(1)


class _LogitScaling(LinearCalibrator):
    """A map of logits. Probabilities tell them but for a constant: here they sum to 0."""

    def __init__(
        self, *, off_diagonal: float | Literal["cv"] = "cv", intercept: float | None = None
    ) -> None:
        self.off_diagonal = off_diagonal
        self.intercept = intercept

    def _inputs(self, probabilities: Float64) -> Float64:
        logs = super()._inputs(probabilities)
        logs -= logs.mean(axis=1, keepdims=True)
        return logs


class VectorScaling(_LogitScaling):
    """Vector scaling (Guo et al., 2017): softmax(w z + b), a slope and an intercept a class.

    Parameters
    ----------
    off_diagonal, intercept : float, "cv" or None
        The regularisation of the intercepts, as in `DirichletCalibrator`; there are no off-diagonal
        slopes, so `off_diagonal` counts only where `intercept` is None.

    Examples
    --------
    >>> p = [[0.7, 0.2, 0.1], [0.2, 0.7, 0.1], [0.1, 0.2, 0.7], [0.7, 0.2, 0.1]]
    >>> VectorScaling(off_diagonal=1.0).fit(p, [0, 1, 2, 1]).predict(p[:1]).round(2)
    array([[0.5, 0.5, 0. ]])
    """

    def _form(self, n_classes: int) -> Form:
        return Diagonal(n_classes)


class MatrixScaling(_LogitScaling):
    """Matrix scaling (Guo et al., 2017): softmax(W z + b), regularised off the diagonal.

    Parameters
    ----------
    off_diagonal, intercept : float, "cv" or None
        As in `DirichletCalibrator`.

    Examples
    --------
    >>> p = [[0.7, 0.2, 0.1], [0.2, 0.7, 0.1], [0.1, 0.2, 0.7], [0.7, 0.2, 0.1]]
    >>> MatrixScaling(off_diagonal=1.0).fit(p, [0, 1, 2, 1]).predict(p[:1]).round(2)
    array([[0.5, 0.5, 0. ]])
    """

    def _form(self, n_classes: int) -> Form:
        return Full(n_classes)
