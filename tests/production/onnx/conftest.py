"""Small fitted models of every method that can be exported, and their graphs."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import faircal
from faircal.calibrators import CALIBRATORS
from faircal.data.pairing import draw_cohort
from faircal.methods import METHODS, load_method, make_method
from faircal.methods.modelfile import decode, encode
from faircal.metrics import EvidenceBounds
from faircal.model import About, OperatingPoint, Population
from faircal.production.onnx import export_onnx

UNTRAINED = [name for name, method in METHODS.items() if not method.needs.training]
#: So that fits take a moment.
SETTINGS = {
    "faircal": {"n_clusters": 8},
    "fsn": {"n_clusters": 8},
    "smooth": {"ridge": 1.0, "n_components": 3},
}


def pytest_generate_tests(metafunc):
    if "calibrator" in metafunc.fixturenames:
        # One method asks a bank for probabilities, one a single map for log-odds: whatever else a
        # calibrator can do wrong it does there. The others are about the method.
        every = [(name, one) for name in ("faircal", "smooth") for one in CALIBRATORS]
        rest = [(name, "beta") for name in UNTRAINED if name not in ("faircal", "smooth")]
        metafunc.parametrize(("method", "calibrator"), every + rest)
    elif "method" in metafunc.fixturenames:
        metafunc.parametrize("method", UNTRAINED)


@pytest.fixture(scope="session")
def parts():
    calibration, test = faircal.simulate("small", seed=0).split(test_fold=5)
    # Of few people, so that hardly a calibration pair goes.
    return calibration.with_cohort(draw_cohort(calibration, 3).cohort), test


@pytest.fixture(scope="session")
def settings():
    return SETTINGS


@pytest.fixture(scope="session")
def fitted(parts, tmp_path_factory):
    """Return a function that gives a model as it comes from its file."""
    home = tmp_path_factory.mktemp("models")

    @cache
    def fit(method, calibrator):
        path = home / f"{method}-{calibrator}.faircal"
        quick = SETTINGS.get(method, {})
        make_method(method, calibrator=calibrator, **quick).fit(parts[0]).save(path)
        return load_method(path)

    return lambda method, calibrator="beta": fit(method, calibrator)


@pytest.fixture(scope="session")
def exported(fitted, tmp_path_factory):
    """Return a function that gives the graph of a model: what was written."""
    home = tmp_path_factory.mktemp("graphs")

    @cache
    def export(method, calibrator):
        return export_onnx(fitted(method, calibrator), home / f"{method}-{calibrator}.onnx")

    return lambda method, calibrator="beta": export(method, calibrator)


@pytest.fixture
def described(fitted, parts):
    """Return a function that gives a model with a population, an operating point, bounds."""
    vectors = parts[0].embeddings.rows(np.arange(len(parts[0].images)))

    def describe(method, on="score", threshold=0.3):
        model = fitted(method)
        centers = getattr(model, "cluster_centers_", vectors[:5])
        nothing = np.zeros(1, np.int64)
        population = Population(
            centers, np.full(len(centers), 0.9, np.float32), np.array([-1.0, 1.0]), nothing, nothing
        )
        copy = decode(encode(model))
        point = OperatingPoint(threshold, on)
        bounds = EvidenceBounds(-2.5, 3.5, 20.0, 40.0)
        copy.about_ = About(None, population, point, bounds)
        return copy

    return describe
