"""Moving to another population: who is tested, what is labelled, what is compared, what is told."""

from __future__ import annotations

import json
import math
from itertools import pairwise

import numpy as np
import pytest

import faircal
from faircal._base.errors import DataError, ParameterError
from faircal.data.types import people_of
from faircal.evaluation.benchmark import BenchmarkSettings, move, run_benchmark
from faircal.evaluation.benchmark.cell import rankings_of
from faircal.evaluation.benchmark.populations import (
    count_people,
    draw_labelled,
    label_counts,
    shared_features,
)
from faircal.evaluation.benchmark.transfer import (
    LabellingCurve,
    LabellingPoint,
    MovedRow,
    labelling_curves,
    read_moved,
    recalibration,
)
from faircal.metrics import ks
from faircal.metrics.results import read_results

SETTINGS = BenchmarkSettings(
    methods=("baseline", "faircal"), clusters=(40,), attributes=("ethnicity",)
)
LABELS = (30, 200, 900)
SIZE = {"people": 80, "images": 400, "pairs": 1500, "dimension": 16}


@pytest.fixture(scope="module")
def here(in_folds):
    return in_folds(faircal.simulate("small", seed=0, **SIZE), 3)


@pytest.fixture(scope="module")
def there(in_folds):
    return in_folds(faircal.simulate("small", seed=1, **SIZE), 3)


@pytest.fixture(scope="module")
def moved(here, there, tmp_path_factory):
    folder = tmp_path_factory.mktemp("moved")
    target, moving = move(here, there, (0, *LABELS))
    run_benchmark(target, folder, SETTINGS, jobs=1, moving=moving)
    return folder


def value(rows, **wanted):
    (row,) = [row for row in rows if all(getattr(row, k) == v for k, v in wanted.items())]
    return row


class TestLabelledPairs:
    def test_more_hold_fewer_with_the_share_of_genuine_pairs_of_the_pool(self, there):
        pool, _ = there.split(test_fold=1)
        drawn = draw_labelled(pool, LABELS, seed=3)
        assert [len(rows) for rows in drawn] == list(LABELS)
        for fewer, more in pairwise(drawn):
            assert set(fewer) < set(more)
        for rows in drawn:
            share = pool.genuine.mean()
            assert abs(pool.genuine[rows].sum() - share * len(rows)) <= 0.5

    def test_few_pairs_are_of_few_people(self, there):
        pool, _ = there.split(test_fold=1)
        few, many = draw_labelled(pool, (30, 900), seed=3)
        people, _ = people_of(pool.pairs, pool.images)
        own = people[np.concatenate([pool.pairs.left[few], pool.pairs.right[few]])]
        assert count_people(pool, few) == len(set(own.tolist()))
        # Pairs drawn one by one would show nearly everybody.
        assert count_people(pool, few) < 25 < count_people(pool, many)

    def test_another_seed_draws_others_and_the_same_seed_the_same(self, there):
        pool, _ = there.split(test_fold=1)
        (one,), (same,), (other,) = (draw_labelled(pool, (200,), seed=s) for s in (0, 0, 1))
        assert np.array_equal(one, same)
        assert not np.array_equal(one, other)

    def test_the_whole_pool_can_be_drawn(self, there):
        pool, _ = there.split(test_fold=1)
        (rows,) = draw_labelled(pool, (len(pool),), seed=0)
        assert np.array_equal(rows, np.arange(len(pool)))

    @pytest.mark.parametrize(
        ("wanted", "says"), [((5,), "found 5"), ((2000,), "10 to 1200"), ((0,), "above 0")]
    )
    def test_numbers_that_cannot_be(self, wanted, says):
        with pytest.raises(ParameterError, match=says):
            label_counts(1200, wanted)

    def test_a_step_near_the_whole_is_left_out(self):
        assert label_counts(1050) == (100, 300, 1050)


class TestPeople:
    @pytest.fixture
    def data(self):
        """Return a function that makes a dataset of people with given names."""
        rng = np.random.default_rng(0)

        def make(names, **more):
            left = np.arange(0, 2 * len(names) - 2, 2)
            pairs = {
                "left": np.concatenate([left, left]),
                "right": np.concatenate([left + 1, left + 2]),
                "genuine": np.repeat([1, 0], len(left)),
                "fold": np.tile(np.arange(len(left)) % 2, 2),
            }
            return faircal.Dataset(
                embeddings=rng.normal(size=(2 * len(names), 3)),
                pairs=pairs,
                attributes={"identity": np.repeat(names, 2)} | more,
            )

        return make

    def test_pairs_of_people_who_are_in_both_are_dropped(self, data):
        source, target = data(list("abcde")), data(list("dvwxyz"))
        kept, moving = move(source, target)
        # d has one genuine pair, and one with v.
        assert len(kept) == len(target) - 2
        assert "1 people of" in moving.notes[0]
        assert "2 of 10 pairs are dropped" in moving.notes[0]
        assert "--people-apart" in moving.notes[0]

    def test_unless_names_say_nothing(self, data):
        source, target = data(list("abcde")), data(list("dvwxyz"))
        kept, moving = move(source, target, people_apart=True)
        assert len(kept) == len(target)
        assert moving.notes == ()

    def test_an_unknown_person_is_nobody_else(self, data):
        source, target = data(["a", "b", "", "c"]), data(["", "w", "x", "y"])
        assert len(move(source, target)[0]) == len(target)

    def test_nothing_left(self, data):
        with pytest.raises(DataError, match=r"0 pairs are left.*--people-apart"):
            move(data(list("abcde")), data(list("abcde")))

    def test_simulations_share_numbers_not_people(self, here, there):
        assert set(here.images.identity.names) & set(there.images.identity.names)
        kept, moving = move(here, there)
        assert len(kept) == len(there)
        assert moving.notes == ()

    def test_the_same_data_twice(self, here):
        with pytest.raises(DataError, match="the same data twice"):
            move(here, here)

    def test_who_is_who_is_not_known(self, data, here):
        target = data(list("abc"))
        nameless = faircal.Dataset(
            embeddings=target.embeddings.vectors,
            pairs={"left": [0, 0], "right": [1, 2], "genuine": [1, 0], "fold": [1, 2]},
        )
        assert "can't be told" in move(target, nameless)[1].notes[0]


class TestAlike:
    def test_no_feature_of_the_same_name(self, here, there):
        renamed = faircal.Dataset(
            embeddings={"arc": there.embeddings.vectors},
            pairs={"left": [0], "right": [1], "genuine": [1], "fold": [1]},
        )
        with pytest.raises(DataError, match="found embedding and arc; rename"):
            shared_features(here, renamed)

    def test_vectors_of_other_length(self, here):
        wide = faircal.simulate("small", seed=1, **{**SIZE, "dimension": 20})
        with pytest.raises(DataError, match="16 and 20 numbers"):
            shared_features(here, wide)

    def test_groups_that_the_source_lacks_leave_methods_out(
        self, here, there, with_attributes, tmp_path
    ):
        plain = with_attributes(here)
        settings = BenchmarkSettings(methods=("oracle",), attributes=("ethnicity",))
        with pytest.raises(DataError, match=r"oracle cannot run.*no column 'ethnicity'"):
            run_benchmark(there, tmp_path, settings, moving=move(plain, there)[1])
        assert not list(tmp_path.iterdir())

    def test_clusters_are_of_the_source(self, here, there, tmp_path):
        settings = BenchmarkSettings(methods=("faircal",), clusters=(401,))
        with pytest.raises(ParameterError, match="in all there are 400 images for 401 clusters"):
            run_benchmark(there, tmp_path, settings, moving=move(here, there)[1])


class TestRun:
    def test_results_are_those_of_the_source_s_model_on_each_fold(self, here, there, moved):
        _, test = there.split(test_fold=2)
        model = faircal.FairCal(n_clusters=40).fit(here)
        where = {"method": "faircal", "fold": "2", "group": "global", "metric": "ks"}
        expected = ks(model.predict_proba(test), test.genuine)
        assert value(read_results(moved), **where).value == expected
        row = value(read_moved(moved), **where, strategy="as-is")
        assert (row.value, row.labels, row.people) == (expected, "0", "0")

    def test_recalibrated_and_fresh_are_fitted_on_the_labelled_pairs(self, here, there, moved):
        pool, test = there.split(test_fold=2)
        rows = draw_labelled(pool, LABELS, seed=1)[1]  # the second fold
        where = {"method": "baseline", "fold": "2", "group": "global", "metric": "ks"}
        where |= {"labels": "200"}
        model = faircal.Baseline().fit(here)
        again = recalibration(model.predict_proba(pool)[rows], pool.genuine[rows])
        row = value(read_moved(moved), **where, strategy="recalibrated")
        assert row.value == ks(again(model.predict_proba(test)), test.genuine)
        assert int(row.people) == count_people(pool, rows)
        fresh = faircal.Baseline().fit(pool.subset(rows)).predict_proba(test)
        assert value(read_moved(moved), **where, strategy="fresh").value == ks(fresh, test.genuine)

    def test_what_so_few_pairs_cannot_fit_is_left_out_and_said(self, moved):
        rows = [row for row in read_moved(moved) if row.method == "faircal"]
        assert {row.labels for row in rows if row.strategy == "fresh"} == {"200", "900"}
        fits = json.loads((moved / "run.json").read_text())["fits"]
        said = [note for fit in fits if fit["method"] == "faircal" for note in fit["notes"]]
        assert any("not fitted on 30 labelled pairs alone" in note for note in said)

    def test_the_record_names_both_populations(self, here, moved):
        run = json.loads((moved / "run.json").read_text())
        assert run["moving"]["data_sha256"] == here.hash() != run["data_sha256"]
        assert run["moving"]["labels"] == list(LABELS)
        assert any("fitted on all 1500 pairs" in note for note in run["notes"])

    def test_the_same_bytes_when_it_is_resumed_with_two_jobs(self, here, there, moved, tmp_path):
        target, moving = move(here, there, LABELS)

        def interrupt(what, done, total, label):
            if what == "benchmark" and done >= 3:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            run_benchmark(target, tmp_path, SETTINGS, jobs=1, moving=moving, progress=interrupt)
        assert not (tmp_path / "moving.csv").exists()
        run_benchmark(target, tmp_path, SETTINGS, jobs=2, moving=moving, resume=True)
        for name in ("results.csv", "moving.csv"):
            assert (tmp_path / name).read_bytes() == (moved / name).read_bytes()

    def test_other_labels_or_another_source_are_another_run(self, here, there, tmp_path):
        settings = BenchmarkSettings(methods=("baseline",))
        run_benchmark(there, tmp_path, settings, jobs=1, moving=move(here, there, LABELS)[1])
        for other in (move(here, there, (30,))[1], move(here.split(1)[0], there, LABELS)[1]):
            with pytest.raises(ParameterError, match="differ"):
                run_benchmark(there, tmp_path, settings, jobs=1, moving=other, resume=True)
        run_benchmark(there, tmp_path, settings, jobs=1)
        assert not (tmp_path / "moving.csv").exists()

    @pytest.mark.parametrize("threshold_on", ["test", "calibration"])
    def test_labelled_pairs_are_ranked_where_they_set_thresholds(
        self, here, there, tmp_path, monkeypatch, threshold_on
    ):
        sizes = set()

        def counting(output, part, attribute):
            sizes.add(len(part))
            return rankings_of(output, part, attribute)

        monkeypatch.setattr("faircal.evaluation.benchmark.transfer.rankings_of", counting)
        settings = BenchmarkSettings(
            methods=("baseline",), threshold_on=threshold_on, rates=(0.01,)
        )
        run_benchmark(there, tmp_path, settings, jobs=1, moving=move(here, there, (30,))[1])
        assert (30 in sizes) == (threshold_on == "calibration")
        assert sizes - {30}

    def test_thresholds_of_calibration_pairs_are_those_of_the_source(self, here, there, tmp_path):
        settings = BenchmarkSettings(
            methods=("baseline",), threshold_on="calibration", rates=(0.01,)
        )
        run_benchmark(there, tmp_path, settings, jobs=1, moving=move(here, there, LABELS)[1])
        where = {"metric": "threshold", "condition": "global_fpr=0.01", "fold": "1"}
        rows = read_moved(tmp_path)
        own = faircal.metrics.threshold_at_fpr(
            faircal.metrics.Ranking.of(here.scores, here.genuine), [0.01]
        )
        assert value(rows, **where, strategy="as-is").value == own[0]
        assert value(rows, **where, strategy="fresh", labels="900").value != own[0]


class TestRestoring:
    def curve(self, **by_labels):
        points = {
            int(n[1:]): LabellingPoint(math.nan, dict(zip("123", v, strict=True)))
            for n, v in by_labels.items()
        }
        return LabellingCurve("f", "m", "", "", "", "recalibrated", points)

    def test_enough_is_where_the_folds_no_longer_tell_a_difference(self):
        curve = self.curve(
            n0=(0.2, 0.2, 0.22), n100=(0.05, 0.06, 0.05), n300=(0.03, 0.02, 0.03), n900=(0.02,) * 3
        )
        # 300: differences 0.01, 0, 0.01 are 0.0067 ± 0.0033, within two errors; 100: 0.033 ± 0.003.
        assert curve.labels_needed == 300
        assert curve.gains

    def test_fewer_that_happen_to_be_good_do_not_count_where_more_are_worse(self):
        curve = self.curve(n0=(0.01,) * 3, n100=(0.05, 0.06, 0.05), n900=(0.01, 0.012, 0.008))
        assert curve.as_good == 900
        assert not curve.gains
        assert curve.labels_needed == 0

    def test_undefined_folds_are_passed_over(self):
        curve = self.curve(n0=(0.2, 0.21, math.nan), n900=(0.1, 0.12, 0.1))
        assert curve.points[0].mean == pytest.approx(0.205)
        assert curve.labels_needed == 900

    def test_curves_of_rows_begin_with_the_model_as_it_is(self):
        front = ("f", "m", "beta", "", "a")
        rows = [
            MovedRow(*front, strategy, labels, people, fold, "all", "", "ks_mean", value)
            for strategy, labels, people, fold, value in (
                ("recalibrated", "100", "7", "1", 0.1),
                ("recalibrated", "100", "9", "2", 0.3),
                ("as-is", "0", "0", "1", 0.5),
                ("fresh", "100", "", "1", 0.4),
            )
        ]
        rows.append(rows[0]._replace(metric="ks"))
        again, fresh = labelling_curves(rows, "ks_mean", "all")
        assert list(again.points) == [0, 100]
        assert again.points[100].mean == pytest.approx(0.2)
        assert again.points[100].error == pytest.approx(0.1)
        assert again.points[100].people == 8
        assert fresh.strategy == "fresh"
        assert math.isnan(fresh.points[100].people)
