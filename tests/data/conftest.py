"""A few faces, in memory and as a folder."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pytest

PEOPLE, SHOTS, DIMENSION = 6, 2, 5


@pytest.fixture
def faces():
    """Columns and vectors of six people with two images each, and all their pairs."""
    rng = np.random.default_rng(0)
    person = np.repeat(np.arange(PEOPLE), SHOTS)
    left, right = np.triu_indices(len(person), 1)
    names = np.array([f"i{row:02}" for row in range(len(person))])
    return SimpleNamespace(
        vectors=rng.normal(size=(len(person), DIMENSION)).astype(np.float32),
        images={
            "image_id": names,
            "identity": np.array([f"p{who}" for who in person]),
            "ethnicity": np.array(["Asian", "Black", "White"])[person % 3],
            "gender": np.array(["F", "M"])[person % 2],
        },
        pairs={
            "left": names[left],
            "right": names[right],
            "genuine": (person[left] == person[right]).astype(int),
            "fold": 1 + (left + right) % 3,
        },
        left=left,
        right=right,
    )


@pytest.fixture
def folder(faces, tmp_path):
    """The same faces as a dataset folder."""
    home = tmp_path / "faces"
    home.mkdir()
    pacsv.write_csv(pa.table(faces.images), home / "images.csv")
    pacsv.write_csv(pa.table(faces.pairs), home / "pairs.csv")
    np.save(home / "embeddings.npy", faces.vectors)
    return home
