"""What bob does, run; and its side of what is measured."""

from __future__ import annotations

import tempfile
from importlib.metadata import entry_points
from pathlib import Path

import numpy as np
import pandas as pd
from bob.measure.calibration import cllr, min_cllr
from bob.measure.utils import confidence_for_indicator_variable


def _names(group: str) -> set[str]:
    """The names of a kind that bob.bio.face brings."""
    found = entry_points(group=group)
    return {each.name for each in found if each.value.startswith("bob.bio.face")}


def experiments() -> dict[str, int | list[str]]:
    """How many pipelines and protocols there are by name; some of them."""
    pipelines, databases = _names("bob.bio.pipeline"), _names("bob.bio.database")
    pipelines -= {"dummy"}  # for tests of its own
    some = {"ijbc-test1", "morph", "rfw-original", "scface"}
    return {
        "pipelines": len(pipelines),
        "databases": len(databases),
        "named": sorted(some & databases),
    }


def what_maps_give() -> dict[str, bool]:
    """A probability for balanced classes, or the log of a ratio of two densities."""
    from bob.bio.base import pipelines

    rng = np.random.default_rng(0)
    genuine = np.repeat([0, 1], 300)
    score = (rng.normal(3, 2, 600) + 5 * genuine)[:, None]
    new = np.linspace(0.5, 11, 11)[:, None]
    once, nine = (  # the second time with the same imposters nine times over
        pipelines.LLRCalibration()
        .fit(np.repeat(score, times, axis=0), np.repeat(genuine, times))
        .predict_proba(new)
        for times in (np.ones(600, dtype=int), np.where(genuine, 1, 9))
    )
    ratios = []
    for name in ("Weibull", "Gamma", "Beta"):
        made = getattr(pipelines, f"{name}Calibration")().fit(score / 12, genuine)
        one, other = (np.log10(made.gen_dist(new) + 1e-10), np.log10(made.imp_dist(new) + 1e-10))
        ratios.append(np.allclose(made.predict_proba(new), one - other))
    moves = np.abs(once - nine).max() > 0.05
    return {"the_prior_moves_the_logistic": bool(moves), "densities_give_log_ratios": all(ratios)}


def categories_are_averaged() -> bool:
    """Pairs of two groups that score alike get the same probability."""
    from bob.bio.base.pipelines import CategoricalCalibration

    rng = np.random.default_rng(0)
    group = np.where(np.arange(400) % 2, "a", "b")
    genuine = np.arange(400) % 4 < 2
    score = rng.normal(size=400) + 2 * genuine + 1.5 * (group == "a")
    score[:2] = 1.0  # one pair of each group
    person = np.arange(400)
    table = pd.DataFrame(
        {
            "bio_ref_subject_id": person,
            "probe_subject_id": np.where(genuine, person, person + 1000),
            "bio_ref_group": group,
            "probe_group": group,
            "score": score,
        }
    )
    with tempfile.TemporaryDirectory() as folder:
        there, given = Path(folder) / "scores.csv", Path(folder) / "calibrated.csv"
        table.to_csv(there, index=False)
        fitted = CategoricalCalibration("group", ["a", "b"]).fit(str(there))
        fitted.transform([str(there)], [str(given)])
        p = pd.read_csv(given)["score"]
    return bool(p[0] == p[1] and group[0] != group[1])


def clopper_pearson() -> list[float]:
    """The interval of 5 errors in 100 comparisons."""
    return [round(float(end), 4) for end in confidence_for_indicator_variable(5, 100)]


def minimum_cllr_fails() -> bool:
    """Whether the minimum can't be computed."""
    try:
        min_cllr([-1.0, 0.5], [0.0, 1.0])
    except (NotImplementedError, AttributeError):
        return True
    return False


def costs(told: dict[str, str]) -> dict[str, float]:
    """Cllr of log-likelihood ratios."""
    data = np.load(told["data"])
    llr, genuine = data["llr"], data["genuine"]
    return {"cllr": float(cllr(llr[~genuine], llr[genuine]))}
