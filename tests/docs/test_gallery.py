"""Every page of docs/gallery does what it shows."""

from __future__ import annotations

import pytest

from tests.docs.running import check, programs


@pytest.mark.parametrize("path", programs("gallery"))
def test_page(path, tmp_path, tools):
    check(path, tmp_path, tools)
