"""The lists of figures: what a report shows, and what the paper shows."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

import faircal
from faircal.evaluation.curves import Curves
from faircal.metrics.results import ResultKey
from faircal.report.figures import Panels, paper_figures, standard_figures, svg
from faircal.report.figures.base import slug
from faircal.report.figures.paper import telling_clusters
from faircal.report.figures.robustness import DrawnCluster
from faircal.report.store import LabelledResults, ResultsFolder

ATTRIBUTE = "ethnicity+gender"


def keys(figures):
    return [figure.key for figure in figures]


def audited(folder, audit):
    """What 'faircal audit' would write, as a store."""
    run = {"kind": "audit"}
    return ResultsFolder(folder, LabelledResults(audit.rows), run, audit.curves, [], [])


def two_features(store):
    """The same store with its feature a second time under another name."""
    rows = store.results.rows
    again = [row._replace(feature="Other/one") for row in rows]
    curves = [c._replace(source=c.source._replace(feature="Other/one")) for c in store.curves.rows]
    return replace(
        store,
        results=LabelledResults([*rows, *again]),
        curves=Curves([*store.curves.rows, *curves]),
    )


class TestStandard:
    def test_a_benchmark_has_all(self, benchmarked):
        figures = standard_figures(benchmarked, ATTRIBUTE)
        assert keys(figures) == [
            "differences",
            "rates-fpr",
            "rates-ks",
            "fpr-by-group",
            "distributions",
            "reliability",
            "roc",
            "det",
            "cluster-shift-fsn",
            "cluster-shift-faircal",
            "robustness-methods",
            "robustness-calibrators",
        ]
        for figure in figures:
            assert figure.title
            assert len(figure.caption) > 20
            assert len(figure.table)
            assert re.search(r"\d", figure.words)

    def test_a_panel_for_each_method(self, benchmarked):
        (roc,) = [f for f in standard_figures(benchmarked, ATTRIBUTE) if f.key == "roc"]
        assert list(roc.names) == ["Baseline", "FSN", "FairCal", "Oracle"]

    def test_rates_are_those_of_the_results(self, benchmarked):
        (rates,) = [f for f in standard_figures(benchmarked, ATTRIBUTE) if f.key == "rates-fpr"]
        assert rates.condition == "global_fpr=0.1"
        for row in rates.table.to_pylist():
            (variant,) = [v for v in rates.variants if v.method == row["method"].lower()]
            where = (ATTRIBUTE, row["group"], "global_fpr=0.1", "fpr")
            value = benchmarked.results.value(
                ResultKey(benchmarked.results.features[0], *variant, *where)
            )
            assert row["value"] == value.mean
        assert {variant.calibrator for variant in rates.variants} == {"beta"}

    def test_robustness_by_method_has_the_results(self, benchmarked):
        figures = standard_figures(benchmarked, ATTRIBUTE)
        (panels,) = [f for f in figures if f.key == "robustness-methods"]
        ks = panels.figures[0].table.to_pylist()
        assert {row["clusters"] for row in ks} == {2, 4}
        (known,) = [
            row.value
            for row in benchmarked.results.rows
            if (row.method, row.calibrator, row.clusters) == ("faircal", "beta", "4")
            and (row.group, row.metric, row.fold) == ("all", "ks_mean", "mean")
        ]
        (found,) = [r["value"] for r in ks if (r["line"], r["clusters"]) == ("FairCal", 4)]
        assert found == known

    def test_clusters_are_of_the_last_fold(self, benchmarked):
        figures = standard_figures(benchmarked, ATTRIBUTE)
        (shift,) = [f for f in figures if f.key == "cluster-shift-fsn"]
        rows = [
            row.value
            for row in benchmarked.clusters
            if (row.method, row.fold, row.quantity) == ("fsn", "5", "shift")
        ]
        assert shift.table["shift"].to_pylist() == sorted(rows)

    def test_two_features_are_named_in_keys_and_titles(self, benchmarked):
        both = two_features(benchmarked)
        figures = standard_figures(both, ATTRIBUTE)
        names = keys(figures)
        assert len(set(names)) == len(names)
        assert "roc-embedding" in names
        assert "roc-Other-one" in names
        assert all(re.fullmatch(r"[\w.-]+", name) for name in names)
        (title,) = [f.title for f in figures if f.key == "roc-Other-one"]
        assert title == "ROC by group (Other/one)"

    def test_an_audit_of_scores_at_a_threshold(self, four, tmp_path):
        store = audited(tmp_path / "a", four.audit(threshold=0.5))
        attribute = store.results.attributes[0]
        figures = standard_figures(store, attribute)
        assert keys(figures) == ["rates-fpr", "fpr-by-group", "distributions", "roc", "det"]
        assert not any(isinstance(figure, Panels) for figure in figures)
        rates = figures[0]
        known = {r["group"]: r["value"] for r in rates.table.to_pylist()}
        strangers = four.of("C", False)
        assert known["C"] == pytest.approx((strangers >= 0.5).mean())
        assert all(r["low"] <= r["value"] <= r["high"] for r in rates.table.to_pylist())
        assert "given threshold" in rates.title

    def test_what_the_data_does_not_carry_is_left_out(self, four, tmp_path):
        nobody = audited(tmp_path / "none", four.audit(groups=None, probability=four.score))
        expected = ["distributions", "reliability", "tippett", "roc", "det"]
        assert keys(standard_figures(nobody, "")) == expected
        four.genuine[:] = False
        strangers = audited(tmp_path / "one", four.audit(threshold=0.5))
        found = keys(standard_figures(strangers, strangers.results.attributes[0]))
        assert found == ["rates-fpr", "fpr-by-group"]
        four.genuine[:] = True
        same = audited(tmp_path / "other", four.audit(threshold=0.5))
        assert keys(standard_figures(same, same.results.attributes[0])) == []

    def test_a_store_without_curves_or_clusters(self, benchmarked):
        bare = replace(benchmarked, curves=Curves([]), clusters=[])
        assert keys(standard_figures(bare, ATTRIBUTE)) == [
            "differences",
            "rates-fpr",
            "rates-ks",
            "robustness-methods",
            "robustness-calibrators",
        ]


class TestPaper:
    def test_the_paper_s_order(self, benchmarked):
        names = keys(paper_figures(benchmarked, "bfw"))
        over = ("mean", "aad", "mad", "std")
        assert names == [
            "fig-thr_vs_fpr-embedding",
            "fig-distributions_fpr_thresholds-embedding",
            *(f"fig-robustness_ks_{name}" for name in over),
            *(f"fig-robustness_{name}" for name in ("auroc", "1e-3fpr", "1e-2fpr")),
            *(f"fig-robustness_ks_{name}_vs_other_methods" for name in over),
        ]

    def test_the_first_two_are_by_ethnicity_and_of_the_last_fold(self, benchmarked):
        first, second, *_ = paper_figures(benchmarked, "bfw")
        assert list(first.names) == ["Baseline", "FSN", "FairCal"]
        assert set(first.table["group"].to_pylist()) == {"African", "Asian", "Caucasian", "Indian"}
        assert {figure.fold for figure in (*first.figures, *second.figures)} == {"5"}
        assert list(second.names) == ["Baseline", "Baseline + calibration", "Oracle", "FairCal"]
        assert [figure.of for figure in second.figures] == ["score", *["probability"] * 3]
        canvas = first.plot()
        assert all(ax.get_xlim() == (0, 0.1) for ax in canvas.axes)
        assert all(ax.get_ylim()[1] >= 0.18 for ax in canvas.axes)

    def test_one_panel_per_feature(self, benchmarked):
        figures = {figure.key: figure for figure in paper_figures(two_features(benchmarked), "rfw")}
        auroc = figures["fig-robustness_auroc"]
        assert list(auroc.names) == ["embedding", "Other/one"]
        assert not auroc.share_y
        assert figures["fig-robustness_ks_mean"].share_y
        assert "fig-thr_vs_fpr-Other-one" in figures

    def test_lines_are_those_of_the_paper(self, benchmarked):
        figures = {figure.key: figure for figure in paper_figures(benchmarked, "rfw")}
        lines = set(figures["fig-robustness_ks_aad"].table["line"].to_pylist())
        assert lines == {"beta", "isotonic"}
        lines = set(figures["fig-robustness_ks_aad_vs_other_methods"].table["line"].to_pylist())
        assert lines == {"Baseline", "FSN", "FairCal", "Oracle"}
        tpr = figures["fig-robustness_1e-3fpr"]
        assert (tpr.metric, tpr.condition) == ("tpr", "fpr=0.001")

    def test_montages_where_there_are_pictures(self, benchmarked, tmp_path):
        from PIL import Image

        ids = {member.image_id for member in benchmarked.members}
        for name in ids:
            Image.new("RGB", (20, 20), (99, 0, 0)).save(tmp_path / f"{name}.png")
        figures = paper_figures(benchmarked, "rfw", lambda name: tmp_path / f"{name}.png")
        assert keys(figures)[2] == "fig-clusters-embedding"
        montage = figures[2]
        assert len(montage.figures) == 4
        assert len(montage.table) == 4 * 6
        shown = {(row["cluster"], row["image_id"]) for row in montage.table.to_pylist()}
        known = {
            (m.cluster, m.image_id)
            for m in benchmarked.members
            if (m.method, m.fold) == ("faircal", "5")
        }
        assert shown <= known
        assert svg(montage).count("data:image/png") == 4
        missing = paper_figures(benchmarked, "rfw", lambda name: None)
        assert "fig-clusters-embedding" not in keys(missing)

    def test_a_dataset_that_is_not_in_the_paper(self, benchmarked):
        with pytest.raises(faircal.ParameterError, match="rfw, bfw, ijbc; found 'lfw'"):
            paper_figures(benchmarked, "lfw")

    def test_an_audit_has_only_what_it_has(self, four, tmp_path):
        store = audited(tmp_path / "a", four.audit())
        assert paper_figures(store, "ijbc") == []


class TestChoice:
    def test_telling_clusters(self):
        def cluster(name, **counts):
            return DrawnCluster(name, sum(counts.values()), counts, 0.0)

        big = [
            cluster("a", F=90, M=10),
            cluster("b", F=99, M=1),
            cluster("c", F=20, M=80),
            cluster("d", F=95, M=5),
        ]
        small = [cluster(f"s{i}", M=3) for i in range(4)]
        assert [c.name for c in telling_clusters([*small, *big], 2)] == ["b", "c"]
        assert [c.name for c in telling_clusters([*small, *big], 4)] == ["b", "c", "d", "a"]
        assert telling_clusters([], 4) == []

    def test_names_that_would_be_one_file_get_numbers(self, benchmarked):
        rows = benchmarked.results.rows
        again = [row._replace(feature=name) for row in rows for name in ("a b", "a/b", "A-B")]
        both = replace(benchmarked, results=LabelledResults(again), curves=Curves([]), clusters=[])
        names = [name for name in keys(standard_figures(both, ATTRIBUTE)) if "rates-ks" in name]
        assert len(names) == 3
        assert len({name.lower() for name in names}) == 3

    def test_slug(self):
        assert slug("../../etc", "ä b") == "etc-b"
        assert slug("…") == "figure"
