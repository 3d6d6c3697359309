"""Bins of scores by stratum."""

import numpy as np

from faircal.model import Population
from faircal.production.monitoring.counts import code_pairs
from faircal.production.monitoring.population import BINS, edges_of, stratify


def test_imposters_are_spread_evenly_and_genuine_pairs_are_resolved():
    rng = np.random.default_rng(0)
    score = np.concatenate([rng.normal(0, 0.1, 5000), rng.normal(0.6, 0.1, 5000)])
    genuine = np.repeat([False, True], 5000)
    edges = edges_of(score, genuine)
    assert edges.shape == (BINS - 1,)
    assert (np.diff(edges) >= 0).all()
    counts = np.bincount(np.searchsorted(edges, score[~genuine]), minlength=BINS)
    assert np.abs(counts[:23] - 5000 / 24).max() <= 2
    assert np.bincount(np.searchsorted(edges, score[genuine]), minlength=BINS).max() < 400


def test_few_pairs_and_ties_are_no_trouble():
    for score in (np.zeros(6), np.arange(6.0)):
        edges = edges_of(score, np.array([0, 1, 0, 1, 0, 1], bool))
        assert np.isfinite(edges).all()
        assert (np.diff(edges) >= 0).all()


def test_strata_follow_how_alike_regions_are():
    alike = np.array([[0.9, 0.1, 0.2], [0.1, 0.8, 0.3], [0.2, 0.3, 0.7]])
    rng = np.random.default_rng(0)
    left, right = rng.integers(3, size=(2, 2000))
    stratum = stratify(alike, left, right)
    np.testing.assert_array_equal(stratum, stratum.T)
    order = np.argsort(alike.ravel(), kind="stable")
    assert (np.diff(stratum.ravel()[order]) >= 0).all()
    assert stratum.min() == 1
    assert stratum.max() <= 5


def test_each_score_is_ranked_in_its_stratum():
    none = np.zeros(0, np.int64)
    population = Population(
        np.zeros((2, 1), np.float32),
        np.ones(2, np.float32),
        np.zeros(1),
        none,
        none,
        region=np.array([0, 1]),
        stratum=np.array([[1, 2], [2, 1]]),
        ranked_edges=np.array([[-5.0, 5.0], [0.0, 1.0], [10.0, 20.0]]),
    )
    score = np.array([0.5, 0.5, 1.0, 30.0, 6.0])
    clusters = np.array([[0, 1, 1, 0, -1], [0, 0, 1, 1, 1]])
    codes = code_pairs(population, score, clusters, np.full((2, 5), -1))
    assert codes["scores"].tolist() == [[1, 0, 2, 2, -1]]
    assert codes["all_scores"].tolist() == [[1, 1, 1, 2, 2]]
    assert codes["clusters"][:, 4].tolist() == [-1, -1]
