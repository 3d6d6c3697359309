"""Pairs in use, as monitoring sees them: what was said of them, and roughly who was in them."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Literal

#: What the numbers of people stand for.
Known = Literal["people", "images"]


@dataclass(frozen=True, eq=False)
class Seen:
    """Pairs that a model was used on; an element of each array a pair. No embedding is in it.

    Pairs of one `Seen` came together: their order means nothing.

    Attributes
    ----------
    score, probability : array-like of float, shape (n_pairs,)
        What the model ranks by, and P(genuine) as the model gave it: not shifted to another share
        of genuine pairs.
    left_cluster, right_cluster : array-like of int, optional
        Nearest centres (`Places.cluster`); None where unknown.
    left_outside, right_outside : array-like of bool, optional
        Whether the images are outside of the calibration population (`Places.outside`).
    left_person, right_person : array-like of int64, optional
        Numbers of the people (or of the images, see `known`), equal where they are the same, −1
        where unknown; hashes will do. Where one side only is known, give that one.
    known : {"people", "images"}
        What those numbers stand for. Identities and templates are people.

    Examples
    --------
    >>> len(Seen([0.2, 0.9], [0.01, 0.99]))
    2
    """

    score: Any
    probability: Any
    left_cluster: Any = None
    right_cluster: Any = None
    left_outside: Any = None
    right_outside: Any = None
    left_person: Any = None
    right_person: Any = None
    known: Known = "people"

    def __len__(self) -> int:
        return len(self.score)


def number_of(name: str) -> int:
    """Return a number for whoever is called `name`: the same for the same, in every process.

    It lies from 2⁶² to 2⁶³ − 1: above ids that are numbers themselves, and never below 0, which
    would be unknown.
    """
    said = blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(said, "little") >> 2 | 1 << 62
