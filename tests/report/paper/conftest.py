"""Runs made by hand: the paper's own numbers as results, as they are or changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from faircal.evaluation.curves import Curves
from faircal.metrics.results import Result
from faircal.report.paper.published import entries, look_up
from faircal.report.store import LabelledResults, ResultsFolder

CLUSTERED = ("faircal", "fsn")
#: How the owners of BFW call the paper's groups.
OWNERS = {"African": "black", "Asian": "asian", "Caucasian": "white", "Indian": "indian"}


def owners_name(group):
    ethnicity, _, gender = group.partition(" ")
    return f"{OWNERS[ethnicity]}_{gender.lower()}s" if gender else group


def rows_of(quantity, mean, std, *, dataset="data"):
    """Return the rows of ``results.csv`` for one quantity."""
    where, feature, method, group, condition, metric = quantity
    if where in ("bfw", "ijbc") and method == "pass":
        method = "multipass"  # what the paper calls PASS where it knows two attributes
    clusters = "100" if method in CLUSTERED else ""
    front = (dataset, feature, method, "beta", clusters, "0")
    attribute = "skin_tone+gender" if where == "ijbc" else "att"
    back = (attribute, owners_name(group), condition, metric)
    return [Result(*front, "mean", *back, mean), Result(*front, "std", *back, std)]


@pytest.fixture
def make_store(tmp_path):
    """Make a run whose results are the paper's, each changed by `change(quantity, printed)`."""

    def make(dataset, change=lambda quantity, printed: printed.mean, *, curves=(), extra=(), **run):
        quantities = dict.fromkeys(e.quantity for e in entries() if e.quantity.dataset == dataset)
        rows = list(extra)
        for quantity in quantities:
            printed = look_up(quantity)
            mean = change(quantity, printed)
            if mean is not None:
                rows += rows_of(quantity, mean, printed.std)
        run = {"kind": "reproduce", "paper": dataset, "folds": [1, 2, 3, 4, 5]} | run
        folder = Path(tmp_path) / "run"
        folder.mkdir(exist_ok=True)
        return ResultsFolder(folder, LabelledResults(rows), run, Curves(curves), [], [])

    return make
