"""Figures of score histograms, against numbers worked out from the raw scores."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.metrics import roc_curve

import faircal
from faircal.evaluation.curves import Curves
from faircal.report.figures import (
    DetCurves,
    FprCurves,
    Panels,
    ReliabilityDiagram,
    RocCurves,
    Tippett,
    Violins,
    svg,
)

KINDS = (FprCurves, Violins, RocCurves, DetCurves)


def column(figure, name, **where):
    rows = figure.table.to_pylist()
    return [row[name] for row in rows if all(row[k] == v for k, v in where.items())]


class TestFprCurves:
    def test_every_point_is_the_rate_at_one_threshold(self, four):
        figure = FprCurves(four.audit().curves, upto=1.0)
        strangers = four.score[~four.genuine]
        for group in "ABCD":
            mine = four.of(group, False)
            edges = np.arange(102) / 100  # a threshold above all scores comes first
            known = {(np.mean(strangers >= t - 1e-9), np.mean(mine >= t - 1e-9)) for t in edges}
            x, y = figure.lines[group]
            found = set(zip(x.tolist(), y.tolist(), strict=True))
            assert found == known

    def test_lines_end_at_the_last_rate_drawn(self, four):
        figure = FprCurves(four.audit().curves, upto=0.1)
        whole = FprCurves(four.audit().curves, upto=1.0)
        for group, (x, y) in figure.lines.items():
            assert (x[0], y[0], x[-1]) == (0, 0, 0.1)
            assert y[-1] == pytest.approx(np.interp(0.1, *whole.lines[group]))
            assert (np.diff(x) >= 0).all()
            assert (np.diff(y) >= 0).all()

    def test_rates_at_the_mark_are_said(self, four):
        figure = FprCurves(four.audit().curves, mark=0.05)
        # A is scored lowest and D highest, so strangers of D pass most often.
        rates = figure.at_mark
        assert rates["D"] > rates["B"]
        assert rates["D"] > 0.05 > rates["A"]
        for group, rate in rates.items():
            assert f"{group} {100 * rate:.3g} %" in figure.words
        assert "global FPR of 5 %" in figure.words

    def test_the_axes_hold_the_table(self, four):
        figure = FprCurves(four.audit().curves)
        ax = figure.plot()
        drawn = {line.get_label(): line for line in ax.lines}
        for group in "ABCD":
            assert column(figure, "global_fpr", group=group) == drawn[group].get_xdata().tolist()
            assert column(figure, "fpr", group=group) == drawn[group].get_ydata().tolist()
        marks = [line for line in ax.lines if list(line.get_xdata()) == [0.05, 0.05]]
        assert len(marks) == 1
        assert ax.get_xlim() == (0, 0.1)

    def test_the_axis_is_in_percent_and_as_high_as_told(self, four):
        ax = FprCurves(four.audit().curves, height=0.9).plot()
        ax.figure.draw_without_rendering()
        assert "8" in [tick.get_text() for tick in ax.get_xticklabels()]
        assert ax.get_ylim() == (0, 0.9)

    def test_a_group_without_imposters_is_named_as_left_out(self, four):
        four.genuine[four.groups == "B"] = True
        figure = FprCurves(four.audit().curves)
        assert list(figure.lines) == ["A", "C", "D"]
        assert "Not drawn, for want of imposter pairs: B." in figure.caption
        # C and D keep the look they have where B is drawn.
        assert [line.get_color() for line in figure.plot().lines][-1] == "#CC79A7"

    def test_one_fold(self, benchmarked):
        source = benchmarked.curves.sources[0]
        one = FprCurves(benchmarked.curves, source, "5", upto=1.0)
        histogram = benchmarked.curves.get("Asian F", source=source, fold="5")
        assert set(column(one, "fpr", group="Asian F")) == {0.0, *histogram.fpr.tolist()}
        assert "Test fold 5." in one.caption
        assert "All test folds together." in FprCurves(benchmarked.curves, source).caption


class TestViolins:
    def test_thresholds_are_those_nearest_to_the_rate(self, four):
        figure = Violins(four.audit().curves, rate=0.1)
        for group, of in {"global": four.score[~four.genuine], "C": four.of("C", False)}.items():
            threshold = figure.thresholds[group]
            rates = [np.mean(of >= t - 1e-9) for t in np.arange(101) / 100]
            assert abs(np.mean(of >= threshold - 1e-9) - 0.1) == min(abs(r - 0.1) for r in rates)
            assert column(figure, "at", group=group, quantity="threshold") == [threshold]
            assert f"{threshold:.3g}" in figure.words

    def test_a_given_threshold_is_drawn_with_those_of_groups_at_its_rate(self, four):
        curves = four.audit().curves
        figure = Violins(curves, threshold=0.5)
        assert figure.thresholds["global"] == 0.5
        strangers = four.score[~four.genuine]
        rate = np.mean(strangers >= 0.5 - 1e-9)
        assert figure.thresholds["C"] == Violins(curves, rate=rate).thresholds["C"]
        assert figure.thresholds["C"] != Violins(curves).thresholds["C"]
        told = f"{100 * rate:.3g} %"
        assert f"Threshold given, at an FPR of {told}: all pairs 0.5;" in figure.words
        assert f"the threshold given, at which {told} of all" in figure.caption
        drawn = figure.plot().get_legend_handles_labels()[1]
        assert "threshold given" in drawn
        assert "threshold of all pairs" not in drawn

    def test_where_nobody_passes_it_lies_just_above_the_last_imposter(self, scored):
        """Not at the end of the histogram, far from all scores."""
        pairs = scored(["A", "B"])
        pairs.genuine[pairs.groups == "B"] = True
        pairs.genuine[np.flatnonzero(pairs.groups == "B")[:4]] = False
        last = pairs.of("B", False).max()
        figure = Violins(pairs.audit().curves, rate=0.05)
        assert last < figure.thresholds["B"] <= last + 0.0021

    def test_no_imposters_no_threshold(self, scored):
        pairs = scored(["A", "B"])
        pairs.genuine[pairs.groups == "B"] = True
        figure = Violins(pairs.audit().curves)
        assert list(figure.thresholds) == ["global", "A"]
        figure.plot().figure.draw_without_rendering()

    def test_quartiles_are_those_of_the_scores(self, four):
        figure = Violins(four.audit().curves)
        for group in "AD":
            for kind in (True, False):
                pairs = "genuine" if kind else "imposter"
                found = column(figure, "at", group=group, pairs=pairs, quantity="quartile")
                known = np.quantile(four.of(group, kind), [0.25, 0.5, 0.75])
                assert found == pytest.approx(known, abs=0.02)

    def test_outlines_are_densities(self, four):
        """As wide as Gaussian smoothing of the raw scores says, scaled by the number of pairs."""
        figure = Violins(four.audit().curves)
        n = {kind: len(four.of("A", kind)) for kind in (True, False)}
        for kind in (True, False):
            scores = four.of("A", kind) + 0.0005  # in the middle of its bin
            pairs = "genuine" if kind else "imposter"
            at, width = (
                np.array(column(figure, name, group="A", pairs=pairs, quantity="outline"))
                for name in ("at", "width")
            )
            spread = 0.9 * scores.std() * len(scores) ** -0.2
            density = norm.pdf(at[:, None], scores, spread).sum(axis=1)
            largest = 0.42 * n[kind] / max(n.values())
            assert width == pytest.approx(largest * density / density.max(), abs=0.01)

    def test_halves_stand_on_their_sides(self, four):
        ax = Violins(four.audit().curves).plot()
        for patch in ax.patches:
            x = patch.get_xy()[:, 0]
            place = round(x[0])
            assert (x <= place).all() if patch.get_label() == "imposter" else (x >= place).all()
        assert sorted(p.get_label() for p in ax.patches) == ["genuine"] * 4 + ["imposter"] * 4

    def test_probabilities_stay_between_0_and_1(self, four):
        found = four.audit(probability=four.score**2)
        figure = Violins(found.curves, of="probability")
        at = column(figure, "at", quantity="outline")
        assert 0 <= min(at) < max(at) <= 1
        assert figure.plot().get_ylabel() == "probability"
        assert Violins(found.curves).plot().get_ylabel() == "score"

    def test_a_rare_class_keeps_a_quarter_of_the_width(self, scored):
        pairs = scored(["A"])
        pairs.genuine[:] = False
        pairs.genuine[:5] = True
        figure = Violins(pairs.audit().curves)
        widest = {
            kind: max(column(figure, "width", pairs=kind, quantity="outline"))
            for kind in ("genuine", "imposter")
        }
        assert widest["genuine"] == pytest.approx(widest["imposter"] / 4, rel=0.01)


class TestReliabilityDiagram:
    def test_bins_hold_means_and_shares(self, four):
        probability = four.score
        figure = ReliabilityDiagram(four.audit(probability=probability).curves)
        for group in "AC":
            rows = [row for row in figure.table.to_pylist() if row["group"] == group]
            mine = four.groups == group
            which = np.minimum((probability * 10 + 1e-9).astype(int), 9)
            known = [
                (int(inside.sum()), probability[inside].mean(), four.genuine[inside].mean())
                for inside in (mine & (which == i) for i in range(10))
                if inside.sum() >= 10
            ]
            assert len(known) > 3
            assert [row["pairs"] for row in rows] == [n for n, _, _ in known]
            assert [row["probability"] for row in rows] == pytest.approx([m for _, m, _ in known])
            assert [row["genuine"] for row in rows] == pytest.approx([s for _, _, s in known])

    def test_the_line_leaves_small_bins_out_and_says_so(self, four):
        figure = ReliabilityDiagram(four.audit(probability=four.score).curves)
        assert min(figure.table["pairs"].to_pylist()) >= 10
        assert any(0 < n < 10 for n in figure.bins["A"][0])
        assert "fewer than 10 pairs" in figure.caption

    def test_the_largest_gap_is_said(self, four):
        figure = ReliabilityDiagram(four.audit(probability=four.score).curves, n_bins=5)
        rows = [row for row in figure.table.to_pylist() if row["group"] == "B"]
        gap = max(abs(row["genuine"] - row["probability"]) for row in rows)
        assert f"B {100 * gap:.3g} %" in figure.words

    def test_other_bins_are_as_near_as_edges_allow(self, four):
        figure = ReliabilityDiagram(four.audit(probability=four.score).curves, n_bins=3)
        counts = figure.bins["A"][0]
        mine = four.score[four.groups == "A"]
        assert counts.tolist() == [
            (mine < 0.333).sum(),
            ((mine >= 0.333) & (mine < 0.667)).sum(),
            (mine >= 0.667).sum(),
        ]


class TestRocAndDet:
    def test_roc_points_are_those_of_scikit_learn(self, four):
        figure = RocCurves(four.audit().curves)
        for group in "AD":
            mine = four.groups == group
            fpr, tpr, _ = roc_curve(four.genuine[mine], four.score[mine], drop_intermediate=False)
            x, y = figure.lines[group]
            known = set(zip(fpr.round(12), tpr.round(12), strict=True))
            assert set(zip(x.round(12), y.round(12), strict=True)) <= known
            assert x[0] == fpr[fpr > 0].min()
            assert y[0] == pytest.approx(tpr[fpr == x[0]].max())
            assert (x[-1], y[-1]) == (1, 1)

    def test_det_is_drawn_on_deviates(self, four):
        figure = DetCurves(four.audit().curves)
        ax = figure.plot()
        drawn = {line.get_label(): line for line in ax.lines}
        x = np.array(column(figure, "fpr", group="B"))
        y = np.array(column(figure, "fnr", group="B"))
        assert drawn["B"].get_xdata() == pytest.approx(norm.ppf(x))
        assert drawn["B"].get_ydata() == pytest.approx(norm.ppf(y))
        ax.figure.draw_without_rendering()
        labels = {tick.get_text(): tick.get_position()[0] for tick in ax.get_xticklabels()}
        assert labels["5"] == pytest.approx(norm.ppf(0.05))

    def test_det_is_clipped_at_what_the_data_resolves(self, four):
        figure = DetCurves(four.audit().curves)
        for group, (x, y) in figure.lines.items():
            if group != "global":
                assert x.min() >= 1 / len(four.of(group, False)) - 1e-12
                assert y.min() >= 1 / len(four.of(group, True)) - 1e-12
            assert max(x.max(), y.max()) < 1

    def test_all_pairs_are_drawn_too(self, four):
        for kind in (RocCurves, DetCurves):
            figure = kind(four.audit().curves)
            assert list(figure.lines) == ["A", "B", "C", "D", "global"]
            assert "all pairs" in [line.get_label() for line in figure.plot().lines]

    def test_rates_at_the_mark(self, four):
        figure = RocCurves(four.audit().curves, mark=0.2)
        ranked = roc_curve(four.genuine, four.score, drop_intermediate=False)
        known = np.interp(0.2, ranked[0], ranked[1])
        assert figure.at_mark["global"] == pytest.approx(known)
        assert f"all pairs {100 * known:.3g} %" in figure.words

    def test_a_rate_that_groups_do_not_resolve_is_not_known(self, four):
        figure = RocCurves(four.audit().curves, mark=1e-4)
        assert "A not known" in figure.words

    def test_groups_of_one_class_are_left_out(self, four):
        four.genuine[four.groups == "B"] = False
        for kind in (RocCurves, DetCurves):
            figure = kind(four.audit().curves)
            assert "B" not in figure.lines
            assert "pairs: B." in figure.caption


class TestEdges:
    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("names", [["only"], [f"g{i:02}" for i in range(12)]])
    def test_one_group_and_twelve(self, scored, kind, names):
        ax = kind(scored(names, n=1200).audit().curves).plot()
        ax.figure.draw_without_rendering()
        if kind is Violins:
            assert [tick.get_text() for tick in ax.get_xticklabels()] == names
        else:
            lines = [line for line in ax.lines if line.get_label() in names]
            looks = {(line.get_color(), str(line._dash_pattern)) for line in lines}
            assert len(looks) == len(names)
            assert len({line.get_marker() for line in lines}) == len(names)

    @pytest.mark.parametrize("kind", KINDS)
    def test_no_groups(self, four, kind):
        figure = kind(four.audit(groups=None).curves)
        figure.plot().figure.draw_without_rendering()
        assert "all pairs" in figure.words

    @pytest.mark.parametrize("kind", KINDS)
    def test_hostile_names(self, scored, kind):
        names = ["$x_1$ <b>", "_hidden", "a & \\$b", "x" * 200, "$\\frac{", "tab\tnew\nline"]
        drawn = svg(kind(scored(names, n=600).audit().curves))
        for shown in ("$x_1$ &lt;b&gt;", "_hidden", "a &amp; \\$b", "$\\frac{", "tab new line"):
            assert shown in drawn.replace("\u200a", "")
        assert "x" * 21 + "…" + "x" * 10 in drawn
        assert "<b>" not in drawn

    def test_nothing_but_genuine_pairs(self, scored):
        pairs = scored(["A", "B"])
        pairs.genuine[:] = True
        curves = pairs.audit().curves
        for kind in (FprCurves, RocCurves, DetCurves):
            figure = kind(curves)
            assert figure.empty
            figure.plot().figure.draw_without_rendering()
        assert Violins(curves).thresholds == {}

    def test_no_curves_at_all(self):
        with pytest.raises(faircal.FairCalError, match=r"pass one of curves\.sources"):
            FprCurves(Curves([])).plot()


class TestAxes:
    def test_it_draws_into_the_axes_it_is_given(self, four):
        from matplotlib.figure import Figure

        canvas = Figure()
        left, right = canvas.subplots(1, 2)
        figure = RocCurves(four.audit().curves)
        left.plot([1, 1], [0, 1], label="mine")
        assert figure.plot(left) is left
        assert canvas.axes == [left, right]
        assert not right.lines
        names = [text.get_text() for text in left.get_legend().get_texts()]
        assert names == ["A", "B", "C", "D", "all pairs"]

    def test_settings_of_matplotlib_stay_as_they_are(self, four):
        import matplotlib

        with matplotlib.rc_context({"font.size": 33, "text.usetex": True}):
            before = dict(matplotlib.rcParams)
            ax = FprCurves(four.audit().curves).plot()
            assert dict(matplotlib.rcParams) == before
        assert ax.title.get_fontsize() == 10

    def test_panels_share_one_legend_and_their_labels(self, four, scored, texts):
        curves = four.audit().curves
        other = scored(["A", "B", "E"]).audit().curves
        figures = [FprCurves(curves), FprCurves(other), FprCurves(curves)]
        panels = Panels(figures, ["one", "two", "three"], columns=2, share_y=True)
        canvas = panels.plot()
        assert [ax.get_title() for ax in canvas.axes] == ["one", "two", "three"]
        assert all(ax.get_legend() is None for ax in canvas.axes)
        (legend,) = canvas.legends
        assert [text.get_text() for text in legend.get_texts()] == ["A", "B", "C", "D", "E"]
        assert len({ax.get_ylim() for ax in canvas.axes}) == 1
        assert texts(canvas).count("group FPR (%)") == 2
        assert set(panels.table["panel"].to_pylist()) == {"one", "two", "three"}
        assert len(panels.table) == sum(len(figure.table) for figure in figures)
        assert all(f"{name}: At a global FPR" in panels.words for name in ("one", "two", "three"))

    def test_panels_need_figures_and_names(self, four):
        with pytest.raises(faircal.FairCalError, match="one figure or more"):
            Panels([])
        with pytest.raises(faircal.FairCalError, match="each of 1 figures; found 2"):
            Panels([FprCurves(four.audit().curves)], ["a", "b"])


class TestTippett:
    def test_shares_of_pairs_at_and_above_a_ratio(self, four):
        probability, share = four.score, four.genuine.mean()
        figure = Tippett(four.audit(probability=probability).curves, bounds=(-2.0, 3.0))
        ratio = faircal.log_likelihood_ratio(probability, calibrated_at=share) / np.log(10)
        for kind, mine in (("genuine", four.genuine), ("imposter", ~four.genuine)):
            at = np.array(column(figure, "log10_likelihood_ratio", pairs=kind))
            known = [(ratio[mine] >= level - 1e-9).mean() for level in at]
            assert column(figure, "share_at_least", pairs=kind) == pytest.approx(known)
        first = figure.at[figure.at >= 0][0]  # half a thousandth of a probability above 0
        wrong = (ratio[~four.genuine] >= first - 1e-9).mean()
        assert figure.numbers.startswith(f"Misleading: {100 * wrong:.3g} % of pairs of strangers")
        assert "20.1 to 1 for one person, 7.39 to 1 against" in figure.caption
        lines = figure.plot().get_lines()
        assert [line.get_xdata()[0] for line in lines[3:]] == pytest.approx([-0.869, 1.303], 1e-3)

    def test_another_share_moves_it(self, four):
        curves = four.audit(probability=four.score).curves
        plain, moved = Tippett(curves, share=0.5), Tippett(curves, share=0.1)
        assert moved.at - plain.at == pytest.approx(np.log10(9))
        assert "not known" in plain.caption
