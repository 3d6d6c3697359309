"""The public names, locked: adding one means adding it here, removing one is a deprecation."""

from __future__ import annotations

import inspect

import pytest

import faircal
from faircal._base import errors

PUBLIC = [
    "AGENDA",
    "DSN",
    "FALCON",
    "FSN",
    "FTC",
    "GST",
    "PASS",
    "ASNorm",
    "Audit",
    "Baseline",
    "BetaCalibrator",
    "ClassAudit",
    "Cohort",
    "CohortFairCal",
    "ConflictError",
    "DataError",
    "Dataset",
    "DirichletCalibrator",
    "FairCal",
    "FairCalClassifier",
    "FairCalError",
    "HistogramCalibrator",
    "IsotonicCalibrator",
    "LabelledFiles",
    "MatrixScaling",
    "MissingExtraError",
    "ModelFileError",
    "MultiPASS",
    "NotFittedError",
    "OneVsRestHistogram",
    "OneVsRestIsotonic",
    "Oracle",
    "PairFiles",
    "PairStream",
    "ParameterError",
    "PlattCalibrator",
    "SNorm",
    "SmoothFairCal",
    "SparkEngine",
    "SplineCalibrator",
    "StorageError",
    "StorageFullError",
    "StorageUnavailableError",
    "TemperatureCalibrator",
    "TemperatureScaling",
    "VectorScaling",
    "__version__",
    "audit",
    "audit_classes",
    "audit_folder",
    "benchmark",
    "check_data",
    "choose",
    "classify_apply",
    "classify_audit",
    "classify_benchmark",
    "classify_fit",
    "compare_runs",
    "describe",
    "embed_pictures",
    "estimate_prior",
    "export_model",
    "figures",
    "find_threshold",
    "fit_model",
    "load",
    "load_cohort",
    "load_model",
    "log_likelihood_ratio",
    "make_pairs",
    "make_report",
    "metrics",
    "model_card",
    "monitor",
    "open_stream",
    "plan_sample",
    "regions_folder",
    "reproduce",
    "save_dataset",
    "score_file",
    "serve",
    "shift_prior",
    "simulate",
    "survey",
]
ERRORS = [
    "ConflictError",
    "DataError",
    "FairCalError",
    "MissingExtraError",
    "ModelFileError",
    "NotFittedError",
    "ParameterError",
    "StorageError",
    "StorageFullError",
    "StorageUnavailableError",
]
CALLABLE = [name for name in PUBLIC if name not in (*ERRORS, "__version__", "figures", "metrics")]


def test_names():
    assert faircal.__all__ == dir(faircal) == sorted(PUBLIC)


@pytest.mark.parametrize("name", PUBLIC)
def test_each_resolves(name):
    assert getattr(faircal, name) is getattr(faircal, name)
    assert getattr(faircal, name) is not None


def test_other_names_do_not():
    with pytest.raises(AttributeError, match="has no attribute 'Faircal'"):
        faircal.Faircal  # noqa: B018


@pytest.mark.parametrize("name", CALLABLE)
def test_each_has_a_docstring_with_an_example(name):
    thing = getattr(faircal, name)
    assert inspect.isclass(thing) or inspect.isfunction(thing)
    text = inspect.getdoc(thing)
    assert "\nExamples\n--------\n>>> " in text


@pytest.mark.parametrize("name", CALLABLE)
def test_public_methods_have_docstrings(name):
    thing = getattr(faircal, name)
    for key, member in inspect.getmembers(thing):
        ours = getattr(member, "__module__", "") or ""
        if not key.startswith("_") and callable(member) and ours.startswith("faircal"):
            assert inspect.getdoc(member), f"{name}.{key}"


def test_metrics_have_docstrings_and_examples():
    for name in faircal.metrics.__all__:
        thing = getattr(faircal.metrics, name)
        if inspect.isfunction(thing):
            assert "\nExamples\n--------\n>>> " in inspect.getdoc(thing), name


class TestErrorTree:
    def test_all_of_them_are_public(self):
        classes = [n for n, c in vars(errors).items() if inspect.isclass(c)]
        assert sorted(classes) == ERRORS

    @pytest.mark.parametrize("name", ERRORS)
    def test_one_root(self, name):
        error = getattr(faircal, name)
        assert issubclass(error, faircal.FairCalError)
        assert inspect.getdoc(error)
        assert name == "FairCalError" or error is not faircal.FairCalError

    @pytest.mark.parametrize(
        ("name", "builtin"),
        [
            ("DataError", ValueError),
            ("ParameterError", ValueError),
            ("NotFittedError", AttributeError),
            ("MissingExtraError", ImportError),
        ],
    )
    def test_also_what_python_would_raise(self, name, builtin):
        assert issubclass(getattr(faircal, name), builtin)

    @pytest.mark.parametrize("name", ERRORS)
    def test_drawn_in_the_module(self, name):
        assert name in errors.__doc__


def test_version_is_the_installed_one():
    from importlib.metadata import version

    assert faircal.__version__ == version("faircal")
