"""Variances over people, from counts by bucket."""

import numpy as np
import pytest

from faircal.production.monitoring.counts import QUANTITIES, Counts, Layout, Shares, buckets_of


def test_buckets_are_even_and_the_same_for_the_same_number():
    numbers = np.arange(-5, 64_000)
    buckets = buckets_of(numbers, 32)
    counts = np.bincount(buckets, minlength=32)
    assert counts.min() > 1800
    assert counts.max() < 2200
    np.testing.assert_array_equal(buckets, buckets_of(numbers.copy(), 32))


def tables(person_left, person_right, bins, buckets, n_bins):
    left, right = buckets_of(person_left, buckets), buckets_of(person_right, buckets)
    table = np.zeros((buckets, n_bins), np.int64)
    np.add.at(table, (left, bins), 1)
    both = left != right
    np.add.at(table, (right[both], bins[both]), 1)
    return table, np.bincount(bins, minlength=n_bins)


@pytest.mark.parametrize("sharing", ["none", "many"])
def test_the_variance_is_that_of_repeating_it_with_other_people(sharing):
    """Scores of pairs have an effect of each person; pairs share people, or do not."""
    rng = np.random.default_rng(0)
    people, pairs = (4000, 2000) if sharing == "none" else (150, 2000)
    by, found, told = np.tri(5), [], []
    for _ in range(150):
        effect = rng.normal(size=people)
        if sharing == "none":
            left, right = np.arange(pairs) * 2, np.arange(pairs) * 2 + 1
        else:
            left, right = rng.integers(people, size=(2, pairs))
        score = effect[left] + effect[right] + rng.normal(size=pairs)
        bins = np.searchsorted([-1.5, -0.5, 0.5, 1.5], score)
        shares = Shares.of(Counts(*tables(left, right, bins, 64, 5)))
        found.append(by @ shares.share)
        told.append(np.trace(shares.covariance(by)))
    truth = np.var(found, axis=0).sum()
    assert np.mean(told) == pytest.approx(truth, rel=0.25)
    independent = (np.mean(found, axis=0) * (1 - np.mean(found, axis=0))).sum() / pairs
    assert (np.mean(told) > 3 * independent) == (sharing == "many")


def test_a_mixture_has_the_shares_and_variances_of_its_parts():
    rng = np.random.default_rng(1)
    tables = (rng.integers(0, 50, (64, 4)) for _ in range(2))
    one, other = (Shares.of(Counts(table, table.sum(axis=0))) for table in tables)
    mixed = one.mixed(other, 0.25)
    np.testing.assert_allclose(mixed.share, 0.75 * one.share + 0.25 * other.share)
    np.testing.assert_allclose(one.mixed(other, 0.0).deviations, one.deviations)
    by = np.eye(4)
    assert np.trace(one.mixed(other, 1.0).covariance(by)) == pytest.approx(
        np.trace(other.covariance(by))
    )


def test_no_counts_have_no_shares():
    nothing = np.zeros((8, 3), np.int64)
    for empty in (
        Shares.of(Counts(nothing, nothing[0])),
        Shares.of(Counts(nothing, np.zeros((2, 3, 3), np.int64))),
    ):
        assert empty.share.tolist() == [0, 0, 0]
        assert empty.freedom == 0


@pytest.mark.parametrize("people", [100, 30_000])
@pytest.mark.parametrize("within", [0.0, 1.0])
def test_images_vary_with_people_and_with_how_they_were_paired(people, within):
    """Pairs within a group have two images of it: half as many draws, where people are many."""
    rng = np.random.default_rng(3)
    found, told, pairs = [], [], 1500
    for _ in range(200):
        group = np.sort(rng.integers(4, size=people))
        left, right = rng.integers(people, size=(2, pairs))
        ends = np.searchsorted(group, np.arange(5))
        low, high = ends[group[left]], ends[group[left] + 1]
        same = low + (rng.random(pairs) * (high - low)).astype(np.int64)
        right = np.where(rng.random(pairs) < within, same, right)
        sides = np.stack([left, right])
        buckets = buckets_of(sides, 64)
        codes = {name: np.full((2, pairs), -1) for name in QUANTITIES} | {"clusters": group[sides]}
        tables = Layout(4, 4, 64).tables(codes, buckets, np.zeros(pairs, np.int64), 1)
        shares = Shares.of(Counts(*(each[0] for each in tables["clusters"])))
        shown = np.bincount(group[sides].ravel(), minlength=4) / (2 * pairs)
        np.testing.assert_allclose(shares.share, shown)
        found.append(shares.share)
        told.append(np.trace(shares.covariance(np.eye(4))))
    # Never less than of independent pairs, so rather more than less.
    assert 0.85 < np.mean(told) / np.var(found, axis=0).sum() < 1.35
