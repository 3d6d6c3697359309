"""Scoring pairs with a model, into a table: part by part on this machine, or on Spark."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from faircal._base.errors import DataError, ParameterError
from faircal._base.files import check_file, check_folder, check_table_name, file_digest
from faircal._base.jobs import Progress, silent, step
from faircal._base.registry import did_you_mean
from faircal._version import __version__
from faircal.calibrators.prior import PriorEstimate
from faircal.data import PairFiles, PairStream
from faircal.data.pair_files import fold_named
from faircal.data.stream import BATCH, Cut
from faircal.methods import Method, load_method
from faircal.methods.prior import Shift, estimate_share, fitted_share
from faircal.production.scoring import Adding, needed_columns, score_stream

if TYPE_CHECKING:
    from faircal.production.spark.session import SparkEngine

#: In place of a share of genuine pairs: find it out.
ESTIMATE = "estimate"


@dataclass(frozen=True)
class PriorShift:
    """How probabilities are moved to another share of genuine pairs, and what to say of it."""

    shift: Shift | None = None
    notes: tuple[str, ...] = ()
    record: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ScoreRequest:
    """What is to be scored, and how."""

    model: Method
    files: PairFiles
    feature: str | None
    fold: str | None
    keep: tuple[str, ...]
    add: tuple[str, ...]
    prior: float | str | None
    progress: Progress


@dataclass(frozen=True)
class ScoredFile:
    """A table of scores that was written.

    Attributes
    ----------
    out : Path
    pairs : int
    notes : tuple of str
    record : dict
        The share of genuine pairs that probabilities are for, and how it was found.
    """

    out: Path
    pairs: int
    notes: tuple[str, ...]
    record: dict[str, Any]


def score_file(
    model: str | Path,
    data: PairFiles | str | Path,
    out: str | Path,
    *,
    feature: str | None = None,
    fold: str | None = None,
    keep: Sequence[str] = (),
    add: Sequence[str] = (),
    prior: float | str | None = None,
    engine: SparkEngine | None = None,
    resume: bool = False,
    progress: Progress = silent,
) -> ScoredFile:
    """Score pairs with a model and write a table with a row for each.

    Parameters
    ----------
    model : path
        Model file.
    data : PairFiles or path
        Pairs, which need no labels.
    out : path
        Table to write, .parquet or .csv; on Spark also a folder.
    feature : str, optional
        Network or score column to use, where there are several.
    fold : str, optional
        Score the pairs of this fold only.
    keep : sequence of str
        Columns to carry over: genuine, fold, identity, and attributes.
    add : sequence of str
        More columns: log_likelihood_ratio, similarity, clusters, outside, decision.
    prior : float or "estimate", optional
        Share of genuine pairs to give probabilities for; "estimate" finds it out.
    engine : SparkEngine, optional
        Score on Spark's workers.
    resume : bool
        Go on where an interrupted run stopped.
    progress : callable

    Examples
    --------
    >>> import faircal
    >>> faircal.score_file("m.faircal", "faces/", "scored.parquet", fold="5")  # doctest: +SKIP
    """
    model, out, files = Path(model), Path(out), PairFiles.of(data)
    if engine is None or out.suffix:
        check_table_name(out)
    if engine is not None:
        engine.check(files, resume=resume)
    (check_file if out.suffix else check_folder)(out)
    files.check_kept(out, model)
    fitted = load_method(model)
    Adding.of(fitted, tuple(add))  # what can't be added is said at once
    request = ScoreRequest(fitted, files, feature, fold, tuple(keep), tuple(add), prior, progress)
    if engine is not None:
        return _score_on_spark(request, out, engine)
    return _score(request, model, out, resume)


def _score(request: ScoreRequest, model: Path, out: Path, resume: bool) -> ScoredFile:
    """Score part by part, on this machine."""
    files, keep, progress = request.files, request.keep, request.progress
    stream = files.open_one(request.feature, batch=BATCH, progress=progress)
    _check_keep(stream.attributes, keep)
    pairs, notes = _pairs(stream, request)
    columns = needed_columns(request.model, keep, stream.attributes)
    prior = _prior(
        request,
        lambda share: estimate_share(
            request.model, pairs, calibrated_at=share, columns=columns, progress=progress
        ),
    )
    about = {
        "model": file_digest(model),
        "data": stream.fingerprint(),
        "feature": request.feature,
        "fold": request.fold,
        "keep": keep,
        "add": request.add,
        "score_range": files.score_range,
        "normalize": files.normalize,
        "device": files.device,
        "prior": prior.shift,
        "version": __version__,
    }
    count = score_stream(
        request.model,
        pairs,
        out,
        keep=keep,
        columns=columns,
        shift=prior.shift,
        adding=Adding.of(request.model, request.add),
        about=about,
        resume=resume,
        progress=progress,
    )
    return ScoredFile(out, count, (*notes, *prior.notes), prior.record)


def _score_on_spark(request: ScoreRequest, out: Path, engine: SparkEngine) -> ScoredFile:
    """Score on Spark's workers."""
    from faircal.production.spark import estimate, score, write
    from faircal.production.spark.session import task_progress

    model, progress = request.model, request.progress
    with engine.session(progress) as spark:
        pairs = engine.open_one(spark, request.files, request.feature, progress)
        _check_keep(pairs.attributes, request.keep)
        if "fold" in request.keep and not pairs.has_folds:
            raise ParameterError("--keep fold: the pairs have no column 'fold'; leave it out")
        with task_progress(spark, progress):
            if request.fold is not None:
                pairs = pairs.only(request.fold)
            prior = _prior(request, lambda _: estimate(model, pairs))
            scored = score(
                model,
                pairs,
                keep=request.keep,
                add=request.add,
                shift=prior.shift,
            )
            return ScoredFile(out, write(scored, out), prior.notes, prior.record)


def _prior(
    request: ScoreRequest, estimate: Callable[[float], tuple[PriorEstimate, list[str]]]
) -> PriorShift:
    """Return the shift of probabilities that is asked for; `estimate` finds the share out."""
    prior = request.prior
    if prior is None:
        return PriorShift()
    share = fitted_share(request.model)
    if not isinstance(prior, str):
        return PriorShift(Shift(share, prior), (), {"prior": prior, "calibrated_at": share})
    estimated, notes = estimate(share)
    within = f"{estimated.low:.3g} to {estimated.high:.3g}, {100 * estimated.level:g} % interval"
    if not 0 < estimated.value < 1:
        kind = {0.0: "genuine pairs", 1.0: "imposters"}.get(estimated.value, "any share")
        raise DataError(
            f"--prior estimate: nothing in the data speaks for {kind} (share of genuine pairs "
            f"{estimated.value:g}; {within}); give the share as a number"
        )
    words = (
        f"share of genuine pairs estimated at {estimated.value:.3g} ({within}); "
        f"fitted at {share:.3g}"
    )
    return PriorShift(
        Shift(share, estimated.value),
        (words, *notes),
        {"prior": estimated.value, "calibrated_at": share, "estimate": asdict(estimated)},
    )


def _pairs(stream: PairStream, request: ScoreRequest) -> tuple[PairStream | Cut, tuple[str, ...]]:
    """Return the pairs to score, and what was done to them.

    Where folds have to be drawn, that is done over all pairs, which are then in memory.
    """
    files, fold = request.files, request.fold
    if fold is not None and stream.has_folds:
        with step(request.progress, f"reading {files.path}"):
            return stream.only(fold), ()
    if fold is None and (stream.has_folds or "fold" not in request.keep):
        return stream, ()
    data = files.load_one(request.feature, progress=request.progress)
    if fold is None:
        return Cut(data, BATCH), ()
    return Cut(data.split(fold_named(data, fold))[1], BATCH), data.notes


def _check_keep(attributes: Collection[str], keep: tuple[str, ...]) -> None:
    known = ["genuine", "fold", "identity", *attributes]
    for name in keep:
        if name not in known:
            raise ParameterError(f"--keep {name}: no such column; {did_you_mean(name, known)}")
