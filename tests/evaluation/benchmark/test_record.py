"""``run.json`` of a benchmark: people are counted by attribute, also where groups share names."""

from __future__ import annotations

import numpy as np
import pytest

import faircal
from faircal.evaluation.benchmark import BenchmarkSettings, run_benchmark
from faircal.evaluation.compare import ComparedRun
from faircal.metrics.intervals.sufficient_data import PeopleByGroup
from faircal.metrics.results import read_run
from faircal.report.store import ResultsFolder, VariantResults, caution

N, EACH = 60, 3


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A benchmark of 60 people: 48 with glasses, 12 with a beard, all said with yes and no."""
    rng = np.random.default_rng(0)
    person = np.repeat(np.arange(N), EACH)
    vectors = rng.normal(size=(N, 8))[person] + 0.5 * rng.normal(size=(N * EACH, 8))
    fold = np.arange(N) % 2
    left, right = np.triu_indices(N * EACH, 1)
    same = person[left] == person[right]
    rows = np.flatnonzero(fold[person[left]] == fold[person[right]])
    left, right = left[rows], right[rows]
    yes = {"glasses": person < 48, "beard": person >= 48}
    data = faircal.Dataset(
        embeddings=vectors.astype(np.float32),
        pairs={
            "left": left,
            "right": right,
            "genuine": same[rows],
            "fold": fold[person[left]],
        },
        attributes={
            "identity": [f"p{i}" for i in person],
            **{name: np.where(has, "yes", "no") for name, has in yes.items()},
        },
    )
    home = tmp_path_factory.mktemp("record")
    settings = BenchmarkSettings(methods=("baseline",), attributes=("glasses", "beard"))
    run_benchmark(data, home, settings, jobs=1)
    return home


def test_people_of_groups_with_the_same_name_are_told_apart(folder):
    run = read_run(folder)
    glasses, beard = (PeopleByGroup.of(run, attribute) for attribute in ("glasses", "beard"))
    assert glasses.people == {"global": 60, "yes": 48, "no": 12}
    assert beard.people == {"global": 60, "yes": 12, "no": 48}
    assert run["people"] == glasses.people  # of the first, as audits have it
    for metric in ("fpr", "fnr"):
        assert glasses.effective[metric]["yes"] > 40
        assert beard.effective[metric]["yes"] <= 12


def test_who_has_too_few_depends_on_the_attribute(folder):
    store = ResultsFolder.read(folder)
    (feature,), (variant,) = store.results.features, store.main_variants.values()
    for attribute, few in (("glasses", "no"), ("beard", "yes")):
        measured = VariantResults(store, attribute, feature, variant)
        too_few = {group for group in ("yes", "no") if measured.result("ks", group).withheld}
        assert too_few == {few}
        people = PeopleByGroup.of(store.run, attribute).people
        assert caution(people[few]).startswith("only 12 people")
        assert caution(people["no" if few == "yes" else "yes"]) is None


def test_comparisons_know_it_too(folder):
    run = ComparedRun.read(folder)
    (found,) = (of for key, of in run.estimates.items() if key.attribute == "glasses")
    assert found["yes", "", "ks"].people > 40
    (found,) = (of for key, of in run.estimates.items() if key.attribute == "beard")
    assert found["yes", "", "ks"].people <= 12
