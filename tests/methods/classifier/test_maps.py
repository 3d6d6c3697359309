"""Maps of sets of rows: what pulls them, and how sure they end up."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import softmax

from faircal._base.errors import ModelFileError
from faircal.calibrators.classes import (
    DirichletCalibrator,
    PulledMap,
    Strength,
    TemperatureScaling,
    make_class_calibrator,
)
from faircal.methods.classifier import SetMaps
from faircal.methods.classifier.maps import _HeldOutRows
from faircal.metrics import multiclass_nll


def test_probabilities_are_sharpened_and_stay_probabilities():
    one = TemperatureScaling().fit([[0.6, 0.3, 0.1]] * 3, [0, 1, 2])
    one.coefficients_ = np.eye(3, 4)
    p = np.array([[0.6, 0.3, 0.1], [1.0, 0.0, 0.0], [1e-300, 0.5, 0.5]])
    for power in (0.5, 2.0):
        found = SetMaps(one, [PulledMap(one, 1.0)], Strength(1.0), power).apply(p, np.zeros(3, int))
        told = np.maximum(p, np.finfo(float).eps) ** power
        np.testing.assert_allclose(found, told / told.sum(axis=1, keepdims=True), rtol=1e-6)


def test_sharpness_mends_maps_of_few_rows():
    """Pulled maps are less sure than they might be here; the power that mends it helps."""
    rng = np.random.default_rng(0)

    def rows(n, apart):
        logits, sets = 1.5 * rng.normal(size=(n, 5)), rng.integers(0, 30, n)
        likely = softmax(logits + apart[sets], axis=1)
        codes = (likely.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
        return softmax(logits, axis=1), np.minimum(codes, 4), sets

    apart = 1.5 * rng.normal(size=(30, 5))
    p, codes, sets = rows(1500, apart)
    new, labels, where = rows(5000, apart)
    maps = SetMaps.fit(p, codes, sets, 30)
    assert np.isfinite(maps.strength.rows)
    assert 1.02 < maps.sharpness <= 2.0
    plain = SetMaps(maps.overall, maps.sets, maps.strength)
    mended, as_is = (multiclass_nll(m.apply(new, where), labels) for m in (maps, plain))
    assert mended < as_is


def test_sharpness_is_bounded_where_classes_can_be_told_apart():
    rng = np.random.default_rng(0)
    p, sets = rng.dirichlet([3, 3, 3], 1000), rng.integers(0, 2, 1000)
    codes = (p.argmax(axis=1) + sets) % 3
    maps = SetMaps.fit(p, codes, sets, 2, calibrator="temperature")
    assert 0.5 <= maps.sharpness <= 2.0
    assert np.isfinite(maps.apply(p, sets)).all()


def test_sets_that_do_not_differ_keep_the_map_of_all_rows():
    """Noise alone makes some weaker pull look a little better in most draws."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        p = rng.dirichlet([1, 1, 1], 600)
        codes = (p.cumsum(axis=1) < rng.random((600, 1))).sum(axis=1)
        maps = SetMaps.fit(p, np.minimum(codes, 2), rng.integers(0, 3, 600), 3)
        assert maps.strength.rows == np.inf


def test_what_is_held_out_is_not_in_the_map_of_all_rows(monkeypatch):
    """In cross-validation every map, that of all rows too, is fitted on the other folds."""
    seen = []
    fit = DirichletCalibrator.fit

    def watched(self, probabilities, codes, **rest):
        seen.append(len(codes))
        return fit(self, probabilities, codes, **rest)

    monkeypatch.setattr(DirichletCalibrator, "fit", watched)
    rng = np.random.default_rng(0)
    p = rng.dirichlet([1, 1, 1], 500)
    SetMaps.fit(p, rng.integers(0, 3, 500), rng.integers(0, 2, 500), 2)
    assert seen[0] == 500
    assert set(seen[1:]) == {400}


@pytest.mark.parametrize("calibrator", ["dirichlet", "isotonic"])
def test_losses_of_rows_held_out_come_in_their_order(calibrator):
    """Whose they are counts: rows of one unit are better or worse together."""
    rng = np.random.default_rng(0)
    p, codes = rng.dirichlet([1, 1, 1], 400), rng.integers(0, 3, 400)
    sets = rng.integers(-1, 3, 400)
    overall = make_class_calibrator(calibrator).fit(p, codes)
    turned = rng.permutation(400)
    train, test = np.sort(turned[:300]), turned[300:]
    found = _HeldOutRows(overall, p, codes, sets, 3).losses(train, test)
    base = overall.settled().fit(p[train], codes[train])
    for i, strength in enumerate(overall.strengths()):
        maps = []
        for k in range(3):
            own = train[sets[train] == k]
            finite = np.isfinite(strength.rows)
            maps.append(base.towards(p[own], codes[own], [strength])[0] if finite else None)
        said = SetMaps(base, maps, strength).apply(p[test], sets[test])
        told = -np.log(np.maximum(said[np.arange(100), codes[test]], np.finfo(float).eps))
        np.testing.assert_allclose(found[i], told, atol=2e-3)


def test_sets_without_rows_and_rows_without_a_set():
    rng = np.random.default_rng(0)
    p, codes = rng.dirichlet([1, 1, 1], 300), rng.integers(0, 3, 300)
    sets = np.where(np.arange(300) < 150, 0, -1)
    maps = SetMaps.fit(p, codes, sets, 3, shrinkage=5.0)
    assert [one is None for one in maps.sets] == [False, True, True]
    alone = maps.overall.predict(p)
    np.testing.assert_array_equal(maps.apply(p, np.full(300, -1)), alone)
    np.testing.assert_array_equal(maps.apply(p, np.full(300, 2)), alone)
    assert np.abs(maps.apply(p, np.zeros(300, int)) - alone).max() > 0


def test_a_state_with_a_map_too_few():
    rng = np.random.default_rng(0)
    p, codes = rng.dirichlet([1, 1, 1], 100), rng.integers(0, 3, 100)
    state = SetMaps.fit(p, codes, np.arange(100) % 2, 2, shrinkage=5.0).get_state()
    less = {key: array for key, array in state.items() if not key.startswith("1/")}
    with pytest.raises(ModelFileError, match="not those of its clusters"):
        SetMaps.of_state(less, "dirichlet")
