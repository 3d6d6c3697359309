"""Data that contradicts itself, or tests on people of the fit: refused alike by every command."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pytest

import faircal
from faircal.data.dataset_folder import save_dataset

OUT = ["--out", "OUT"]
COMMANDS = {
    "fit": ["fit", "DATA", "--method", "baseline", *OUT],
    "fit --stream": ["fit", "DATA", "--method", "baseline", "--stream", *OUT],
    "threshold": ["threshold", "DATA", "--fpr", "0.2"],
    "benchmark": ["benchmark", "DATA", "--methods", "baseline", "--jobs", "1", *OUT],
}


@pytest.fixture(scope="module")
def sound():
    return faircal.simulate("small", seed=0, people=160, images=640, pairs=2000)


def saved(data, folder, genuine=None, fold=None):
    """Write `data` with other labels or folds."""
    save_dataset(data, folder)
    pairs = pacsv.read_csv(folder / "pairs.csv").to_pydict()
    if genuine is not None:
        pairs["genuine"] = genuine.astype(int)
    if fold is not None:
        pairs["fold"] = fold
    pacsv.write_csv(pa.table(pairs), folder / "pairs.csv")
    return folder


def test_scores_that_are_distances_are_said(tmp_path, run_here):
    table = tmp_path / "scores.csv"
    lines = ["genuine,score"] + [f"{i % 2},{0.3 - 0.5 * (i % 2) + 0.001 * i}" for i in range(400)]
    table.write_text("\n".join(lines) + "\n")
    words = ["fit", str(table), "--method", "baseline", "--out", str(tmp_path / "m.faircal")]
    for command in (words, ["threshold", str(table), "--fpr", "0.1", "--assume-independent"]):
        done = run_here(command)
        assert "genuine pairs score lower than imposter pairs, on average" in done.err
        assert "Traceback" not in done.err


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.usefixtures("without_figures")
def test_labels_that_contradict_identities(command, sound, tmp_path, run_here):
    few = sound.genuine.copy()
    few[:: len(few) // 16] ^= True
    for name, genuine in (("reversed", ~sound.genuine), ("few", few)):
        data, out = saved(sound, tmp_path / name, genuine), tmp_path / f"{name}-out"
        known = {"DATA": str(data), "OUT": str(out)}
        done = run_here([known.get(word, word) for word in COMMANDS[command]])
        if name == "reversed":
            assert (done.code, done.out, out.exists()) == (2, "", False)
            assert done.err.count("\n") == 1
            assert " pairs (100 %) can't be right: " in done.err
            assert "; data with more than 1 % of such pairs is refused" in done.err
        else:
            assert done.code == 0, done.err
            said = " ".join(done.err.split())
            assert said.count("16 of 2000 pairs (0.8 %) can't be right: ") == 1


@pytest.mark.parametrize("more", [[], ["--stream"]])
@pytest.mark.usefixtures("without_figures")
def test_an_audit_counts_them(more, sound, tmp_path, run_here):
    """It measures what is there, and is used for nothing else."""
    data, out = saved(sound, tmp_path / "d", ~sound.genuine), tmp_path / "out"
    assert run_here(["audit", str(data), "--out", str(out), *more]).code == 0
    (note,) = json.loads((out / "run.json").read_text())["notes"]
    assert "2000 of 2000 pairs (100 %) can't be right: " in note


def test_check_says_which_data_is_refused(sound, tmp_path, run_here):
    done = run_here(["check", str(saved(sound, tmp_path / "d", ~sound.genuine)), "--json"])
    assert done.code == 2
    faults = {fault["what"]: fault["severity"] for fault in json.loads(done.out)["faults"]}
    assert faults["imposter pairs of one identity"] == "error"


def test_people_who_cross_folds(sound, tmp_path, run_here):
    data = saved(sound, tmp_path / "d", fold=np.arange(len(sound)) % 5)
    for words in (COMMANDS["benchmark"], [*COMMANDS["fit"], "--leave-out", "3"]):
        out = tmp_path / "out"
        known = {"DATA": str(data), "OUT": str(out)}
        done = run_here([known.get(word, word) for word in words])
        assert (done.code, done.out, out.exists()) == (2, "", False)
        assert " that cross folds: " in done.err
        assert "drop the column 'fold' to have disjoint folds drawn (above 5 %" in done.err


def test_an_audit_warns_of_people_of_the_fit(sound, tmp_path, run_here):
    data, model = save_dataset(sound, tmp_path / "d"), tmp_path / "m.faircal"
    words = ["fit", str(data), "--method", "baseline", "--leave-out", "5", "--out", str(model)]
    assert run_here(words).code == 0
    for fold, own in (("5", False), ("1", True)):
        out = tmp_path / f"audit{fold}"
        words = ["audit", str(data), "--model", str(model), "--fold", fold, "--out", str(out)]
        assert run_here(words).code == 0
        notes = json.loads((out / "run.json").read_text())["notes"]
        assert any("the model was fitted on these very people" in note for note in notes) is own


@pytest.mark.parametrize(
    ("label", "told"),
    [
        (
            1,
            "all 9 pairs are genuine: FPR, FNR at a global FPR, AUROC and Cllr need imposter pairs",
        ),
        (0, "all 9 pairs are imposters: FNR, TPR, AUROC and Cllr need genuine pairs"),
    ],
)
@pytest.mark.usefixtures("without_figures")
def test_an_audit_of_one_class(label, told, tmp_path, run_here):
    path = tmp_path / "t.csv"
    path.write_text("genuine,score\n" + f"{label},0.5\n" * 9)
    done = run_here(["audit", str(path), "--out", str(tmp_path / "out")])
    assert done.code == 0
    assert f"{told} and are not measured; add some" in " ".join(done.err.split())
