"""``--cohort`` of fit and benchmark, and what ``faircal check`` says of a cohort."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace

import numpy as np
import pyarrow.csv as pacsv
import pytest

import faircal
from faircal.data import Dataset, save_dataset
from faircal.data.columns import Column
from faircal.methods import METHODS, Needs

SIZE = {"people": 160, "images": 480, "pairs": 1200, "dimension": 16}


class Comparing(METHODS["baseline"]):
    """Baseline, with the mean cosine of the cohort's strangers."""

    name, title = "comparing", "Comparing"
    needs = Needs(embeddings=True, cohort="required")

    def _fit(self, inputs):
        vectors, person = inputs.cohort.vectors, inputs.cohort.person
        cosines = vectors @ vectors.T
        self.diagnostics_.figures["strangers"] = float(
            cosines[person[:, None] != person[None]].mean()
        )
        super()._fit(inputs)


@pytest.fixture(autouse=True)
def comparing(monkeypatch):
    monkeypatch.setitem(METHODS, "comparing", Comparing)


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Faces, and the folder of a cohort: other people, of whom two are among the faces."""
    home = tmp_path_factory.mktemp("cohort")
    save_dataset(faircal.simulate("small", seed=0, **SIZE), home / "faces")
    others = faircal.simulate("small", seed=1, **SIZE)
    people = others.images.identity
    names = (*people.names[:2], *(f"c{name}" for name in people.names[2:]))
    images = replace(others.images, identity=Column(people.codes, names))
    save_dataset(Dataset.assemble("Public", images, others.pairs, others.features), home / "public")
    (home / "public" / "pairs.csv").unlink()
    about = {"name": "Public", "provenance": "drawn", "licence": "CC0", "simulated": True}
    (home / "public" / "dataset.json").write_text(json.dumps(about))
    return home


@pytest.fixture
def run(run_here):
    """Return a function that runs a command in this process, of words or paths."""
    return lambda *words: run_here(list(map(str, words)))


LEFT_OUT = "2 of 160 people are in "


class TestFit:
    @pytest.fixture
    def fitted(self, home, monkeypatch, run):
        monkeypatch.chdir(home)

        def fit(*more):
            options = ["--cohort", "public", "--cohort-attribute", "gender", "--out", "m.faircal"]
            return run("fit", "faces", "--method", "comparing", *options, *more)

        return fit

    @pytest.mark.parametrize("more", [(), ("--leave-out", "5"), ("--stream",)])
    def test_the_method_sees_it(self, fitted, more):
        done = fitted(*more)
        assert done.code == 0, done.err
        assert LEFT_OUT in done.err
        model = faircal.load_model("m.faircal")
        cohort = faircal.load("faces", cohort="public").cohort
        assert len(cohort) == 474
        seen = cohort.seen("embedding")
        strangers = (seen.vectors @ seen.vectors.T)[seen.person[:, None] != seen.person[None]]
        assert model.diagnostics_.figures["strangers"] == pytest.approx(strangers.mean(), abs=1e-6)

    def test_the_card_says_whose_vectors(self, fitted):
        assert fitted().code == 0
        card = faircal.model_card("m.faircal")
        found = card.facts["cohort"]
        assert found["groups"]["F"] == {"people": 78, "images": 234}
        names = ("name", "attribute", "people", "images", "licence", "provenance", "simulated")
        expected = ["Public", "gender", 158, 474, "CC0", "drawn", True]
        assert [found[name] for name in names] == expected
        assert "It compares with a cohort of 158 people in 2 groups" in card.facts["limits"][-1]
        for words in ("## Cohort", "| Licence | CC0 |", "| F | 78 | 234 |"):
            assert words in card.markdown

    def test_who_looks_for_the_data_of_a_model_finds_it(self, fitted):
        """That is without a cohort, as `threshold` reads it."""
        assert fitted().code == 0
        made = faircal.load_model("m.faircal").about_.provenance
        assert made.data_sha256 == faircal.load("faces").hash()

    def test_a_method_that_takes_none(self, home, monkeypatch, run):
        monkeypatch.chdir(home)
        done = run("fit", "faces", "--cohort", "public", "--out", "f.faircal")
        assert done.code == 2
        assert "method faircal takes no --cohort; leave it out" in done.err
        assert (
            faircal.fit_model("faces", "f.faircal", clusters=4).model.about_.provenance.cohort == {}
        )

    def test_without_one(self, home, monkeypatch, run):
        monkeypatch.chdir(home)
        done = run("fit", "faces", "--method", "comparing", "--out", "n.faircal")
        assert done.code == 2
        assert "comparing cannot be used: it needs a cohort: --cohort DIR" in done.err
        done = run("fit", "faces", "--cohort-attribute", "gender", "--out", "n.faircal")
        assert done.code == 2
        assert "--cohort-attribute: goes with --cohort" in done.err


class TestCohortFairCal:
    """The method `cohort`: one clear line, or a model."""

    @pytest.fixture
    def fit(self, home, public, monkeypatch, run):
        monkeypatch.chdir(home)
        options = ["--method", "cohort", "--cohort", public, "--out", public / "m.faircal"]
        return lambda data="faces", *more: run("fit", data, *options, *more)

    def test_what_is_unlike_the_cohort_is_said(self, fit, public, run, tmp_path, without_figures):
        thinned(public, lambda row: row["ethnicity"] in ("Asian", "African"))
        kinds, note = "ethnicity+gender", "are unlike all groups of the cohort"
        done = fit("faces", "--cohort-attribute", kinds)
        assert done.code == 0, done.err
        assert f"% of calibration images {note}" in done.err
        done = run("score", public / "m.faircal", "faces", "--out", tmp_path / "s.parquet")
        assert done.code == 0, done.err
        assert f"% of images in use {note}" in done.err
        options = ["--methods", "cohort", "--cohort", public, "--cohort-attribute", kinds]
        done = run("benchmark", "faces", *options, "--jobs", "1", "--out", tmp_path / "b")
        assert done.code == 0, done.err
        assert f"% of images in use {note}" in (tmp_path / "b" / "run.json").read_text()
        assert f"% of images in use {note}" in (tmp_path / "b" / "report.html").read_text()

    def test_nobody_is_in_two_groups(self, fit, public):
        """Three people of two groups; the only one of the second has most images in the first."""
        thinned(public, lambda row: number(row) in (7, 8))
        table = pacsv.read_csv(public / "images.csv").to_pandas()
        table["kind"] = ["b", *"a" * (len(table) - 1)]
        table.to_csv(public / "images.csv", index=False)
        done = fit("faces", "--cohort-attribute", "kind")
        assert done.code == 2
        assert "each person in one group, found people: 2, groups: 1; add people" in done.err
        assert "Traceback" not in done.err

    def test_scores_that_are_no_cosines(self, fit, home, tmp_path):
        data = shutil.copytree(home / "faces", tmp_path / "scored")
        table = pacsv.read_csv(data / "pairs.csv").to_pandas()
        table["score"] = faircal.load(data).scores ** 3
        table.to_csv(data / "pairs.csv", index=False)
        done = fit(data, "--cohort-attribute", "gender")
        assert done.code == 2
        assert "leave out the column 'score'" in done.err

    @pytest.mark.parametrize("genuine", [0, 1])
    def test_one_class(self, fit, home, tmp_path, genuine):
        data = shutil.copytree(home / "faces", tmp_path / "one")
        table = pacsv.read_csv(data / "pairs.csv").to_pandas()
        table[table["genuine"] == genuine].to_csv(data / "pairs.csv", index=False)
        done = fit(data, "--cohort-attribute", "gender")
        assert done.code == (0 if genuine else 2), done.err
        if genuine:
            assert "all calibration pairs are genuine" in done.err
            assert "threshold" in done.err
            assert "--imposters-from COHORT" in done.err
        else:
            assert "expected genuine pairs, found one class only" in done.err

    def test_other_dimension(self, fit, public):
        np.save(public / "embeddings.npy", np.load(public / "embeddings.npy")[:, :8])
        done = fit("faces", "--cohort-attribute", "gender")
        assert done.code == 2
        assert "expected 16-d embeddings" in done.err


class TestBenchmark:
    OPTIONS = ("--methods", "baseline,comparing", "--jobs", "1", "--cohort", "public")

    def test_run_says_whose(self, home, monkeypatch, run, without_figures):
        monkeypatch.chdir(home)
        done = run("benchmark", "faces", *self.OPTIONS, "--out", "results")
        assert done.code == 0, done.err
        assert LEFT_OUT in done.err
        run = json.loads((home / "results" / "run.json").read_text())
        assert (run["cohort"]["people"], run["cohort"]["licence"]) == (158, "CC0")
        assert any(LEFT_OUT in note for note in run["notes"])
        strangers = [fit["figures"].get("strangers") for fit in run["fits"]]
        assert len({value for value in strangers if value is not None}) == 1

    def test_without_one_it_is_left_out(self, home, monkeypatch, run):
        monkeypatch.chdir(home)
        with pytest.raises(faircal.DataError, match="comparing cannot run: it needs a cohort"):
            faircal.benchmark("faces", "none", methods=["comparing"])
        data = faircal.load("faces")
        assert Comparing.unusable_reason(data, None).startswith("it needs a cohort")


@pytest.fixture
def public(home, tmp_path):
    """The cohort's folder, to be spoilt."""
    return shutil.copytree(home / "public", tmp_path / "public")


def thinned(folder, keep):
    """Keep the images for which `keep` is true, of the row as a dictionary."""
    table = pacsv.read_csv(folder / "images.csv")
    rows = np.array([keep(row) for row in table.to_pylist()])
    pacsv.write_csv(table.filter(rows), folder / "images.csv")
    np.save(folder / "embeddings.npy", np.load(folder / "embeddings.npy")[rows])


def number(row):
    return int(row["identity"].lstrip("cp"))


class TestCheck:
    def test_balanced(self, public, run):
        done = run("check", public, "--json")
        facts = json.loads(done.out)
        assert (done.code, facts["usable"], facts["faults"]) == (0, True, [])
        assert {row["people"] for row in facts["groups"]} == {20}
        assert (facts["licence"], facts["identities"], facts["images"]) == ("CC0", 160, 480)
        text = run("check", public, "--attribute", "gender").out
        assert "F            80      240" in text
        assert "no faults found" in text

    def test_few_and_out_of_balance(self, public, run):
        firsts: dict[str, set[str]] = {}

        def keep(row):
            group = f"{row['ethnicity']} {row['gender']}"
            most = {"Asian F": 5, "African M": 9}.get(group, 20)
            people = firsts.setdefault(group, set())
            if len(people) < most:
                people.add(row["identity"])
            return row["identity"] in people

        thinned(public, keep)
        done = run("check", public)
        assert done.code == 0
        for words in (
            "groups of 5 people or fewer, which are too few: 1 (for example 'Asian F' has 5)",
            "groups of fewer than 10 people, which are few: 1 (for example 'African M' has 9)",
            "groups out of balance: 8 (for example 20 people in 'African F', 5 in 'Asian F')",
        ):
            assert words in done.out

    def test_a_person_in_two_groups_and_one_unknown(self, public, run):
        table = pacsv.read_csv(public / "images.csv").to_pandas()
        table.loc[0, "gender"] = "M" if table.loc[0, "gender"] == "F" else "F"
        table.loc[5, "gender"] = None
        table.to_csv(public / "images.csv", index=False)
        done = run("check", public)
        assert done.code == 0
        assert "people in two groups: 1 (for example identity " in done.out
        assert "images of unknown group: 1" in done.out

    @pytest.mark.parametrize(
        ("keep", "words"),
        [
            (
                lambda row: (row["ethnicity"], row["gender"]) == ("Asian", "F"),
                "found 'Asian F' alone",
            ),
            (lambda row: number(row) == 7, "expected a cohort of people, found one person"),
            (lambda row: number(row) in (7, 30), "two or more people in a group"),
        ],
    )
    def test_of_no_use(self, public, run, keep, words):
        thinned(public, keep)
        done = run("check", public)
        assert done.code == 2
        assert words in done.err
        assert done.err.count("\n") == 1

    def test_vectors(self, public, run):
        vectors = np.load(public / "embeddings.npy")
        vectors[3] = np.nan
        np.save(public / "embeddings.npy", vectors)
        done = run("check", public)
        assert done.code == 2
        assert "row 4: NaN, infinite or zero vector (1 such images)" in done.err
