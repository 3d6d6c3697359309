"""Choosing K and the calibrator: people are held out, regions count alike, fewer clusters win."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest

import faircal
from faircal._base.errors import DataError, ParameterError
from faircal.compute import Engine
from faircal.data import Images
from faircal.data.folds import draw_folds
from faircal.evaluation.tuning import PairRegions, Trials, _moved, _notes
from faircal.evaluation.tuning.choice import TrialResult, decide

PLACES, PEOPLE = 4, 160
FOLDS, STARTS = 4, 2


def faces(shift, blocks=10):
    """Return pairs of people in four places far apart, whose scores lie `shift` higher in each.

    Imposters are of the same place, and of the same block of people.
    """
    rng = np.random.default_rng(0)
    person = np.repeat(np.arange(PEOPLE), 3)
    place = person % PLACES
    vectors = 5 * np.eye(PLACES)[place] + 0.1 * rng.normal(size=(len(person), PLACES))
    image = np.arange(len(person)).reshape(PEOPLE, 3)
    size = PEOPLE // blocks
    other = np.arange(PEOPLE) // size * size + (np.arange(PEOPLE) + PLACES) % size
    genuine = np.concatenate([image[:, [a, b]] for a, b in ((0, 1), (1, 2), (0, 2))])
    imposter = np.concatenate([np.column_stack([image[:, a], image[other, a]]) for a in range(3)])
    left, right = np.concatenate([genuine, imposter]).T
    same = np.repeat([1, 0], [len(genuine), len(imposter)])
    score = 0.2 * same + shift * (place[left] - 1.5) + 0.08 * rng.normal(size=len(left))
    return faircal.Dataset(
        embeddings=vectors.astype(np.float32),
        pairs={"left": left, "right": right, "genuine": same, "score": np.clip(score, -1, 1)},
        attributes={
            "image_id": np.arange(len(person)),
            "identity": [f"p{who}" for who in person],
            "group": [f"g{who % 2}" for who in person],
        },
    )


@pytest.fixture(scope="module")
def small():
    return faircal.simulate("small", seed=0, people=120, images=600, pairs=2400)


@pytest.fixture(scope="module")
def choice(small):
    return faircal.choose(small, clusters=(8, 2), starts=STARTS, n_folds=FOLDS)


def tried(*loss, spread=0.0):
    """Return a candidate with these losses by fold, and starts that far apart."""
    by_start = np.array(loss) + np.array([[-spread], [spread]])
    return TrialResult(by_start, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0)


class TestRule:
    #: Differences to the best of these: 0.1 ± 0.1 and 0.3 ± 0.1.
    BEST = tried(1.0, 2.0, 3.0)
    NEAR = tried(1.1, 2.0 + 0.1 - np.sqrt(3) / 10, 3.1 + np.sqrt(3) / 10)
    FAR = tried(1.3, 2.0 + 0.3 - np.sqrt(3) / 10, 3.3 + np.sqrt(3) / 10)
    PLAIN: ClassVar = {"beta": FAR, "isotonic": FAR}

    def test_differences_have_the_error_of_differences(self):
        near = decide({(5, "beta"): self.NEAR, (9, "beta"): self.BEST}, self.PLAIN, 1.0).table[0]
        assert near.worse == pytest.approx(0.1)
        assert near.worse_error == pytest.approx(0.1)  # sqrt(0.03) / sqrt(3)
        best = decide({(9, "beta"): self.BEST}, self.PLAIN, 1.0).table[0]
        assert best.standard_error == pytest.approx(1 / np.sqrt(3))

    @pytest.mark.parametrize(("few", "chosen"), [(0.99, 5), (1.01, 9)])
    def test_the_fewest_clusters_within_one_standard_error(self, few, chosen):
        # The mean grows by `few` times its error.
        other = tried(*(self.NEAR.by_fold - 0.1 + 0.1 * few))
        found = decide({(5, "beta"): other, (9, "beta"): self.BEST}, self.PLAIN, 1.0)
        assert found.n_clusters == chosen
        assert found.best.n_clusters == 9

    @pytest.mark.parametrize(("within", "chosen"), [(0, 9), (0.9, 9), (1.1, 5)])
    def test_how_near_is_near_enough(self, within, chosen):
        given = {(5, "beta"): self.NEAR, (9, "beta"): self.BEST}
        assert decide(given, self.PLAIN, within).n_clusters == chosen

    def test_hard_folds_do_not_blur_it(self):
        # 0.3 is far less than the standard error of the loss itself, 0.58.
        assert (
            decide({(5, "beta"): self.FAR, (9, "beta"): self.BEST}, self.PLAIN, 1.0).n_clusters == 9
        )

    def test_more_clusters_are_not_chosen_for_being_as_good(self):
        assert (
            decide({(5, "beta"): self.BEST, (9, "beta"): self.NEAR}, self.PLAIN, 1.0).n_clusters
            == 5
        )

    @pytest.mark.parametrize("names", [("beta", "isotonic"), ("isotonic", "beta")])
    def test_between_calibrators_the_loss_decides(self, names):
        found = decide({(5, names[0]): self.NEAR, (5, names[1]): self.BEST}, self.PLAIN, 1.0)
        assert (found.n_clusters, found.calibrator) == (5, names[1])
        assert found.chosen is found.best
        assert found.baseline.n_clusters == 1
        assert found.baseline.calibrator == names[1]

    def test_change_is_from_the_next_smaller_k_of_the_same_calibrator(self):
        given = {(9, "beta"): self.BEST, (3, "beta"): self.FAR, (5, "beta"): self.NEAR}
        given[7, "isotonic"] = self.FAR
        nine, three, five, seven = decide(given, self.PLAIN, 1.0).table
        assert nine.change == pytest.approx(-0.1)
        assert nine.change_error == pytest.approx(0.1)
        assert five.change == pytest.approx(-0.2)
        assert five.change_error == pytest.approx(0, abs=1e-12)
        assert np.isnan([three.change, seven.change]).all()

    def test_spread_between_starts(self):
        found = decide({(9, "beta"): tried(1.0, 2.0, 3.0, spread=0.5)}, self.PLAIN, 1.0)
        assert found.table[0].loss_spread == pytest.approx(np.sqrt(0.5))  # of −½ and ½
        assert found.table[0].loss == 2.0


class TestRegions:
    def test_each_counts_the_same(self):
        where = np.repeat([0, 1, 2], [1000, 300, 60])
        weight = PairRegions(3, where, where).weights(slice(None))
        np.testing.assert_allclose(np.bincount(where, weight), 1 / 3)

    def test_a_pair_of_two_belongs_half_to_each(self):
        left, right = np.repeat([0, 1], [300, 100]), np.repeat([0, 0], [300, 100])
        weight = PairRegions(2, left, right).weights(slice(None))
        # 350 in region 0, 50 in region 1.
        assert weight[-1] / weight[0] == pytest.approx((1 / 350 + 1 / 50) / (2 / 350))

    def test_one_with_few_pairs_counts_less(self):
        where = np.repeat([0, 1], [500, 5])
        weight = PairRegions(3, where, where).weights(slice(None))
        assert weight[500:].sum() == pytest.approx(0.1 / 1.1)

    def test_calibration_error_is_a_mean_over_them(self):
        where = np.repeat([0, 1, 2], [100, 60, 10])
        genuine = np.ones(170, dtype=bool)
        p = np.repeat([0.9, 0.7, 0.0], [100, 60, 10])  # the last has too few pairs
        assert PairRegions(3, where, where).ks(p, genuine) == pytest.approx((0.1 + 0.3) / 2)


def test_how_starts_differ():
    one, two = np.full(100, 0.4), np.full(100, 0.4)
    two[:10] += 0.2
    difference, most, agreement = _moved(one, two)
    assert difference == pytest.approx(0.02)
    assert most == pytest.approx(0.2)
    assert agreement == 0.9


class TestTrials:
    def test_people_are_held_out(self, small):
        trials = Trials.of(small, FOLDS, 0)
        assert len(trials.parts) == FOLDS
        code = small.images.identity.codes
        for part in trials.parts:
            people = [set(code[d.used_images()].tolist()) for d in (part.fitted, part.held)]
            assert people[0]
            assert people[1]
            assert not people[0] & people[1]
            assert (trials.genuine[part.place] == part.held.genuine).all()
        assert sum(len(part.held) for part in trials.parts) + trials.lost == len(small)

    def test_clusterings_are_shared_between_calibrators(self, small, monkeypatch):
        counts, kmeans = [], Engine.kmeans

        def counting(engine, vectors, n_clusters, **more):
            counts.append((n_clusters, more["random_state"]))
            return kmeans(engine, vectors, n_clusters, **more)

        monkeypatch.setattr(Engine, "kmeans", counting)
        names = ("beta", "platt", "isotonic")
        faircal.choose(small, (2, 8), names, starts=2, n_folds=FOLDS, random_state=3)
        regions = counts.pop(counts.index((12, 3)))  # once, to compare maps in
        assert regions not in counts
        assert sorted(counts) == sorted([(1, 3), (2, 3), (2, 4), (8, 3), (8, 4)] * FOLDS)


def test_the_numbers_are_those_of_fits_by_hand(small):
    row = faircal.choose(small, (3,), ("platt",), starts=2, n_folds=FOLDS, random_state=1).table[0]
    fold, _ = draw_folds(small.pairs, small.images, 1, FOLDS)
    losses = []
    for part in range(1, FOLDS + 1):
        held = small.subset(fold == part)
        for seed in (1, 2):
            model = faircal.FairCal(3, "platt", random_state=seed)
            p = model.fit(small.subset((fold > 0) & (fold != part))).predict_proba(held)
            losses.append((faircal.metrics.nll(p, held.genuine), len(held)))
    loss, size = np.transpose(losses)
    assert row.log_loss == pytest.approx(np.average(loss, weights=size), rel=1e-3)


class TestChoice:
    def test_rows(self, choice):
        rows = [(row.n_clusters, row.calibrator) for row in choice.table]
        assert rows == [(2, "beta"), (2, "isotonic"), (8, "beta"), (8, "isotonic")]
        assert (choice.n_clusters, choice.calibrator) in rows
        assert (choice.n_folds, choice.starts) == (FOLDS, STARTS)

    def test_is_a_table_for_pandas(self, choice):
        table = pd.DataFrame(choice.table)
        assert list(table.columns[:4]) == ["n_clusters", "calibrator", "loss", "standard_error"]
        assert np.isfinite(
            table.drop(columns=["calibrator", "change", "change_error"]).to_numpy()
        ).all()

    def test_stability_lies_where_it_can(self, choice):
        for row in choice.table:
            assert 0 < row.difference <= row.difference_95 < 1
            assert 0 < row.agreement <= 1
            assert -1 < row.adjusted_rand <= 1

    def test_model(self, choice, small):
        model = choice.model(random_state=3).fit(small)
        assert model.get_params()["n_clusters"] == choice.n_clusters
        assert model.get_params()["calibrator"] == choice.calibrator
        assert model.random_state == 3

    def test_same_seed_same_numbers(self, choice, small):
        again = faircal.choose(small, clusters=(2, 8), starts=STARTS, n_folds=FOLDS)
        assert repr(again) == repr(choice)

    def test_attributes_are_not_looked_at(self, choice, small):
        images = Images(small.images.ids, small.images.identity)
        features = {"faces": small.features[small.feature]}
        bare = faircal.Dataset.assemble("bare", images, small.pairs, features)
        assert not bare.images.attributes
        again = faircal.choose(bare, clusters=(2, 8), starts=STARTS, n_folds=FOLDS)
        assert repr(again) == repr(choice)

    def test_progress_goes_to_the_end(self, small):
        told = []
        faircal.choose(small, (2,), starts=2, n_folds=FOLDS, progress=lambda *a: told.append(a))
        assert [done for _, done, _, _ in told] == list(range(3 * FOLDS + 1))
        assert {total for _, _, total, _ in told} == {3 * FOLDS}
        assert told[-1][3] == "2 clusters"

    def test_one_start_tells_nothing_of_starts(self, small):
        found = faircal.choose(small, (2,), ("beta",), starts=1, n_folds=FOLDS)
        row = found.table[0]
        assert np.isnan([row.difference, row.agreement, row.adjusted_rand, row.loss_spread]).all()
        assert np.isfinite(found.table[0].loss)


class TestFindsWhatIsThere:
    def test_places_that_differ_get_clusters(self):
        found = faircal.choose(faces(shift=0.1), clusters=(1, 4, 16), starts=2)
        assert found.n_clusters == 4
        assert found.chosen.loss < 0.8 * found.baseline.loss
        assert found.chosen.ks < found.baseline.ks
        four, sixteen = (r for r in found.table if r.n_clusters > 1 and r.calibrator == "beta")
        # Four places far apart are found from every start; sixteen clusters cut them anyhow.
        assert four.adjusted_rand == pytest.approx(1.0)
        assert four.agreement == 1.0
        assert sixteen.adjusted_rand < 0.9
        assert sixteen.difference > four.difference

    def test_places_that_do_not_differ_get_none(self):
        found = faircal.choose(faces(shift=0.0), clusters=(1, 4, 16), starts=2)
        assert found.n_clusters == 1


class TestBadInput:
    def test_scores_only(self, small):
        table = faircal.Dataset(
            pairs={"left": [0, 1], "right": [1, 2], "genuine": [1, 0], "score": [0.5, 0.1]},
            attributes={"image_id": [0, 1, 2]},
        )
        with pytest.raises(DataError, match=r"needs embeddings.*faircal embed"):
            faircal.choose(table)

    def test_one_class(self, small):
        with pytest.raises(DataError, match="one class only"):
            faircal.choose(small.subset(small.genuine))

    def test_too_few_people(self, small):
        with pytest.raises(
            DataError, match=r"too few people to hold out.*found 0 of 5; add people"
        ):
            faircal.choose(small.subset(np.arange(0, len(small), 60)))

    def test_more_clusters_than_images(self, small):
        with pytest.raises(ParameterError, match=r"clusters: expected 1 to \d+ .* found 5000"):
            faircal.choose(small, clusters=(2, 5000))

    @pytest.mark.parametrize(
        ("given", "said"),
        [
            ({"clusters": ()}, "clusters: expected one or more"),
            ({"clusters": (0,)}, "clusters: expected a whole number of 1 or more"),
            ({"calibrators": "beta"}, "calibrators: expected one or more"),
            ({"calibrators": ("bta",)}, "did you mean"),
            ({"within": -1.0}, "within: expected a number from 0"),
            ({"within": float("nan")}, "within: expected a number from 0"),
            ({"starts": 0}, "starts: expected"),
            ({"n_folds": 1}, "n_folds: expected a whole number of 2"),
            ({"random_state": -1}, "random_state: expected"),
        ],
    )
    def test_parameters(self, small, given, said):
        with pytest.raises(ParameterError, match=said):
            faircal.choose(small, **given)


class TestNotes:
    def test_folds_and_regions_that_are_the_same(self):
        # Whom pairs connect stay together: four places, four sets of people, four folds.
        found = faircal.choose(faces(0.0, blocks=1), (2,), ("beta",), starts=1, n_folds=5)
        assert found.n_folds == 4
        folds, regions = found.notes
        assert folds == "4 of 5 folds of people have pairs enough to hold out"
        assert regions.startswith("whole regions of the embeddings are held out at once")

    def test_nothing_to_say(self):
        assert faircal.choose(faces(0.0), (2,), ("beta",), starts=1, n_folds=5).notes == ()

    def test_pairs_that_belong_to_no_fold(self, small):
        trials = Trials.of(small, FOLDS, 0)
        assert _notes(replace(trials, lost=0), FOLDS) == []
        (text,) = _notes(replace(trials, lost=len(trials.genuine)), FOLDS)
        assert text.startswith("50% of the pairs join people of two folds and are left out")
