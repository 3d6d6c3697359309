"""What pages run with."""

from __future__ import annotations

import pytest

from tests.docs.warm import Warm


@pytest.fixture(scope="session")
def tools():
    """The folder of a ``faircal`` that need not import everything anew."""
    warm = Warm()
    yield warm.folder
    warm.stop()
