"""What every graph begins with: two vectors a pair, unit length, cosine, nearest centre."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from faircal.production.onnx.graph import DOUBLE, SINGLE, WHOLE, Graph, Value

#: What lengths that are not known beforehand are called.
PAIRS, DIMENSION = "pairs", "dimension"
SideName = Literal["left", "right"]


class Side:
    """One image of each pair.

    Parameters
    ----------
    graph : Graph
    name : {"left", "right"}
    dimension : int, optional
        Of embeddings, where the model knows it.
    normalize : bool
        Whether the model uses vectors of unit length.
    """

    def __init__(
        self, graph: Graph, name: SideName, dimension: int | None, normalize: bool
    ) -> None:
        shape = (PAIRS, dimension or DIMENSION)
        self.graph, self.name, self.normalize = graph, name, normalize
        self.given = graph.input(name, SINGLE, shape, f"embedding of the {name} image")
        self._nearest: list[tuple[NDArray[Any], Value]] = []

    @cached_property
    def exact(self) -> Value:
        """As given, in double precision, (n, d)."""
        return self.given.cast(DOUBLE)

    @cached_property
    def norm(self) -> Value:
        """Euclidean length, (n,), rounded to single precision: faircal keeps it so."""
        squares = (self.exact * self.exact).sum(1)
        return self.graph.op("Sqrt", squares).cast(SINGLE)

    @cached_property
    def usable(self) -> Value:
        """Whether a vector has a direction: not where it is zero, infinite or NaN, (n,)."""
        return (self.norm > 0.0) & (self.norm < np.inf)

    @cached_property
    def vectors(self) -> Value:
        """As the model uses them, (n, d), single precision."""
        return self.given / self.norm.reshaped(-1, 1) if self.normalize else self.given

    @cached_property
    def rows(self) -> Value:
        """The same numbers in double precision, (n, d)."""
        return self.vectors.cast(DOUBLE) if self.normalize else self.exact

    def nearest(self, centers: NDArray[Any]) -> Value:
        """Return the nearest of `centers` (K, d) to each image, (n,); the first of equals."""
        for known, found in self._nearest:
            if np.array_equal(known, centers):
                return found
        exact = centers.astype(np.float64)
        # x·c − ½|c|² is largest for the nearest.
        near = self.rows @ exact.T - np.einsum("ij,ij->i", exact, exact) / 2  # (n, K)
        found = self.graph.op("ArgMax", near, kind=WHOLE, axis=1, keepdims=0)
        self._nearest.append((centers, found))
        return found

    def distance(self, centers: NDArray[np.float32]) -> Value:
        """Return how far images are from their nearest centres, (n,), single precision."""
        away = self.vectors - self.graph.constant(centers, SINGLE).take(self.nearest(centers))
        return self.graph.op("Sqrt", (away * away).sum(1))


class PairInputs:
    """All that a method's graph can ask for; what it does not ask for is no input of the graph.

    Attributes
    ----------
    graph : Graph
    left, right : Side
    group_names : tuple of str
        Those that the codes of groups stand for; none where no groups were asked for.
    """

    def __init__(self, graph: Graph, dimension: int | None, normalize: bool) -> None:
        self.graph = graph
        self.left = Side(graph, "left", dimension, normalize)
        self.right = Side(graph, "right", dimension, normalize)
        self.group_names: tuple[str, ...] = ()

    @cached_property
    def similarity(self) -> Value:
        """The cosine, (n,), in [−1, 1]."""
        dots = (self.left.exact * self.right.exact).sum(1)
        lengths = self.left.norm.cast(DOUBLE) * self.right.norm.cast(DOUBLE)
        return (dots / lengths).clipped(-1.0, 1.0)

    @cached_property
    def usable(self) -> Value:
        """Whether both vectors have a direction, (n,)."""
        return self.left.usable & self.right.usable

    def clusters(self, centers: NDArray[Any]) -> tuple[Value, Value]:
        """Return the nearest centres of both images, (n,) each."""
        return self.left.nearest(centers), self.right.nearest(centers)

    def groups(self, names: tuple[str, ...]) -> tuple[Value, Value]:
        """Return the group of both images that are of one, (n,), and which pairs are of two, (n,).

        Groups come as places in `names`. A place after the last is a group that the model does not
        know, a negative one is unknown. The first value is a place in `names`, or their number
        where the pair is of no group.
        """
        self.group_names = names
        meaning = "place of the group's name in metadata 'groups'; -1 where it is unknown"
        left, right = (
            self.graph.input(f"{side}_group", WHOLE, (PAIRS,), meaning)
            for side in ("left", "right")
        )
        same, known = left.equals(right), (left >= 0) & (right >= 0)
        group = (same & known & (left < len(names))).where(left, len(names))
        return group, ~same & known
