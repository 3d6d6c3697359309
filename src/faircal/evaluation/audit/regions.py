"""Where is it worst? Regions of embedding space, found without attributes.

People are dealt to two halves. The images of one half are clustered, and the clusters that look
worst there are candidates; the other half, other people, tests them. Then the halves change places.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from faircal._base.errors import DataError, ParameterError
from faircal._base.jobs import Progress, silent
from faircal.data import Dataset
from faircal.data.columns import UNKNOWN
from faircal.data.types import Embeddings, people_of
from faircal.evaluation.audit.pairs import check_points
from faircal.evaluation.audit.region_search import (
    PEOPLE_EACH,
    QUESTIONS,
    Bools,
    RegionCandidate,
    RegionSearch,
    split_people,
    usable_resolutions,
)
from faircal.metrics import Ranking, counted_threshold
from faircal.metrics.intervals.dyadic import Float64

#: In the output folder: all regions, and how they were made.
REGIONS, RECORD = "regions.csv", "regions.json"
#: Numbers of regions, as far as there are people for them.
RESOLUTIONS = (3, 10, 30, 100)
#: Images named as examples of a region, each of another person.
EXAMPLES = 9
_SHOWN_GROUPS = 3

#: What is asked of a region: has it more false matches than the rest, or another calibration?
Question = Literal["fpr", "gap"]
_QUESTIONS: tuple[Question, ...] = ("fpr", "gap")


class RegionRow(NamedTuple):
    """A row of ``regions.csv``: one region, as the half that did not make it shows it.

    `p` is NaN where a region was not tested; `adjusted` is at or under the level of false
    discoveries where it is `found`. `like` names a region found before, for false matches as well,
    that has most of the same images; `gap_like` one found for calibration. `x` and `y` place the
    centre on a map. Fields that begin with `gap` are of calibration: mean probability less share of
    genuine pairs. `examples` is a JSON list of image ids.
    """

    feature: str
    region: str
    resolution: float
    people: float
    effective_people: float
    images: float
    pairs: float
    imposters: float
    fpr: float
    low: float
    high: float
    rest_fpr: float
    p: float
    adjusted: float
    found: float
    gap: float
    gap_low: float
    gap_high: float
    rest_gap: float
    gap_p: float
    gap_adjusted: float
    gap_found: float
    like: str
    gap_like: str
    x: float
    y: float
    composition: str
    examples: str

    @property
    def example_ids(self) -> list[str]:
        """The ids of images nearest to the centre."""
        return [str(name) for name in json.loads(self.examples)]


@dataclass(frozen=True, eq=False)
class Regions:
    """What `find_regions` found.

    Attributes
    ----------
    rows : list of RegionRow
        All regions, those found first, worst first.
    threshold : float
        The operating point.
    q : float
        The level of false discoveries.
    tested : int
        How many regions were tested, of `len(rows)`.
    notes : list of str
        How to read it.
    """

    rows: list[RegionRow]
    threshold: float
    q: float
    tested: int
    notes: list[str]

    @property
    def more_false_matches(self) -> list[RegionRow]:
        """The regions with more false matches than the rest; of those alike the first."""
        return distinct(self.rows, "fpr")

    @property
    def miscalibrated(self) -> list[RegionRow]:
        """The regions whose calibration differs from that of the rest; of those alike the first."""
        return distinct(self.rows, "gap")

    @property
    def words(self) -> list[str]:
        """What was found, a line each."""
        of = f"of {len(self.rows)} regions of embedding space"
        how = f"({self.tested} tested; level of false discoveries {100 * self.q:g} %)"
        if not any(row.found or row.gap_found for row in self.rows):
            return [f"0 {of} are worse than the rest by more than chance {how}"]
        more = f"{len(self.more_false_matches)} {of} have more false matches than the rest"
        lines = [f"{more}, {len(self.miscalibrated)} another calibration {how}"]
        lines += [in_words(row, "fpr") for row in self.more_false_matches]
        lines += [in_words(row, "gap") for row in self.miscalibrated]
        return lines


def distinct(rows: Sequence[RegionRow], question: Question | None = None) -> list[RegionRow]:
    """Return the regions found for a question, or for any; of those alike the first.

    A region is alike only to one found for the same question: more false matches are reported also
    where another region, of the same people, was found for its calibration.
    """
    questions = _QUESTIONS if question is None else (question,)
    return [row for row in rows if any(_first(row, each) for each in questions)]


def _first(row: RegionRow, question: Question) -> bool:
    if question == "fpr":
        return bool(row.found) and not row.like
    return bool(row.gap_found) and not row.gap_like


def find_regions(
    data: Dataset,
    score: Float64 | None = None,
    probability: Float64 | None = None,
    *,
    rate: float = 0.01,
    threshold: float | None = None,
    q: float = 0.05,
    resolutions: Sequence[int] = RESOLUTIONS,
    seed: int = 0,
    progress: Progress = silent,
) -> Regions:
    """Find the regions of embedding space with most false matches or the worst calibration.

    No attribute is looked at; where there are some, `composition` says what a region is made of.
    A region is found where its false-positive rate is higher, or its calibration other, than that
    of the rest, on people who had no part in making the region. On average at most a share `q` of
    what is found is found by chance: each half has half of that (Benjamini and Hochberg).

    Parameters
    ----------
    data : Dataset
        With embeddings. People come from `identity`, or else from genuine pairs.
    score, probability : ndarray of float64, shape (n_pairs,), optional
        What a model says; the dataset's own by default. Without probabilities one beta map for all
        is fitted, on the half that makes the regions.
    rate : float
        The false-positive rate of all pairs at which to look.
    threshold : float, optional
        A threshold instead.
    q : float
        Level of false discoveries.
    resolutions : sequence of int
        Numbers of clusters to make; those for which there are too few people are left out.
    seed : int
        For halves and K-means.
    progress : callable

    Examples
    --------
    >>> from faircal.data.simulation import simulate
    >>> data = simulate("small", seed=1)
    >>> result = find_regions(data, resolutions=(4,))
    >>> worst = result.rows[0]
    >>> worst.people, worst.composition  # whose probabilities are too high
    (25.0, 'Asian F 57 %, Asian M 43 %')
    >>> worst.gap_low > worst.rest_gap, worst.gap_adjusted <= 0.05
    (True, True)
    """
    embeddings = _check(data)
    for name, share in (("rate", rate), ("q", q)):
        if not 0 < share < 1:
            raise ParameterError(f"{name}: expected a share between 0 and 1, found {share:g}")
    score = data.scores if score is None else score
    probability = data.pairs.probability if probability is None else probability
    at, _ = check_points(threshold)
    if at is None:
        at = float(counted_threshold(Ranking.of(score, data.genuine), "fpr", rate))
    people, source = people_of(data.pairs, data.images)
    # Made on one half, tested on the other: else every region would be found where it was sought.
    halves = split_people(data, people, seed)
    chosen = usable_resolutions(resolutions, min(half.people for half in halves))
    search = RegionSearch(data, embeddings, people, score, probability, at, seed, chosen, progress)
    candidates = search.run(halves)
    lost = len(data) - sum(len(half.pairs) for half in halves)
    tested = sum(candidate.tested for candidate in candidates)
    notes = _notes(len(data), lost, chosen, source, probability is None)
    return Regions(_rows(search, candidates, q), at, q, tested, notes)


def read_record(folder: str | Path) -> dict[str, Any]:
    """Read ``regions.json``; empty where there is no such file."""
    path = Path(folder) / RECORD
    if not path.exists():
        return {}
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise DataError(f"{path}: not valid JSON ({error}); run 'faircal regions' again") from error
    return record if isinstance(record, dict) else {}


def _check(data: Dataset) -> Embeddings:
    if data.embeddings is None or not data.has_images:
        raise DataError(
            f"{data.where}: regions of embedding space need embeddings; found scores alone; "
            "give a dataset folder with embeddings.npy"
        )
    if data.genuine.all() or not data.genuine.any():
        raise DataError(
            f"{data.where}: expected genuine and imposter pairs, found only one kind; add the other"
        )
    return data.embeddings


def _notes(
    pairs: int, lost: int, chosen: list[int], source: str, without_probabilities: bool
) -> list[str]:
    made = f"regions are made on one half of the people (from {source}) and tested on the other, "
    made += f"and the other way round; {lost} of {pairs} pairs join the two halves and are left out"
    sizes = f"numbers of regions: {', '.join(map(str, chosen))}; each has {PEOPLE_EACH} people or "
    notes = [made, sizes + "more on average in each half"]
    if without_probabilities:
        notes.append("no probabilities are given: one beta map for all is fitted on the other half")
    return notes


def _rows(search: RegionSearch, candidates: list[RegionCandidate], q: float) -> list[RegionRow]:
    """Return the regions as rows: those found first, then by excess."""

    def worst(c: RegionCandidate) -> tuple[float, float]:
        least = min(c.tests.values(), default=np.inf)
        return (least if least <= q else np.inf, -np.nan_to_num(c.shown.fpr - c.shown.rest_fpr))

    ordered = sorted(candidates, key=worst)
    places = _map(search, ordered)
    named_before: dict[str, list[RegionCandidate]] = {question: [] for question in QUESTIONS}
    rows = []
    for candidate, (x, y) in zip(ordered, places, strict=True):
        like = dict.fromkeys(QUESTIONS, "")
        for question, before in named_before.items():
            if candidate.tests.get(question, np.inf) <= q:
                alike = (f.name for f in before if _alike(f.inside, candidate.inside))
                like[question] = next(alike, "")
                before.append(candidate)
        row = _row(search, candidate, q)._replace(x=float(x), y=float(y))
        rows.append(row._replace(like=like["p"], gap_like=like["gap_p"]))
    return rows


def _row(search: RegionSearch, candidate: RegionCandidate, q: float) -> RegionRow:
    nan = float("nan")
    p, gap_p = (candidate.tests.get(question, nan) for question in QUESTIONS)
    shown = {name: float(value) for name, value in candidate.shown._asdict().items()}
    for question in QUESTIONS:  # no p-value for what was not tested
        shown[question] = shown[question] if question in candidate.tests else nan
    return RegionRow(
        **shown,
        feature=search.data.feature,
        region=candidate.name,
        resolution=float(candidate.resolution),
        adjusted=p,
        found=float(p <= q),
        gap_adjusted=gap_p,
        gap_found=float(gap_p <= q),
        like="",
        gap_like="",
        x=nan,
        y=nan,
        composition=_composition(search.data, candidate.inside),
        examples=_examples(search, candidate),
    )


def _alike(one: Bools, other: Bools) -> bool:
    """Whether the smaller of two regions lies mostly in the other."""
    return bool(2 * (one & other).sum() > min(one.sum(), other.sum()))


def _map(search: RegionSearch, candidates: Sequence[RegionCandidate]) -> Float64:
    """Return places of the centres, shape (n, 2), along the two directions images vary most in."""
    used = search.data.used_images()
    few = used[:: max(len(used) // 5000, 1)]
    vectors = search.embeddings.rows(few).astype(np.float64)
    mean = vectors.mean(axis=0)
    axes = np.linalg.eigh(np.atleast_2d(np.cov((vectors - mean).T)))[1][:, ::-1][:, :2]
    axes *= np.sign(axes[np.abs(axes).argmax(axis=0), range(axes.shape[1])])
    centres = np.array([c.centre for c in candidates])
    places = (centres - mean) @ axes
    # Of one number an image varies in one direction alone.
    return np.pad(places, ((0, 0), (0, 2 - places.shape[1])))


def _composition(data: Dataset, inside: Bools) -> str:
    """Return the largest groups among the images of a region; empty without attributes."""
    if data.default_attribute is None:
        return ""
    column = data.image_groups()
    codes = column.take(np.flatnonzero(inside))
    counts = np.bincount(codes[codes != UNKNOWN], minlength=len(column.names))
    largest = np.argsort(-counts, kind="stable")[:_SHOWN_GROUPS]
    total = max(len(codes), 1)
    shown = (f"{column.names[g]} {100 * counts[g] / total:.0f} %" for g in largest if counts[g])
    return ", ".join(shown)


def _examples(search: RegionSearch, candidate: RegionCandidate) -> str:
    """Return the ids of images nearest to the centre, of different people."""
    rows = np.flatnonzero(candidate.inside)
    off = search.embeddings.rows(rows) - candidate.centre
    nearest = rows[np.argsort(np.einsum("ij,ij->i", off, off), kind="stable")]
    _, first = np.unique(search.people[nearest], return_index=True)
    chosen = search.data.images.ids.take(nearest[np.sort(first)[:EXAMPLES]])
    return json.dumps(chosen.to_pylist(), ensure_ascii=False, default=str)


def in_words(row: RegionRow, question: Question) -> str:
    """Say what was found of a region: of its false matches (``fpr``) or calibration (``gap``)."""
    front = f"{row.region} ({row.people:.0f} people)"
    back = f"; {row.composition}" if row.composition else ""
    if question == "fpr":
        rate, low, high, rest = (
            f"{100 * value:.2g}" for value in (row.fpr, row.low, row.high, row.rest_fpr)
        )
        return f"{front}: false matches {rate} % ({low} to {high}) against {rest} %{back}"
    much = "too high" if row.gap > row.rest_gap else "too low"
    gap, low, high, rest = (
        f"{100 * value:+.2f}" for value in (row.gap, row.gap_low, row.gap_high, row.rest_gap)
    )
    return f"{front}: probabilities {much}, {gap} points ({low} to {high}) against {rest}{back}"
