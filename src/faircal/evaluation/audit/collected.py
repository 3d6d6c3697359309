"""Pairs that are audited wherever they are: compact columns of them, or counts of very many.

A tally goes through the pairs, which are in memory, in files or on a cluster. Up to `MOST_EXACT`
pairs it collects what an audit needs, about 33 bytes a pair, and the audit is that of pairs in
memory. Of more pairs it counts scores in bins, and the audit is that of scores rounded to a bin.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, Self, cast

import numpy as np
from numpy.typing import NDArray

from faircal._base.checkpoints import Checkpoint, mark_of
from faircal._base.container import prefixed, unprefixed
from faircal._base.errors import DataError, ParameterError
from faircal._base.jobs import Job
from faircal.compute.counting import ScoreCounts, fine_edges
from faircal.data import Dataset, Groups
from faircal.data.columns import UNKNOWN
from faircal.data.parts import PairParts, TallyState
from faircal.data.summary import WrongPairs
from faircal.data.tables import table_files
from faircal.data.types import unknown_note
from faircal.evaluation.audit.pairs import ScoredPairs, check_points
from faircal.evaluation.audit.result import Audit, audit_pairs, audit_rankings
from faircal.methods import Method
from faircal.methods.modelfile import decode, encode
from faircal.metrics import probability_edges, score_edges
from faircal.metrics.calibration import NLL_EPS
from faircal.metrics.measures import RATES, Rankings, check_names
from faircal.metrics.results import GLOBAL

#: More pairs than these that are not in memory are counted: intervals over people take some
#: 400 bytes a pair while they are worked out.
MOST_EXACT = 1 << 21
#: Bins over the range of scores; fewer where there are so many groups that they would take
#: more than half a gigabyte.
_BINS, _CELLS = 1 << 16, 1 << 24


@dataclass(frozen=True)
class AuditPlan:
    """What a tally does with each part; it travels to the workers of a cluster.

    Parameters
    ----------
    features : tuple of str
    attribute : str or None
    group_names : tuple of str
        All groups, in order.
    model : Method, optional
        Scores the pairs first.
    counts : bool
        Whether scores are counted in bins.
    threshold : float, optional
    score_range : (float, float)
    """

    features: tuple[str, ...]
    attribute: str | None
    group_names: tuple[str, ...]
    model: Method | None
    counts: bool
    threshold: float | None
    score_range: tuple[float, float]

    def __call__(self) -> AuditTally:
        """Return a tally of nothing yet."""
        kind = PairCounts if self.counts else PairColumns
        return AuditTally(self, {feature: kind(self) for feature in self.features})

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "model": None if self.model is None else encode(self.model)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        blob = state["model"]
        vars(self).update(state, model=None if blob is None else cast("Method", decode(blob)))

    @property
    def n_bins(self) -> int:
        """How many bins there are over the range of scores."""
        return max(min(_BINS, _CELLS // (1 + len(self.group_names))), 256)


@dataclass
class AuditTally:
    """What was collected or counted of each feature; parts and their order change no digit."""

    plan: AuditPlan
    of: dict[str, Any]  # `PairColumns` or `PairCounts` of each feature
    wrong: WrongPairs = field(default_factory=WrongPairs)

    def add(self, part: Dataset) -> None:
        """Take in the pairs of `part`, with their own scores or with what the model says."""
        model = self.plan.model
        self.wrong.merge(WrongPairs.of(part))
        for feature, kept in self.of.items():
            view = part.select(feature)
            output = None if model is None else model.apply(view)
            kept.add(ScoredPairs.of_data(view, output, self.plan.attribute))

    def merge(self, other: Self) -> None:
        """Add what another tally has of other pairs."""
        self.wrong.merge(other.wrong)
        for feature, kept in self.of.items():
            kept.merge(other.of[feature])

    def state(self) -> TallyState:
        """Return all as JSON and arrays."""
        states = [each.state() for each in self.of.values()]
        arrays: dict[str, NDArray[Any]] = {}
        for i, (_, state) in enumerate(states):
            arrays |= prefixed(str(i), state)
        return {"features": [of for of, _ in states], "wrong": vars(self.wrong)}, arrays

    def restore(self, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Go on from what `state` gave."""
        vars(self.wrong).update(header["wrong"])
        for i, each in enumerate(self.of.values()):
            each.restore(header["features"][i], unprefixed(str(i), arrays))


@dataclass
class PairColumns:
    """The columns of the pairs, part after part."""

    plan: AuditPlan
    _parts: list[ScoredPairs] = field(default_factory=list)
    _in_order: bool = True

    def add(self, pairs: ScoredPairs) -> None:
        """Take in more pairs."""
        self._parts.append(pairs)

    def merge(self, other: PairColumns) -> None:
        """Add the pairs of another one; where they stood among all is not known."""
        self._parts += other._parts
        self._in_order = False

    def joined(self) -> ScoredPairs:
        """Return all pairs, in their order, or sorted where that is not known."""
        if not self._parts:
            raise ParameterError("audit: expected pairs, found none; add some first")
        pairs = (
            self._parts[0] if len(self._parts) == 1 else _joined(self._parts, self.plan.group_names)
        )
        self._parts = [pairs]
        return pairs if self._in_order else pairs.take(_order(pairs))

    def state(self) -> TallyState:
        """Return all pairs as JSON and arrays, for a checkpoint."""
        if not self._parts:
            return {}, {}
        pairs = self.joined()
        header: dict[str, Any] = {"same": pairs.score is pairs.probability}
        arrays: dict[str, NDArray[Any]] = {"genuine": pairs.genuine}
        for name in ("score", "probability"):
            values = getattr(pairs, name)
            if values is not None:
                arrays[name] = values
        for name in ("groups", "people"):
            sides: Groups | None = getattr(pairs, name)
            if sides is not None:
                header[name] = list(sides.names)
                arrays |= prefixed(name, {"left": sides.left, "right": sides.right})
        return header, arrays

    def restore(self, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Go on from what `state` gave."""
        if not arrays:
            return
        sides = {}
        for name in ("groups", "people"):
            codes = unprefixed(name, arrays)
            if codes:
                sides[name] = Groups(tuple(header[name]), codes["left"], codes["right"])
        probability = arrays.get("probability")
        score = probability if header["same"] else arrays.get("score")
        genuine = arrays["genuine"].astype(np.bool_)
        self._parts = [ScoredPairs(genuine, score, probability, **sides)]


def _joined(parts: Sequence[ScoredPairs], group_names: Sequence[str]) -> ScoredPairs:
    """Put parts one after the other, with one list of groups and one of people."""
    fields = {(p.score is p.probability, p.score is None, p.probability is None) for p in parts}
    if len(fields) > 1:
        raise DataError("expected the same of scores and probabilities in all parts of the pairs")
    first = parts[0]

    def column(name: str) -> Any:
        if getattr(first, name) is None:
            return None
        return np.concatenate([getattr(part, name) for part in parts])

    probability = column("probability")
    score = probability if first.score is first.probability else column("score")
    groups = None if first.groups is None else _sides([p.groups for p in parts], group_names)
    people = None
    if any(part.people is not None for part in parts):
        unidentified = [np.full(len(part.genuine), UNKNOWN, np.int32) for part in parts]
        each = [p.people or Groups((), n, n) for p, n in zip(parts, unidentified, strict=True)]
        people = _sides(each, sorted({name for of in each for name in of.names}))
    return ScoredPairs(column("genuine"), score, probability, groups, people)


def _sides(parts: Iterable[Groups | None], names: Sequence[str]) -> Groups:
    renamed = [part.renamed(names) for part in parts if part is not None]
    left, right = (np.concatenate([getattr(of, s) for of in renamed]) for s in ("left", "right"))
    return Groups(tuple(names), left, right)


def _order(pairs: ScoredPairs) -> NDArray[np.intp]:
    """Return an order that depends on what the pairs are alone."""
    sides = [side for of in (pairs.people, pairs.groups) if of for side in (of.right, of.left)]
    values = [of for of in (pairs.probability, pairs.score) if of is not None]
    return np.lexsort([*sides, pairs.genuine, *values])


@dataclass
class PairCounts:
    """Genuine and imposter pairs counted in bins of scores and of probabilities, by group.

    All counts are whole numbers. Curves, and error rates at the plan's threshold, are exact: their
    places are edges of bins.
    """

    plan: AuditPlan
    shares: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys(("pairs", "cross_group_pairs", "unknown_pairs"), 0)
    )
    counts: dict[str, ScoreCounts] = field(default_factory=dict)
    _ranks: bool = False

    def add(self, pairs: ScoredPairs) -> None:
        """Count more pairs."""
        plan, sets = self.plan, 1 + len(self.plan.group_names)
        apart = pairs.score is not None and pairs.score is not pairs.probability
        if not self.counts:  # room for them, now that it is known of what
            if pairs.probability is not None:
                edges = _probability_edges(plan, None if apart else plan.threshold)
                self.counts["probability"] = ScoreCounts.zeros(sets, edges)
            if apart:
                self.counts["score"] = ScoreCounts.zeros(sets, _score_edges(plan))
        self._ranks = pairs.score is not None
        codes: tuple[Any, ...] = (0,)
        shares = {"pairs": len(pairs.genuine)}
        if pairs.groups is not None:
            groups = pairs.groups.renamed(self.plan.group_names)
            codes = 0, groups.pair + 1  # no group is 0, where the pair has been counted
            shares = groups.shares()
        for share, count in shares.items():
            self.shares[share] += count
        for of, counts in self.counts.items():
            counts.add(getattr(pairs, of), pairs.genuine, *codes)

    def merge(self, other: PairCounts) -> None:
        """Add what another one has counted."""
        self._ranks |= other._ranks
        for share, count in other.shares.items():
            self.shares[share] += count
        totals = self.counts
        for of, counts in other.counts.items():
            totals[of] = totals[of] + counts if of in totals else counts

    def rankings(self) -> Rankings:
        """Return the pairs of each bin tied at its mean."""
        probabilities = self.counts.get("probability")
        scores = self.counts.get("score", probabilities)
        upper = self.plan.score_range[1] if self._ranks else 1.0
        return Rankings.counted(self.plan.group_names, scores, probabilities, upper)

    def state(self) -> TallyState:
        """Return what was counted so far as JSON and arrays, for a checkpoint."""
        arrays: dict[str, NDArray[Any]] = {}
        for of, counts in self.counts.items():
            arrays |= prefixed(of, counts.state())
        return {"shares": self.shares, "ranks": self._ranks}, arrays

    def restore(self, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Go on from what `state` gave."""
        self.shares, self._ranks = dict(header["shares"]), bool(header["ranks"])
        self.counts = {
            of: ScoreCounts.from_state(unprefixed(of, arrays))
            for of in ("probability", "score")
            if f"{of}.edges" in arrays
        }


def _score_edges(plan: AuditPlan) -> NDArray[np.float64]:
    """Return edges for scores: those of curves, the threshold, and even ones.

    They reach as far beyond the range as those of curves. Both ends of the range have bins of
    their own, since many scores may be exactly there.
    """
    curve = score_edges(*plan.score_range)
    even = np.linspace(curve[0], curve[-1], plan.n_bins + 1)
    ends = [*plan.score_range, *np.nextafter(plan.score_range, np.inf)]
    if plan.threshold is not None:  # with an edge below: in the first bin is all that is lower
        ends += [float(np.nextafter(plan.threshold, -np.inf)), plan.threshold]
    return np.unique(np.concatenate([curve, even, ends]))


def _probability_edges(plan: AuditPlan, threshold: float | None) -> NDArray[np.float64]:
    """Return edges for probabilities: those of curves, and finer ones towards 0 and 1."""
    also = [*probability_edges(), NLL_EPS, 1 - NLL_EPS]
    if threshold is not None:
        also.append(threshold)
    if plan.n_bins == _BINS:
        return fine_edges(0, 1, also)
    return np.unique([*also, *np.linspace(0, 1, plan.n_bins + 1), np.nextafter(1.0, 2)])


@dataclass(frozen=True)
class AuditedPairs:
    """The audits of several features of the same pairs, and what was audited.

    Attributes
    ----------
    audits : list of Audit
        One a feature.
    pairs : list of ScoredPairs
        One a feature; none where they were counted.
    shares : dict
        Pairs within and across groups.
    notes : list of str
    """

    audits: list[Audit]
    pairs: list[ScoredPairs]
    shares: dict[str, int]
    notes: list[str] = field(default_factory=list)


def audit_parts(
    pairs: PairParts,
    features: Sequence[str],
    *,
    model: Method | None = None,
    attribute: str | None = None,
    threshold: float | None = None,
    rates: Sequence[float] = RATES,
    about: Mapping[str, Any] | None = None,
    job: Job | None = None,
) -> AuditedPairs:
    """Measure pairs wherever they are: in memory, in files, on a cluster.

    Parameters
    ----------
    pairs : PairParts
        Labelled.
    features : sequence of str
        What is measured, each by itself.
    model : Method, optional
        Scores the pairs; else they are measured with their own scores, and probabilities where a
        score table has them.
    attribute : str, optional
        The attribute that makes the groups, ``a+b`` for two crossed; without it there are none.
    threshold, rates
        As for `faircal.audit`.
    about : mapping, optional
        What else the result depends on, such as the model's hash: a checkpoint of other things is
        refused. The data, and what is given here by name, are always among them.
    job : Job, optional
        Progress, checkpoint and whether to go on from it.

    Examples
    --------
    >>> import faircal
    >>> data = faircal.simulate("small", seed=0)
    >>> (audit,) = audit_parts(data, ["embedding"], attribute="ethnicity").audits
    >>> audit.groups, audit.result("auroc").reportable
    (('African', 'Asian', 'Caucasian', 'Indian'), True)
    """
    job = job or Job()
    names = () if attribute is None else tuple(pairs.group_names(attribute))
    check_names(names)
    counts = not isinstance(pairs, Dataset) and len(pairs) > MOST_EXACT
    at, checked_rates = check_points(threshold, rates)
    plan = AuditPlan(tuple(features), attribute, names, model, counts, at, pairs.score_range)
    kept = None
    if job.checkpoint is not None:
        settings = {
            "data": pairs.fingerprint(),
            "pairs": len(pairs),
            "features": list(features),
            "model": None if model is None else model.name,
            "attribute": attribute,
            "threshold": threshold,
            "rates": list(rates),
            "score_range": pairs.score_range,
            **(about or {}),
        }
        kept = AuditCheckpoint(job, settings)
    columns = None  # of a score table; a model reads all, as it knows what it needs
    if model is None or pairs.has_images:
        columns = [
            "genuine",
            "probability",
            "identity",
            *(attribute.split("+") if attribute else ()),
        ]
    tally = pairs.reduce(
        plan, columns, progress=lambda done, n: job.progress("pairs", done, n, ""), kept=kept
    )
    notes = tally.wrong.notes(pairs.where)
    how: dict[str, Any] = {"threshold": at, "rates": checked_rates}
    how |= {"score_range": pairs.score_range, "dataset": pairs.name}
    how["calibrated_at"] = None if model is None else model.calibrated_at
    how |= {"attribute": attribute or "", "method": "" if model is None else model.name}
    audits, scored = [], []
    shares: dict[str, int] = {}
    for feature, each in tally.of.items():
        if isinstance(each, PairCounts):
            audits.append(audit_rankings(each.rankings(), feature=feature, **how))
            shares = each.shares
        else:
            joined = each.joined()
            audits.append(audit_pairs(joined, feature=feature, **how))
            scored.append(joined)
            shares = {"pairs": len(joined.genuine)}
            if joined.groups is not None:
                shares = joined.groups.shares()
    notes += one_class_note(*audits[0].trials[GLOBAL])
    notes += unknown_note(attribute or "", shares.get("unknown_pairs", 0), shares["pairs"])
    if how["calibrated_at"] is None:
        notes += _share_note(audits[0])
    if counts:
        width = (plan.score_range[1] - plan.score_range[0]) / plan.n_bins
        notes.append(
            f"more than {MOST_EXACT:,} pairs: scores are counted in bins {width:.1g} wide, and "
            "numbers are those of scores rounded so; curves and error rates at thresholds are "
            "counted exactly"
        )
    return AuditedPairs(audits, scored, shares, notes)


def one_class_note(genuine: int, imposter: int) -> list[str]:
    """Say what is not measured where there are only genuine, or only imposter, pairs."""
    if genuine and imposter:
        return []
    there, of, missing = "genuine", "FPR, FNR at a global FPR", "imposter"
    if imposter:
        there, of, missing = "imposters", "FNR, TPR", "genuine"
    need = f"{of}, AUROC and Cllr need {missing} pairs and are not measured; add some"
    return [f"all {genuine + imposter} pairs are {there}: {need}"]


def _share_note(audited: Audit) -> list[str]:
    """Say which share of genuine pairs probabilities are taken to hold for, where nobody knows."""
    if not any(row.metric == "cllr" and row.value == row.value for row in audited.measures):
        return []
    genuine, imposter = audited.trials[GLOBAL]
    share = f"{100 * genuine / (genuine + imposter):.3g} %"
    note = (
        f"Cllr and bounds on evidence take the share of genuine pairs here, {share}, for the one "
        "that the probabilities hold for; where that is another they are wrong, and --model MODEL "
        "tells it"
    )
    return [note]


class AuditCheckpoint:
    """What was collected of the first pairs of a stream, in a file."""

    def __init__(self, job: Job, settings: Mapping[str, Any]) -> None:
        what = "data, model or settings"
        self._file = Checkpoint(job, mark_of(settings), "audit", "audit", what)
        self._done = 0

    def restore(self, tally: AuditTally) -> int:
        """Have `tally` go on from the file; return of how many pairs that is."""
        state = self._file.read()
        if state is None:
            return 0
        tally.restore(state.header, state.arrays)
        self._done = int(state.header["done"])
        return self._done

    def keep(self, tally: AuditTally, done: int, *, now: bool = False) -> None:
        """Write the file, if it is time to and something was added since."""
        if done == self._done or not (now or self._file.is_due):
            return
        header, arrays = tally.state()
        self._file.write({"done": done, **header}, arrays)
        self._done = done


def files_digest(paths: Sequence[Path]) -> str:
    """Return the SHA-256 of the names, lengths and contents of files, read piece by piece."""
    sha = hashlib.sha256()
    for path in chain.from_iterable(map(table_files, paths)):
        sha.update(f"{path.name}\0{path.stat().st_size}\0".encode())
        with path.open("rb") as file:
            while piece := file.read(1 << 20):
                sha.update(piece)
    return sha.hexdigest()
