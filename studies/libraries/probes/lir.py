"""What LiR does, run; and its side of what is measured."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from lir.algorithms.bootstraps import BootstrapAtData
from lir.algorithms.logistic_regression import LogitCalibrator
from lir.data.models import FeatureData, LLRData
from lir.metrics import cllr, cllr_min
from lir.persistence import save_model
from lir.transform.composite import CategoricalCompositeTransformer


def _drawn(times: int = 1, **more: np.ndarray) -> FeatureData:
    rng = np.random.default_rng(0)
    label = np.tile(np.arange(200) % 2, times)
    score = np.tile(rng.normal(size=200) + np.arange(200) % 2, times)
    return FeatureData(features=score[:, None], labels=label, **more)


def an_unknown_category_is_refused() -> bool:
    """A map for each category; what has another can't be given a likelihood ratio."""
    data = _drawn(where=np.arange(200) % 4 // 2)
    fitted = CategoricalCompositeTransformer(LogitCalibrator, "where").fit(data)
    fitted.apply(data)
    try:
        fitted.apply(_drawn(where=np.full(200, 7)))
    except ValueError:
        return True
    return False


def three_classes_are_refused() -> bool:
    """Labels other than 0 and 1."""
    try:
        FeatureData(features=np.zeros((3, 1)), labels=np.arange(3))
    except ValueError:
        return True
    return False


def four_times_the_rows_halve_the_interval() -> bool:
    """Bootstrap intervals of a table, and of the same table four times over."""
    at = FeatureData(features=np.array([[0.0]]))
    widths = []
    for times in (1, 4):
        fitted = BootstrapAtData([("map", LogitCalibrator())], n_bootstraps=200, seed=0)
        widths.append(float(np.ptp(fitted.fit(_drawn(times)).apply(at).llr_intervals)))
    return bool(0.35 < widths[1] / widths[0] < 0.65)


def models_are_pickles() -> bool:
    """What a saved model begins with."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.pkl"
        save_model(path, LogitCalibrator())
        return path.read_bytes()[:1] == b"\x80"


def costs(told: dict[str, str]) -> dict[str, float]:
    """Cllr and minimum Cllr of log-likelihood ratios."""
    data = np.load(told["data"])
    # LiR counts in decimal logarithms.
    llrs = LLRData(features=data["llr"] / np.log(10), labels=data["genuine"].astype(int))
    return {"cllr": cllr(llrs), "minimum": cllr_min(llrs)}
