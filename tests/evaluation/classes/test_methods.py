"""The ways to calibrate that are compared: what each sees, and what it makes of it."""

from __future__ import annotations

import numpy as np
import pytest

from faircal._base.errors import ParameterError
from faircal.calibrators.classes import DirichletCalibrator
from faircal.evaluation.classes.methods import CLASS_METHODS, MethodRows

RNG = np.random.default_rng(0)
N = 2000
P = RNG.dirichlet([1.0, 1.0, 1.0], N)
GROUPS = RNG.integers(0, 2, N)
FEATURES = (GROUPS[:, None] * 6 + RNG.normal(size=(N, 2))).astype(np.float32)
# Group 1 has another truth than what is said of it.
TRUE = np.where(GROUPS[:, None] == 0, P, P[:, [1, 2, 0]])
CODES = (TRUE.cumsum(axis=1) < RNG.random((N, 1))).sum(axis=1)
ROWS = MethodRows(P)


def fitted(name, **parameters):
    """Return what the method calibrates with, and the rows that it may see."""
    method = CLASS_METHODS[name]
    rows = MethodRows(
        P, FEATURES if method.needs_features else None, GROUPS if method.needs_groups else None
    )
    return method.fit(rows, CODES, n_clusters=2, **parameters), rows


def test_names():
    assert list(CLASS_METHODS) == ["uncalibrated", "global", "faircal", "groupwise", "oracle"]
    assert [n for n, m in CLASS_METHODS.items() if m.yardstick] == ["groupwise", "oracle"]
    assert [n for n, m in CLASS_METHODS.items() if m.needs_features] == ["faircal"]


@pytest.mark.parametrize("name", list(CLASS_METHODS))
def test_each_gives_probabilities(name):
    calibrate, rows = fitted(name)
    found = calibrate(rows)
    assert found.shape == P.shape
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-12)


def test_uncalibrated_changes_nothing():
    calibrate, rows = fitted("uncalibrated")
    np.testing.assert_array_equal(calibrate(rows), P)


def test_global_is_one_map():
    calibrate, rows = fitted("global")
    expected = DirichletCalibrator().fit(P, CODES).predict(P)
    np.testing.assert_allclose(calibrate(rows), expected, atol=1e-12)


@pytest.mark.parametrize("name", ["faircal", "groupwise", "oracle"])
def test_groups_that_differ_are_told_apart(name):
    calibrate, rows = fitted(name)
    assert np.abs(calibrate(rows) - TRUE).mean() < 0.03
    one, rows = fitted("global")
    assert np.abs(one(rows) - TRUE).mean() > 0.1


def test_groupwise_is_a_map_of_its_own():
    calibrate, rows = fitted("groupwise", shrinkage="cv")  # which is not for it
    found = calibrate(rows)
    for group in (0, 1):
        own = group == GROUPS
        told = DirichletCalibrator().fit(P[own], CODES[own]).predict(P[own])
        np.testing.assert_allclose(found[own], told, atol=1e-12)


@pytest.mark.parametrize("name", ["groupwise", "oracle"])
def test_unknown_and_new_groups_get_the_map_of_all(name):
    calibrate, _ = fitted(name)
    one, _ = fitted("global")
    for group in (-1, 7):
        rows = MethodRows(P, groups=np.full(N, group))
        np.testing.assert_allclose(calibrate(rows), one(rows), atol=1e-12)


def test_what_is_missing_is_said():
    with pytest.raises(ParameterError, match="Oracle: expected the groups"):
        CLASS_METHODS["oracle"].fit(ROWS, CODES)
    with pytest.raises(ParameterError, match="FairCal: expected the features"):
        CLASS_METHODS["faircal"].fit(ROWS, CODES)
    with pytest.raises(ParameterError, match="did you mean faircal"):
        CLASS_METHODS["fairca"]
