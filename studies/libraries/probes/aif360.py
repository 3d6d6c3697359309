"""What AIF360 does, run."""

from __future__ import annotations

import inspect

import numpy as np
import pandas as pd
from aif360.sklearn.inprocessing import SenSeI, SenSR
from aif360.sklearn.metrics import intersection
from aif360.sklearn.postprocessing import CalibratedEqualizedOdds
from sklearn.metrics import accuracy_score


def measures_crossed_groups() -> int:
    """How many groups two attributes of two values make."""
    index = pd.MultiIndex.from_product([(0, 1), (0, 1), range(5)], names=["sex", "age", "row"])
    true = pd.Series(np.arange(20) % 2, index=index)
    told, names = intersection(
        accuracy_score, true, true, prot_attr=["sex", "age"], return_groups=True
    )
    return len(told) if len(told) == len(names) else 0


def individual_fairness_takes_a_device() -> bool:
    """They are networks of skorch, which has the device."""
    return all(
        any(
            "device" in inspect.signature(above.__init__).parameters
            for above in inspect.getmro(kind)
        )
        for kind in (SenSeI, SenSR)
    )


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
