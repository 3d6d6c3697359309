"""Values of a classifier's audit, what it takes, and the folder that it leaves."""

from __future__ import annotations

import json

import numpy as np
import pytest

from faircal._base.errors import DataError, ParameterError
from faircal.data.columns import Column
from faircal.evaluation.classes import audit_classes, read_class_differences, write_class_audit
from faircal.evaluation.curves import ScoreSource, read_curves
from faircal.metrics import DEVIATIONS, ece, ks
from faircal.metrics.catalogue import METRICS, Metric
from faircal.metrics.classes import CLASS_METRICS
from faircal.metrics.decomposition import decompose
from faircal.metrics.results import Result, read_results, read_run

FOUR = [[0.9, 0.1], [0.6, 0.4], [0.3, 0.7], [0.2, 0.8]]


def draw(n=400, n_classes=3, seed=0, power=1.0):
    """Return probabilities, raised to a power, and labels that follow them before that."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(n_classes), size=n)
    codes = np.minimum((rng.random(n)[:, None] > p.cumsum(axis=1)).sum(axis=1), n_classes - 1)
    return p**power / (p**power).sum(axis=1, keepdims=True), codes


def test_numbers_by_hand():
    found = audit_classes(FOUR, [0, 1, 1, 1], groups=list("AABB"))
    assert found.value("accuracy") == 0.75
    assert found.value("accuracy", group="A") == 0.5
    assert found.value("nll", group="B") == pytest.approx(-(np.log(0.7) + np.log(0.8)) / 2)
    assert found.value("brier", group="A") == pytest.approx((2 * 0.01 + 2 * 0.36) / 2)
    # confidence 0.6 is wrong, 0.9 right: 0.6, then 0.6 − 0.1
    assert found.value("top_ks", group="A") == pytest.approx(0.3)
    assert found.value("accuracy_mean") == 0.75
    assert found.value("accuracy_mad", group="all") == 0.25
    # of class 1 in B: 0.7 and 0.8, both true
    assert found.value("class_ks", group="B", condition="class=1") == pytest.approx(0.25)


def test_values_are_those_of_the_metrics_of_each_group():
    p, codes = draw(power=1.5)
    group = np.array(list("xyz"))[np.arange(len(codes)) % 3]
    found = audit_classes(p, codes, groups=group, classes=("a", "b", "c"))
    for name in ("global", "x", "y", "z"):
        part = np.ones(len(codes), bool) if name == "global" else group == name
        for metric in CLASS_METRICS.values():
            expected = metric.function(p[part], codes[part])
            assert found.value(metric.name, group=name) == pytest.approx(expected, abs=1e-12)
        parts = decompose(p[part], codes[part])
        for term in ("miscalibration", "discrimination", "uncertainty"):
            told = found.value(f"brier_{term}", group=name)
            assert told == pytest.approx(getattr(parts, term), abs=1e-12)
        for code, label in enumerate("abc"):
            where = {"group": name, "condition": f"class={label}"}
            column, true = p[part, code], codes[part] == code
            assert found.value("class_ks", **where) == pytest.approx(ks(column, true))
            assert found.value("class_ece", **where) == pytest.approx(ece(column, true))


def test_numbers_over_groups_are_those_of_the_groups():
    p, codes = draw()
    found = audit_classes(p, codes, groups=["x", "y", "z", "y"] * 100)
    for metric in CLASS_METRICS:
        values = [found.value(metric, group=name) for name in "xyz"]
        for name, function in DEVIATIONS.items():
            assert found.value(f"{metric}_{name}") == pytest.approx(function(values))


def test_a_row_of_unknown_group_counts_globally_only():
    known = audit_classes(FOUR[:3], [0, 1, 1], groups=["A", "A", "B"])
    more = audit_classes(FOUR, [0, 1, 1, 0], groups=["A", "A", "B", ""])
    assert more.groups == ("A", "B")
    assert more.value("nll", group="B") == known.value("nll", group="B")
    assert more.value("accuracy") == 0.5
    assert more.value("accuracy_mean") == known.value("accuracy_mean")


def test_a_group_without_rows_has_no_value():
    groups = Column(np.array([0, 0, 0, 0], np.int32), ("A", "nobody"))
    found = audit_classes(FOUR, [0, 1, 1, 1], groups=groups)
    assert np.isnan(found.value("nll", group="nobody"))
    assert np.isnan(found.value("top_ks", group="nobody"))
    assert found.value("nll_mean") == found.value("nll", group="A")
    assert all(np.isnan(found.interval("nll", group="nobody")))


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        (["no", "yes", "yes", "yes"], ("no", "yes")),
        ([0, 1, 1, 1], ("no", "yes")),
        (np.array([False, True, True, True]), (False, True)),
        ([3, 7, 7, 7], (3, 7)),
        (np.array(["no", "yes", "yes", "yes"], dtype=object), ["no", "yes"]),
        ([0, 1, 1, 1], ("1", "2")),  # whole numbers beside text are codes
        ([1, 2, 2, 2], (1, 2)),
        ([0, 1, 1, 1], None),
    ],
)
def test_labels_are_names_or_codes(labels, classes):
    found = audit_classes(FOUR, labels, classes=classes)
    assert found.value("nll") == audit_classes(FOUR, [0, 1, 1, 1]).value("nll")


def test_the_order_of_rows_changes_no_value():
    p, codes = draw()
    order = np.random.default_rng(1).permutation(len(codes))
    groups = np.array(["x", "y"])[codes % 2]
    one = audit_classes(p, codes, groups=groups)
    two = audit_classes(p[order], codes[order], groups=groups[order])
    for a, b in zip(one.rows, two.rows, strict=True):
        assert a[:11] == b[:11]
        if not a.metric.endswith("_least_gap"):  # which is made of intervals
            assert a.value == pytest.approx(b.value, abs=1e-12, nan_ok=True)


def test_a_method_is_named_where_there_are_several():
    found = audit_classes({"one": FOUR, "two": FOUR[::-1]}, [0, 1, 1, 1])
    assert found.methods == ("one", "two")
    assert found.value("accuracy", method="two") == 0.25
    with pytest.raises(ParameterError, match="expected one of one, two, found none"):
        found.value("accuracy")
    with pytest.raises(ParameterError, match="did you mean two"):
        found.value("accuracy", method="twoo")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"probabilities": {}}, "expected a method at least"),
        ({"probabilities": np.zeros((0, 2)), "labels": []}, "expected a row at least"),
        ({"probabilities": {"a": FOUR, "b": FOUR[:3]}}, "same rows and classes"),
        ({"probabilities": {"a": [[2.0, -1.0]] * 4}}, "probabilities of a, row 0: .*softmax"),
        ({"labels": [0, 1, 2, 1]}, "found 2 in row 2"),
        ({"labels": [0, 1, 1]}, "expected one label per row"),
        ({"labels": ["no", "yes", "yes"], "classes": ("no", "yes")}, "4; found 3"),
        ({"labels": ["no", "yse", "yes", "no"], "classes": ("no", "yes")}, "did you mean yes"),
        ({"labels": ["no", "", "yes", "no"], "classes": ("no", "yes")}, "row 2: expected a label"),
        ({"classes": ("a",)}, "expected 2 different names"),
        ({"classes": ("a", "a")}, "expected 2 different names"),
        ({"groups": ["x"] * 3}, "groups: expected one value per row, 4; found 3"),
        ({"identity": ["x"] * 5}, "identity: expected one value per row, 4; found 5"),
        ({"groups": ["all", "x", "x", "x"]}, "a group is called 'all'"),
        ({"attribute": "class"}, "rename the column"),
    ],
)
def test_bad_input_is_one_clear_line(change, says):
    given = {"probabilities": FOUR, "labels": [0, 1, 1, 1], **change}
    with pytest.raises((DataError, ParameterError), match=says) as caught:
        audit_classes(given.pop("probabilities"), given.pop("labels"), **given)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"metric": "acuracy"}, "did you mean accuracy"),
        ({"metric": "nll", "group": "Q"}, "no nll of group 'Q'"),
        ({"metric": "class_ks", "condition": "class=9"}, "under condition 'class=9'"),
    ],
)
def test_what_was_not_measured_is_said(asked, says):
    found = audit_classes(FOUR, [0, 1, 1, 1], groups=list("AABB"))
    with pytest.raises(ParameterError, match=says):
        found.value(asked.pop("metric"), **asked)


def test_enough_is_rows_and_units():
    p, codes = draw(240)
    groups = np.where(np.arange(240) < 60, "few", "many")
    found = audit_classes(p, codes, groups=groups)
    few = found.result("nll", group="few")
    assert few.withheld == "only 60 rows: not enough data (100 are needed)"
    assert not few.reportable
    assert not np.isnan(few.value)
    assert (few.trials, few.people) == (60, 60)
    assert found.result("nll", group="many").reportable
    grouped = audit_classes(p, codes, groups=groups, identity=np.arange(240) // 20)
    few = "only 9 effective units: not enough data (20 are needed)"
    assert grouped.result("nll", group="many").withheld == few


def test_over_groups_there_must_be_two_with_enough_data():
    p, codes = draw(400)
    for groups, reportable, comparable in (
        (["x", "y"] * 200, True, True),
        (["x"] * 400, True, True),
        (["x"] * 390 + ["y"] * 10, False, False),
        (["x"] * 180 + ["y"] * 180 + ["z"] * 40, True, False),
    ):
        found = audit_classes({"a": p, "b": p[::-1]}, codes, groups=groups)
        assert found.result("nll_mad", method="a").reportable == reportable
        (one,) = [row for row in found.differences if row.metric == "nll_mad"]
        assert (one.withheld == "") == comparable


def test_the_table_has_the_columns_of_results():
    found = audit_classes(FOUR, [0, 1, 1, 1], groups=list("AABB"), dataset="d", attribute="sex")
    assert tuple(found.table.column_names) == Result._fields
    assert set(found.table["group"].to_pylist()) == {"global", "A", "B", "all"}
    assert set(found.table["attribute"].to_pylist()) == {"sex"}
    assert set(found.table["fold"].to_pylist()) == {""}


def write(folder, methods=("one", "two"), **run):
    p, codes = draw(300)
    said = {name: p**k / (p**k).sum(axis=1, keepdims=True) for k, name in enumerate(methods, 1)}
    groups = np.array(["x", "y", "tiny", ""])[np.minimum(np.arange(300) % 50, 3 - (codes > 0))]
    groups[:3] = "tiny"
    groups[groups == "tiny"] = ["tiny"] * 3 + ["x"] * ((groups == "tiny").sum() - 3)
    found = audit_classes(
        said, codes, groups=groups, classes=("a", "b", "c"), dataset="d", attribute="sex"
    )
    write_class_audit(folder, found, run)
    return found


def test_the_folder_holds_what_the_audit_found(tmp_path):
    found = write(tmp_path, settings={"seed": 7}, notes=["drawn"])
    kept = {(row.method, *row.what): row for row in read_results(tmp_path)}
    assert list(kept) == [(row.method, *row.what) for row in found.rows]
    row = kept["two", "x", "", "top_ks"]
    assert repr(row) == repr(found.result("top_ks", method="two", group="x"))
    assert (row.low, row.high) == found.interval("top_ks", method="two", group="x")
    assert row.value == found.value("top_ks", method="two", group="x")
    rate = kept["one", "global", "", "accuracy"]
    assert (rate.trials, rate.effective) == (300, 300)
    assert rate.errors == round(300 * rate.value)
    assert np.isnan(kept["one", "global", "", "brier_miscalibration"].level)
    assert kept["one", "tiny", "", "nll"].withheld.startswith("only 3 rows")
    differences = {(d.group, d.metric): d for d in read_class_differences(tmp_path)}
    told = differences["global", "nll"]
    assert (told.method, told.reference) == ("two", "one")
    assert told[6:9] == found.difference("nll", "two", "one")
    curves = read_curves(tmp_path)
    counted = curves.get("x", "probability", ScoreSource(method="one", attribute="sex"))
    assert counted.n_genuine + counted.n_imposter == found.data.count("x")
    classes = ScoreSource(method="one", attribute="class")
    assert curves.groups(classes) == ["a", "b", "c"]
    true = curves.get("b", "probability", classes).n_genuine
    run = read_run(tmp_path)
    assert true == (found.data.codes == 1).sum()
    assert run["kind"] == "classify"
    assert run["settings"] == {"seed": 7}
    assert run["classes"] == ["a", "b", "c"]
    assert run["rows"] == 300
    assert run["units"] is None
    assert run["group_units"] is None
    assert run["notes"][0] == "drawn"
    assert any("unknown sex" in note for note in run["notes"])
    assert "numpy" in run["versions"]
    assert "NaN" not in json.dumps(run)


def test_writing_again_leaves_nothing_of_before(tmp_path):
    write(tmp_path)
    assert read_class_differences(tmp_path)
    write(tmp_path, methods=("one",))
    assert read_class_differences(tmp_path) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "curves.parquet",
        "results.csv",
        "run.json",
    ]


def test_a_metric_of_pairs_is_put_to_the_top_label(monkeypatch):
    p, codes = draw(300)
    metric = Metric(
        "gap", lambda r: 0.0, "probability", "lower", "Gap", losses=lambda q, y: (q - y) ** 2
    )
    monkeypatch.setitem(METRICS, "gap", metric)
    found = audit_classes({"a": p, "b": p**2 / (p**2).sum(1, keepdims=True)}, codes, groups=codes)
    row = found.result("top_gap", method="a", group="1")
    best, right = p.max(axis=1)[codes == 1], (p.argmax(axis=1) == codes)[codes == 1]
    assert row.value == pytest.approx(((best - right) ** 2).mean())
    assert row.low < row.value < row.high
    assert found.interval("top_gap_mad", method="a")[1] > 0
    assert found.difference("top_gap", "b", "a")[1] < found.difference("top_gap", "b", "a")[2]


def test_overconfidence_has_a_sign_and_holds_for_all_groups():
    p, codes = draw(1000, power=3.0)
    groups = np.where(np.arange(1000) % 2, "x", "y")
    found = audit_classes(p, codes, groups=groups)
    right = p.argmax(axis=1) == codes
    for name in "xy":
        row, part = found.result("overconfidence", group=name), groups == name
        assert row.value == pytest.approx((p.max(axis=1) - right)[part].mean())
        assert 0 < row.low < row.value < row.high
        assert row.level == pytest.approx(0.975)
    assert found.value("accuracy_least_gap") < 0  # groups drawn alike
