"""Planning: the people that an interval needs, by hand and by simulation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from faircal._base.errors import ParameterError
from faircal.metrics import wilson
from faircal.metrics.intervals.dependence import Dependence
from faircal.metrics.intervals.dyadic import Dyads
from faircal.metrics.intervals.inversion import rate_interval
from faircal.metrics.intervals.planning import PairDependence, expect, plan, typical_dependence
from faircal.metrics.intervals.sufficient_data import DataNeeded


def imposter_pairs(rng, people, images):
    """Return scores and people of all imposter pairs; people and twos have effects."""
    one, other = np.triu_indices(people, 1)
    alike = rng.normal(size=people) * 0.1**0.5
    dyad = alike[one] + alike[other] + rng.normal(size=len(one)) * 0.3**0.5
    scores = dyad[:, None] + rng.normal(size=(len(one), images**2)) * 0.5**0.5
    return scores.ravel(), Dyads(*(np.repeat(who, images**2) for who in (one, other)))


def genuine_pairs(rng, people, images):
    """Return minus the scores and the people of genuine pairs."""
    each = images * (images - 1) // 2
    scores = rng.normal(size=people)[:, None] * 0.4**0.5
    scores = scores + rng.normal(size=(people, each)) * 0.6**0.5
    who = np.repeat(np.arange(people), each)
    return scores.ravel(), Dyads(who, who)


@pytest.mark.parametrize(("draw", "metric"), [(imposter_pairs, "fpr"), (genuine_pairs, "fnr")])
def test_the_planned_people_give_about_the_planned_interval(draw, metric):
    rate, within, images = 0.01, 0.006, 4
    rng = np.random.default_rng(0)
    alike = PairDependence(Dependence.of(*draw(rng, 250, images)), "a pilot")
    found = plan(rate, metric, within=within, images=images, pilot=alike)
    assert 30 < found.people < 400
    widths = []
    for _ in range(20):
        scores, sharing = draw(rng, found.people, images)
        counted = float((scores >= norm.isf(rate)).mean())
        seen = Dependence.of(scores, sharing)
        low, high = rate_interval(
            counted, sharing.pairs, seen.design_effect, freedom=seen.degrees_of_freedom(rate)
        )
        widths.append((high - low) / 2)
    assert found.half_width == pytest.approx(within, rel=0.05)
    assert np.mean(widths) == pytest.approx(within, rel=0.25)


def test_counts_of_a_design_are_those_of_its_pairs():
    scores, sharing = imposter_pairs(np.random.default_rng(1), 12, 3)
    alike = typical_dependence("fpr")
    both, one = alike.dependence.correlations(0.01)
    couples = sharing.same_dyad * both + sharing.one_person * one
    found = expect(0.01, 12, images=3)
    assert found.pairs == len(scores) == 594
    assert found.effective_pairs == pytest.approx(594 / (1 + float(couples) / 594))
    genuine = expect(0.01, 12, "fnr", images=3)
    both, _ = typical_dependence("fnr").dependence.correlations(0.01)
    assert genuine.pairs == 36
    assert genuine.effective_pairs == pytest.approx(36 / (1 + 2 * float(both)))


def test_pairs_that_share_nothing_need_as_many_as_wilson_says():
    nobody = Dyads(np.zeros(0, int), np.zeros(0, int))
    found = expect(
        0.05,
        100_000,
        "fnr",
        images=2,
        pilot=PairDependence(Dependence.of(np.zeros(0), nobody), "none"),
    )
    low, high = wilson(5000, 100_000)
    assert (found.low, found.high) == pytest.approx((float(low), float(high)), rel=1e-4)


@pytest.mark.parametrize("metric", ["fpr", "fnr"])
@pytest.mark.parametrize("wanted", [{"within": 0.004}, {"ratio": 1.8}])
def test_a_plan_has_the_fewest_people(metric, wanted):
    found = plan(0.01, metric, **wanted)
    fewer = expect(0.01, found.people - 1, metric)
    ((name, value),) = wanted.items()
    reached = {"within": (found.half_width, fewer.half_width), "ratio": (found.ratio, fewer.ratio)}
    assert reached[name][0] <= value < reached[name][1]


def test_fewer_pairs_of_each_person_need_more_people():
    everything = plan(0.01, within=0.005).people
    some = plan(0.01, within=0.005, per_person=20)
    assert some.people > everything
    assert some.pairs == round(some.people * 20 / 2)


def test_the_least_people_for_one_percent_are_at_most_thirty():
    assert DataNeeded.of("fpr", 0.01).people == 25
    assert 25 * 24 / 2 >= 3 / 0.01 > 24 * 23 / 2
    assert DataNeeded.of("fnr", 0.01).people == 30
    needed = [DataNeeded.of("fpr", rate).people for rate in (0.3, 0.01, 0.003, 0.001, 1e-4)]
    assert needed == sorted(needed)
    assert needed[0] == 20


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: plan(0.01), "either within, half a width above 0, or ratio"),
        (lambda: plan(0.01, within=0.1, ratio=2), "either within"),
        (lambda: plan(0.01, within=-1), "either within"),
        (lambda: plan(0.01, within=1e-9), "people can give, found 1e-09; ask for a wider one"),
        (lambda: DataNeeded.of("fpr", 1.0), "rate: expected between 0 and 1, found 1"),
        (lambda: expect(0.01, 2), "people: expected at least 3, found 2"),
        (lambda: expect(0.01, 20, images=1), "images: expected at least 2, found 1"),
        (lambda: expect(0.01, 20, level=95), "level: expected between 0 and 1, found 95"),
    ],
)
def test_bad_plans_are_refused(call, said):
    with pytest.raises(ParameterError, match=said):
        call()
