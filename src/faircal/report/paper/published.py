"""What the paper prints, in the words of ``results.csv``: our names, fractions.

``published.csv`` and ``properties.csv`` hold the facts of its tables, in percent as printed.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from faircal.evaluation.benchmark import EXPERIMENTS
from faircal.metrics.results import ALL, GLOBAL

#: Datasets and features by our names, as the paper calls them; methods in the order of its tables.
DATASETS = {name: experiment.title for name, experiment in EXPERIMENTS.items()}
FEATURES = {
    "facenet-vggface2": "FaceNet (VGGFace2)",
    "facenet-webface": "FaceNet (Webface)",
    "arcface": "ArcFace",
}
#: What is reproduced.
PAPER = (
    "T. Salvador, S. Cairns, V. Voleti, N. Marshall and A. Oberman: FairCal: Fairness Calibration "
    "for Face Verification. International Conference on Learning Representations, 2022."
)
METHODS = ("baseline", "agenda", "pass", "ftc", "gst", "fsn", "faircal", "oracle")
NAN = float("nan")


class Quantity(NamedTuple):
    """What a number is of; fields as in ``results.csv``, groups as the paper calls them."""

    dataset: str
    feature: str
    method: str
    group: str
    condition: str
    metric: str


class Printed(NamedTuple):
    """A number as printed, and its standard deviation over folds (NaN where it isn't printed)."""

    mean: float
    std: float = NAN


class Entry(NamedTuple):
    """A number in one of the paper's tables."""

    table: str
    quantity: Quantity
    printed: Printed


def look_up(quantity: Quantity) -> Printed:
    """Return what the paper prints for a quantity; NaN where it prints nothing.

    The mean is that of the main table, since the appendix cuts some of them short; the standard
    deviation, which only the appendix has, is that of the same quantity.

    Examples
    --------
    >>> look_up(Quantity("rfw", "facenet-vggface2", "faircal", "global", "", "auroc"))
    Printed(mean=0.9058, std=0.0029)
    >>> look_up(Quantity("bfw", "arcface", "fsn", "African Female", "", "ks"))
    Printed(mean=0.0174, std=nan)
    >>> look_up(Quantity("rfw", "dlib", "faircal", "global", "", "auroc"))
    Printed(mean=nan, std=nan)
    """
    return _joined().get(quantity, Printed(NAN))


@cache
def entries() -> tuple[Entry, ...]:
    """Return every number of the paper's tables, in their order."""
    datasets = {title: name for name, title in DATASETS.items()}
    features = {title: name for name, title in FEATURES.items()}
    return tuple(
        Entry(
            row["table_label"].removeprefix("table:"),
            Quantity(
                datasets[row["dataset"]],
                features[row["feature"]],
                row["method"].lower(),
                *_place(row["condition"], row["metric"].lower()),
            ),
            Printed(_fraction(row["mean"]), _fraction(row["std"])),
        )
        for row in _rows("published.csv")
    )


def properties() -> list[tuple[str, str, list[bool]]]:
    """Return the paper's table of properties: kind, method, and whether it has each of six.

    The kind is ``"retraining"`` or ``"post-training"``.
    """
    return [
        (kind, method, [says == "yes" for says in answers])
        for kind, method, *answers in (row.values() for row in _rows("properties.csv"))
    ]


@cache
def features(dataset: str) -> tuple[str, ...]:
    """Return the features that the paper has for a dataset, in its order."""
    names = dict.fromkeys(of.feature for _, of, _ in entries() if of.dataset == dataset)
    return tuple(names)


@cache
def groups(dataset: str) -> tuple[str, ...]:
    """Return the groups of which the paper prints numbers, by its names and in its order."""
    names = dict.fromkeys(of.group for _, of, _ in entries() if of.dataset == dataset)
    return tuple(group for group in names if group not in (GLOBAL, ALL))


@cache
def _joined() -> dict[Quantity, Printed]:
    """Join the main tables' means and the appendix's standard deviations."""
    joined: dict[Quantity, Printed] = {}
    for _, quantity, printed in sorted(entries(), key=lambda entry: entry.printed.std >= 0):
        mean = joined[quantity].mean if quantity in joined else printed.mean
        joined[quantity] = Printed(mean, printed.std)
    return joined


def _rows(name: str) -> Iterator[dict[str, str]]:
    path = files("faircal.report.paper").joinpath(name)
    return csv.DictReader(path.read_text(encoding="utf-8").splitlines())


def _place(condition: str, metric: str) -> tuple[str, str, str]:
    """Return group, condition and metric as in ``results.csv``."""
    kind, _, told = condition.partition("=")
    if kind == "subgroup":
        return (GLOBAL if told == "Global" else told), "", metric
    rate = f"{kind}={_fraction(told.removesuffix('%')):g}" if told else ""
    return (ALL if "_" in metric else GLOBAL), rate, metric


def _fraction(percent: str) -> float:
    """Return printed percent as the nearest fraction."""
    return float(f"{percent}e-2") if percent else NAN
