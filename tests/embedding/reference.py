"""facenet-pytorch as the yardstick, without the packages that it wants and we do not have."""

from __future__ import annotations

import importlib.util
import sys
import warnings
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest


def facenet_pytorch():
    """Return the package, imported over stand-ins for torchvision, requests and tqdm."""
    # The import also adds a filter of warnings to the process, which this puts back.
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        for name, members in _STAND_INS.items():
            module = ModuleType(name)
            module.__dict__.update(members)
            patch.setitem(sys.modules, name, module)
        try:
            return pytest.importorskip("facenet_pytorch")
        finally:
            # Nobody else should get a package that leans on stand-ins.
            for name in [n for n in sys.modules if n.partition(".")[0] == "facenet_pytorch"]:
                del sys.modules[name]


def weights_folder():
    """Return the folder of the weights of MTCNN that come with the package."""
    spec = importlib.util.find_spec("facenet_pytorch")
    if spec is None:
        pytest.skip("could not import 'facenet_pytorch'")
    return Path(spec.origin).parent / "data"


def batched_nms(boxes, scores, groups, most):
    """As torchvision's: all boxes against all, then the best of what is left, time and again."""
    import torch

    boxes, scores, groups = (tensor.double().numpy() for tensor in (boxes, scores, groups))
    low, high = boxes[:, None, :2], boxes[:, None, 2:]
    sides = np.minimum(high, boxes[None, :, 2:]) - np.maximum(low, boxes[None, :, :2])
    shared = np.clip(sides, 0, None).prod(2)
    area = (boxes[:, 2:] - boxes[:, :2]).prod(1)
    # torchvision divides in single precision.
    overlap = (shared / (area[:, None] + area - shared)).astype(np.float32)
    rivals = (overlap > np.float32(most)) & (groups[:, None] == groups)
    left, kept = np.ones(len(boxes), bool), []
    while left.any():
        best = int(np.where(left, scores, -np.inf).argmax())
        kept.append(best)
        left &= ~rivals[best]
        left[best] = False
    return torch.tensor(kept, dtype=torch.int64)


def _refuse(*_, **__):
    raise NotImplementedError("this stand-in is never called")


_FUNCTIONAL = ModuleType("torchvision.transforms.functional")
_STAND_INS = {
    "torchvision": {},
    "torchvision.transforms": {"functional": _FUNCTIONAL},
    "torchvision.transforms.functional": {},
    "torchvision.ops": {},
    "torchvision.ops.boxes": {"batched_nms": batched_nms},
    "requests": {},
    "requests.adapters": {"HTTPAdapter": object},
    "tqdm": {},
    "tqdm.auto": {"tqdm": _refuse},
}
