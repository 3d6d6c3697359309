"""Classifiers: a fit of FairCalClassifier, and its Dirichlet map against L-BFGS."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from benchmarks.figure import Figure, aside, ratio
from benchmarks.timing import once, race
from faircal import DirichletCalibrator, FairCalClassifier

Float64 = NDArray[np.float64]


class _Rows(NamedTuple):
    given: Float64
    codes: NDArray[np.intp]
    features: NDArray[np.float32]


def rows(n: int, n_classes: int, d: int, groups: int = 30) -> _Rows:
    """Return rows of groups that differ in how sure, and of what, the classifier should be."""
    rng = np.random.default_rng(0)
    group = rng.integers(0, groups, n)
    features = (rng.normal(size=(n, d)) + rng.normal(size=(groups, d))[group]).astype(np.float32)
    logits = 2.5 * rng.normal(size=(n, n_classes))
    sure = np.exp(0.4 * rng.normal(size=groups))[group, None]
    true = softmax(logits * sure + 0.6 * rng.normal(size=(groups, n_classes))[group], axis=1)
    codes = (true.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    return _Rows(softmax(1.5 * logits, axis=1), np.minimum(codes, n_classes - 1), features)


def lbfgs(found: _Rows, off: float) -> Float64:
    """Fit the Dirichlet map as one would first write it: scipy's L-BFGS, all rows at once."""
    z, codes = np.log(found.given), found.codes
    n, c = z.shape
    weight = np.full((c, c + 1), off)
    np.fill_diagonal(weight, 0.0)

    def loss(flat: Float64) -> tuple[float, Float64]:
        matrix = flat.reshape(c, c + 1)
        logs = log_softmax(z @ matrix[:, :-1].T + matrix[:, -1], axis=1)
        away = np.exp(logs)
        away[np.arange(n), codes] -= 1
        slope = np.column_stack([away.T @ z, away.sum(axis=0)]) / n + 2 * weight * matrix
        return -logs[np.arange(n), codes].mean() + (weight * matrix**2).sum(), slope.ravel()

    options = {"ftol": 1e-12, "gtol": 1e-7, "maxiter": 1000, "maxfun": 2000}
    start = np.eye(c, c + 1).ravel()
    return minimize(loss, start, jac=True, method="L-BFGS-B", options=options).x.reshape(c, c + 1)


def figures(quick: bool) -> list[Figure]:
    size = 2_000 if quick else 50_000
    small, off = rows(size, 10, 5), 0.01
    ours = DirichletCalibrator(off_diagonal=off).fit(small.given, small.codes)
    theirs = lbfgs(small, off)
    z = np.log(small.given)
    said = softmax(z @ theirs[:, :-1].T + theirs[:, -1], axis=1)
    took = race(
        {
            "ours": lambda: DirichletCalibrator(off_diagonal=off).fit(small.given, small.codes),
            "L-BFGS": lambda: lbfgs(small, off),
        },
        also_alone=["L-BFGS"],
    )
    large = rows(10_000 if quick else 1_000_000, 10, 100)
    model = FairCalClassifier(n_clusters=50)
    seconds = once(lambda: model.fit_calibration(large.given, large.codes, features=large.features))
    using = once(lambda: model.calibrate(large.given, features=large.features))
    return [
        ratio(
            "speed-up",
            f"Dirichlet map of {size:,} rows, 10 classes: scipy's L-BFGS / ours",
            took["L-BFGS"] / took["ours"],
        ),
        aside(
            "difference",
            "    largest difference of a probability",
            float(np.abs(ours.predict(small.given) - said).max()),
        ),
        Figure(
            "seconds",
            f"fit of {len(large.codes):,} rows × 100 features × 10 classes, 50 clusters",
            seconds,
            "lower",
            goal=60.0,
            unit="s",
        ),
        aside("using", "    probabilities of all of them", using, "s"),
    ]
