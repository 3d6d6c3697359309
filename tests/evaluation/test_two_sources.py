"""Whether a cohort and the data were photographed alike: what strangers of both tell."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import faircal
from faircal import Cohort, DataError
from faircal.evaluation.two_sources import CohortImposters, StrangerComparison
from faircal.model import About, Provenance
from tests.cohorts import own_and_cohort


@pytest.fixture(scope="module")
def people():
    return faircal.simulate("small", seed=3, people=240, images=720, pairs=2100, dimension=64)


def compared(people, camera=0.0, model=None, change=None):
    own, cohort = own_and_cohort(people, "ethnicity", camera)
    if change is not None:
        own = change(own)
    return CohortImposters.of(own, cohort, model).comparison


def test_of_one_population_nothing_is_found(people):
    found = compared(people)
    assert found.low < 1 < found.high
    assert 0.7 < found.ratio < 1.4
    assert not found.unlike
    assert found.words().startswith("as far as strangers tell, the cohort and the data were phot")
    assert f"up to {found.high:.3g} times" in found.words()


def test_what_all_own_images_have_in_common_is_found(people):
    found = compared(people, camera=0.4)
    assert found.unlike
    assert 1.1 < found.low < found.ratio < found.high
    assert found.words().startswith("WARNING: the cohort and the data were not photographed alike")


def test_a_map_of_scores_changes_nothing(people):
    model = faircal.Baseline().fit(people)
    found, plain = compared(people, model=model), compared(people)
    assert (found.ratio, found.low, found.high) == pytest.approx(
        (plain.ratio, plain.low, plain.high)
    )


def test_ones_own_that_are_less_alike_are_said_to_be_so(people):
    def blurred(own):
        vectors = own.embeddings.vectors
        noise = np.random.default_rng(0).normal(size=vectors.shape) / 8
        seen = replace(own.embeddings, vectors=(vectors + noise).astype(np.float32))
        feature = replace(own.features["embedding"], embeddings=seen)
        vars(own).update(embeddings=seen, features={"embedding": feature})
        return own

    found = compared(people, change=blurred)
    assert found.high < 1
    assert not found.unlike
    assert found.words().endswith("its rates are lower than the cohort's")


def test_without_people_nobody_can_know(people):
    def nameless(own):
        vars(own).update(images=replace(own.images, identity=None))
        return own

    found = compared(people, change=nameless)
    assert found.unknown == "nobody in the data is identified (column 'identity')"
    assert not found.unlike
    assert "is not known: nobody in the data is identified" in found.words()
    few = compared(people, change=lambda own: own.subset(np.flatnonzero(own.genuine)[:20]))
    assert few.unknown.startswith("in the data there are only")


def test_a_model_that_needs_groups_of_ones_own_cannot_tell(people):
    def bare(own):
        vars(own).update(images=replace(own.images, attributes={}, crossed=()))
        return own

    model = faircal.Oracle(attribute="ethnicity").fit(people)
    assert compared(people, model=model, change=bare).unknown.startswith("oracle needs the groups")
    assert not compared(people, model=model).unknown


def test_what_nobody_knows_is_null_for_machines(people):
    own, cohort = own_and_cohort(people, "ethnicity")
    source = CohortImposters.of(own, cohort, None)
    unknown = replace(source, comparison=StrangerComparison(unknown="nobody knows"))
    record = unknown.as_json()
    assert record["strangers"]["ratio"] is None
    assert record["people"] == dict.fromkeys(cohort.groups.names, 30)
    assert record["imposters"] == (~source.data.genuine).sum()
    assert any("own" in note and "imposter pairs are left out" in note for note in source.notes())


def test_people_whom_a_model_has_seen_are_refused(people):
    own, cohort = own_and_cohort(people, "ethnicity")
    model = faircal.Baseline().fit(people)
    marks = cohort.marks("embedding")[:3]
    model.about_ = About(Provenance(cohort={**cohort.record(), "marks": marks}))
    with pytest.raises(
        DataError, match=r"fitted with 3 of the 120 people of this cohort.*keep the"
    ):
        CohortImposters.of(own, cohort, model)
    rest = cohort.subset(np.flatnonzero(cohort.identity.codes >= 3))
    assert CohortImposters.of(own, rest, model).comparison.low < 1


def test_people_of_the_data_are_left_out_or_refused(people):
    own, cohort = own_and_cohort(people, "ethnicity")
    names = list(cohort.identity.names)
    shared = own.images.identity.names[0]

    def named(first):
        identity = [names[code] if code >= first else f"{shared}" for code in cohort.identity.codes]
        return Cohort(embeddings=cohort.embeddings, identity=identity, groups=cohort.groups)

    notes = CohortImposters.of(own, named(1), None).notes()
    assert any("1 of 120 people are in own, too" in note for note in notes)
    with pytest.raises(DataError, match=r"people are in own, too .* take other people"):
        CohortImposters.of(own, own_as_cohort(own), None)


def own_as_cohort(own):
    """Return the people of the data, under other names."""
    used = own.used_images()
    codes = own.images.identity.codes[used]
    groups = own.image_groups("ethnicity")
    return Cohort(
        embeddings=own.embeddings.vectors[used],
        identity=[f"public {code}" for code in codes],
        groups=np.array(groups.names)[groups.codes[used]],
    )
