"""The ways to calibrate that are compared: what each sees, and what it makes of it."""

from __future__ import annotations

import numpy as np
import pytest

from faircal._base.errors import NotFittedError, ParameterError
from faircal.calibrators.classes import DirichletCalibrator
from faircal.evaluation.classes.methods import CLASS_METHODS, make_class_method

RNG = np.random.default_rng(0)
N = 2000
P = RNG.dirichlet([1.0, 1.0, 1.0], N)
GROUPS = RNG.integers(0, 2, N)
FEATURES = (GROUPS[:, None] * 6 + RNG.normal(size=(N, 2))).astype(np.float32)
# Group 1 has another truth than what is said of it.
TRUE = np.where(GROUPS[:, None] == 0, P, P[:, [1, 2, 0]])
CODES = (TRUE.cumsum(axis=1) < RNG.random((N, 1))).sum(axis=1)
SEEN = {"features": FEATURES, "groups": GROUPS}


def fitted(name, **parameters):
    method = make_class_method(name, n_clusters=2, **parameters)
    seen = {
        key: SEEN[key]
        for key, needed in (("features", method.needs_features), ("groups", method.needs_groups))
        if needed
    }
    return method.fit(P, CODES, **seen), seen


def test_names():
    assert list(CLASS_METHODS) == ["uncalibrated", "global", "faircal", "groupwise", "oracle"]
    assert [n for n, m in CLASS_METHODS.items() if m.yardstick] == ["groupwise", "oracle"]
    assert [n for n, m in CLASS_METHODS.items() if m.needs_features] == ["faircal"]


@pytest.mark.parametrize("name", list(CLASS_METHODS))
def test_each_gives_probabilities(name):
    method, seen = fitted(name)
    found = method.apply(P, **seen)
    assert found.shape == P.shape
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-12)


def test_uncalibrated_changes_nothing():
    method, _ = fitted("uncalibrated")
    np.testing.assert_array_equal(method.apply(P), P)


def test_global_is_one_map():
    method, _ = fitted("global")
    np.testing.assert_allclose(
        method.apply(P), DirichletCalibrator().fit(P, CODES).predict(P), atol=1e-12
    )


@pytest.mark.parametrize("name", ["faircal", "groupwise", "oracle"])
def test_groups_that_differ_are_told_apart(name):
    method, seen = fitted(name)
    assert np.abs(method.apply(P, **seen) - TRUE).mean() < 0.03
    one, _ = fitted("global")
    assert np.abs(one.apply(P) - TRUE).mean() > 0.1


def test_groupwise_is_a_map_of_its_own():
    method, _ = fitted("groupwise", shrinkage="cv")  # which is not for it
    found = method.apply(P, groups=GROUPS)
    for group in (0, 1):
        own = group == GROUPS
        told = DirichletCalibrator().fit(P[own], CODES[own]).predict(P[own])
        np.testing.assert_allclose(found[own], told, atol=1e-12)


@pytest.mark.parametrize("name", ["groupwise", "oracle"])
def test_unknown_and_new_groups_get_the_map_of_all(name):
    method, _ = fitted(name)
    one, _ = fitted("global")
    for group in (-1, 7):
        strange = np.full(N, group)
        np.testing.assert_allclose(method.apply(P, groups=strange), one.apply(P), atol=1e-12)


def test_what_is_missing_is_said():
    with pytest.raises(ParameterError, match="Oracle: expected the groups"):
        make_class_method("oracle").fit(P, CODES)
    with pytest.raises(ParameterError, match="FairCal: expected the features"):
        make_class_method("faircal").fit(P, CODES)
    for name in ("global", "faircal"):
        with pytest.raises(NotFittedError, match="call fit first"):
            make_class_method(name).apply(P)
    with pytest.raises(ParameterError, match="did you mean faircal"):
        make_class_method("fairca")
