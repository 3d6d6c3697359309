"""Figures of results, clusters and pictures, against numbers looked up or worked out by hand."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from faircal.evaluation.curves import Curves
from faircal.metrics.results import ClusterRow, Member, Result
from faircal.report.figures import (
    ClusterShift,
    GroupRateDots,
    Montage,
    Robustness,
    by_calibrator,
    by_method,
    svg,
)
from faircal.report.figures.robustness import read_clusters
from faircal.report.store import LabelledResults, ResultsFolder, Variant


def row(method, group, metric, value, *, clusters="", calibrator="beta", fold="mean", under=""):
    front = ("d", "f", method, calibrator, clusters, "0", fold, "sex")
    return Result(*front, group, under, metric, value)


class TestRobustness:
    @pytest.fixture
    def results(self):
        rows = []
        for method, calibrator, values in (
            ("baseline", "beta", {"": 0.05}),
            ("fsn", "beta", {"100": 0.03, "5": 0.04, "20": 0.035}),
            ("faircal", "beta", {"5": 0.02, "20": 0.015, "100": 0.01}),
            ("faircal", "isotonic", {"5": 0.025, "100": 0.02}),
        ):
            for clusters, value in values.items():
                where = {"clusters": clusters, "calibrator": calibrator}
                rows.append(row(method, "all", "ks_mean", value, **where))
                rows.append(row(method, "all", "ks_mean", value / 10, fold="std", **where))
        return LabelledResults(rows)

    def test_by_method(self, results):
        lines = by_method(results, ["oracle", "baseline", "fsn", "faircal"])
        assert list(lines) == ["Baseline", "FSN", "FairCal"]
        figure = Robustness(results, "f", "sex", "ks_mean", lines)
        found = {
            (row["line"], row["clusters"]): (row["value"], row["std"])
            for row in figure.table.to_pylist()
        }
        assert found["FSN", 100] == (0.03, 0.003)
        assert found["FairCal", 20] == (0.015, 0.0015)
        # What has no clusters is the same at every K.
        assert [found["Baseline", k] for k in (5, 20, 100)] == [(0.05, 0.005)] * 3

    def test_by_calibrator(self, results):
        lines = by_calibrator(results, "faircal", ["isotonic", "beta", "spline"])
        assert list(lines) == ["isotonic", "beta"]
        figure = Robustness(results, "f", "sex", "ks_mean", lines)
        assert figure.table["clusters"].to_pylist() == [5, 100, 5, 20, 100]
        assert "isotonic 2.5 % at K = 5, 2 % at K = 100" in figure.words

    def test_equal_spacing_markers_and_bars(self, results):
        lines = by_calibrator(results, "faircal")
        ax = Robustness(results, "f", "sex", "ks_mean", lines).plot()
        (beta, *_), (isotonic, *_) = ax.containers
        assert list(beta.get_xdata()) == [0, 1, 2]
        assert list(beta.get_ydata()) == [0.02, 0.015, 0.01]
        assert list(isotonic.get_xdata()) == [0, 2]
        assert beta.get_marker() == "o"
        assert [tick.get_text() for tick in ax.get_xticklabels()] == ["5", "20", "100"]
        first = ax.collections[0].get_segments()[0]
        assert first[:, 1] == pytest.approx((0.018, 0.022))

    def test_one_number_of_clusters(self):
        results = LabelledResults(
            [
                row("fsn", "global", "auroc", 0.9, clusters="7"),
                row("fsn", "global", "auroc", 0.1, clusters="7", fold="std"),
            ]
        )
        figure = Robustness(results, "f", "sex", "auroc", by_calibrator(results, "fsn"))
        ax = figure.plot()
        assert figure.table.to_pylist() == [
            {"line": "beta", "clusters": 7, "value": 0.9, "std": 0.1}
        ]
        (bar,) = ax.collections[0].get_segments()
        assert bar[:, 1] == pytest.approx((0.8, 1.0))

    def test_nothing_run(self, results):
        figure = Robustness(results, "other", "sex", "ks_mean", by_method(results, ["fsn"]))
        assert figure.empty
        figure.plot().figure.draw_without_rendering()


class TestGroupRates:
    rows = (
        row("baseline", "global", "fpr", 0.012, under="global_fpr=0.01"),
        row("baseline", "F", "fpr", 0.02, under="global_fpr=0.01"),
        row("baseline", "M", "fpr", 0.004, under="global_fpr=0.01"),
        row("baseline", "F", "fpr", 0.003, under="global_fpr=0.01", fold="std"),
        row("fsn", "F", "fpr", 0.015, under="global_fpr=0.01", clusters="9"),
        row("fsn", "M", "fpr", math.nan, under="global_fpr=0.01", clusters="9"),
    )

    def figure(self, **more):
        return GroupRateDots(
            LabelledResults(self.rows), "f", "sex", "fpr", "global_fpr=0.01", **more
        )

    def test_the_table_holds_values_and_spreads(self):
        rows = self.figure().table.to_pylist()
        assert [(r["method"], r["group"], r["value"]) for r in rows] == [
            ("Baseline", "F", 0.02),
            ("Baseline", "M", 0.004),
            ("FSN", "F", 0.015),
        ]
        assert (rows[0]["low"], rows[0]["high"]) == pytest.approx((0.017, 0.023))
        assert math.isnan(rows[1]["low"])

    def test_intervals_are_bars(self):
        sure = [row._replace(low=0.01, high=0.05, level=0.95) for row in self.rows]
        store = ResultsFolder(Path(), LabelledResults(sure), {}, Curves([]), [], [])
        chosen = [Variant("baseline", "beta", "")]
        at = ("f", "sex", "fpr", "global_fpr=0.01")
        figure = GroupRateDots(store.results, *at, variants=chosen)
        assert figure.table.to_pylist()[0]["low"] == 0.01
        assert figure.table.to_pylist()[0]["high"] == 0.05
        assert "95 % intervals" in figure.caption
        (bar, *_) = figure.plot().collections[0].get_segments()
        assert bar[:, 0].tolist() == [0.01, 0.05]

    def test_marks_and_the_global_rate(self):
        ax = self.figure().plot()
        dots = {line.get_label(): line for line in ax.lines}
        assert list(dots["Baseline"].get_xdata()) == [0.02, 0.004]
        assert dots["Baseline"].get_marker() != dots["FSN"].get_marker()
        assert [line for line in ax.lines if list(line.get_xdata()) == [0.01, 0.01]]
        assert [tick.get_text() for tick in ax.get_yticklabels()] == ["F", "M"]
        assert ax.yaxis_inverted()

    def test_words_and_title(self):
        figure = self.figure()
        assert figure.title == "FPR by group at 1 % global FPR"
        assert figure.words.endswith("Baseline: F 2 %, M 0.4 %; FSN: F 1.5 %.")

    def test_a_given_threshold_marks_what_was_measured(self):
        rows = [row("", group, "fpr", value) for group, value in (("global", 0.1), ("F", 0.2))]
        figure = GroupRateDots(LabelledResults(rows), "f", "sex")
        assert figure.mark == 0.1
        assert "all pairs, 10 %" in figure.caption
        assert figure.table["method"].to_pylist() == ["scores"]

    def test_variants_of_one_method_are_told_apart(self):
        rows = [row("fsn", "F", "ks", 0.1, clusters=k) for k in ("5", "9")]
        figure = GroupRateDots(LabelledResults(rows), "f", "sex", "ks")
        assert figure.table["method"].to_pylist() == ["FSN, K = 5", "FSN, K = 9"]
        assert math.isnan(figure.mark)


def cluster_row(cluster, group, quantity, value, fold="5"):
    attribute = "" if group == "all" else "sex"
    return ClusterRow("f", "fsn", "", "4", fold, attribute, cluster, group, quantity, value)


#: Cluster 0 is all F, 1 mostly M, 2 empty, 3 nobody's group known; another fold besides.
CLUSTERS = [
    cluster_row("0", "all", "shift", 0.2),
    cluster_row("1", "all", "shift", -0.1),
    cluster_row("2", "all", "shift", 0.0),
    cluster_row("3", "all", "shift", math.nan),
    *(cluster_row(str(k), "all", "images", n) for k, n in enumerate((10, 8, 0, 3))),
    *(cluster_row(str(k), "F", "images", n) for k, n in enumerate((10, 2, 0, 0))),
    *(cluster_row(str(k), "M", "images", n) for k, n in enumerate((0, 6, 0, 0))),
    cluster_row("0", "all", "shift", 0.9, fold="4"),
]


def clusters_of(rows):
    return read_clusters(rows, "fsn", "f", "sex", "5"), "fsn", "5"


class TestClusters:
    def test_shifts_ascend_with_their_main_group(self):
        figure = ClusterShift(*clusters_of(CLUSTERS))
        assert figure.table.to_pylist() == [
            {"cluster": "1", "shift": -0.1, "group": "M", "share": 0.75, "images": 8},
            {"cluster": "2", "shift": 0.0, "group": "no group known", "share": 0.0, "images": 0},
            {"cluster": "0", "shift": 0.2, "group": "F", "share": 1.0, "images": 10},
        ]
        assert "1 without a known shift" in figure.caption
        assert "F +0.200 (1 clusters), M -0.100 (1 clusters)" in figure.words

    def test_shifts_are_drawn_by_group(self):
        ax = ClusterShift(*clusters_of(CLUSTERS)).plot()
        drawn = {line.get_label(): line for line in ax.lines}
        assert (list(drawn["M"].get_xdata()), list(drawn["M"].get_ydata())) == ([1], [-0.1])
        assert (list(drawn["F"].get_xdata()), list(drawn["F"].get_ydata())) == ([3], [0.2])
        assert drawn["F"].get_marker() != drawn["M"].get_marker()

    def test_no_groups_and_no_rows(self):
        bare = [row for row in CLUSTERS if row.group == "all"]
        ClusterShift(*clusters_of(bare)).plot().figure.draw_without_rendering()
        nothing = ClusterShift([], "fsn")
        assert nothing.empty
        assert nothing.words
        nothing.plot().figure.draw_without_rendering()


class TestMontage:
    @pytest.fixture
    def pictures(self, tmp_path):
        from PIL import Image

        for i in range(7):
            colour = (30 * i, 0, 0)
            Image.new("RGB", (60, 90 + i), colour).save(tmp_path / f"{i}.png")
        (tmp_path / "bad.png").write_bytes(b"no picture")
        return tmp_path

    def test_pictures_stand_in_a_grid_in_order(self, pictures):
        ax = Montage([pictures / f"{i}.png" for i in range(7)]).plot()
        (image,) = ax.images
        pixels = np.asarray(image.get_array())
        assert pixels.shape == (3 * 84 - 4, 3 * 84 - 4, 3)
        reds = [pixels[84 * (i // 3) + 40, 84 * (i % 3) + 40, 0] for i in range(7)]
        assert reds == [30 * i for i in range(7)]
        assert (pixels[84 * 2 + 40, 84 + 40] == 255).all()  # an empty place

    def test_what_cannot_be_read_is_counted(self, pictures):
        files = [pictures / "0.png", pictures / "bad.png", None, pictures / "none.png"]
        figure = Montage(files)
        assert figure.table["image_id"].to_pylist() == ["0.png"]
        assert "3 could not be read" in figure.caption

    def test_members_are_the_table(self, pictures):
        members = [
            Member("f", "fsn", "", "4", "5", "12", image, 0.1 * i)
            for i, image in enumerate(["a", "gone", "b"])
        ]
        files = {"a": pictures / "1.png", "b": pictures / "2.png"}
        figure = Montage([files.get(member.image_id) for member in members], members)
        assert figure.title == "Cluster 12"
        assert figure.table.to_pylist() == [
            {"cluster": "12", "image_id": "a", "distance": 0.0},
            {"cluster": "12", "image_id": "b", "distance": 0.2},
        ]
        assert "2 faces of one cluster" in figure.words

    def test_25_at_most(self, pictures):
        figure = Montage([None, *[pictures / "1.png"] * 30])
        assert len(figure.table) == 25
        assert figure.caption == "25 pictures. 1 could not be read and are left out."

    def test_none_at_all(self):
        figure = Montage([])
        assert figure.empty
        assert svg(figure).startswith("<svg")
