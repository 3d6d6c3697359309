"""What a threshold on the score is as a probability."""

from __future__ import annotations

import numpy as np
import pytest

from faircal.methods.prior import probability_at

RNG = np.random.default_rng(0)
SCORE = RNG.normal(size=500)
RISING = 1 / (1 + np.exp(-3 * SCORE))


def test_a_score_that_is_the_probability():
    assert probability_at(0.123, RISING, RISING) == 0.123
    assert probability_at(0.123, RISING, RISING.copy()) == 0.123
    assert probability_at(np.nextafter(1, 2), RISING, RISING) == 1.0


def test_read_off_the_nearest_pairs():
    assert probability_at(SCORE[7], SCORE, RISING) == RISING[7]
    assert probability_at(0.3, SCORE, RISING) == pytest.approx(1 / (1 + np.exp(-0.9)), abs=0.01)


def test_steps_are_a_map_too():
    assert probability_at(0.3, SCORE, np.where(SCORE > 0, 0.9, 0.1)) == 0.9


@pytest.mark.parametrize(
    ("at", "said"),
    [
        (0.3, 1 - RISING),  # falls
        (0.3, np.where(np.arange(500) % 2, RISING, RISING / 2)),  # two maps
        (SCORE.max() + 1, RISING),  # nobody scores as high
        (SCORE.min() - 1, RISING),
    ],
)
def test_where_the_score_cannot_tell(at, said):
    assert np.isnan(probability_at(at, SCORE, said))


def test_the_same_score_with_two_probabilities():
    assert np.isnan(probability_at(0.5, np.array([0.2, 0.5, 0.5]), np.array([0.1, 0.4, 0.6])))
