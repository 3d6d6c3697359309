"""Promises and intervals on real people: LFW thinned again and again, all people are the truth."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

from faircal.evaluation.thresholds import ImposterSet, guarantee

DATA = Path(__file__).parents[3] / "shared" / "data"
IMAGES, PEOPLE, DRAWS, CELLS = 4, 120, 60, 20_000


def images_of(folder):
    """Return unit vectors of up to four images of each person, and who is in each."""
    with (folder / "images.csv").open(newline="") as file:
        names = np.array([row["identity"] for row in csv.DictReader(file)])
    _, person = np.unique(names, return_inverse=True)
    order = np.argsort(person, kind="stable")
    first = np.searchsorted(person[order], person[order])
    kept = order[np.arange(len(order)) - first < IMAGES]
    vectors = np.load(folder / "embeddings.npy")[kept]
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True), person[kept]


def passing(vectors, person):
    """Return the share of all imposter pairs that is above each of many cosines."""
    counts = np.zeros(CELLS)
    for start in range(0, len(vectors), 1000):
        rows = slice(start, start + 1000)
        cosine = vectors[rows] @ vectors.T
        cell = ((cosine[person[rows, None] != person] + 1) * (CELLS / 2)).astype(np.int64)
        counts += np.bincount(np.minimum(cell, CELLS - 1), minlength=CELLS)
    return np.append(np.cumsum(counts[::-1])[::-1], 0.0) / counts.sum()


@pytest.mark.parametrize("name", ["lfw-mobilefacenet", "lfw-dlib"])
def test_promises_hold_on_real_people(name):
    if not (DATA / name).exists():
        pytest.skip(f"{DATA / name} is not there")
    vectors, person = images_of(DATA / name)
    share, cosines = passing(vectors, person), np.linspace(-1, 1, CELLS + 1)
    rates = (0.01, 0.001)
    true = {rate: [] for rate in rates}
    covered = dict.fromkeys(rates, 0)
    for draw in range(DRAWS):
        drawn = np.random.default_rng(draw).choice(person.max() + 1, PEOPLE, replace=False)
        some = np.flatnonzero(np.isin(person, drawn))
        one, other = np.triu_indices(len(some), 1)
        imposter = person[some[one]] != person[some[other]]
        one, other = one[imposter], other[imposter]
        scores = (vectors[some] @ vectors[some].T)[one, other].astype(np.float64)
        imposters = ImposterSet(scores, person[some[one]], person[some[other]])
        for rate in rates:
            made = guarantee(imposters, fpr=rate)
            true[rate].append(np.interp(made.threshold, cosines, share))
            at = cosines[np.searchsorted(-share, -rate)]
            errors = imposters.errors(at) / len(scores)
            low, high = imposters.dependence.interval(errors, 0.95)
            covered[rate] += low <= rate <= high
    for rate in rates:
        given = np.array(true[rate])[np.isfinite(true[rate])]
        assert len(given) > (0.8 if name == "lfw-mobilefacenet" or rate == 0.01 else 0.2) * DRAWS
        assert (given > rate).sum() <= binom.ppf(0.99, len(given), 0.05)
        assert covered[rate] >= binom.ppf(0.01, DRAWS, 0.92)
