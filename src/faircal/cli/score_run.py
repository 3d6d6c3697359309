"""How ``faircal score`` scores: part by part on this machine, or on Spark's workers."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from faircal._base.errors import DataError, ParameterError
from faircal._base.files import file_digest
from faircal._base.registry import did_you_mean
from faircal._version import __version__
from faircal.calibrators.prior import PriorEstimate
from faircal.cli.engine import Engine
from faircal.cli.options import progress_bars, working
from faircal.cli.source import BATCH, Source, fold_named
from faircal.data import PairStream
from faircal.data.stream import Cut
from faircal.methods import Method
from faircal.production.scoring import (
    Adding,
    Shift,
    estimate_share,
    fitted_share,
    needed_columns,
    score_stream,
)


class Prior(NamedTuple):
    """What ``--prior`` comes to: how to shift probabilities, and what to say of it."""

    shift: Shift | None
    notes: tuple[str, ...]
    record: dict[str, Any]


class Wanted(NamedTuple):
    """What is to be scored, and how."""

    model: Method
    source: Source
    feature: str | None
    fold: str | None
    keep: tuple[str, ...]
    add: tuple[str, ...]
    prior: float | str | None
    calibrated_at: float | None


#: How many pairs were scored, what to say of it, and what goes into the record.
Scored = tuple[int, tuple[str, ...], dict[str, Any]]


def score_here(wanted: Wanted, model: Path, out: Path, resume: bool) -> Scored:
    """Score part by part, on this machine."""
    source, keep = wanted.source, wanted.keep
    stream = source.open_one(wanted.feature, batch=BATCH)
    _check_keep(stream.attributes, keep)
    pairs, notes = _pairs(stream, source, wanted.feature, wanted.fold, keep)
    columns = needed_columns(wanted.model, keep, stream.attributes)
    with progress_bars() as update:
        prior = _prior(
            wanted,
            lambda share: estimate_share(
                wanted.model, pairs, calibrated_at=share, columns=columns, progress=update
            ),
        )
    about = {
        "model": file_digest(model),
        "data": stream.fingerprint(),
        "feature": wanted.feature,
        "fold": wanted.fold,
        "keep": keep,
        "add": wanted.add,
        "calibrated_at": wanted.calibrated_at,
        "score_range": source.score_range,
        "raw": source.raw,
        "device": source.device,
        "prior": prior.shift,
        "version": __version__,
    }
    with progress_bars() as update:
        count = score_stream(
            wanted.model,
            pairs,
            out,
            keep=keep,
            columns=columns,
            shift=prior.shift,
            adding=Adding.of(wanted.model, wanted.add, wanted.calibrated_at),
            about=about,
            resume=resume,
            progress=update,
        )
    return count, (*notes, *prior.notes), prior.record


def score_on_spark(wanted: Wanted, out: Path, engine: Engine) -> Scored:
    """Score on Spark's workers."""
    from faircal.production.spark import estimate, score, write
    from faircal.production.spark.session import task_progress

    with engine.session() as spark:
        pairs = engine.open_one(spark, wanted.source, wanted.feature)
        _check_keep(pairs.attributes, wanted.keep)
        if "fold" in wanted.keep and not pairs.has_folds:
            raise ParameterError("--keep fold: the pairs have no column 'fold'; leave it out")
        with progress_bars() as update, task_progress(spark, update):
            if wanted.fold is not None:
                pairs = pairs.only(wanted.fold)
            prior = _prior(wanted, lambda _: estimate(wanted.model, pairs, wanted.calibrated_at))
            scored = score(
                wanted.model,
                pairs,
                keep=wanted.keep,
                add=wanted.add,
                shift=prior.shift,
                calibrated_at=wanted.calibrated_at,
            )
            return write(scored, out), prior.notes, prior.record


def _prior(wanted: Wanted, estimate: Callable[[float], tuple[PriorEstimate, list[str]]]) -> Prior:
    """Return the shift of probabilities that is asked for; the share is estimated where told."""
    prior = wanted.prior
    if prior is None:
        return Prior(None, (), {})
    share = fitted_share(wanted.model, wanted.calibrated_at)
    if isinstance(prior, float):
        return Prior(Shift(share, prior), (), {"prior": prior, "calibrated_at": share})
    found, notes = estimate(share)
    within = f"{found.low:.3g} to {found.high:.3g}, {100 * found.level:g} % interval"
    if not 0 < found.value < 1:
        kinds = {0.0: "genuine pairs", 1.0: "imposters"}
        kind = kinds.get(found.value, "any share")
        raise DataError(
            f"--prior estimate: nothing in the data speaks for {kind} (share of genuine pairs "
            f"{found.value:g}; {within}); give the share as a number"
        )
    said = (
        f"share of genuine pairs estimated at {found.value:.3g} ({within}); fitted at {share:.3g}"
    )
    return Prior(
        Shift(share, found.value),
        (said, *notes),
        {"prior": found.value, "calibrated_at": share, "estimate": asdict(found)},
    )


def _pairs(
    stream: PairStream,
    source: Source,
    feature: str | None,
    fold: str | None,
    keep: tuple[str, ...],
) -> tuple[PairStream | Cut, tuple[str, ...]]:
    """Return the pairs to score, and what was done to them.

    Where folds have to be drawn, that is done over all pairs, which are then in memory.
    """
    if fold is not None and stream.has_folds:
        with working(f"reading {source.path}"):
            return stream.only(fold), ()
    if fold is None and (stream.has_folds or "fold" not in keep):
        return stream, ()
    loaded = source.load_one(feature)
    if fold is None:
        return Cut(loaded, BATCH), ()
    return Cut(loaded.split(fold_named(loaded, fold))[1], BATCH), loaded.notes


def _check_keep(attributes: Collection[str], keep: tuple[str, ...]) -> None:
    known = ["genuine", "fold", "identity", *attributes]
    for name in keep:
        if name not in known:
            raise ParameterError(f"--keep {name}: no such column; {did_you_mean(name, known)}")
