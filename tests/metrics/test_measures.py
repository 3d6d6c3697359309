"""Everything that is measured, against direct calls of the metrics on masked arrays."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from faircal import metrics
from faircal._base.errors import DataError
from faircal.compute.counting import ScoreCounts
from faircal.data import Groups
from faircal.metrics import METRICS, Ranking
from faircal.metrics.measures import RATES, Rankings, at_threshold, condition, measure

NAMES = ("A", "B", "C")


def draw(seed, n=900):
    rng = np.random.default_rng(seed)
    left = rng.integers(-1, 3, n).astype(np.int32)
    right = np.where(rng.random(n) < 0.7, left, rng.integers(-1, 3, n)).astype(np.int32)
    groups = Groups(NAMES, left, right)
    genuine = rng.random(n) < 0.4
    score = np.clip(rng.normal(np.where(genuine, 0.5, 0.1) + 0.1 * (left == 1), 0.2), -1, 1)
    probability = 1 / (1 + np.exp(-10 * (score - 0.35)))
    return score, probability, genuine, groups


def found(measures):
    keys = [(m.group, m.condition, m.metric) for m in measures]
    assert len(set(keys)) == len(keys)
    return {key: m.value for key, m in zip(keys, measures, strict=True)}


def deviations(values):
    """The four numbers over groups, as section 4.5 defines them."""
    mean = sum(values) / len(values)
    gaps = [abs(x - mean) for x in values]
    return {
        "mean": mean,
        "aad": sum(gaps) / len(gaps),
        "mad": max(gaps),
        "std": (sum(gap**2 for gap in gaps) / len(gaps)) ** 0.5,
    }


@pytest.fixture(scope="module")
def sample():
    return draw(0)


@pytest.fixture(scope="module")
def masks(sample):
    groups = sample[3]
    inside = {
        name: (groups.left == code) & (groups.right == code) for code, name in enumerate(NAMES)
    }
    return {"global": np.ones(len(groups), dtype=bool), **inside}


def test_one_number_metrics(sample, masks):
    score, probability, genuine, _ = sample
    values = found(measure(Rankings.of(*sample)))
    for metric in ("auroc", "ks", "ece", "brier", "nll"):
        of = score if metric == "auroc" else probability
        expected = {
            group: getattr(metrics, metric)(of[rows], genuine[rows])
            for group, rows in masks.items()
        }
        for group, value in expected.items():
            assert values[group, "", metric] == pytest.approx(value, abs=1e-12)
        over = {key: values.get(("all", "", f"{metric}_{key}")) for key in metrics.DEVIATIONS}
        if metric in ("ks", "ece", "brier"):
            assert over == pytest.approx(deviations([expected[name] for name in NAMES]), abs=1e-12)
        else:
            assert set(over.values()) == {None}


@pytest.mark.parametrize("threshold_on", ["test", "calibration"])
@pytest.mark.parametrize("upper", [1.0, 3.0])
def test_rates_at_thresholds(sample, masks, threshold_on, upper):
    score, _, genuine, _ = sample
    calibration = draw(1)
    test = Rankings.of(*sample, upper)
    source = Rankings.of(*calibration, upper) if threshold_on == "calibration" else None
    values = found(measure(test, rates=(0.02, 0.2), threshold_from=source))
    setting = Ranking.of(*((score, genuine) if source is None else calibration[::2]))
    for rate in (0.02, 0.2):
        for kind, reported in (("fpr", ("fpr", "fnr")), ("fnr", ("fnr",))):
            under = f"global_{kind}={rate:g}"
            at = getattr(metrics, f"threshold_at_{kind}")(setting, rate, upper=upper)
            assert values["global", under, "threshold"] == pytest.approx(float(at), abs=1e-12)
            for metric in reported:
                expected = {
                    group: float(
                        getattr(metrics, f"{metric}_at_threshold")(
                            Ranking.of(score[rows], genuine[rows]), at, upper=upper
                        )
                    )
                    for group, rows in masks.items()
                }
                for group, value in expected.items():
                    assert values[group, under, metric] == pytest.approx(value, abs=1e-12)
                over = {k: values["all", under, f"{metric}_{k}"] for k in metrics.DEVIATIONS}
                groups = [expected[name] for name in NAMES]
                assert over == pytest.approx(deviations(groups), abs=1e-12)
        if source is None:
            assert values["global", f"global_fpr={rate:g}", "fpr"] == pytest.approx(rate, abs=1e-9)


def test_rates_at_a_shared_threshold_by_hand():
    scores = np.array([0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1])
    genuine = np.array([1, 1, 0, 1, 0, 1, 0, 0, 0], dtype=bool)
    # The last pair is in neither group.
    codes = np.array([0, 1, 0, 0, 1, 1, 0, 1, -1], np.int32)
    groups = Groups(("A", "B"), codes, codes)
    values = found(measure(Rankings.of(scores, None, genuine, groups), rates=[0.2, 0.4, 0.25]))
    # Overall FPR is 1/5 from 0.7 down to 0.6, 2/5 from 0.5 down to 0.4.
    assert values["global", "global_fpr=0.2", "threshold"] == pytest.approx(0.6)
    assert values["global", "global_fpr=0.4", "threshold"] == pytest.approx(0.4)
    # A at 0.4: from 1/2 (0.6) to 1 (0.3), two thirds of the way. B at 0.6: from 0 (0.8) to
    # 1/2 (0.5), two thirds.
    expected = {"A": (1 / 2, 5 / 6), "B": (1 / 3, 1 / 2)}
    for group, at in expected.items():
        fpr = [values[group, f"global_fpr={rate}", "fpr"] for rate in (0.2, 0.4)]
        assert fpr == pytest.approx(at)
    over = [values["all", "global_fpr=0.4", f"fpr_{name}"] for name in ("mean", "aad")]
    assert over == pytest.approx([2 / 3, 1 / 6])
    # FNR 1/4 is TPR 3/4, reached at 0.6 and kept down to 0.5. A accepts both of its genuine pairs
    # by then, B one of two.
    assert values["global", "global_fnr=0.25", "threshold"] == pytest.approx(0.5)
    assert [values[group, "global_fnr=0.25", "fnr"] for group in "AB"] == pytest.approx([0, 0.5])
    assert values["all", "global_fnr=0.25", "fnr_mad"] == pytest.approx(0.25)


def test_a_group_without_imposters_is_left_out():
    scores = np.array([0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2])
    genuine = np.array([1, 1, 0, 1, 0, 1, 0, 0], dtype=bool)
    codes = np.array([2, 2, 0, 0, 1, 1, 0, 1], np.int32)
    without = np.where(codes == 2, -1, codes).astype(np.int32)
    key = ("all", "global_fpr=0.2", "fpr_std")
    three, two = (
        found(measure(Rankings.of(scores, None, genuine, Groups(names, of, of)), rates=[0.2]))
        for names, of in ((NAMES, codes), (NAMES[:2], without))
    )
    assert np.isnan(three["C", "global_fpr=0.2", "fpr"])
    assert three[key] == two[key] > 0


def test_tpr_at_fpr(sample):
    score, _, genuine, _ = sample
    test = Rankings.of(*sample)
    values = found(measure(test))
    for rate in RATES:
        expected = metrics.tpr_at_fpr(Ranking.of(score, genuine), rate)
        assert values["global", f"fpr={rate:g}", "tpr"] == pytest.approx(float(expected), abs=1e-12)


def test_tpr_at_the_calibration_threshold(sample):
    calibration = draw(1)
    values = found(measure(Rankings.of(*sample), threshold_from=Rankings.of(*calibration)))
    at = metrics.threshold_at_fpr(Ranking.of(calibration[0], calibration[2]), 0.01)
    expected = metrics.tpr_at_threshold(Ranking.of(sample[0], sample[2]), at)
    assert values["global", "fpr=0.01", "tpr"] == pytest.approx(float(expected), abs=1e-12)
    own = found(measure(Rankings.of(*sample)))
    assert values["global", "fpr=0.01", "tpr"] != own["global", "fpr=0.01", "tpr"]


def test_cross_group_and_unknown_pairs_count_globally_only(sample):
    score, probability, genuine, groups = sample
    loose = groups.cross | groups.unknown
    assert groups.cross.any()
    assert groups.unknown.any()
    before = found(measure(Rankings.of(*sample)))
    moved = np.where(loose, -0.5, score), np.where(loose, 0.9, probability)
    after = found(measure(Rankings.of(*moved, genuine, groups)))
    for key, value in before.items():
        if key[0] in NAMES and key[1] == "":
            assert after[key] == value
        if key[:2] == ("global", "") and key[2] in ("auroc", "ks", "brier"):
            assert after[key] != value


ONE_RATE = ("gap", "max_min", "max_geomean", "gini")


def test_what_is_measured_and_in_which_form(sample):
    keys = found(measure(Rankings.of(*sample)))
    over = ("mean", "aad", "mad", "std")
    expected = {(g, "", m) for g in ("global", *NAMES) for m in (*METRICS, "cllr", "min_cllr")}
    expected |= {
        ("all", "", f"{m}_{d}") for m, one in METRICS.items() if one.deviations for d in over
    }
    for rate in ("0.001", "0.01"):
        expected.add(("global", f"fpr={rate}", "tpr"))
        for kind, reported in (("global_fpr", ("fpr", "fnr")), ("global_fnr", ("fnr",))):
            expected.add(("global", f"{kind}={rate}", "threshold"))
            for metric in reported:
                expected |= {(g, f"{kind}={rate}", metric) for g in ("global", *NAMES)}
                expected |= {("all", f"{kind}={rate}", f"{metric}_{d}") for d in over}
        unfair = {f"{m}_{of}" for m in ("fpr", "fnr") for of in ONE_RATE} | {"fdr", "ir", "garbe"}
        expected |= {("all", f"global_fpr={rate}", name) for name in unfair}
    assert set(keys) == expected


def test_unfairness_is_of_the_groups_rates(sample):
    values = found([*measure(Rankings.of(*sample)), *at_threshold(Rankings.of(*sample), 0.25)])
    for under in ("", "global_fpr=0.01"):
        fpr = [values[g, under, "fpr"] for g in NAMES]
        fnr = [values[g, under, "fnr"] for g in NAMES]
        assert values["all", under, "fpr_gap"] == max(fpr) - min(fpr)
        ratio = max(fnr) / min(fnr) if min(fnr) > 0 else np.inf
        assert values["all", under, "fnr_max_min"] == pytest.approx(ratio)
        assert values["all", under, "fdr"] == pytest.approx(
            1 - (max(fpr) - min(fpr)) / 2 - (max(fnr) - min(fnr)) / 2
        )
    assert values["all", "", "fpr_aad"] == pytest.approx(
        np.abs(np.array(fpr := [values[g, "", "fpr"] for g in NAMES]) - np.mean(fpr)).mean()
    )


def test_evidence_is_priced_with_the_share_of_all_pairs(sample):
    _, probability, genuine, groups = sample
    values = found(measure(Rankings.of(*sample)))
    rows = groups.pair == 0
    assert values[NAMES[0], "", "cllr"] == pytest.approx(
        metrics.cllr(probability[rows], genuine[rows], prior=genuine.mean())
    )
    moved = found(measure(Rankings.of(*sample), calibrated_at=0.1))
    assert moved[NAMES[0], "", "cllr"] == pytest.approx(
        metrics.cllr(probability[rows], genuine[rows], prior=0.1)
    )
    assert {key for key in values if moved[key] != pytest.approx(values[key], nan_ok=True)} == {
        (group, "", "cllr") for group in ("global", *NAMES)
    }
    assert values["global", "", "min_cllr"] == pytest.approx(metrics.min_cllr(sample[0], genuine))


def test_scores_or_probabilities_alone(sample):
    score, probability, genuine, groups = sample
    whole = found(measure(Rankings.of(*sample)))
    ranked = found(measure(Rankings.of(score, None, genuine, groups)))
    said = found(measure(Rankings.of(None, probability, genuine, groups)))
    assert whole == {**ranked, **said}
    assert {key[2] for key in said} >= {"ks", "ks_mad", "nll"}
    assert "auroc" not in {key[2] for key in said}


def test_without_groups(sample):
    values = found(measure(Rankings.of(*sample[:3], None)))
    assert {key[0] for key in values} == {"global"}


def test_one_array_for_both_is_sorted_once(sample):
    rankings = Rankings.of(sample[1], sample[1], *sample[2:])
    assert rankings.scores is rankings.probabilities


def test_rankings_are_frozen(sample):
    rankings = Rankings.of(*sample)
    with pytest.raises(dataclasses.FrozenInstanceError):
        rankings.upper = 2.0


def test_a_group_without_pairs_is_left_out_of_deviations(sample):
    score, probability, genuine, groups = sample
    more = Groups((*NAMES, "D"), groups.left, groups.right)
    values = found(measure(Rankings.of(score, probability, genuine, more)))
    without = found(measure(Rankings.of(*sample)))
    assert np.isnan(values["D", "", "ks"])
    for key, value in without.items():
        assert values[key] == value


@pytest.mark.parametrize("name", ["global", "all"])
def test_a_group_may_not_take_the_name_of_a_total(sample, name):
    score, probability, genuine, groups = sample
    taken = Groups(("A", name, "C"), groups.left, groups.right)
    with pytest.raises(DataError, match=f"a group is called '{name}'.*rename the group"):
        Rankings.of(score, probability, genuine, taken)


@pytest.mark.parametrize(
    ("rate", "text"), [(0.001, "fpr=0.001"), (1e-5, "fpr=1e-05"), (0.5, "fpr=0.5")]
)
def test_conditions_are_printed_by_g(rate, text):
    assert condition("fpr", rate) == text


# ------------------------------------------------------------------------- counted scores


def counted(sample, edges):
    score, probability, genuine, groups = sample
    sets = [ScoreCounts.zeros(1 + len(NAMES), edges) for _ in range(2)]
    for counts, values in zip(sets, (score, probability), strict=True):
        counts.add(values, genuine, 0, groups.pair + 1)
    return Rankings.counted(NAMES, *sets)


def test_counted_scores_are_those_rounded_to_a_bin(sample):
    exact = found([*measure(Rankings.of(*sample)), *at_threshold(Rankings.of(*sample), 0.25)])
    test = counted(sample, np.unique([*np.linspace(-1, 1, 30_000), 0.0, 1.0]))
    rounded = found([*measure(test), *at_threshold(test, 0.25)])
    assert list(rounded) == list(exact)
    for key, value in rounded.items():
        assert value == pytest.approx(exact[key], abs=2e-3, rel=0.1, nan_ok=True), key


def test_each_value_says_how_many_pairs_it_counts(sample):
    rows = {row.what: row for row in measure(Rankings.of(*sample))}
    groups, genuine = sample[3].pair, sample[2]
    of_a = genuine[groups == 0]
    at = "A", "global_fpr=0.01"
    assert rows[(*at, "fpr")].trials == (~of_a).sum()
    assert rows[(*at, "fnr")].trials == of_a.sum()
    assert rows["A", "", "ks"].trials == len(of_a)
    rate = rows[(*at, "fpr")]
    assert rate.errors == pytest.approx(rate.value * rate.trials, abs=1e-6)
    assert np.isnan([rows["A", "", "ks"].errors, rows["all", "", "ks_mean"].trials]).all()


def test_counts_of_one_kind_are_ranked_once(sample):
    counts = ScoreCounts.zeros(4, np.linspace(0, 1, 9))
    counts.add(sample[1], sample[2], 0, sample[3].pair + 1)
    rankings = Rankings.counted(NAMES, counts, counts)
    assert rankings.scores is rankings.probabilities
    assert rankings.groups == list(NAMES)
    assert Rankings.counted(NAMES, None, counts).scores == {}
    with pytest.raises(DataError, match="a group is called 'all'"):
        Rankings.counted(("A", "all", "C"), counts, counts)
