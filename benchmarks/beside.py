"""Methods beside FairCal at BFW's size: how long a fit takes, and pairs of known images a second.

The calibration part is as large as four of BFW's folds; the cohort is of other people.
"""

from __future__ import annotations

from functools import partial

import numpy as np

import faircal
from benchmarks.data import n_clusters
from benchmarks.figure import Figure, ratio
from benchmarks.timing import race
from faircal.data import Cohort
from faircal.data.pairing import draw_cohort
from faircal.methods import METHODS, Method

#: Seconds that a fit may take on two cores.
GOALS = {"cohort": 2.0, "smooth": 3.0}
#: People of each group in the cohort.
A_GROUP = 100


def dataset(quick: bool) -> faircal.Dataset:
    """Return calibration pairs of two folds of twice BFW's people, and a cohort of the others."""
    sizes = {"people": 160, "pairs": 40_000} if quick else {"people": 1600, "pairs": 1_780_000}
    drawn = faircal.simulate("bfw-like", seed=0, **sizes)
    apart = np.isin(drawn.pairs.fold, (1, 2))
    cohort = draw_cohort(drawn.subset(~apart), A_GROUP // 10 if quick else A_GROUP).cohort
    return drawn.subset(apart).with_cohort(cohort)


def figures(quick: bool) -> list[Figure]:
    data = dataset(quick)
    names = [name for name in GOALS if name in METHODS]
    usual = {"n_clusters": n_clusters(quick)}
    methods = {"faircal": METHODS["faircal"](**usual), **{name: METHODS[name]() for name in names}}
    # Every fit begins with a dataset that remembers nothing of the one before.
    fits = {name: partial(_fit, method, data) for name, method in methods.items()}
    took = race(fits, 2, warm_up=quick)
    # The first call enrols the images.
    compare = {
        name: partial(method.compare, data.embeddings, data.pairs.left, data.pairs.right)
        for name, method in methods.items()
    }
    scored = race(compare, 3)
    images, people = len(data.used_images()), _people(data.cohort)
    what = f"{len(data):,} pairs of {images:,} × {data.embeddings.dimension}"
    found = []
    for name in names:
        title = METHODS[name].title
        beside = f", cohort of {people}" if METHODS[name].needs.cohort else ""
        found += [
            Figure(
                f"{name} fit",
                f"{title}: fit on {what}{beside}",
                took[name],
                "lower",
                goal=GOALS[name],
                unit="s",
            ),
            ratio(f"{name} to FairCal", "    FairCal's time / its", took["faircal"] / took[name]),
            ratio(
                f"{name} scoring",
                f"{title}: pairs of known images a second / FairCal's",
                scored["faircal"] / scored[name],
                goal=0.7,
            ),
        ]
    return found


def _fit(method: Method, data: faircal.Dataset) -> None:
    method.fit(data.subset(np.arange(len(data))))


def _people(cohort: Cohort) -> str:
    people = [people for people, _ in cohort.counts().values()]
    return f"{len(people)} × {max(people)} people, {len(cohort):,} images"
