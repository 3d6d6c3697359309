"""The data of the study by name: as it is, dealt anew, paired anew, through another network."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import faircal
from faircal.data import Dataset
from faircal.data.types import Embeddings, Feature
from studies.repairing import dealt_anew, paired_anew

REAL = "lfw"
#: Calibration pairs paired anew: name -> kind of imposters, and the share that is replaced.
PROTOCOLS = {
    "lfw, 50 % random": ("random", 0.5),
    "lfw, 100 % random": ("random", 1.0),
    "lfw, matched": ("matched", 1.0),
    "lfw, cluster": ("cluster", 1.0),
}
SHUFFLES = {"lfw, shuffle 1": 1, "lfw, shuffle 2": 2}
NETWORKS = ("lfw, 48 d", "lfw, stretched", "lfw, damped", "lfw, shifted", "lfw, skewed")
SIMULATED = {
    "rfw-like, seed 0": ("rfw-like", 0),
    "rfw-like, seed 1": ("rfw-like", 1),
    "bfw-like, seed 0": ("bfw-like", 0),
}


@dataclass
class Sets:
    """Calibration and test parts by the name of a set; the last set and parts are remembered.

    Parameters
    ----------
    path : Path, optional
        The folder of the real set.
    quick : bool
        Small simulated sets.
    """

    path: Path | None
    quick: bool = False
    _last: tuple[str, Dataset] | None = field(default=None, repr=False)
    _parts: tuple[tuple[str, int], tuple[Dataset, Dataset]] | None = field(default=None, repr=False)

    @cached_property
    def real(self) -> Dataset:
        """The real set as it is."""
        if self.path is None:
            raise ValueError("expected --data FOLDER, the real set; found none")
        return faircal.load(self.path)

    def split(self, name: str, fold: int) -> tuple[Dataset, Dataset]:
        """Return calibration and test pairs."""
        if self._parts is None or self._parts[0] != (name, fold):
            calibration, test = self.whole(name).split(test_fold=fold)
            if name in PROTOCOLS:
                kind, part = PROTOCOLS[name]
                calibration = paired_anew(calibration, kind, part, seed=fold)
            self._parts = (name, fold), (calibration, test)
        return self._parts[1]

    def whole(self, name: str) -> Dataset:
        """Return all pairs of a set, before calibration pairs are paired anew."""
        key = REAL if name in PROTOCOLS else name
        if self._last is None or self._last[0] != key:
            self._last = key, self._make(key)
        return self._last[1]

    def _make(self, name: str) -> Dataset:
        if name in SIMULATED:
            preset, seed = SIMULATED[name]
            if self.quick:
                preset = "small"
            return faircal.simulate(preset, seed=seed)
        if name in SHUFFLES:
            return dealt_anew(self.real, seed=SHUFFLES[name])
        if name in NETWORKS:
            return through(self.real, name)
        return self.real


def through(data: Dataset, network: str, seed: int = 0) -> Dataset:
    """Return the data with embeddings as another, disturbed network might give them.

    - ``48 d``: a random projection to 48 dimensions.
    - ``stretched``, ``damped``: the eight first principal components, 1.8 or 0.6 times as large.
    - ``shifted``: all vectors moved by one random vector of length 0.6.
    - ``skewed``: turned at random, each axis then scaled by exp(0.6 z), z standard normal.
    """
    if data.embeddings is None:
        raise ValueError(f"{data.name}: expected embeddings, found scores only")
    rng, x = np.random.default_rng(seed), data.embeddings.rows(np.arange(len(data.images)))
    vectors = _DISTURB[network](x.astype(np.float64), rng)
    feature = Feature(Embeddings.of(vectors.astype(np.float32), network))
    return Dataset.assemble(network, data.images, data.pairs, {data.feature: feature})


Float64 = NDArray[np.float64]


def _projected(x: Float64, rng: np.random.Generator) -> Float64:
    return np.asarray(x @ rng.standard_normal((x.shape[1], 48)) / np.sqrt(48))


def _scaled(x: Float64, factor: float) -> Float64:
    axes = np.linalg.eigh(np.cov(x.T))[1][:, -8:]
    return np.asarray(x + (factor - 1) * (x - x.mean(axis=0)) @ axes @ axes.T)


def _shifted(x: Float64, rng: np.random.Generator) -> Float64:
    by = rng.standard_normal(x.shape[1])
    return x + 0.6 * by / np.linalg.norm(by)


def _skewed(x: Float64, rng: np.random.Generator) -> Float64:
    turn = np.linalg.qr(rng.standard_normal((x.shape[1], x.shape[1])))[0]
    return np.asarray(x @ turn * np.exp(0.6 * rng.standard_normal(x.shape[1])))


_DISTURB: dict[str, Callable[[Float64, np.random.Generator], Float64]] = {
    "lfw, 48 d": _projected,
    "lfw, stretched": lambda x, _: _scaled(x, 1.8),
    "lfw, damped": lambda x, _: _scaled(x, 0.6),
    "lfw, shifted": _shifted,
    "lfw, skewed": _skewed,
}
