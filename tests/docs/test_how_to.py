"""Every page of docs/how-to does what it shows."""

from __future__ import annotations

import pytest

from tests.docs.running import check, programs


@pytest.mark.parametrize("path", programs("how-to"))
def test_page(path, tmp_path, tools):
    check(path, tmp_path, tools)
