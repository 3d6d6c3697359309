"""What results and model files say of the software that made them."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

import pytest

import faircal
from faircal.model import versions


class TestVersions:
    def test_of_all_that_results_depend_on(self):
        found = versions()
        assert found["faircal"] == faircal.__version__
        for name in ("numpy", "scipy", "scikit-learn", "pyarrow"):
            assert found[name] == version(name)

    def test_of_an_extra_where_it_is_installed(self):
        try:
            expected = version("torch")
        except PackageNotFoundError:
            pytest.skip("torch is not installed")
        assert versions()["torch"] == expected

    def test_an_extra_that_is_not_installed_is_not_named(self, monkeypatch):
        def without_torch(name):
            if name == "torch":
                raise PackageNotFoundError(name)
            return version(name)

        expected = {key: value for key, value in versions().items() if key != "torch"}
        monkeypatch.setattr("faircal.model.about.version", without_torch)
        assert versions() == expected
