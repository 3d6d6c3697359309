"""Fits on counted scores stay within the bound that is stated for them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faircal.calibrators import BetaCalibrator, Samples, counting_bound
from faircal.compute.counting import ScoreCounts, fine_edges

GRID = np.linspace(-1.0, 1.0, 2001)


def compare(score, genuine, edges, score_range=(-1.0, 1.0)):
    """Return the largest difference of the exact and the counted fit, and its bound."""
    counts = ScoreCounts.zeros(1, edges)
    counts.add(score, genuine)
    calibrator = BetaCalibrator(score_range=score_range)
    (fitted,) = calibrator.fit_sets(Samples.from_counts(counts))
    exact = calibrator.fit(score, genuine)
    low, high = score_range
    grid = np.concatenate((low + (GRID + 1) / 2 * (high - low), score))
    difference = np.abs(exact.predict(grid) - fitted.predict(grid)).max()
    return difference, counting_bound(fitted, counts, 0)


@pytest.mark.parametrize(
    ("gap", "spread", "part", "most"),
    [
        (0.25, 0.15, 0.5, 1e-6),
        (0.4, 0.15, 0.3, 1e-6),
        (0.6, 0.1, 0.05, 1e-5),
        (0.3, 0.2, 0.01, 1e-5),
    ],
)
def test_fine_edges_are_fine_enough(cosines, gap, spread, part, most):
    score, genuine = cosines(30_000, gap=gap, spread=spread, genuine_part=part)
    difference, bound = compare(score, genuine, fine_edges(-1.0, 1.0))
    assert difference <= bound <= most


def test_a_bound_is_not_just_large(cosines):
    score, genuine = cosines(30_000)
    difference, bound = compare(score, genuine, np.linspace(-1.0, 1.0, 1001))
    assert difference <= bound <= 100 * difference


def test_scores_at_the_ends_and_beyond(cosines):
    score, genuine = cosines(20_000)
    score[:50], genuine[:50] = 1.0, True
    score[50:80], genuine[50:80] = -1.0, False
    score[80:90], genuine[80:90] = 1.7, True
    difference, bound = compare(score, genuine, fine_edges(-1.0, 1.0))
    assert difference <= bound <= 1e-6


def test_slopes_at_their_bound(cosines):
    score, genuine = cosines(20_000)
    difference, bound = compare(score, ~genuine, fine_edges(-1.0, 1.0))
    assert difference <= bound <= 2e-9


def test_one_class():
    counts = ScoreCounts.zeros(1, fine_edges(-1.0, 1.0))
    counts.add([0.1, 0.2], [True, True])
    (fitted,) = BetaCalibrator().fit_sets(Samples.from_counts(counts))
    assert counting_bound(fitted, counts, 0) == 0.0


def test_nothing_can_be_said_of_a_few_wide_bins(cosines):
    score, genuine = cosines(500)
    assert compare(score, genuine, [-1.0, 0.1, 0.3])[1] == np.inf


@settings(max_examples=60)
@given(
    seed=st.integers(0, 10_000),
    n_bins=st.sampled_from([150, 400, 3000]),
    steep=st.sampled_from([-3.0, 0.0, 1.0, 4.0, 15.0]),
    spread=st.sampled_from([0.1, 0.5, 1.2]),
    worst=st.booleans(),
    offset=st.floats(0.0, 1.0),
)
def test_any_sample(seed, n_bins, steep, spread, worst, offset):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(50, 3000))
    edges = -1.3 + 2.6 * (np.arange(n_bins) + offset) / n_bins
    score = rng.normal(0, spread, n)
    if worst:  # all scores at the ends of their bins
        at = np.clip(np.searchsorted(edges, score), 1, n_bins - 1)
        score = np.where(rng.random(n) < 0.5, edges[at - 1], np.nextafter(edges[at], -9))
    genuine = rng.random(n) < 1 / (1 + np.exp(-steep * (score - 0.1)))
    genuine[:2] = [True, False]
    difference, bound = compare(score, genuine, edges)
    assert difference <= bound


def test_other_ranges(cosines):
    score, genuine = cosines(20_000)
    difference, bound = compare(
        5 + 10 * score, genuine, fine_edges(-5.0, 15.0), score_range=(-5.0, 15.0)
    )
    assert difference <= bound <= 1e-6


@pytest.mark.parametrize("apart", [0.01, 0.002])
def test_one_pair_a_bin_just_off_the_step(apart):
    """Means are kept in steps: the bound must hold where every one of them is half a step off."""
    edges = fine_edges(-1.0, 1.0)
    middle = edges[(edges > 0.1) & (edges < 0.5)][::7]
    width = np.diff(edges).max()
    score = middle + 0.49 * width / 2**20
    genuine = (np.arange(len(score)) % 2 == 0) ^ (
        score > 0.3 + apart * np.sin(np.arange(len(score)))
    )
    counts = ScoreCounts.zeros(1, edges)
    counts.add(score, genuine)
    (fitted,) = BetaCalibrator().fit_sets(Samples.from_counts(counts))
    exact = BetaCalibrator().fit(score, genuine)
    grid = np.linspace(-1, 1, 2001)
    off = np.abs(fitted.predict(grid) - exact.predict(grid)).max()
    assert off <= counting_bound(fitted, counts, 0)
