"""Metrics of class probabilities: by hand, against other libraries, and what holds for any rows."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.calibration import calibration_curve
from sklearn.metrics import accuracy_score, brier_score_loss, log_loss

from faircal._base.errors import DataError, ParameterError
from faircal.metrics import (
    CLASS_METRICS,
    accuracy,
    as_class_probabilities,
    as_codes,
    as_probabilities_matrix,
    brier,
    classwise_ece,
    classwise_ks,
    classwise_rankings,
    ece,
    ks,
    multiclass_brier,
    multiclass_nll,
    nll,
    reliability,
    top_label,
    top_label_ece,
    top_label_ks,
    top_label_ranking,
)

moderate = settings(max_examples=60)
# Three rows of three classes; the second top label is wrong.
P = np.array([[0.7, 0.2, 0.1], [0.3, 0.6, 0.1], [0.1, 0.1, 0.8]])
Y = np.array([0, 0, 2])


@pytest.fixture(params=[(400, 3, 0), (300, 7, 1), (250, 2, 2)], ids=str)
def rows(request):
    """Probabilities that are over-confident, and labels."""
    n, n_classes, seed = request.param
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(n, n_classes))
    codes = (softmax(logits).cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    return softmax(2 * logits), np.minimum(codes, n_classes - 1)


def softmax(logits):
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


@st.composite
def any_rows(draw, least_classes=1):
    """Rows on a coarse grid (many ties) or a fine one, some classes never true."""
    n_classes = draw(st.integers(least_classes, 5))
    n = draw(st.integers(1, 30))
    steps = draw(st.sampled_from([2, 1000]))
    seed = draw(st.integers(0, 10_000))
    rng = np.random.default_rng(seed)
    weights = rng.integers(0, steps + 1, size=(n, n_classes)).astype(float)
    weights[weights.sum(axis=1) == 0] = 1
    codes = rng.integers(0, draw(st.integers(1, n_classes)), size=n)
    return weights / weights.sum(axis=1, keepdims=True), codes


class TestByHand:
    def test_accuracy(self):
        assert accuracy(P, Y) == pytest.approx(2 / 3)

    def test_nll(self):
        expected = -(math.log(0.7) + math.log(0.3) + math.log(0.8)) / 3
        assert multiclass_nll(P, Y) == pytest.approx(expected)

    def test_brier(self):
        # 0.3² + 0.2² + 0.1², 0.7² + 0.6² + 0.1², 0.1² + 0.1² + 0.2²
        assert multiclass_brier(P, Y) == pytest.approx((0.14 + 0.86 + 0.06) / 3)
        assert multiclass_brier([[1, 0, 0]], [2]) == 2
        assert multiclass_brier([[0, 0, 1]], [2]) == 0

    def test_top_label(self):
        confidence, correct = top_label(P, Y)
        assert confidence.tolist() == [0.7, 0.6, 0.8]
        assert correct.tolist() == [True, False, True]
        # From low to high confidence: 0.6, 0.6 + 0.7 − 1, 0.6 + 0.7 + 0.8 − 2.
        assert top_label_ks(P, Y) == pytest.approx(0.6 / 3)
        assert top_label_ece(P, Y, n_bins=1) == pytest.approx(abs(2.1 - 2) / 3)
        assert top_label_ece(P, Y, n_bins=3) == pytest.approx((0.6 + 0.3 + 0.2) / 3)

    def test_of_equal_classes_the_first_is_the_top_label(self):
        assert accuracy([[0.4, 0.4, 0.2]] * 2, [0, 1]) == 0.5
        assert top_label([[0.2, 0.4, 0.4]], [1])[1].tolist() == [True]

    def test_class_wise(self):
        # Sorted: class 0 has 0.1, 0.3 − 1, 0.7 − 1; class 1 is never true: 0.1, 0.2, 0.6;
        # class 2 has a block of two 0.1, then 0.8 − 1.
        assert classwise_ks(P, Y) == pytest.approx((0.9 + 0.9 + 0.2) / 3 / 3)
        assert classwise_ece(P, Y, n_bins=1) == pytest.approx((0.9 + 0.9 + 0.0) / 3 / 3)

    def test_a_class_that_never_occurs_counts(self):
        assert classwise_ks([[0.5, 0.3, 0.2]], [0]) == pytest.approx((0.5 + 0.3 + 0.2) / 3)
        assert classwise_ece([[1, 0, 0]], [0]) == 0

    def test_a_certain_mistake_is_finite(self):
        assert multiclass_nll([[1, 0]], [1]) == pytest.approx(-math.log(np.finfo(float).eps))
        assert multiclass_nll([[1, 0]], [1], eps=0.01) == pytest.approx(-math.log(0.01))


class TestAgainstOthers:
    def test_scikit_learn(self, rows):
        p, y = rows
        assert accuracy(p, y) == accuracy_score(y, p.argmax(axis=1))
        labels = np.arange(p.shape[1])
        assert multiclass_nll(p, y) == pytest.approx(log_loss(y, p, labels=labels), rel=1e-12)
        whole = brier_score_loss(y, p, labels=labels, scale_by_half=False)
        assert multiclass_brier(p, y) == pytest.approx(whole, rel=1e-12)

    def test_reliability_is_scikit_learns(self, rows):
        p, y = rows
        for code, ranking in enumerate(classwise_rankings(p, y)):
            bins = reliability(ranking, n_bins=8, binning="width")
            true, predicted = calibration_curve(y == code, p[:, code], n_bins=8)
            used = bins.count > 0
            np.testing.assert_allclose(bins.fraction_genuine[used], true)
            np.testing.assert_allclose(bins.confidence[used], predicted)
        true, predicted = calibration_curve(p.argmax(axis=1) == y, p.max(axis=1), n_bins=8)
        bins = reliability(top_label_ranking(p, y), n_bins=8, binning="width")
        used = bins.count > 0
        np.testing.assert_allclose(bins.fraction_genuine[used], true)
        np.testing.assert_allclose(bins.confidence[used], predicted)

    def test_ece_is_a_plain_loop_over_bins(self, rows):
        p, y = rows
        n, total = len(y), 0.0
        best, confidence = p.argmax(axis=1), p.max(axis=1)
        for low in np.arange(15) / 15:
            inside = [i for i in range(n) if low < confidence[i] <= low + 1 / 15]
            gap = sum(confidence[i] - (best[i] == y[i]) for i in inside)
            total += abs(gap) / n
        assert top_label_ece(p, y, n_bins=15, binning="width") == pytest.approx(total, abs=1e-12)

    def test_ks_is_a_plain_loop_over_rows(self, rows):
        p, y = rows

        def loop(probability, true):
            worst = gap = 0.0
            for c, hit in sorted(zip(probability, true, strict=True)):
                gap += c - hit
                worst = max(worst, abs(gap))
            return worst / len(y)

        each = [loop(p[:, code], y == code) for code in range(p.shape[1])]
        assert classwise_ks(p, y) == pytest.approx(np.mean(each), abs=1e-12)
        top = loop(p.max(axis=1), p.argmax(axis=1) == y)
        assert top_label_ks(p, y) == pytest.approx(top, abs=1e-12)


@moderate
@given(any_rows(least_classes=2))
def test_two_classes_are_the_binary_metrics(data):
    probability = data[0][:, 0] / (data[0][:, 0] + data[0][:, 1] + 1e-9)
    genuine = data[1] == 0
    p, y = np.column_stack([1 - probability, probability]), genuine.astype(int)
    assert multiclass_nll(p, y) == pytest.approx(nll(probability, genuine), abs=1e-9)
    assert multiclass_brier(p, y) == pytest.approx(2 * brier(probability, genuine), abs=1e-12)
    _, second = classwise_rankings(p, y)
    assert ks(second) == ks(probability, genuine)
    assert ece(second) == ece(probability, genuine)
    low = probability <= 0.5  # equal ones go to the first class
    confidence, right = np.where(low, 1 - probability, probability), low != genuine
    assert top_label_ks(p, y) == ks(confidence, right)
    assert top_label_ece(p, y) == ece(confidence, right)


@moderate
@given(any_rows(), st.integers(0, 1000), st.sampled_from(list(CLASS_METRICS)))
def test_order_of_rows_does_not_matter(data, seed, name):
    p, y = data
    order = np.random.default_rng(seed).permutation(len(y))
    function = CLASS_METRICS[name].function
    assert function(p[order], y[order]) == pytest.approx(function(p, y), abs=1e-12)


@moderate
@given(any_rows(), st.integers(0, 1000), st.sampled_from(["nll", "brier", "class_ks", "class_ece"]))
def test_names_of_classes_do_not_matter(data, seed, name):
    p, y = data
    order = np.random.default_rng(seed).permutation(p.shape[1])
    function = CLASS_METRICS[name].function
    assert function(p[:, order], np.argsort(order)[y]) == pytest.approx(function(p, y), abs=1e-12)


@moderate
@given(any_rows())
def test_bounds(data):
    for metric in CLASS_METRICS.values():
        value = metric.function(*data)
        assert type(value) is float
        assert 0 <= value <= {"nll": 37, "brier": 2}.get(metric.name, 1)
    # ECE of one bin is the last step of KS's walk; equal bins can only add to that.
    assert top_label_ece(*data, n_bins=1) <= top_label_ks(*data) + 1e-12


class TestRegistry:
    def test_names_of_the_results(self):
        assert list(CLASS_METRICS) == [
            "accuracy",
            "nll",
            "brier",
            "top_ks",
            "top_ece",
            "class_ks",
            "class_ece",
        ]

    @pytest.mark.parametrize("metric", CLASS_METRICS.values(), ids=list(CLASS_METRICS))
    def test_each(self, metric):
        assert CLASS_METRICS[metric.name] is metric
        assert metric.title
        assert metric.description
        right = metric.function(np.eye(3)[[0, 1, 2, 2]], [0, 1, 2, 2])
        wrong = metric.function(np.eye(3)[[1, 2, 0, 0]], [0, 1, 2, 2])
        assert right == (1 if metric.better == "higher" else 0)
        assert wrong < right if metric.better == "higher" else wrong > right
        assert math.isnan(metric.function(np.empty((0, 3)), []))

    def test_groups_are_cut_out_of_one_sort(self, rows):
        p, y = rows
        groups = np.arange(len(y)) % 3
        for group, part in enumerate(top_label_ranking(p, y).split(groups, 3)):
            assert ks(part) == top_label_ks(p[groups == group], y[groups == group])


class TestTheDoor:
    def test_tables_and_single_precision(self):
        given = pd.DataFrame(P.astype(np.float32), columns=["a", "b", "c"])
        p, y = as_class_probabilities(given, pd.Series(Y.astype(float)))
        assert p.dtype == np.float64
        assert y.dtype == np.int64
        np.testing.assert_allclose(p.sum(axis=1), 1, rtol=0, atol=1e-15)
        np.testing.assert_allclose(p, P, atol=1e-7)

    def test_nothing_to_change_is_not_copied(self):
        assert as_probabilities_matrix(P) is P

    def test_the_input_stays_as_it_was(self):
        rounded = np.array([[0.333, 0.333, 0.3335], [0.5, 0.25, 0.25]])
        before = rounded.copy()
        found = as_probabilities_matrix(rounded)
        assert (rounded == before).all()
        np.testing.assert_allclose(found.sum(axis=1), 1, rtol=0, atol=1e-15)
        assert (found[1] == rounded[1]).all()

    def test_normalising_leaves_equal_probabilities_equal(self):
        # 0.1 + 0.2 + 0.7 is 1 less a bit, 0.1 + 0.4 + 0.5 is 1.
        p = as_probabilities_matrix([[0.1, 0.2, 0.7], [0.1, 0.4, 0.5]])
        assert p[0, 0] == p[1, 0]

    def test_one_class(self):
        assert accuracy([[1.0], [1.0]], [0, 0]) == 1
        assert classwise_ks([[1.0], [1.0]], [0, 0]) == 0

    @pytest.mark.parametrize(
        ("wrong", "said"),
        [
            ([0.2, 0.8], r"found shape \(2,\); for two classes pass both columns"),
            (np.empty((3, 0)), r"found shape \(3, 0\)"),
            ([[0.2, 0.8], [0.3, np.nan]], "row 1: .* found nan .*; drop or repair"),
            ([[0.2, 0.8], [np.inf, 0.0]], "row 1: .* found inf .*; drop or repair"),
            ([[0.2, 0.8], [-0.1, 1.1]], r"row 1: .* found -0\.1 \(1 such rows\); correct"),
            ([[0.2, 0.8], [0.2, 1.2]], r"row 1: .* found 1\.2 .*; correct"),
            (
                [[0.2, 0.8], [0.2, 0.7]],
                r"row 1: .* found a sum of 0\.9 .*; .* a column for every class",
            ),
            ([[0.2, 0.8], [0.4985, 0.5]], r"row 1: .* found a sum of 0\.9985"),
            ([[2.0, -1.0], [0.0, 3.0]], "row 0: .* look like logits: apply a softmax"),
            ([[20.0, 80.0], [50.0, 50.0]], "look like percent: divide by 100"),
            (np.log([[0.2, 0.8], [0.5, 0.5]]), "look like logarithms .*: take the exponential"),
            ([["a", "b"]], "expected numbers; found other values"),
            ([["0.2", "0.8"]], "expected numbers; found other values"),
            ([[0.2, 0.8], [1.0]], "expected numbers; found other values"),
        ],
    )
    def test_bad_probabilities(self, wrong, said):
        with pytest.raises(DataError, match=f"^probabilities[:,] .*{said}"):
            as_probabilities_matrix(wrong)
        with pytest.raises(DataError, match=r"^columns p_[:,] "):
            as_probabilities_matrix(wrong, "columns p_")

    @pytest.mark.parametrize(
        ("wrong", "said"),
        [
            ([0, 1, 3], "from 0 to 2, .*; found 3 in row 2; number the classes"),
            ([0, -1, 2], "found -1 in row 1"),
            ([0, 1, 1.5], "found 1.5 in row 2"),
            ([0, np.nan, 2], "found nan in row 1"),
            ([0, None, 2], "found nan in row 1"),
            (["cat", "dog", "cat"], "found other values; number the classes"),
            (["0", "1", "2"], "found other values"),
            ([0, 1], r"shape \(3,\); found shape \(2,\)"),
            ([[0, 1, 2]], r"found shape \(1, 3\)"),
        ],
    )
    def test_bad_codes(self, wrong, said):
        with pytest.raises(DataError, match=f"^codes: .*{said}"):
            as_codes(wrong, 3, 3)
        with pytest.raises(DataError, match=r"^codes: "):
            accuracy(P, wrong)

    def test_bad_parameters(self):
        with pytest.raises(ParameterError, match=r"eps between 0 and 0\.5; found 0"):
            multiclass_nll(P, Y, eps=0)
        with pytest.raises(ParameterError, match="n_bins"):
            classwise_ece(P, Y, n_bins=0)
