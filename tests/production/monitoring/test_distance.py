"""Chances of distances beyond the tolerance, against simulation."""

import numpy as np
import pytest

from faircal.production.monitoring.comparing import exceedance

BUCKETS = 32


def draw(rng, shape, truth):
    """Draw buckets' contributions with covariance `shape` @ `shape`.T / BUCKETS about `truth`."""
    buckets = rng.normal(size=(BUCKETS, len(shape))) @ shape.T / BUCKETS
    mean = buckets.sum(axis=0)
    centred = buckets - mean / BUCKETS
    return truth + mean, centred.T @ centred * BUCKETS / (BUCKETS - 1)


@pytest.mark.parametrize("kind", ["one", "even", "uneven"])
def test_false_alarms_at_the_tolerance_are_as_rare_as_told(kind):
    rng = np.random.default_rng(0)
    scales = {"one": [1.0], "even": [1.0] * 10, "uneven": [1.0, 0.5, 0.3, 0.2, 0.1, 0.1]}[kind]
    shape = np.diag(scales)
    for size in (0.0, 1.0):  # nothing there, and exactly what is tolerated, where it hurts most
        truth = np.zeros(len(shape))
        truth[0] = size * 0.2
        chances = []
        for _ in range(4000):
            difference, covariance = draw(rng, shape, truth)
            chances.append(
                exceedance(difference, ((covariance, BUCKETS - 1.0),), 0.2 * size).p_value
            )
        rates = [np.mean(np.array(chances) <= level) for level in (0.05, 0.005)]
        assert rates[0] <= 0.065
        assert rates[1] <= 0.0105
        if size == 0:
            assert rates[0] >= 0.025  # and it is no idle test


def test_the_distance_is_without_what_chance_brings():
    rng = np.random.default_rng(1)
    truth = np.full(10, 0.1)
    squares = [
        exceedance(difference, ((covariance, BUCKETS - 1.0),), 0.0).distance ** 2
        for difference, covariance in (draw(rng, 0.3 * np.eye(10), truth) for _ in range(2000))
    ]
    assert np.mean(squares) == pytest.approx(0.1, rel=0.1)


def test_without_chance_the_distance_decides():
    nothing = np.zeros((2, 2))
    assert exceedance(np.array([0.3, 0.4]), ((nothing, 5.0),), 0.4)[:2] == (0.5, 0.0)
    assert exceedance(np.array([0.3, 0.4]), ((nothing, 5.0),), 0.6)[:2] == (0.5, 1.0)
