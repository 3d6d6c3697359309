"""The page of the study."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

PAGE = "study-monitoring.md"


def write(rows: Sequence[dict[str, Any]], folder: Path) -> None:
    """Write it."""
