"""Choosing K and the calibrator of FairCal by cross-validation over people."""

from __future__ import annotations

from collections.abc import Sequence

from faircal._base.errors import DataError, ParameterError
from faircal._base.jobs import Progress, silent
from faircal._base.registry import check_whole
from faircal.calibrators import make_calibrator
from faircal.data import Dataset
from faircal.evaluation.tuning.choice import Choice, Key, decide
from faircal.evaluation.tuning.trials import Trials, Tried
from faircal.methods import FairCal
from faircal.methods.inputs import check_classes

#: What is tried unless told.
CLUSTERS, CALIBRATORS = (10, 25, 50, 100), ("beta", "isotonic")
#: Share of pairs that may belong to no fold without a word; share of a region's pairs that may lie
#: in one fold.
_SILENT, _APART = 0.05, 0.8


def choose(
    data: Dataset,
    clusters: Sequence[int] = CLUSTERS,
    calibrators: Sequence[str] = CALIBRATORS,
    starts: int = 3,
    n_folds: int = 5,
    random_state: int = 0,
    within: float = 0.0,
    progress: Progress = silent,
) -> Choice:
    """Choose the number of clusters and the calibrator of `FairCal`, and say how stable that is.

    People are dealt to folds. For each fold every candidate is fitted on pairs of the other
    people, from several starts of K-means, and tried on pairs within the fold. What counts is the
    log-loss, in which every region of the embeddings counts the same (the regions come from one
    more K-means, with 12 clusters, the same for all candidates): so small regions matter, and no
    attribute is looked at. The candidate of least loss is chosen; or, of those `within` so many
    standard errors of it, the one with the fewest clusters.

    Parameters
    ----------
    data : Dataset
        Calibration pairs, with embeddings. Keep test pairs out.
    clusters : sequence of int
        Numbers of clusters to try.
    calibrators : sequence of str
        Calibrators to try; see `faircal.calibrators`.
    starts : int
        Starts of K-means; losses are means over them.
    n_folds : int
        Folds of people; one without pairs enough is left out.
    random_state : int
        Seed of the folds, the regions and the first start; further starts count up from it.
    within : float
        Standard errors within which fewer clusters are preferred to less loss.
    progress : callable
        Called as the work goes on, with (stage, steps done, steps in all, a few words).

    Returns
    -------
    Choice

    Examples
    --------
    >>> import faircal
    >>> cal, test = faircal.simulate("small", seed=0).split(test_fold=5)
    >>> choice = faircal.choose(cal, clusters=(2, 20), starts=2)
    >>> [(row.n_clusters, row.calibrator) for row in choice.table]
    [(2, 'beta'), (2, 'isotonic'), (20, 'beta'), (20, 'isotonic')]
    >>> choice.chosen.worse <= choice.chosen.worse_error
    True
    """
    counts, names = _checked(clusters, calibrators, starts, n_folds, random_state)
    if not within >= 0:
        raise ParameterError(f"within: expected a number from 0, found {within!r}")
    _check_data(data)
    trials = Trials.of(data, n_folds, random_state)
    if counts[-1] > trials.fewest_images:
        raise ParameterError(
            f"clusters: expected 1 to {trials.fewest_images} (the images left where a fold is held "
            f"out), found {counts[-1]}; choose fewer clusters (--clusters)"
        )
    seeds = range(random_state, random_state + starts)
    steps = len(trials.parts) * (1 + starts * len(counts))
    done = 0

    def tell() -> None:
        nonlocal done
        done += 1
        progress("choosing", done, steps, label)

    label = "one map for all"
    progress("choosing", 0, steps, label)
    plain = dict(zip(names, trials.run(1, names, seeds[:1], tell), strict=True))
    tried: dict[Key, Tried] = {}
    for n_clusters in counts:
        label = f"{n_clusters} clusters"
        found = trials.run(n_clusters, names, seeds, tell)
        tried |= {(n_clusters, name): one for name, one in zip(names, found, strict=True)}
    return decide(tried, plain, within, _notes(trials, n_folds))


def _checked(
    clusters: Sequence[int], calibrators: Sequence[str], starts: int, n_folds: int, seed: int
) -> tuple[list[int], list[str]]:
    """Return numbers of clusters, ascending, and names of calibrators, without repeats."""
    for name, values in (("clusters", clusters), ("calibrators", calibrators)):
        if isinstance(values, str) or not len(values):
            raise ParameterError(
                f"{name}: expected one or more to try, found {values!r}; list them"
            )
    for count in clusters:
        check_whole("clusters", count, 1)
    for calibrator in calibrators:
        make_calibrator(calibrator)
    check_whole("starts", starts, 1)
    check_whole("n_folds", n_folds, 2)
    check_whole("random_state", seed, 0)
    return sorted({int(count) for count in clusters}), list(dict.fromkeys(calibrators))


def _check_data(data: Dataset) -> None:
    problem = FairCal.unserved(data, None)
    if problem is not None:
        raise DataError(
            f"{data.where}: faircal cannot be used: {problem}; add embeddings ('faircal embed')"
        )
    check_classes(int(data.genuine.sum()), len(data), data.where)


def _notes(trials: Trials, n_folds: int) -> list[str]:
    """Say where less was tried than asked for."""
    notes = []
    if len(trials.parts) < n_folds:
        notes.append(
            f"{len(trials.parts)} of {n_folds} folds of people have pairs enough to hold out"
        )
    lost = trials.lost / (trials.lost + len(trials.genuine))
    if lost > _SILENT:
        notes.append(
            f"{lost:.0%} of the pairs join people of two folds and are left out; with all pairs "
            "more clusters may do better"
        )
    if trials.apart > _APART:
        notes.append(
            "whole regions of the embeddings are held out at once, since pairs join people of a "
            "region only with each other: what clusters gain there can't be seen; use pairs within "
            "folds that mix them, as 'faircal pairs' makes"
        )
    return notes
