"""Datasets that differ from a simulated one in what is known of the images."""

from __future__ import annotations

from dataclasses import replace

import pytest

import faircal


@pytest.fixture(scope="session")
def in_folds():
    """Return a function that puts the folds of `data` together to so many."""

    def put_together(data, n):
        pairs = replace(data.pairs, fold=(data.pairs.fold - 1) % n + 1)
        made = {"score_range": data.score_range, "provenance": data.provenance}
        return faircal.Dataset.assemble(data.name, data.images, pairs, dict(data.features), **made)

    return put_together


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
