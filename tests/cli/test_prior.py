"""`faircal score --prior` and `faircal audit --label-noise`."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

import faircal
from faircal.calibrators.prior import SHARE_FIGURE, estimate_prior, shift_prior

NOISE = Path("out/label_noise.csv")
#: What the models of the small world were fitted at.
FITTED = 24 / 132


def fitted_at(share, model="baseline.faircal"):
    """Have the model say at which share it was fitted; None: nothing, as older ones do."""
    loaded = faircal.load_model(model)
    loaded.diagnostics_.figures.pop(SHARE_FIGURE, None)
    if share is not None:
        loaded.diagnostics_.figures[SHARE_FIGURE] = share
    loaded.save(model)
    return loaded


def words(*more, model="baseline.faircal", data="faces", out="s.parquet"):
    return ["score", model, data, "--out", out, *map(str, more)]


def probabilities(path="s.parquet"):
    return np.asarray(pq.read_table(path)["probability"])


class TestGivenShare:
    def test_probabilities_move_and_scores_stay(self, world, run_here):
        model = fitted_at(0.25)
        assert run_here(words(out="plain.parquet")).code == 0
        done = run_here(words("--prior", 0.001, "--json"))
        assert done.code == 0
        plain, moved = (pq.read_table(f"{name}.parquet") for name in ("plain", "s"))
        said = model.predict_proba(faircal.load("faces"))
        expected = shift_prior(said, calibrated_at=0.25, prior=0.001)
        np.testing.assert_allclose(moved["probability"], expected, rtol=1e-12)
        assert moved.drop_columns(["probability", "prior"]).equals(
            plain.drop_columns("probability")
        )
        assert set(moved["prior"].to_pylist()) == {0.001}
        told = json.loads(done.out)
        assert (told["prior"], told["calibrated_at"]) == (0.001, 0.25)

    def test_model_that_does_not_say(self, world, run_here):
        fitted_at(None)
        done = run_here(words("--prior", 0.1))
        assert (done.code, len(done.err.splitlines())) == (2, 1)
        assert "fit it again" in done.err
        assert not Path("s.parquet").exists()

    @pytest.mark.parametrize("prior", ["0", "1", "-1", "guess", "nan"])
    def test_no_share(self, prior, world, run_here):
        fitted_at(0.25)
        done = run_here(words(f"--prior={prior}"))
        assert done.code == 2
        assert "share between 0 and 1" in done.err

    def test_another_share_does_not_go_on(self, world, run_here, monkeypatch, interrupt_at):
        fitted_at(0.25)
        monkeypatch.setattr("faircal.data.Dataset.BATCH", 10)
        with monkeypatch.context() as patch:
            interrupt_at(patch, "score", 100)
            assert run_here(words("--prior", 0.1)).code != 0
        done = run_here(words("--prior", 0.2, "--resume"))
        assert done.code == 2
        assert "prior differs" in done.err
        assert run_here(words("--prior", 0.1, "--resume")).code == 0
        resumed = probabilities()
        assert run_here(words("--prior", 0.1, out="whole.parquet")).code == 0
        np.testing.assert_array_equal(resumed, probabilities("whole.parquet"))


@pytest.mark.parametrize("stream", [[], ["--stream"]])
def test_fit_remembers_its_share(stream, world, run_here):
    fit = ["fit", "faces", "--method", "baseline", "--out", "new.faircal", *stream]
    assert run_here(fit).code == 0
    figures = faircal.load_model("new.faircal").diagnostics_.figures
    assert figures[SHARE_FIGURE] == pytest.approx(FITTED)


class TestEstimatedShare:
    @pytest.fixture
    def unlabelled(self, world):
        pairs = pacsv.read_csv("faces/pairs.csv").drop_columns(["genuine", "fold"])
        pacsv.write_csv(pairs, "faces/pairs.csv")
        return world

    def expected(self, model, people=True, **more):
        data = faircal.load("faces")
        identity = data.images.identity
        sides = {
            side: identity.take(getattr(data.pairs, side)) if people else getattr(data.pairs, side)
            for side in ("left", "right")
        }
        return estimate_prior(model.predict_proba(data), calibrated_at=FITTED, **sides, **more)

    def test_from_pairs_without_labels_part_by_part(self, unlabelled, run_here, monkeypatch):
        model = fitted_at(FITTED)
        monkeypatch.setattr("faircal.data.Dataset.BATCH", 10)
        done = run_here(words("--prior", "estimate", "--json"))
        assert done.code == 0
        expected = self.expected(model)
        told = json.loads(done.out)
        assert told["prior"] == pytest.approx(expected.value)
        assert told["estimate"]["low"] == pytest.approx(expected.low)
        assert told["estimate"]["people"] == 8
        assert f"estimated at {expected.value:.3g}" in done.err
        assert "only their share differs" in done.err
        said = model.predict_proba(faircal.load("faces"))
        moved = shift_prior(said, calibrated_at=FITTED, prior=told["prior"])
        np.testing.assert_allclose(probabilities(), moved, rtol=1e-9)

    def test_images_where_people_are_unknown(self, unlabelled, run_here):
        model = fitted_at(FITTED)
        expected = self.expected(model, people=False)
        images = pacsv.read_csv("faces/images.csv").drop_columns("identity")
        pacsv.write_csv(images, "faces/images.csv")
        done = run_here(words("--prior", "estimate", "--json"))
        assert json.loads(done.out)["estimate"]["high"] == pytest.approx(expected.high)
        assert "share an image" in done.err

    def test_people_of_a_table_have_the_same_number_in_all_parts(
        self, world, run_here, monkeypatch
    ):
        model = fitted_at(FITTED)
        expected = self.expected(model)
        data = faircal.load("faces")
        table = pacsv.read_csv("scores.csv")
        identity = data.images.identity
        for side in ("left", "right"):
            names = [identity.names[c] for c in identity.take(getattr(data.pairs, side))]
            table = table.append_column(f"{side}_identity", pa.array(names))
        pacsv.write_csv(table, "scores.csv")
        monkeypatch.setattr("faircal.data.Dataset.BATCH", 10)
        done = run_here(words("--prior", "estimate", "--json", data="scores.csv"))
        told = json.loads(done.out)["estimate"]
        assert told["people"] == 8
        assert told["high"] == pytest.approx(expected.high, rel=1e-4)

    def test_many_pairs_are_drawn_from(self, unlabelled, run_here, monkeypatch):
        fitted_at(FITTED)
        monkeypatch.setattr("faircal.methods.prior.MOST_PAIRS", 66)
        done = run_here(words("--prior", "estimate", "--json"))
        told = json.loads(done.out)
        assert 40 < told["estimate"]["pairs"] < 92
        assert told["pairs"] == 132
        assert f"from {told['estimate']['pairs']} of 132 pairs" in done.err

    def test_nothing_genuine(self, unlabelled, run_here):
        """Probabilities of 0 for all would be of no use: the interval is told instead."""
        fitted_at(0.25)
        data = faircal.load("faces")
        unlike = data.scores < -0.2
        pairs = pacsv.read_csv("faces/pairs.csv").filter(pa.array(unlike))
        pacsv.write_csv(pairs, "faces/pairs.csv")
        done = run_here(words("--prior", "estimate"))
        assert (done.code, len(done.err.splitlines())) == (2, 1)
        assert "nothing in the data speaks for genuine pairs" in done.err
        assert not Path("s.parquet").exists()


class TestLabelNoise:
    def audit(self, *more, data="faces"):
        options = ["--attribute", "ethnicity", "--threshold", "0.5", "--out", "out"]
        return ["audit", data, *options, *map(str, more)]

    @pytest.fixture(autouse=True)
    def _quick(self, monkeypatch):
        """As where Matplotlib is not installed: no figures."""
        monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)

    def test_written_and_shown(self, world, run_here):
        done = run_here(self.audit("--label-noise", 0.05))
        assert done.code == 0
        with NOISE.open() as file:
            rows = list(csv.DictReader(file))
        assert {row["group"] for row in rows} == {"Asian", "Black", "all"}
        gap = next(r for r in rows if r["metric"] == "fpr_gap" and not r["condition"])
        assert float(gap["noise"]) == 0.05
        assert float(gap["low"]) <= float(gap["median"]) <= float(gap["high"])
        assert "with 5 % of labels wrong" in done.out
        assert f"{100 * float(gap['value']):.3f}" in done.out
        assert "wrong labels" in done.err
        assert json.loads(Path("out/run.json").read_text())["settings"]["label_noise"] == 0.05
        # An audit without it leaves none behind.
        assert run_here(self.audit()).code == 0
        assert not NOISE.exists()

    def test_json(self, world, run_here):
        done = run_here(self.audit("--label-noise", 0.05, "--json", data="scores.csv"))
        rows = json.loads(done.out)["label_noise"]
        assert {row["metric"] for row in rows} >= {"fpr", "fnr", "fpr_gap", "fnr_aad"}

    @pytest.mark.parametrize(
        ("more", "match"),
        [
            (["--label-noise", 1.5], "label-noise"),
            (["--label-noise", 0], "label-noise"),
        ],
    )
    def test_bad_input(self, more, match, world, run_here):
        done = run_here(self.audit(*more))
        assert done.code == 2
        assert match in done.err
        assert not Path("out/results.csv").exists()

    def test_no_groups(self, world, run_here):
        done = run_here(["audit", "plain", "--out", "out", "--label-noise", "0.05"])
        assert done.code == 2
        assert "two or more groups" in done.err
