"""Sets that are made: digits spoilt in four ways, and simulations whose truth is known."""

from __future__ import annotations

from functools import partial

import numpy as np

from studies.classes.table import Float64, Int64, Table
from studies.classes.tables import Maker

#: Rows, classes, groups and features of a simulation.
_ROWS, _CLASSES, _GROUPS, _FEATURES = 12_000, 4, 6, 10


def digits() -> Table:
    """Handwritten digits, each three times: as it is or spoilt; hidden: how; units: images."""
    from scipy.ndimage import gaussian_filter, rotate
    from sklearn.datasets import load_digits

    found = load_digits()
    pictures = found.images / 16.0
    rng = np.random.default_rng(0)
    names = ("blurred", "clean", "noisy", "rotated")
    unit = np.repeat(np.arange(len(pictures)), 3)
    ways = np.argsort(rng.random((len(pictures), len(names))), axis=1)[:, :3]
    group: Int64 = ways.ravel().astype(np.int64)
    spoilt = np.empty((len(unit), 8, 8))
    for row, (image, how) in enumerate(zip(unit, group, strict=True)):
        picture = pictures[image]
        if how == 0:
            picture = gaussian_filter(picture, 1.0)
        elif how == 2:
            picture = picture + rng.normal(0, 0.35, picture.shape)
        elif how == 3:
            picture = rotate(picture, rng.choice([-1, 1]) * 35, reshape=False, order=1)
        spoilt[row] = picture
    return Table(
        name="digits",
        inputs=spoilt.reshape(len(unit), -1).astype(np.float32),
        codes=found.target[unit].astype(np.int64),
        classes=tuple("0123456789"),
        groups=group,
        group_names=names,
        units=unit.astype(np.int64),
    )


def simulated(name: str, *, apart: float, differ: bool) -> Table:
    """A classifier wrong in another way in each group.

    The truth is ``softmax(a_g z + b_g)`` where z are the classifier's log-odds and g the group;
    features are the group's centre, `apart` standard deviations from others a feature, and noise.
    Where groups do not `differ`, all have a = 0.7 and b = 0: one map for all is right.
    """
    rng = np.random.default_rng([*name.encode()])
    group = rng.integers(0, _GROUPS, _ROWS)
    odds = rng.normal(0, 1.5, (_ROWS, _CLASSES))
    slope = np.linspace(0.4, 1.3, _GROUPS) if differ else np.full(_GROUPS, 0.7)
    shift = rng.normal(0, 0.5 if differ else 0.0, (_GROUPS, _CLASSES))
    truth = _softmax(slope[group, None] * odds + shift[group])
    drawn = (truth.cumsum(axis=1) < rng.random((_ROWS, 1))).sum(axis=1)
    centres = rng.normal(0, apart, (_GROUPS, _FEATURES)) / np.sqrt(2)
    features = centres[group] + rng.normal(0, 1, (_ROWS, _FEATURES))
    return Table(
        name=name,
        inputs=features.astype(np.float32),
        codes=np.minimum(drawn, _CLASSES - 1).astype(np.int64),
        classes=tuple("abcd"),
        groups=group.astype(np.int64),
        group_names=tuple(f"group {i}" for i in range(1, _GROUPS + 1)),
        units=np.arange(_ROWS),
        given=_softmax(odds),
        truth=truth,
    )


#: What is made, by name.
MADE: dict[str, Maker] = {
    "digits": digits,
    "told": partial(simulated, "told", apart=1.5, differ=True),
    "untold": partial(simulated, "untold", apart=0.0, differ=True),
    "alike": partial(simulated, "alike", apart=1.5, differ=False),
}


def _softmax(odds: Float64) -> Float64:
    raised: Float64 = np.exp(odds - odds.max(axis=1, keepdims=True))
    raised /= raised.sum(axis=1, keepdims=True)
    return raised
