"""Folders of classifiers' runs: one that was measured, and ones written by hand."""

from __future__ import annotations

import json

import numpy as np
import pytest

from faircal.evaluation.classes import ClassDifference, audit_classes, write_class_audit
from faircal.evaluation.classes.audit import DIFFERENCES
from faircal.metrics.results import (
    ALL,
    GLOBAL,
    Result,
    write_results,
    write_rows,
)
from faircal.report.store import ResultsFolder

METHODS = {
    "uncalibrated": {"title": "Uncalibrated", "yardstick": False},
    "global": {"title": "Global", "yardstick": False},
    "faircal": {"title": "FairCal", "yardstick": False},
    "groupwise": {"title": "Group-wise", "yardstick": True},
}


def softmax(scores):
    raised = np.exp(scores - scores.max(axis=1, keepdims=True))
    return raised / raised.sum(axis=1, keepdims=True)


def measured(
    folder,
    names=("North", "South", "Tiny", ""),
    classes=("cat", "dog", "owl"),
    n=900,
    spread=False,
):
    """Write the folder of a classifier that is too sure of the second group.

    Where rows are `spread`, all groups have equally many.
    """
    rng = np.random.default_rng(0)
    group = np.arange(n) % 20
    group = np.where(group < 11, 0, np.where(group < 18, 1, group - 16))
    group = np.arange(n) % len(names) if spread else group
    scores = 2 * rng.normal(size=(n, len(classes)))
    true = softmax(scores)
    codes = (rng.random(n)[:, None] > true.cumsum(axis=1)).sum(axis=1).clip(0, len(classes) - 1)
    heat = np.where(group == 1, 3.0, 1.0)[:, None]
    says = {
        "uncalibrated": softmax(scores * heat),
        "global": softmax(scores * heat / 1.6),
        "faircal": softmax(scores * (1 + 0.1 * (heat - 1))),
        "groupwise": true,
    }
    found = audit_classes(
        says,
        codes,
        groups=[names[g] for g in group],
        identity=[f"unit {i // 2}" for i in range(n)],
        classes=list(classes),
        dataset="beasts",
        attribute="place",
    )
    run = {"methods": METHODS, "settings": {"seed": 0}, "wall_time_s": 1.0}
    write_class_audit(folder, found, run)
    return folder


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """A run of four methods and three groups, one of them too small to tell."""
    return measured(tmp_path_factory.mktemp("classify") / "run")


@pytest.fixture
def store(folder):
    return ResultsFolder.read(folder)


class ByHand:
    """A folder filled value by value."""

    def __init__(self, folder, methods=METHODS, withheld=None, **run):
        self.folder, self.withheld = folder, dict(withheld or {})
        self.run = {"kind": "classify", "methods": methods, "rows": 1000, **run}
        self.rows, self.differences = [], []

    def add(self, method, group, metric, value, low=np.nan, high=np.nan, condition=""):
        where = ("place", group, condition, metric, value)
        row = Result("beasts", "", method, "", "", "", "", *where)
        self.rows.append(row._replace(low=low, high=high, level=0.95))
        return self

    def differ(self, method, reference, metric, difference, low, high, group=GLOBAL):
        where = ("place", group, "", metric)
        self.differences.append(
            ClassDifference(method, reference, *where, difference, low, high, 0.95)
        )
        return self

    def store(self):
        self.folder.mkdir(exist_ok=True)
        rows = [row._replace(withheld=self.withheld.get(row.group, "")) for row in self.rows]
        write_results(self.folder, rows)
        write_rows(self.folder / DIFFERENCES, ClassDifference, self.differences)
        (self.folder / "run.json").write_text(json.dumps(self.run), "utf-8")
        return ResultsFolder.read(self.folder)


@pytest.fixture
def by_hand(tmp_path):
    """Return a function that begins an empty folder; what is given goes into ``run.json``."""
    return lambda **run: ByHand(tmp_path / "hand", **run)


@pytest.fixture
def two(by_hand):
    """Two groups, A worse than B by confidence and not told apart by accuracy; two methods."""
    hand = by_hand()
    hand.add("uncalibrated", GLOBAL, "accuracy", 0.8, 0.78, 0.82)
    hand.add("uncalibrated", "A", "accuracy", 0.79, 0.76, 0.82)
    hand.add("uncalibrated", "B", "accuracy", 0.81, 0.78, 0.84)
    hand.add("uncalibrated", "A", "top_ks", 0.12, 0.10, 0.14)
    hand.add("uncalibrated", "B", "top_ks", 0.03, 0.01, 0.05)
    hand.add("uncalibrated", ALL, "top_ks_least_gap", 0.042)
    for method, nll in (("uncalibrated", 0.5), ("global", 0.46), ("faircal", 0.45)):
        hand.add(method, GLOBAL, "nll", nll, nll - 0.02, nll + 0.02)
        hand.add(method, ALL, "top_ks_mean", 0.075, 0.05, 0.1)
    hand.differ("global", "uncalibrated", "nll", -0.04, -0.05, -0.03)
    hand.differ("faircal", "global", "nll", -0.01, -0.02, 0.002)
    hand.differ("faircal", "uncalibrated", "nll", -0.05, -0.06, -0.04)
    hand.differ("faircal", "global", "top_ks_mean", 0.02, 0.01, 0.03, ALL)
    hand.differ("faircal", "uncalibrated", "top_ks_mean", -0.005, -0.03, -0.01, ALL)
    return hand
