"""Thresholds with a guarantee: numbers by hand, what is refused, and how often a promise fails."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom, norm

from faircal._base.errors import DataError, ParameterError
from faircal.data import Groups
from faircal.evaluation.thresholds.guarantee import (
    COUNTED,
    EXTRAPOLATED,
    MEASURED,
    OF_PEOPLE,
    cluster_sets,
    counted,
    group_sets,
    guarantee,
    imposters,
    requirement,
)
from faircal.evaluation.thresholds.imposters import ImposterSet


def twos(n):
    """Return pairs of people who are each in one pair only: nothing is shared."""
    people = np.arange(2 * n)
    return people[:n], people[n:]


def crowd(rng, n=30, images=3, person=0.2, two=0.3):
    """Return imposter pairs of n people; scores are normal, and alike where people are shared."""
    one, other = np.triu_indices(n, 1)
    alike = rng.normal(size=n) * person**0.5
    dyad = alike[one] + alike[other] + rng.normal(size=len(one)) * two**0.5
    noise = rng.normal(size=(len(one), images**2)) * (1 - 2 * person - two) ** 0.5
    scores = dyad[:, None] + noise
    each = images**2
    return ImposterSet(scores.ravel(), np.repeat(one, each), np.repeat(other, each))


def test_pairs_that_share_nobody_are_counted_by_the_binomial_or_more_carefully():
    scores = np.random.default_rng(0).normal(size=5000)
    found = ImposterSet(scores, *twos(5000))
    exact = max(k for k in range(100) if binom.cdf(k, 5000, 0.01) <= 0.05)
    assert exact - 3 <= found.allowed(0.01, 0.05) <= exact  # 37


def test_the_threshold_is_the_lowest_score_with_no_more_errors():
    found = ImposterSet(np.random.default_rng(1).normal(size=2000), *twos(2000))
    most, at = found.allowed(0.01, 0.05), found.threshold(0.01, 0.05)
    assert found.errors(at) == most
    assert at in found.scores
    below = found.scores[found.scores < at].max()
    assert found.errors(below) == most + 1


def test_of_equal_scores_all_or_none_are_errors():
    scores = np.round(np.random.default_rng(1).normal(size=2000), 1)
    found = ImposterSet(scores, *twos(2000))
    at = found.threshold(0.01, 0.05)
    assert found.errors(at) <= found.allowed(0.01, 0.05)
    assert found.errors(scores[scores < at].max()) > found.allowed(0.01, 0.05)


def test_with_no_error_allowed_the_threshold_is_above_all_scores():
    found = ImposterSet(np.linspace(0, 1, 400), *twos(400))
    assert found.allowed(0.01, 0.05) == 0
    assert found.threshold(0.01, 0.05) == np.nextafter(1.0, 2.0)


def test_bound_and_allowed_errors_are_two_sides_of_one_test():
    found = crowd(np.random.default_rng(2))
    most = found.allowed(0.02, 0.1)
    assert most >= 0
    assert found.upper_bound(most, 0.1) <= 0.02 < found.upper_bound(most + 1, 0.1)
    lowest, unseen = found.upper_bound(0, 0.1), found.unseen(0, 0.1)
    assert found.too_few(unseen, lowest * 1.01, 0.1)
    assert not found.too_few(unseen, lowest * 0.99, 0.1)


def test_a_rate_needs_people_besides_pairs():
    found = crowd(np.random.default_rng(2), n=30, images=8, person=0.0, two=0.0)
    assert found.too_few(0, 0.005, 0.05)  # by its pairs
    assert found.allowed(0.005, 0.05) == -1
    assert found.resolved(0.05) == pytest.approx(6 / (30 * 29))  # three in 435 twos


def test_sharing_people_allows_fewer_errors():
    found = crowd(np.random.default_rng(5), n=60, person=0.1)
    alone = ImposterSet(found.scores, *twos(len(found.scores)))
    assert found.allowed(0.01, 0.05) < 0.7 * alone.allowed(0.01, 0.05)
    assert found.threshold(0.01, 0.05) > alone.threshold(0.01, 0.05)


RATE, FAMILY = 0.02, 3


@pytest.fixture(scope="module")
def promised():
    """Thresholds of 240 sets of people by risk; 0 is risk 0.2 as if no pairs shared people."""
    found = {0.05: [], 0.2: [], 0.2 / FAMILY: [], 0: []}
    for seed in range(240):
        each = crowd(np.random.default_rng([seed, 4]), images=2)
        alone = ImposterSet(each.scores, *twos(len(each.scores)))
        for risk, kept in found.items():
            kept.append(each.threshold(RATE, risk) if risk else alone.threshold(RATE, 0.2))
    return {risk: np.array(kept) for risk, kept in found.items()}


@pytest.mark.parametrize("risk", [0.05, 0.2])
def test_a_promise_fails_no_more_often_than_told(promised, risk):
    failed = (norm.sf(promised[risk]) > RATE).sum()
    assert failed <= binom.ppf(0.999, 240, risk)


def test_pairs_taken_as_independent_would_promise_too_much(promised):
    failed = (norm.sf(promised[0]) > RATE).sum()
    assert failed > binom.ppf(0.999, 240, 0.25)


def test_a_promise_for_every_group_holds_in_all_at_once(promised):
    ups = np.array([0.0, 0.1, 0.2])  # groups of three score higher and higher
    shared = promised[0.2].reshape(-1, FAMILY) + ups
    worst = norm.sf(shared.max(axis=1) - ups.max())  # the highest group needs the highest
    own = norm.sf(promised[0.2 / FAMILY].reshape(-1, FAMILY)).max(axis=1)
    assert (worst > RATE).sum() <= binom.ppf(0.999, 80, 0.2)
    assert (own > RATE).sum() <= binom.ppf(0.999, 80, 0.2)
    # Without the correction, thresholds used side by side would fail more often in some group.
    assert (norm.sf(promised[0.2].reshape(-1, FAMILY)).max(axis=1) > RATE).sum() > (
        own > RATE
    ).sum()


def heavy(rng, n=200, images=2):
    """Return imposter pairs of people of whom a few score far higher or lower: t with 3 degrees."""
    one, other = (np.repeat(side, images) for side in np.triu_indices(n, 1))
    person = 0.3 * rng.standard_t(3, size=n)
    return ImposterSet(person[one] + person[other] + rng.normal(size=len(one)), one, other)


def test_heavy_tailed_people_need_counted_errors_and_more_distance():
    """Their promises of 0.1 % were broken in more than half of the cases."""
    refused, low = 0, []
    for seed in range(5):
        found = heavy(np.random.default_rng([seed, 7]))
        assert found.dependence.heavy
        assert found.unseen(10, 0.05) == pytest.approx(
            -20 / 3 * math.log(0.05) * (1 - 200 / (2 * 39800)) * (1 + found._most_of_one(10))
        )
        made = guarantee(found, fpr=0.001, upper=math.inf)
        refused += bool(made.refused) and "no tail can be extrapolated" in made.refused[0].status
        row = guarantee(found, fpr=0.02, upper=math.inf).rows[0]
        assert row.heavy_tailed
        low.append(row.rate < 0.012 or row.status.startswith("refused"))
    assert refused == 5
    assert all(low)
    assert not crowd(np.random.default_rng(1), n=200, images=2).dependence.heavy


def test_the_most_erring_person_counts_again_for_those_who_may_be_missing():
    one, other = np.triu_indices(30, 1)
    scores = np.linspace(0, 1, len(one))
    scores[one == 3] += 1  # all pairs of person 3 with a higher number score highest: 26
    found = ImposterSet(scores, one, other)
    assert [found._most_of_one(k) for k in (0, 1, 26)] == [0, 1, 26]
    five = 5 / 3 * math.log(20) * (1 - 30 / (2 * len(one)))
    assert found.unseen(26, 0.05) == pytest.approx(27 * five)
    alone = ImposterSet(scores, *twos(len(scores)))
    assert alone.unseen(26, 0.05) == 0


def test_of_people_all_but_a_few_have_an_own_rate_that_low():
    found = heavy(np.random.default_rng(8), n=200)
    at, rate = found.threshold_of_people(0.02, 0.05), 0.02
    reference = np.random.default_rng(0).permutation(200) % 2 == 1
    one, other = found.left, found.right
    above, nearly = 0, 0
    for person in np.flatnonzero(~reference):
        mixed = ((one == person) & reference[other]) | ((other == person) & reference[one])
        above += (found.scores[mixed] >= at).mean() > rate
        nearly += (found.scores[mixed] >= np.nextafter(at, -1)).mean() > rate
    # The chance is below 5 % that 99 or more of 100 are below a number that 95 % are below.
    assert binom.sf(98, 100, 0.95) <= 0.05 < binom.sf(97, 100, 0.95)
    assert (above, nearly) == (1, 2)
    made = guarantee(found, fpr=rate, upper=math.inf, rule="people")
    assert (made.threshold, made.rule, made.rows[0].status) == (at, "people", OF_PEOPLE)


def test_the_rule_of_people_needs_people_who_are_known():
    few = guarantee(crowd(np.random.default_rng(8), n=100), fpr=0.02, rule="people", upper=9.0)
    assert few.rows[0].status == "refused: 100 people, expected about 118"
    assert few.needed == ()
    nobody = guarantee(ImposterSet(np.zeros(500), *twos(500)), fpr=0.02, rule="people")
    assert nobody.rows[0].status == "refused: nobody is known to be in two pairs"


def test_the_rule_of_people_shows_no_rate_below_one_error():
    found = heavy(np.random.default_rng(8), n=200)
    reference = np.random.default_rng(0).permutation(200) % 2 == 1
    mixed = reference[found.left] != reference[found.right]
    of_each = np.bincount(np.where(reference[found.left], found.right, found.left)[mixed])
    lowest = 1 / np.median(of_each[of_each > 0])
    assert found.lowest_of_people == pytest.approx(lowest, rel=1e-12)
    made = guarantee(found, fpr=0.9 * lowest, upper=math.inf, rule="people")
    assert math.isnan(made.threshold)
    said = f"pairs with the reference people or fewer, which show no rate below {100 * lowest:.2g}"
    assert said in made.rows[0].status
    made = guarantee(found, fpr=1.1 * lowest, upper=math.inf, rule="people")
    assert made.rows[0].status == OF_PEOPLE


def test_the_rule_of_people_holds_for_people_to_come():
    """New people, compared with the same references, whatever the law of people is."""
    broken = 0
    for seed in range(120):
        rng = np.random.default_rng([seed, 21])
        found = heavy(rng, n=140, images=1)
        at = found.threshold_of_people(0.02, 0.05)
        # Given the others' effects a person's own rate is above 2 % from some effect on.
        broken += heavy_share(found, at, rng) > 0.05
    assert broken <= binom.ppf(0.999, 120, 0.05)


def heavy_share(found, at, rng):
    """Return the share of 4,000 new people with more than 2 % above a threshold."""
    reference = np.flatnonzero(np.random.default_rng(0).permutation(140) % 2 == 1)
    # What a reference adds is not kept, but is the mean of his pairs, nearly.
    both = np.concatenate([found.left, found.right])
    mean = np.bincount(both, np.tile(found.scores, 2)) / np.bincount(both)
    new = 0.3 * rng.standard_t(3, size=4000)
    scores = new[:, None] + mean[reference] + rng.normal(size=(4000, len(reference)))
    return ((scores >= at).mean(axis=1) > 0.02).mean()


def groups_of(n, *names):
    code = (np.arange(n) % len(names)).astype(np.int32)
    return Groups(names, code, code)


def test_one_threshold_is_the_highest_that_a_group_needs():
    found = crowd(np.random.default_rng(6), n=90, person=0.05)
    genuine = np.zeros(len(found.scores), bool)
    sets = group_sets(found, groups_of(len(genuine), "A", "B"), genuine)
    made = guarantee(found, sets, fpr=0.01, scope="groups", upper=math.inf)
    assert made.threshold == max(each.threshold(0.01, 0.05) for each in sets.values())
    whole, *rows = made.rows
    assert (whole.name, whole.status, whole.errors) == (
        "global", MEASURED, found.errors(made.threshold),
    )  # fmt: skip
    assert [row.name for row in rows] == ["A", "B"]
    for row in rows:
        assert row.status == COUNTED
        assert row.low <= row.rate <= row.high
        assert row.rate <= row.upper  # with people who may be missing
        assert row.upper <= 0.01
        assert row.own_threshold >= sets[row.name].threshold(0.01, 0.05)
    assert not made.refused


def test_too_few_people_are_refused_and_nothing_is_promised():
    rng = np.random.default_rng(7)
    many, few = crowd(rng, n=60, person=0.05), crowd(rng, n=12, images=10)
    made = guarantee(many, {"A": many, "B": few}, fpr=0.02, scope="groups", upper=math.inf)
    assert math.isnan(made.threshold)
    assert made.told_threshold == many.threshold(0.02, 0.05)
    (row,) = made.refused
    assert row.name == "B"
    assert row.status == "refused: not enough data: 12 people (effective), expected at least 20"
    assert math.isnan(row.rate)
    assert math.isnan(row.upper)
    assert math.isnan(made.resolved)


def test_a_group_without_imposters_is_refused():
    found = crowd(np.random.default_rng(7), n=60, person=0.05)
    nobody = found.part(np.zeros(len(found.scores), bool))
    made = guarantee(found, {"A": found, "B": nobody}, fpr=0.02, scope="groups", upper=math.inf)
    assert (made.rows[2].people, made.rows[2].imposters, made.rows[2].errors) == (0, 0, 0)
    assert made.refused == (made.rows[2],)


def test_a_rate_that_cannot_be_counted_is_refused_with_what_could_be():
    found = crowd(np.random.default_rng(8), n=40)
    made = guarantee(found, fpr=1e-4, upper=math.inf)
    assert math.isnan(made.threshold)
    assert made.rows[0].status.startswith("refused: these pairs show a rate of")
    assert "too few people" in made.rows[0].status
    assert made.resolved == pytest.approx(found.resolved(0.05))
    assert made.resolved > 1e-4


def test_beyond_what_is_counted_the_tail_is_extrapolated():
    rng = np.random.default_rng(9)
    left, right = np.triu_indices(260, 1)
    vectors = rng.normal(size=(260, 64))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    found = ImposterSet((vectors[left] * vectors[right]).sum(1), left, right)
    made = guarantee(found, fpr=2e-5)
    assert made.rows[0].status == EXTRAPOLATED
    assert made.rows[0].upper == 2e-5
    assert made.resolved > 2e-5
    assert 0.49 < made.threshold < 1  # the cosine that one in 50,000 pairs of directions exceeds


def test_the_counted_rate_is_the_highest_that_is_not_too_high():
    scores = np.random.default_rng(11).normal(size=4000)
    found = ImposterSet(scores, *twos(4000))
    made = counted(found, fpr=0.01)
    assert (made.rule, made.rows[0].status, made.rows[0].errors) == ("measured", MEASURED, 40)
    assert made.threshold == np.sort(scores)[-40]
    assert made.rows[0].rate == 0.01
    assert made.rows[0].low < 0.01 < made.rows[0].upper
    assert made.threshold < guarantee(found, fpr=0.01, upper=np.inf).threshold
    between = counted(found, fpr=0.0101)  # 40.4 errors: 40 are allowed
    assert between.threshold == made.threshold


def test_of_equal_scores_counted_all_or_none():
    scores = np.concatenate([np.full(50, 0.9), np.linspace(-1, 0.5, 3950)])
    found = ImposterSet(scores, *twos(4000))
    assert counted(found, fpr=0.01).rows[0].errors == 0
    assert counted(found, fpr=0.01).threshold > 0.9
    assert counted(found, fpr=0.0125).threshold == 0.9


def test_a_counted_rate_is_not_told_of_few():
    made = counted(crowd(np.random.default_rng(12)), fpr=1e-3)
    assert math.isnan(made.threshold)
    why = "only 30 effective people: not enough data (78 are needed)"
    assert made.rows[0].status == f"refused: {why}"
    assert made.refused == made.rows
    assert made.needed[0].people == 78


@pytest.mark.parametrize("person", [0.0, 0.1])
def test_what_is_needed_is_about_enough(person):
    """So many people, each in as many pairs: then it can be counted, and with half it can't."""
    rng, rate, each = np.random.default_rng(13), 0.004, 40

    def drawn(n):
        left = np.repeat(np.arange(n), each // 2)
        right = (left + rng.integers(1, n, len(left))) % n
        alike = rng.normal(size=n) * person**0.5
        noise = rng.normal(size=len(left)) * (1 - 2 * person) ** 0.5
        return ImposterSet(alike[left] + alike[right] + noise, left, right)

    few = drawn(30)
    assert few.allowed(rate, 0.05) < 0
    need = requirement("all", few, rate, 0.05)
    assert need.more_people == need.people - 30
    assert need.imposters / len(few.scores) == pytest.approx(need.people / 30, rel=0.05)
    assert drawn(math.ceil(1.6 * need.people)).allowed(rate, 0.05) >= 0
    assert drawn(need.people // 2).allowed(rate, 0.05) < 0


def test_what_a_handful_needs():
    need = requirement("few", ImposterSet(np.zeros(3), *twos(3)), 0.01, 0.05)
    assert (need.people, need.more_people) == (25, 19)
    assert need.imposters >= 300
    nobody = requirement("none", ImposterSet(np.zeros(0), *twos(0)), 0.01, 0.05)
    assert (nobody.people, nobody.more_people, nobody.more_imposters) == (25, 25, 300)


def test_small_clusters_are_put_to_the_nearest():
    found = crowd(np.random.default_rng(10), n=60, person=0.05)
    # People 0 to 9 are in cluster 2, which is near cluster 1; the others are in 0 and 1.
    cluster = np.where(np.arange(60) < 10, 2, np.arange(60) % 2)
    centers = np.array([[0.0], [10.0], [11.0]])
    left, right = cluster[found.left], cluster[found.right]
    alone = found.part((left == 2) | (right == 2))
    rate = 1.05 * max(found.part((left == k) | (right == k)).resolved(0.05) for k in (0, 1))
    assert alone.resolved(0.05) > rate
    sets = cluster_sets(found, left, right, centers, fpr=rate)
    assert list(sets) == ["cluster 0", "cluster 1 and 1 more"]
    assert len(sets["cluster 0"].scores) == ((left == 0) | (right == 0)).sum()
    assert len(sets["cluster 1 and 1 more"].scores) == ((left > 0) | (right > 0)).sum()
    one = cluster_sets(found, left, right, centers, fpr=1e-6)
    assert list(one) == ["cluster 1 and 2 more"] or list(one) == ["cluster 0 and 2 more"]


def test_imposters_of_unknown_people_share_nobody():
    scores, genuine = np.arange(6.0), np.array([1, 0, 0, 1, 0, 0], bool)
    found = imposters(scores, genuine, None)
    assert found.scores.tolist() == [1, 2, 4, 5]
    assert found.sharing.people == 8
    with pytest.raises(DataError, match="expected imposter pairs, found none"):
        imposters(scores, np.ones(6, bool), None)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"fpr": 0.0}, "fpr: expected a rate between 0 and 0.5, found 0"),
        ({"fpr": 1.0}, "fpr: expected"),
        ({"fpr": 0.01, "confidence": 95}, "confidence: expected between 0.5 and 1, found 95"),
    ],
)
def test_bad_settings_are_refused(settings, said):
    found = ImposterSet(np.zeros(4), *twos(4))
    with pytest.raises(ParameterError, match=said):
        guarantee(found, **settings)
    with pytest.raises(DataError, match="groups: expected at least one, found none"):
        guarantee(found, {}, fpr=0.01, scope="groups")


def test_no_counted_score_depends_on_its_last_digit():
    scores = np.array([0.1, 0.3, 0.3 + 1e-12, 0.7])
    found = counted(ImposterSet(np.linspace(0, 1, 2000), *twos(2000)), fpr=0.01)
    for at, most in ((0.7, 3e-9), (0.3 + 1e-12, 1e-12), (0.1, 3e-9)):
        moved = replace(found, threshold=at, told_threshold=at).apart_from(scores)
        assert 0 < at - moved.threshold <= most * 1.01
        assert moved.told_threshold == moved.threshold
        np.testing.assert_array_equal(scores >= moved.threshold, scores >= at)
    steps = replace(found, threshold=73.0).apart_from(np.array([70.0, 72.0, 73.0, 73.0, 75.0]))
    assert steps.threshold == 72.5  # a scale with steps: halfway
    between = replace(found, threshold=0.5, told_threshold=float("nan")).apart_from(scores)
    assert between.threshold == 0.5
    assert np.isnan(between.told_threshold)
