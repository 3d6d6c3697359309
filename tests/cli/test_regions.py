"""``faircal regions`` as a user runs it."""

from __future__ import annotations

import csv
import json

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pytest

from faircal.report import ResultsFolder

PEOPLE, SHOTS, DIMENSION = 120, 3, 24


@pytest.fixture(scope="module")
def faces(tmp_path_factory):
    """A dataset folder in which a quarter of the people look alike to the network."""
    home = tmp_path_factory.mktemp("regions") / "faces"
    home.mkdir()
    rng = np.random.default_rng(5)
    own = rng.standard_normal((PEOPLE, DIMENSION))
    own[:30] = 0.7 * rng.standard_normal(DIMENSION) + 0.7 * own[:30]
    person = np.repeat(np.arange(PEOPLE), SHOTS)
    vectors = own[person] + 0.8 * rng.standard_normal((len(person), DIMENSION))
    first = SHOTS * np.arange(PEOPLE)
    left = np.concatenate([first, first, rng.integers(0, len(person), 60 * PEOPLE)])
    right = np.concatenate([first + 1, first + 2, rng.integers(0, len(person), 60 * PEOPLE)])
    keep = left != right
    left, right = left[keep], right[keep]
    np.save(home / "embeddings.npy", vectors.astype(np.float32))
    images = {"image_id": np.arange(len(person)), "identity": person}
    pacsv.write_csv(pa.table(images), home / "images.csv")
    pairs = {"left": left, "right": right, "genuine": (person[left] == person[right]).astype(int)}
    pacsv.write_csv(pa.table(pairs), home / "pairs.csv")
    return home


def test_regions_are_found_and_written(faces, tmp_path, run_here):
    out = tmp_path / "out"
    done = run_here(["regions", str(faces), "--out", str(out), "--clusters", "3,6"])
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert "of 9 regions of embedding space" not in lines[0]  # both halves make their own
    assert "of 18 regions of embedding space have more false matches" in lines[0]
    assert any("false matches" in line and "against" in line for line in lines[1:])
    with (out / "regions.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 18
    assert float(rows[0]["found"]) == 1
    assert float(rows[0]["low"]) > float(rows[0]["rest_fpr"])
    assert json.loads(rows[0]["examples"])
    record = json.loads((out / "regions.json").read_text())
    assert record["regions"] == 18
    assert record["false_discoveries"] == 0.05
    names = {path.name for path in (out / "figures").iterdir()}
    assert {"regions-fpr.png", "regions-fpr.csv", "regions-calibration.pdf"} <= names


def test_a_report_shows_the_regions_of_its_data_alone(faces, tmp_path, run_here):
    out, home = tmp_path / "out", tmp_path / "two"
    (home / "embeddings").mkdir(parents=True)
    for name in ("images.csv", "pairs.csv"):
        (home / name).write_text((faces / name).read_text())
    for name in ("one", "two"):
        (home / "embeddings" / f"{name}.npy").write_bytes((faces / "embeddings.npy").read_bytes())
    quick = ["--out", str(out), "--clusters", "3"]
    # One feature, audited by itself or beside another.
    for audited in (["--features", "one"], []):
        assert run_here(["audit", str(home), "--out", str(out), *audited]).code == 0
        assert run_here(["regions", str(home), "--feature", "one", *quick]).code == 0
        assert len(ResultsFolder.read(out).regions) == 6
    assert run_here(["audit", str(faces), "--out", str(out)]).code == 0
    assert (out / "regions.csv").exists()
    assert ResultsFolder.read(out).regions == []
    assert run_here(["regions", str(faces), *quick]).code == 0
    assert len(ResultsFolder.read(out).regions) == 6
    (out / "regions.json").unlink()
    assert ResultsFolder.read(out).regions == []


def test_regions_for_machines(faces, tmp_path, run_here):
    words = ["regions", str(faces), "--out", str(tmp_path / "o"), "--clusters", "3", "--json"]
    done = run_here([*words, "--threshold", "0.6"])
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert found["threshold"] == 0.6
    assert len(found["rows"]) == 6
    assert "join the two halves" in done.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("scores.csv", "--out", "o"), "need embeddings"),
        (("faces", "--out", "o"), "expected at least 40 people"),
        (("faces", "--out", "notes.txt"), "it is a file"),
        (("faces", "--out", "o", "--rate", "2"), "--rate"),
        (("faces", "--out", "o", "--clusters", "1"), "--clusters: expected numbers of 2 or more"),
        (("faces", "--out", "o", "--rate", "nan"), "--rate: expected a share"),
        (("faces", "--out", "o", "--false-discoveries", "nan"), "--false-discoveries: expected"),
        (("two", "--out", "o"), "choose one with --feature"),
    ],
)
def test_bad_input_is_one_line_and_nothing_written(world, run_here, words, said):
    done = run_here(["regions", *words])
    assert done.code == 2
    assert said in done.err
    assert len(done.err.splitlines()) == 1
    assert not (world / "o").exists()
