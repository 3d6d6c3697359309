"""CohortFairCal: what cannot change its probabilities, few people, cohorts that are no good."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ortho_group

import faircal
from faircal import Cohort, CohortFairCal, DataError, Dataset, ParameterError, load_model
from faircal.data import Embeddings, Feature
from faircal.data.pairing import draw_cohort
from faircal.data.types import Scores
from faircal.production.scoring.judging import Judge
from faircal.workflows.score import score_file


@pytest.fixture(scope="module")
def parts():
    """(calibration with a cohort of ten people a group out of it, test)."""
    data = faircal.simulate("small", seed=0, people=320, images=960, pairs=2400, dimension=32)
    calibration, test = data.split(test_fold=5)
    return draw_cohort(calibration, 10, "ethnicity+gender"), test


@pytest.fixture(scope="module")
def fitted(parts):
    return CohortFairCal().fit(parts[0])


def with_vectors(data, vectors, **more):
    return Dataset.assemble(
        data.name,
        data.images,
        data.pairs,
        {"embedding": Feature(Embeddings.of(vectors, "embeddings"))},
        **more,
    )


def images_of(cohort, rows=slice(None), **more):
    """Return the cohort of some of its images, in any order or again."""
    names = {"identity": cohort.identity, "groups": cohort.groups}
    values = {key: np.array([*of.names, ""])[of.codes][rows] for key, of in names.items()}
    given = {"embeddings": cohort.embeddings["embedding"].vectors[rows], **values, **more}
    return Cohort(**given)


class TestUnchanged:
    @given(
        pair=st.integers(0, 10**6),
        scores=st.tuples(*[st.floats(-1, 1, allow_subnormal=False)] * 2),
    )
    def test_monotone_and_symmetric(self, fitted, parts, pair, scores):
        """Of any two images."""
        images = len(parts[1].images)
        left, right = np.array([pair % images]), np.array([pair // images % images])
        low, high = (
            fitted.compare(
                parts[1].embeddings, left, right, scores=Scores(np.array([score]))
            ).probability[0]
            for score in sorted(scores)
        )
        swapped = fitted.compare(
            parts[1].embeddings, right, left, scores=Scores(np.array([max(scores)]))
        ).probability[0]
        assert 0 <= low <= high == swapped <= 1

    @pytest.mark.parametrize("seed", [0, 1])
    def test_turned_space(self, parts, fitted, seed):
        calibration, test = parts
        turn = ortho_group.rvs(32, random_state=seed)
        cohort = images_of(
            calibration.cohort, embeddings=calibration.cohort.embeddings["embedding"].vectors @ turn
        )
        turned = [with_vectors(data, data.embeddings.vectors @ turn) for data in parts]
        found = CohortFairCal().fit(turned[0].with_cohort(cohort)).predict_proba(turned[1])
        np.testing.assert_allclose(found, fitted.predict_proba(test), rtol=0, atol=1e-6)

    def test_genuine_pairs_three_times(self, parts):
        calibration, test = parts
        rows = np.arange(len(calibration))
        tripled = calibration.subset(np.r_[rows, np.repeat(rows[calibration.genuine], 2)])
        one, three = (
            CohortFairCal(share_genuine=0.3).fit(data).predict_proba(test)
            for data in (calibration, tripled)
        )
        assert np.abs(one - three).max() < 0.01

    def test_no_imposters_of_ones_own_tell(self, parts, fitted):
        calibration, test = parts
        rng = np.random.default_rng(0)
        people = calibration.images.identity.codes
        # Others of the same images: strangers at random still see all of them.
        imposters = np.flatnonzero(~calibration.genuine)
        left, right = calibration.pairs.left.copy(), calibration.pairs.right.copy()
        right[imposters] = rng.permutation(right[imposters])
        keep = calibration.genuine | (people[left] != people[right])
        pairs = replace(calibration.pairs, left=left, right=right)
        other = calibration.with_pairs(pairs).subset(keep)
        found = CohortFairCal(share_genuine=calibration.genuine.mean()).fit(other)
        difference = found.predict_proba(test) - fitted.predict_proba(test)
        assert np.abs(difference).max() < 0.05

    def test_images_of_the_cohort_in_another_order(self, parts, fitted):
        calibration, test = parts
        order = np.random.default_rng(0).permutation(len(calibration.cohort))
        cohort = images_of(calibration.cohort, order)
        found = CohortFairCal().fit(calibration.with_cohort(cohort)).predict_proba(test)
        assert np.abs(found - fitted.predict_proba(test)).max() < 0.03

    def test_the_same_image_of_the_cohort_again(self, parts):
        """Other pairs of strangers are drawn, and where trust ends moves a little."""
        calibration, test = parts
        first = np.unique(calibration.cohort.identity.codes, return_index=True)[1]
        one, five = (
            CohortFairCal()
            .fit(calibration.with_cohort(images_of(calibration.cohort, rows)))
            .predict_proba(test)
            for rows in (first, np.tile(first, 5))
        )
        assert np.quantile(np.abs(one - five), 0.95) < 0.01


class TestElsewhere:
    """The same probabilities, but for the last digits of other blocks."""

    def test_scored_from_disk(self, parts, fitted, tmp_path):
        data = parts[1]
        faircal.save_dataset(data, tmp_path / "data")
        fitted.save(tmp_path / "m.faircal")
        score_file(tmp_path / "m.faircal", tmp_path / "data", tmp_path / "s.parquet")
        import pyarrow.parquet as pq

        found = pq.read_table(tmp_path / "s.parquet")["probability"].to_numpy()
        np.testing.assert_allclose(found, fitted.predict_proba(data), rtol=0, atol=1e-12)

    def test_judged_as_in_the_service(self, parts, fitted):
        data, rows = parts[1], np.arange(0, len(parts[1]), 7)
        sides = [
            data.embeddings.vectors[side[rows]] for side in (data.pairs.left, data.pairs.right)
        ]
        judged = Judge.of(fitted)(
            Embeddings(np.concatenate(sides)), *np.arange(2 * len(rows)).reshape(2, -1)
        )
        expected = fitted.predict_proba(data)[rows]
        np.testing.assert_allclose(judged.probability, expected, rtol=0, atol=1e-12)


class TestRemarks:
    def test_people_unlike_the_cohort(self, parts):
        calibration, test = parts
        cohort = calibration.cohort
        names = np.array(cohort.groups.names)[cohort.groups.codes]
        some = np.flatnonzero(np.char.startswith(names.astype(str), "A"))  # of two ethnicities
        model = CohortFairCal().fit(calibration.with_cohort(images_of(cohort, some)))
        note = (
            "% of calibration images are unlike all groups of the cohort: they keep the plain map"
        )
        assert any(note in text for text in model.diagnostics_.notes)
        (remark,) = model.remarks(test, model.apply(test))
        unlike = model.likeness_(test.embeddings.unit(test.used_images()))[:, -1] < 0.5
        assert remark.startswith(f"{100 * unlike.mean():.0f} % of images in use are unlike")

    def test_people_like_it(self, parts, fitted):
        assert fitted.remarks(parts[1], fitted.apply(parts[1])) == []
        assert len(fitted.diagnostics_.notes) == 1

    def test_no_pairs(self, parts, fitted):
        none = parts[1].subset(np.empty(0, int))
        assert fitted.remarks(none, fitted.apply(none)) == []


class TestFewPeople:
    @pytest.mark.parametrize("genuine", [1, 3, 10])
    def test_few_genuine_pairs(self, parts, genuine):
        calibration, test = parts
        rows = np.flatnonzero(calibration.genuine)[:genuine]
        few = calibration.subset(np.r_[rows, np.flatnonzero(~calibration.genuine)])
        model = CohortFairCal().fit(few)
        probability = model.predict_proba(test)
        assert ((probability >= 0) & (probability <= 1)).all()
        if genuine < 10:
            assert (
                "of plain, shifted, learned: too few people to hold any out"
                in (model.diagnostics_.notes[0])
            )

    def test_genuine_pairs_of_one_person(self, parts):
        calibration, test = parts
        of = np.where(
            calibration.genuine, calibration.images.identity.codes[calibration.pairs.left], -1
        )
        one = calibration.subset((of == of.max()) | ~calibration.genuine)
        assert np.isfinite(CohortFairCal().fit(one).predict_proba(test)).all()

    def test_one_imposter_pair(self, parts):
        calibration, test = parts
        imposter = np.flatnonzero(~calibration.genuine)[:1]
        few = calibration.subset(np.r_[np.flatnonzero(calibration.genuine), imposter])
        assert np.isfinite(CohortFairCal().fit(few).predict_proba(test)).all()

    def test_nobody_else(self, parts):
        vectors = parts[0].embeddings.vectors[:3]
        pairs = {"left": [0, 1, 0], "right": [1, 2, 2], "genuine": [1, 1, 0]}
        data = Dataset(embeddings=vectors, pairs=pairs)
        with pytest.raises(DataError, match="expected images of two or more people"):
            CohortFairCal().fit(data.with_cohort(parts[0].cohort))


def of_people(cohort, *groups):
    """Return the first image of the first so many people of each group."""
    first = np.unique(cohort.identity.codes, return_index=True)[1]
    of = cohort.groups.codes[first]
    return images_of(
        cohort, np.concatenate([first[of == code][:n] for code, n in enumerate(groups)])
    )


class TestCohorts:
    """Of whatever use: probabilities, and no warning of NumPy's, which would be an error here."""

    @pytest.mark.parametrize(
        "change",
        [
            lambda cohort: of_people(cohort, 2, 1),
            lambda cohort: of_people(cohort, 2, 1, 1, 1, 1, 1, 1, 1),
            lambda cohort: of_people(cohort, 10, 1),
            lambda cohort: images_of(
                cohort, groups=np.where(cohort.identity.codes % 3, cohort.groups.codes, None)
            ),
            lambda cohort: images_of(
                cohort, embeddings=cohort.embeddings["embedding"].vectors.astype(np.float16)
            ),
            lambda cohort: images_of(cohort, np.repeat(np.arange(12), 400)),
            lambda cohort: images_of(cohort, embeddings=np.ones((len(cohort), 32))),
            lambda cohort: images_of(cohort, embeddings=np.eye(32)[cohort.groups.codes]),
            lambda cohort: images_of(
                cohort, embeddings=np.random.default_rng(0).normal(size=(len(cohort), 32))
            ),
        ],
        ids=[
            "three images",
            "groups of one",
            "a group of one",
            "some of no group",
            "float16",
            "many images",
            "one vector",
            "one vector a group",
            "noise",
        ],
    )
    def test_can_be_fitted(self, parts, change, tmp_path):
        calibration, test = parts
        model = CohortFairCal().fit(calibration.with_cohort(change(calibration.cohort)))
        probability = model.predict_proba(test)
        assert np.isfinite(probability).all()
        model.save(tmp_path / "m.faircal")
        found = load_model(tmp_path / "m.faircal").predict_proba(test)
        np.testing.assert_array_equal(found, probability)

    @pytest.mark.parametrize("dimension", [1, 2])
    def test_few_dimensions(self, parts, dimension):
        cohort = parts[0].cohort
        cal, test = (with_vectors(data, data.embeddings.vectors[:, :dimension]) for data in parts)
        cohort = images_of(cohort, embeddings=cohort.embeddings["embedding"].vectors[:, :dimension])
        model = CohortFairCal().fit(cal.with_cohort(cohort))
        assert np.isfinite(model.predict_proba(test)).all()

    def test_everybody_in_two_groups(self, parts):
        cohort = parts[0].cohort
        twice = images_of(
            cohort,
            np.tile(np.arange(len(cohort)), 2),
            groups=np.repeat(["a", "b"], len(cohort)),
        )
        with pytest.raises(
            DataError, match="each person in one group, found people: 80, groups: 1;"
        ):
            CohortFairCal().fit(parts[0].with_cohort(twice))


class TestGenuinePairsOnly:
    """No imposter pair of one's own."""

    @pytest.fixture(scope="class")
    @staticmethod
    def genuine(parts):
        return parts[0].subset(parts[0].genuine)

    def test_the_same_model(self, parts, genuine):
        """As with imposters, but for images that are in no genuine pair."""
        images = genuine.used_images()
        calibration = parts[0]
        known = np.isin([calibration.pairs.left, calibration.pairs.right], images).all(axis=0)
        both, alone = (
            CohortFairCal(share_genuine=0.3).fit(data).predict_proba(parts[1])
            for data in (calibration.subset(known), genuine)
        )
        assert (~calibration.genuine[known]).any()
        np.testing.assert_array_equal(both, alone)

    def test_what_share_probabilities_are_for(self, parts, genuine):
        model = CohortFairCal().fit(genuine)
        assert model.diagnostics_.figures["calibrated_at"] == 0.5
        assert "all calibration pairs are genuine" in model.diagnostics_.notes[0]
        given = CohortFairCal(share_genuine=0.2).fit(genuine)
        assert given.diagnostics_.figures["calibrated_at"] == 0.2
        assert not any("genuine" in text for text in given.diagnostics_.notes)
        assert CohortFairCal().fit(parts[0]).diagnostics_.figures["calibrated_at"] == pytest.approx(
            parts[0].genuine.mean()
        )

    def test_a_file_that_can_be_watched(self, genuine, parts, tmp_path):
        """Strangers of the survey are drawn at random."""
        faircal.save_dataset(genuine, tmp_path / "data")
        fitted = faircal.fit_model(
            tmp_path / "data", tmp_path / "m.faircal", method="cohort", cohort=parts[0].cohort
        )
        about = fitted.model.about_
        assert about.population.watchable
        assert about.evidence.low < 0 < about.evidence.high
        assert any("No imposter pair was among" in text for text in about.provenance.limits)
        assert any("50.0 % of the pairs are genuine;" in text for text in about.provenance.limits)

    def test_a_cohort_drawn_from_them(self, genuine):
        drawn = draw_cohort(genuine.with_cohort(None), 2, "ethnicity", 0)
        assert drawn.genuine.all()
        assert np.isfinite(CohortFairCal().fit(drawn).predict_proba(genuine)).all()


@pytest.mark.parametrize("score", [lambda cosine: cosine**3, lambda cosine: np.sqrt(1 + cosine)])
def test_scores_that_are_no_cosines(parts, score):
    calibration = parts[0]
    pairs = {key: getattr(calibration.pairs, key) for key in ("left", "right", "genuine")}
    data = Dataset(
        embeddings=calibration.embeddings.vectors,
        pairs={**pairs, "score": score(calibration.scores)},
        score_range=(-2, 2),
    )
    with pytest.raises(DataError, match=r"compares cosines, .*; leave out the column 'score'"):
        CohortFairCal().fit(data.with_cohort(calibration.cohort))


@pytest.mark.parametrize("share", [0, 1, -0.1, True, "half", np.nan])
def test_share_genuine(parts, share):
    with pytest.raises(ParameterError, match="share_genuine: expected a number between 0 and 1"):
        CohortFairCal(share_genuine=share).fit(parts[0])


def test_probabilities_for_another_share(parts):
    calibration, test = parts
    means = [
        CohortFairCal(share_genuine=share).fit(calibration).predict_proba(test).mean()
        for share in (0.01, 0.3, 0.9)
    ]
    assert means == sorted(means)
    assert means[0] < 0.2 < 0.5 < means[-1]
