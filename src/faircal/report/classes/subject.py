"""Reports of any classifier: what ``faircal classify`` measures."""

from __future__ import annotations

from dataclasses import replace

from faircal.report.classes.figures import class_figures
from faircal.report.classes.tables import class_differences, class_tables, further_class_tables
from faircal.report.classes.words import class_summary
from faircal.report.store import Store
from faircal.report.subject import Subject

_TERMS = {
    "Accuracy": "The share of rows whose most probable class is the true one.",
    "Top-label KS, ECE": (
        "How far the stated confidence in the most probable class is from how often it is right; "
        "0 is perfect. With few rows they are above 0 even for perfect probabilities."
    ),
    "Class-wise KS, ECE": (
        "The same for the probability of each class, whether or not it is the most probable; mean "
        "over the classes."
    ),
    "NLL": (
        "Negative log-likelihood: the mean of −log of the probability stated for the true class; "
        "lower is better. It rewards both right order and right probabilities."
    ),
    "Brier": (
        "Mean squared distance of the probabilities from what happened, summed over classes, from "
        "0 (perfect) to 2."
    ),
    "AAD, MAD, STD": (
        "Average and largest absolute deviation of the groups from their mean, and their standard "
        "deviation: 0 means that all groups fare alike."
    ),
    "(1.13–1.71)": (
        "An interval: where the number could lie as well, had other rows been in the data; "
        "nominally it covers the truth 95 times in 100."
    ),
    "Yardstick": (
        "A method that must be told each row's group. It shows what could be had with it, and is "
        "never marked as best."
    ),
}

#: What stands over the page, where a run compares calibrations and where it does not.
_AUDIT, _COMPARISON = "Audit of a classifier", "Comparison of calibrations"

CLASSES = Subject(
    kinds={"classify": _AUDIT},
    lead="Whose probabilities and predictions a classifier gets wrong, and by how much.",
    simulated=(
        "These figures come from a model, not from a real classifier. They show how the methods "
        "behave; they say nothing about any real system or group."
    ),
    everything="All rows",
    more="every group, the parts of the Brier score, every class",
    terms=_TERMS,
    facts=("rows", "units", "classes", "folds", "attributes", "data_sha256", "wall_time_s", "jobs"),
    summary=class_summary,
    main=class_tables,
    differences=class_differences,
    further=further_class_tables,
    figures=class_figures,
)
COMPARED_CLASSES = replace(
    CLASSES,
    kinds={"classify": _COMPARISON},
    lead=(
        "Whose probabilities and predictions a classifier gets wrong, by how much, and what "
        "calibrating them changes."
    ),
)
#: What an audit measures: a table's probabilities, and those of a model.
_AUDITED = ("", "uncalibrated", "faircal")


def class_subject(store: Store) -> Subject:
    """Return what a classifier's report is about: an audit, or calibrations that are compared.

    A benchmark says by which calibrator it fitted; where that was not written, its methods tell.
    """
    methods = {variant.method for variant in store.results.variants}
    settings = store.run.get("settings")
    fitted = isinstance(settings, dict) and bool(settings.get("calibrator"))
    compared = len(methods) > 1 and not methods <= set(_AUDITED)
    return COMPARED_CLASSES if fitted or compared else CLASSES
