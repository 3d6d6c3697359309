"""Pairs drawn anew keep people apart, labels right and numbers as they were."""

from __future__ import annotations

import numpy as np
import pytest

import faircal
from studies.repairing import dealt_anew, paired_anew, people_of
from studies.sets import NETWORKS, through


@pytest.fixture(scope="module")
def data():
    return faircal.simulate("small", seed=2)


def folds_of_people(data):
    person = people_of(data)
    found = {}
    for side in (data.pairs.left, data.pairs.right):
        for who, fold in zip(person[side].tolist(), data.pairs.fold.tolist(), strict=True):
            found.setdefault(who, set()).add(fold)
    return found


def couples(data, rows):
    left, right = data.pairs.left[rows], data.pairs.right[rows]
    return set(zip(np.minimum(left, right).tolist(), np.maximum(left, right).tolist(), strict=True))


def check(data):
    person = people_of(data)
    assert (data.genuine == (person[data.pairs.left] == person[data.pairs.right])).all()
    assert all(len(folds) == 1 for folds in folds_of_people(data).values())
    assert len(couples(data, slice(None))) == len(data)


def test_people_dealt_anew(data):
    new = dealt_anew(data, seed=1)
    check(new)
    assert couples(new, new.genuine) == couples(data, data.genuine)
    assert folds_of_people(new) != folds_of_people(data)
    assert not new.groups().cross[~new.genuine].any()


@pytest.mark.parametrize("kind", ["random", "cluster"])
@pytest.mark.parametrize("part", [0.5, 1.0])
def test_imposters_paired_anew(data, kind, part):
    calibration, test = data.split(test_fold=1)
    new = paired_anew(calibration, kind, part, seed=3)
    check(new)
    assert couples(new, new.genuine) == couples(calibration, calibration.genuine)
    for fold in calibration.fold_names:
        old, now = ((of.pairs.fold == fold) & ~of.genuine for of in (calibration, new))
        assert old.sum() == now.sum()
        stayed = len(couples(calibration, old) & couples(new, now)) / old.sum()
        assert stayed >= 1 - part - 0.01
        assert stayed < 1 - part / 2
    assert not set(people_of(new)[new.used_images()]) & set(people_of(test)[test.used_images()])


@pytest.mark.parametrize("network", NETWORKS)
def test_other_networks_change_scores_and_nothing_else(data, network):
    new = through(data, network)
    assert new.pairs is data.pairs
    assert 0.3 < np.corrcoef(new.scores, data.scores)[0, 1] < 1 - 1e-6
