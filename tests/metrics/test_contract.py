"""What every registered metric promises; a new metric is picked up from the registry."""

import math

import numpy as np
import pytest

import faircal.metrics
from faircal.metrics import METRICS, Ranking


@pytest.fixture(params=METRICS.values(), ids=list(METRICS))
def metric(request):
    return request.param


@pytest.fixture
def pairs():
    """Probabilities on a coarse grid, so that many are tied, and labels that follow them."""
    rng = np.random.default_rng(3)
    probability = rng.integers(0, 41, size=300) / 40
    return probability, rng.random(300) < probability


def test_describes_itself(metric):
    assert METRICS[metric.name] is metric
    assert metric.of in {"score", "probability"}
    assert metric.better in {"higher", "lower"}
    assert metric.title


def test_is_a_finite_float_for_two_classes(metric, pairs):
    value = metric.function(Ranking.of(*pairs))
    assert type(value) is float
    assert math.isfinite(value)


def test_takes_arrays_as_well(metric, pairs):
    assert metric.function(*pairs) == metric.function(Ranking.of(*pairs))


def test_counted_scores_are_enough(metric, pairs):
    probability, genuine = pairs
    scores, place = np.unique(probability, return_inverse=True)
    counts = (np.bincount(place[of], minlength=len(scores)) for of in (genuine, ~genuine))
    counted = metric.function(Ranking.counted(scores, *counts))
    assert counted == pytest.approx(metric.function(Ranking.of(*pairs)), rel=1e-12)


@pytest.mark.parametrize("label", [0, 1])
@pytest.mark.parametrize("n", [1, 5])
def test_one_class_is_defined_or_nan(metric, label, n):
    value = metric.function(Ranking.of(np.linspace(0, 1, n), np.full(n, label)))
    assert type(value) is float
    assert not math.isinf(value)


def test_no_pairs_are_nan(metric):
    assert math.isnan(metric.function(Ranking.of([0.5], [1]).subset([False])))


@pytest.mark.parametrize("kind", [bool, int, float, np.uint8, object])
def test_kind_of_label_does_not_matter(metric, pairs, kind):
    probability, genuine = pairs
    expected = metric.function(Ranking.of(probability, genuine))
    assert metric.function(Ranking.of(probability, genuine.astype(kind))) == expected


def test_order_of_pairs_does_not_matter(metric, pairs):
    probability, genuine = pairs
    shuffled = np.random.default_rng(4).permutation(len(genuine))
    expected = metric.function(Ranking.of(probability, genuine))
    assert metric.function(Ranking.of(probability[shuffled], genuine[shuffled])) == expected


def test_perfect_prediction_is_the_best_value(metric):
    genuine = np.array([0, 1, 1, 0, 1])
    value = metric.function(Ranking.of(genuine.astype(float), genuine))
    assert value == pytest.approx(1.0 if metric.better == "higher" else 0.0, abs=1e-12)


def test_wrong_certainty_is_worse_than_perfect(metric):
    genuine = np.array([0, 1, 1, 0, 1])
    right = metric.function(Ranking.of(genuine.astype(float), genuine))
    wrong = metric.function(Ranking.of(1.0 - genuine, genuine))
    assert wrong < right if metric.better == "higher" else wrong > right


def test_public_names():
    names = faircal.metrics.__all__
    assert names == sorted(names, key=lambda name: (not name.isupper(), name))
    assert all(hasattr(faircal.metrics, name) for name in names)
