"""``faircal classify``: models, probabilities, audits and benchmarks of any classifier."""

from __future__ import annotations

import csv
import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from rich.console import Console

import faircal
from faircal.data import load_classifier_rows

N = 600
CLASSES = ("cat", "dog", "owl")
#: Quick settings of a fit.
QUICK = ("--clusters", "2", "--calibrator", "temperature", "--shrinkage", "20")


def made(seed=0, n=N):
    """Return columns of rows in two groups, one of which is told with too much confidence."""
    rng = np.random.default_rng(seed)
    true = rng.dirichlet(np.ones(3), n)
    codes = (rng.random(n)[:, None] > true.cumsum(axis=1)).sum(axis=1)
    group = rng.integers(2, size=n)
    said = true ** np.where(group == 1, 3, 1)[:, None]
    said /= said.sum(axis=1, keepdims=True)
    return {
        "label": [CLASSES[code] for code in codes],
        **{f"p_{name}": said[:, i] for i, name in enumerate(CLASSES)},
        "feature_x": 4.0 * group + rng.normal(size=n),
        "feature_y": rng.normal(size=n),
        "sex": [("F", "M")[code] for code in group],
        "site": [f"s{i % 3}" for i in range(n)],
        "patient": [f"u{i // 2}" for i in range(n)],
        "part": np.arange(n) % 3,
    }


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """A folder of tables, and a model of each kind."""
    home = tmp_path_factory.mktemp("classify")
    table = pa.table(made())
    pacsv.write_csv(table, home / "rows.csv")
    pacsv.write_csv(pa.table(made(1)), home / "new.csv")
    pq.write_table(table.drop_columns(["feature_x", "feature_y"]), home / "bare.parquet")
    vectors = np.stack([table["feature_x"], table["feature_y"]], axis=1).astype(np.float32)
    np.save(home / "vectors.npy", vectors)
    np.save(home / "wide.npy", np.hstack([vectors, vectors]))
    data = load_classifier_rows(home / "rows.csv")
    names = np.array(CLASSES)
    model = faircal.FairCalClassifier(n_clusters=2, calibrator="temperature", shrinkage=20.0)
    model.fit_calibration(
        data.probabilities, names[data.codes], features=data.features, classes=names
    )
    model.save(home / "m.faircal")
    faircal.Baseline().fit(faircal.simulate("small", people=80)).save(home / "faces.faircal")
    (home / "notes.txt").write_text("not a folder\n")
    return home


@pytest.fixture
def rows(sound, tmp_path, monkeypatch):
    """A copy of it to spoil; the working folder while the test runs, without Matplotlib."""
    home = tmp_path / "home"
    shutil.copytree(sound, home)
    monkeypatch.chdir(home)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    return home


def results(folder):
    """Return results.csv by method, group, condition and metric."""
    with (folder / "results.csv").open(newline="") as file:
        return {
            (row["method"], row["group"], row["condition"], row["metric"]): float(row["value"])
            for row in csv.DictReader(file)
        }


# --------------------------------------------------------------------------- fit and apply


def test_fit_and_apply_are_the_estimator(rows, run_here):
    done = run_here(["classify", "fit", "rows.csv", "--out", "again.faircal", *QUICK])
    assert (done.code, done.out) == (0, "again.faircal\n")
    assert "rows: 600 rows, 3 classes, 2 clusters" in done.err
    done = run_here(["classify", "apply", "again.faircal", "new.csv", "--out", "done.parquet"])
    assert (done.code, done.out) == (0, "done.parquet\n")
    table = pq.read_table("done.parquet")
    probabilities = [f"p_{name}" for name in CLASSES]
    data = load_classifier_rows("new.csv")
    carried = ["label", *(["identity"] if data.identity else []), *sorted(data.attributes)]
    assert table.column_names == [*probabilities, "predicted", "cluster", *carried]
    assert "sex" in carried
    assert table["sex"].to_pylist() == made(1)["sex"]
    model = faircal.load_model("m.faircal")
    found = np.stack([table[name] for name in probabilities], axis=1)
    np.testing.assert_allclose(
        found, model.calibrate(data.probabilities, features=data.features), atol=1e-12
    )
    assert table["predicted"].to_pylist() == [CLASSES[code] for code in found.argmax(axis=1)]
    np.testing.assert_array_equal(table["cluster"], model.clusters(data.features))
    assert table["label"].to_pylist() == made(1)["label"]


def test_the_order_of_columns_does_not_matter(rows, run_here):
    apply = ["classify", "apply", "m.faircal"]
    run_here([*apply, "new.csv", "--out", "one.csv"])
    table = pacsv.read_csv("new.csv")
    pacsv.write_csv(table.select(sorted(table.column_names, reverse=True)), "turned.csv")
    run_here([*apply, "turned.csv", "--out", "two.csv"])
    one, two = pacsv.read_csv("one.csv"), pacsv.read_csv("two.csv")
    assert one.column_names == two.column_names
    for name in one.column_names:
        if name.startswith("p_"):  # sums in another order differ in the last digit
            np.testing.assert_allclose(one[name], two[name], rtol=1e-12)
        else:
            assert one[name] == two[name]


def test_labels_are_not_needed_to_apply(rows, run_here):
    pacsv.write_csv(pacsv.read_csv("new.csv").drop_columns(["label"]), "new.csv")
    words = ["classify", "apply", "m.faircal", "new.csv", "--out", "done.csv", "--json"]
    done = run_here(words)
    assert json.loads(done.out) == {"out": "done.csv", "rows": N, "classes": list(CLASSES)}
    assert "label" not in pacsv.read_csv("done.csv").column_names


def test_what_apply_writes_can_be_audited(rows, run_here):
    run_here(["classify", "apply", "m.faircal", "new.csv", "--out", "done.csv"])
    words = ["classify", "audit", "done.csv", "--attribute", "cluster", "--out", "a"]
    done = run_here(words)
    assert done.code == 0, done.err
    assert {"0", "1"} <= {group for _, group, _, _ in results(rows / "a")}


def test_fit_for_machines_and_with_features_of_a_file(rows, run_here):
    words = ["classify", "fit", "bare.parquet", "--features", "vectors.npy", "--out", "b.faircal"]
    said = json.loads(run_here([*words, *QUICK, "--json"]).out)
    assert said["classes"] == list(CLASSES)
    assert (said["rows"], said["clusters"], said["shrinkage"]) == (N, 2, 20.0)
    run_here(["classify", "fit", "rows.csv", "--out", "c.faircal", *QUICK])
    nameless, named = faircal.load_model("b.faircal"), faircal.load_model("c.faircal")
    assert nameless.feature_names_ == ()
    assert len(named.feature_names_) == len(named.cluster_centers_.T)
    data = load_classifier_rows("rows.csv")
    one, other = (
        m.calibrate(data.probabilities, features=data.features) for m in (nameless, named)
    )
    np.testing.assert_array_equal(one, other)


def test_features_are_found_by_their_names(rows, run_here):
    run_here(["classify", "fit", "rows.csv", "--out", "b.faircal", *QUICK])
    names = faircal.load_model("b.faircal").feature_names_
    apply = ["classify", "apply", "b.faircal", "new.csv", "--out"]
    run_here([*apply, "one.csv"])
    run_here([*apply, "two.csv", "--features", ",".join(reversed(names))])
    assert (rows / "one.csv").read_bytes() == (rows / "two.csv").read_bytes()
    table = pacsv.read_csv("new.csv")
    other = ["feature_else" if name == names[0] else name for name in table.column_names]
    pacsv.write_csv(table.rename_columns(other), "new.csv")
    done = run_here([*apply, "three.csv"])
    assert done.code == 2
    assert f"no column '{names[0]}', as in calibration" in done.err
    assert not (rows / "three.csv").exists()


def test_a_model_measured_on_the_rows_it_was_fitted_on(rows, run_here):
    run_here(["classify", "fit", "rows.csv", "--out", "b.faircal", *QUICK])
    audit = ["classify", "audit", "--model", "b.faircal", "--attribute", "sex", "--out"]
    assert "fitted on these very rows" in run_here([*audit, "a", "rows.csv"]).err
    assert "very rows" not in run_here([*audit, "b", "new.csv"]).err


# ------------------------------------------------------------------- audit and benchmark


def test_results_say_how_they_were_made(rows, run_here):
    run_here(["classify", "benchmark", "rows.csv", "--attribute", "sex", "--out", "a", *QUICK])
    with (rows / "a" / "results.csv").open(newline="") as file:
        found = {
            row["method"]: (row["calibrator"], row["clusters"], row["seed"], row["fold"])
            for row in csv.DictReader(file)
        }
    assert found["uncalibrated"] == ("", "", "", "")
    assert found["faircal"] == ("temperature", "2", "0", "")
    assert found["oracle"] == ("temperature", "", "0", "")


def test_audit_measures_the_table(rows, run_here):
    done = run_here(["classify", "audit", "rows.csv", "--attribute", "sex", "--out", "a"])
    assert done.code == 0, done.err
    table = made()
    said = np.stack([table[f"p_{name}"] for name in CLASSES], axis=1)
    right = said.argmax(axis=1) == [CLASSES.index(name) for name in table["label"]]
    found = results(rows / "a")
    assert found["", "global", "", "accuracy"] == pytest.approx(right.mean())
    for name in ("F", "M"):
        members = np.array(table["sex"]) == name
        assert found["", name, "", "accuracy"] == pytest.approx(right[members].mean())
    assert found["", "M", "", "top_ks"] > 2 * found["", "F", "", "top_ks"]
    assert "rows, groups by sex" in done.out
    assert f"{100 * right.mean():.2f}" in done.out
    assert "report: a/report.html" in done.out
    assert "intervals: " in done.err
    run = json.loads((rows / "a/run.json").read_text("utf-8"))
    assert run["kind"] == "classify"
    assert run["settings"]["attribute"] == "sex"
    assert run["data_sha256"] == load_classifier_rows("rows.csv").hash()
    assert "sex" in (rows / "a/report.html").read_text("utf-8")


def test_audit_puts_a_model_beside_the_table(rows, run_here):
    words = ["classify", "audit", "new.csv", "--attribute", "sex", "--model", "m.faircal"]
    done = run_here([*words, "--out", "a", "--json"])
    assert done.code == 0, done.err
    said = json.loads(done.out)
    assert said["report"] == "a/report.html"
    found = results(rows / "a")
    assert found["faircal", "global", "", "nll"] < found["uncalibrated", "global", "", "nll"]
    assert found["faircal", "M", "", "top_ks"] < found["uncalibrated", "M", "", "top_ks"]
    (row,) = [
        row
        for row in said["differences"]
        if (row["method"], row["metric"], row["group"]) == ("faircal", "nll", "global")
    ]
    assert row["high"] < 0
    assert {row["method"] for row in said["audit"]} == {"uncalibrated", "faircal"}


def test_a_model_whose_classes_come_in_another_order(rows, run_here):
    words = ["classify", "audit", "--attribute", "sex", "--model", "m.faircal"]
    run_here([*words, "new.csv", "--out", "a"])
    table = pacsv.read_csv("new.csv")
    pacsv.write_csv(table.select(sorted(table.column_names, reverse=True)), "turned.csv")
    run_here([*words, "turned.csv", "--out", "b"])
    one, two = results(rows / "a"), results(rows / "b")
    assert one.keys() == two.keys()
    for key, value in one.items():
        assert two[key] == pytest.approx(value, nan_ok=True, abs=1e-9)


def test_units_make_intervals_wider_or_say_so(rows, run_here):
    words = ["classify", "audit", "rows.csv", "--attribute", "sex", "--out", "a"]
    plain = run_here(words).err
    units = run_here([*words, "--identity", "patient"]).err
    assert plain != units
    run = json.loads((rows / "a/run.json").read_text("utf-8"))
    assert run["units"] == N // 2


def test_benchmark_compares_on_held_out_rows(rows, run_here):
    words = ["classify", "benchmark", "rows.csv", "--attribute", "sex", "--folds", "3"]
    done = run_here([*words, *QUICK, "--out", "b", "--identity", "patient"])
    assert done.code == 0, done.err
    found = results(rows / "b")
    nll = {key[0]: value for key, value in found.items() if key[1:] == ("global", "", "nll")}
    assert list(nll) == ["uncalibrated", "global", "faircal", "groupwise", "oracle"]
    assert nll["faircal"] < nll["global"] < nll["uncalibrated"]
    run = json.loads((rows / "b/run.json").read_text("utf-8"))
    assert run["folds"] == ["1", "2", "3"]
    assert run["settings"]["n_clusters"] == 2
    assert "folds drawn: 3 folds of units (identity), stratified by label, seed 0" in done.err
    assert "FairCal" in done.out


def test_benchmark_leaves_out_what_the_table_cannot_serve(rows, run_here):
    table = pq.read_table("bare.parquet").drop_columns(["sex", "site", "patient"])
    pq.write_table(table.append_column("fold", table["part"]), "bare.parquet")
    done = run_here(["classify", "benchmark", "bare.parquet", *QUICK, "--out", "b"])
    assert done.code == 0, done.err
    assert {key[0] for key in results(rows / "b")} == {"uncalibrated", "global"}
    for method in ("faircal", "groupwise", "oracle"):
        assert f"note: {method} is left out: it needs " in done.err
    assert "only global figures" in done.err
    assert json.loads((rows / "b/run.json").read_text("utf-8"))["folds"] == ["0", "1", "2"]


def test_report_makes_it_again(rows, run_here):
    run_here(["classify", "audit", "rows.csv", "--attribute", "sex", "--out", "a"])
    page = (rows / "a/report.html").read_bytes()
    (rows / "a/report.html").unlink()
    done = run_here(["report", "a"])
    assert done.code == 0, done.err
    assert (rows / "a/report.html").read_bytes() == page
    assert "rows, groups by sex" in done.out
    assert "Accuracy" in done.out


def test_eighty_columns_are_enough(rows, run_here, monkeypatch):
    narrow = "faircal.cli.printing.console"  # as where a terminal is that narrow
    monkeypatch.setattr(narrow, lambda **how: Console(width=80, highlight=False, **how))
    words = ["classify", "benchmark", "rows.csv", "--attribute", "sex", "--folds", "2"]
    done = run_here([*words, *QUICK, "--out", "b"])
    assert done.code == 0, done.err
    tables = done.out.partition("These are the numbers")[0]
    assert "…" not in tables
    assert max(map(len, tables.splitlines())) <= 80
    for (method, group, condition, metric), value in results(rows / "b").items():
        if (group, condition) == ("global", "") and metric in ("accuracy", "top_ks", "class_ece"):
            assert f"{100 * value:.2f}" in tables, method
    assert "Comparison of calibrations" in (rows / "b/report.html").read_text("utf-8")


def test_hundreds_of_groups_do_not_flood_the_terminal(rows, run_here):
    table = pacsv.read_csv("rows.csv").drop_columns(["site"])
    names = [f"g{i // 2:03}" for i in range(N)]
    pacsv.write_csv(table.append_column("site", [names]), "s.csv")
    done = run_here(["classify", "audit", "s.csv", "--attribute", "site", "--out", "a"])
    assert done.code == 0, done.err
    few = "300 of 300 groups have not enough data: g000, g001, g002, g003, g004, g005 and 294 more"
    assert few in " ".join(done.out.split())
    assert f"{few}." in done.out
    assert "Over groups" not in done.out  # it has no number
    assert len((done.out + done.err).splitlines()) < 30
    assert "Audit of a classifier" in (rows / "a/report.html").read_text("utf-8")


def test_names_cannot_steer_the_terminal(rows, run_here):
    table = pacsv.read_csv("rows.csv").drop_columns(["sex"])
    pacsv.write_csv(table.append_column("sex", [["\x1b[31mx", "[red]y[/red]"] * (N // 2)]), "s.csv")
    done = run_here(["classify", "audit", "s.csv", "--attribute", "sex", "--out", "a"])
    assert done.code == 0, done.err
    assert "\x1b" not in done.out


def test_matrices_end_to_end(rows, run_here, run_command):
    table = made()
    p = np.stack([table[f"p_{name}"] for name in CLASSES], axis=1).astype(np.float32)
    np.save(rows / "p.npy", p)
    labels = [CLASSES.index(name) for name in table["label"]]
    pacsv.write_csv(pa.table({"label": labels, "sex": table["sex"]}), rows / "plain.csv")
    read = ("plain.csv", "--probabilities", "p.npy", "--features", "vectors.npy")
    run_here(["classify", "fit", *read, "--out", "n.faircal", *QUICK])
    assert faircal.load_model("n.faircal").classes_.tolist() == ["0", "1", "2"]
    done = run_command(
        *("classify", "benchmark", *read, "--folds", "2", "--methods", "global,faircal"),
        *(*QUICK, "--out", "b", "--json"),
        cwd=rows,
        figures=False,
    )
    said = json.loads(done.stdout)
    assert said["classes"] == ["0", "1", "2"]
    assert (rows / "b/report.html").exists()
    assert "install" in done.stderr  # what figures need


# ----------------------------------------------------------------------------- bad input


def column(name, values):
    """Replace a column of rows.csv; None drops it, a function gets the old values."""

    def spoil():
        table = pacsv.read_csv("rows.csv")
        columns = {key: table[key].to_pylist() for key in table.column_names}
        if values is None:
            del columns[name]
        else:
            columns[name] = values(columns.get(name)) if callable(values) else values
        pacsv.write_csv(pa.table(columns), "rows.csv")

    return spoil


def cell(name, row, value):
    """Replace one value of rows.csv, rows counted from 1."""

    def change(old):
        return [value if i == row - 1 else each for i, each in enumerate(old)]

    return column(name, change)


def logits():
    """Put logits in place of the probabilities."""
    for name in CLASSES:
        column(f"p_{name}", lambda old: [9 + 4 * np.log(value) for value in old])()


def twice():
    """Write a column of the same name twice."""
    table = Path("rows.csv")
    table.write_text(table.read_text().replace('"site"', '"sex"', 1))


def cut():
    """Cut the model file off."""
    model = Path("m.faircal")
    model.write_bytes(model.read_bytes()[:100])


def rows_left(count):
    """Keep only the first rows."""
    return lambda: pacsv.write_csv(pacsv.read_csv("rows.csv").slice(0, count), "rows.csv")


FIT = "fit rows.csv --out o.faircal"
APPLY = "apply m.faircal rows.csv --out o.csv"
AUDIT = "audit rows.csv --attribute sex --out o"
BENCH = "benchmark rows.csv --attribute sex --out o"

BAD = [
    # reading
    ("audit sub --out o", Path("sub").mkdir, "found a folder", "give the path of a file"),
    (FIT.replace("rows.csv", "none.csv"), None, "none.csv", "check the path"),
    (FIT.replace("rows.csv", "notes.txt"), None, "notes.txt", "convert it first"),
    (AUDIT.replace("rows", "sub/rows"), None, "sub/rows.csv", "check the path"),
    (AUDIT, logits, "rows.csv, row 1", "apply a softmax first"),
    (AUDIT, cell("p_dog", 7, 0.9999), "row 7: expected class probabilities", "correct or remove"),
    (AUDIT, cell("p_dog", 7, None), "row 7: expected class probabilities", "drop or repair"),
    (AUDIT, column("label", None), "column 'label' is missing", "add or rename"),
    (AUDIT, cell("label", 3, None), "column 'label', row 3", "fill it in"),
    (AUDIT, cell("label", 3, "cow"), "label 'cow'", "known: cat, dog, owl"),
    (AUDIT, column("label", ["cat"] * N), "'cat' only", "add rows of other classes"),
    (AUDIT, rows_left(1), "found one", "add rows"),
    (AUDIT, rows_left(0), "found none", "check the export"),
    (AUDIT, twice, "column 'sex' appears more than once", "rename one"),
    (FIT, cell("feature_x", 9, None), "column 'feature_x', row 9", "correct or remove"),
    (FIT + " --features vec_", None, "no feature columns 'vec_…'", "an .npy file"),
    (FIT + " --label truth", None, "column 'truth' is missing", "add or rename"),
    (FIT + " --probabilities q_", None, "'q_CLASS'", "--probabilities"),
    (FIT + " --identity who", None, "column 'who' is missing", "add or rename"),
    # fit
    (FIT + " --clusters 601", None, "--clusters 601", "use fewer"),
    (FIT + " --clusters 0", None, "0", "see 'faircal classify fit --help'"),
    (FIT + " --calibrator platt", None, "'platt'", "known: dirichlet"),
    (FIT + " --shrinkage -1", None, "cv or a number from 0", "--help"),
    (FIT + " --shrinkage nan", None, "cv or a number from 0", "--help"),
    ("fit bare.parquet --out o.faircal", None, "bare: no features", "--features"),
    ("fit rows.csv --out rows.csv", None, "--out rows.csv: is read", "choose another path"),
    ("fit rows.csv --out .", None, ". is a folder", "give the path of a file"),
    ("fit rows.csv --out notes.txt/m.faircal", None, "notes.txt is a file", "choose another path"),
    ("fit rows.csv", None, "--out", "see 'faircal classify fit --help'"),
    # apply
    (APPLY.replace("o.csv", "o.txt"), None, "--out o.txt", ".parquet or .csv"),
    (
        APPLY.replace("o.csv", "m.faircal.csv/o.csv"),
        lambda: Path("m.faircal.csv").touch(),
        "m.faircal.csv is a file",
        "choose another path",
    ),
    (APPLY.replace("m.faircal", "none.faircal"), None, "none.faircal", "check the path"),
    (APPLY.replace("m.faircal", "rows.csv"), None, "rows.csv", "not a faircal model"),
    (APPLY.replace("m.faircal", "faces.faircal"), None, "faces.faircal", "faircal score"),
    (APPLY, cut, "m.faircal", "again"),
    (
        APPLY + " --features vectors.npy",
        rows_left(9),
        "vectors.npy: expected 9 rows",
        "in its order",
    ),
    (APPLY + " --features wide.npy", None, "expected 2 columns", "as in calibration"),
    ("apply m.faircal bare.parquet --out o.csv", None, "bare: no features", "--features"),
    (APPLY, column("p_cow", [0.0] * N), "expected the classes of m.faircal", "rename its columns"),
    # audit
    (AUDIT.replace("sex", "sexe"), None, "attribute 'sexe'", "did you mean sex?"),
    (AUDIT.replace("sex", "sex+sex"), None, "crosses 'sex' with itself", "name it once"),
    ("audit rows.csv --out o", None, "several attributes (sex, site", "--attribute"),
    (AUDIT, column("sex", ["all", "F"] * (N // 2)), "'all'", "rename the group"),
    ("audit rows.csv --attribute sex --out notes.txt", None, "notes.txt", "give another path"),
    (AUDIT + " --model faces.faircal", None, "faces.faircal", "faircal audit"),
    # benchmark
    (BENCH + " --clusters 500", None, "480 rows to fit on", "use fewer"),
    (BENCH + " --methods fairal", None, "'fairal'", "did you mean faircal?"),
    (BENCH + " --methods global,global", None, "named more than once", "name it once"),
    (
        "benchmark bare.parquet --attribute sex --methods faircal --out o",
        None,
        "method faircal: it needs features",
        "leave it out",
    ),
    (BENCH + " --folds 1", None, "1", "see 'faircal classify benchmark --help'"),
    (BENCH + " --folds 400 --identity patient", None, "found 300", "ask for fewer folds"),
    (BENCH, column("fold", [1] * N), "'fold' has one value only", "drop the column"),
    (BENCH, column("fold", lambda _: [1, None] * (N // 2)), "'fold', row 2", "drop the column"),
    (BENCH + " --calibrator beta", None, "'beta'", "known: dirichlet"),
    ("measure rows.csv", None, "measure", "see 'faircal classify --help'"),
]


def tree(folder):
    """Return the contents of all files."""
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(("command", "spoil", "place", "remedy"), BAD)
def test_one_line_exit_2_and_nothing_written(rows, run_here, command, spoil, place, remedy):
    if spoil is not None:
        spoil()
    before = tree(rows)
    done = run_here(["classify", *command.split()])
    assert done.code == 2, done.err
    assert not done.out
    assert done.err.count("\n") == 1
    assert done.err.startswith("faircal: ")
    assert place in done.err
    assert remedy in done.err
    assert tree(rows) == before
    assert not (rows / "o").exists()


@pytest.mark.parametrize("name", ["", "fit", "apply", "audit", "benchmark"])
def test_help_has_an_example(run_here, name):
    done = run_here(["classify", *name.split(), "--help"])
    assert done.code == 0
    assert f"\n  faircal classify {name}" in done.out.partition("\nExamples:\n")[2]
