"""The explorer's data: the counts of faircal.metrics, at every step of the slider."""

from __future__ import annotations

import json

import numpy as np
import pytest

import faircal
from faircal.evaluation.benchmark import BenchmarkSettings, run_benchmark
from faircal.evaluation.curves import Curves
from faircal.methods import Baseline, Oracle
from faircal.metrics import Ranking, rates_at_threshold
from faircal.metrics.results import GLOBAL
from faircal.report.explorer import explorer
from faircal.report.store import LabelledResults, ResultsFolder
from faircal.report.words import summary

RANGE = (-1.0, 1.0)


@pytest.fixture(scope="module")
def pairs():
    """Scores with ties on the slider's steps, labels, groups (one of them small), folds."""
    rng = np.random.default_rng(0)
    n = 3000
    genuine = np.arange(n) % 2 == 1
    group = rng.choice(["A", "B", "tiny"], n, p=[0.6, 0.38, 0.02])
    score = np.clip(rng.normal(0.4 * genuine + 0.1 * (group == "B"), 0.2), *RANGE)
    return np.round(score, 3), genuine, group, np.arange(n) // 2 % 2


def read_audit(audits, **run):
    """Return the store of audits that nobody wrote down."""
    rows = [row for audit in audits for row in audit.rows]
    curves = Curves(curve for audit in audits for curve in audit.curves.rows)
    return ResultsFolder(None, LabelledResults(rows), {"kind": "audit", **run}, curves, [], [])


def audited(pairs, threshold=None, **given):
    """Return the store of an audit; `given` is what else `faircal.audit` is to take."""
    score, genuine, group, _ = pairs
    found = faircal.audit(
        **{"score": score, "genuine": genuine, "groups": group} | given, threshold=threshold
    )
    return read_audit([found], settings={"threshold": threshold})


def accepted(counts, step):
    """What page.js makes of the counts of one group."""
    if isinstance(counts, str):
        return sum(int(count or 0) for count in counts.split(",")[step:])
    return counts[step]


def check_rates(view, scale, method, step, threshold, score, genuine, group):
    counted = view["scales"][scale]["methods"][method]
    for i, name in enumerate(view["groups"]):
        inside = np.ones(len(score), bool) if name == GLOBAL else group == name
        counts = rates_at_threshold(Ranking.of(score[inside], genuine[inside]), threshold)
        assert view["pairs"][i] == [counts.genuine, counts.imposters]
        assert accepted(counted["imposter"][i], step) == counts.false_positives
        missed = view["pairs"][i][0] - accepted(counted["genuine"][i], step)
        assert missed == counts.false_negatives


def thresholds(scale):
    length = round((scale["max"] - scale["min"]) / scale["step"]) + 1
    at = [round(scale["min"] + i * scale["step"], scale["decimals"]) for i in range(length)]
    assert at[-1] == scale["max"]
    assert scale["start"] in at
    return at


def test_every_step_on_the_score_counts_as_the_metrics_do(pairs):
    (view,) = explorer(audited(pairs))["views"]
    assert list(view["scales"]) == ["score", "fpr"]
    scale = view["scales"]["score"]
    assert (scale["step"], scale["decimals"]) == (0.002, 3)
    at = thresholds(scale)
    for step in [*range(0, len(at), 37), len(at) - 1]:
        check_rates(view, "score", 0, step, at[step], *pairs[:3])
    everyone = scale["methods"][0]["imposter"][0]
    assert (accepted(everyone, 0), accepted(everyone, len(at) - 1)) == (1500, 0)


def test_every_step_on_the_probability_counts_as_the_metrics_do(pairs):
    score, genuine, group, _ = pairs
    probability = np.round((score + 1) / 2, 4)
    probability[:40], probability[40:60] = 1.0, 0.0  # the ends count, too
    (view,) = explorer(audited(pairs, score=None, probability=probability))["views"]
    assert list(view["scales"]) == ["probability", "fpr"]  # scores are the probabilities
    scale = view["scales"]["probability"]
    at = thresholds(scale)
    assert (at[0], at[-1], len(at)) == (0, 1, 1001)
    for step in [0, 1, 250, 500, 501, 777, 999, 1000]:
        check_rates(view, "probability", 0, step, at[step], probability, genuine, group)


@pytest.mark.parametrize("score_range", [(0, 100), (0, 1), (0.25, 0.75), (-5000, 20000)])
def test_scores_of_any_range_have_exact_steps(pairs, score_range):
    low, high = score_range
    score = low + (high - low) * (pairs[0] + 1) / 2
    (view,) = explorer(audited(pairs, score=score, score_range=score_range))["views"]
    at = thresholds(view["scales"]["score"])
    for step in [0, len(at) // 3, len(at) // 2, len(at) - 2, len(at) - 1]:
        check_rates(view, "score", 0, step, at[step], score, *pairs[1:3])


def test_scores_beyond_the_range_leave_the_steps_exact(pairs):
    score = pairs[0] * 7  # edges reach from -2 to 2
    (view,) = explorer(audited(pairs, score=score))["views"]
    at = thresholds(view["scales"]["score"])
    assert at[-1] == 2.0
    for step in (0, 1, len(at) - 1):
        check_rates(view, "score", 0, step, at[step], score, *pairs[1:3])


@pytest.mark.parametrize(("given", "start", "said"), [(0.3, 0.3, False), (0.3013, 0.302, True)])
def test_it_opens_at_the_audits_threshold(pairs, given, start, said):
    (view,) = explorer(audited(pairs, given))["views"]
    assert view["scales"]["score"]["start"] == start
    assert view["scales"]["score"]["note"] == (
        "The audit's threshold, 0.3013, is not one of the slider's steps; it starts at the "
        "nearest, 0.302."
        if said
        else ""
    )


def test_a_threshold_on_probabilities_that_rank_is_one_on_the_probability(pairs):
    probability = (pairs[0] + 1) / 2
    (view,) = explorer(audited(pairs, 0.7, score=None, probability=probability))["views"]
    assert view["scales"]["probability"]["start"] == 0.7


@pytest.mark.parametrize(
    ("given", "rate"), [({}, 0.01), ({"rates": (0.05,)}, 0.05), ({"rates": (0.01, 0.2)}, 0.2)]
)
def test_otherwise_it_opens_at_the_rate_that_the_summary_speaks_of(pairs, given, rate):
    store = audited(pairs, **given)
    (view,) = explorer(store)["views"]
    scale, by_rate = view["scales"]["score"], view["scales"]["fpr"]
    step = thresholds(scale).index(scale["start"])
    passed = accepted(scale["methods"][0]["imposter"][0], step) / 1500
    assert passed == pytest.approx(rate, abs=2e-3)
    assert by_rate["rates"][by_rate["start"]] == rate
    assert f"at most {100 * rate:g} % of all pairs" in summary(store, "group").who[0]


def test_the_threshold_of_a_rate_is_the_lowest_step_that_keeps_it(pairs):
    score, genuine, group, _ = pairs
    (view,) = explorer(audited(pairs))["views"]
    scale = view["scales"]["fpr"]
    assert scale["rates"][0] == 0.007  # ten and a half of 1500 pairs; 0.006 would be nine
    assert scale["rates"][-1] == 0.5
    assert scale["rates"][scale["start"]] == 0.01
    ranking = Ranking.of(score, genuine)
    for step in (0, 3, len(scale["rates"]) - 1):
        threshold = scale["methods"][0]["thresholds"][step]
        check_rates(view, "fpr", 0, step, threshold, score, genuine, group)
        assert rates_at_threshold(ranking, threshold).fpr <= scale["rates"][step]
        assert rates_at_threshold(ranking, threshold - 0.002).fpr > scale["rates"][step]


def test_a_rate_that_no_threshold_gives_has_none():
    probability = np.where(np.arange(400) % 4 == 0, 1.0, 0.5)
    found = faircal.audit(probability=probability, genuine=np.arange(400) // 4 % 2)
    (view,) = explorer(read_audit([found]))["views"]
    scale = view["scales"]["fpr"]
    (method,) = scale["methods"]
    quarter = [rate >= 0.25 for rate in scale["rates"]]  # of the imposters have 1.0
    assert [at is not None for at in method["thresholds"]] == quarter
    assert [count is not None for count in method["imposter"][0]] == quarter


def test_one_class_only_still_has_steps():
    found = faircal.audit(score=[0.1, 0.2, 0.3], genuine=[1, 1, 1])
    (view,) = explorer(read_audit([found]))["views"]
    assert list(view["scales"]) == ["score"]
    assert view["pairs"] == [[3, 0]]
    assert thresholds(view["scales"]["score"])


def test_features_are_views_of_their_own(pairs):
    score, genuine, group, _ = pairs
    made = [
        faircal.audit(score=s, genuine=genuine, groups=group, feature=name, attribute="a+b")
        for name, s in (("one", score), ("two", -score))
    ]
    views = explorer(read_audit(made))["views"]
    assert [view["name"] for view in views] == ["one, groups by a and b", "two, groups by a and b"]
    assert [view["methods"] for view in views] == [["scores"], ["scores"]]


def test_folds_are_pooled_and_methods_share_the_probability(pairs, tmp_path):
    score, genuine, group, fold = pairs
    n = len(score)
    data = faircal.Dataset(
        name="pooled",
        pairs={
            "left": np.arange(n),
            "right": np.arange(n) + n,
            "genuine": genuine,
            "score": score,
            "fold": fold,
        },
        attributes={"group": np.tile(group, 2)},
    )
    run_benchmark(data, tmp_path, BenchmarkSettings(methods=("oracle", "baseline")), jobs=1)
    (view,) = explorer(ResultsFolder.read(tmp_path))["views"]
    assert view["methods"] == ["Baseline", "Oracle"]  # the yardstick last
    assert list(view["scales"]) == ["probability", "fpr"]
    for method, make in enumerate((Baseline(), Oracle(attribute="group"))):
        probability = np.empty(n)
        for name in (0, 1):
            calibration, test = data.split(name)
            probability[fold == name] = make.fit(calibration).apply(test).probability
        for step in (20, 500, 830):
            where = (probability, genuine, group)
            check_rates(view, "probability", method, step, step / 1000, *where)


def test_it_is_small_plain_json(pairs):
    text = json.dumps(explorer(audited(pairs)), allow_nan=False)
    assert len(text) < 20_000
    assert json.loads(text)["fewest"] == 100


def test_without_curves_there_is_nothing_to_explore(pairs):
    store = audited(pairs)
    bare = ResultsFolder(None, store.results, store.run, Curves(()), [], [])
    assert explorer(bare)["views"] == []
