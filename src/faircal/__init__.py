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

from faircal._version import __version__ as __version__

if TYPE_CHECKING:
    from faircal import figures as figures
    from faircal import metrics as metrics
    from faircal._base.errors import ConflictError as ConflictError
    from faircal._base.errors import DataError as DataError
    from faircal._base.errors import FairCalError as FairCalError
    from faircal._base.errors import MissingExtraError as MissingExtraError
    from faircal._base.errors import ModelFileError as ModelFileError
    from faircal._base.errors import NotFittedError as NotFittedError
    from faircal._base.errors import ParameterError as ParameterError
    from faircal._base.errors import StorageError as StorageError
    from faircal._base.errors import StorageFullError as StorageFullError
    from faircal._base.errors import StorageUnavailableError as StorageUnavailableError
    from faircal.calibrators import BetaCalibrator as BetaCalibrator
    from faircal.calibrators import HistogramCalibrator as HistogramCalibrator
    from faircal.calibrators import IsotonicCalibrator as IsotonicCalibrator
    from faircal.calibrators import PlattCalibrator as PlattCalibrator
    from faircal.calibrators import SplineCalibrator as SplineCalibrator
    from faircal.calibrators import TemperatureCalibrator as TemperatureCalibrator
    from faircal.calibrators.classes import DirichletCalibrator as DirichletCalibrator
    from faircal.calibrators.classes import MatrixScaling as MatrixScaling
    from faircal.calibrators.classes import OneVsRestHistogram as OneVsRestHistogram
    from faircal.calibrators.classes import OneVsRestIsotonic as OneVsRestIsotonic
    from faircal.calibrators.classes import TemperatureScaling as TemperatureScaling
    from faircal.calibrators.classes import VectorScaling as VectorScaling
    from faircal.calibrators.prior import estimate_prior as estimate_prior
    from faircal.calibrators.prior import shift_prior as shift_prior
    from faircal.data import Dataset as Dataset
    from faircal.data import PairFiles as PairFiles
    from faircal.data import PairStream as PairStream
    from faircal.data import load as load
    from faircal.data import open_stream as open_stream
    from faircal.data import save_dataset as save_dataset
    from faircal.data.checking import check_data as check_data
    from faircal.data.pairing import make_pairs as make_pairs
    from faircal.data.simulation import simulate as simulate
    from faircal.embedding.folder import embed_pictures as embed_pictures
    from faircal.evaluation.audit import Audit as Audit
    from faircal.evaluation.audit import audit as audit
    from faircal.evaluation.classes import ClassAudit as ClassAudit
    from faircal.evaluation.classes import audit_classes as audit_classes
    from faircal.evaluation.compare import compare_runs as compare_runs
    from faircal.evaluation.planning import plan_sample as plan_sample
    from faircal.evaluation.thresholds.finding import find_threshold as find_threshold
    from faircal.evaluation.tuning import choose as choose
    from faircal.methods import AGENDA as AGENDA
    from faircal.methods import FSN as FSN
    from faircal.methods import FTC as FTC
    from faircal.methods import GST as GST
    from faircal.methods import PASS as PASS
    from faircal.methods import Baseline as Baseline
    from faircal.methods import FairCal as FairCal
    from faircal.methods import MultiPASS as MultiPASS
    from faircal.methods import Oracle as Oracle
    from faircal.methods import SmoothFairCal as SmoothFairCal
    from faircal.methods import load_model as load_model
    from faircal.methods.classifier import FairCalClassifier as FairCalClassifier
    from faircal.metrics import log_likelihood_ratio as log_likelihood_ratio
    from faircal.production.describe import describe as describe
    from faircal.production.monitoring import survey as survey
    from faircal.production.monitoring.run import monitor as monitor
    from faircal.production.onnx import export_model as export_model
    from faircal.production.serving.app import serve as serve
    from faircal.production.spark.session import SparkEngine as SparkEngine
    from faircal.report.card import model_card as model_card
    from faircal.report.writing import make_report as make_report
    from faircal.workflows.audit import audit_folder as audit_folder
    from faircal.workflows.benchmark import benchmark as benchmark
    from faircal.workflows.classify import LabelledFiles as LabelledFiles
    from faircal.workflows.classify import classify_apply as classify_apply
    from faircal.workflows.classify import classify_audit as classify_audit
    from faircal.workflows.classify import classify_benchmark as classify_benchmark
    from faircal.workflows.classify import classify_fit as classify_fit
    from faircal.workflows.fit import fit_model as fit_model
    from faircal.workflows.regions import regions_folder as regions_folder
    from faircal.workflows.reproduce import reproduce as reproduce
    from faircal.workflows.score import score_file as score_file

#: Modules that are names of the package.
_MODULES = ("figures", "metrics")

#: Its other names, by the module that each is in.
_NAMES = {
    "faircal._base.errors": (
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
    ),
    "faircal.calibrators": (
        "BetaCalibrator",
        "HistogramCalibrator",
        "IsotonicCalibrator",
        "PlattCalibrator",
        "SplineCalibrator",
        "TemperatureCalibrator",
    ),
    "faircal.calibrators.classes": (
        "DirichletCalibrator",
        "MatrixScaling",
        "OneVsRestHistogram",
        "OneVsRestIsotonic",
        "TemperatureScaling",
        "VectorScaling",
    ),
    "faircal.calibrators.prior": ("estimate_prior", "shift_prior"),
    "faircal.data": ("Dataset", "PairFiles", "PairStream", "load", "open_stream", "save_dataset"),
    "faircal.data.checking": ("check_data",),
    "faircal.data.pairing": ("make_pairs",),
    "faircal.data.simulation": ("simulate",),
    "faircal.embedding.folder": ("embed_pictures",),
    "faircal.evaluation.audit": ("Audit", "audit"),
    "faircal.evaluation.classes": ("ClassAudit", "audit_classes"),
    "faircal.evaluation.compare": ("compare_runs",),
    "faircal.evaluation.planning": ("plan_sample",),
    "faircal.evaluation.thresholds.finding": ("find_threshold",),
    "faircal.evaluation.tuning": ("choose",),
    "faircal.methods": (
        "AGENDA",
        "Baseline",
        "FSN",
        "FTC",
        "FairCal",
        "GST",
        "MultiPASS",
        "Oracle",
        "PASS",
        "SmoothFairCal",
        "load_model",
    ),
    "faircal.methods.classifier": ("FairCalClassifier",),
    "faircal.metrics": ("log_likelihood_ratio",),
    "faircal.production.describe": ("describe",),
    "faircal.production.monitoring": ("survey",),
    "faircal.production.monitoring.run": ("monitor",),
    "faircal.production.onnx": ("export_model",),
    "faircal.production.serving.app": ("serve",),
    "faircal.production.spark.session": ("SparkEngine",),
    "faircal.report.card": ("model_card",),
    "faircal.report.writing": ("make_report",),
    "faircal.workflows.audit": ("audit_folder",),
    "faircal.workflows.benchmark": ("benchmark",),
    "faircal.workflows.classify": (
        "LabelledFiles",
        "classify_apply",
        "classify_audit",
        "classify_benchmark",
        "classify_fit",
    ),
    "faircal.workflows.fit": ("fit_model",),
    "faircal.workflows.regions": ("regions_folder",),
    "faircal.workflows.reproduce": ("reproduce",),
    "faircal.workflows.score": ("score_file",),
}
_HOME = {name: module for module, names in _NAMES.items() for name in names}

__all__ = sorted(["__version__", *_MODULES, *_HOME])


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"faircal.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'faircal' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
