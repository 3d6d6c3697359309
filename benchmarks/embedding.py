"""``faircal embed`` against the bare calls of the same network, which is a stand-in."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from PIL import Image
from skimage import data

from benchmarks.figure import Figure, aside, ratio

#: Stages of a MobileFaceNet: width, blocks, stride, expansion.
_STAGES = ((64, 5, 2, 2), (128, 1, 2, 4), (128, 6, 1, 2), (128, 1, 2, 4), (128, 2, 1, 2))


class _Graph:
    """Layers, one after the other."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self.last, self.width = "data", 3

    def _weight(self, shape: tuple[int, ...]) -> str:
        name = f"w{len(self.weights)}"
        values = self._rng.normal(size=shape) / np.sqrt(np.prod(shape[1:]))
        self.weights.append(numpy_helper.from_array(values.astype(np.float32), name))
        return name

    def add(self, kind: str, *inputs: str, **attributes: object) -> str:
        name = f"x{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], **attributes))
        self.last = name
        return name

    def convolution(
        self, width: int, side: int, stride: int = 1, groups: int = 1, pad: int = 0
    ) -> None:
        weight = self._weight((width, self.width // groups, side, side))
        self.add(
            "Conv",
            self.last,
            weight,
            kernel_shape=[side, side],
            strides=[stride, stride],
            pads=[pad] * 4,
            group=groups,
        )
        self.width = width

    def block(self, width: int, stride: int, expansion: int) -> None:
        """Widen, look around in each channel, narrow; add the input where it fits."""
        before, inside = self.last, self.width * expansion
        fits = stride == 1 and width == self.width
        self.convolution(inside, 1)
        self.add("Relu", self.last)
        self.convolution(inside, 3, stride, groups=inside, pad=1)
        self.add("Relu", self.last)
        self.convolution(width, 1)
        if fits:
            self.add("Add", self.last, before)


def mobilefacenet(path: Path, seed: int = 0) -> Path:
    """Write a network of MobileFaceNet's shape: 112 × 112 in, 128 numbers out, 0.22 GMAC."""
    graph = _Graph(seed)
    graph.convolution(64, 3, 2, pad=1)
    graph.add("Relu", graph.last)
    graph.convolution(64, 3, 1, groups=64, pad=1)
    graph.add("Relu", graph.last)
    for width, blocks, stride, expansion in _STAGES:
        for i in range(blocks):
            graph.block(width, stride if i == 0 else 1, expansion)
    graph.convolution(512, 1)
    graph.add("Relu", graph.last)
    graph.convolution(512, 7, groups=512)
    graph.convolution(128, 1)
    graph.add("Flatten", graph.last)
    image = helper.make_tensor_value_info("data", TensorProto.FLOAT, ["n", 3, 112, 112])
    vector = helper.make_tensor_value_info(graph.last, TensorProto.FLOAT, ["n", 128])
    made = helper.make_graph(graph.nodes, "mobilefacenet", [image], [vector], graph.weights)
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.checker.check_model(model)
    onnx.save(model, path)
    return path


def write_pictures(folder: Path, n: int) -> None:
    """Write `n` JPEG pictures of 250 × 250, cut from a photograph; five a person."""
    photo = data.astronaut().astype(np.int16)
    rng = np.random.default_rng(0)
    for i in range(n):
        person = folder / f"{i // 5:05d}"
        person.mkdir(parents=True, exist_ok=True)
        y, x = rng.integers(0, 250, 2)
        part = np.clip(photo[y : y + 250, x : x + 250] + rng.integers(-20, 20), 0, 255)
        Image.fromarray(part.astype(np.uint8)).save(person / f"{i % 5}.jpg", quality=90)


def bare_calls(network: Path, n: int, batch: int) -> float:
    """Return the seconds that the network alone takes for `n` faces, all cores."""
    session = onnxruntime.InferenceSession(network, providers=["CPUExecutionProvider"])
    faces = np.random.default_rng(0).normal(size=(batch, 3, 112, 112)).astype(np.float32)
    session.run(None, {"data": faces})
    start = time.perf_counter()
    for _ in range(0, n, batch):
        session.run(None, {"data": faces})
    return (time.perf_counter() - start) * n / (-(-n // batch) * batch)


def command(pictures: Path, network: Path, out: Path) -> float:
    """Return the seconds of the whole command, start and writing included."""
    words = ["embed", pictures, "--network", network, "--preset", "mobilefacenet"]
    start = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "faircal", *words, "--detector", "none", "--out", out],
        check=True,
        capture_output=True,
    )
    return time.perf_counter() - start


def figures(quick: bool) -> list[Figure]:
    """Compare; the bare calls are timed before and after, and in the batch that suits them best."""
    n = 200 if quick else 13_000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_pictures(folder / "pictures", n)
        network = mobilefacenet(folder / "mobilefacenet.onnx")
        before = min(bare_calls(network, n, batch) for batch in (32, 64))
        ours = command(folder / "pictures", network, folder / "data")
        after = min(bare_calls(network, n, batch) for batch in (32, 64))
    what = f"embed {n:,} pictures of 250 × 250, 112 × 112 network: time / bare network calls"
    return [
        ratio("time", what, ours / min(before, after), "lower"),
        aside("noise", "    bare calls after / before", after / before),
        aside("rate", "    pictures", n / ours, "per second"),
    ]
