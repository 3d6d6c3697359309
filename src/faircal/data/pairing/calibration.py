"""Other calibration pairs than those given: imposters drawn anew, a cohort taken out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from faircal._base.errors import DataError, ParameterError
from faircal._base.registry import check_integer, did_you_mean
from faircal.data.cohort import Cohort
from faircal.data.cohort_overlap import join_cohort
from faircal.data.columns import UNKNOWN
from faircal.data.dataset import Dataset
from faircal.data.pairing.build import DRAW, PairPlan, cells
from faircal.data.pairing.imposters import Pool
from faircal.data.pairing.people import PersonImages, occurrence
from faircal.data.types import Pairs, connected, people_of

GIVEN = "given"
#: Kinds of imposters that need no groups.
_KINDS = ("random", "cluster", "matched", "hard")
#: More pairs than two people have.
_NO_CAP = 10**12


def redraw_imposters(
    data: Dataset, how: str = "random", seed: int = 0, *, number: int | None = None
) -> Dataset:
    """Return the dataset with other imposter pairs of its images; genuine pairs stay.

    Meant for calibration data: a pair may join people of two folds, so the result has none.

    Parameters
    ----------
    data : Dataset
        With embeddings. Images in no pair take no part. People are known by their identities, and
        by genuine pairs.
    how : str
        ``random``: every pair of images of two people is equally likely. ``cluster``, ``matched``
        and ``hard``: of people or images who are alike, as for `PairPlan`; only ``hard`` has a cap
        on the pairs of two people. ``given``: the dataset as it is.
    seed : int
    number : int, optional
        How many; as many as there are by default.

    Examples
    --------
    >>> import faircal
    >>> calibration, test = faircal.simulate("small", seed=0).split(test_fold=5)
    >>> drawn = redraw_imposters(calibration)
    >>> len(drawn) == len(calibration), drawn.notes
    (True, ('imposters: 4,266 pairs drawn anew (random)',))
    """
    if how == GIVEN:
        return data
    if how not in _KINDS:
        hint = did_you_mean(str(how), (GIVEN, *_KINDS))
        raise ParameterError(f"imposters: unknown kind {how!r}; {hint}")
    check_integer("seed", seed, 0)
    if data.embeddings is None or any(of.scores is not None for of in data.features.values()):
        raise DataError(
            f"{data.where}: expected embeddings, to score imposters drawn anew, found ready-made "
            "scores; give the embeddings, or take the imposters as given"
        )
    genuine = data.genuine
    wanted = int((~genuine).sum()) if number is None else number
    used, (people, _) = data.used_images(), people_of(data.pairs, data.images)
    # Images of unknown people may be known to be of one.
    one, two = (people[side[genuine]] for side in (data.pairs.left, data.pairs.right))
    who = PersonImages.of(connected(one, two, int(people.max()) + 1)[people[used]])
    plan, notes = PairPlan(how, seed=seed), list[str]()
    vectors = None if how == "random" else data.embeddings.rows(used)
    cell = cells(who, None, vectors, plan, notes)
    cap = plan.cap if how == "hard" else _NO_CAP
    points = None if vectors is None else vectors[who.image]
    rng = np.random.default_rng(seed)
    sides = DRAW[how](Pool(who.person, cell, cap, points), wanted, rng)
    drawn = len(sides[0])
    if wanted and not drawn:
        raise DataError(f"{data.where}: expected images of two people or more, found none ({how})")
    few = f", not {wanted:,}: there are no more" if drawn < wanted else ""
    notes.append(f"imposters: {drawn:,} pairs drawn anew ({how}){few}")
    left, right = (
        np.concatenate([given[genuine], used[who.image[side]]])
        for given, side in zip((data.pairs.left, data.pairs.right), sides, strict=True)
    )
    pairs = Pairs(left, right, np.arange(len(left)) < len(left) - drawn)
    made = data.with_pairs(pairs)
    vars(made).update(notes=(*data.notes, *notes))
    return made


def draw_cohort(data: Dataset, n: int, attribute: str | None = None, seed: int = 0) -> Dataset:
    """Return the dataset with some of its people as its cohort, and without their pairs.

    Parameters
    ----------
    data : Dataset
        Calibration data, with embeddings. People are known by their identities, or where there are
        none by genuine pairs.
    n : int
        People of each group, drawn at random; all where there are fewer. All their images that are
        in a pair go with them. Who has a picture among those that stay is left out (`join_cohort`).
    attribute : str, optional
        What makes the groups (``a+b`` crosses; all columns crossed by default). A person belongs to
        the group of most of their images; nobody is drawn whose group is unknown.
    seed : int

    Examples
    --------
    >>> import faircal
    >>> calibration, test = faircal.simulate("small", seed=0).split(test_fold=5)
    >>> apart = draw_cohort(calibration, 10, "ethnicity")
    >>> apart.cohort
    <Cohort 'people of small (simulated)': 400 images of 40 people in 4 groups>
    >>> len(apart) < len(calibration)
    True
    """
    check_integer("draw_cohort", n, 1)
    column, (people, _) = data.image_groups(attribute), people_of(data.pairs, data.images)
    names, identity = people.astype(str), data.images.identity
    if identity is not None and identity.names:
        people = np.where(identity.codes < 0, UNKNOWN, people)
        names = np.array([*identity.names, ""])[identity.codes]
    used = data.used_images()
    who = PersonImages.of(people[used])
    codes = column.codes[used[who.image]]
    group = np.unique(codes)[who.strata(codes)[0]]
    order = np.random.default_rng(seed).permutation(len(who))
    order = order[group[order] >= 0]
    taken = np.zeros(len(who), dtype=bool)
    taken[order[occurrence(group[order].astype(np.int64)) < n]] = True
    rows = np.sort(used[who.image[taken[who.person]]])
    cohort = Cohort(
        embeddings={
            name: replace(feature.embeddings, vectors=feature.embeddings.vectors[rows])
            for name, feature in data.features.items()
            if feature.embeddings is not None
        },
        identity=names[rows],
        groups=np.array([*column.names, ""])[column.codes[rows]],
        name=f"people of {data.name}",
        attribute=attribute or str(data.default_attribute),
        provenance=data.provenance,
        where=f"{data.where}, people drawn as a cohort",
    )
    inside = np.isin(np.arange(len(data.images)), rows)
    kept = data.subset(~(inside[data.pairs.left] | inside[data.pairs.right]))
    if len(np.unique(kept.genuine)) < len(np.unique(data.genuine)):
        raise DataError(
            f"{data.where}: without {int(taken.sum())} people as a cohort {len(kept)} pairs are "
            "left, not of both classes; draw fewer a group"
        )
    # Mislabelled pictures that are there twice say nothing against people drawn at random.
    return join_cohort(kept, cohort, most_shared=1.0)
