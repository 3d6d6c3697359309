"""What a cohort tells of images, once more in plain loops from the docstrings."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import ortho_group

from faircal import DataError
from faircal.methods.likeness import CohortImages, Likeness


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def drawn(people, dimension, seed=0):
    """Return unit vectors, people and groups of images: `people` of each group, 1 to 4 images."""
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(len(people)), people)
    center = rng.normal(size=(len(people), dimension))
    person = np.repeat(np.arange(len(group)), rng.integers(1, 5, len(group)))
    around = rng.normal(size=(len(group), dimension))
    vectors = (
        center[group[person]] + around[person] + 0.1 * rng.normal(size=(len(person), dimension))
    )
    return unit(vectors.astype(np.float32).astype(np.float64)), person, group[person]


@pytest.fixture(scope="module")
def images():
    """A group of one person, of three, of twelve and of forty, in no order; some of no group."""
    vectors, person, group = drawn((1, 3, 12, 40), 6)
    order = np.random.default_rng(1).permutation(len(person))
    group = np.where(np.isin(person, (10, 20)), -1, group)
    return CohortImages.of(vectors[order], 7 * person[order], group[order])


def distance(likeness, x):
    return min(
        float(((x - c) @ likeness.axes) @ ((x - c) @ likeness.axes)) for c in likeness.centers
    )


def kinds(likeness, x, centers=None):
    centers = likeness.centers if centers is None else centers
    near = np.array([-likeness.sharpness * ((x - c) ** 2).sum() for c in centers])
    near = np.exp(near - near.max())
    return near / near.sum()


def kinds_without_itself(images, image):
    """Kinds of an image whose own group's centre is that of the others."""
    centers, person = images.likeness.centers.copy(), images.person[image]
    own = images.group[person]
    others = [p for p in np.flatnonzero(images.group == own) if p != person] or [person]
    centers[own] = images.likeness.people[others].mean(axis=0)
    return kinds(images.likeness, images.unit[image], centers)


def doubted(closeness, likeness, of_kinds):
    """Two guesses of an image's kind agree with probability Σ k²: so much counts below."""
    sure, usual = sum(k * k for k in of_kinds), of_kinds @ likeness.levels
    return [c if c >= u else u + sure * (c - u) for c, u in zip(closeness, usual, strict=True)]


def closest(cosines):
    cosines = sorted(cosines, reverse=True)
    return [np.mean(cosines[:3]), np.mean(cosines[:30])]


def test_people_and_centers_are_means(images):
    people = [images.unit[images.person == p].mean(axis=0) for p in range(len(images.group))]
    assert len(people) == 54
    assert images.sizes.tolist() == [1, 3, 11, 39]
    np.testing.assert_allclose(images.likeness.people, people, rtol=0, atol=1e-7)
    centers = [images.likeness.people[images.group == g].mean(axis=0) for g in range(4)]
    np.testing.assert_allclose(images.likeness.centers, centers, rtol=0, atol=1e-12)


def test_numbers_of_any_image(images):
    likeness, rng = images.likeness, np.random.default_rng(2)
    vectors = np.concatenate([2 * unit(rng.normal(size=(200, 6))), images.unit])
    expected = []
    for x in vectors:
        cosines = closest(float(x @ p) for p in likeness.people)
        own = sum(k * (x @ c) for k, c in zip(kinds(likeness, x), likeness.centers, strict=True))
        near, end = likeness.far
        trust = min(max((end - distance(likeness, x)) / (end - near), 0), 1)
        expected.append([*doubted(cosines, likeness, kinds(likeness, x)), own, trust])
    found = likeness(vectors)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)
    assert (found[:, 3] == 0).any()
    assert ((found[:, 3] > 0) & (found[:, 3] < 1)).any()
    assert (found[200:, 3] == 1).mean() > 0.9


def test_numbers_without_the_two_people_of_a_pair(images):
    likeness, rng = images.likeness, np.random.default_rng(3)
    one, two = rng.integers(0, len(images.unit), (2, 400))
    keep = images.person[one] != images.person[two]
    one, two = one[keep], two[keep]
    expected = []
    for image, partner in zip(one, two, strict=True):
        x, out = images.unit[image], {images.person[image], images.person[partner]}
        cosines = [float(x @ p) for n, p in enumerate(likeness.people) if n not in out]
        own = images.group[images.person[image]]
        with_centers = [float(x @ c) for c in likeness.centers]
        others = [n for n in np.flatnonzero(images.group == own) if n not in out]
        with_centers[own] = float(sum(x @ likeness.people[n] for n in others)) / max(len(others), 1)
        of_kinds = kinds_without_itself(images, image)
        closeness = doubted(closest(cosines), likeness, of_kinds)
        expected.append([*closeness, of_kinds @ with_centers])
    np.testing.assert_allclose(images.values(one, two), expected, rtol=0, atol=1e-9)


def test_levels_are_what_is_usual(images):
    """Of closeness without one's own person, by kinds without it; everybody in a group alike."""
    likeness, weight, of_kinds, closeness = images.likeness, [], [], []
    for image, x in enumerate(images.unit):
        person = images.person[image]
        others = [p for n, p in enumerate(likeness.people) if n != person]
        closeness.append(closest(float(x @ p) for p in others))
        of_kinds.append(kinds_without_itself(images, image))
        own_images = (images.person == person).sum()
        weight.append(1 / own_images / images.sizes[images.group[person]])
    weight, of_kinds = np.array(weight) / np.sum(weight), np.array(of_kinds)
    mean = weight @ np.array(closeness)
    square = sum(w * np.outer(k, k) for w, k in zip(weight, of_kinds, strict=True))
    ridge = 0.01 * np.trace(square) / 4
    # The ridge as one more row for each kind.
    rows = np.concatenate([of_kinds * np.sqrt(weight)[:, None], np.sqrt(ridge) * np.eye(4)])
    wanted = (np.array(closeness) - mean) * np.sqrt(weight)[:, None]
    best = np.linalg.lstsq(rows, np.concatenate([wanted, np.zeros((4, 2))]), rcond=None)[0]
    np.testing.assert_allclose(likeness.levels, mean + best, rtol=0, atol=1e-9)


def test_a_group_that_is_missing_is_not_taken_for_one_that_few_resemble():
    """Its images are hardly less close than is usual for the kinds that they lie between."""
    vectors, person, group = drawn((30, 30, 30), 6)
    known = group < 2
    likeness = CohortImages.of(vectors[known], person[known], group[known]).likeness
    missing = vectors[~known]
    usual = np.array([kinds(likeness, x) @ likeness.levels for x in missing])[:, 0]
    closeness = np.array([closest(likeness.people @ x) for x in missing])[:, 0]
    below, found = closeness < usual, likeness(missing)[:, 0]
    assert below.mean() > 0.8
    assert (found[below] > closeness[below]).all()
    # Of kinds that are there nearly all counts: they are sure.
    unsure = np.array([1 - (kinds(likeness, x) ** 2).sum() for x in vectors])
    assert unsure[known].mean() < unsure[~known].mean() / 2


def test_images_from_elsewhere_are_compared_with_their_own_usual_closeness(images):
    """What is usual moves by the mean of what sure kinds are off."""
    likeness, rng = images.likeness, np.random.default_rng(5)
    elsewhere = unit(images.unit + 0.8 * rng.normal(size=images.unit.shape))
    off, sure = [], []
    for x in elsewhere:
        of_kinds = kinds(likeness, x)
        off.append(closest(likeness.people @ x) - of_kinds @ likeness.levels)
        sure.append(float(of_kinds @ of_kinds))
    moved = np.array(sure) @ np.array(off) / sum(sure)
    assert (moved < -0.01).all()
    np.testing.assert_allclose(
        likeness.among(elsewhere).levels, likeness.levels + moved, rtol=0, atol=1e-9
    )


def test_trust_ends_where_the_cohort_does(images):
    """The squared distance is in units of the variance within groups, nearest centres apart."""
    likeness = images.likeness
    assert likeness.axes.shape == (6, 3)
    span = likeness.centers - likeness.centers.mean(axis=0)
    outside = likeness.axes - span.T @ np.linalg.lstsq(span.T, likeness.axes, rcond=None)[0]
    np.testing.assert_allclose(outside, 0, atol=1e-9)
    basis = np.linalg.qr(span.T)[0][:, :3]
    within = np.zeros((3, 3))
    distances = []
    for image, x in enumerate(images.unit):
        person = images.person[image]
        own = images.group[person]
        others = [p for p in np.flatnonzero(images.group == own) if p != person] or [person]
        away = (x - likeness.people[others].mean(axis=0)) @ basis
        distances.append((away, [(x - c) @ basis for c in np.delete(likeness.centers, own, 0)]))
        within += np.outer(away, away) / (images.person == person).sum() / len(images.group)
    within += 0.05 * np.trace(within) / 3 * np.eye(3)
    inverse = np.linalg.inv(within)
    nearest = [min(d @ inverse @ d for d in (away, *others)) for away, others in distances]
    np.testing.assert_allclose(likeness.far, np.quantile(nearest, (0.97, 0.995)), rtol=1e-9)


def test_kinds_are_as_sharp_as_people_are_told_best(images):
    likeness = images.likeness

    def likely(sharpness):
        by_group = [[] for _ in images.sizes]
        for n, x in enumerate(likeness.people):
            own = images.group[n]
            others = [p for p in np.flatnonzero(images.group == own) if p != n] or [n]
            centers = likeness.centers.copy()
            centers[own] = likeness.people[others].mean(axis=0)
            near = -sharpness * ((x - centers) ** 2).sum(axis=1)
            by_group[own].append(near[own] - np.logaddexp.reduce(near))
        return np.mean([np.mean(group) for group in by_group])

    best = likely(likeness.sharpness)
    assert all(best > likely(likeness.sharpness * factor) for factor in (0.5, 0.8, 1.25, 2))


def test_turned_space(images):
    turn = ortho_group.rvs(6, random_state=0)
    vectors, person, group = drawn((3, 12, 40), 6)
    plain = CohortImages.of(vectors, person, group)
    turned = CohortImages.of(vectors @ turn, person, group)
    others = drawn((5, 5), 6, seed=1)[0]
    np.testing.assert_allclose(
        turned.likeness(others @ turn), plain.likeness(others), rtol=0, atol=2e-5
    )


def test_strangers_are_of_one_group_each_weighing_the_same(images):
    one, two, weight = images.strangers(400, np.random.default_rng(0))
    group = images.group[images.person]
    assert (images.person[one] != images.person[two]).all()
    assert (group[one] == group[two]).all()
    np.testing.assert_allclose(np.bincount(group[one], weight), [0, 1 / 3, 1 / 3, 1 / 3])
    inside = group[one] == 1
    pairs = {tuple(sorted(pair)) for pair in zip(one[inside], two[inside], strict=True)}
    own = np.flatnonzero(group == 1)  # few, so all of them
    assert len(pairs) == sum(images.person[a] < images.person[b] for a in own for b in own)


def test_parts_have_people_of_every_group(images):
    parts = images.parts(5, np.random.default_rng(0))
    for group in (2, 3):
        counts = np.bincount(parts[images.group == group], minlength=5)
        assert counts.max() - counts.min() <= 1


@pytest.mark.parametrize("copies", [2, 40])
def test_the_same_images_again_tell_nothing_new(copies):
    vectors, person, group = drawn((5, 12), 6)
    first = np.unique(person, return_index=True)[1]
    again = np.tile(first, copies)
    one, many = (CohortImages.of(vectors[r], person[r], group[r]).likeness for r in (first, again))
    others = drawn((5, 5), 6, seed=1)[0]
    np.testing.assert_allclose(many(others)[:, :3], one(others)[:, :3], rtol=0, atol=1e-6)


def same_everywhere(n):
    return np.tile(np.eye(4)[0], (n, 1))


def same_within_groups(n):
    return np.eye(4)[np.arange(n) % 2]


def same_up_to_sign(n):
    return np.eye(4)[np.zeros(n, int)] * np.where(np.arange(n) % 3, 1, -1)[:, None]


@pytest.mark.parametrize("vectors", [same_everywhere, same_within_groups, same_up_to_sign])
def test_no_variance(vectors):
    n = 12
    images = CohortImages.of(vectors(n), np.arange(n), np.arange(n) % 2)
    values = images.likeness(unit(np.random.default_rng(0).normal(size=(20, 4))))
    assert np.isfinite(values).all()
    restored = Likeness.restore(images.likeness.get_state())
    np.testing.assert_array_equal(restored(images.unit), images.likeness(images.unit))


def test_a_person_is_of_the_group_of_most_images():
    vectors, person, group = drawn((3, 12, 40), 6)
    counts = np.bincount(person)
    one = np.flatnonzero(person == np.flatnonzero(counts > 2)[0])[0]
    wrong = group.copy()
    wrong[one] = (group[one] + 1) % 3
    right, found = (CohortImages.of(vectors, person, codes) for codes in (group, wrong))
    np.testing.assert_array_equal(found.group, right.group)


@pytest.mark.parametrize("group", [[0, 1, 0], [0, 1, 1], [0, 0, 0], [0, -1, 0]])
def test_nobody_is_in_two_groups(group):
    """So that a group, or a second person in one, may be missing."""
    with pytest.raises(DataError, match="each person in one group, found people: 2, groups: "):
        CohortImages.of(np.eye(3), np.array([0, 0, 1]), np.array(group))


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"people": np.ones((5, 3))}, r"of one space, found people \(5, 3\)"),
        ({"far": [2.0, 1.0]}, "expected two ascending distances"),
        ({"centers": np.full((2, 4), np.nan)}, "expected finite numbers"),
        ({"sharpness": [1.0]}, "of one space"),
    ],
)
def test_a_state_that_cannot_be(changes, match):
    n = 12
    images = CohortImages.of(same_within_groups(n), np.arange(n), np.arange(n) % 2)
    with pytest.raises(DataError, match=match):
        Likeness.restore(images.likeness.get_state() | changes)
