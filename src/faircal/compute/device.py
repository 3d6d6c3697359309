"""Pair scores, K-means and calibration on a PyTorch device: a GPU, or the CPU for tests.

NumPy arrays go in and come out. PyTorch (the extra ``torch``) is imported when an engine is made.
Nothing here adds up in an order that depends on timing: the same input gives the same bits on the
same kind of device.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from faircal._base.errors import DataError, MissingExtraError, ParameterError
from faircal._base.registry import device_kind, short
from faircal.compute.engine import Engine, check_rows
from faircal.compute.kmeans import Clustering
from faircal.compute.logistic import Sums
from faircal.compute.threads import each

if TYPE_CHECKING:
    import torch

Float32 = NDArray[np.float32]
Float64 = NDArray[np.float64]

#: Pairs on the device at a time.
_PAIRS = 2**22
#: Bytes copied to a GPU at a time, by way of memory that it can read itself.
_PART = 2**25
#: Numbers of vectors taken along when they are not on the device to stay.
_BLOCK = 2**24


def choose_device(name: str) -> torch.device:
    """Return the device called `name`; ``auto`` is a GPU where there is one, else the CPU.

    Examples
    --------
    >>> choose_device("cpu")
    device(type='cpu')
    >>> choose_device("tpu")
    Traceback (most recent call last):
    ...
    faircal.ParameterError: device: expected auto, cpu or cuda, found 'tpu'
    """
    kind = device_kind(name)
    try:
        import torch
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"device {name!r} needs torch, which is not installed: pip install 'faircal[torch]'"
        ) from error
    if kind == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise ParameterError(
            f"device: {name!r} cannot be used here ({short(error)}); choose auto, cpu or cuda"
        ) from error
    return device


class TorchEngine(Engine):
    """The heavy work on one device.

    Parameters
    ----------
    device : str
        ``cuda``, ``cuda:1``, ``cpu``, or ``auto``.

    Examples
    --------
    >>> engine = TorchEngine("cpu")
    >>> vectors = np.array([[1, 2], [3, 4], [5, 6]], dtype=np.float16)
    >>> engine.pair_dots(vectors, np.array([0, 0]), np.array([1, 2]))
    array([11., 17.], dtype=float32)
    """

    def __init__(self, device: str) -> None:
        self.device = choose_device(device)
        self._held: dict[int, tuple[weakref.ref[Any], torch.Tensor]] = {}

    def put(self, array: NDArray[Any]) -> torch.Tensor:
        """Return `array` on the device, where it stays for as long as `array` itself lives.

        It is copied once, so it must not be changed afterwards.
        """
        copied = self._find(array)
        if copied is None:
            copied, key, forget = self._copy(array), id(array), self._held.pop
            # By identity, and weakly: memory on the device goes when the array on the host does.
            self._held[key] = weakref.ref(array, lambda _: forget(key, None)), copied
        return copied

    def _find(self, array: NDArray[Any]) -> torch.Tensor | None:
        """Return `array` as it is on the device, None where it isn't there."""
        owner, copied = self._held.get(id(array), (None, None))
        return copied if owner is not None and owner() is array else None

    def pair_dots(
        self, vectors: NDArray[Any], left: NDArray[np.integer], right: NDArray[np.integer]
    ) -> Float32:
        """Return the inner product of rows `left` and `right` of `vectors`.

        Parameters
        ----------
        vectors : ndarray of shape (n, d), float16 or float32
            Stays on the device for as long as it lives. Sums are of float32.
        left, right : ndarray of shape (m,), integer
            From 0 to n − 1.

        Returns
        -------
        ndarray of shape (m,), float32
        """
        out = np.empty(len(left), dtype=np.float32)
        for part, dots, _ in self._dots(vectors, left, right):
            out[part] = dots.cpu().numpy()
        return out

    def cosines(
        self,
        vectors: NDArray[Any],
        norms: Float32,
        left: NDArray[np.integer],
        right: NDArray[np.integer],
    ) -> Float64:
        """Return the cosines of rows of `vectors`, which stay on the device: see `pair_dots`."""
        out = np.empty(len(left), dtype=np.float64)
        lengths = self.put(norms)
        for part, dots, rows in self._dots(vectors, left, right):
            cosines = dots / lengths[rows].double().prod(0)
            out[part] = cosines.clamp_(-1, 1).cpu().numpy()
        return out

    def _dots(
        self, vectors: NDArray[Any], left: NDArray[np.integer], right: NDArray[np.integer]
    ) -> Iterator[tuple[slice, torch.Tensor, torch.Tensor]]:
        """Give pairs part by part, with their inner products and their rows, on the device."""
        from faircal.compute import _torch_kernels

        _check_vectors(vectors)
        on_device = self.put(vectors)
        for part in _parts(len(left), _PAIRS):
            rows = self._rows(left[part], right[part], len(vectors))
            yield part, _torch_kernels.dots(on_device, rows[0], rows[1]), rows

    def best_start(self, points: Float32, n_clusters: int, **options: Any) -> Clustering:
        """Return the best of some starts of K-means, which run side by side; see `Engine`.

        The same ``rng`` ends, up to rounding, in the same centres as on the processor. `points`,
        shape (n, d), stay on the device for as long as they live.
        """
        from faircal.compute import _torch_kmeans

        return _torch_kmeans.kmeans(self.put(points), n_clusters, **options)

    def assign(self, vectors: NDArray[Any], centers: Float32) -> NDArray[np.int32]:
        """Return the nearest of `centers` (K, d) for each row of `vectors` (n, d), shape (n,).

        Vectors that are on the device already are used there; others are taken in blocks.
        """
        from faircal.compute import _torch_kmeans

        _check_vectors(vectors)
        # As in fitting: far from the origin, float32 products would drown the distances.
        origin = centers.mean(axis=0, dtype=np.float64).astype(np.float32)
        centred, centre = self._copy(centers - origin), self._copy(origin)
        held = self._find(vectors)
        labels = np.empty(len(vectors), dtype=np.int32)
        for part in _parts(len(vectors), max(1, _BLOCK // max(centers.shape))):
            block = self._copy(vectors[part]) if held is None else held[part]
            labels[part] = _torch_kmeans.nearest(block.float() - centre, centred).cpu().numpy()
        return labels

    def logistic_sums(
        self, features: Float64, target: Float64, mass: Float64, starts: NDArray[np.integer]
    ) -> Sums:
        """Return what sums the loss of many regressions; the points stay on the device."""
        from faircal.compute._torch_kernels import LogisticSums

        copies = [self._copy(np.asarray(a, dtype=np.float64)) for a in (features, target, mass)]
        return LogisticSums(copies[0], copies[1], copies[2], starts)

    def _rows(self, left: NDArray[np.integer], right: NDArray[np.integer], n: int) -> torch.Tensor:
        """Return row numbers on the device, shape (2, m), int64.

        They are checked: a wrong one would end all work on the GPU.
        """
        import torch

        rows = torch.stack([self._copy(np.asarray(side, dtype=np.int64)) for side in (left, right)])
        if not rows.numel():
            return rows
        least, most = rows.aminmax()
        check_rows(int(least), int(most), n)
        return rows

    def _copy(self, array: NDArray[Any]) -> torch.Tensor:
        """Copy an array, which may be memory-mapped or not writeable, to the device."""
        import torch

        try:
            kind = torch.from_numpy(np.empty(0, dtype=array.dtype)).dtype
            copied = torch.empty(array.shape, dtype=kind, device=self.device)
        except torch.cuda.OutOfMemoryError as error:
            raise ParameterError(
                f"device: {self.device} has no room for {array.nbytes / 2**30:.1f} GiB more; "
                "use fewer images or --device cpu"
            ) from error
        if self.device.type == "cpu":
            copied.numpy()[...] = array
            return copied
        flat, target = array.reshape(-1), copied.view(-1)
        for part in _parts(array.size, _PART // array.itemsize):
            # PyTorch gives this memory to nobody else before the copy from it has ended.
            buffer = torch.empty(part.stop - part.start, dtype=kind, pin_memory=True)
            _fill(buffer.numpy(), flat[part])
            target[part].copy_(buffer, non_blocking=True)
        return copied


def _parts(n: int, size: int) -> Iterator[slice]:
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))


def _fill(target: NDArray[Any], source: NDArray[Any]) -> None:
    """Copy, on all cores."""

    def work(block: slice) -> None:
        target[block] = source[block]

    each(work, len(target), _PART // 16 // target.itemsize)


def _check_vectors(vectors: NDArray[Any]) -> None:
    if vectors.ndim != 2 or vectors.dtype not in (np.float16, np.float32):
        raise DataError(
            "vectors: expected a matrix of float16 or float32, "
            f"found shape {vectors.shape} of {vectors.dtype}; convert with .astype('float32')"
        )
