"""Out-of-fold runs: folds, who is served, and that no method sees what it is tested on."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from faircal._base.errors import DataError, ParameterError
from faircal.data import ClassifierRows
from faircal.data.columns import Column
from faircal.evaluation.classes.methods import (
    ClassMethod,
    RowFolds,
    folds_of,
    out_of_fold,
    served,
)

N = 400


@pytest.fixture(scope="module")
def data():
    """Rows of three classes in two groups, one of which is told too much confidence."""
    rng = np.random.default_rng(0)
    true = rng.dirichlet(np.ones(3), N)
    codes = (rng.random(N)[:, None] > true.cumsum(axis=1)).sum(axis=1)
    group = rng.integers(2, size=N)
    said = true ** np.where(group == 1, 3, 1)[:, None]
    features = np.stack([4.0 * group, rng.normal(size=N)], axis=1).astype(np.float32)
    return ClassifierRows(
        name="made",
        probabilities=said / said.sum(axis=1, keepdims=True),
        codes=codes.astype(np.int64),
        classes=("a", "b", "c"),
        features=features,
        attributes={"sex": Column(group.astype(np.int32), ("F", "M"))},
        grouping=("sex",),
        identity=Column((np.arange(N) // 2).astype(np.int32), tuple(map(str, range(N // 2)))),
    )


def alone(data):
    """Return the data without identities."""
    return dataclasses.replace(data, identity=None)


def test_drawn_folds_hold_every_class_evenly(data):
    folds = folds_of(alone(data), 4, seed=1)
    counts = np.zeros((4, 3), dtype=int)
    np.add.at(counts, (folds.codes, data.codes), 1)
    assert (np.ptp(counts, axis=0) <= 1).all()
    assert np.ptp(counts.sum(axis=1)) <= 1
    assert folds.names == ("1", "2", "3", "4")
    assert folds.notes == ("folds drawn: 4 folds of rows, stratified by label, seed 1",)


def test_the_seed_draws_the_folds(data):
    one, same, other = (folds_of(alone(data), 5, seed).codes for seed in (0, 0, 1))
    assert (one == same).all()
    assert (one != other).any()


def test_no_unit_is_in_two_folds(data):
    folds = folds_of(data, 5)
    for unit in range(N // 2):
        assert len(set(folds.codes[data.identity.codes == unit])) == 1
    shares = np.bincount(folds.codes * 3 + data.codes, minlength=15).reshape(5, 3)
    assert np.ptp(shares.sum(axis=1)) <= 0.1 * N
    assert (shares > 0).all()
    assert "units (identity)" in folds.notes[0]


def test_rows_of_an_unknown_unit_are_on_their_own(data):
    unknown = Column(np.full(N, -1, dtype=np.int32), ())
    folds = folds_of(dataclasses.replace(data, identity=unknown), 5)
    assert np.ptp(np.bincount(folds.codes)) <= 3


def test_the_folds_of_the_table(data):
    own = dataclasses.replace(data, fold=np.array(["x", "y"] * (N // 2)))
    folds = folds_of(own, 5)
    assert folds.names == ("x", "y")
    assert folds.codes.tolist() == [0, 1] * (N // 2)
    # Each unit has two rows, one in each fold.
    assert folds.notes[0].startswith(f"warning: {N // 2} units (identity) have rows in several")
    assert folds_of(dataclasses.replace(own, identity=None)).notes == ()


def test_folds_that_cannot_be(data):
    with pytest.raises(DataError, match=r"'fold' has one value only \(1\)"):
        folds_of(dataclasses.replace(data, fold=np.ones(N, dtype=int)))
    with pytest.raises(DataError, match="expected 201 units"):
        folds_of(data, 201)
    with pytest.raises(ParameterError, match="2 or more, found 1"):
        folds_of(data, 1)


def test_who_is_served(data):
    every, left_out = served(data, attribute="sex")
    assert every == ("uncalibrated", "global", "faircal", "groupwise", "oracle")
    assert left_out == {}
    some, left_out = served(dataclasses.replace(data, features=None))
    assert some == ("uncalibrated", "global")
    assert set(left_out) == {"faircal", "groupwise", "oracle"}
    with pytest.raises(ParameterError, match="oracle: it needs groups"):
        served(data, ["global", "oracle"])
    with pytest.raises(ParameterError, match="faircal: it needs features"):
        served(dataclasses.replace(data, features=None), ["faircal"])
    with pytest.raises(ParameterError, match="did you mean faircal"):
        served(data, ["fairal"])
    with pytest.raises(ParameterError, match="more than once"):
        served(data, ["global", "global"])


@pytest.fixture
def spy(monkeypatch):
    """Let fits say how often each class was seen, whatever the row; keep what each was given."""
    seen = []

    def fit(self, rows, codes, **settings):
        seen.append((rows, codes))
        shares = np.bincount(codes, minlength=3) / len(codes)

        def apply(other):
            seen.append((other, None))
            return np.tile(shares, (len(other.probabilities), 1))

        return apply

    monkeypatch.setattr(ClassMethod, "fit", fit)
    return seen


@pytest.mark.parametrize("name", ["global", "faircal", "oracle"])
def test_a_method_sees_the_other_folds_only(data, spy, name):
    folds = folds_of(data, 4)
    found = out_of_fold(data, [name], attribute="sex", folds=folds)[name]
    for code in range(4):
        held = folds.codes == code
        wanted = np.bincount(data.codes[~held], minlength=3) / (~held).sum()
        np.testing.assert_allclose(found[held], np.tile(wanted, (held.sum(), 1)))
    for i, (given, codes) in enumerate(spy):
        rows = (folds.codes == i // 2) == (codes is None)
        np.testing.assert_array_equal(given.probabilities, data.probabilities[rows])
        assert (given.features is None) == (name != "faircal")
        assert (given.groups is None) == (name != "oracle")
        if given.features is not None:
            np.testing.assert_array_equal(given.features, data.features[rows])
        if given.groups is not None:
            np.testing.assert_array_equal(given.groups, data.attributes["sex"].codes[rows])
        assert np.bincount(given.units).tolist() == [2] * (rows.sum() // 2)
        if codes is not None:
            np.testing.assert_array_equal(codes, data.codes[rows])


def test_progress_is_told(data, spy):
    told, folds = [], folds_of(data, 3)
    out_of_fold(data, ["faircal"], attribute="sex", folds=folds, progress=lambda *w: told.append(w))
    assert [(done, total) for _, done, total, _ in told] == [(0, 3), (1, 3), (2, 3), (3, 3)]
    assert told[1][3] == "faircal, fold 2"


def test_parts_that_cannot_be_fitted(data):
    with pytest.raises(ParameterError, match="at most the 300 rows to fit on without fold 1"):
        out_of_fold(data, ["faircal"], attribute="sex", folds=folds_of(data, 4), n_clusters=301)
    two = RowFolds((data.codes == 0).astype(np.int64), ("x", "y"))
    codes = np.where(data.codes == 0, 0, 1)
    with pytest.raises(DataError, match="without fold x there are labels of one class"):
        out_of_fold(dataclasses.replace(data, codes=codes), ["global"], folds=two)
    with pytest.raises(DataError, match="labels are needed"):
        out_of_fold(dataclasses.replace(data, codes=None), ["global"], folds=two)


def test_every_method_helps_where_a_group_is_told_too_much(data):
    settings = {"n_clusters": 2, "calibrator": "temperature", "folds": folds_of(data, 3)}
    found = out_of_fold(data, attribute="sex", **settings)
    rows = np.arange(N)
    nll = {name: -np.log(p[rows, data.codes]).mean() for name, p in found.items()}
    for name, p in found.items():
        np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-9)
        assert name == "uncalibrated" or nll[name] < nll["uncalibrated"]
    np.testing.assert_array_equal(found["uncalibrated"], data.probabilities)
    # Two clusters are the two groups here.
    assert nll["faircal"] < nll["global"]
    again = out_of_fold(data, ["faircal"], attribute="sex", **settings)
    np.testing.assert_array_equal(again["faircal"], found["faircal"])
