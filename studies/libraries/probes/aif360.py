"""What AIF360 does, run."""

from __future__ import annotations

import numpy as np
import pandas as pd
from aif360.sklearn.postprocessing import CalibratedEqualizedOdds


def mixes_in_the_base_rate() -> bool:
    """Probabilities that change become one number: a group's share of positives."""
    rng = np.random.default_rng(0)
    group, p = rng.integers(2, size=400), rng.random(400)
    label = (rng.random(400) < p * np.where(group, 1, 0.7)).astype(int)
    people = pd.Index(group, name="group")
    told = pd.DataFrame({0: 1 - p, 1: p}).set_index(people)
    labels = pd.Series(label, index=people)
    method = CalibratedEqualizedOdds("group", random_state=0).fit(told, labels)
    given = method.predict_proba(told)[:, 1]
    other = np.unique(given[given != p])
    shares = [label[group == value].mean() for value in (0, 1)]
    some = 0 < np.count_nonzero(given != p) < 200
    return bool(some and len(other) == 1 and np.isclose(shares, other[0]).any())
