"""``faircal choose``: what it prints, what it hands to machines, and what it refuses."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import numpy as np
import pyarrow.csv as pacsv
import pytest

import faircal
from faircal.cli.choose import _fit_command, _show
from faircal.data import PairFiles
from faircal.evaluation.tuning.choice import TrialResult, decide

SIZES = {"people": 80, "images": 400, "pairs": 1200, "dimension": 16}
QUICK = ["--clusters", "2,6", "--starts", "2", "--folds", "3"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A simulated dataset folder whose name has a space."""
    path = tmp_path_factory.mktemp("choose") / "my faces"
    words = [str(word) for key, value in SIZES.items() for word in (f"--{key}", value)]
    from faircal.cli.main import main

    with pytest.raises(SystemExit) as stop:
        main(["simulate", "small", str(path), *words])
    assert stop.value.code == 0
    return path


def test_table_choice_stability_and_the_command_to_fit_it(folder, run_here, tmp_path, monkeypatch):
    done = run_here(["choose", str(folder), *QUICK])
    assert done.code == 0, done.err
    found = faircal.choose(faircal.load(folder), (2, 6), starts=2, n_folds=3)
    chosen = f"{found.n_clusters} clusters, {found.calibrator}"
    for text in (
        "1200 pairs, 3 folds of people held out, 2 starts of K-means",
        "one map",
        f"{found.baseline.worse:+.4f} ± {found.baseline.worse_error:.4f}",
        f"Chosen: {chosen}.",
        "another start of K-means moves a probability by",
        "K: with",
    ):
        assert text in done.out
    monkeypatch.chdir(tmp_path)
    fitted = run_here(shlex.split(done.out.splitlines()[-1])[1:])
    assert fitted.code == 0, fitted.err
    model = faircal.load_model("model.faircal")
    assert (model.n_clusters, model.calibrator) == (found.n_clusters, found.calibrator)


def test_json(folder, run_here):
    options = [
        "--calibrators",
        "platt",
        "--leave-out",
        "5",
        "--seed",
        "2",
        "--within",
        "0",
        "--json",
    ]
    done = run_here(["choose", str(folder), *QUICK, *options])
    assert done.code == 0, done.err
    found = json.loads(done.out)
    cal, _ = faircal.load(folder).split(test_fold=5)
    choice = faircal.choose(cal, (2, 6), ("platt",), starts=2, n_folds=3, random_state=2, within=0)
    assert found["n_clusters"] == choice.n_clusters
    assert found["calibrator"] == "platt"
    assert [row["loss"] for row in found["table"]] == [row.loss for row in choice.table]
    assert found["table"][0]["change"] is None  # no smaller K
    assert found["baseline"]["n_clusters"] == 1
    assert "--leave-out 5 --seed 2" in found["fit"]


def test_one_start(folder, run_here):
    done = run_here(["choose", str(folder), "--clusters", "3", "--starts", "1", "--folds", "3"])
    assert done.code == 0, done.err
    assert "1 start of K-means" in done.out
    assert "not known how much depends on it; take --starts 3" in done.out
    assert "nan" not in done.out


class TestFitCommand:
    @pytest.mark.parametrize(
        ("source", "options", "expected"),
        [
            (PairFiles(Path("faces")), {"clusters": 5, "feature": None}, "--clusters 5"),
            (
                PairFiles(Path("my faces"), (-2.0, 2.0), False, "cuda"),
                {"feature": "arc"},
                "--feature arc --score-range=-2,2 --device cuda --raw",
            ),
        ],
        ids=["plain", "everything"],
    )
    def test_reads_the_same_data_the_same_way(self, source, options, expected):
        text = _fit_command(source, options)
        start = shlex.join(["faircal", "fit", str(source.path), "--method", "faircal"])
        assert text == f"{start} {expected} --out model.faircal"


class TestWords:
    """What is said of choices made by hand; losses are by start and fold."""

    @staticmethod
    def said(capsys, losses, plain, rand=0.5):
        def tried(one):
            return TrialResult(one * np.array([[1.0, 1.01]] * 2), 0.1, 0.02, 0.01, 0.05, 0.99, rand)

        given = {(k, "beta"): tried(loss) for k, loss in losses.items()}
        _show(decide(given, {"beta": tried(plain)}, 1.0), "faces: 9 pairs")
        return " ".join(capsys.readouterr().out.split())

    def test_fewest_clusters_within_the_error(self, capsys):
        text = self.said(capsys, {5: 0.2, 9: 0.3, 20: 0.4}, 0.5)
        assert "Chosen: 5 clusters, beta. It has the least loss on people held out." in text
        assert "from 0.5025 to 0.2010 (-60.0%)" in text
        assert "still fewer may do (--clusters 1,2,5)" in text

    def test_most_clusters(self, capsys):
        text = self.said(capsys, {5: 0.4, 9: 0.3, 20: 0.2}, 0.5)
        assert "nothing with fewer clusters is within one standard error" in text
        assert "more may be better still (--clusters 20,40,80)" in text
        assert "by more than two standard errors in 2 of 2 steps" in text

    def test_fewer_clusters_than_the_best(self, capsys):
        text = self.said(capsys, {5: np.array([0.21, 0.21]), 9: np.array([0.24, 0.17])}, 0.5)
        assert "within one standard error of the best (9 clusters, beta); fewer clusters" in text

    def test_clusters_that_gain_nothing(self, capsys):
        text = self.said(capsys, {5: 0.2, 9: 0.3}, 0.2)
        assert "one map for all pairs does as well" in text

    def test_one_cluster_is_shown_once(self, capsys):
        text = self.said(capsys, {1: 0.2, 9: 0.3}, 0.2)
        assert "one map" not in text
        assert "Chosen: 1 cluster, beta." in text
        assert "With one cluster nothing depends on the start." in text

    @pytest.mark.parametrize(
        ("rand", "words"),
        [(0.9, "nearly the same"), (0.5, "alike in part"), (0.1, "mostly different")],
    )
    def test_how_alike_clusterings_are(self, capsys, rand, words):
        assert f"clusters themselves are {words} (adjusted Rand" in self.said(
            capsys, {5: 0.2}, 0.5, rand
        )


def one_class(home):
    table = pacsv.read_csv(home / "faces/pairs.csv")
    keep = [value == 1 for value in table["genuine"].to_pylist()]
    pacsv.write_csv(table.filter(keep), home / "faces/pairs.csv")


@pytest.mark.parametrize(
    ("words", "spoil", "place", "remedy"),
    [
        ("scores.csv --feature score", None, "scores.csv", "add embeddings ('faircal embed')"),
        ("faces", one_class, "faces", "add the other class"),
        ("faces", None, "faces: too few people to hold out", "add people"),
        ("two", None, "several features", "--feature"),
        ("faces --clusters 5,x", None, "--clusters", "expected int values"),
        ("faces --clusters 0", None, "clusters: expected a whole number of 1", "found 0"),
        ("faces --calibrators bta", None, "bta", "did you mean beta"),
        ("faces --leave-out 7", None, "no fold '7'", "expected one of 1, 2"),
        ("nowhere", None, "nowhere", "check the path"),
    ],
)
def test_bad_input_is_one_line(words, spoil, place, remedy, world, run_here):
    if spoil is not None:
        spoil(world)
    done = run_here(["choose", *words.split()])
    assert done.code == 2
    assert done.out == ""
    assert len(done.err.splitlines()) == 1
    assert place in done.err
    assert remedy in done.err


def test_more_clusters_than_images(folder, run_here):
    done = run_here(["choose", str(folder), "--clusters", "2,400"])
    assert done.code == 2
    assert "found 400; choose fewer clusters (--clusters)" in done.err
    assert len(done.err.splitlines()) == 1
