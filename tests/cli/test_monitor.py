"""``faircal monitor``: quiet and drifted streams, feedback, states, reports, what is refused."""

from __future__ import annotations

import csv
import json
import shutil
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

import faircal
from faircal._base.container import pack, unpack
from faircal.data.dataset_folder import save_dataset
from faircal.production.monitoring import survey
from faircal.production.scoring.judging import Placing


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A model, pairs of other people like its own, pairs of one group, and both scored."""
    home = tmp_path_factory.mktemp("monitor")
    data = faircal.simulate("small", seed=1, people=1200, images=7200, pairs=24_000, dimension=32)
    folds = data.pairs.fold
    cal, quiet = (data.subset(np.isin(folds, which)) for which in ((1, 2, 3), (4, 5)))
    model = faircal.FairCal(n_clusters=20).fit(cal)
    model.save(home / "old.faircal")
    survey(model, cal)
    model.save(home / "model.faircal")
    groups = quiet.images.attributes["ethnicity"].take(quiet.pairs.left)
    drifted = quiet.subset(groups == 0)
    for name, part in {"quiet": quiet, "drifted": drifted}.items():
        save_dataset(part, home / name)
        pq.write_table(scored(model, part), home / f"{name}.parquet")
    pacsv.write_csv(scored(model, drifted), home / "drifted.csv")
    return home


def scored(model, data):
    """What ``faircal score --add clusters,outside --keep genuine`` writes."""
    said, pairs = model.apply(data), data.pairs
    places = Placing.of_model(model)(data.embeddings, data.used_images())
    ids = np.asarray(data.images.ids)
    table = {"left": ids[pairs.left], "right": ids[pairs.right]}
    table |= {"score": said.score, "probability": said.probability}
    table["genuine"] = pairs.genuine.astype(np.int8)
    for name in ("cluster", "outside"):
        for side in ("left", "right"):
            table[f"{side}_{name}"] = getattr(places, name)[getattr(pairs, side)]
    return pa.table(table)


@pytest.fixture
def home(made, tmp_path, monkeypatch):
    """A copy to work in."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def monitor(home, run_here):
    """Return a function that runs the command, and says what JSON it printed where asked to."""

    def run(*words):
        done = run_here(["monitor", "model.faircal", *words])
        done.found = json.loads(done.out) if "--json" in words and done.code < 2 else None
        return done

    return run


def changed(home, name, **columns):
    """Write quiet.parquet with other columns (None: without); return its name."""
    table = pq.read_table(home / "quiet.parquet")
    for column, values in columns.items():
        if column in table.column_names:
            table = table.drop_columns([column])
        if values is not None:
            table = table.append_column(column, pa.array(values))
    pq.write_table(table, home / name)
    return name


def column(home, name):
    return np.asarray(pq.read_table(home / "quiet.parquet")[name]).copy()


# ------------------------------------------------------------------- verdicts


@pytest.mark.parametrize("source", ["quiet", "quiet.parquet"])
def test_other_people_like_those_of_calibration_are_quiet(monitor, source):
    done = monitor(source)
    assert done.code == 0, done.out
    assert done.out.count("quiet") >= 4
    assert "ALARM" not in done.out


@pytest.mark.parametrize(
    "sources",
    [("drifted",), ("drifted.csv",), ("quiet.parquet", "drifted.parquet"), ("quiet", "drifted")],
)
def test_people_of_one_group_only_raise_the_alarm(monitor, sources):
    done = monitor(*sources, "--json")
    assert done.code == 1
    alarms = {finding["name"] for finding in done.found["findings"] if finding["alarm"]}
    assert "clusters" in alarms
    assert done.found["due"]
    assert any("fit again" in text for text in done.found["advice"])


@pytest.mark.parametrize(("more", "once"), [((), True), (("--ordered",), False)])
def test_one_file_in_no_order_is_looked_at_once_with_the_whole_rate(monitor, more, once):
    found = monitor("quiet.parquet", "--json", *more).found
    (scores,) = (each for each in found["findings"] if each["name"] == "scores")
    assert (scores["details"]["window_pairs"] == found["pairs"]) is once
    assert (scores["level"] > 0.002) is once


def test_folder_and_scored_file_give_the_same(monitor):
    """But for who is known: a folder knows identities, a file only its images."""
    folder, file = (monitor(name, "--json").found for name in ("quiet", "quiet.parquet"))
    assert folder["pairs"] == file["pairs"] > 9000
    assert folder["feedback"] == file["feedback"] == file["pairs"]
    for name in ("score", "probability", "images", "outside", "genuine", "expected"):
        assert folder["timeline"][0][name] == pytest.approx(file["timeline"][0][name])
    known = [found["findings"][0]["details"]["known"] for found in (folder, file)]
    assert known == ["people", "images"]


def test_identities_in_a_file_are_people(home, monitor):
    name = changed(
        home,
        "who.csv.parquet",
        left_identity=column(home, "left"),
        right_identity=column(home, "right"),
    )
    found = monitor(name, "--json").found
    assert found["findings"][0]["details"]["known"] == "people"


def test_higher_scores_of_all_pairs_raise_the_alarm(home, monitor):
    score = np.clip(column(home, "score") + 0.3, 0, 1)
    name = changed(home, "other.parquet", score=score)
    found = monitor(name, "--json").found
    assert [f["name"] for f in found["findings"] if f["alarm"]] == ["scores"]


def test_wrong_labels_raise_the_alarm_of_calibration_only(home, monitor):
    labels = column(home, "genuine")
    labels[::3] = 1 - labels[::3]
    found = monitor(changed(home, "other.parquet", genuine=labels), "--json").found
    assert [f["name"] for f in found["findings"] if f["alarm"]] == ["calibration"]


def test_many_images_outside_raise_the_alarm(home, monitor):
    outside = column(home, "left_outside")
    outside[::5] = True
    found = monitor(changed(home, "other.parquet", left_outside=outside), "--json").found
    assert [f["name"] for f in found["findings"] if f["alarm"]] == ["outside"]


def test_too_few_pairs_are_said_to_be_too_few_and_are_no_alarm(home, monitor):
    pq.write_table(pq.read_table(home / "drifted.parquet").slice(0, 100), home / "few.parquet")
    done = monitor("few.parquet")
    assert done.code == 0
    assert done.out.count("not enough data") == 4
    assert "100 pairs so far: not enough" in done.out


def test_labels_on_some_pairs_are_feedback_on_those(home, monitor):
    labels = [
        int(value) if i % 10 == 0 else None for i, value in enumerate(column(home, "genuine"))
    ]
    found = monitor(changed(home, "some.parquet", genuine=labels), "--json").found
    assert found["feedback"] == -(-found["pairs"] // 10)
    assert found["timeline"][0]["genuine"] == sum(label == 1 for label in labels)


def test_without_labels_and_places_scores_alone_are_watched(home, monitor):
    bare = dict.fromkeys(
        ("genuine", "left_cluster", "right_cluster", "left_outside", "right_outside")
    )
    done = monitor(changed(home, "bare.parquet", **bare), "--json")
    assert [f["enough"] for f in done.found["findings"]] == [False, True, False, False]
    assert "cluster occupancy is not watched; score with --add clusters,outside" in done.err


def test_pairs_within_a_file_come_in_random_order_unless_told(home, monitor):
    """A dataset is sorted: by group, it looks like drift to whoever takes it for a stream."""
    table = pq.read_table(home / "quiet.parquet").sort_by("left_cluster")
    pq.write_table(table, home / "sorted.parquet")
    assert monitor("sorted.parquet").code == 0
    assert monitor("sorted.parquet", "--ordered").code == 1
    timed = table.append_column("at", pa.array(np.arange(len(table))))
    pq.write_table(timed, home / "timed.parquet")
    assert monitor("timed.parquet").code == 1


def test_a_files_stretches_are_its_parts_where_it_is_ordered(monitor):
    found = monitor("quiet.parquet", "drifted.parquet", "--json").found
    assert [stretch["source"] for stretch in found["timeline"]] == [
        "quiet.parquet",
        "drifted.parquet",
    ]
    assert sum(stretch["pairs"] for stretch in found["timeline"]) == found["pairs"]
    ordered = monitor("quiet.parquet", "--ordered", "--json").found["timeline"]
    assert len(ordered) > 3
    assert sum(stretch["pairs"] for stretch in ordered) == found["sources"]["quiet.parquet"]


def test_the_services_decisions_are_read_without_enrolments(home, monitor):
    table = pq.read_table(home / "quiet.parquet")
    score = [None if i % 100 == 0 else v for i, v in enumerate(table["score"].to_pylist())]
    kind = ["enrol" if value is None else "verify" for value in score]
    name = changed(home, "decisions.parquet", score=score, kind=kind)
    found = monitor(name, "--json").found
    assert found["pairs"] == len(table) - kind.count("enrol")
    assert found["findings"][1]["details"]["known"] == "people"


def test_probabilities_of_another_prior_are_what_users_were_told(home, monitor):
    """Scored with --prior 0.05 and labels of which one in twenty is genuine: quiet."""
    rng = np.random.default_rng(0)
    odds = column(home, "probability") / (1 - column(home, "probability"))
    share = pq.read_table(home / "quiet.parquet")["genuine"].to_numpy().mean()
    model = faircal.load_model(home / "model.faircal")
    fitted = model.diagnostics_.figures["calibrated_at"]
    assert share == pytest.approx(fitted, abs=0.05)
    moved = odds * (0.05 / 0.95) / (fitted / (1 - fitted))
    told = moved / (1 + moved)
    labels = (rng.random(len(told)) < told).astype(np.int8)
    name = changed(home, "prior.parquet", probability=told, genuine=labels)
    found = monitor(name, "--json").found
    assert not found["due"]
    assert found["timeline"][0]["probability"] == pytest.approx(told.mean(), rel=1e-6)
    assert found["timeline"][0]["expected"] == pytest.approx(told.sum())


# ---------------------------------------------------------------------- state


def test_a_state_goes_on_where_the_last_call_ended(monitor):
    whole = monitor("quiet.parquet", "drifted.parquet", "--json")
    first = monitor("quiet.parquet", "--state", "kept", "--json")
    second = monitor("drifted.parquet", "--state", "kept", "--json")
    assert (first.code, second.code, whole.code) == (0, 1, 1)
    for key in ("pairs", "feedback", "findings", "timeline", "words"):
        assert second.found[key] == whole.found[key]


def test_an_alarm_stays(home, monitor):
    assert monitor("drifted.parquet", "quiet.parquet", "--state", "kept").code == 1
    pq.write_table(pq.read_table(home / "quiet.parquet").slice(0, 700), home / "more.parquet")
    assert monitor("more.parquet", "--state", "kept").code == 1


def test_nothing_is_counted_twice(home, monitor):
    assert monitor("quiet.parquet", "--state", "kept").code == 0
    before = (home / "kept").read_bytes()
    shutil.copy("quiet.parquet", "copy.parquet")
    done = monitor("copy.parquet", "--state", "kept")
    assert done.code == 2
    assert "copy.parquet: was counted before" in done.err
    assert (home / "kept").read_bytes() == before
    assert "given twice" in monitor("quiet.parquet", "quiet.parquet").err
    assert "counted before" in monitor("quiet.parquet", "copy.parquet").err


def test_a_state_that_cannot_be_gone_on_from_is_refused(home, monitor, run_here):
    monitor("quiet.parquet", "--state", "kept")
    blob = (home / "kept").read_bytes()

    def refused(*words, model="model.faircal"):
        done = run_here(["monitor", model, "drifted.parquet", "--state", "kept", *words])
        assert done.code == 2
        assert done.err.count("\n") == 1
        return done.err

    assert "--false-alarms 0.01" in refused("--false-alarms", "0.2")
    other = faircal.load_model("model.faircal")
    other.about_ = replace(other.about_, operating_point=faircal.model.OperatingPoint(0.3))
    other.save("other.faircal")
    assert "is of another model" in refused(model="other.faircal")
    (home / "kept").write_bytes(blob[:-40])
    assert "damaged; give another --state" in refused()
    (home / "kept").write_bytes((home / "model.faircal").read_bytes())
    assert "expected a state" in refused()
    header, _ = unpack(blob)
    header.pop("arrays")
    for spoilt in ({**header, "timeline": [{}]}, {**header, "watch": {}}):
        (home / "kept").write_bytes(pack(spoilt, {}))
        refused()


def test_what_is_read_is_not_overwritten(monitor):
    assert "is read by this command" in monitor("quiet.parquet", "--state", "quiet.parquet").err
    assert "is read by this command" in monitor("quiet.parquet", "--state", "model.faircal").err


def test_a_call_that_fails_leaves_the_state_as_it_was(home, monitor):
    monitor("quiet.parquet", "--state", "kept")
    before = (home / "kept").read_bytes()
    bad = column(home, "probability")
    bad[-1] = 2
    changed(home, "bad.parquet", probability=bad)
    assert monitor("drifted.parquet", "bad.parquet", "--state", "kept").code == 2
    assert (home / "kept").read_bytes() == before


# --------------------------------------------------------------------- report


def test_out_writes_a_report_a_record_and_a_table(home, monitor):
    done = monitor("quiet.parquet", "drifted.parquet", "--out", "watch", "--json")
    assert sorted(path.name for path in (home / "watch").iterdir()) == [
        "monitor.csv",
        "monitor.json",
        "report.html",
    ]
    record = json.loads((home / "watch/monitor.json").read_text())
    assert {**record, "files": done.found["files"]} == done.found
    with (home / "watch/monitor.csv").open() as file:
        rows = {
            (r["what"], r["part"], r["quantity"]): float(r["value"]) for r in csv.DictReader(file)
        }
    assert rows["verdict", "", "due"] == 1
    assert rows["clusters", "", "statistic"] == record["findings"][0]["statistic"]
    assert rows["timeline", "2", "pairs"] == record["timeline"][1]["pairs"]
    assert "Recalibration is due" in (home / "watch/report.html").read_text()


def test_paths_are_told(monitor):
    done = monitor("quiet.parquet", "--out", "watch")
    assert done.out.splitlines()[-3:] == [
        "report: watch/report.html",
        "record: watch/monitor.json",
        "table: watch/monitor.csv",
    ]


# -------------------------------------------------------------------- refused


def spoilt(name, row, value):
    """Return a function that spoils a value of quiet.parquet, and gives the file."""

    def spoil(home):
        values = column(home, name).astype(np.float64)
        values[row] = value
        return changed(home, "bad.parquet", **{name: values})

    return spoil


REFUSED = {
    "no score": (lambda home: changed(home, "bad.parquet", score=None), ["column 'score'"]),
    "no probability": (
        lambda home: changed(home, "bad.parquet", probability=None),
        ["column 'probability'"],
    ),
    "NaN": (
        spoilt("score", 6, np.nan),
        ["bad.parquet, column 'score', row 7", "found nan", "again"],
    ),
    "no probability at all": (
        spoilt("probability", 5000, 1.5),
        ["row 5001", "expected a probability in [0, 1], found 1.5"],
    ),
    "another range": (
        spoilt("score", 2, 87.5),
        ["row 3", "expected a score of MODEL", "the same MODEL"],
    ),
    "another model's cluster": (
        spoilt("left_cluster", 0, 20),
        ["row 1", "expected a cluster from 0 to 19", "the same MODEL"],
    ),
    "half a cluster": (
        spoilt("right_cluster", 1, 2.5),
        ["row 2", "expected a cluster from 0 to 19, found 2.5"],
    ),
    "a label that is none": (
        spoilt("genuine", 4100, 3),
        ["column 'genuine', row 4101", "expected 0, 1, true or false"],
    ),
    "one side of a column": (
        lambda home: changed(home, "bad.parquet", left_cluster=None),
        ["expected left_cluster and right_cluster, found one"],
    ),
    "text": (
        lambda home: changed(home, "bad.parquet", score=["high"] * len(column(home, "score"))),
        ["column 'score'", "expected numbers, found string"],
    ),
    "nothing there": (lambda home: "nowhere.parquet", ["nowhere.parquet: no such file"]),
    "no table": (lambda home: "model.faircal", ["expected a .csv or .parquet file"]),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_used_is_one_line_with_place_and_remedy(home, monitor, case):
    make, said = REFUSED[case]
    done = monitor(make(home), "--out", "watch", "--state", "kept")
    assert done.code == 2
    assert done.err.startswith("faircal: ")
    assert done.err.count("\n") == 1
    assert not done.out
    for words in said:
        assert words in done.err
    assert not (home / "watch").exists()
    assert not (home / "kept").exists()


def test_a_model_without_population_is_told_how_to_get_one(home, run_here):
    done = run_here(["monitor", "old.faircal", "quiet.parquet"])
    assert done.code == 2
    assert "old.faircal" in done.err
    assert "fit it again" in done.err
    assert "faircal.survey" in done.err


def test_a_folder_of_another_network_is_refused(home, monitor):
    vectors = np.load("quiet/embeddings.npy")
    np.save("quiet/embeddings.npy", np.hstack([vectors, vectors]))
    done = monitor("quiet")
    assert done.code == 2
    assert "32" in done.err
    assert "64" in done.err


def test_help_has_an_example(run_here):
    done = run_here(["monitor", "--help"])
    assert "\n  faircal monitor faces.faircal today.parquet\n" in done.out


def test_a_night_without_decisions_is_quiet(home, run_here):
    path = home / "night.csv"
    path.write_text("id,at,kind,key,model,score,probability,same\r\n")
    done = run_here(["monitor", str(home / "model.faircal"), str(path), "--json"])
    assert done.code == 0, done.err
    assert json.loads(done.out)["pairs"] == 0
    assert "there are no pairs in it" in done.err
