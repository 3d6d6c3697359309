"""What DeepFace does, run."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
from deepface.commons import backend_utils, onnx_utils
from deepface.modules.database.inventory import database_inventory
from deepface.modules.modeling import AVAILABLE_MODELS
from deepface.modules.verification import find_confidence, find_threshold


def models() -> dict[str, int]:
    """How many networks and detectors there are by name."""
    kinds = {"networks": "facial_recognition", "detectors": "face_detector"}
    found = {name: len(AVAILABLE_MODELS[kind]) for name, kind in kinds.items()}
    yolo = [name for name in AVAILABLE_MODELS["face_detector"] if name.startswith("yolo")]
    return {**found, "yolo": len(yolo)}


def confidence_is_fixed() -> dict[str, Any]:
    """What the confidence is computed from, and where it lies."""
    spread = {"matches": [100.0, 0.0], "others": [100.0, 0.0]}
    for name in AVAILABLE_MODELS["facial_recognition"]:
        at = find_threshold(name, "cosine")
        for distance in np.linspace(0, 1, 201):
            ends = spread["matches" if distance <= at else "others"]
            given = find_confidence(distance, name, bool(distance <= at), "cosine")
            ends[:] = min(ends[0], given), max(ends[1], given)
    asks = list(inspect.signature(find_confidence).parameters)
    return {**spread, "asks": asks}


def threshold() -> dict[str, float]:
    """ArcFace's."""
    return {"arcface": find_threshold("ArcFace", "cosine")}


def databases() -> dict[str, int]:
    """How many kinds of database faces can be enrolled in."""
    return {"databases": len(database_inventory)}


def runs_in() -> dict[str, Any]:
    """In what networks run, in order; and what ONNX Runtime is asked for where nothing is set."""
    return {"backends": backend_utils.BACKENDS, "onnx": onnx_utils.DEFAULT_PROVIDERS}
