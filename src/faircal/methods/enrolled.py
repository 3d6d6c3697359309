"""What a model works out of each image once, and remembers for as long as the images are there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from faircal.compute import Engine
from faircal.data import Embeddings
from faircal.methods.inputs import Inputs, Space

#: Images looked at at a time: their vectors are copied.
_IMAGES = 2**17

#: Values by row, and which of them are there.
_Known = tuple[NDArray[Any], NDArray[np.bool_]]


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
        # A model must not keep all the vectors alive that it was ever asked about.
        self._known: WeakKeyDictionary[Embeddings, _Known] = WeakKeyDictionary()

    def __getstate__(self) -> dict[str, Any]:
        # What was worked out stays with its embeddings: a copy in another process has others.
        return {**vars(self), "_known": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _known=WeakKeyDictionary())

    def of(self, inputs: Inputs) -> NDArray[Any]:
        """Return values by row; only those of the images of `inputs` are sure to be there."""
        return self.at(inputs.declared_embeddings(), inputs.images)

    def at(self, embeddings: Embeddings, images: NDArray[np.intp]) -> NDArray[Any]:
        """Return values by row of `embeddings`; only those of `images` are sure to be there.

        Several threads may ask at a time: at worst the same is worked out twice.
        """
        values, done = self._kept(embeddings)
        new = images[~done[images]]
        for start in range(0, len(new), _IMAGES):
            rows = new[start : start + _IMAGES]
            values[rows] = self._work(embeddings.rows(rows), embeddings.engine)
            done[rows] = True  # after the values: another thread may look
        return values

    def tell(self, embeddings: Embeddings, images: NDArray[np.intp], found: NDArray[Any]) -> None:
        """Take the values of `images` from somebody who has worked them out."""
        values, done = self._kept(embeddings)
        values[images] = found
        done[images] = True

    def _kept(self, embeddings: Embeddings) -> _Known:
        known = self._known.get(embeddings)
        if known is None:
            self._space.check(embeddings)
            n = len(embeddings)
            new = np.empty((n, *self._shape), dtype=self._dtype), np.zeros(n, dtype=bool)
            known = self._known.setdefault(embeddings, new)
        return known
