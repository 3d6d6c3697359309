"""Bad input is refused at the door, with a message that says what and where."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.exceptions import NotFittedError as SklearnNotFittedError
from sklearn.utils.validation import check_is_fitted

from faircal._base.errors import DataError, NotFittedError, ParameterError


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ([], "scores: expected at least one pair; found 0 sample"),
        ([[0.1, 0.2], [0.3, 0.4]], r"scores: expected shape .*; found shape \(2, 2\)"),
        (0.5, r"found shape \(\)"),
        ([0.1, np.nan], "scores: expected finite numbers; found NaN at position 1"),
        ([-np.inf, 0.1], "found infinity .* at position 0"),
        (["a", "b"], "scores: expected numbers; found dtype <U1"),
        ([{}, 1], "scores: expected numbers"),
        ([1j, 2.0], "Complex data not supported"),
        (csr_array([[0.1], [0.2]]), "scores: expected a dense array; found a sparse one"),
    ],
)
def test_scores(calibrator, scores, message):
    with pytest.raises(DataError, match=message):
        calibrator.fit(scores, [False, True])


@pytest.mark.parametrize(
    ("genuine", "message"),
    [
        (None, "requires y to be passed, but the target y is None"),
        ([True], "genuine: expected one value per score, 2; found 1"),
        ([0, 2], "genuine: expected booleans or 0/1; found 2"),
        ([-1, 1], "found -1"),
        ([0.5, 1.0], "found 0.5"),
        (["no", "yes"], "genuine: expected numbers"),
        ([0.0, np.nan], "genuine: expected finite numbers; found NaN"),
    ],
)
def test_genuine(calibrator, genuine, message):
    with pytest.raises(DataError, match=message):
        calibrator.fit([0.1, 0.2], genuine)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ([1.0], "sample_weight: expected one value per score, 2; found 1"),
        ([[1.0], [1.0]], r"sample_weight: expected shape \(n,\); found shape \(2, 1\)"),
        ([-1.0, 2.0], "sample_weight: expected weights of 0 or more; found -1"),
        ([0.0, 0.0], "sample_weight: expected a weight above zero; found all zero"),
        ([np.nan, 1.0], "sample_weight: expected finite numbers"),
        ([1e308, 1e308], "sample_weight: the sum is too large"),
    ],
)
def test_sample_weight(calibrator, weight, message):
    with pytest.raises(DataError, match=message):
        calibrator.fit([0.1, 0.2], [False, True], weight)


@pytest.mark.parametrize(
    "score_range", [(1.0, -1.0), (0.0, 0.0), (0.0,), (0.0, np.inf), None, "ab", (-1e308, 1e308)]
)
def test_score_range(calibrator, score_range):
    calibrator.set_params(score_range=score_range)
    with pytest.raises(ParameterError, match="score_range: expected two finite numbers"):
        calibrator.fit([0.1, 0.2], [False, True])


def test_bad_scores_in_predict(calibrator):
    calibrator.fit([0.1, 0.2], [False, True])
    with pytest.raises(DataError, match="found NaN at position 0"):
        calibrator.predict([np.nan])


def test_failed_fit_leaves_the_calibrator_unfitted(calibrator):
    with pytest.raises(DataError):
        calibrator.fit([0.1, 0.2], [False, None])
    with pytest.raises(NotFittedError):
        calibrator.predict([0.1])


@pytest.mark.parametrize("error", [NotFittedError, SklearnNotFittedError])
def test_predict_before_fit(calibrator, error):
    with pytest.raises(error, match="is not fitted yet; call fit or set_state first"):
        calibrator.predict([0.1])


def test_state_before_fit(calibrator):
    with pytest.raises(NotFittedError):
        calibrator.get_state()


def test_scikit_learn_sees_whether_it_is_fitted(calibrator):
    with pytest.raises(SklearnNotFittedError):
        check_is_fitted(calibrator)
    check_is_fitted(calibrator.fit([0.1, 0.2], [False, True]))
