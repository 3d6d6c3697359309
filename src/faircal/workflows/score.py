"""Scoring pairs with a model, into a table: part by part on this machine, or on Spark."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from faircal._base.errors import DataError, ParameterError
from faircal._base.files import check_output, check_table_name, file_digest
from faircal._base.jobs import Progress, silent, step
from faircal._base.registry import did_you_mean
from faircal._version import __version__
from faircal.data import Dataset, PairFiles, PairStream
from faircal.data.pair_files import fold_named
from faircal.methods import Method, load_method
from faircal.methods.prior import Shift, estimate_share, fitted_share
from faircal.production.scoring import Adding, needed_columns, score_stream

if TYPE_CHECKING:
    from faircal.production.spark.session import SparkEngine

#: Pairs on Spark that a share of genuine ones is estimated from, at most.
_ESTIMATED_FROM = 1_000_000


@dataclass(frozen=True)
class PriorShift:
    """How probabilities are moved to another share of genuine pairs, and what to say of it."""

    shift: Shift | None = None
    notes: tuple[str, ...] = ()
    record: dict[str, Any] = field(default_factory=dict)


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
        Columns to carry over: genuine, fold, and attributes; identity is kept where it is known.
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
    check_output(out, folder=not out.suffix)
    files.check_kept(out, model)
    fitted = load_method(model)
    adding = Adding.of(fitted, add) if add else None  # what can't be added is said at once
    with _opened(files, feature, fold, keep, engine, progress) as (pairs, fingerprint, notes):
        columns = needed_columns(fitted, keep, pairs.attributes)
        moved = PriorShift()
        if prior is not None:
            moved = _prior(prior, fitted, pairs, columns, progress)
        if prior is not None or "log_likelihood_ratio" in add:
            notes = (*notes, fitted.about_.evidence_note)
        if engine is not None:
            from faircal.production.spark import score, write

            count = write(score(fitted, pairs, keep=keep, add=add, shift=moved.shift), out)
            return ScoredFile(out, count, (*notes, *moved.notes), moved.record)
        about = {
            "model": file_digest(model),
            "data": fingerprint,
            "feature": feature,
            "fold": fold,
            "keep": tuple(keep),
            "add": tuple(add),
            "score_range": files.score_range,
            "normalize": files.normalize,
            "device": files.device,
            "prior": moved.shift,
            "version": __version__,
        }
        remarks: list[str] = []
        count = score_stream(
            fitted,
            pairs,
            out,
            keep=keep,
            columns=columns,
            shift=moved.shift,
            adding=adding,
            about=about,
            resume=resume,
            progress=progress,
            notes=remarks,
        )
        return ScoredFile(out, count, (*notes, *moved.notes, *remarks), moved.record)


@contextmanager
def _opened(
    files: PairFiles,
    feature: str | None,
    fold: str | None,
    keep: Sequence[str],
    engine: SparkEngine | None,
    progress: Progress,
) -> Iterator[tuple[Any, str, tuple[str, ...]]]:
    """Give the pairs to score, what tells whether they have changed, and what was done to them.

    Where folds have to be drawn, that is done over all pairs, which are then in memory.
    """
    opened: AbstractContextManager[Any]
    if engine is None:
        opened = nullcontext(files.open_one(feature, progress=progress))
    else:
        opened = engine.opened(files, feature, progress)
    with opened as pairs:
        columns = ["genuine", "fold", "identity", *pairs.attributes]
        for name in keep:
            if name not in columns:
                raise ParameterError(
                    f"--keep {name}: no such column; {did_you_mean(name, columns)}"
                )
        fingerprint = pairs.fingerprint()
        drawn = (fold is not None or "fold" in keep) and not pairs.has_folds
        if drawn and engine is not None:
            option = "--fold" if fold is not None else "--keep fold"
            raise ParameterError(f"{option}: the pairs have no column 'fold'; leave it out")
        if drawn:
            data = files.load_one(feature, progress=progress)
            if fold is None:
                yield data, fingerprint, ()
            else:
                yield data.only(fold_named(data, fold)), fingerprint, data.notes
            return
        if fold is not None:
            with step(progress, f"reading {files.path}"):
                pairs = pairs.only(fold)
        yield pairs, fingerprint, ()


def _prior(
    prior: float | str,
    model: Method,
    pairs: Any,
    columns: Collection[str],
    progress: Progress,
) -> PriorShift:
    """Return the shift of probabilities that is asked for; that to be estimated is, from `pairs`.

    Of pairs on Spark some are looked at here.
    """
    share = fitted_share(model)
    if not isinstance(prior, str):
        return PriorShift(Shift.of(model, prior), (), {"prior": prior, "calibrated_at": share})
    local = isinstance(pairs, Dataset | PairStream)
    estimated, notes = estimate_share(
        model,
        pairs if local else pairs.sample(_ESTIMATED_FROM),
        calibrated_at=share,
        columns=columns,
        progress=progress,
    )
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
        Shift.of(model, estimated.value),
        (words, *notes),
        {"prior": estimated.value, "calibrated_at": share, "estimate": asdict(estimated)},
    )
