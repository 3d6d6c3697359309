"""Every page of docs/explanation does what it shows."""

from __future__ import annotations

import pytest

from tests.docs.running import check, programs


@pytest.mark.parametrize("path", programs("explanation"))
def test_page(path, tmp_path, tools):
    check(path, tmp_path, tools)
