"""Where images lie in the population that a model was calibrated on."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from faircal.compute import CPU, Engine
from faircal.compute.nearest import BLOCK, Nearest
from faircal.compute.threads import each, one_blas_thread
from faircal.data import Embeddings
from faircal.methods import Method
from faircal.methods.clusters import ClusterMethod, space_of
from faircal.methods.enrolled import Enrolled
from faircal.methods.inputs import Space
from faircal.model import Places, Population

Rows = NDArray[np.intp]

#: What is kept of an image: `Places`, by row.
_PLACE = np.dtype([("cluster", np.int32), ("distance", np.float32), ("outside", np.bool_)])


class Placing:
    """Says where images lie; each is looked at once, for as long as its embeddings are there.

    Where the population's centres are those of the model, the model is told the clusters, and need
    not look for them again. Several threads may use it at a time.

    Parameters
    ----------
    model : Method
    population : Population
        That of the model; it has centres.
    space : Space
        What embeddings must be like.
    """

    def __init__(self, model: Method, population: Population, space: Space) -> None:
        self._population = population
        self._enrolled = Enrolled(space, self._work, _PLACE)
        self._nearest = Nearest.of(population.centers)
        same = isinstance(model, ClusterMethod) and np.array_equal(
            model.cluster_centers_, population.centers
        )
        self._tell = model if isinstance(model, ClusterMethod) and same else None

    @classmethod
    def of_model(cls, model: Method) -> Placing | None:
        """Return that of a model; None where it has no population of images."""
        population, space = model.about_.population, space_of(model)
        if population is None or not len(population.centers) or space is None:
            return None
        return cls(model, population, space)

    def __call__(self, embeddings: Embeddings, images: Rows) -> Places:
        """Return places by row of `embeddings`; only those of `images` are sure to be there."""
        found = self._enrolled.at(embeddings, images)
        places = Places(found["cluster"], found["distance"], found["outside"])
        if self._tell is not None:
            self._tell.know_clusters(embeddings, images, places.cluster[images])
        return places

    def once(self, embeddings: Embeddings) -> Places:
        """Return the places of all rows of embeddings that will not be seen again."""
        n, images = len(embeddings), np.arange(len(embeddings))
        if n <= BLOCK or embeddings.engine is not CPU:
            places = self._place(embeddings.rows(images), embeddings.engine)
        else:
            places = Places(np.empty(n, np.int32), np.empty(n, np.float32), np.empty(n, np.bool_))

            def work(block: slice) -> None:  # while the vectors are in the cache
                part = self._place(embeddings.rows(images[block]), embeddings.engine)
                for whole, values in zip(places, part, strict=True):
                    whole[block] = values

            with one_blas_thread():
                each(work, n, BLOCK)
        if self._tell is not None:
            self._tell.know_clusters(embeddings, images, places.cluster)
        return places

    def _work(self, vectors: NDArray[np.float32], engine: Engine) -> NDArray[Any]:
        found = np.empty(len(vectors), dtype=_PLACE)

        def work(block: slice) -> None:
            for name, values in zip(
                Places._fields, self._place(vectors[block], engine), strict=True
            ):
                found[name][block] = values

        with one_blas_thread():
            each(work, len(vectors), BLOCK if engine is CPU else max(len(vectors), 1))
        return found

    def _place(self, vectors: NDArray[np.float32], engine: Engine) -> Places:
        if engine is CPU:
            return self._population.place(vectors, self._nearest(vectors))
        centers = self._population.centers
        return self._population.place(vectors, engine.assign(vectors, centers))
