"""What every calibrator of classes keeps to."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from faircal._base.errors import DataError, NotFittedError, ParameterError
from faircal.calibrators.classes import CLASS_CALIBRATORS, Strength, make_class_calibrator
from faircal.metrics import multiclass_nll

#: Those that have numbers of their own for each class.
BY_CLASS = [name for name in CLASS_CALIBRATORS if name != "temperature"]


@pytest.fixture(params=list(CLASS_CALIBRATORS))
def calibrator(request):
    return make_class_calibrator(request.param)


@pytest.mark.parametrize("n_classes", [2, 3, 7])
def test_it_lowers_the_loss_of_rows_it_did_not_see(calibrator, overconfident, n_classes):
    given, codes, _ = overconfident(4000, n_classes)
    new, labels, _ = overconfident(4000, n_classes, seed=1)
    found = calibrator.fit(given, codes).predict(new)
    assert found.shape == new.shape
    assert found.min() >= 0
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-12)
    assert multiclass_nll(found, labels) < multiclass_nll(new, labels)


def test_the_order_of_rows_does_not_matter(calibrator, overconfident):
    given, codes, _ = overconfident(300)
    if "off_diagonal" in calibrator.get_params():  # which rows are held out does depend on it
        calibrator.set_params(off_diagonal=0.01)
    turned = np.random.default_rng(0).permutation(300)
    one = clone(calibrator).fit(given, codes).predict(given)
    other = clone(calibrator).fit(given[turned], codes[turned]).predict(given)
    np.testing.assert_allclose(one, other, atol=1e-7)


def test_the_order_of_classes_does_not_matter(calibrator, overconfident):
    given, codes, _ = overconfident(500, 3)
    turned = np.array([2, 0, 1])
    one = clone(calibrator).fit(given, codes).predict(given)
    other = clone(calibrator).fit(given[:, turned], np.argsort(turned)[codes])
    np.testing.assert_allclose(other.predict(given[:, turned]), one[:, turned], atol=1e-6)


def test_its_state_restores_it(calibrator, overconfident):
    given, codes, _ = overconfident(300)
    fitted = clone(calibrator).fit(given, codes)
    again = clone(calibrator).set_state(fitted.get_state())
    np.testing.assert_array_equal(again.predict(given), fitted.predict(given))
    assert again.n_classes_ == 4


def test_a_strong_pull_is_the_map_of_all_rows(calibrator, overconfident):
    given, codes, _ = overconfident(1000)
    overall = clone(calibrator).fit(given, codes)
    few = slice(0, 40)
    strong, weak = overall.towards(given[few], codes[few], [Strength(1e9), Strength(1.0)])

    def mixed(pulled):
        own, weight = pulled
        return weight * own.predict(given) + (1 - weight) * overall.predict(given)

    np.testing.assert_allclose(mixed(strong), overall.predict(given), atol=1e-5)
    assert np.abs(mixed(weak) - overall.predict(given)).max() > 0.01


@pytest.mark.parametrize("name", BY_CLASS)
def test_a_class_without_labels_is_unlikely(name, overconfident):
    given, codes, _ = overconfident(600, 3)
    kept = codes != 2
    found = make_class_calibrator(name).fit(given[kept], codes[kept]).predict(given)
    assert np.isfinite(found).all()
    assert found[:, 2].mean() < 0.05


def test_certain_rows_are_accepted(calibrator):
    given = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.6, 0.4, 0.0]] * 10)
    codes = np.array([0, 1, 2, 1] * 10)
    found = calibrator.fit(given, codes).predict(given)
    assert np.isfinite(found).all()


@pytest.mark.parametrize("soft", [0.0, 1e-12, 1e-6])
@pytest.mark.parametrize("n_classes", [2, 6])
def test_a_classifier_that_is_always_certain(calibrator, n_classes, soft):
    """As a decision tree or one nearest neighbour is: what is left is how often it is right."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, n_classes, 2000)
    said = np.where(rng.random(2000) < 0.3, rng.integers(0, n_classes, 2000), codes)
    given = (1 - n_classes * soft) * np.eye(n_classes)[said] + soft
    right = (said == codes).mean()
    best = -right * np.log(right) - (1 - right) * np.log((1 - right) / (n_classes - 1))
    found = calibrator.fit(given, codes).predict(given)
    assert multiclass_nll(found, codes) == pytest.approx(best, abs=0.02)


def test_one_row_is_accepted(calibrator):
    found = calibrator.fit([[0.2, 0.8]], [1]).predict([[0.5, 0.5]])
    assert found.shape == (1, 2)
    assert np.isfinite(found).all()


def test_it_does_not_change_what_it_is_given(calibrator, overconfident):
    given, codes, _ = overconfident(200)
    before = given.copy()
    calibrator.fit(given, codes).predict(given)
    np.testing.assert_array_equal(given, before)


@pytest.mark.parametrize(
    ("probabilities", "codes", "says"),
    [
        (np.zeros((0, 3)), [], "one row at least"),
        ([[1.0]], [0], "two classes at least"),
        ([[0.5, 0.6]], [0], "sum to 1"),
        ([[np.nan, 1.0]], [0], "row 0"),
        ([[0.5, 0.5]], [2], "0 to 1"),
        ([[0.5, 0.5]], [0, 1], r"shape \(1,\)"),
        ([0.5, 0.5], [0, 1], "one column per class"),
    ],
)
def test_bad_rows(calibrator, probabilities, codes, says):
    with pytest.raises(DataError, match=says):
        calibrator.fit(probabilities, codes)


def test_other_columns_than_in_calibration(calibrator):
    calibrator.fit([[0.2, 0.8], [0.7, 0.3]], [1, 0])
    with pytest.raises(DataError, match="expected 2 columns"):
        calibrator.predict([[0.2, 0.3, 0.5]])


def test_not_fitted(calibrator):
    with pytest.raises(NotFittedError, match="call fit"):
        calibrator.predict([[0.5, 0.5]])


def test_a_foreign_state(calibrator):
    with pytest.raises(DataError, match="state of"):
        calibrator.set_state({"strange": np.ones(2)})


@pytest.mark.parametrize("value", [-1.0, np.inf, np.nan, "much", None, [1.0]])
@pytest.mark.parametrize("name", ["dirichlet", "vector", "matrix"])
def test_bad_regularisation(name, value):
    made = make_class_calibrator(name).set_params(off_diagonal=value)
    with pytest.raises(ParameterError, match="off_diagonal"):
        made.fit([[0.5, 0.5]], [0])


def test_unknown_names():
    with pytest.raises(ParameterError, match="did you mean dirichlet"):
        make_class_calibrator("dirichle")
    with pytest.raises(ParameterError, match="ClassCalibrator"):
        make_class_calibrator(3)
