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
    StorageAwayError,
    StorageError,
    StorageFullError,
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
    from faircal.data import Dataset, PairStream, load, open_stream
    from faircal.data.simulation import simulate
    from faircal.evaluation.audit import Audit, audit
    from faircal.evaluation.classes import ClassAudit, audit_classes
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
    from faircal.production.describing import describe

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
    "MatrixScaling": "faircal.calibrators.classes",
    "MultiPASS": "faircal.methods",
    "OneVsRestHistogram": "faircal.calibrators.classes",
    "OneVsRestIsotonic": "faircal.calibrators.classes",
    "Oracle": "faircal.methods",
    "PASS": "faircal.methods",
    "PairStream": "faircal.data",
    "PlattCalibrator": "faircal.calibrators",
    "SmoothFairCal": "faircal.methods",
    "SplineCalibrator": "faircal.calibrators",
    "TemperatureCalibrator": "faircal.calibrators",
    "TemperatureScaling": "faircal.calibrators.classes",
    "VectorScaling": "faircal.calibrators.classes",
    "audit": "faircal.evaluation.audit",
    "audit_classes": "faircal.evaluation.classes",
    "choose": "faircal.evaluation.tuning",
    "describe": "faircal.production.describing",
    "estimate_prior": "faircal.calibrators.prior",
    "load": "faircal.data",
    "load_model": "faircal.methods",
    "log_likelihood_ratio": "faircal.metrics",
    "open_stream": "faircal.data",
    "shift_prior": "faircal.calibrators.prior",
    "simulate": "faircal.data.simulation",
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
    "MatrixScaling",
    "MissingExtraError",
    "ModelFileError",
    "MultiPASS",
    "NotFittedError",
    "OneVsRestHistogram",
    "OneVsRestIsotonic",
    "Oracle",
    "PairStream",
    "ParameterError",
    "PlattCalibrator",
    "SmoothFairCal",
    "SplineCalibrator",
    "StorageAwayError",
    "StorageError",
    "StorageFullError",
    "TemperatureCalibrator",
    "TemperatureScaling",
    "VectorScaling",
    "__version__",
    "audit",
    "audit_classes",
    "choose",
    "describe",
    "estimate_prior",
    "figures",
    "load",
    "load_model",
    "log_likelihood_ratio",
    "metrics",
    "open_stream",
    "shift_prior",
    "simulate",
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
