"""Ways to write owners' files, to save what was read from them, and to see it refused."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import faircal
from faircal._base.errors import DataError


@dataclass(frozen=True)
class Saved:
    """A dataset folder that an importer made."""

    folder: Path

    @property
    def files(self):
        return sorted(path.name for path in self.folder.iterdir())

    @property
    def about(self):
        return json.loads((self.folder / "dataset.json").read_text())

    def rows(self, stem):
        """Return the rows of a table as tuples of text, without the header."""
        with (self.folder / f"{stem}.csv").open(newline="", encoding="utf-8") as file:
            return [tuple(row) for row in csv.reader(file)][1:]

    def header(self, stem):
        with (self.folder / f"{stem}.csv").open(newline="", encoding="utf-8") as file:
            return next(csv.reader(file))

    def load(self, *, embed=True, **more):
        """Load the folder, with made-up embeddings unless it brings scores."""
        if embed:
            n = len(self.rows("images"))
            vectors = np.random.default_rng(0).normal(size=(n, 4)).astype(np.float32)
            np.save(self.folder / "embeddings.npy", vectors)
        return faircal.load(self.folder, **more)


@pytest.fixture
def write(tmp_path):
    """Return a function that writes a file below the test's folder, and gives its path."""

    def write(name, content=""):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


@pytest.fixture
def save(tmp_path):
    """Return a function that saves an import to a new folder."""

    def save(found, name="data"):
        target = tmp_path / "made" / name
        assert found.save(target) == target
        assert [path.name for path in target.parent.glob(".*")] == []
        return Saved(target)

    return save


@pytest.fixture
def refused(tmp_path):
    """Return a function that expects one line with certain words, and nothing written."""

    def refused(read, *words, error=DataError):
        home = tmp_path / "made"
        home.mkdir(exist_ok=True)
        with pytest.raises(error) as caught:
            read().save(home / "data")
        text = str(caught.value)
        assert "\n" not in text
        for word in words:
            assert word in text
        assert list(home.iterdir()) == []
        return text

    return refused
