"""Imposters drawn anew, and people set apart as a cohort: nobody's pair is mislabelled or lost."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from scipy.stats import chisquare

import faircal
from faircal.data import Embeddings, Feature
from faircal.data.pairing import draw_cohort, redraw_imposters

SIZE = {"people": 80, "images": 400, "pairs": 1500, "dimension": 16}


@pytest.fixture(scope="module")
def calibration():
    return faircal.simulate("small", seed=1, **SIZE).split(test_fold=5)[0]


def couples(data):
    left, right = np.sort([data.pairs.left, data.pairs.right], axis=0)
    return set(zip(left.tolist(), right.tolist(), strict=True))


@pytest.mark.parametrize("how", ["random", "matched", "cluster", "hard"])
def test_other_imposters_of_the_same_images_and_the_same_genuine_pairs(calibration, how):
    drawn = redraw_imposters(calibration, how, seed=3)
    person = calibration.images.identity.codes
    same = person[drawn.pairs.left] == person[drawn.pairs.right]
    assert (same == drawn.genuine).all()
    assert len(couples(drawn)) == len(drawn) == len(calibration)
    assert set(drawn.used_images()) <= set(calibration.used_images())
    assert couples(drawn.subset(drawn.genuine)) == couples(calibration.subset(calibration.genuine))
    assert couples(drawn) != couples(calibration)
    np.testing.assert_array_equal(
        drawn.scores, drawn.embeddings.cosine(drawn.pairs.left, drawn.pairs.right)
    )
    assert couples(redraw_imposters(calibration, how, seed=3)) == couples(drawn)


def test_every_pair_of_strangers_is_equally_likely():
    # Of images of three people, 3 × 2 × 1: eleven pairs of strangers; the last two share no label.
    vectors = np.eye(6, 8) + 0.1
    data = faircal.Dataset(
        embeddings=vectors,
        pairs={
            "left": [0, 0, 3, 0, 1],
            "right": [1, 2, 4, 3, 5],
            "genuine": [1, 1, 1, 0, 0],
            "fold": [1] * 5,
        },
    )
    found = Counter(
        pair
        for seed in range(400)
        for pair in couples(redraw_imposters(data, seed=seed)) - {(0, 1), (0, 2), (3, 4)}
    )
    assert len(found) == 11
    assert sum(found.values()) == 800
    # Drawn without repeats: a little more even than chance.
    assert chisquare(list(found.values())).pvalue > 0.001


def test_more_than_there_are_is_all_of_them(calibration):
    few = calibration.subset(np.arange(12))
    drawn = redraw_imposters(few, number=10**6)
    person, used = few.images.identity.codes, few.used_images()
    strangers = np.triu(person[used][:, None] != person[used]).sum()
    assert (~drawn.genuine).sum() == strangers
    assert drawn.notes[-1].endswith("not 1,000,000: there are no more")


def test_what_cannot_be_drawn_is_an_error(calibration):
    with pytest.raises(faircal.ParameterError, match="unknown kind 'rnadom'; did you mean random"):
        redraw_imposters(calibration, "rnadom")
    pairs = {
        "left": [0, 1],
        "right": [2, 3],
        "genuine": [0, 1],
        "score": [0.1, 0.9],
        "fold": [1, 2],
    }
    scored = faircal.Dataset(pairs=pairs, attributes={"group": list("abab")})
    assert redraw_imposters(scored, "given") is scored
    with pytest.raises(faircal.DataError, match=r"expected embeddings, .* found ready-made scores"):
        redraw_imposters(scored)


def test_a_cohort_is_apart_with_all_its_images(calibration):
    apart = draw_cohort(calibration, 3, "ethnicity", seed=2)
    cohort, person = apart.cohort, calibration.images.identity
    groups = calibration.group_names("ethnicity")
    assert [cohort.counts()[group][0] for group in groups] == [3] * len(groups)
    inside = np.isin(np.asarray(person.names)[person.codes], cohort.identity.names)
    used = calibration.used_images()
    assert len(cohort) == inside[used].sum()
    with_them = inside[calibration.pairs.left] | inside[calibration.pairs.right]
    assert couples(apart) == couples(calibration.subset(~with_them))
    rows = used[inside[used]]
    (vectors,) = (each.vectors for each in cohort.embeddings.values())
    np.testing.assert_array_equal(vectors, calibration.embeddings.vectors[rows])
    again, other = (draw_cohort(calibration, 3, "ethnicity", seed=s).cohort for s in (2, 3))
    assert again.fingerprint() == cohort.fingerprint() != other.fingerprint()
    assert redraw_imposters(apart).cohort is cohort


def test_who_has_a_picture_among_those_who_stay_is_left_out(calibration):
    apart = draw_cohort(calibration, 3, "ethnicity", seed=2)
    vectors = calibration.embeddings.vectors.copy()
    person = calibration.images.identity
    drawn = person.names.index(apart.cohort.identity.names[0])
    used = calibration.used_images()
    vectors[apart.used_images()[0]] = vectors[used[person.codes[used] == drawn][0]]
    twice = faircal.Dataset.assemble(
        "twice",
        calibration.images,
        calibration.pairs,
        {"embedding": Feature(Embeddings.of(vectors, "embeddings"))},
    )
    cohort = draw_cohort(twice, 3, "ethnicity", seed=2).cohort
    assert cohort.identity.names == apart.cohort.identity.names[1:]
    (note,) = cohort.notes
    assert "1 of 12 people are in twice, too (0 by name, 1 by a picture;" in note


def test_nobody_unknown_is_drawn_and_somebody_must_be_left(calibration):
    with pytest.raises(faircal.DataError, match="people as a cohort 0 pairs are left"):
        draw_cohort(calibration, 1000, "ethnicity")
    rng = np.random.default_rng(0)
    data = faircal.Dataset(
        embeddings=rng.normal(size=(40, 4)),
        pairs={
            "left": np.arange(0, 40, 2).tolist() + list(range(20)),
            "right": np.arange(1, 40, 2).tolist() + list(range(20, 40)),
            "genuine": [1] * 20 + [0] * 20,
            "fold": [1] * 40,
        },
        attributes={
            "identity": [*np.repeat([f"p{i}" for i in range(18)], 2), "", "", "z", "z"],
            "group": [*"ab" * 17, *"ab", *"ab", "", ""],
        },
    )
    cohort = draw_cohort(data, 6, "group").cohort
    # Everybody has an image of each group; the first is taken for theirs.
    assert len(cohort.identity.names) == 6
    assert not {"", "z"} & set(cohort.identity.names)
