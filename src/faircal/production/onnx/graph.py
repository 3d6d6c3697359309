"""A graph of operations, written as NumPy is: values have operators, and nothing is worked out yet.

Operations are those of ONNX, under their names. The package onnx is needed as soon as one is added.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from faircal._version import __version__

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto, ValueInfoProto

Array = NDArray[Any]
Kind = np.dtype[Any]

DOUBLE, SINGLE = np.dtype(np.float64), np.dtype(np.float32)
INTEGER, BOOLEAN = np.dtype(np.int64), np.dtype(np.bool_)

#: Version of ONNX's operations, and of its files: onnxruntime reads both since 1.14.
OPSET, FORMAT = 18, 8
#: Arrays up to so many numbers are kept once, however often they are asked for.
_SMALL = 16


@dataclass(eq=False)
class Graph:
    """Operations in order, the arrays that they use, inputs and outputs.

    Examples
    --------
    >>> graph = Graph()
    >>> x = graph.input("x", DOUBLE, ("n",), "any number")
    >>> graph.output("y", 2 * x + 1, ("n",), "a larger one")
    >>> [node.op_type for node in graph.nodes]
    ['Mul', 'Add', 'Identity']
    """

    nodes: list[NodeProto] = field(default_factory=list)
    arrays: dict[str, Array] = field(default_factory=dict)
    inputs: list[ValueInfoProto] = field(default_factory=list)
    outputs: list[ValueInfoProto] = field(default_factory=list)
    _kept: dict[tuple[str, tuple[int, ...], bytes], str] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Bytes of all arrays."""
        return sum(array.nbytes for array in self.arrays.values())

    def input(
        self, name: str, kind: Kind, shape: tuple[int | str, ...], meaning: str
    ) -> GraphValue:
        """Declare an input; a length that is not known beforehand has a name."""
        self.inputs.append(_port(name, kind, shape, meaning))
        return GraphValue(self, name, kind)

    def output(
        self, name: str, value: GraphValue, shape: tuple[int | str, ...], meaning: str
    ) -> None:
        """Declare an output."""
        self._add("Identity", (value.name,), name)
        self.outputs.append(_port(name, value.kind, shape, meaning))

    def constant(self, numbers: Any, kind: Kind | None = None) -> GraphValue:
        """Return an array, or one number, that is part of the graph."""
        array = np.ascontiguousarray(numbers, dtype=kind).reshape(np.shape(numbers))
        # Small ones recur in every map, and are kept once; large ones hardly ever do.
        small = array.size <= _SMALL
        key = (array.dtype.name, array.shape, array.tobytes() if small else b"")
        name = self._kept.get(key) if small else None
        if name is None:
            name = f"array_{len(self.arrays)}"
            self.arrays[name] = array
            if small:
                self._kept[key] = name
        return GraphValue(self, name, array.dtype)

    def op(
        self, operation: str, *inputs: GraphValue, kind: Kind | None = None, **settings: Any
    ) -> GraphValue:
        """Add an operation, whose output is of the kind of its first input unless given."""
        name = f"{operation.lower()}_{len(self.nodes)}"
        self._add(operation, tuple(value.name for value in inputs), name, **settings)
        return GraphValue(self, name, kind or inputs[0].kind)

    def _add(self, operation: str, inputs: tuple[str, ...], output: str, **settings: Any) -> None:
        from onnx import helper

        # TopK says where the highest are, too, and does not without.
        outputs = (output, f"{output}_places") if operation == "TopK" else (output,)
        self.nodes.append(helper.make_node(operation, inputs, outputs, output, **settings))

    def to_model(self, name: str, words: str, metadata: Mapping[str, str]) -> ModelProto:
        """Return the graph as ONNX keeps it, checked; `name` and `words` say what it is."""
        from onnx import checker, helper, numpy_helper

        arrays = [numpy_helper.from_array(array, key) for key, array in self.arrays.items()]
        model = helper.make_model(
            helper.make_graph(self.nodes, name, self.inputs, self.outputs, arrays),
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=FORMAT,
            producer_name="faircal",
            producer_version=__version__,
            doc_string=words,
        )
        helper.set_model_props(model, dict(metadata))
        checker.check_model(model, full_check=True)
        return model


def _port(name: str, kind: Kind, shape: tuple[int | str, ...], meaning: str) -> ValueInfoProto:
    from onnx import helper

    element = _element(kind)
    return helper.make_tensor_value_info(name, element, shape, doc_string=meaning)


def _element(kind: Kind) -> int:
    """Return ONNX's number of a kind of numbers."""
    from onnx import helper

    return int(helper.np_dtype_to_tensor_dtype(kind))


def _binary(
    operation: str, kind: Kind | None = None, *, reflected: bool = False
) -> Callable[[GraphValue, Any], GraphValue]:
    """Return a method that adds an operation on a value and another one, or an array."""

    def method(self: GraphValue, other: Any) -> GraphValue:
        values = (self, self._like(other))
        return self.graph.op(operation, *(values[::-1] if reflected else values), kind=kind)

    method.__doc__ = f"Return ONNX's {operation} of this and another value."
    return method


def _unary(operation: str) -> Callable[[GraphValue], GraphValue]:
    """Return a method that adds an operation on a value."""

    def method(self: GraphValue) -> GraphValue:
        return self.graph.op(operation, self)

    method.__doc__ = f"Return ONNX's {operation} of this value."
    return method


@dataclass(frozen=True, eq=False)
class GraphValue:
    """What an operation will give: a name, and the kind of its numbers."""

    graph: Graph
    name: str
    kind: Kind

    #: An array before an operator leaves it to us, rather than going through its own numbers.
    __array_ufunc__ = None

    __add__, __radd__ = _binary("Add"), _binary("Add", reflected=True)
    __sub__, __rsub__ = _binary("Sub"), _binary("Sub", reflected=True)
    __mul__, __rmul__ = _binary("Mul"), _binary("Mul", reflected=True)
    __truediv__, __rtruediv__ = _binary("Div"), _binary("Div", reflected=True)
    __matmul__, __and__ = _binary("MatMul"), _binary("And")
    __lt__, __le__ = _binary("Less", BOOLEAN), _binary("LessOrEqual", BOOLEAN)
    __gt__, __ge__ = _binary("Greater", BOOLEAN), _binary("GreaterOrEqual", BOOLEAN)
    __neg__, __invert__ = _unary("Neg"), _unary("Not")
    equals, least, most = _binary("Equal", BOOLEAN), _binary("Min"), _binary("Max")
    exp, log = _unary("Exp"), _unary("Log")

    def _like(self, other: Any) -> GraphValue:
        return other if isinstance(other, GraphValue) else self.graph.constant(other, self.kind)

    def clipped(self, low: float, high: float) -> GraphValue:
        """Return what is kept between two numbers; what becomes of NaN is not said."""
        return self.most(low).least(high)

    def sum(self, axis: int) -> GraphValue:
        """Return sums along an axis, which goes."""
        axes = self.graph.constant([axis], INTEGER)
        return self.graph.op("ReduceSum", self, axes, keepdims=0)

    def max(self, axis: int) -> GraphValue:
        """Return the largest along an axis, which stays with length 1."""
        return self.graph.op("ReduceMax", self, self.graph.constant([axis], INTEGER), keepdims=1)

    def take(self, which: GraphValue, axis: int = 0) -> GraphValue:
        """Return the entries that `which` names along an axis."""
        return self.graph.op("Gather", self, which, axis=axis)

    def columns(self, start: int, stop: int) -> GraphValue:
        """Return columns of a matrix."""
        ends = (self.graph.constant([place], INTEGER) for place in (start, stop, 1))
        return self.graph.op("Slice", self, *ends)

    def column(self, number: int) -> GraphValue:
        """Return one column of a matrix as a vector."""
        return self.take(self.graph.constant(number, INTEGER), axis=1)

    def reshaped(self, *shape: int) -> GraphValue:
        """Return the same numbers in another shape; 0 keeps a length, −1 is what is left."""
        return self.graph.op("Reshape", self, self.graph.constant(shape, INTEGER))

    def cast(self, kind: Kind) -> GraphValue:
        """Return numbers of another kind."""
        return self.graph.op("Cast", self, kind=kind, to=_element(kind))

    def where(self, yes: Any, no: Any) -> GraphValue:
        """Return `yes` where this is true and `no` where not; one of both is a value."""
        like = yes if isinstance(yes, GraphValue) else no
        yes, no = like._like(yes), like._like(no)
        return self.graph.op("Where", self, yes, no, kind=like.kind)


def sigmoid(eta: GraphValue) -> GraphValue:
    """Return 1 / (1 + e^−η); ONNX's own takes digits from small probabilities."""
    return 1.0 / ((-eta).exp() + 1.0)
