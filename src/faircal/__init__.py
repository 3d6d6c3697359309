"""Fair, calibrated probabilities for face verification, without sensitive attributes.

Names are imported when they are first used, so that ``import faircal`` and ``faircal --help``
stay quick.

Examples
--------
>>> import faircal
>>> data = faircal.simulate("small", seed=0)
>>> cal, test = data.split(test_fold=5)
>>> model = faircal.FairCal(n_clusters=20, random_state=0).fit(cal)
>>> p = model.predict_proba(test)
>>> bool(faircal.metrics.ks(p, test.genuine) < 0.1)
True
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from faircal._base.errors import (
    ConflictError,
    DataError,
    FairCalError,
    MissingExtraError,
    ModelFileError,
    NotFittedError,
    ParameterError,
    StorageError,
    StorageFullError,
    StorageUnavailableError,
)
from faircal._version import __version__

if TYPE_CHECKING:
    from faircal import figures, metrics
    from faircal.calibrators import (
        BetaCalibrator,
        HistogramCalibrator,
        IsotonicCalibrator,
        PlattCalibrator,
        SplineCalibrator,
        TemperatureCalibrator,
    )
    from faircal.calibrators.classes import (
        DirichletCalibrator,
        MatrixScaling,
        OneVsRestHistogram,
        OneVsRestIsotonic,
        TemperatureScaling,
        VectorScaling,
    )
    from faircal.calibrators.prior import estimate_prior, shift_prior
    from faircal.data import Dataset, PairFiles, PairStream, load, open_stream, save_dataset
    from faircal.data.checking import check_data
    from faircal.data.pairing import make_pairs
    from faircal.data.simulation import simulate
    from faircal.embedding.folder import embed_pictures
    from faircal.evaluation.audit import Audit, audit
    from faircal.evaluation.classes import ClassAudit, audit_classes
    from faircal.evaluation.compare import compare_runs
    from faircal.evaluation.planning import plan_sample
    from faircal.evaluation.thresholds.finding import find_threshold
    from faircal.evaluation.tuning import choose
    from faircal.methods import (
        AGENDA,
        FSN,
        FTC,
        GST,
        PASS,
        Baseline,
        FairCal,
        MultiPASS,
        Oracle,
        SmoothFairCal,
        load_model,
    )
    from faircal.methods.classifier import FairCalClassifier
    from faircal.production.describe import describe
    from faircal.production.monitoring import survey
    from faircal.production.monitoring.run import monitor
    from faircal.production.onnx import export_model
    from faircal.production.serving.app import serve
    from faircal.production.spark.session import SparkEngine
    from faircal.report.card import model_card
    from faircal.report.writing import make_report
    from faircal.workflows.audit import audit_folder
    from faircal.workflows.benchmark import benchmark
    from faircal.workflows.classify import (
        LabelledFiles,
        classify_apply,
        classify_audit,
        classify_benchmark,
        classify_fit,
    )
    from faircal.workflows.fit import fit_model
    from faircal.workflows.regions import regions_folder
    from faircal.workflows.reproduce import reproduce
    from faircal.workflows.score import score_file

#: Modules that are names of the package.
_MODULES = ("figures", "metrics")

_HOME = {
    "AGENDA": "faircal.methods",
    "Audit": "faircal.evaluation.audit",
    "Baseline": "faircal.methods",
    "BetaCalibrator": "faircal.calibrators",
    "ClassAudit": "faircal.evaluation.classes",
    "Dataset": "faircal.data",
    "DirichletCalibrator": "faircal.calibrators.classes",
    "FSN": "faircal.methods",
    "FTC": "faircal.methods",
    "FairCal": "faircal.methods",
    "FairCalClassifier": "faircal.methods.classifier",
    "GST": "faircal.methods",
    "HistogramCalibrator": "faircal.calibrators",
    "IsotonicCalibrator": "faircal.calibrators",
    "LabelledFiles": "faircal.workflows.classify",
    "MatrixScaling": "faircal.calibrators.classes",
    "MultiPASS": "faircal.methods",
    "OneVsRestHistogram": "faircal.calibrators.classes",
    "OneVsRestIsotonic": "faircal.calibrators.classes",
    "Oracle": "faircal.methods",
    "PASS": "faircal.methods",
    "PairFiles": "faircal.data",
    "PairStream": "faircal.data",
    "PlattCalibrator": "faircal.calibrators",
    "SmoothFairCal": "faircal.methods",
    "SparkEngine": "faircal.production.spark.session",
    "SplineCalibrator": "faircal.calibrators",
    "TemperatureCalibrator": "faircal.calibrators",
    "TemperatureScaling": "faircal.calibrators.classes",
    "VectorScaling": "faircal.calibrators.classes",
    "audit": "faircal.evaluation.audit",
    "audit_classes": "faircal.evaluation.classes",
    "audit_folder": "faircal.workflows.audit",
    "benchmark": "faircal.workflows.benchmark",
    "check_data": "faircal.data.checking",
    "choose": "faircal.evaluation.tuning",
    "classify_apply": "faircal.workflows.classify",
    "classify_audit": "faircal.workflows.classify",
    "classify_benchmark": "faircal.workflows.classify",
    "classify_fit": "faircal.workflows.classify",
    "compare_runs": "faircal.evaluation.compare",
    "describe": "faircal.production.describe",
    "embed_pictures": "faircal.embedding.folder",
    "estimate_prior": "faircal.calibrators.prior",
    "export_model": "faircal.production.onnx",
    "find_threshold": "faircal.evaluation.thresholds.finding",
    "fit_model": "faircal.workflows.fit",
    "load": "faircal.data",
    "load_model": "faircal.methods",
    "log_likelihood_ratio": "faircal.metrics",
    "make_pairs": "faircal.data.pairing",
    "make_report": "faircal.report.writing",
    "model_card": "faircal.report.card",
    "monitor": "faircal.production.monitoring.run",
    "open_stream": "faircal.data",
    "plan_sample": "faircal.evaluation.planning",
    "regions_folder": "faircal.workflows.regions",
    "reproduce": "faircal.workflows.reproduce",
    "save_dataset": "faircal.data",
    "score_file": "faircal.workflows.score",
    "serve": "faircal.production.serving.app",
    "shift_prior": "faircal.calibrators.prior",
    "simulate": "faircal.data.simulation",
    "survey": "faircal.production.monitoring",
}

__all__ = [
    "AGENDA",
    "FSN",
    "FTC",
    "GST",
    "PASS",
    "Audit",
    "Baseline",
    "BetaCalibrator",
    "ClassAudit",
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


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"faircal.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'faircal' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
