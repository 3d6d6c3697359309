"""What a benchmark keeps for figures: curves, clusters, members; and sweeps of single methods."""

from __future__ import annotations

import numpy as np
import pytest

import faircal
from faircal import DataError, ParameterError
from faircal.compute.engine import CPU
from faircal.evaluation.benchmark import (
    EXPERIMENTS,
    BenchmarkSettings,
    Sweep,
    paper_settings,
    run_benchmark,
)
from faircal.evaluation.benchmark.settings import make_plan
from faircal.evaluation.curves import CURVES, ScoreSource, read_curves
from faircal.metrics import Ranking, rates_at_threshold
from faircal.metrics.results import (
    CLUSTERS,
    MEMBERS,
    ClusterRow,
    Member,
    read_results,
    read_rows,
    read_run,
)

BOTH = "ethnicity+gender"
SETTINGS = BenchmarkSettings(
    methods=("baseline", "fsn", "faircal", "oracle"),
    clusters=(4,),
    sweeps={"faircal": Sweep(("beta", "isotonic"), (2, 4))},
    also_by=("ethnicity",),
    members=3,
)


@pytest.fixture(scope="module")
def data():
    return faircal.simulate("small", seed=2, people=80, images=400, pairs=1500, dimension=16)


@pytest.fixture(scope="module")
def folder(data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("kept")
    run_benchmark(data, folder, SETTINGS, jobs=1)
    return folder


@pytest.fixture(scope="module")
def curves(folder):
    return read_curves(folder)


@pytest.fixture(scope="module")
def models(data):
    """FairCal of each fold, with its test pairs."""
    parts = {fold: data.split(fold) for fold in data.fold_names}
    return {
        str(fold): (faircal.FairCal(n_clusters=4).fit(cal), cal, test)
        for fold, (cal, test) in parts.items()
    }


class TestSweeps:
    def test_a_method_runs_with_its_own_lists_and_others_with_those_of_all(self, folder):
        rows = read_results(folder)
        found = {(row.method, row.calibrator, row.clusters) for row in rows}
        assert found == {
            ("baseline", "beta", ""),
            ("oracle", "beta", ""),
            ("fsn", "beta", "4"),
            *(("faircal", calibrator, k) for calibrator in ("beta", "isotonic") for k in "24"),
        }

    def test_what_is_wrong_in_a_sweep_is_said_at_once(self, data):
        for sweeps, match in (
            ({"fairkal": Sweep(("beta",), (4,))}, "fairkal"),
            ({"faircal": Sweep(("bet",), (4,))}, "bet"),
            ({"faircal": Sweep(("beta",), (0,))}, "clusters: expected 1 or more"),
            ({"faircal": Sweep(("histogram:bins=3",), (4,))}, "n_bins"),
        ):
            with pytest.raises(ParameterError, match=match):
                make_plan(data, BenchmarkSettings(clusters=(4,), sweeps=sweeps))

    def test_more_clusters_than_images_in_a_sweep(self, data):
        settings = BenchmarkSettings(clusters=(4,), sweeps={"fsn": Sweep(("beta",), (4, 4000))})
        with pytest.raises(ParameterError, match="4000 clusters"):
            make_plan(data, settings)


class TestCurves:
    def test_of_the_main_variant_of_each_method(self, curves):
        assert [(s.method, s.calibrator, s.clusters, s.attribute) for s in curves.sources] == [
            (method, "beta", k, attribute)
            for method, k in (("baseline", ""), ("fsn", "4"), ("faircal", "4"), ("oracle", ""))
            for attribute in (BOTH, "ethnicity")
        ]
        assert curves.folds == list("12345")

    def test_counts_are_those_of_the_method_on_its_test_fold(self, curves, models):
        for fold, (model, _, test) in models.items():
            p, groups = model.predict_proba(test), test.groups(BOTH)
            source = ScoreSource("embedding", "faircal", "beta", "4", fold, BOTH)
            assert curves.groups(source) == list(groups.names)
            for code, name in enumerate(groups.names):
                rows = groups.pair == code
                found = curves.get(name, "probability", source, fold)
                counted = rates_at_threshold(Ranking.of(p[rows], test.genuine[rows]), found.edges)
                np.testing.assert_array_equal(found.fpr, counted.fpr)
                np.testing.assert_array_equal(found.fnr, counted.fnr)

    def test_by_another_attribute_the_same_scores_are_counted(self, curves, models):
        source = ScoreSource("embedding", "faircal", "beta", "4", "", "ethnicity")
        model, _, test = models["3"]
        groups = test.groups("ethnicity")
        rows = groups.pair == 1
        found = curves.get(groups.names[1], "probability", source, "3")
        counted = rates_at_threshold(
            Ranking.of(model.predict_proba(test)[rows], test.genuine[rows]), found.edges
        )
        np.testing.assert_array_equal(found.fnr, counted.fnr)

    def test_the_default_is_main_wherever_it_stands_in_the_lists(self):
        swept = BenchmarkSettings(clusters=(5, 100, 500), calibrators=("isotonic", "beta"))
        assert (swept.main_clusters, swept.main_calibrator) == (100, "beta")
        other = BenchmarkSettings(clusters=(7, 5), calibrators=("isotonic", "platt"))
        assert (other.main_clusters, other.main_calibrator) == (7, "isotonic")


class TestClusters:
    def test_sizes_and_shifts_are_the_models(self, folder, models):
        rows = [row for row in read_rows(folder / CLUSTERS, ClusterRow) if row.method == "faircal"]
        for fold, (model, _, _) in models.items():
            for quantity, expected in (
                ("pairs", model.cluster_sizes_),
                ("shift", model.cluster_shifts_),
            ):
                values = [r.value for r in rows if (r.fold, r.quantity) == (fold, quantity)]
                np.testing.assert_array_equal(values, expected)

    def test_the_shift_is_where_the_maps_say_one_half(self, models):
        model, _, _ = models["1"]
        overall = model.calibrators_.fallback
        scores = np.linspace(-1, 1, 200_001)
        even = scores[np.argmax(overall.predict(scores) >= 0.5)]
        for fitted, shift in zip(model.calibrators_.maps, model.cluster_shifts_, strict=True):
            at = scores[np.argmax(fitted.predict(scores) >= 0.5)]
            assert shift == pytest.approx(at - even, abs=6e-4)

    def test_fsn_gives_its_own_shifts(self, data, folder):
        model = faircal.FSN(n_clusters=4).fit(data.split(2)[0])
        values = [
            row.value
            for row in read_rows(folder / CLUSTERS, ClusterRow)
            if (row.method, row.fold, row.quantity) == ("fsn", "2", "shift")
        ]
        np.testing.assert_array_equal(values, model.shifts_)

    def test_images_are_counted_once_by_cluster_and_group(self, data, folder, models):
        model, cal, test = models["5"]
        used = np.union1d(cal.used_images(), test.used_images())
        labels = CPU.assign(data.embeddings.rows(used), model.clustering_.centers)
        column = data.image_groups(BOTH)
        rows = [
            row
            for row in read_rows(folder / CLUSTERS, ClusterRow)
            if (row.method, row.fold, row.quantity) == ("faircal", "5", "images")
        ]
        by = {(row.attribute, row.cluster, row.group): row.value for row in rows}
        for k in range(4):
            assert by["", str(k), "all"] == (labels == k).sum()
            for code, name in enumerate(column.names):
                expected = ((labels == k) & (column.codes[used] == code)).sum()
                assert by[BOTH, str(k), name] == expected

    def test_members_are_the_images_nearest_to_the_centre(self, data, folder, models):
        model, cal, test = models["5"]
        used = np.union1d(cal.used_images(), test.used_images())
        vectors = data.embeddings.rows(used).astype(np.float64)
        centres = model.cluster_centers_.astype(np.float64)
        away = np.linalg.norm(vectors[:, None] - centres, axis=2)
        for k in range(4):
            listed = [
                row
                for row in read_rows(folder / MEMBERS, Member)
                if (row.method, row.fold, row.cluster) == ("faircal", "5", str(k))
            ]
            mine = np.flatnonzero(away.argmin(axis=1) == k)
            nearest = mine[np.argsort(away[mine, k])][:3]
            assert [row.image_id for row in listed] == [
                str(data.images.ids[used[i]]) for i in nearest
            ]
            assert [row.distance for row in listed] == pytest.approx(away[nearest, k], rel=1e-4)

    def test_without_members_no_image_is_named(self, data, folder, tmp_path):
        (tmp_path / MEMBERS).write_text("left by an earlier run")
        run_benchmark(
            data, tmp_path, BenchmarkSettings(methods=("faircal",), clusters=(4,)), jobs=1
        )
        assert read_rows(tmp_path / MEMBERS, Member) == []
        assert not (tmp_path / MEMBERS).exists()


class TestResume:
    def test_a_cell_that_becomes_main_is_run_again_for_its_curves(self, data, tmp_path):
        methods = ("faircal",)
        for clusters, main in (((3, 4), "4"), ((3,), "3")):
            settings = BenchmarkSettings(methods=methods, clusters=clusters)
            run_benchmark(data, tmp_path, settings, jobs=1, resume=main == "3")
            assert {s.clusters for s in read_curves(tmp_path).sources} == {main}

    def test_resumed_and_whole_runs_keep_the_same(self, data, folder, tmp_path):
        done = []

        def stop(what, *rest):
            done.append(what)
            if len(done) > 12:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            run_benchmark(data, tmp_path, SETTINGS, jobs=1, progress=stop)
        assert list(tmp_path.glob("parts/*/*.parquet"))
        run_benchmark(data, tmp_path, SETTINGS, jobs=2, resume=True)
        for name in ("results.csv", "clusters.csv", "members.csv", CURVES):
            assert (tmp_path / name).read_bytes() == (folder / name).read_bytes(), name


class TestExperiments:
    def test_bfw_takes_two_attributes_multipass_and_25_bins(self, data):
        settings, left_out = paper_settings(data, EXPERIMENTS["bfw"], clusters=(1, 4))
        assert settings.attributes == (BOTH,)
        assert settings.also_by == ("ethnicity",)
        assert settings.sweeps["faircal"].calibrators == (
            "beta",
            "histogram:n_bins=25",
            "isotonic",
        )
        assert settings.sweeps["fsn"] == Sweep(("beta",), (1, 4))
        assert "baseline" not in settings.sweeps
        assert (settings.calibrators, settings.clusters) == (("beta",), (4,))
        assert "multipass" in settings.methods
        assert "pass" not in settings.methods
        assert left_out == {}

    def test_rfw_takes_ethnicity_and_the_papers_clusters(self, data):
        settings, _ = paper_settings(data, EXPERIMENTS["rfw"], n_init=10)
        assert settings.attributes == ("ethnicity",)
        assert settings.also_by == ()
        assert settings.sweeps["faircal"].clusters == (
            1,
            5,
            10,
            15,
            20,
            25,
            50,
            75,
            100,
            150,
            250,
            500,
        )
        assert (settings.main_clusters, settings.n_init) == (100, 10)

    def test_without_training_what_is_left_out_is_said(self, data):
        settings, left_out = paper_settings(data, EXPERIMENTS["rfw"], training=False)
        assert settings.methods == ("baseline", "gst", "fsn", "faircal", "oracle")
        assert left_out == dict.fromkeys(("agenda", "pass", "ftc"), "it trains a network")

    def test_methods_by_name_are_taken_as_they_are(self, data):
        settings, left_out = paper_settings(data, EXPERIMENTS["rfw"], methods=("faircal", "oracle"))
        assert settings.methods == ("faircal", "oracle")
        assert left_out == {}

    def test_without_groups_there_is_no_experiment(self):
        data = faircal.Dataset(
            embeddings=np.eye(4), pairs={"left": [0, 1], "right": [2, 3], "genuine": [1, 0]}
        )
        with pytest.raises(DataError, match="compares groups"):
            paper_settings(data, EXPERIMENTS["rfw"])

    def test_the_record_says_what_it_is_told_besides(self, data, tmp_path):
        settings = BenchmarkSettings(methods=("baseline",))
        run_benchmark(data, tmp_path, settings, jobs=1, more={"kind": "reproduce", "paper": "rfw"})
        run = read_run(tmp_path)
        assert (run["kind"], run["paper"], run["pairs"]) == ("reproduce", "rfw", 1500)
