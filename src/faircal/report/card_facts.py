"""What a model card is made from: all that a model file says, as JSON knows it."""

from __future__ import annotations

import hashlib
import inspect
import json
from pathlib import Path
from typing import Any

import numpy as np

from faircal._base.container import VERSION, unpack
from faircal._version import __version__
from faircal.calibrators import Calibrator
from faircal.calibrators.classes import ClassCalibrator
from faircal.methods import Method
from faircal.methods.classifier import FairCalClassifier
from faircal.metrics.results import without_nan
from faircal.model import DEFAULT_POINT, Population

_NOT_FOR_PAIRS = (
    "Embeddings of another face network, or prepared in another way.",
    "People or pictures unlike those of calibration; 'faircal monitor' tells when that happens.",
    "Searching many people, or any other share of genuine pairs, without --prior.",
    "Deciding alone about somebody's rights, freedom or livelihood.",
)
_NOT_FOR_ROWS = (
    "Probabilities of another classifier, or features made in another way.",
    "Rows unlike those of calibration.",
    "Deciding alone about somebody's rights, freedom or livelihood.",
)


def card_facts(
    model: Method | FairCalClassifier, *, file: str | Path | None = None
) -> dict[str, Any]:
    """Return all that a model says of itself, for `json.dumps`.

    Parameters
    ----------
    model : Method or FairCalClassifier
        Fitted, or read by `faircal.load_model`.
    file : path, optional
        The file that it was read from: its hash, size and format are then given, too.

    Examples
    --------
    >>> import faircal
    >>> cal, test = faircal.simulate("small", seed=0).split(test_fold=5)
    >>> facts = card_facts(faircal.Baseline().fit(cal))
    >>> facts["model"]["title"], facts["operating_point"]["threshold"]
    ('Baseline', 0.5)
    """
    is_classifier = isinstance(model, FairCalClassifier)
    provenance, point = model.about_.provenance, model.about_.operating_point
    bounds = model.about_.evidence
    kept, shown = ("data", "data_sha256", "feature", "settings", "versions"), point or DEFAULT_POINT
    origin = {} if provenance is None else provenance.as_json()
    facts = {
        "model": _of_classifier(model) if is_classifier else _of_method(model),
        "intended_use": provenance.intended_use if provenance else "",
        "population": {
            "counts": dict(provenance.counts) if provenance else {},
            "groups": {name: dict(of) for name, of in provenance.groups.items()}
            if provenance
            else {},
            "simulated": bool(provenance and provenance.simulated),
            "scores": _of_scores(model.about_.population),
        },
        "cohort": dict(provenance.cohort) if provenance and provenance.cohort else None,
        "operating_point": None
        if is_classifier
        else {"in_file": point is not None, **shown.as_json(), "exceeded": list(shown.exceeded)},
        "evidence": None
        if is_classifier
        else {"bounds": bounds and bounds._asdict(), "words": model.about_.evidence_note},
        "limits": list(provenance.limits) if provenance else [],
        "out_of_scope": list(_NOT_FOR_ROWS if is_classifier else _NOT_FOR_PAIRS),
        "diagnostics": {
            "notes": [] if is_classifier else list(model.diagnostics_.notes),
            "figures": {} if is_classifier else dict(model.diagnostics_.figures),
        },
        "provenance": {key: origin[key] for key in kept} if origin else None,
        "file": None if file is None else _of_file(Path(file)),
    }
    # By name, as a file has it: the card of a model is the same before it is saved and after.
    plain: dict[str, Any] = json.loads(json.dumps(without_nan(facts), sort_keys=True))
    return plain


def _of_method(model: Method) -> dict[str, Any]:
    needs = model.needs
    return {
        "kind": "pairs of faces",
        "method": model.name,
        "title": model.title,
        "what": _first_line(type(model)),
        "parameters": {
            key: _shown(value)
            for key, value in model.get_params(deep=False).items()
            if value is not None
        },
        "score_range": list(model.score_range_),
        "needs_embeddings": needs.embeddings,
        "needs_attributes_in_use": needs.groups_to_apply,
        "trains_networks": needs.training,
        "read_by": __version__,
    }


def _of_classifier(model: FairCalClassifier) -> dict[str, Any]:
    names = ("n_clusters", "calibrator", "shrinkage", "n_init", "random_state")
    return {
        "kind": "rows of a classifier",
        "method": "classifier",
        "title": "FairCal for a classifier",
        "what": _first_line(type(model)),
        "parameters": {name: _shown(getattr(model, name)) for name in names},
        "classes": [str(name) for name in model.classes_],
        "features": list(model.feature_names_) or int(model.cluster_centers_.shape[1]),
        "clusters": model.n_clusters_,
        "rows_of_clusters": model.cluster_counts_.tolist(),
        "shrinkage": _shown(model.shrinkage_),
        "read_by": __version__,
    }


def _first_line(kind: type) -> str:
    return (inspect.getdoc(kind) or "").partition("\n")[0]


def _shown(value: Any) -> Any:
    """Return a parameter as JSON knows it."""
    if isinstance(value, Calibrator | ClassCalibrator):
        return str(value).replace("\n", " ")
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, tuple | list):
        return [_shown(item) for item in value]
    is_json = isinstance(value, bool | int | str | None) or (
        isinstance(value, float) and np.isfinite(value)
    )
    return value if is_json else str(value)


def _of_scores(population: Population | None) -> dict[str, Any] | None:
    """Return what is reported of the similarity of calibration pairs; None where nothing is."""
    if population is None or not len(population.genuine_counts):
        return None
    return {
        "edges": population.score_edges.tolist(),
        "genuine": population.genuine_counts.tolist(),
        "imposter": population.imposter_counts.tolist(),
        "clusters": len(population.centers),
        "dimension": int(population.centers.shape[1]),
    }


def _of_file(path: Path) -> dict[str, Any]:
    blob = path.read_bytes()
    header, _ = unpack(blob)
    return {
        "name": path.name,
        "sha256": hashlib.sha256(blob).hexdigest(),
        "bytes": len(blob),
        "format": VERSION,
        "schema": header.get("schema", 0),
        "written_by": str(header.get("faircal", "")),
    }
