"""What every network is: from aligned faces to vectors."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from faircal._base.errors import DataError, ModelFileError, ParameterError
from faircal._base.files import file_digest
from faircal._base.registry import Registry, device_kind, short
from faircal.embedding.preprocessing import (
    DLIB_POINTS,
    PRESETS,
    Description,
    Preprocessing,
    read_description,
)
from faircal.embedding.weights import Weights, require

Vectors = NDArray[np.float32]
Faces = NDArray[np.uint8]


class Network(ABC):
    """From faces to vectors. Made once, of the weights at `path`; called from several threads."""

    #: The package it runs on.
    module: ClassVar[str]
    #: Whether several threads may call it at once, each on one core, and gain by it. Otherwise one
    #: call at a time has all cores, or the GPU.
    parallel = False

    def __init__(self, name: str, preprocessing: Preprocessing, path: Path) -> None:
        self.name = name
        self.preprocessing = preprocessing
        self.path = path
        self.sha256 = file_digest(path)

    def try_out(self) -> None:
        """Embed a picture of noise; raise where what comes out is no vector of numbers."""
        size = self.preprocessing.size
        noise = np.random.default_rng(0).integers(0, 256, (1, size, size, 3), dtype=np.uint8)
        with np.errstate(all="ignore"):
            vectors = self.run(noise)
        if vectors.shape[1] < 2 or not np.isfinite(vectors).all():
            given = "one number" if vectors.shape[1] < 2 else "NaN or infinite ones"
            raise ModelFileError(
                f"{self.path}: expected a vector of numbers for a face, found {given}; "
                "give a face network, with what it takes (--preset, or a TOML file)"
            )

    def __call__(self, faces: Faces) -> Vectors:
        """Return the vectors of `faces`, shape (n, size, size, 3), as they are to be stored."""
        how = self.preprocessing
        vectors = self.run(faces)
        if how.flip:
            vectors = vectors + self.run(faces[:, :, ::-1])
        return how.finish(vectors)

    @abstractmethod
    def run(self, faces: Faces) -> Vectors:
        """Return what the network itself gives, shape (n, d)."""


class OnnxNetwork(Network):
    """An ONNX network that takes one batch of faces and gives one vector for each."""

    module = "onnxruntime"

    def __init__(self, name: str, preprocessing: Preprocessing, path: Path, device: str) -> None:
        super().__init__(name, preprocessing, path)
        import onnxruntime

        self.sha256 = _with_companions(path, self.sha256)
        cuda = _cuda(onnxruntime.get_available_providers(), device)
        session = self._open(cuda) if cuda else None
        if session is not None and session.get_providers()[0] != "CUDAExecutionProvider":
            if device_kind(device) == "cuda":
                raise ParameterError(
                    "device: onnxruntime's CUDA does not work here (driver, cuDNN?); choose cpu"
                )
            session = None
        self.parallel = session is None
        self._session = session or self._open(None)
        inputs = self._session.get_inputs()
        if len(inputs) != 1:
            raise ModelFileError(f"{path}: takes {len(inputs)} inputs; give a network of one")
        self._input = inputs[0]
        kinds = {"tensor(float)": np.float32, "tensor(float16)": np.float16}
        if self._input.type not in kinds:
            raise ModelFileError(f"{path}: takes {self._input.type}; expected float or float16")
        self._kind = kinds[self._input.type]
        # A number where the network takes so many faces at once, no more and no fewer.
        self._batch = next((n for n in self._input.shape[:1] if isinstance(n, int) and n), None)

    def _open(self, cuda: tuple[str, dict[str, int]] | None) -> Any:
        """Open a session on a GPU, or else on the CPU."""
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4  # what goes wrong, we say
        if cuda is None:
            # Faces are spread over the cores, a batch each; a batch needs no threads of its own.
            options.intra_op_num_threads = options.inter_op_num_threads = 1
        providers = [*([cuda] if cuda else []), "CPUExecutionProvider"]
        try:
            return onnxruntime.InferenceSession(str(self.path), options, providers=providers)
        except Exception as error:  # onnxruntime has no root of its errors
            raise ModelFileError(
                f"{self.path}: cannot be read as an ONNX network ({short(error)}); get it again"
            ) from error

    def run(self, faces: Faces) -> Vectors:
        """Return what the network gives; in parts where it takes a fixed number of faces."""
        numbers = self.preprocessing(faces).astype(self._kind, copy=False)
        if self._batch is None or len(numbers) == self._batch:
            return self._run(numbers)
        parts = []
        for start in range(0, len(numbers), self._batch):
            part = numbers[start : start + self._batch]
            padding = self._batch - len(part)
            full = np.concatenate([part, np.zeros_like(part[:1]).repeat(padding, axis=0)])
            parts.append(self._run(full)[: len(part)])
        return np.concatenate(parts)

    def _run(self, numbers: NDArray[Any]) -> Vectors:
        name = self._session.get_outputs()[0].name
        try:
            output = np.asarray(self._session.run([name], {self._input.name: numbers})[0])
        except Exception as error:  # onnxruntime has no root of its errors
            raise ModelFileError(
                f"{self.path}: takes input of shape {self._input.shape}, and fails with "
                f"{list(numbers.shape)}; choose another --preset, or describe the network in a "
                "TOML file (--verbose has onnxruntime's words)"
            ) from error
        # One vector a face, which may have axes of length 1.
        if output.shape[:1] != numbers.shape[:1] or sum(side > 1 for side in output.shape[1:]) > 1:
            raise ModelFileError(
                f"{self.path}: gave an output of shape {output.shape} for {len(numbers)} faces; "
                "expected one vector for each: give a network whose first output is the embedding"
            )
        return output.reshape(len(numbers), -1).astype(np.float32, copy=False)


def _cuda(available: list[str], device: str) -> tuple[str, dict[str, int]] | None:
    """Return the GPU that onnxruntime is to run on; None: the CPU."""
    kind, has_cuda = device_kind(device), "CUDAExecutionProvider" in available
    if kind == "cuda" and not has_cuda:
        raise ParameterError(
            "device: this onnxruntime has no CUDA; install onnxruntime-gpu, or choose cpu"
        )
    if kind == "cpu" or not has_cuda:
        return None
    number = device.partition(":")[2]
    if number and not number.isdigit():
        raise ParameterError(f"device: expected cuda or cuda:0, found {device!r}")
    return "CUDAExecutionProvider", {"device_id": int(number or 0)}


def _with_companions(path: Path, sha256: str) -> str:
    """Return one checksum of a network and of the files beside it that hold its weights."""
    names = (f"{path.name}.data", f"{path.name}_data", f"{path.stem}.data", f"{path.stem}.bin")
    companions = [path.with_name(name) for name in names if path.with_name(name).is_file()]
    if not companions:
        return sha256
    sums = [sha256, *(file_digest(file) for file in companions)]
    return hashlib.sha256(" ".join(sums).encode()).hexdigest()


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
class PublishedNetwork:
    """A network that faircal knows by name: how it is opened, and what it takes.

    `detector` is the one its owners use with it; `needs` are the module it runs on, and the extra
    that brings that.
    """

    open: _Open
    preprocessing: Preprocessing
    weights: Weights
    detector: str
    needs: tuple[str, str]


_FACENET = "https://github.com/timesler/facenet-pytorch/releases/download/v2.2.9/"
NETWORKS: Registry[PublishedNetwork] = Registry("network")
NETWORKS.register(
    "dlib",
    # dlib's ResNet, 128-d; needs no file: for first steps.
    PublishedNetwork(
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
    # FaceNet trained on VGGFace2, 512-d (the paper's).
    PublishedNetwork(
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
    # FaceNet trained on CASIA-Webface, 512-d (the paper's).
    PublishedNetwork(
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
    # ArcFace ResNet-100 of the ONNX model zoo, 512-d (the paper's).
    PublishedNetwork(
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
    """Open a network: a name of `NETWORKS`, an ``.onnx`` file, or a ``.toml`` that describes one.

    `preset`, of `PRESETS`, says what an ``.onnx`` file takes; `weights` are those of a network
    known by name, in place of the cache folder's.
    """
    path = Path(name)
    if path.suffix.lower() in (".onnx", ".toml"):
        network = _open_file(path, preset, weights, device)
    else:
        published = NETWORKS[name]
        if preset is not None:
            raise ParameterError(f"--preset: is for an .onnx file; {name} has its own")
        require(*published.needs, f"network {name}")  # before its weights are looked for
        file = published.weights.find(weights, option="--weights")
        network = published.open(name, published.preprocessing, file, device)
    network.try_out()
    return network


def _open_file(path: Path, preset: str | None, weights: Path | None, device: str) -> Network:
    """Open an ONNX network, which a preset or a TOML file describes."""
    if weights is not None:
        raise ParameterError("--weights: is for networks known by name; a file is the network")
    if path.suffix.lower() == ".toml":
        if preset is not None:
            raise ParameterError("--preset: is for an .onnx file; put 'preset' into the TOML file")
        described = read_description(path)
    elif preset is None:
        raise ParameterError(
            f"{path}: say what the network takes with --preset ({', '.join(PRESETS)}), "
            "or describe it in a TOML file"
        )
    else:
        described = Description(path.stem, path, PRESETS[preset])
    name, file, preprocessing, sha256 = described
    if not file.is_file():
        raise DataError(f"{file}: no such file; check the path of the network")
    checksum = file_digest(file)
    if sha256 is not None and checksum != sha256.lower():
        raise ModelFileError(f"{file}: expected SHA-256 {sha256}, found {checksum}; get it again")
    require("onnxruntime", "embed", f"network {name}")
    return OnnxNetwork(name, preprocessing, file, device)
