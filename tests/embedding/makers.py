"""Networks that stand for the published ones, in the files where these are looked for."""

from __future__ import annotations

import pytest

from faircal.embedding.networks import NETWORKS

#: Pixels that ArcFace and its kin take.
SIZE = 112


def write_onnx(path):
    """Write an ONNX network that takes what ArcFace takes: means of 49 parts of each channel."""
    onnx = pytest.importorskip("onnx")
    helper, floats = onnx.helper, onnx.TensorProto.FLOAT
    pool = {"kernel_shape": [16, 16], "strides": [16, 16]}
    nodes = [
        helper.make_node("AveragePool", ["data"], ["pooled"], **pool),
        helper.make_node("Flatten", ["pooled"], ["fc1"]),
    ]
    inputs = [helper.make_tensor_value_info("data", floats, ["n", 3, SIZE, SIZE])]
    outputs = [helper.make_tensor_value_info("fc1", floats, ["n", 3 * (SIZE // 16) ** 2])]
    graph = helper.make_graph(nodes, "stand-in", inputs, outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(model, path)


def write_facenet(folder):
    """Write drawn weights in the published layout to where those of FaceNet are looked for."""
    torch = pytest.importorskip("torch")
    from faircal.embedding.facenet import InceptionResnetV1

    torch.manual_seed(0)
    weights = InceptionResnetV1().state_dict()
    weights |= {"logits.weight": torch.zeros(10575, 512), "logits.bias": torch.zeros(10575)}
    folder.mkdir(parents=True, exist_ok=True)
    torch.save(weights, folder / NETWORKS["facenet-webface"].weights.file)
