"""A small simulated dataset, and ways to change what methods see of it."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from importlib.util import find_spec

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import faircal
from faircal.data import Dataset, Embeddings, Feature
from faircal.data.columns import Column
from faircal.methods import METHODS, make_method

#: Parameters that make a fit quick, for those methods that have them. Networks pass through all
#: their stages, twice where they can.
QUICK = {
    "n_clusters": 4,
    "hidden": (2.0,),
    "epochs": 6,
    "learning_rate": 1e-2,
    "width": 16,
    "discriminator": (8,),
    "identity_epochs": 30,
    "episodes": 3,
    "restart_every": 2,
    "discriminator_epochs": 3,
    "debias_epochs": 2,
    "update_epochs": 2,
    "identity_rate": 1e-2,
}

_OTHERS = faircal.simulate("small", seed=9, people=80, images=240, pairs=500, dimension=32)
#: Ten people a group in eight groups, drawn from the same population as the data.
COHORT = faircal.Cohort(
    embeddings=_OTHERS.embeddings.vectors,
    identity=[f"other {code}" for code in _OTHERS.images.identity.codes],
    groups=_OTHERS.image_groups(),
)
#: In place of None, which is a value.
UNCHANGED = object()


@pytest.fixture(autouse=True, scope="session")
def one_thread():
    """Networks this small are slower on two, and tests run side by side."""
    with threadpool_limits(1):
        yield


@pytest.fixture
def any_labels(monkeypatch):
    """Labels may contradict identities in all pairs."""
    monkeypatch.setattr("faircal.data.summary.MOST_WRONG", 1)


@pytest.fixture(scope="session")
def data():
    """Four ethnicities × two genders, with cross-group pairs: 1600 pairs of 480 images."""
    made = faircal.simulate("small", seed=0, people=80, images=480, pairs=1600, dimension=32)
    return made.with_cohort(COHORT)


@pytest.fixture(scope="session")
def parts(data):
    """(calibration, test)."""
    return data.split(test_fold=5)


@pytest.fixture(scope="session")
def changed():
    """Return a function that gives a dataset with other pairs, people, attributes or features."""

    def change(
        data,
        *,
        pairs=None,
        attributes=None,
        identity=UNCHANGED,
        scores_only=False,
        score_range=None,
    ):
        images = data.images
        if attributes is not None:
            images = replace(images, attributes=attributes, crossed=tuple(attributes))
        if identity is not UNCHANGED:
            images = replace(images, identity=identity)
        features = dict(data.features)
        if scores_only or score_range is not None:  # a range is one of ready-made scores
            features = {
                name: Feature(None if scores_only else feature.embeddings, data.scores)
                for name, feature in features.items()
            }
        return Dataset.assemble(
            data.name,
            images,
            pairs or data.pairs,
            features,
            score_range or data.score_range,
            cohort=data.cohort,
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
def other_space(parts):
    """Return a function that gives the calibration pairs with embeddings of another kind."""

    def change(dimension=32, normalize=True, scale=1.0):
        data = parts[0]
        vectors = scale * data.embeddings.vectors[:, :dimension]
        feature = Feature(Embeddings.of(vectors, "embeddings", normalize))
        return Dataset.assemble(data.name, data.images, data.pairs, {"other": feature})

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


@pytest.fixture(scope="session")
def make():
    """Return a function that builds a method by name that is quick to fit."""

    def build(name, **parameters):
        known = METHODS[name]._get_param_names()
        quick = {key: value for key, value in QUICK.items() if key in known}
        return make_method(name, **{**quick, **parameters})

    return build


@pytest.fixture(scope="session")
def fitted_once(make, parts):
    """Return a function that gives a method by name, fitted on the calibration pairs once."""
    return cache(lambda name: make(name).fit(parts[0]))


@pytest.fixture
def fitted(fitted_once, name):
    """The method `name`, quick to fit, fitted on the calibration pairs: not to be changed."""
    return fitted_once(name)
