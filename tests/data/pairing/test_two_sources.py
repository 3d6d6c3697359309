"""Genuine pairs of one's own beside imposters of a cohort: who is in which pair."""

from __future__ import annotations

import numpy as np
import pytest

import faircal
from faircal import Cohort, DataError, Dataset
from faircal.data.pairing.two_sources import group_shares, two_sources
from tests.cohorts import own_and_cohort


@pytest.fixture(scope="module")
def people():
    return faircal.simulate("small", seed=3, people=160, images=640, pairs=2800, dimension=32)


def test_pairs_are_genuine_of_ones_own_and_strangers_of_a_group_of_the_cohort(people):
    own, cohort = own_and_cohort(people, "gender")
    both = two_sources(own, cohort)
    data, pairs, n = both.data, both.data.pairs, both.n_own
    assert data.genuine.sum() == own.genuine.sum()
    assert both.left_out == (~own.genuine).sum()
    cosines = data.scores[data.genuine]
    np.testing.assert_array_equal(cosines, own.scores[own.genuine])
    assert (pairs.left[data.genuine] < n).all()
    imposters = ~data.genuine
    assert (pairs.left[imposters] >= n).all()
    assert (pairs.right[imposters] >= n).all()
    left, right = (
        side[imposters].astype(np.int64) for side in (data.people.left, data.people.right)
    )
    assert (left != right).all()
    couples = np.unique(np.stack([np.minimum(left, right), np.maximum(left, right)]), axis=1)
    assert couples.shape[1] == 2 * 40 * 39 / 2  # every two people of a gender
    images = np.stack([pairs.left[imposters], pairs.right[imposters]])
    assert len(np.unique(np.sort(images, axis=0), axis=1).T) == imposters.sum() == 10 * 1560
    groups = data.groups()
    assert (groups.names, data.default_attribute) == (("F", "M"), "gender")
    assert (groups.pair[imposters] >= 0).all()


@pytest.mark.parametrize("attribute", ["ethnicity+gender", None])
def test_groups_are_the_cohorts_crossed_or_not(people, attribute):
    own, cohort = own_and_cohort(people, attribute)
    data = two_sources(own, cohort).data
    known = attribute is not None  # the data has the attribute, too
    assert len(data.groups().names) == 8
    assert (data.groups().pair[data.genuine] >= 0).all() == known
    assert data.default_attribute == (attribute or "group")


def test_people_of_the_same_name_are_two(people):
    own, cohort = own_and_cohort(people)
    names = people.images.identity.names
    renamed = Cohort(
        embeddings=cohort.embeddings,
        identity=[names[2 * code] for code in cohort.identity.codes],
        groups=cohort.groups,
    )
    sides = two_sources(own, renamed).data.people
    genuine = own.genuine.sum()
    assert not set(sides.left[:genuine]) & set(sides.left[genuine:])


def test_shares_are_those_of_the_images_whatever_they_have_in_common(people):
    _, cohort = own_and_cohort(people, "ethnicity")
    groups = people.image_groups("ethnicity")
    rows = np.flatnonzero((people.images.identity.codes % 2 == 0) & (groups.codes != 1))
    vectors, known = people.embeddings.vectors, np.array(groups.names)[groups.codes[rows]]
    person, group = cohort.identity.codes, cohort.groups.codes
    theirs = cohort.embeddings["embedding"].vectors
    expected = [np.mean(known == name) for name in cohort.groups.names]
    shares = group_shares(vectors[rows], theirs, person, group)
    np.testing.assert_allclose(shares, expected, atol=0.08)
    # What all groups are equally far from says nothing.
    means = np.stack([theirs[group == g].mean(axis=0) for g in range(4)])
    camera = np.linalg.lstsq(means, np.ones(4), rcond=None)[0].astype(np.float32)
    moved = group_shares(vectors[rows] + 0.3 * camera, theirs, person, group)
    np.testing.assert_allclose(moved, shares, atol=1e-4)


def test_what_is_no_source_is_refused(people):
    own, cohort = own_and_cohort(people)
    with pytest.raises(DataError, match="expected genuine pairs beside the imposters of a cohort"):
        two_sources(own.subset(~own.genuine), cohort)
    table = Dataset(
        pairs={"left": [0], "right": [1], "genuine": [1], "score": [0.5]},
        attributes={"image_id": [0, 1]},
    )
    with pytest.raises(DataError, match="need the embeddings of the data, found scores only"):
        two_sources(table, cohort)
    scored = Dataset(
        embeddings=np.eye(32)[:2],
        pairs={"left": [0], "right": [1], "genuine": [1], "score": [0.5]},
    )
    with pytest.raises(DataError, match=r"ready-made scores.*remove the column 'score'"):
        two_sources(scored, cohort)
