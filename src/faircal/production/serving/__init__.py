"""A model in production: an HTTP service that verifies, enrols and identifies.

`Service` is the core without HTTP, `faircal.production.serving.app.make_app` puts HTTP before it.
Nothing here imports a web framework until it is used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from faircal.production.serving.service import Service
    from faircal.production.serving.settings import Settings

__all__ = ["Service", "Settings"]


def __getattr__(name: str) -> Any:
    """Import what is asked for: the store and the keys work without the rest."""
    if name not in __all__:
        raise AttributeError(f"module 'faircal.production.serving' has no attribute {name!r}")
    return getattr(importlib.import_module(f"faircal.production.serving.{name.lower()}"), name)
