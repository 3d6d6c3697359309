"""A real image classifier, where its data is there: probabilities of a VGG network on CIFAR-10.

The data is never part of this repository; without it these tests are skipped. Figures are checked
against implementations that are not ours: scikit-learn's temperature scaling, an L-BFGS fit of the
Dirichlet map written here, and calibration errors summed bin by bin.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax
from sklearn.calibration import _TemperatureScaling
from sklearn.metrics import log_loss

from faircal import DirichletCalibrator, FairCalClassifier, TemperatureScaling
from faircal.metrics import multiclass_nll, top_label_ece

FILE = Path(__file__).parents[3] / "shared" / "data" / "cifar10-vgg" / "probabilities.npz"
pytestmark = pytest.mark.skipif(not FILE.exists(), reason="real data is not here")


@pytest.fixture(scope="module")
def halves():
    """Return (probabilities, labels) to calibrate on, and those to test on."""
    with np.load(FILE) as found:
        p, y = found["probs"].astype(np.float64), found["labels"].astype(int)
    p /= p.sum(axis=1, keepdims=True)
    turned = np.random.default_rng(0).permutation(len(y))
    return (p[turned[:5000]], y[turned[:5000]]), (p[turned[5000:]], y[turned[5000:]])


def ece(p, y):
    """Sum the gaps of ten bins of equal mass, one after the other."""
    sure, right = p.max(axis=1), p.argmax(axis=1) == y
    order = np.argsort(sure, kind="stable")
    return sum(
        abs(sure[part].mean() - right[part].mean()) * len(part) / len(y)
        for part in np.array_split(order, 10)
    )


@pytest.mark.parametrize("calibrator", [DirichletCalibrator(), TemperatureScaling()])
def test_loss_and_calibration_error_fall(halves, calibrator):
    (p, y), (new, labels) = halves
    found = calibrator.fit(p, y).predict(new)
    assert multiclass_nll(found, labels) == pytest.approx(log_loss(labels, found), rel=1e-9)
    assert top_label_ece(found, labels) == pytest.approx(ece(found, labels), abs=5e-4)
    assert multiclass_nll(found, labels) < 0.85 * multiclass_nll(new, labels)
    assert top_label_ece(found, labels) < 0.5 * top_label_ece(new, labels)


def test_temperature_is_scikit_learns(halves):
    (p, y), (new, _) = halves
    theirs = _TemperatureScaling().fit(np.log(p), y)
    found = TemperatureScaling().fit(p, y)
    assert 1 / found.temperature_ == pytest.approx(theirs.beta_, rel=1e-3)
    told = softmax(theirs.beta_ * np.log(new), axis=1)
    np.testing.assert_allclose(found.predict(new), told, atol=1e-3)


def test_dirichlet_is_what_lbfgs_finds(halves):
    (p, y), (new, labels) = halves
    found = DirichletCalibrator().fit(p, y)
    off, intercept = found.regularization_
    z, rows = np.log(p), np.arange(len(y))
    weight = np.full((10, 11), off)
    np.fill_diagonal(weight, 0.0)
    weight[:, -1] = intercept

    def loss(flat):
        matrix = flat.reshape(10, 11)
        logs = log_softmax(z @ matrix[:, :-1].T + matrix[:, -1], axis=1)
        away = np.exp(logs)
        away[rows, y] -= 1
        slope = np.column_stack([away.T @ z, away.sum(axis=0)]) / len(y) + 2 * weight * matrix
        return -logs[rows, y].mean() + (weight * matrix**2).sum(), slope.ravel()

    options = {"ftol": 1e-14, "gtol": 1e-8, "maxiter": 3000, "maxfun": 6000}
    start = np.eye(10, 11).ravel()
    best = minimize(loss, start, jac=True, method="L-BFGS-B", options=options)
    assert loss(found.coefficients_.ravel())[0] <= best.fun + 1e-10
    matrix = best.x.reshape(10, 11)
    told = softmax(np.log(new) @ matrix[:, :-1].T + matrix[:, -1], axis=1)
    np.testing.assert_allclose(found.predict(new), told, atol=1e-4)
    assert log_loss(labels, found.predict(new)) == pytest.approx(log_loss(labels, told), abs=1e-5)


def test_clusters_of_log_probabilities_do_no_harm(halves):
    """There are no features here; those that the network left in its probabilities must do."""
    (p, y), (new, labels) = halves
    model = FairCalClassifier().fit_calibration(p, y, features=np.log(p))
    found = model.calibrate(new, features=np.log(new))
    one = DirichletCalibrator().fit(p, y).predict(new)
    assert multiclass_nll(found, labels) < multiclass_nll(one, labels) + 0.002
