"""MTCNN: finds faces by three networks, each of which looks closer at what the last one left.

Zhang et al., "Joint face detection and alignment using multitask cascaded convolutional
networks" (2016), with the weights and the conventions of facenet-pytorch: its boxes and points
are ours to a hundredth of a pixel.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from faircal.embedding.facenet import fill, read_weights
from faircal.embedding.pictures import Face

_Floats = NDArray[np.float32]

#: Side of the window that the first network sees, and how far it moves between two looks.
_CELL, _STEP = 12, 2

#: How many candidates go through a network at once.
_BATCH = 512


class _Plan(NamedTuple):
    """The layers of a network: (channels, kernel, pool) each, then a dense one, then its heads.

    The heads are whether it is a face, how the box is off, and, in the last network, the points.
    """

    name: str
    convolutions: tuple[tuple[int, int, int], ...]
    dense: tuple[int, int] | None
    heads: tuple[int, ...]


_P_NET = _Plan("pnet", ((10, 3, 2), (16, 3, 0), (32, 3, 0)), None, (2, 4))
_R_NET = _Plan("rnet", ((28, 3, 3), (48, 3, 3), (64, 2, 0)), (576, 128), (2, 4))
_O_NET = _Plan("onet", ((32, 3, 3), (64, 3, 3), (64, 3, 2), (128, 2, 0)), (1152, 256), (2, 4, 10))


class MTCNN:
    """A detector of faces, which several threads can use at once.

    Parameters
    ----------
    folder : Path
        Holds ``pnet.pt``, ``rnet.pt`` and ``onet.pt``, as published with facenet-pytorch.
    device : torch.device
    """

    #: The paper's settings: side of the smallest face, in pixels; the score that each network asks
    #: of a candidate; by how much the picture shrinks from one look of the first to the next.
    min_face, thresholds, factor = 20, (0.6, 0.7, 0.7), 0.709

    def __init__(self, folder: Path, device: torch.device) -> None:
        self.device = device
        self.p_net, self.r_net, self.o_net = (
            _load(folder, plan, device) for plan in (_P_NET, _R_NET, _O_NET)
        )

    @torch.inference_mode()
    def detect(self, picture: NDArray[np.uint8]) -> list[Face]:
        """Return the faces in a picture, the largest first.

        Parameters
        ----------
        picture : array of shape (height, width, 3), uint8
            Red, green, blue.
        """
        # A copy: PyTorch takes no array that is mirrored, and warns about one that is read-only.
        planes = torch.from_numpy(picture.transpose(2, 0, 1).copy())
        pixels = planes[None].to(self.device).float()
        boxes = self._propose(pixels)
        boxes = self._refine(pixels, boxes)
        return self._finish(pixels, boxes)

    def _propose(self, pixels: Tensor) -> _Floats:
        """Return the boxes, (n, 4), that the first network finds in the shrinking picture."""
        looks = [self._scan(pixels, scale) for scale in self._scales(*pixels.shape[2:])]
        if not looks:
            return np.empty((0, 4), np.float32)
        boxes, scores, shifts = (np.concatenate(parts) for parts in zip(*looks, strict=True))
        kept = _suppress(boxes, scores, 0.7)
        return _square(_shifted(boxes[kept], shifts[kept], extra=0))

    def _scales(self, height: int, width: int) -> list[float]:
        """Return by how much to scale the picture, from where the smallest face fills a cell."""
        scale = _CELL / self.min_face
        side, scales = min(height, width) * scale, []
        while side >= _CELL:
            scales.append(scale)
            scale *= self.factor
            side *= self.factor
        return scales

    def _scan(self, pixels: Tensor, scale: float) -> tuple[_Floats, _Floats, _Floats]:
        """Return boxes, scores and shifts of the candidates in the picture scaled by `scale`."""
        height, width = pixels.shape[2:]
        probability, shift = self.p_net(
            _resized(pixels, (int(height * scale + 1), int(width * scale + 1)))
        )
        face = probability[0, 1]
        rows, columns = torch.nonzero(face >= self.thresholds[0], as_tuple=True)
        scores, shifts = _numpy(face[rows, columns]), _numpy(shift[0, :, rows, columns].T)
        corner = _STEP * _numpy(torch.stack([columns, rows], 1).float())
        boxes = np.floor(np.hstack([corner + 1, corner + _CELL]) / np.float32(scale))
        kept = _suppress(boxes, scores, 0.5)
        return boxes[kept], scores[kept], shifts[kept]

    def _refine(self, pixels: Tensor, boxes: _Floats) -> _Floats:
        """Return the boxes that the second network keeps, where it puts them."""
        boxes, (probability, shift) = _look(self.r_net, pixels, boxes, 24)
        passed = probability[:, 1] > self.thresholds[1]
        boxes, scores, shift = boxes[passed], probability[passed, 1], shift[passed]
        kept = _suppress(boxes, scores, 0.7)
        return _square(_shifted(boxes[kept], shift[kept]))

    def _finish(self, pixels: Tensor, boxes: _Floats) -> list[Face]:
        """Return the faces that the third network sees in the boxes."""
        boxes, (probability, shift, points) = _look(self.o_net, pixels, boxes, 48)
        passed = probability[:, 1] > self.thresholds[2]
        boxes, scores, shift = boxes[passed], probability[passed, 1], shift[passed]
        # The network gives five x and then five y, as parts of the box before it moves.
        points = points[passed].reshape(-1, 2, 5).transpose(0, 2, 1)
        corner, size = boxes[:, None, :2], boxes[:, None, 2:] - boxes[:, None, :2] + 1
        points = size * points + corner - 1
        boxes = _shifted(boxes, shift)
        kept = _suppress(boxes, scores, 0.7, of_smaller=True)
        area = (boxes[kept, 2] - boxes[kept, 0]) * (boxes[kept, 3] - boxes[kept, 1])
        kept = kept[np.argsort(area, kind="stable")[::-1]]
        return [_face(boxes[i], points[i], scores[i]) for i in kept]


class _Network(nn.Sequential):
    """The layers of a plan under their published names; the heads are the last of them."""

    def __init__(self, plan: _Plan) -> None:
        super().__init__()
        channels, number = 3, 0
        for number, (outputs, kernel, pool) in enumerate(plan.convolutions, 1):
            self.add_module(f"conv{number}", nn.Conv2d(channels, outputs, kernel))
            self.add_module(f"prelu{number}", nn.PReLU(outputs))
            if pool:
                self.add_module(f"pool{number}", nn.MaxPool2d(pool, 2, ceil_mode=True))
            channels = outputs
        number += 1
        if plan.dense:
            inputs, channels = plan.dense
            self.add_module("flat", _Flat())
            self.add_module(f"dense{number}", nn.Linear(inputs, channels))
            self.add_module(f"prelu{number}", nn.PReLU(channels))
            number += 1
        for head, outputs in enumerate(plan.heads, 1):
            if plan.dense:
                self.add_module(f"dense{number}_{head}", nn.Linear(channels, outputs))
            else:
                self.add_module(f"conv{number}_{head}", nn.Conv2d(channels, outputs, 1))
        self.n_heads = len(plan.heads)

    def forward(self, x: Tensor) -> list[Tensor]:
        """Return what each head says; the first, as probabilities."""
        layers = list(self)
        for layer in layers[: -self.n_heads]:
            x = layer(x)
        logits, *others = (head(x) for head in layers[-self.n_heads :])
        return [logits.softmax(1), *others]


class _Flat(nn.Module):
    """A row for each picture; column by column, as in the MATLAB original."""

    def forward(self, x: Tensor) -> Tensor:
        return x.permute(0, 3, 2, 1).flatten(1)


def _load(folder: Path, plan: _Plan, device: torch.device) -> _Network:
    network, path = _Network(plan), folder / f"{plan.name}.pt"
    fill(network, read_weights(path), path, f"MTCNN's {plan.name}")
    return network.requires_grad_(False).eval().to(device)


def _look(
    network: _Network, pixels: Tensor, boxes: _Floats, side: int
) -> tuple[_Floats, list[_Floats]]:
    """Return the boxes that lie in the picture, and what the network says of their contents."""
    height, width = pixels.shape[2:]
    # A box counts pixels from 1, and what lies outside the picture is cut off.
    corners = np.trunc(boxes).astype(np.int64)
    starts = np.maximum(corners[:, :2], 1) - 1
    ends = np.minimum(corners[:, 2:], (width, height))
    inside = (ends > starts).all(1)
    crops = [
        _resized(pixels[:, :, top:bottom, left:right], (side, side))
        for left, top, right, bottom in np.hstack([starts, ends])[inside].tolist()
    ]
    batches = torch.split(torch.cat([pixels.new_empty(0, 3, side, side), *crops]), _BATCH)
    heads = zip(*(network(batch) for batch in batches), strict=True)
    return boxes[inside], [_numpy(torch.cat(parts)) for parts in heads]


def _resized(pixels: Tensor, size: tuple[int, int]) -> Tensor:
    """Return a picture at another size, with the values that the networks expect."""
    return (functional.interpolate(pixels, size, mode="area") - 127.5) * (1 / 128)


def _numpy(tensor: Tensor) -> _Floats:
    array: _Floats = tensor.cpu().numpy()
    return array


def _face(box: _Floats, points: _Floats, score: np.float32) -> Face:
    left, top, right, bottom = box.tolist()
    return Face((left, top, right, bottom), points.astype(np.float64), float(score))


def _shifted(boxes: _Floats, shifts: _Floats, extra: int = 1) -> _Floats:
    """Return the boxes, (n, 4), with each side moved by a part of the width or height."""
    size = boxes[:, 2:] - boxes[:, :2] + extra
    return boxes + shifts * np.tile(size, 2)


def _square(boxes: _Floats) -> _Floats:
    """Return the boxes made square: about the same centre, as large as the longer side."""
    size = boxes[:, 2:] - boxes[:, :2]
    side = size.max(1, keepdims=True)
    corner = boxes[:, :2] + size * np.float32(0.5) - side * np.float32(0.5)
    return np.hstack([corner, corner + side])


def _suppress(
    boxes: _Floats, scores: _Floats, most: float, *, of_smaller: bool = False
) -> NDArray[np.int64]:
    """Return which boxes to keep, best first: those that overlap no better one by over `most`.

    The overlap is a part of what the two boxes cover together, or of the smaller of them. The
    second kind counts pixels, of which a box has one more than the difference of its sides.
    """
    # Of equal scores the first comes first, but the last where the smaller box counts.
    if of_smaller:
        order = np.argsort(scores, kind="stable")[::-1]
    else:
        order = np.argsort(-scores, kind="stable")
    extra = np.float32(of_smaller)
    left, top, right, bottom = np.ascontiguousarray(boxes.T)
    area = (right - left + extra) * (bottom - top + extra)
    kept = []
    while order.size:
        best, order = order[0], order[1:]
        kept.append(best)
        wide = np.minimum(right[best], right[order]) - np.maximum(left[best], left[order]) + extra
        high = np.minimum(bottom[best], bottom[order]) - np.maximum(top[best], top[order]) + extra
        shared = np.maximum(wide, 0) * np.maximum(high, 0)
        if of_smaller:
            covered = np.minimum(area[best], area[order])
        else:
            covered = area[best] + area[order] - shared
        order = order[shared <= most * covered]
    return np.array(kept, dtype=np.int64)
