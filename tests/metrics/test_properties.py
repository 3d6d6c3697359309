"""Properties that hold for any pairs, many of them against an independent library."""

import numpy as np
import pandas as pd
import pytest
from fairlearn.metrics import MetricFrame, false_negative_rate, false_positive_rate
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score, roc_curve

from faircal.metrics import (
    Ranking,
    auroc,
    brier,
    ece,
    find_threshold,
    fpr_at_threshold,
    ks,
    nll,
    rates_at_threshold,
    threshold_at_fnr,
    threshold_at_fpr,
    tpr_at_fpr,
    tpr_at_threshold,
)

moderate = settings(max_examples=60)
rates = st.lists(st.floats(0, 1), min_size=1, max_size=5)
thresholds = st.lists(st.floats(-0.5, 1.5), min_size=1, max_size=5)


@st.composite
def pairs(draw, top=1.0, classes=2):
    """Scores in [0, top], from few values (many ties) or from many, and their labels."""
    steps = draw(st.sampled_from([3, 20, 10_000]))
    rows = draw(st.lists(st.tuples(st.integers(0, steps), st.booleans()), min_size=1, max_size=60))
    if classes == 2:
        rows += [(draw(st.integers(0, steps)), label) for label in (False, True)]
    scores, genuine = zip(*rows, strict=True)
    return top * np.array(scores) / steps, np.array(genuine)


def reference_roc(scores, genuine):
    """The ROC curve of the paper's code: no point dropped, thresholds clipped at 1."""
    fpr, tpr, t = roc_curve(genuine, scores, drop_intermediate=False)
    return fpr, tpr, np.minimum(t, 1)


@moderate
@given(pairs(classes=1), st.data())
def test_subset_equals_sorting_the_subset(data, draw):
    scores, genuine = data
    n = len(scores)
    mask = np.array(draw.draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    mask[0] = True
    got, fresh = Ranking.of(scores, genuine).subset(mask), Ranking.of(scores[mask], genuine[mask])
    for name in ("scores", "genuine", "order", "thresholds", "tp", "fp"):
        np.testing.assert_array_equal(getattr(got, name), getattr(fresh, name))
    inner = np.arange(len(got)) % 2 == 0
    np.testing.assert_array_equal(got.subset(inner).order, fresh.subset(inner).order)


@moderate
@given(pairs())
def test_auroc_agrees_with_scikit_learn(data):
    scores, genuine = data
    assert auroc(scores, genuine) == pytest.approx(roc_auc_score(genuine, scores), abs=1e-12)


@moderate
@given(pairs(), rates)
def test_ranking_metrics_see_only_the_order(data, at):
    scores, genuine = data
    plain, mapped = Ranking.of(scores, genuine), Ranking.of(np.exp(3 * scores) - 7, genuine)
    assert auroc(plain) == auroc(mapped)
    np.testing.assert_array_equal(tpr_at_fpr(plain, at), tpr_at_fpr(mapped, at))


@moderate
@given(pairs())
def test_auroc_of_swapped_labels_is_its_complement(data):
    scores, genuine = data
    assert auroc(scores, ~genuine) == pytest.approx(1 - auroc(scores, genuine), abs=1e-12)


@moderate
@given(pairs(), rates)
def test_tpr_at_fpr_agrees_with_interpolation_on_the_full_roc(data, at):
    fpr, tpr, _ = reference_roc(*data)
    np.testing.assert_array_equal(tpr_at_fpr(Ranking.of(*data), at), np.interp(at, fpr, tpr))


@moderate
@given(pairs(), rates)
def test_thresholds_agree_with_the_reference(data, at):
    fpr, tpr, t = reference_roc(*data)
    ranking = Ranking.of(*data)
    np.testing.assert_array_equal(threshold_at_fpr(ranking, at), np.interp(at, fpr, t))
    complement = 1 - np.array(at)
    np.testing.assert_array_equal(threshold_at_fnr(ranking, at), np.interp(complement, tpr, t))


@moderate
@given(pairs(top=0.95), thresholds)
def test_rates_over_threshold_agree_with_the_reference(data, at):
    fpr, tpr, t = reference_roc(*data)
    ranking = Ranking.of(*data)
    for got, rate in ((fpr_at_threshold, fpr), (tpr_at_threshold, tpr)):
        np.testing.assert_array_equal(got(ranking, at), np.interp(at, t[::-1], rate[::-1]))


@moderate
@given(pairs(top=1.5), thresholds)
def test_counting_is_counting(data, at):
    scores, genuine = data
    ranking = Ranking.of(scores, genuine)
    at = np.concatenate([at, scores])
    counts = rates_at_threshold(ranking, at)
    accepted = scores[:, None] >= at
    np.testing.assert_array_equal(counts.false_positives, (accepted & ~genuine[:, None]).sum(0))
    np.testing.assert_array_equal(counts.false_negatives, (~accepted & genuine[:, None]).sum(0))


@moderate
@given(pairs(top=1.5))
def test_at_its_own_scores_interpolating_is_counting(data):
    scores, _ = data
    ranking = Ranking.of(*data)
    counts = rates_at_threshold(ranking, scores)
    np.testing.assert_allclose(fpr_at_threshold(ranking, scores), counts.fpr, atol=1e-15)
    np.testing.assert_allclose(tpr_at_threshold(ranking, scores), counts.tpr, atol=1e-15)


@moderate
@given(pairs(), st.floats(0, 1))
def test_nearest_threshold_agrees_with_the_reference(data, target):
    scores, genuine = data
    fpr, _, t = roc_curve(genuine, scores, drop_intermediate=True)
    distance = np.abs(fpr - target)
    expected = t[distance == distance.min()].min()
    if np.isinf(expected):
        expected = np.nextafter(scores.max(), np.inf)
    assert find_threshold(Ranking.of(scores, genuine), target) == expected


@moderate
@given(pairs(), st.floats(0, 1))
def test_conservative_threshold_never_exceeds_the_target_and_cannot_be_lowered(data, target):
    ranking = Ranking.of(*data)
    threshold = find_threshold(ranking, target, rule="conservative")
    assert rates_at_threshold(ranking, threshold).fpr <= target
    lower = ranking.thresholds[ranking.thresholds < threshold]
    if lower.size:
        assert rates_at_threshold(ranking, lower[0]).fpr > target


@moderate
@given(pairs(classes=1))
def test_ks_agrees_with_a_plain_version(data):
    probability, genuine = data
    gaps = [abs((probability - genuine)[probability <= end].sum()) for end in probability]
    assert ks(probability, genuine) == pytest.approx(max(gaps) / len(gaps), abs=1e-12)
    order = np.argsort(probability, kind="stable")
    every = np.abs(np.cumsum(probability[order]) - np.cumsum(genuine[order])).max() / len(order)
    assert ks(probability, genuine, ties="order") == pytest.approx(every, abs=1e-12)
    assert ks(probability, genuine) <= every + 1e-12


@moderate
@given(pairs(classes=1), st.integers(1, 70))
def test_ece_agrees_with_a_plain_version(data, n_bins):
    probability, genuine = data
    n = len(probability)
    smooth = np.array([genuine[probability == p].mean() for p in probability])
    order = np.argsort(probability, kind="stable")
    cuts = np.floor(np.linspace(0, n - 1, min(n, n_bins) + 1)).astype(int) + 1
    gaps = np.split((probability - smooth)[order], cuts[1:-1])
    expected = sum(abs(gap.sum()) for gap in gaps) / n
    assert ece(probability, genuine, n_bins=n_bins) == pytest.approx(expected, abs=1e-12)


@moderate
@given(pairs(classes=1), st.integers(1, 30))
def test_equal_width_ece_agrees_with_a_plain_version(data, n_bins):
    probability, genuine = data
    edges = np.linspace(0, 1, n_bins + 1)
    bins = np.maximum(np.searchsorted(edges, probability) - 1, 0)
    expected = sum(abs((probability - genuine)[bins == b].sum()) for b in range(n_bins))
    got = ece(probability, genuine, n_bins=n_bins, binning="width")
    assert got == pytest.approx(expected / len(bins), abs=1e-12)


@moderate
@given(pairs(classes=1))
def test_one_bin_ece_is_at_most_ks(data):
    # The mean gap is the last of the cumulative gaps that KS maximises over.
    assert ece(*data, n_bins=1) <= ks(*data) + 1e-12


@moderate
@given(pairs())
def test_brier_and_nll_agree_with_scikit_learn(data):
    probability, genuine = data
    assert brier(probability, genuine) == pytest.approx(brier_score_loss(genuine, probability))
    assert nll(probability, genuine) == pytest.approx(log_loss(genuine, probability), abs=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_group_rates_agree_with_fairlearn(seed):
    rng = np.random.default_rng(seed)
    genuine = rng.random(400) < 0.4
    scores = np.round(rng.normal(0.3 * genuine, 0.3), 2)
    groups = rng.choice(["A", "B", "C", "D"], size=400)
    overall = Ranking.of(scores, genuine)
    threshold = find_threshold(overall, 0.1)
    frame = MetricFrame(
        metrics={"fpr": false_positive_rate, "fnr": false_negative_rate},
        y_true=genuine.astype(int),
        y_pred=(scores >= threshold).astype(int),
        sensitive_features=pd.Series(groups, name="group"),
    )
    for group, expected in frame.by_group.iterrows():
        counts = rates_at_threshold(overall.subset(groups == group), threshold)
        np.testing.assert_allclose([counts.fpr, counts.fnr], [expected.fpr, expected.fnr])
    counts = rates_at_threshold(overall, threshold)
    np.testing.assert_allclose([counts.fpr, counts.fnr], [frame.overall.fpr, frame.overall.fnr])
