"""A graph of operations, written as NumPy is: values have operators, and nothing is worked out yet.

What comes of it are names and numbers only; `faircal.production.onnx.export` makes an ONNX file of
them. Operations are those of ONNX, under their names.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Kind = np.dtype[Any]

DOUBLE, SINGLE = np.dtype(np.float64), np.dtype(np.float32)
WHOLE, TRUTH = np.dtype(np.int64), np.dtype(np.bool_)

#: Arrays up to so many numbers are kept once, however often they are asked for.
_SMALL = 16


class Node(NamedTuple):
    """One operation: its ONNX name, what goes in, what comes out, its settings."""

    operation: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    settings: dict[str, Any]


class Port(NamedTuple):
    """An input or output: its name, its kind of number, and its shape, where known."""

    name: str
    kind: Kind
    shape: tuple[int | str, ...]
    meaning: str


@dataclass(eq=False)
class Graph:
    """Operations in order, the arrays that they use, inputs and outputs.

    Examples
    --------
    >>> graph = Graph()
    >>> x = graph.input("x", DOUBLE, ("n",), "any number")
    >>> graph.output("y", 2 * x + 1, ("n",), "a larger one")
    >>> [node.operation for node in graph.nodes]
    ['Mul', 'Add', 'Identity']
    """

    nodes: list[Node] = field(default_factory=list)
    arrays: dict[str, Array] = field(default_factory=dict)
    inputs: list[Port] = field(default_factory=list)
    outputs: list[Port] = field(default_factory=list)
    _known: dict[tuple[str, tuple[int, ...], bytes], str] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Bytes of all arrays."""
        return sum(array.nbytes for array in self.arrays.values())

    def input(
        self, name: str, kind: Kind, shape: tuple[int | str, ...], meaning: str
    ) -> GraphValue:
        """Declare an input; a length that is not known beforehand has a name."""
        self.inputs.append(Port(name, kind, shape, meaning))
        return GraphValue(self, name, kind)

    def output(
        self, name: str, value: GraphValue, shape: tuple[int | str, ...], meaning: str
    ) -> None:
        """Declare an output."""
        self.nodes.append(Node("Identity", (value.name,), (name,), {}))
        self.outputs.append(Port(name, value.kind, shape, meaning))

    def constant(self, numbers: Any, kind: Kind | None = None) -> GraphValue:
        """Return an array, or one number, that is part of the graph."""
        array = np.ascontiguousarray(numbers, dtype=kind).reshape(np.shape(numbers))
        small = array.size <= _SMALL
        key = (array.dtype.name, array.shape, array.tobytes() if small else b"")
        name = self._known.get(key) if small else None
        if name is None:
            name = f"array_{len(self.arrays)}"
            self.arrays[name] = array
            if small:
                self._known[key] = name
        return GraphValue(self, name, array.dtype)

    def op(
        self, operation: str, *inputs: GraphValue, kind: Kind | None = None, **settings: Any
    ) -> GraphValue:
        """Add an operation with one output, of the kind of its first input unless told."""
        return self.ops(operation, *inputs, kinds=(kind or inputs[0].kind,), **settings)[0]

    def ops(
        self, operation: str, *inputs: GraphValue, kinds: tuple[Kind, ...], **settings: Any
    ) -> tuple[GraphValue, ...]:
        """Add an operation with an output of each of `kinds`."""
        start = f"{operation.lower()}_{len(self.nodes)}"
        names = (start, *(f"{start}_{i}" for i in range(1, len(kinds))))
        self.nodes.append(Node(operation, tuple(value.name for value in inputs), names, settings))
        return tuple(GraphValue(self, name, kind) for name, kind in zip(names, kinds, strict=True))


@dataclass(frozen=True, eq=False)
class GraphValue:
    """What an operation will give: a name, and the kind of its numbers."""

    graph: Graph
    name: str
    kind: Kind

    #: An array before an operator leaves it to us, rather than going through its own numbers.
    __array_ufunc__ = None

    def _with(self, operation: str, other: Any, kind: Kind | None = None) -> GraphValue:
        return self.graph.op(operation, self, self._like(other), kind=kind)

    def _before(self, operation: str, other: Any) -> GraphValue:
        return self.graph.op(operation, self._like(other), self)

    def _like(self, other: Any) -> GraphValue:
        return other if isinstance(other, GraphValue) else self.graph.constant(other, self.kind)

    def __add__(self, other: Any) -> GraphValue:
        return self._with("Add", other)

    def __radd__(self, other: Any) -> GraphValue:
        return self._before("Add", other)

    def __sub__(self, other: Any) -> GraphValue:
        return self._with("Sub", other)

    def __rsub__(self, other: Any) -> GraphValue:
        return self._before("Sub", other)

    def __mul__(self, other: Any) -> GraphValue:
        return self._with("Mul", other)

    def __rmul__(self, other: Any) -> GraphValue:
        return self._before("Mul", other)

    def __truediv__(self, other: Any) -> GraphValue:
        return self._with("Div", other)

    def __rtruediv__(self, other: Any) -> GraphValue:
        return self._before("Div", other)

    def __matmul__(self, other: Any) -> GraphValue:
        return self._with("MatMul", other)

    def __neg__(self) -> GraphValue:
        return self.graph.op("Neg", self)

    def __lt__(self, other: Any) -> GraphValue:
        return self._with("Less", other, TRUTH)

    def __le__(self, other: Any) -> GraphValue:
        return self._with("LessOrEqual", other, TRUTH)

    def __gt__(self, other: Any) -> GraphValue:
        return self._with("Greater", other, TRUTH)

    def __ge__(self, other: Any) -> GraphValue:
        return self._with("GreaterOrEqual", other, TRUTH)

    def equals(self, other: Any) -> GraphValue:
        """Say where numbers are the same."""
        return self._with("Equal", other, TRUTH)

    def __and__(self, other: GraphValue) -> GraphValue:
        return self._with("And", other)

    def __invert__(self) -> GraphValue:
        return self.graph.op("Not", self)

    def least(self, other: Any) -> GraphValue:
        """Return the smaller of each two."""
        return self._with("Min", other)

    def most(self, other: Any) -> GraphValue:
        """Return the larger of each two."""
        return self._with("Max", other)

    def clipped(self, low: float, high: float) -> GraphValue:
        """Return what is kept between two numbers; what becomes of NaN is not said."""
        return self.most(low).least(high)

    def exp(self) -> GraphValue:
        """Return e to the power of each."""
        return self.graph.op("Exp", self)

    def log(self) -> GraphValue:
        """Return the natural logarithm of each."""
        return self.graph.op("Log", self)

    def sum(self, axis: int) -> GraphValue:
        """Return sums along an axis, which goes."""
        axes = self.graph.constant([axis], WHOLE)
        return self.graph.op("ReduceSum", self, axes, keepdims=0)

    def max(self, axis: int) -> GraphValue:
        """Return the largest along an axis, which stays with length 1."""
        return self.graph.op("ReduceMax", self, self.graph.constant([axis], WHOLE), keepdims=1)

    def take(self, which: GraphValue, axis: int = 0) -> GraphValue:
        """Return the entries that `which` names along an axis."""
        return self.graph.op("Gather", self, which, axis=axis)

    def columns(self, start: int, stop: int) -> GraphValue:
        """Return columns of a matrix."""
        ends = (self.graph.constant([place], WHOLE) for place in (start, stop, 1))
        return self.graph.op("Slice", self, *ends)

    def column(self, number: int) -> GraphValue:
        """Return one column of a matrix as a vector."""
        return self.take(self.graph.constant(number, WHOLE), axis=1)

    def reshaped(self, *shape: int) -> GraphValue:
        """Return the same numbers in another shape; 0 keeps a length, −1 is what is left."""
        return self.graph.op("Reshape", self, self.graph.constant(shape, WHOLE))

    def cast(self, kind: Kind) -> GraphValue:
        """Return numbers of another kind."""
        return self.graph.op("Cast", self, kind=kind, to=kind)

    def where(self, yes: Any, no: Any) -> GraphValue:
        """Return `yes` where this is true and `no` where not; one of both is a value."""
        like = yes if isinstance(yes, GraphValue) else no
        yes, no = like._like(yes), like._like(no)
        return self.graph.op("Where", self, yes, no, kind=like.kind)


def sigmoid(eta: GraphValue) -> GraphValue:
    """Return 1 / (1 + e^−η); ONNX's own takes digits from small probabilities."""
    return 1.0 / ((-eta).exp() + 1.0)
