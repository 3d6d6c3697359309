"""A metric that is registered, and nothing else, is everywhere where metrics are."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

from faircal.metrics import METRICS, Metric, mean_of
from faircal.report.cells import TableValue

pytestmark = pytest.mark.usefixtures("without_figures")


def distances(probability, genuine):
    return np.abs(probability - genuine)


@pytest.fixture
def metric():
    """The one line that adds a metric, undone afterwards."""
    made = Metric(
        "distance",
        mean_of(distances),
        "probability",
        "lower",
        "Distance",
        deviations=True,
        losses=distances,
    )
    METRICS.register(made.name, made)
    yield made
    del METRICS[made.name]


@pytest.fixture
def pairs(tmp_path):
    """A table of scores and probabilities of two groups, and one with worse probabilities."""
    rng = np.random.default_rng(7)
    n, groups = 4000, np.array(["F", "M"])
    left, right = rng.integers(0, 400, (2, n))
    same = rng.random(n) < 0.3
    right[same] = left[same]
    right[~same] = left[~same] // 200 * 200 + right[~same] % 200  # pairs within a group
    genuine = left == right
    score = rng.normal(np.where(genuine, 0.5, 0.0), 0.2).clip(-1, 1)
    probability = 1 / (1 + np.exp(-(8 * score - 2)))
    for name, power in (("old", 1.0), ("new", 0.6)):
        with (tmp_path / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
            table = csv.writer(file)
            table.writerow(
                ["genuine", "score", "probability", "left_identity", "right_identity", "sex"]
            )
            table.writerows(
                zip(
                    genuine.astype(int),
                    score,
                    probability**power,
                    left,
                    right,
                    groups[left // 200],
                    strict=True,
                )
            )
    return tmp_path


def rows_of(folder, metric):
    with (folder / "results.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["metric"] == metric]
    return {row["group"]: [float(row[name]) for name in ("value", "low", "high")] for row in rows}


def test_one_registration_carries_a_metric_from_audit_to_comparison(metric, pairs, run_here):
    printed = {}
    for run in ("old", "new"):
        done = run_here(["audit", f"{pairs / run}.csv", "--out", str(pairs / run)])
        assert done.code == 0, done.err
        printed[run] = " ".join(done.out.split())

    values = rows_of(pairs / "old", "distance")
    assert list(values) == ["global", "F", "M"]
    assert all(0 < low < value < high < 1 for value, low, high in values.values())
    for over in ("mean", "aad", "mad", "std"):
        (ends,) = rows_of(pairs / "old", f"distance_{over}").values()
        assert not np.isnan(ends).any()

    assert "Distance" in printed["old"]
    for value, low, high in values.values():
        assert f"{100 * value:.2f} {100 * low:.2f} to {100 * high:.2f}" in printed["old"]

    point = json.loads((pairs / "old" / "audit.json").read_text("utf-8"))["operating_points"][0]
    for group in (point["overall"], *point["groups"]):
        told = group["distance"]
        assert [told[name] for name in ("value", "low", "high")] == values[group["group"]]
        assert told["enough"]

    page = (pairs / "old" / "report.html").read_text("utf-8")
    for words in ("Distance by group", "Fairness calibration (Distance)"):
        assert words in page
    for value, low, high in values.values():
        shown = TableValue(value, low=low, high=high)
        assert shown.text in page
        assert shown.interval in page

    done = run_here(["compare", str(pairs / "old"), str(pairs / "new"), "--json"])
    of_it = [row for row in json.loads(done.out)["comparisons"] if row["metric"] == "distance"]
    assert [row["group"] for row in of_it] == ["global", "F", "M"]
    assert {row["verdict"] for row in of_it} <= {"better", "worse", "not told apart"}
    assert all(row["low"] < row["difference"] < row["high"] for row in of_it)
    told = run_here(["compare", str(pairs / "old"), str(pairs / "new")])
    assert "Distance" in told.out


def test_the_same_registration_puts_it_to_classifiers(metric, tmp_path, run_here):
    rng = np.random.default_rng(3)
    p = rng.dirichlet([1, 1, 1], size=1200)
    label = (rng.random(1200)[:, None] > p.cumsum(axis=1)).sum(axis=1)
    with (tmp_path / "rows.csv").open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(["label", "p_a", "p_b", "p_c", "sex"])
        names = np.array(list("abc"))[label]
        for name, row, sex in zip(names, p, ["F", "M"] * 600, strict=True):
            table.writerow([name, *map(repr, row.tolist()), sex])
    folder = tmp_path / "audit"
    done = run_here(["classify", "audit", str(tmp_path / "rows.csv"), "--out", str(folder)])
    assert done.code == 0, done.err
    values = rows_of(folder, "top_distance")
    assert list(values) == ["global", "F", "M"]
    assert all(0 < low < value < high < 1 for value, low, high in values.values())
    value, low, high = values["global"]
    right = p.argmax(axis=1) == label
    assert value == pytest.approx(distances(p.max(axis=1), right).mean())
    shown = TableValue(value, low=low, high=high)
    assert {"Top-label", "Distance"} <= set(done.out.split())  # over its column, in a line or two
    assert shown.text in done.out
    page = (folder / "report.html").read_text("utf-8")
    assert "Top-label Distance by group" in page
    assert shown.interval in page
