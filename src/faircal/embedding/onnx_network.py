"""Networks in ONNX files, run by onnxruntime on the CPU or a GPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from faircal._base.errors import ModelFileError, ParameterError
from faircal._base.files import digest
from faircal._base.registry import device_kind, short
from faircal.embedding.network import Faces, Network, Vectors
from faircal.embedding.preprocessing import Preprocessing
from faircal.embedding.weights import sha256_of


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
        self._check(path)

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

    def _check(self, path: Path) -> None:
        """Raise unless the network takes pictures of our size."""
        size = self.preprocessing.size
        channels_first = self.preprocessing.layout == "nchw"
        expected = [3, size, size] if channels_first else [size, size, 3]
        shape = list(self._input.shape)
        known = [
            a == b or not isinstance(a, int) for a, b in zip(shape[1:], expected, strict=False)
        ]
        if len(shape) != 4 or not all(known):
            raise ModelFileError(
                f"{path}: takes input of shape {shape}, and would be given {['n', *expected]}; "
                "choose another --preset, or describe the network in a TOML file"
            )
        self._batch = shape[0] if isinstance(shape[0], int) else None
        if self._batch == 0:
            raise ModelFileError(f"{path}: takes no faces (its batch is 0); export it again")
        self._kind = {"tensor(float)": np.float32, "tensor(float16)": np.float16}.get(
            self._input.type
        )
        if self._kind is None:
            raise ModelFileError(f"{path}: takes {self._input.type}; expected float or float16")

    def run(self, faces: Faces) -> Vectors:
        """Return what the network gives; in parts where it takes a fixed number of faces."""
        numbers = self.preprocessing(faces).astype(self._kind, copy=False)
        if self._batch is None or len(numbers) == self._batch:
            return self._run(numbers)
        parts = []
        for start in range(0, len(numbers), self._batch):
            part = numbers[start : start + self._batch]
            lacking = self._batch - len(part)
            full = np.concatenate([part, np.zeros_like(part[:1]).repeat(lacking, axis=0)])
            parts.append(self._run(full)[: len(part)])
        return np.concatenate(parts)

    def _run(self, numbers: NDArray[Any]) -> Vectors:
        name = self._session.get_outputs()[0].name
        try:
            found = np.asarray(self._session.run([name], {self._input.name: numbers})[0])
        except Exception as error:  # onnxruntime has no root of its errors
            raise ModelFileError(
                f"{self.path}: does not take input of shape {numbers.shape} ({short(error)}); "
                "choose another --preset, or describe the network in a TOML file"
            ) from error
        # One vector a face, which may have axes of length 1.
        if found.shape[:1] != numbers.shape[:1] or sum(side > 1 for side in found.shape[1:]) > 1:
            raise ModelFileError(
                f"{self.path}: gave an output of shape {found.shape} for {len(numbers)} faces; "
                "expected one vector for each: give a network whose first output is the embedding"
            )
        return found.reshape(len(numbers), -1).astype(np.float32, copy=False)


def _cuda(available: list[str], device: str) -> tuple[str, dict[str, int]] | None:
    """Return the GPU that onnxruntime is to run on; None: the CPU."""
    wanted, here = device_kind(device), "CUDAExecutionProvider" in available
    if wanted == "cuda" and not here:
        raise ParameterError(
            "device: this onnxruntime has no CUDA; install onnxruntime-gpu, or choose cpu"
        )
    if wanted == "cpu" or not here:
        return None
    number = device.partition(":")[2]
    if number and not number.isdigit():
        raise ParameterError(f"device: expected cuda or cuda:0, found {device!r}")
    return "CUDAExecutionProvider", {"device_id": int(number or 0)}


def _with_companions(path: Path, sha256: str) -> str:
    """Return one checksum of a network and of the files beside it that hold its weights."""
    names = (f"{path.name}.data", f"{path.name}_data", f"{path.stem}.data", f"{path.stem}.bin")
    found = [path.with_name(name) for name in names if path.with_name(name).is_file()]
    if not found:
        return sha256
    sums = [sha256, *(sha256_of(file) for file in found)]
    return digest(lambda update: update(" ".join(sums).encode()))
