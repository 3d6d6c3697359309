"""Networks by name: the paper's three, dlib's, and any ONNX network that is described."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

import numpy as np

from faircal._base.errors import DataError, ModelFileError, ParameterError
from faircal._base.registry import Registry, device_kind
from faircal.embedding.network import Faces, Network, Vectors
from faircal.embedding.onnx_network import OnnxNetwork
from faircal.embedding.preprocessing import (
    DLIB_POINTS,
    PRESETS,
    Preprocessing,
    read_description,
)
from faircal.embedding.weights import Weights, require, sha256_of


class FaceNet(Network):
    """Inception-ResNet v1 with facenet-pytorch's published weights."""

    module = "torch"

    def __init__(
        self, name: str, preprocessing: Preprocessing, path: Path, device: str, n_classes: int
    ) -> None:
        super().__init__(name, preprocessing, path)
        from faircal.compute.device import choose_device
        from faircal.embedding.facenet import load_facenet

        self._device = choose_device(device)
        self.parallel = self._device.type == "cpu"
        self._network = load_facenet(path, n_classes, self._device)

    def run(self, faces: Faces) -> Vectors:
        """Return what the network gives."""
        import torch

        with torch.inference_mode():
            numbers = torch.from_numpy(self.preprocessing(faces)).to(self._device)
            return np.asarray(self._network(numbers).cpu().numpy(), dtype=np.float32)


class DlibNetwork(Network):
    """dlib's ResNet, 128-d, on the CPU: the registry's dlib has no CUDA."""

    module = "dlib"

    def __init__(self, name: str, preprocessing: Preprocessing, path: Path, device: str) -> None:
        if device_kind(device) == "cuda":
            raise ParameterError("device: network dlib has no CUDA here; choose auto or cpu")
        super().__init__(name, preprocessing, path)
        import dlib

        self._network = dlib.face_recognition_model_v1(str(path))

    def run(self, faces: Faces) -> Vectors:
        """Return what the network gives."""
        chips = [np.ascontiguousarray(face) for face in faces]
        return np.asarray(self._network.compute_face_descriptor(chips), dtype=np.float32)


class _Open(Protocol):
    def __call__(
        self, name: str, preprocessing: Preprocessing, path: Path, device: str
    ) -> Network: ...


@dataclass(frozen=True)
class Known:
    """A network that faircal knows by name.

    Attributes
    ----------
    what : str
        In a few words, for lists.
    open : callable
        Makes the network.
    preprocessing, weights
    detector : str
        The one its owners use with it.
    needs : (str, str)
        The module it runs on, and the extra that brings that.
    """

    what: str
    open: _Open
    preprocessing: Preprocessing
    weights: Weights
    detector: str
    needs: tuple[str, str]


_FACENET = "https://github.com/timesler/facenet-pytorch/releases/download/v2.2.9/"
NETWORKS: Registry[Known] = Registry("network")
NETWORKS.register(
    "dlib",
    Known(
        "dlib's ResNet, 128-d; needs no file: for first steps",
        DlibNetwork,
        Preprocessing(150, points=DLIB_POINTS, normalize=False),
        Weights(
            "dlib_face_recognition_resnet_model_v1.dat",
            "55533b28a95800a551ba546ba62fe69625c7e95a7061c338adffead08719da30",
            "pip install 'faircal[embed]'",
            "public domain (CC0)",
            "face_recognition_models",
            "models",
        ),
        "dlib",
        ("dlib", "embed"),
    ),
)
NETWORKS.register(
    "facenet-vggface2",
    Known(
        "FaceNet trained on VGGFace2, 512-d (the paper's)",
        partial(FaceNet, n_classes=8631),
        PRESETS["facenet"],
        Weights(
            "20180402-114759-vggface2.pt",
            "281cebca8662831adb987a874bdcb36e73f5b1c6dc5ee5878f305e985625d99b",
            f"{_FACENET}20180402-114759-vggface2.pt",
            "MIT; trained on VGGFace2",
        ),
        "mtcnn",
        ("torch", "torch"),
    ),
)
NETWORKS.register(
    "facenet-webface",
    Known(
        "FaceNet trained on CASIA-Webface, 512-d (the paper's)",
        partial(FaceNet, n_classes=10575),
        PRESETS["facenet"],
        Weights(
            "20180408-102900-casia-webface.pt",
            None,  # no published checksum was found; the shape of its last layer tells it apart
            f"{_FACENET}20180408-102900-casia-webface.pt",
            "MIT; trained on CASIA-Webface, for research",
        ),
        "mtcnn",
        ("torch", "torch"),
    ),
)
NETWORKS.register(
    "arcface",
    Known(
        "ArcFace ResNet-100 of the ONNX model zoo, 512-d (the paper's)",
        OnnxNetwork,
        PRESETS["arcface"],
        Weights(
            "arcfaceresnet100-8.onnx",
            "f3a6bc281e72f88862f5748b53be3d76b3b48f8f1ab1f4a537941bdc4e1b01da",
            "https://github.com/onnx/models/raw/main/validated/vision/body_analysis/arcface/model/"
            "arcfaceresnet100-8.onnx",
            "Apache-2.0; trained on refined MS-Celeb-1M",
        ),
        "mtcnn",
        ("onnxruntime", "embed"),
    ),
)


def open_network(
    name: str, *, preset: str | None = None, weights: Path | None = None, device: str = "auto"
) -> Network:
    """Open a network: one known by name, an ``.onnx`` file, or a ``.toml`` that describes one.

    Parameters
    ----------
    name : str
        A name of `NETWORKS`, or a path.
    preset : str, optional
        What an ``.onnx`` file takes; a name of `PRESETS`.
    weights : Path, optional
        The weights of a known network, in place of those in the cache folder.
    device : {"auto", "cpu", "cuda"}
    """
    network = _open(name, preset, weights, device)
    network.try_out()
    return network


def _open(name: str, preset: str | None, weights: Path | None, device: str) -> Network:
    path = Path(name)
    suffix = path.suffix.lower()
    if suffix not in (".onnx", ".toml"):
        return _open_known(name, preset, weights, device)
    if weights is not None:
        raise ParameterError("--weights: is for networks known by name; a file is the network")
    if suffix == ".toml":
        if preset is not None:
            raise ParameterError("--preset: is for an .onnx file; put 'preset' into the TOML file")
        told = read_description(path)
        return _described(told.name, told.preprocessing, told.file, told.sha256, device)
    if preset is None:
        raise ParameterError(
            f"{path}: say what the network takes with --preset ({', '.join(PRESETS)}), "
            "or describe it in a TOML file"
        )
    return _described(path.stem, PRESETS[preset], path, None, device)


def _open_known(name: str, preset: str | None, weights: Path | None, device: str) -> Network:
    known = NETWORKS[name]
    if preset is not None:
        raise ParameterError(f"--preset: is for an .onnx file; {name} has its own")
    require(*known.needs, f"network {name}")  # before its weights are looked for
    return known.open(
        name, known.preprocessing, known.weights.find(weights, option="--weights"), device
    )


def _described(
    name: str, preprocessing: Preprocessing, path: Path, sha256: str | None, device: str
) -> Network:
    if not path.is_file():
        raise DataError(f"{path}: no such file; check the path of the network")
    found = sha256_of(path)
    if sha256 is not None and found != sha256.lower():
        raise ModelFileError(f"{path}: expected SHA-256 {sha256}, found {found}; get it again")
    require("onnxruntime", "embed", f"network {name}")
    return OnnxNetwork(name, preprocessing, path, device)
