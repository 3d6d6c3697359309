"""How ``faircal audit`` measures: all pairs in memory, part by part, or on Spark's workers."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from faircal.cli.engine import Engine
from faircal.cli.options import progress_bars, working
from faircal.cli.source import BATCH, Source, fold_named, kept_in

if TYPE_CHECKING:
    from faircal.data import Dataset, PairStream
    from faircal.evaluation.audit import Audit, Auditor
    from faircal.evaluation.audit.label_noise import LabelNoise
    from faircal.evaluation.audit.matrix import MatrixRow
    from faircal.methods import Method
    from faircal.production.spark import SparkPairs


@dataclass(frozen=True)
class Wanted:
    """What is to be measured, and how."""

    source: Source
    model: Method | None
    attribute: str | None
    features: tuple[str, ...]
    fold: str | None
    threshold: float | None
    rates: tuple[float, ...]
    about: dict[str, Any]  # what else the result depends on
    label_noise: float | None = None


@dataclass(frozen=True)
class Measured:
    """What came out, and what ``run.json`` says of the data."""

    audits: list[Audit]
    about: Dataset | PairStream | SparkPairs
    shares: dict[str, dict[str, int]]
    notes: list[str]
    data: dict[str, Any]
    label_noise: list[LabelNoise] = field(default_factory=list)
    matrix: list[MatrixRow] = field(default_factory=list)


def measure_whole(wanted: Wanted) -> Measured:
    """Measure pairs that are all in memory."""
    from faircal.evaluation.audit import ScoredPairs, audit_pairs
    from faircal.evaluation.audit.label_noise import label_noise
    from faircal.evaluation.audit.matrix import imposter_matrix

    model = wanted.model
    loaded = wanted.source.load(wanted.features, measuring=model is None)
    notes: list[str] = []
    if wanted.fold is not None:
        notes += loaded.notes
        loaded = loaded.split(fold_named(loaded, wanted.fold))[1]
    attribute = wanted.attribute or loaded.default_attribute
    groups = {} if attribute is None else {attribute: loaded.groups(attribute)}
    notes += _why_no_groups(loaded, attribute)
    notes += [text for name, found in groups.items() for text in found.unknown_note(name)]
    audits, noisy = [], []
    matrix: list[MatrixRow] = []
    with working("measuring"):
        for feature in loaded.features:
            data = loaded.select(feature)
            output = None if model is None else model.apply(data)
            pairs = ScoredPairs.of_data(data, output, attribute)
            found = audit_pairs(
                pairs,
                threshold=wanted.threshold,
                rates=wanted.rates,
                score_range=data.score_range,
                dataset=data.name,
                feature=feature,
                attribute=attribute or "",
                method="" if model is None else model.name,
            )
            found.intervals()  # worked out once, here, where it shows that it takes its time
            audits.append(found)
            matrix += imposter_matrix(pairs, found)
            if wanted.label_noise is not None:
                noisy.append(
                    label_noise(
                        pairs,
                        wanted.label_noise,
                        threshold=wanted.threshold,
                        rates=wanted.rates,
                        upper=data.score_range[1],
                        feature=feature,
                        attribute=attribute or "",
                    )
                )
        notes += dict.fromkeys(text for each in noisy for text in each.notes)
        hashed = {"data_sha256": loaded.hash(), "data_sha256_of": "values"}
    shares = {name: found.shares() for name, found in groups.items()}
    return Measured(audits, loaded, shares, notes, {"pairs": len(loaded), **hashed}, noisy, matrix)


def measure_streamed(wanted: Wanted, partial: Path, resume: bool) -> Measured:
    """Count pairs part by part."""
    from faircal._base.jobs import Job
    from faircal.evaluation.audit import audit_stream, files_digest

    stream = wanted.source.open(
        wanted.features, measuring=wanted.model is None, batch=BATCH, fold=wanted.fold
    )
    with working(f"reading {wanted.source.path}"):
        attribute = wanted.attribute or stream.default_attribute
        notes = _why_no_groups(stream, attribute)
    with kept_in(partial, "the audit"), progress_bars() as update:
        auditors = audit_stream(
            stream,
            model=wanted.model,
            attribute=attribute,
            threshold=wanted.threshold,
            rates=wanted.rates,
            about=wanted.about,
            job=Job(update, partial, resume, notes),
        )
    with working("measuring"):
        hashed = {"data_sha256": files_digest(stream.origin.files), "data_sha256_of": "files"}
    return _counted(auditors, stream, attribute, notes, hashed)


def measure_on_spark(wanted: Wanted, engine: Engine) -> Measured:
    """Count pairs on Spark's workers."""
    from faircal.production.spark.auditing import count
    from faircal.production.spark.session import engine_record, task_progress

    with engine.session() as spark:
        pairs = engine.open(spark, wanted.source, wanted.features, measuring=wanted.model is None)
        about = {
            **engine_record(spark),
            # Not of all that is in the files: they may be terabytes, and far away.
            "data_sha256": pairs.fingerprint(),
            "data_sha256_of": "names, sizes and times of files",
        }
        with progress_bars() as update, task_progress(spark, update):
            if wanted.fold is not None:
                pairs = pairs.only(wanted.fold)
            attribute = wanted.attribute or pairs.default_attribute
            auditors = count(
                pairs,
                model=wanted.model,
                attribute=attribute,
                threshold=wanted.threshold,
                rates=wanted.rates,
            )
    return _counted(auditors, pairs, attribute, _why_no_groups(pairs, attribute), about)


def _counted(
    auditors: list[Auditor],
    about: PairStream | SparkPairs,
    attribute: str | None,
    notes: list[str],
    data: dict[str, Any],
) -> Measured:
    """Measure what was counted."""
    from faircal.evaluation.audit import bounds_note

    with working("measuring"):
        audits = [auditor.finish() for auditor in auditors]
    shares = {} if attribute is None else {attribute: auditors[0].shares}
    data = {
        "pairs": auditors[0].shares["pairs"],
        **data,
        "streamed": True,
        "error_bounds": {found.feature: found.worst_bounds() for found in audits},
    }
    notes = [*notes, *auditors[0].unknown_note(), *bounds_note(audits)]
    return Measured(audits, about, shares, notes, data)


def _why_no_groups(data: Dataset | PairStream | SparkPairs, attribute: str | None) -> list[str]:
    return [] if attribute is not None else [f"only global figures: {data.why_no_groups()}"]
