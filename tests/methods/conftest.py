"""A small simulated dataset, and ways to change what methods see of it."""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import pytest

import faircal
from faircal.data import Dataset, Feature, Images
from faircal.data.columns import Column
from faircal.methods import METHODS, make_method


@pytest.fixture(scope="session")
def data():
    """Four ethnicities × two genders, with cross-group pairs: 1600 pairs of 480 images."""
    return faircal.simulate("small", seed=0, people=80, images=480, pairs=1600, dimension=32)


@pytest.fixture(scope="session")
def parts(data):
    """(calibration, test)."""
    return data.split(test_fold=5)


@pytest.fixture(scope="session")
def changed():
    """Return a function that gives a dataset with other pairs, attributes or features."""

    def change(data, *, pairs=None, attributes=None, scores_only=False, score_range=None):
        images = data.images
        if attributes is not None:
            images = Images(images.ids, images.identity, attributes, tuple(attributes))
        features = dict(data.features)
        if scores_only or score_range is not None:  # a range is one of ready-made scores
            features = {
                name: Feature(None if scores_only else feature.embeddings, data.scores)
                for name, feature in features.items()
            }
        return Dataset.assemble(
            data.name, images, pairs or data.pairs, features, score_range or data.score_range
        )

    return change


@pytest.fixture(scope="session")
def with_unknown(changed):
    """Return a function that makes the ethnicity of every seventh image unknown."""

    def change(data):
        column = data.images.attributes["ethnicity"]
        codes = np.where(np.arange(len(column)) % 7 == 0, -1, column.codes).astype(np.int32)
        attributes = {**data.images.attributes, "ethnicity": Column(codes, column.names)}
        return changed(data, attributes=attributes)

    return change


@pytest.fixture(scope="session")
def swapped(changed):
    """Return a function that gives the dataset with left and right exchanged."""

    def change(data):
        pairs = replace(data.pairs, left=data.pairs.right, right=data.pairs.left)
        return changed(data, pairs=pairs)

    return change


@pytest.fixture(params=list(METHODS))
def name(request):
    """Each registered method's name in turn; skipped where its extra is not installed."""
    extra = METHODS[request.param].needs.extra
    if extra is not None and find_spec(extra) is None:
        pytest.skip(f"the extra {extra} is not installed")
    return request.param


@pytest.fixture
def make():
    """Return a function that builds a method by name, with few clusters where it has clusters."""

    def build(name, **parameters):
        if "n_clusters" in METHODS[name]._get_param_names():
            parameters = {"n_clusters": 4, **parameters}
        return make_method(name, **parameters)

    return build
