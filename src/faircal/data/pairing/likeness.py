"""How alike the two people of imposter pairs are, compared with strangers at random."""

from __future__ import annotations

import numpy as np

from faircal.data.pairing.inputs import Vectors
from faircal.data.pairing.people import People
from faircal.data.pairing.sampling import Ints

#: Pairs of a block.
_BLOCK = 8192


def how_alike(vectors: Vectors, who: People, fold: Ints, left: Ints, right: Ints) -> str:
    """Say how alike imposters are, and what that means for probabilities fitted to them.

    Parameters
    ----------
    vectors : ndarray of shape (n_images, d)
        Of unit length.
    fold : ndarray of shape (n_people,)
        The fold of each person, 0, 1, ….
    left, right : ndarray of shape (n_pairs,)
        Imposter pairs of all folds, as places in ``who.image``.
    """
    found = usual = 0.0
    home = fold[who.person]
    for number, pairs in enumerate(np.bincount(home[left])):
        usual += float(pairs * _strangers(vectors, who, np.flatnonzero(home == number)))
    for begin in range(0, len(left), _BLOCK):
        one, two = (_rows(vectors, who, side[begin : begin + _BLOCK]) for side in (left, right))
        found += float(np.einsum("ij,ij->", one, two, dtype=np.float64))
    found, usual = found / len(left), usual / len(left)
    said = f"likeness: mean cosine {found:.3f} of imposters, {usual:.3f} of strangers at random"
    if found <= usual:
        return said
    return f"{said}; where use compares anybody, probabilities fitted to these pairs are too low"


def _strangers(vectors: Vectors, who: People, places: Ints) -> float:
    """Return the mean cosine of all pairs of strangers among images, without listing pairs."""
    person = who.person[places]
    start = np.flatnonzero(np.diff(person, prepend=-1))
    images = np.diff(start, append=len(person)).astype(np.float64)
    each = np.add.reduceat(_rows(vectors, who, places), start, axis=0, dtype=np.float64)
    both = each.sum(axis=0)
    number = images.sum() ** 2 - (images**2).sum()
    return float((both @ both - np.einsum("ij,ij->", each, each)) / number)


def _rows(vectors: Vectors, who: People, places: Ints) -> Vectors:
    return np.asarray(vectors[who.image[places]], dtype=np.float32)
