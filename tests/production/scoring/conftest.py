"""Fitted models with a population, for what is said of pairs in use."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import faircal
from faircal.methods import make_method
from faircal.model import OperatingPoint, Population

POINT = OperatingPoint(0.6, "score", fpr=0.01)


@pytest.fixture(scope="session")
def halves():
    return faircal.simulate("small", seed=0).split(test_fold=5)


@pytest.fixture(scope="session")
def make(halves):
    """Return a function that fits a method and gives it a population and an operating point."""

    def fitted(name, population=True, point=POINT, pairs=None, **settings):
        cal = halves[0] if pairs is None else halves[0].subset(np.arange(pairs))
        model = make_method(name, **settings).fit(cal)
        if not population:
            return model
        vectors = cal.embeddings.rows(cal.used_images())
        centers = getattr(model, "cluster_centers_", vectors[:7]).copy()
        counted = np.ones(10, np.int64)
        reach = np.linspace(0.3, 1.1, len(centers)).astype(np.float32)
        made = Population(centers, reach, np.linspace(-1, 1, 11), counted, counted)
        model.about_ = replace(model.about_, population=made, operating_point=point)
        return model

    return fitted


@pytest.fixture(scope="session")
def model(make):
    return make("faircal", n_clusters=12)


@pytest.fixture(scope="session")
def smooth(make):
    return make("smooth", pairs=1500)
