"""What a model works out of each image once, and remembers for as long as the images are there."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from faircal.compute import Engine
from faircal.data import Embeddings
from faircal.methods.inputs import Inputs, Space

#: Images looked at at a time: their vectors are copied.
_IMAGES = 2**17


class Enrolled:
    """Values of images, by row of their embeddings.

    Parameters
    ----------
    space : Space
        What the embeddings must have in common with those of the fit.
    work : callable
        Gives the values of some vectors, an array with a row for each.
    width : int, optional
        Values of an image; one number, not a row of one, where it is not given.
    dtype : numpy dtype
    """

    def __init__(
        self,
        space: Space,
        work: Callable[[NDArray[np.float32], Engine], NDArray[Any]],
        dtype: Any,
        width: int | None = None,
    ) -> None:
        self._space, self._work, self._dtype = space, work, dtype
        self._shape = () if width is None else (width,)
        self._known: tuple[weakref.ref[Embeddings], NDArray[Any], NDArray[np.bool_]] | None = None

    def of(self, inputs: Inputs) -> NDArray[Any]:
        """Return values by row; only those of the images of `inputs` are sure to be there."""
        embeddings = inputs.declared_embeddings()
        known = self._known
        if known is None or known[0]() is not embeddings:
            self._space.check(embeddings)
            values = np.empty((len(embeddings), *self._shape), dtype=self._dtype)
            # A model must not keep all the vectors alive that it was ever asked about.
            known = weakref.ref(embeddings), values, np.zeros(len(embeddings), dtype=bool)
            self._known = known
        _, values, done = known
        new = inputs.images[~done[inputs.images]]
        for start in range(0, len(new), _IMAGES):
            rows = new[start : start + _IMAGES]
            values[rows] = self._work(embeddings.rows(rows), inputs.engine)
            done[rows] = True
        return values
