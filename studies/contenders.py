"""The methods of the study by name, each made for a seed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import faircal

Make = Callable[[int], Any]

#: Made fast, to try the study out: nothing is chosen by cross-validation.
_QUICK: dict[str, Any] = {"n_components": 12, "ridge": 60.0}

METHODS: dict[str, Make] = {
    "baseline": lambda _: faircal.Baseline(),
    "gst": lambda _: faircal.GST(),
    "fsn": lambda seed: faircal.FSN(random_state=seed),
    "faircal": lambda seed: faircal.FairCal(random_state=seed),
    "smooth": lambda seed: faircal.SmoothFairCal(random_state=seed),
    "oracle": lambda _: faircal.Oracle(),
}

#: What is changed in SmoothFairCal, for the ablations.
ABLATIONS: dict[str, dict[str, Any]] = {
    "smooth, no mixture": {"n_components": 1},
    "smooth, no regions": {"n_regions": 1},
    "smooth, mixture only": {"ridge": 1e6},
    "smooth, coordinates only": {"n_components": 1, "n_regions": 1},
    "smooth, 8 components": {"n_components": 8},
    "smooth, 12 components": {"n_components": 12},
    "smooth, 16 components": {"n_components": 16},
    "smooth, 24 components": {"n_components": 24},
    "smooth, 12 components, ridge 15": {"n_components": 12, "ridge": 15.0},
    "smooth, 12 components, ridge 60": {"n_components": 12, "ridge": 60.0},
    "smooth, 12 components, ridge 250": {"n_components": 12, "ridge": 250.0},
}

TITLES = {
    "baseline": "Baseline",
    "gst": "GST (knows groups)",
    "fsn": "FSN",
    "faircal": "FairCal",
    "smooth": "SmoothFairCal",
    "oracle": "Oracle (knows groups)",
    "smooth, mixture only": "smooth, mixture only (ridge 10⁶)",
}


def make(name: str, seed: int, quick: bool) -> Any:
    """Return the method `name`, not fitted."""
    if name in METHODS and not (quick and name == "smooth"):
        return METHODS[name](seed)
    return faircal.SmoothFairCal(
        **{**(_QUICK if quick else {}), **ABLATIONS.get(name, {})}, random_state=seed
    )


def title(name: str) -> str:
    """Return the method's name as tables show it."""
    return TITLES.get(name, name)
