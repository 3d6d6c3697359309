"""FALCON: a threshold for each image, learnt by kernel ridge regression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from faircal._base.errors import DataError, ParameterError
from faircal._base.registry import check_integer, did_you_mean
from faircal.calibrators import Calibrator
from faircal.compute import Engine
from faircal.compute.threads import each, one_blas_thread
from faircal.methods.base import Claims, Needs
from faircal.methods.inputs import Float64, ImageValues, Inputs, declared
from faircal.methods.normalizing import NormalizingMethod, images_at_a_time
from faircal.methods.trained import check_number

Kernel = Literal["polynomial", "rbf", "linear"]


@dataclass(eq=False, repr=False)
class FALCON(NormalizingMethod):
    """Fair adaptation through local optimal normalisation (Al-Refai et al., WACV 2025).

    Each calibration image has a threshold t, the (1 − `target_fpr`) quantile (linearly
    interpolated) of its cosines with all calibration images of other people. Kernel ridge
    regression, without an intercept, predicts t from the image's unit vector x, and a pair's score
    is, with both predicted thresholds,

        s' = ω s + (1 − ω) (1 − t_l − t_r).

    One global calibrator turns it into a probability.

    Parameters
    ----------
    kernel : {"polynomial", "rbf", "linear"}
        (γ x·y + 1)^degree, exp(−γ |x − y|²) or x·y.
    ridge : float
        What is added to the kernel matrix' diagonal.
    gamma : float
        γ. For vectors of unit length 1 is what 1/d, the usual choice, is for those of length √d.
    degree : int
        Of the polynomial.
    omega : float
        ω, from 0 to 1: the weight of the score.
    target_fpr : float
        The false-match rate of the thresholds.
    max_images : int
        Images that the regression learns from, at most: more are a random sample. The thresholds
        are against all images in any case.
    random_state : int
        Seed of the sample.
    calibrator : str or Calibrator

    Attributes
    ----------
    images_ : ndarray of shape (n, d)
        The unit vectors of the images that the regression learnt from; the model file has them.
    weights_ : ndarray of shape (n,)
        Dual coefficients: t(x) is the sum of ``weights_[i] * kernel(x, images_[i])``.

    References
    ----------
    R. Al-Refai, P. Hempel, C. Biagi, P. Terhörst: FALCON: Fair face recognition via local optimal
    feature normalization. WACV 2025. They choose kernel and ridge for each network.

    Examples
    --------
    >>> import faircal
    >>> cal, test = faircal.simulate("small", seed=0).split(test_fold=5)
    >>> faircal.FALCON().fit(cal).decision_scores(test).shape == (len(test),)
    True
    """

    name = "falcon"
    title = "FALCON"
    needs = Needs(embeddings=True, folds=True)
    claims = Claims(improves_accuracy=True, predictive_equality=True)
    fitted_to_rate = True

    kernel: Kernel = "polynomial"
    ridge: float = 0.1
    gamma: float = 1.0
    degree: int = 3
    omega: float = 0.75
    target_fpr: float = 1e-3
    max_images: int = 2000
    random_state: int = 0
    calibrator: str | Calibrator = "beta"

    def check_parameters(self) -> None:
        """Raise `ParameterError` where a parameter's value cannot be."""
        super().check_parameters()
        if self.kernel not in get_args(Kernel):
            hint = did_you_mean(str(self.kernel), get_args(Kernel))
            raise ParameterError(f"kernel: unknown kernel {self.kernel!r}; {hint}")
        check_integer("degree", self.degree, 1)
        check_integer("max_images", self.max_images, 2)
        for name in ("ridge", "gamma"):
            check_number(name, getattr(self, name), 1e-12)
        check_number("omega", self.omega, 0.0)
        if self.omega > 1:
            raise ParameterError(f"omega: expected a weight from 0 to 1, found {self.omega!r}")

    def _fit_scores(self, inputs: Inputs) -> Float64:
        unit = declared(inputs.embeddings, "embeddings").unit(inputs.images)
        person = declared(inputs.folds, "folds").people[inputs.images]
        rows = np.arange(len(unit))
        if len(unit) > self.max_images:
            rng = np.random.default_rng(self.random_state)
            rows = np.sort(rng.choice(len(unit), self.max_images, replace=False))
            taken = f"learnt from {len(rows)} of {len(unit)} images (max_images)"
            self.diagnostics_.note(taken, choice=True)
        thresholds = image_thresholds(unit, person, rows, self.target_fpr)
        gram = self._gram(unit[rows], unit[rows])
        gram[np.diag_indices_from(gram)] += self.ridge
        self._set_regression(unit[rows], cho_solve(cho_factor(gram), thresholds))
        figures = self.diagnostics_.figures
        figures["thresholds_std"] = float(thresholds.std())
        # (K + ridge) w = t: what is missing to t is ridge times w.
        figures["thresholds_rmse"] = float(self.ridge * np.sqrt(np.mean(self.weights_**2)))
        return self._scores(inputs)

    def _scores(self, inputs: Inputs) -> Float64:
        t = self._values.at(declared(inputs.embeddings, "embeddings"), inputs.images)
        both = t[inputs.left] + t[inputs.right]
        return np.asarray(self.omega * inputs.score + (1 - self.omega) * (1 - both))

    def _gram(self, x: Float64, y: Float64) -> Float64:
        """Return the kernel of each two rows of unit length, (n, m)."""
        products = x @ y.T
        if self.kernel == "rbf":
            return np.asarray(np.exp(2 * self.gamma * (products - 1)))
        if self.kernel == "linear":
            return np.asarray(products)
        base = self.gamma * products + 1
        power = base.copy()
        for _ in range(self.degree - 1):  # some times faster than a power
            power *= base
        return np.asarray(power)

    def _thresholds(self, unit: Float64, engine: Engine) -> Float64:  # noqa: ARG002
        """Return the predicted threshold of each image, (n,)."""
        with one_blas_thread():
            parts = each(
                lambda block: self._gram(unit[block], self.images_) @ self.weights_,
                len(unit),
                images_at_a_time(len(self.images_)),
            )
        return np.concatenate([np.empty(0), *parts])

    def _set_regression(self, images: Float64, weights: Float64) -> None:
        self.images_, self.weights_ = images, weights
        self._values = ImageValues(self.space_, self._thresholds, np.float64, unit=True)

    def _get_state(self) -> dict[str, Any]:
        return {**super()._get_state(), "images": self.images_, "weights": self.weights_}

    def _set_state(self, state: dict[str, Any]) -> None:
        images, weights = (np.asarray(state[k], np.float64) for k in ("images", "weights"))
        if images.ndim != 2 or not images.size or weights.shape != (len(images),):
            raise DataError(
                f"images: expected a matrix and a weight for each row, found shapes "
                f"{images.shape} and {weights.shape}"
            )
        self._restore(state, images.shape[1])
        self._set_regression(images, weights)


def image_thresholds(
    unit: Float64, person: NDArray[np.integer], rows: NDArray[np.intp], rate: float
) -> Float64:
    """Return the (1 − `rate`) quantile of the cosines of `rows` with images of other people.

    Parameters
    ----------
    unit : ndarray of shape (n, d)
    person : ndarray of shape (n,)
    rows : ndarray of shape (m,)
    rate : float
    """
    n = len(unit)
    _, code, images = np.unique(person, return_inverse=True, return_counts=True)
    others = (n - images[code])[rows]
    if others.min() < 1:
        raise DataError("images: expected images of two people or more; add people")
    # From above, the place of the quantile among the others; the next lower one is needed, too.
    place = (others - 1) * rate
    highest = int(place.max()) + 2
    thresholds = np.empty(len(rows))

    def work(block: slice) -> None:
        cosines = unit[rows[block]] @ unit.T
        cosines[code[rows[block], None] == code] = -np.inf
        top = np.sort(np.partition(cosines, max(n - highest, 0), axis=1)[:, -highest:])[:, ::-1]
        which, whole = np.arange(len(top)), place[block].astype(np.intp)
        above, below = top[which, whole], top[which, np.minimum(whole + 1, others[block] - 1)]
        thresholds[block] = above + (place[block] - whole) * (below - above)

    each(work, len(rows), images_at_a_time(n))
    return thresholds
