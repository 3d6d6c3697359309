"""Fair, calibrated probabilities for face verification, without sensitive attributes.

Names are imported when they are first used, so that ``import faircal`` and ``faircal --help``
stay quick. ``__init__.pyi`` says which there are, and in which modules.

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

import ast
import importlib
from pathlib import Path
from typing import Any

_STUB = ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
#: The module that each name is in; ``faircal`` for modules of its own.
_HOME = {
    alias.name: node.module
    for node in _STUB.body
    if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("faircal")
    for alias in node.names
}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'faircal' has no attribute {name!r}")
    if _HOME[name] == "faircal":
        return importlib.import_module(f"faircal.{name}")
    value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
