"""build_pairs keeps its promises, whatever is asked of it."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from faircal._base.errors import DataError, ParameterError
from faircal.compute import CPU
from faircal.data.pairing import IMPOSTERS, BuiltPairs, PairPlan, build, build_pairs
from faircal.data.pairing.matched import alike
from faircal.data.pairing.people import PersonImages

SEVERAL = "strata: 1 people have images of several strata; each counts in their most frequent one"
PEOPLE = st.lists(st.integers(-1, 14), min_size=20, max_size=90)
PLANS = st.builds(
    PairPlan,
    imposters=st.sampled_from(IMPOSTERS),
    genuine=st.one_of(st.none(), st.integers(1, 9)),
    ratio=st.sampled_from([0.1, 0.5, 1.0, 3.0]),
    size=st.one_of(st.none(), st.integers(20, 200)),
    cap=st.integers(1, 12),
    n_folds=st.integers(2, 3),
    n_clusters=st.integers(1, 3),
    seed=st.integers(0, 9),
)


def unit(n, d=8, seed=0, person=None):
    """Embeddings; those of a person are alike."""
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(n, d))
    if person is not None:
        vectors += 1.5 * rng.normal(size=(int(np.max(person)) + 1, d))[person]
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def crowd(n_people=40, images=6):
    person = np.repeat(np.arange(n_people), images)
    return person, person % 4, unit(len(person), person=person)


def same(one: BuiltPairs, two: BuiltPairs) -> bool:
    names = ("left", "right", "genuine", "fold")
    return one.notes == two.notes and all(
        getattr(one, name).tobytes() == getattr(two, name).tobytes() for name in names
    )


class TestByHand:
    def test_everything_there_is(self):
        # Folds are given: people 4 and 5 in fold 7, people 6 and 8 in fold 2.
        people = [5, 5, 4, 6, 6, 8, 4, -1]
        folds = [7, 7, 7, 2, 2, 2, 7, 99]
        pairs = build_pairs(people, PairPlan(ratio=9, genuine=None), folds=folds)
        assert list(zip(pairs.left.tolist(), pairs.right.tolist(), strict=True)) == [
            *[(3, 4), (3, 5), (4, 5)],
            *[(0, 1), (2, 6), (0, 2), (0, 6), (1, 2), (1, 6)],
        ]
        assert pairs.genuine.tolist() == [True, False, False, True, True] + 4 * [False]
        assert pairs.fold.tolist() == [2] * 3 + [7] * 6
        assert pairs.notes == (
            "people: 1 images are in no pair: nobody known is in them",
            "folds: 2 as given, which share no person",
            "genuine: 3 pairs of 3 people",
            (
                "imposters: 6 pairs (random), at most 10 of the same two people: 2 for each "
                "genuine pair, not 9; there are no more; raise --cap, ask for fewer --folds, or "
                "lower --genuine or --ratio"
            ),
        )

    def test_types(self):
        pairs = build_pairs(crowd()[0].astype(np.int32), PairPlan(cap=20))
        assert pairs.left.dtype == pairs.right.dtype == np.intp
        assert pairs.genuine.dtype == bool
        assert pairs.fold.dtype == np.int64
        assert len(pairs) == len(pairs.left) == 40 * 15 * 4

    def test_notes(self):
        person, groups, _ = crowd()
        strata, groups = groups.copy(), groups.copy()
        strata[0], groups[:3] = 9, -1
        plan = PairPlan("group", size=400, cap=20, seed=3)
        assert build_pairs(person, plan, strata=strata, groups=groups).notes == (
            SEVERAL,
            "folds: 5 drawn, which share none of the 40 people, stratified over 4 strata; seed 3",
            "groups: 3 images of unknown group are in no imposter pair",
            "size: 100 of 600 genuine pairs kept, at random, for at most 400 pairs in all",
            "genuine: 100 pairs of 38 people",
            (
                "imposters: 300 pairs (group), at most 20 of the same two people, 3 for each "
                "genuine pair"
            ),
        )

    def test_progress(self):
        steps = []
        build_pairs(crowd()[0], PairPlan(n_folds=2), progress=lambda *step: steps.append(step))
        assert steps == [
            ("drawing imposters", 0, 2, "fold 1"),
            ("drawing imposters", 1, 2, "fold 2"),
            ("drawing imposters", 2, 2, ""),
        ]


class TestProperties:
    @settings(max_examples=150)
    @given(PEOPLE, PLANS)
    def test_promises(self, people, plan):
        people = np.array(people)
        groups, vectors = people % 3, unit(len(people))
        try:
            pairs = build_pairs(people, plan, strata=groups, groups=groups, vectors=vectors)
        except DataError:
            assume(False)
        left, right = people[pairs.left], people[pairs.right]
        assert (pairs.left < pairs.right).all()
        assert (left >= 0).all()
        assert ((left == right) == pairs.genuine).all()
        assert len(set(zip(pairs.left.tolist(), pairs.right.tolist(), strict=True))) == len(pairs)
        folds = {}
        for fold, one, two in zip(pairs.fold.tolist(), left.tolist(), right.tolist(), strict=True):
            assert folds.setdefault(one, fold) == folds.setdefault(two, fold) == fold
        couples = Counter(
            (min(pair), max(pair))
            for pair in zip(left[~pairs.genuine], right[~pairs.genuine], strict=True)
        )
        assert max(couples.values()) <= plan.cap
        if plan.genuine is not None:
            assert np.bincount(left[pairs.genuine]).max() <= plan.genuine
        if plan.size is not None:
            assert len(pairs) <= plan.size
        short = "there are no more" in pairs.notes[-1]
        lacking = False
        for fold in range(1, plan.n_folds + 1):
            genuine = int(pairs.genuine[pairs.fold == fold].sum())
            imposter = int((pairs.fold == fold).sum()) - genuine
            wanted = max(int(plan.ratio * genuine + 0.5), 1)
            assert genuine >= 1
            assert 1 <= imposter <= wanted
            lacking |= imposter < wanted
        assert short == lacking
        order = np.lexsort((pairs.right, pairs.left, ~pairs.genuine, pairs.fold))
        assert (order == np.arange(len(pairs))).all()

    @pytest.mark.parametrize("kind", IMPOSTERS)
    def test_the_same_seed_gives_the_same_bytes(self, kind):
        person, groups, vectors = crowd()

        def run(seed):
            plan = PairPlan(kind, genuine=5, seed=seed, n_clusters=4)
            return build_pairs(person, plan, strata=groups, groups=groups, vectors=vectors)

        assert same(run(1), run(1))
        assert not same(run(1), run(2))

    def test_other_imposters_leave_folds_and_genuine_pairs_as_they_are(self):
        person, groups, vectors = crowd()
        found = []
        for kind in IMPOSTERS:
            pairs = build_pairs(
                person, PairPlan(kind, genuine=5, size=300), groups=groups, vectors=vectors
            )
            found.append(np.stack([pairs.left, pairs.right, pairs.fold])[:, pairs.genuine])
        for other in found[1:]:
            np.testing.assert_array_equal(other, found[0])

    def test_the_order_of_images_does_not_matter_to_folds(self):
        person, _, _ = crowd()
        shuffled = np.random.default_rng(0).permutation(len(person))
        folds = []
        for rows in (np.arange(len(person)), shuffled):
            pairs = build_pairs(person[rows], PairPlan())
            folds.append(dict(zip(person[rows][pairs.left], pairs.fold, strict=True)))
        assert folds[0] == folds[1]

    def test_codes_may_be_any_numbers(self):
        person, _, _ = crowd()
        assert same(build_pairs(person, PairPlan()), build_pairs(person * 10**15, PairPlan()))


class TestKinds:
    def imposters(self, kind, **more):
        person, groups, vectors = crowd()
        plan = PairPlan(kind, ratio=1, n_clusters=4)
        pairs = build_pairs(person, plan, **({"groups": groups, "vectors": vectors} | more))
        return pairs.left[~pairs.genuine], pairs.right[~pairs.genuine]

    def test_group(self):
        _, groups, _ = crowd()
        groups[::7] = -1
        left, right = self.imposters("group", groups=groups)
        assert (groups[left] == groups[right]).all()
        assert set(groups[left]) == {0, 1, 2, 3}

    def test_cross(self):
        _, groups, _ = crowd()
        groups[::7] = -1
        left, right = self.imposters("cross", groups=groups)
        assert (groups[left] != groups[right]).all()
        assert (np.minimum(groups[left], groups[right]) >= 0).all()

    def test_cluster(self):
        _, _, vectors = crowd()
        cluster = CPU.assign(vectors, CPU.kmeans(vectors, 4).centers)
        left, right = self.imposters("cluster")
        assert (cluster[left] == cluster[right]).all()
        assert len(set(cluster[left])) == 4

    def test_matched(self):
        person, _, vectors = crowd()
        vectors[person < 20] += 2
        cell = alike(vectors, PersonImages.of(person), 4, least=5, seed=0)
        assert np.bincount(cell).min() >= 5
        left, right = self.imposters("matched", vectors=vectors)
        assert (cell[person[left]] == cell[person[right]]).all()
        assert len(set(cell[person[left]])) > 1

    def test_hard_ones_are_more_similar(self):
        _, _, vectors = crowd()

        def similarity(kind):
            left, right = self.imposters(kind)
            return float((vectors[left] * vectors[right]).sum(axis=1).mean())

        assert similarity("hard") > similarity("cluster") > similarity("random") + 0.1

    @pytest.mark.parametrize("kind", ["cluster", "matched", "hard"])
    def test_vectors_on_disk(self, kind, tmp_path):
        person, _, vectors = crowd()
        np.save(tmp_path / "vectors.npy", vectors)
        on_disk = np.load(tmp_path / "vectors.npy", mmap_mode="r")
        plan = PairPlan(kind, n_clusters=4)
        assert same(
            build_pairs(person, plan, vectors=on_disk), build_pairs(person, plan, vectors=vectors)
        )

    def test_vectors_of_unknown_people_are_not_looked_at(self):
        person, _, vectors = crowd()
        person, vectors = np.append(person, -1), np.vstack([vectors, np.full((1, 8), np.nan)])
        for kind in ("cluster", "matched", "hard"):
            pairs = build_pairs(person, PairPlan(kind, n_clusters=4), vectors=vectors)
            assert pairs.right.max() < len(person) - 1


class TestSize:
    def test_thinned_evenly(self):
        # 40 people of 15 genuine pairs each; 8 of them a fold.
        person, _, _ = crowd()
        whole = build_pairs(person, PairPlan())
        thin = build_pairs(person, PairPlan(size=1000))
        assert np.bincount(thin.fold)[1:].tolist() == [200] * 5
        assert np.bincount(thin.fold[thin.genuine])[1:].tolist() == [50] * 5

        def genuine(pairs):
            return set(zip(pairs.left[pairs.genuine], pairs.right[pairs.genuine], strict=True))

        assert genuine(thin) < genuine(whole)
        assert len(set(person[thin.left[thin.genuine]])) > 35

    def test_in_proportion_to_folds(self):
        people = np.repeat(np.arange(30), [3] * 20 + [6] * 10)  # 3 or 15 pairs each
        folds = np.where(people < 20, 1, 2)  # 60 and 150 genuine pairs
        pairs = build_pairs(people, PairPlan(ratio=1, size=140), folds=folds)
        assert np.bincount(pairs.fold)[1:].tolist() == [40, 100]

    def test_just_enough_is_left_alone(self):
        person, _, _ = crowd()
        assert same(build_pairs(person, PairPlan(size=2400)), build_pairs(person, PairPlan()))

    def test_too_small(self):
        with pytest.raises(ParameterError, match=r"size: expected at least 20 for 5 folds .* 19; "):
            build_pairs(crowd()[0], PairPlan(size=19))
        assert len(build_pairs(crowd()[0], PairPlan(size=20))) == 20


class TestErrors:
    @pytest.mark.parametrize(
        ("setting", "message"),
        [
            (
                {"imposters": "crss"},
                r"imposters: unknown kind 'crss'; did you mean cross\? \(known",
            ),
            ({"genuine": 0}, r"genuine: expected a whole number of 1 or more, found 0"),
            ({"ratio": 0}, r"ratio: expected a number above 0, found 0"),
            ({"ratio": float("nan")}, r"ratio: expected a number above 0, found nan"),
            ({"ratio": float("inf")}, r"ratio: expected a number above 0, found inf"),
            ({"ratio": "3"}, r"ratio: expected a number above 0, found '3'"),
            ({"ratio": True}, r"ratio: expected a number above 0, found True"),
            ({"size": 1}, r"size: expected a whole number of 2 or more, found 1"),
            ({"cap": 0}, r"cap: expected a whole number of 1 or more, found 0"),
            ({"n_folds": 1}, r"n_folds: expected a whole number of 2 or more, found 1"),
            ({"n_clusters": 0}, r"n_clusters: expected a whole number of 1 or more, found 0"),
            ({"seed": -1}, r"seed: expected a whole number of 0 or more, found -1"),
        ],
    )
    def test_plan(self, setting, message):
        with pytest.raises(ParameterError, match=f"^{message}"):
            PairPlan(**setting)

    @pytest.mark.parametrize("kind", ["group", "cross"])
    def test_groups_are_needed(self, kind):
        message = rf"imposters '{kind}': expected the group .* name an attribute \(--attribute\)"
        with pytest.raises(ParameterError, match=message):
            build_pairs(crowd()[0], PairPlan(kind))

    @pytest.mark.parametrize("kind", ["cluster", "matched", "hard"])
    def test_embeddings_are_needed(self, kind):
        message = rf"imposters '{kind}': expected embeddings, found none; run faircal embed first"
        with pytest.raises(ParameterError, match=message):
            build_pairs(crowd()[0], PairPlan(kind))

    def test_columns(self):
        with pytest.raises(ParameterError, match=r"people: expected a whole number .* float64 of"):
            build_pairs([0.0, 1.0], PairPlan())
        with pytest.raises(ParameterError, match=r"strata: expected 4 values, one .* found 3"):
            build_pairs([0, 0, 1, 1], PairPlan(), strata=[1, 2, 3])
        with pytest.raises(ParameterError, match=r"vectors: expected 2 rows, .* shape \(3, 8\)"):
            build_pairs([0, 0], PairPlan("hard"), vectors=unit(3))

    def test_more_clusters_than_images(self):
        with pytest.raises(ParameterError, match=r"choose fewer clusters \(--clusters\)"):
            build_pairs(crowd()[0], PairPlan("cluster", n_clusters=999), vectors=crowd()[2])

    def test_more_cells_than_people(self):
        message = r"n_clusters: expected 1 to 40 \(the number of people\), found 41; choose fewer"
        with pytest.raises(ParameterError, match=message):
            build_pairs(crowd()[0], PairPlan("matched", n_clusters=41), vectors=crowd()[2])

    def test_no_images(self):
        with pytest.raises(DataError, match=r"expected images of known people, found none"):
            build_pairs([], PairPlan())

    def test_too_few_people(self):
        with pytest.raises(DataError, match=r"at least 5 people with two or more images.* found 4"):
            build_pairs([0, 0, 1, 1, 2, 2, 3, 3, 4, 5], PairPlan())

    def test_a_fold_without_genuine_pairs(self):
        with pytest.raises(DataError, match=r"^fold 8: expected at least one genuine pair, found"):
            build_pairs([0, 0, 1, 1, 2, 3], PairPlan(), folds=[1, 1, 1, 1, 8, 8])

    def test_a_fold_without_imposter_pairs(self):
        message = (
            r"^fold 8: expected at least one imposter pair \(random\), found none; ask for few"
        )
        with pytest.raises(DataError, match=message):
            build_pairs([0, 0, 1, 1, 2, 2], PairPlan(), folds=[1, 1, 1, 1, 8, 8])
        with pytest.raises(DataError, match=r"imposter pair \(group\), found none"):
            build_pairs([0, 0, 1, 1] * 2, PairPlan("group"), groups=[-1] * 8, folds=[1] * 8)
        with pytest.raises(DataError, match=r"imposter pair \(hard\), found none"):
            build_pairs([0, 0], PairPlan("hard"), vectors=unit(2), folds=[1, 1])

    def test_leakage(self):
        with pytest.raises(DataError, match=r"found 1 of 2 people in several \(leakage\)"):
            build_pairs([0, 0, 1, 1], PairPlan(), folds=[1, 2, 2, 2])


class TestLastLook:
    """Results that build_pairs never gives are refused."""

    @pytest.mark.parametrize(
        ("left", "right", "genuine", "fold", "fault"),
        [
            ([0, 2], [2, 4], [0, 0], [1, 2], "a person is in two folds"),
            ([0, 0], [1, 2], [1, 1], [1, 1], "a label is wrong"),
            ([0, 2], [1, 3], [0, 1], [1, 1], "a label is wrong"),
            ([0], [5], [0], [1], "an image is of nobody known"),
            ([0, 0], [2, 2], [0, 0], [1, 1], "a pair is there twice"),
        ],
    )
    def test_faults(self, left, right, genuine, fold, fault):
        people = np.array([0, 0, 1, 1, 2, -1])
        pairs = BuiltPairs(
            np.array(left), np.array(right), np.array(genuine, dtype=bool), np.array(fold), ()
        )
        with pytest.raises(RuntimeError, match=fault):
            build._check(pairs, people)

    def test_it_is_taken(self, monkeypatch):
        monkeypatch.setattr(
            "faircal.data.pairing.build.deal_people", lambda *_, **__: np.array([1, 1, 2, 2])
        )
        monkeypatch.setitem(build.DRAW, "random", lambda *_: (np.array([0, 0]), np.array([2, 2])))
        with pytest.raises(RuntimeError, match="built wrongly: a pair is there twice"):
            build_pairs([0, 0, 1, 1, 2, 2, 3, 3], PairPlan(n_folds=2))
