"""FaceNet: the Inception-ResNet v1 of facenet-pytorch, and how its weight files are read.

The network is Szegedy et al., "Inception-v4, Inception-ResNet and the impact of residual
connections on learning" (2017), narrowed as in D. Sandberg's FaceNet for TensorFlow.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval

from faircal._base.errors import ModelFileError
from faircal._base.files import existing

#: What the batch normalisations add to a variance, as in the TensorFlow original.
_EPSILON = 1e-3

#: Length of an embedding.
_WIDTH = 512

#: How many training steps a batch normalisation has seen: in some files, used by none of ours.
_STEPS = ".num_batches_tracked"

#: What weights may be stored as; they become float32.
_FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


class _Layer(NamedTuple):
    """A convolution: its channels, its kernel, its step, and whether the picture keeps its size."""

    outputs: int
    kernel: tuple[int, int] = (1, 1)
    stride: int = 1
    padded: bool = True


_Branch = tuple[_Layer, ...]
_Branches = tuple[_Branch, ...]

#: The layers before the first block. After 2b the picture is pooled.
_STEM = {
    "conv2d_1a": _Layer(32, (3, 3), stride=2, padded=False),
    "conv2d_2a": _Layer(32, (3, 3), padded=False),
    "conv2d_2b": _Layer(64, (3, 3)),
    "conv2d_3b": _Layer(80),
    "conv2d_4a": _Layer(192, (3, 3), padded=False),
    "conv2d_4b": _Layer(256, (3, 3), stride=2, padded=False),
}

#: The branches of each kind of block; a number is the height and width that it works at.
_BLOCK_17: _Branches = (
    (_Layer(32),),
    (_Layer(32), _Layer(32, (3, 3))),
    (_Layer(32), _Layer(32, (3, 3)), _Layer(32, (3, 3))),
)
_BLOCK_8: _Branches = (
    (_Layer(128),),
    (_Layer(128), _Layer(128, (1, 7)), _Layer(128, (7, 1))),
)
_BLOCK_3: _Branches = (
    (_Layer(192),),
    (_Layer(192), _Layer(192, (1, 3)), _Layer(192, (3, 1))),
)
_FROM_17_TO_8: _Branches = (
    (_Layer(384, (3, 3), stride=2, padded=False),),
    (_Layer(192), _Layer(192, (3, 3)), _Layer(256, (3, 3), stride=2, padded=False)),
)
_FROM_8_TO_3: _Branches = (
    (_Layer(256), _Layer(384, (3, 3), stride=2, padded=False)),
    (_Layer(256), _Layer(256, (3, 3), stride=2, padded=False)),
    (_Layer(256), _Layer(256, (3, 3)), _Layer(256, (3, 3), stride=2, padded=False)),
)


class InceptionResnetV1(nn.Module):
    """The network that turns the picture of a face into an embedding.

    Its parameters have the names and shapes of facenet-pytorch's. The layer that tells the people
    of the training set apart is left out, since an embedding does not need it.

    Examples
    --------
    >>> network = InceptionResnetV1().eval()
    >>> with torch.inference_mode():
    ...     network(torch.zeros(2, 3, 160, 160)).shape
    torch.Size([2, 512])
    """

    def __init__(self) -> None:
        super().__init__()
        inputs = 3
        for name, layer in _STEM.items():
            self.add_module(name, _Convolution(inputs, layer))
            inputs = layer.outputs
        self.repeat_1 = nn.Sequential(*(_Residual(256, _BLOCK_17, 0.17) for _ in range(5)))
        self.mixed_6a = _Reduction(256, _FROM_17_TO_8)
        self.repeat_2 = nn.Sequential(*(_Residual(896, _BLOCK_8, 0.10) for _ in range(10)))
        self.mixed_7a = _Reduction(896, _FROM_8_TO_3)
        self.repeat_3 = nn.Sequential(*(_Residual(1792, _BLOCK_3, 0.20) for _ in range(5)))
        self.block8 = _Residual(1792, _BLOCK_3, 1.0, positive=False)
        self.last_linear = nn.Linear(1792, _WIDTH, bias=False)
        self.last_bn: nn.Module = nn.BatchNorm1d(_WIDTH, eps=_EPSILON)

    def forward(self, x: Tensor) -> Tensor:
        """Return the embeddings of pictures, shape (n, 512), rows of length 1.

        `x` has shape (n, 3, 160, 160): (v − 127.5)/128, v being a value of the picture up to 255.
        """
        for name in _STEM:
            x = self.get_submodule(name)(x)
            if name == "conv2d_2b":
                x = functional.max_pool2d(x, 3, stride=2)
        x = self.mixed_6a(self.repeat_1(x))
        x = self.mixed_7a(self.repeat_2(x))
        x = self.block8(self.repeat_3(x))
        x = self.last_bn(self.last_linear(x.mean((2, 3))))
        return functional.normalize(x)

    def fuse(self) -> None:
        """Fold each batch normalisation into the layer before it: same outputs, fewer passes.

        The network must be in evaluation mode; its parameters lose their published names.
        """
        for module in self.modules():
            if isinstance(module, _Convolution) and isinstance(module.bn, nn.BatchNorm2d):
                module.conv = fuse_conv_bn_eval(module.conv, module.bn)
                module.bn = nn.Identity()
        if isinstance(self.last_bn, nn.BatchNorm1d):
            self.last_linear = fuse_linear_bn_eval(self.last_linear, self.last_bn)
            self.last_bn = nn.Identity()


class _Convolution(nn.Module):
    """A convolution, its batch normalisation, and the positive part of the outcome."""

    def __init__(self, inputs: int, layer: _Layer) -> None:
        super().__init__()
        high, wide = layer.kernel
        self.conv = nn.Conv2d(
            inputs,
            layer.outputs,
            layer.kernel,
            stride=layer.stride,
            padding=(high // 2, wide // 2) if layer.padded else 0,
            bias=False,
        )
        self.bn: nn.Module = nn.BatchNorm2d(layer.outputs, eps=_EPSILON)

    def forward(self, x: Tensor) -> Tensor:
        return functional.relu(self.bn(self.conv(x)), inplace=True)


class _Branched(nn.Module):
    """Branches beside each other, called branch0, branch1 and so on."""

    def __init__(self, inputs: int, branches: _Branches) -> None:
        super().__init__()
        self.names = [f"branch{number}" for number in range(len(branches))]
        for name, branch in zip(self.names, branches, strict=True):
            sizes = [inputs, *(layer.outputs for layer in branch)]
            layers = [_Convolution(*pair) for pair in zip(sizes, branch, strict=False)]
            # The published names have no number where a branch is a single layer.
            self.add_module(name, nn.Sequential(*layers) if len(layers) > 1 else layers[0])

    def outcomes(self, x: Tensor) -> list[Tensor]:
        """Return what each branch makes of `x`."""
        return [self.get_submodule(name)(x) for name in self.names]


class _Residual(_Branched):
    """Adds to the picture what its branches, mixed by a convolution and scaled, make of it."""

    def __init__(
        self, inputs: int, branches: _Branches, scale: float, *, positive: bool = True
    ) -> None:
        super().__init__(inputs, branches)
        self.conv2d = nn.Conv2d(sum(branch[-1].outputs for branch in branches), inputs, 1)
        self.scale = scale
        self.positive = positive

    def forward(self, x: Tensor) -> Tensor:
        mixed = self.conv2d(torch.cat(self.outcomes(x), 1))
        x = torch.add(x, mixed, alpha=self.scale)
        return functional.relu(x, inplace=True) if self.positive else x


class _Reduction(_Branched):
    """Halves height and width: the branches, and beside them the picture itself, pooled."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([*self.outcomes(x), functional.max_pool2d(x, 3, stride=2)], 1)


def load_facenet(path: Path, n_classes: int, device: torch.device) -> InceptionResnetV1:
    """Return the network with the weights of a file, ready to embed on `device`.

    `n_classes`, the people the network was trained to tell apart, tells the published files from
    each other: 8631 for VGGFace2, 10575 for CASIA-WebFace. The network is in evaluation mode,
    fused, with weights laid out channels last: these two take a quarter off the time on a CPU.
    """
    network, weights = InceptionResnetV1(), read_weights(path)
    weights.pop("logits.weight", None)
    classes = weights.pop("logits.bias", torch.empty(n_classes)).numel()
    if classes != n_classes:
        raise ModelFileError(
            f"{path}: expected a network trained on {n_classes} people, found one trained on "
            f"{classes}; give the file of the other training set"
        )
    fill(network, weights, path, "FaceNet")
    network.requires_grad_(False).eval().fuse()
    network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return network.to(device)


def read_weights(path: Path) -> dict[str, Tensor]:
    """Return the tensors of a PyTorch file by name; code that is hidden in one is not run."""
    if existing(path).is_dir():
        raise ModelFileError(f"{path}: expected a weight file, found a folder; give the .pt file")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what is wrong is said below, in one line
            weights = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # a damaged file can raise anything, from any depth of PyTorch
        raise ModelFileError(
            f"{path}: expected a PyTorch file of tensors alone, found a damaged one or one of "
            "another kind; fetch it again from where it was published"
        ) from error
    if not isinstance(weights, dict) or not all(
        isinstance(name, str) and isinstance(tensor, Tensor) for name, tensor in weights.items()
    ):
        raise ModelFileError(
            f"{path}: expected tensors by name, found something else in this PyTorch file; "
            "save the state_dict() of the network"
        )
    return dict(weights)


def fill(network: nn.Module, weights: dict[str, Tensor], path: Path, name: str) -> None:
    """Copy `weights`, which were read from `path`, into the network called `name`; all must fit."""
    expected, given = (
        {key: tensor for key, tensor in tensors.items() if not key.endswith(_STEPS)}
        for tensors in (network.state_dict(), weights)
    )
    every = [*expected, *(key for key in given if key not in expected)]
    wrong = [key for key in every if not _fits(given.get(key), expected.get(key))]
    if wrong:
        # A name from a file can hold anything: repr keeps it on one line, the cut keeps it short.
        raise ModelFileError(
            f"{path}: expected the weights of {name}, found {len(wrong)} tensor(s) that are "
            f"missing or do not fit, the first {wrong[0]!r:.99}; get the file again from its owner"
        )
    network.load_state_dict(given, strict=False)


def _fits(given: Tensor | None, expected: Tensor | None) -> bool:
    """Whether a tensor of a file can take the place of one of ours: numbers of the same shape."""
    if given is None or expected is None or given.shape != expected.shape:
        return False
    plain = given.dtype in _FLOATS and given.layout == torch.strided and not given.is_meta
    return plain and bool(torch.isfinite(given).all())
