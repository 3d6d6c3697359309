"""What the report says in words: numbers worked out by hand, and no claim the data can't carry."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

import faircal
from faircal.evaluation.curves import CURVES, as_table
from faircal.metrics.results import Result, ResultKey, write_parquet, write_results, write_run
from faircal.report.store import LabelledResults, RatesByGroup, ResultsFolder, main_condition
from faircal.report.words import summary


def counted(groups):
    """Return arrays with, for each group, errors and trials of strangers, then of one person."""
    score, genuine, group = [], [], []
    for name, (false_matches, strangers, misses, same) in groups.items():
        score += [0.9] * false_matches + [0.1] * (strangers - false_matches)
        score += [0.2] * misses + [0.8] * (same - misses)
        genuine += [0] * strangers + [1] * same
        group += [name] * (strangers + same)
    return {"score": score, "genuine": genuine, "groups": group}


@pytest.fixture
def store_of(tmp_path):
    """Return a function that audits arrays and reads back what was written."""

    def make(arrays, *, run=None, threshold=0.5, attribute="group", **more):
        audits = [
            faircal.audit(
                **arrays, **more, threshold=threshold, dataset="d", feature=f, attribute=attribute
            )
            for f in (run or {}).pop("features", ["f"])
        ]
        write_results(tmp_path, [row for each in audits for row in each.rows])
        curves = [curve for each in audits for curve in each.curves.rows]
        write_parquet(tmp_path / CURVES, as_table(curves))
        known = {
            "people": audits[0].people,
            "effective_people": audits[0].effective_people(),
            "interval_kind": audits[0].interval_kind,
        }
        write_run(tmp_path, {"kind": "audit", **known, **(run or {})})
        return ResultsFolder.read(tmp_path)

    return make


def everything(said):
    return [*said.who, *said.sure, *said.changes, *said.limits]


TOLD_APART = {"A": (30, 1000, 100, 1000), "B": (3, 1000, 120, 1000)}


class TestWho:
    def test_worst_and_best_with_their_numbers(self, store_of):
        who = summary(store_of(counted(TOLD_APART)), "group").who
        # Wilson by SciPy: 30 of 1000 is 2.1 to 4.3 %, 3 of 1000 is 0.10 to 0.88 %.
        assert binomtest(30, 1000).proportion_ci(method="wilson").low == pytest.approx(0.0211, 1e-2)
        assert who[0] == (
            "Two pictures count as one person when their score is 0.5 or more, the same for "
            "everybody."
        )
        assert who[1] == (
            "Over all pairs: 1.7 % (1.2 % to 2.3 %) of pairs of strangers are taken for one person "
            "and 11.0 % (9.7 % to 12.4 %) of pairs of one person are not recognised."
        )
        assert who[2] == (
            "False matches (two strangers taken for one person): most among A with 3.0 % (2.1 % to "
            "4.3 %) of pairs of strangers, fewest among B with 0.30 % (0.10 % to 0.88 %); that is "
            "10 times as many, and at least 1.9 times."
        )
        assert who[3].endswith("their intervals overlap: the data does not tell them apart.")
        assert "most among B with 12.0 %" in who[3]
        assert len(who) == 4

    def test_none_at_all_in_the_best_group(self, store_of):
        groups = {"A": (60, 1000, 9, 100), "B": (0, 1000, 9, 100)}
        who = summary(store_of(counted(groups)), "group").who
        assert (
            "fewest among B with 0 % (0 % to 0.38 %); that is at least 9.0 times as many" in who[2]
        )
        assert "inf" not in " ".join(who)

    def test_a_group_with_too_few_pairs_gets_no_number(self, store_of):
        groups = TOLD_APART | {"Asian F": (20, 41, 0, 99)}
        said = summary(store_of(counted(groups)), "group")
        assert "Asian F: only 41 pairs of strangers: not enough data (100 are needed)." in said.who
        assert "Asian F: only 99 pairs of one person: not enough data (100 are needed)." in said.who
        assert "48.8" not in " ".join(everything(said))  # 20 of 41
        assert any("Asian F needs more data to tell" in text for text in said.limits)

    def test_at_a_global_rate_the_rule_of_three_decides(self, store_of):
        groups = {"A": (3, 299, 9, 100), "B": (3, 300, 9, 100), "C": (4, 900, 9, 100)}
        who = summary(store_of(counted(groups), threshold=None), "group").who
        assert who[0].startswith(
            "One threshold (0.15) for everybody, the lowest at which at most 1 % of all pairs"
        )
        assert "A: only 299 pairs of strangers: not enough data (300 are needed)." in who
        assert not any(text.startswith("B:") for text in who)

    def test_many_small_groups_are_listed_in_one_sentence(self, store_of):
        groups = TOLD_APART | {f"g{i}": (1, 50, 1, 200) for i in range(9)}
        who = summary(store_of(counted(groups)), "group").who
        (listed,) = [text for text in who if "not enough data" in text]
        assert listed == (
            "9 groups: not enough data on pairs of strangers: g0 (50 pairs), g1 (50 pairs), "
            "g2 (50 pairs), g3 (50 pairs), g4 (50 pairs), g5 (50 pairs) and 3 more."
        )

    def test_one_group_with_enough_is_compared_with_none(self, store_of):
        groups = {"A": (30, 1000, 10, 100), "B": (1, 9, 1, 9)}
        who = summary(store_of(counted(groups)), "group").who
        assert (
            "False matches (two strangers taken for one person): 3.0 % (2.1 % to 4.3 %) of pairs "
            "of strangers of A, the only group with enough of them; there is no other to compare "
            "it with."
        ) in who

    def test_no_group_with_enough(self, store_of):
        who = summary(store_of(counted({"A": (1, 9, 1, 9), "B": (1, 8, 1, 8)})), "group").who
        assert sum("no group has enough" in text for text in who) == 2
        assert "%" not in " ".join(who)

    def test_identical_groups(self, store_of):
        groups = dict.fromkeys("ABC", (10, 1000, 10, 1000))
        who = summary(store_of(counted(groups)), "group").who
        assert who[2].endswith("1.0 % in each group; the data does not tell them apart.")

    @pytest.mark.parametrize(("genuine", "lacking"), [(0, "one person"), (1, "strangers")])
    def test_one_class_only(self, store_of, genuine, lacking):
        arrays = counted(TOLD_APART) | {"genuine": [genuine] * 4000}
        said = summary(store_of(arrays), "group")
        assert any(f"there are no pairs of {lacking}, so nothing" in text for text in said.who)
        assert not any("more data to tell" in text for text in said.limits)

    def test_genuine_pairs_only_set_no_threshold(self, store_of):
        arrays = counted(TOLD_APART) | {"genuine": [1] * 4000}
        said = summary(store_of(arrays, threshold=None), "group")
        (words,) = said.who
        assert words == (
            "There are no pairs of strangers, so no threshold is set by a global FPR and no error "
            "rate is shown here. Those at global FNRs are in audit.json."
        )
        assert not any("threshold" in text for text in said.limits)

    def test_no_groups(self, store_of):
        arrays = counted(TOLD_APART) | {"groups": None}
        said = summary(store_of(arrays, attribute=""), "")
        assert said.who[-1] == (
            "The data names no groups: who is treated differently cannot be told."
        )
        assert "1.7 %" in said.who[1]

    def test_several_features_are_named(self, store_of):
        who = summary(store_of(counted(TOLD_APART), run={"features": ["n1", "n2"]}), "group").who
        assert [text.split(":")[0] for text in who[1:]] == ["n1"] * 3 + ["n2"] * 3

    def test_scores_of_another_range(self, store_of):
        arrays = counted(TOLD_APART)
        arrays["score"] = [100 * score for score in arrays["score"]]
        plain = summary(store_of(counted(TOLD_APART)), "group").who
        store = store_of(arrays, threshold=50, score_range=(0.0, 100.0))
        hundred = summary(store, "group").who
        assert "score is 50 or more" in hundred[0]
        assert hundred[1:] == plain[1:]

    def test_names_stay_as_they_are(self, store_of):
        evil = '<b>{x}</b> %s "'
        who = summary(
            store_of(counted({evil: (30, 1000, 9, 100), "B": (3, 1000, 9, 100)})), "group"
        )
        assert f"most among {evil} with 3.0 %" in who.who[2]


class TestRelabelling:
    @settings(max_examples=40)
    @given(
        st.lists(
            st.tuples(st.integers(0, 400), st.integers(1, 400)).map(lambda p: (min(p), p[1])),
            min_size=2,
            max_size=5,
            unique_by=(lambda pair: pair[0] / pair[1], lambda pair: pair[1]),
        ),
        st.randoms(),
    )
    def test_new_names_change_names_only(self, pairs, random):
        names = [f"g{i}" for i in range(len(pairs))]
        rates = [
            Result(metric="fpr", value=errors / trials, errors=errors, trials=trials)
            for errors, trials in pairs
        ]
        overall = Result(metric="fpr", value=0.5)
        shuffled = random.sample(range(len(pairs)), len(pairs))
        one = RatesByGroup("fpr", overall, dict(zip(names, rates, strict=True)))
        two = RatesByGroup("fpr", overall, {names[i]: rates[i] for i in shuffled})
        for what in ("worst", "best", "differ", "overlap"):
            assert getattr(one, what) == getattr(two, what)
        assert one.ratio == two.ratio or one.ratio != one.ratio
        assert one.withheld == two.withheld

    def test_sentences_are_permuted(self, store_of):
        rows = [(30, 1000, 10, 500), (3, 1000, 50, 500), (1, 20, 0, 30)]
        seen = set()
        for names in permutations(["ONE", "TWO", "SIX"]):
            who = summary(store_of(counted(dict(zip(names, rows, strict=True)))), "group").who
            text = "\n".join(who)
            for name, role in zip(names, ("first", "second", "third"), strict=True):
                text = text.replace(name, role)
            seen.add(tuple(sorted(text.split("\n"))))
        assert len(seen) == 1


class TestSureAndLimits:
    def test_people_and_too_narrow_intervals(self, store_of):
        arrays = counted(TOLD_APART)
        n = len(arrays["score"])
        next_one = np.arange(n) + (np.array(arrays["genuine"]) == 0)  # strangers are two people
        sides = [
            np.where(np.array(arrays["groups"]) == "A", number % 12, 20 + number % 50)
            for number in (np.arange(n), next_one)
        ]
        who = {"left_identity": sides[0], "right_identity": sides[1]}
        said = summary(store_of(arrays | who), "group")
        assert "The pairs show 62 people; the smallest group, A, has 12." in said.sure
        assert any(t.startswith("A: only 12 people (fewer than 30)") for t in said.limits)
        assert not any(t.startswith("B:") for t in said.limits)
        assert "They are identity-aware: they know that pairs share people" in said.sure[0]
        assert "narrow" not in " ".join(said.sure)
        assert any("A as much as 12 (effective people)" in text for text in said.sure)
        reason = "only 12 effective people: not enough data (20 are needed)."
        assert said.who.count(f"A: {reason}") == 2  # of either kind of error
        assert "3.0 %" not in " ".join(said.who)  # A's false matches

    def test_without_identities(self, store_of):
        sure = summary(store_of(counted(TOLD_APART)), "group").sure
        assert any("does not say who is in the pairs" in text for text in sure)
        assert sure[0].startswith("Warning: the ranges in brackets are 95 % intervals, but")
        assert "so the ranges are too narrow" in sure[0]

    def test_pairs_in_no_group(self, store_of):
        shares = {"pairs": 2000, "cross_group_pairs": 300, "unknown_pairs": 10}
        limits = summary(
            store_of(counted(TOLD_APART), run={"groups": {"group": shares}}), "group"
        ).limits
        assert "300 of 2,000 pairs (15.0 %) join two groups" in " ".join(limits)
        assert "10 of 2,000 pairs (0.50 %) have no known group" in " ".join(limits)

    def test_simulated(self, store_of):
        said = summary(store_of(counted(TOLD_APART), run={"simulated": True}), "group")
        assert "all of the simulated people" in said.who[0]
        assert said.limits[0].startswith("The people are simulated")

    def test_probabilities(self, store_of):
        arrays = counted(TOLD_APART)
        without = summary(store_of(arrays), "group").limits
        probable = arrays | {"probability": arrays["score"]}
        given_ones = summary(store_of(probable), "group").limits
        assert any("no probabilities" in text for text in without)
        assert not any("no probabilities" in text for text in given_ones)

    def test_threshold_chosen_on_the_test_pairs(self, store_of):
        arrays = counted(TOLD_APART)
        assert "optimistic" not in " ".join(summary(store_of(arrays), "group").limits)
        chosen = summary(store_of(arrays, threshold=None), "group").limits
        assert "optimistic" in " ".join(chosen)

    def test_another_population_is_named(self, store_of):
        run = {
            "moving": {"calibrated_on": "elsewhere"},
            "settings": {"threshold_on": "calibration"},
        }
        said = summary(store_of(counted(TOLD_APART), run=run, threshold=None), "group")
        assert "1 % of all pairs of strangers of elsewhere are taken" in said.who[0]

    def test_never_significant_and_always_a_sentence(self, store_of):
        for text in everything(summary(store_of(counted(TOLD_APART)), "group")):
            assert text.endswith(".")
            assert "significan" not in text
            assert "nan" not in text.split()


class TestBenchmark:
    ATTRIBUTE = "ethnicity+gender"

    def test_speaks_of_the_baseline_at_the_highest_rate(self, benchmarked):
        assert main_condition(benchmarked.results, self.ATTRIBUTE) == "global_fpr=0.1"
        assert list(benchmarked.main_variants) == ["baseline", "fsn", "faircal", "oracle"]
        who = summary(benchmarked, self.ATTRIBUTE).who
        assert who[1] == (
            "These are the rates of Baseline (beta), the scores as they come. Thresholds and rates "
            "are interpolated between scores, as in the paper; an audit counts them."
        )
        variant = benchmarked.main_variants["baseline"]
        rates = {
            group: benchmarked.results.value(
                ResultKey("embedding", *variant, self.ATTRIBUTE, group, "global_fpr=0.1", "fpr")
            ).mean
            for group in benchmarked.results.groups[self.ATTRIBUTE]
        }
        worst = max(rates, key=rates.get)
        assert f"most among {worst} with {100 * rates[worst]:.1f} % (" in who[2]

    def test_says_what_the_methods_change_with_both_numbers(self, benchmarked):
        said = summary(benchmarked, self.ATTRIBUTE).changes
        variants = benchmarked.main_variants

        def value(method, metric, group="all", condition=""):
            where = ("embedding", *variants[method], self.ATTRIBUTE, group, condition, metric)
            return 100 * benchmarked.results.value(ResultKey(*where)).mean

        name = f"FairCal (K = {variants['faircal'].clusters}, beta)"
        (accuracy,) = [text for text in said if text.startswith(f"{name} needs no group labels")]
        for method in ("faircal", "baseline"):
            assert f"{value(method, 'tpr', 'global', 'fpr=0.1'):.1f} %" in accuracy
        (gap,) = [text for text in said if text.startswith("FairCal: the largest gap")]
        for method in ("faircal", "baseline"):
            assert f"{value(method, 'fpr_mad', 'all', 'global_fpr=0.1'):.1f} points" in gap
        (error,) = [text for text in said if text.startswith("FairCal: the calibration error")]
        for method in ("faircal", "baseline"):
            assert f"{value(method, 'ks_mean'):.1f} %" in error
        assert sum(text.startswith("Oracle is a yardstick") for text in said) == 1
        assert "by chance" in said[-1]

    def test_methods_of_ones_own_are_spoken_of_in_a_sentence(self, benchmarked):
        """One that this package does not know, as where a report is made without its plugin."""
        rows = [
            row._replace(method="mine") if row.method == "fsn" else row
            for row in benchmarked.results.rows
        ]
        own = replace(benchmarked, results=LabelledResults(rows))
        said = summary(own, self.ATTRIBUTE).changes
        variant = own.main_variants["mine"]
        where = ("embedding", *variant, self.ATTRIBUTE, "all", "global_fpr=0.1", "fpr_mad")
        gap = f"{100 * own.results.value(ResultKey(*where)).mean:.1f} points"
        (text,) = [text for text in said if text.startswith("mine")]
        assert text.startswith(f"mine: the largest gap is {gap}")
        assert "with Baseline" in text

    def test_changes_within_the_spread_over_folds_are_called_so(self, benchmarked):
        """Where the run kept neither intervals nor replicates of its people."""
        rows = [row._replace(low=math.nan, high=math.nan) for row in benchmarked.results.rows]
        bare = replace(benchmarked, comparisons=[], results=LabelledResults(rows))
        said = {t for t in summary(bare, self.ATTRIBUTE).changes if "(AUROC)" in t}
        assert said
        for method in ("faircal", "fsn"):
            one, base = (
                bare.results.value(
                    ResultKey("embedding", *variant, self.ATTRIBUTE, "global", "", "auroc")
                )
                for variant in (bare.main_variants[method], bare.main_variants["baseline"])
            )
            assert f"{100 * one.mean:.1f}" != f"{100 * base.mean:.1f}"
            (text,) = [t for t in said if t.startswith({"faircal": "FairC", "fsn": "FSN"}[method])]
            within = abs(one.mean - base.mean) < max(one.std, base.std)
            assert ("smaller than the spread over folds" in text) is within is True

    def test_one_threshold_for_all_of_the_simulated_people(self, benchmarked):
        said = summary(benchmarked, self.ATTRIBUTE)
        assert "all of the simulated people" in said.who[0]
        assert "optimistic" in " ".join(said.limits)
        assert re.search(
            r"[\d,]+ of 3,000 pairs \(\d+\.\d %\) join two groups", " ".join(said.limits)
        )

    def test_an_audit_changes_nothing(self, store_of):
        assert summary(store_of(counted(TOLD_APART)), "group").changes == []
