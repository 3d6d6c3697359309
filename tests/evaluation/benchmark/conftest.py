"""Datasets that differ from a simulated one in what is known of the images."""

from __future__ import annotations

import pytest

import faircal


@pytest.fixture(scope="session")
def with_attributes():
    """Return a function that gives `data` other attributes (none), and other folds if asked."""

    def rebuild(data, attributes=None, fold=None):
        pairs = data.pairs
        return faircal.Dataset(
            embeddings=data.embeddings.vectors,
            pairs={
                "left": pairs.left,
                "right": pairs.right,
                "genuine": pairs.genuine,
                "fold": pairs.fold if fold is None else fold,
            },
            attributes=attributes,
        )

    return rebuild
