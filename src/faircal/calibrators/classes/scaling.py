"""Temperature, vector and matrix scaling of logits."""

from __future__ import annotations

from typing import Literal

import numpy as np

from faircal.calibrators.classes.base import Float64
from faircal.calibrators.classes.linear import FormName, LinearCalibrator


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
    >>> found = TemperatureScaling().fit([[0.9, 0.1], [0.9, 0.1], [0.1, 0.9]], [0, 1, 1])
    >>> found.predict([[0.9, 0.1]]).round(3)
    array([[0.667, 0.333]])
    >>> round(found.temperature_, 2)
    3.17
    """

    off_diagonal = 0.0
    intercept = None

    @property
    def temperature_(self) -> float:
        """T: above 1 where the classifier was too sure; infinite where it knew nothing."""
        slope = float(self.coefficients_[0, 0])
        return 1.0 / slope if slope else float("inf")

    def _form(self, n_classes: int) -> FormName:  # noqa: ARG002
        return "scalar"

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
        slopes, so `off_diagonal` counts only where `intercept` is not told.

    Examples
    --------
    >>> p = [[0.7, 0.2, 0.1], [0.2, 0.7, 0.1], [0.1, 0.2, 0.7], [0.7, 0.2, 0.1]]
    >>> VectorScaling(off_diagonal=1.0).fit(p, [0, 1, 2, 1]).predict(p[:1]).round(2)
    array([[0.5, 0.5, 0. ]])
    """

    def _form(self, n_classes: int) -> FormName:  # noqa: ARG002
        return "diagonal"


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

    def _form(self, n_classes: int) -> FormName:  # noqa: ARG002
        return "full"
