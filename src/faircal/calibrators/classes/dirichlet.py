"""Dirichlet calibration: softmax regression on log-probabilities."""

from __future__ import annotations

from typing import Literal

import numpy as np

from faircal._base.errors import ParameterError
from faircal.calibrators.beta import BetaCalibrator
from faircal.calibrators.classes.base import Float64, Int64
from faircal.calibrators.classes.linear import FormName, LinearCalibrator
from faircal.compute.softmax import Diagonal, SoftmaxRows


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
        μ; as λ unless told.

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
    >>> found = DirichletCalibrator().fit(overconfident, codes)
    >>> bool(abs(found.predict(overconfident) - q).mean() < 0.02)
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

    def _form(self, n_classes: int) -> FormName:
        # Two classes have as many coefficients either way.
        return "diagonal" if n_classes == 2 else self.form

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
