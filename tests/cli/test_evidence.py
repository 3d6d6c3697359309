"""Evidence no stronger than the people of calibration can show: from the fit to every answer."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow.csv import write_csv

import faircal
from faircal._base.files import file_digest
from faircal.data.dataset_folder import save_dataset
from faircal.metrics import EvidenceBounds
from faircal.metrics.intervals.dyadic import Dyads
from faircal.production.serving.service import Service, ServiceSettings

AS_CONNECTED = (
    "nobody is identified: images that genuine pairs connect are one person, "
    "any other is one of its own"
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of 100 people, a model of it and the pairs that were left out."""
    monkeypatch.chdir(tmp_path)
    data = faircal.simulate("small", seed=0, people=100, pairs=1500)
    save_dataset(data, "faces")
    faircal.fit_model("faces", "m.faircal", method="baseline", leave_out="5")
    return data.split(test_fold=5)


def test_file_and_service_say_the_same_and_no_more(folder, run_here):
    cal, test = folder
    model = faircal.load_model("m.faircal")
    bounds, people = model.about_.evidence, cal.people
    units = [
        Dyads(people.left, people.right, np.flatnonzero(cal.genuine == kind)).effective_people
        for kind in (True, False)
    ]
    assert bounds.unit == "people"
    assert bounds[2:4] == pytest.approx(units)
    assert max(units) <= 80  # four fifths of them were fitted on
    assert 1 < np.exp(bounds.high) <= units[1] + 1
    assert 1 < np.exp(-bounds.low) <= units[0] + 1

    words = "score m.faircal faces --fold 5 --prior 0.01 --add log_likelihood_ratio --out s.parquet"
    done = run_here(words.split())
    assert done.code == 0, done.err
    assert f"{np.exp(bounds.high):,.3g} to 1 for one person" in done.err
    table = pq.read_table("s.parquet")
    own = faircal.log_likelihood_ratio(
        model.predict_proba(test), calibrated_at=model.diagnostics_.figures["calibrated_at"]
    )
    ratio, flags = np.asarray(table["log_likelihood_ratio"]), np.asarray(table["at_bound"])
    np.testing.assert_array_equal(ratio, np.clip(own, bounds.low, bounds.high))
    np.testing.assert_array_equal(flags, (own <= bounds.low) | (own >= bounds.high))
    assert 0 < flags.sum() < len(flags)
    odds = np.exp(ratio) * 0.01 / 0.99
    np.testing.assert_allclose(table["probability"], odds / (1 + odds), rtol=1e-9)

    with closing(Service(ServiceSettings(Path("m.faircal"), database=None))) as service:
        for row in (int(np.argmax(own)), int(np.argmin(np.abs(own)))):
            left, right = (
                test.embeddings.vectors[getattr(test.pairs, side)[row]]
                for side in ("left", "right")
            )
            said = service.verify(left, right, prior=0.01).as_json()
            assert said["log_likelihood_ratio"] == pytest.approx(ratio[row], abs=1e-5)
            assert said["probability"] == pytest.approx(table["probability"][row].as_py(), 1e-4)
            assert said["at_bound"] is bool(flags[row])


def test_what_is_measured_stays_the_models_own(folder, run_here):
    """Ranks and calibration errors are of `predict_proba`, which knows no bounds."""
    done = run_here(["score", "m.faircal", "faces", "--fold", "5", "--out", "plain.parquet"])
    assert done.code == 0, done.err
    table = pq.read_table("plain.parquet")
    assert "at_bound" not in table.column_names
    expected = faircal.load_model("m.faircal").predict_proba(folder[1])
    np.testing.assert_array_equal(table["probability"], expected)


def test_an_older_model_file_has_none_and_says_so(folder, run_here):
    model = faircal.load_model("m.faircal")
    faircal.Baseline().fit(folder[0]).save("old.faircal")
    assert faircal.load_model("old.faircal").about_.evidence is None
    for prior in ("--prior 0.01", "--add log_likelihood_ratio"):
        done = run_here(f"score old.faircal faces {prior} --out s.parquet".split())
        assert "has no bounds on evidence" in done.err
        assert "at_bound" not in pq.read_table("s.parquet").column_names
    card = json.loads(run_here(["card", "old.faircal", "--json"]).out)
    assert card["evidence"]["bounds"] is None
    assert "fit it again" in card["evidence"]["words"]
    card = json.loads(run_here(["card", "m.faircal", "--json"]).out)
    assert EvidenceBounds.from_json(card["evidence"]["bounds"]) == model.about_.evidence
    assert card["file"]["sha256"] == file_digest(Path("m.faircal"))


def surveyed(data):
    model = faircal.Baseline().fit(data)
    faircal.survey(model, data)
    return model.about_


def test_where_nobody_is_identified_pairs_stand_for_people(folder):
    cal = folder[0]
    write_csv(pa.table({"score": cal.scores, "genuine": cal.genuine}), "scores.csv")
    about = surveyed(faircal.load("scores.csv"))
    assert about.evidence[2:] == (cal.genuine.sum(), (~cal.genuine).sum(), "pairs")
    assert "people are unknown: pairs stand for them" in about.evidence_note


def test_images_that_genuine_pairs_connect_are_one_person(folder):
    people = np.repeat(np.arange(20), 4)
    image = np.arange(len(people))
    joined = image[:-1][people[:-1] == people[1:]]  # each with the next: all of a person
    left, right = np.append(joined, image), np.append(joined + 1, np.roll(image, 7))
    columns = {"genuine": people[left] == people[right], "left": left, "right": right}
    vectors = folder[0].embeddings.vectors[: len(people)]
    known, unknown = (
        surveyed(faircal.Dataset(embeddings=vectors, pairs=columns, attributes=attributes))
        for attributes in ({"identity": people}, None)
    )
    assert unknown.evidence == known.evidence._replace(unit="images")
    told = known.evidence_note.replace("; at", f" ({AS_CONNECTED}); at")
    assert unknown.evidence_note == told
