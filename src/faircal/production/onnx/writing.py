"""From a graph of names and numbers to an ONNX file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from faircal._base.errors import MissingExtraError, ParameterError
from faircal._base.files import atomic_path
from faircal._version import __version__
from faircal.production.onnx.graph import Graph, Node, Port

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto, ValueInfoProto

#: Version of ONNX's operations, and of its files: onnxruntime reads both since 1.14.
OPSET, FORMAT = 18, 8
#: More than this an ONNX file cannot hold.
MOST_BYTES = 2**31 - 2**20


def check_installed() -> None:
    """Raise `MissingExtraError` where the package onnx is not installed."""
    try:
        import onnx  # noqa: F401
    except ImportError as error:
        raise MissingExtraError(
            "an ONNX graph needs onnx, which is not installed: pip install 'faircal[onnx]'"
        ) from error


def to_onnx(graph: Graph, name: str, words: str, metadata: Mapping[str, str]) -> ModelProto:
    """Return a graph as ONNX knows it, checked.

    Parameters
    ----------
    graph : Graph
    name, words : str
        What it is, in a word and in a sentence.
    metadata : mapping from str to str
    """
    check_installed()
    from onnx import checker, helper, numpy_helper

    if graph.size > MOST_BYTES:
        raise ParameterError(
            f"the maps of the model make a graph of {graph.size / 1e9:.1f} GB, and an ONNX file "
            "holds 2: fit with another calibrator (beta keeps three numbers a map)"
        )
    made = helper.make_model(
        helper.make_graph(
            [_node(node) for node in graph.nodes],
            name,
            [_port(port) for port in graph.inputs],
            [_port(port) for port in graph.outputs],
            [numpy_helper.from_array(array, key) for key, array in graph.arrays.items()],
        ),
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=FORMAT,
        producer_name="faircal",
        producer_version=__version__,
        doc_string=words,
    )
    helper.set_model_props(made, dict(metadata))
    checker.check_model(made, full_check=True)
    return made


def write(model: ModelProto, path: Path) -> None:
    """Write an ONNX file; it appears whole or not at all. The same graph gives the same bytes."""
    with atomic_path(path) as temporary:
        temporary.write_bytes(model.SerializeToString(deterministic=True))


def _node(node: Node) -> NodeProto:
    from onnx import helper

    settings: dict[str, Any] = {
        key: _element(value) if isinstance(value, np.dtype) else value
        for key, value in node.settings.items()
    }
    return helper.make_node(node.operation, node.inputs, node.outputs, node.outputs[0], **settings)


def _port(port: Port) -> ValueInfoProto:
    from onnx import helper

    return helper.make_tensor_value_info(
        port.name, _element(port.kind), port.shape, doc_string=port.meaning
    )


def _element(kind: np.dtype[Any]) -> int:
    from onnx import helper

    return int(helper.np_dtype_to_tensor_dtype(kind))
