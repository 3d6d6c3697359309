"""Proper scores in three parts: by hand, against scikit-learn, and what holds for any rows."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import log_loss

from faircal._base.errors import DataError, ParameterError
from faircal.metrics import (
    Ranking,
    decompose,
    decompose_binary,
    decompose_classes,
    multiclass_brier,
    nll,
)

moderate = settings(max_examples=60)
SCORES = ["brier", "ovr_nll"]


@st.composite
def any_rows(draw):
    """Rows with many ties or few, some classes never true."""
    n_classes, n = draw(st.integers(2, 4)), draw(st.integers(1, 30))
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    weights = rng.integers(0, draw(st.sampled_from([2, 1000])) + 1, size=(n, n_classes)) * 1.0
    weights[weights.sum(axis=1) == 0] = 1
    codes = rng.integers(0, draw(st.integers(1, n_classes)), size=n)
    return weights / weights.sum(axis=1, keepdims=True), codes


def binary_score(score, y, p):
    if score == "brier":
        return np.mean((p - y) ** 2)
    return log_loss(y, p, labels=[0, 1])


def test_by_hand():
    # Isotonic: 0, then ½ ½ pooled, then 1.
    parts = decompose_binary([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1])
    assert parts.score == pytest.approx((0.01 + 0.36 + 0.36 + 0.01) / 4)
    assert parts.uncertainty == 0.25
    assert parts.discrimination == pytest.approx(0.25 - 0.5 / 4)
    assert parts.miscalibration == pytest.approx(0.185 - 0.125)
    assert parts.skill == pytest.approx(1 - 0.185 / 0.25)
    logs = decompose_binary([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1], "ovr_nll")
    assert logs.uncertainty == pytest.approx(math.log(2))
    assert logs.discrimination == pytest.approx(math.log(2) / 2)
    assert logs.score == pytest.approx(-(math.log(0.9) + math.log(0.4)) / 2)


def test_saying_how_often_is_calibrated_and_tells_nothing():
    codes = np.array([0, 0, 1, 2, 2, 2])
    p = np.tile([2 / 6, 1 / 6, 3 / 6], (6, 1))
    for score in SCORES:
        parts = decompose(p, codes, score)
        assert parts.miscalibration == pytest.approx(0, abs=1e-15)
        assert parts.discrimination == pytest.approx(0, abs=1e-15)
        assert parts.skill == pytest.approx(0, abs=1e-12)


def test_the_truth_has_no_miscalibration_and_all_discrimination():
    parts = decompose(np.eye(3)[[0, 1, 2, 2]], [0, 1, 2, 2])
    assert (parts.score, parts.miscalibration) == (0, 0)
    assert parts.discrimination == parts.uncertainty == pytest.approx((3 + 3 + 4) / 16)
    assert parts.skill == 1


def test_confidence_in_the_wrong_order_is_all_miscalibration():
    parts = decompose_binary([0.2, 0.8], [1, 0])
    assert parts.discrimination == 0
    assert parts.miscalibration == pytest.approx(0.64 - 0.25)
    assert parts.skill < 0


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("steps", [16, 2**40])
def test_scikit_learns_isotonic_regression(score, steps):
    rng = np.random.default_rng(5)
    # Sixteenths are exact, so equal ones are equal here and there: scikit-learn also joins
    # probabilities that differ in the last bit only.
    p = rng.multinomial(steps, rng.dirichlet([0.7, 1.0, 2.0], size=600)) / steps
    y = np.array([rng.choice(3, p=row**0.5 / (row**0.5).sum()) for row in p])
    parts = decompose_classes(p, y, score)
    for code, part in enumerate(parts):
        true, said = (y == code).astype(float), p[:, code]
        mended = IsotonicRegression(y_min=0, y_max=1).fit(said, true).predict(said)
        whole, best = binary_score(score, true, said), binary_score(score, true, mended)
        none = binary_score(score, true, np.full(len(y), true.mean()))
        assert part.score == pytest.approx(whole, abs=1e-10)
        assert part.miscalibration == pytest.approx(whole - best, abs=1e-10)
        assert part.discrimination == pytest.approx(none - best, abs=1e-10)
        assert part.uncertainty == pytest.approx(none, abs=1e-10)
        assert part.miscalibration > 0.001
    assert decompose(p, y, score).score == pytest.approx(sum(part.score for part in parts))


@pytest.mark.parametrize("score", SCORES)
@moderate
@given(any_rows())
def test_the_parts_add_up_and_none_is_negative(score, data):
    for parts in (decompose(*data, score), *decompose_classes(*data, score)):
        assert min(parts.miscalibration, parts.discrimination, parts.uncertainty) >= 0
        total = parts.miscalibration - parts.discrimination + parts.uncertainty
        assert parts.score == pytest.approx(total, abs=1e-12)
        assert parts.discrimination <= parts.uncertainty + 1e-12


@moderate
@given(any_rows())
def test_brier_is_that_of_all_classes(data):
    assert decompose(*data).score == pytest.approx(multiclass_brier(*data), abs=1e-12)


@moderate
@given(any_rows(), st.integers(0, 1000), st.sampled_from(SCORES))
def test_order_of_rows_and_names_of_classes_do_not_matter(data, seed, score):
    p, y = data
    rng = np.random.default_rng(seed)
    rows, classes = rng.permutation(len(y)), rng.permutation(p.shape[1])
    other = decompose(p[rows][:, classes], np.argsort(classes)[y][rows], score)
    for name in ("score", "miscalibration", "discrimination", "uncertainty"):
        assert getattr(other, name) == pytest.approx(
            getattr(decompose(p, y, score), name), abs=1e-9
        )


@pytest.mark.parametrize("score", SCORES)
def test_two_classes_are_twice_the_binary_parts(score):
    rng = np.random.default_rng(0)
    p = rng.random(300)
    y = rng.random(300) < p**2
    both = decompose(np.column_stack([1 - p, p]), y, score)
    one = decompose_binary(Ranking.of(p, y), score=score)
    for name in ("score", "miscalibration", "discrimination", "uncertainty"):
        assert getattr(both, name) == pytest.approx(2 * getattr(one, name), abs=1e-12)
    if score == "ovr_nll":
        assert one.score == pytest.approx(nll(p, y))


def test_recalibrating_takes_the_miscalibration_away_and_leaves_the_rest():
    rng = np.random.default_rng(1)
    p = rng.random(500)
    y = rng.random(500) < p**3
    before = decompose_binary(p, y)
    after = decompose_binary(IsotonicRegression(y_min=0, y_max=1).fit(p, y).predict(p), y)
    assert after.miscalibration == pytest.approx(0, abs=1e-12)
    assert after.discrimination == pytest.approx(before.discrimination, abs=1e-12)
    assert before.miscalibration > 0.05


def test_counted_rankings_with_empty_bins():
    counted = Ranking.counted([0.1, 0.4, 0.5, 0.9], [0, 1, 0, 1], [1, 0, 0, 1])
    plain = Ranking.of([0.1, 0.4, 0.9, 0.9], [0, 1, 1, 0])
    assert decompose_binary(counted) == decompose_binary(plain)


def test_no_rows_and_one_class_only():
    nothing = decompose(np.empty((0, 3)), [])
    assert all(map(math.isnan, (nothing.score, nothing.miscalibration, nothing.uncertainty)))
    assert math.isnan(nothing.skill)
    same = decompose([[0.25, 0.75]] * 2, [1, 1])
    assert same.uncertainty == 0
    assert same.score == same.miscalibration == pytest.approx(0.125)
    assert math.isnan(same.skill)


def test_bad_input():
    with pytest.raises(ParameterError, match="no longer sum to 1, so use ovr_nll"):
        decompose([[0.2, 0.8]], [1], "nll")
    with pytest.raises(ParameterError, match="expected brier or ovr_nll, found 'log'"):
        decompose_binary([0.2], [1], "log")
    with pytest.raises(DataError, match="sum to 1"):
        decompose([[0.2, 0.7]], [1])
