"""An audit of a table or a dataset, into a folder: in memory, part by part, or on Spark."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from faircal._base.checkpoints import check_checkpoint, resumable
from faircal._base.errors import ParameterError
from faircal._base.files import check_folder, file_digest, output_folder
from faircal._base.jobs import Job, Progress, silent, step
from faircal.data import Dataset, PairFiles, PairStream
from faircal.data.pair_files import fold_named
from faircal.evaluation.audit import (
    Audit,
    Auditor,
    ScoredPairs,
    audit_pairs,
    audit_stream,
    files_digest,
)
from faircal.evaluation.audit.label_noise import LabelNoise, label_noise, write_noise
from faircal.evaluation.audit.rates import MatrixRow, imposter_matrix, write_matrix
from faircal.evaluation.curves import CURVES, as_table, write_curves
from faircal.methods import Method, load_method
from faircal.metrics.measures import RATES
from faircal.metrics.results import (
    REPLICATES,
    versions,
    without_nan,
    write_clusters,
    write_replicates,
    write_results,
    write_run,
)
from faircal.report.writing import WrittenReport, make_report

if TYPE_CHECKING:
    from faircal.production.spark import SparkPairs
    from faircal.production.spark.session import SparkEngine

#: In the output folder: what was counted so far of an audit that takes long.
PARTIAL = "audit.partial"


@dataclass(frozen=True)
class AuditRequest:
    """What is to be measured, and how."""

    files: PairFiles
    model: Method | None
    attribute: str | None
    features: tuple[str, ...]
    fold: str | None
    threshold: float | None
    rates: tuple[float, ...]
    about: dict[str, Any]  # what else the result depends on
    label_noise: float | None = None
    progress: Progress = silent


@dataclass(frozen=True)
class AuditResult:
    """What was measured, and what ``run.json`` says of the data.

    Attributes
    ----------
    audits : list of Audit
        One a feature.
    source : Dataset, PairStream or SparkPairs
        What was measured.
    shares : dict
        Pairs within and across groups, by attribute.
    notes : list of str
    data : dict
        Number and hash of the pairs, and how exact streamed figures are.
    label_noise : list of LabelNoise
    matrix : list of MatrixRow
        FPR of every two groups.
    """

    audits: list[Audit]
    source: Dataset | PairStream | SparkPairs
    shares: dict[str, dict[str, int]]
    notes: list[str]
    data: dict[str, Any]
    label_noise: list[LabelNoise] = field(default_factory=list)
    matrix: list[MatrixRow] = field(default_factory=list)


def audit_folder(
    data: PairFiles | str | Path,
    out: str | Path,
    *,
    attribute: str | None = None,
    model: str | Path | None = None,
    threshold: float | None = None,
    rates: Sequence[float] = RATES,
    features: Sequence[str] = (),
    fold: str | None = None,
    label_noise: float | None = None,
    stream: bool = False,
    resume: bool = False,
    all_files: bool = False,
    engine: SparkEngine | None = None,
    progress: Progress = silent,
) -> tuple[AuditResult, WrittenReport]:
    """Measure scores by group and write a folder with numbers, tables, figures and the page.

    Parameters
    ----------
    data : PairFiles or path
        A score table or a dataset folder.
    out : path
        Folder to write to.
    attribute : str, optional
        The attribute that makes the groups; that of the data unless given.
    model : path, optional
        Model file that scores the pairs first.
    threshold, rates
        As for `faircal.audit`.
    features : sequence of str
        Networks or score columns to measure; all unless given.
    fold : str, optional
        Measure the pairs of this fold only.
    label_noise : float, optional
        Show how far figures move when this share of the labels of groups is wrong.
    stream : bool
        Count pairs part by part, as is done by itself where there are very many.
    resume : bool
        Go on where an interrupted audit stopped.
    all_files : bool
        Write the tables and figures of the report as files, too.
    engine : SparkEngine, optional
        Count on Spark's workers.
    progress : callable

    Examples
    --------
    >>> import faircal
    >>> result, report = faircal.audit_folder(
    ...     "scores.csv", "audit/", attribute="ethnicity"
    ... )  # doctest: +SKIP
    >>> result.audits[0].value("fpr", group="Asian F")  # doctest: +SKIP
    """
    started, out, files = time.perf_counter(), Path(out), PairFiles.of(data)
    if engine is not None:
        engine.check(files, resume=resume, label_noise=label_noise)
    check_folder(out)
    check_checkpoint(out / PARTIAL, resume, "an audit")
    fitted = None if model is None else load_method(Path(model))
    about = {
        "features": list(features),
        "fold": fold,
        "score_range": files.score_range,
        "normalize": files.normalize,
        "device": files.device,
        "model": model,
        "model_sha256": None if model is None else file_digest(Path(model)),
    }
    request = AuditRequest(
        files,
        fitted,
        attribute,
        tuple(features),
        fold,
        threshold,
        tuple(rates),
        about,
        label_noise,
        progress,
    )
    if engine is not None:
        result = _measured_on_spark(request, engine)
    elif stream or resume or files.is_long():
        result = _measured_by_part(request, out / PARTIAL, resume)
    else:
        result = _measured(request)
    _write(out, result, request, round(time.perf_counter() - started, 3))
    (out / PARTIAL).unlink(missing_ok=True)
    return result, make_report(out, all_files=all_files, progress=progress)


def _measured(request: AuditRequest) -> AuditResult:
    """Measure pairs that are all in memory."""
    model = request.model
    data = request.files.load(request.features, measuring=model is None, progress=request.progress)
    notes: list[str] = []
    if request.fold is not None:
        notes += data.notes
        data = data.split(fold_named(data, request.fold))[1]
    attribute = request.attribute or data.default_attribute
    groups = {} if attribute is None else {attribute: data.groups(attribute)}
    notes += _why_no_groups(data, attribute)
    notes += [text for name, each in groups.items() for text in each.unknown_note(name)]
    audits: list[Audit] = []
    noisy: list[LabelNoise] = []
    matrix: list[MatrixRow] = []
    with step(request.progress, "measuring"):
        for feature in data.features:
            part = data.select(feature)
            output = None if model is None else model.apply(part)
            pairs = ScoredPairs.of_data(part, output, attribute)
            audit, noise = _measured_feature(request, part, pairs, attribute)
            audits.append(audit)
            noisy += noise
            matrix += imposter_matrix(pairs, audit)
        notes += dict.fromkeys(text for each in noisy for text in each.notes)
        hashed = {"data_sha256": data.hash(), "data_sha256_of": "values"}
    shares = {name: each.shares() for name, each in groups.items()}
    return AuditResult(audits, data, shares, notes, {"pairs": len(data), **hashed}, noisy, matrix)


def _measured_feature(
    request: AuditRequest, data: Dataset, pairs: ScoredPairs, attribute: str | None
) -> tuple[Audit, list[LabelNoise]]:
    """Measure the pairs of one feature, and how far wrong labels would move that."""
    how: dict[str, Any] = {
        "threshold": request.threshold,
        "rates": request.rates,
        "feature": data.feature,
        "attribute": attribute or "",
    }
    audit = audit_pairs(
        pairs,
        score_range=data.score_range,
        dataset=data.name,
        method="" if request.model is None else request.model.name,
        **how,
    )
    _ = audit.rows  # worked out once, here, where it shows that it takes its time
    if request.label_noise is None:
        return audit, []
    return audit, [label_noise(pairs, request.label_noise, upper=data.score_range[1], **how)]


def _measured_by_part(request: AuditRequest, partial: Path, resume: bool) -> AuditResult:
    """Count pairs part by part."""
    if request.label_noise is not None:
        raise ParameterError(
            "--label-noise: needs all pairs in memory, and these are counted part by part; "
            "leave --stream and --resume out, or audit a part of the pairs (--fold)"
        )
    progress = request.progress
    stream = request.files.open(
        request.features,
        measuring=request.model is None,
        progress=progress,
        fold=request.fold,
    )
    with step(progress, f"reading {request.files.path}"):
        attribute = request.attribute or stream.default_attribute
        notes = _why_no_groups(stream, attribute)
    with resumable(partial, "the audit"):
        auditors = audit_stream(
            stream,
            model=request.model,
            attribute=attribute,
            threshold=request.threshold,
            rates=request.rates,
            about=request.about,
            job=Job(progress, partial, resume, notes),
        )
    with step(progress, "measuring"):
        hashed = {"data_sha256": files_digest(stream.files), "data_sha256_of": "files"}
    return _of_counts(auditors, stream, attribute, notes, hashed, progress)


def _measured_on_spark(request: AuditRequest, engine: SparkEngine) -> AuditResult:
    """Count pairs on Spark's workers."""
    from faircal.production.spark.auditing import count
    from faircal.production.spark.session import engine_record, task_progress

    progress = request.progress
    with engine.session(progress) as spark:
        pairs = engine.open(
            spark,
            request.files,
            request.features,
            measuring=request.model is None,
            progress=progress,
        )
        about = {
            **engine_record(spark),
            # Not of all that is in the files: they may be terabytes, and far away.
            "data_sha256": pairs.fingerprint(),
            "data_sha256_of": "names, sizes and times of files",
        }
        with task_progress(spark, progress):
            if request.fold is not None:
                pairs = pairs.only(request.fold)
            attribute = request.attribute or pairs.default_attribute
            auditors = count(
                pairs,
                model=request.model,
                attribute=attribute,
                threshold=request.threshold,
                rates=request.rates,
            )
    notes = _why_no_groups(pairs, attribute)
    return _of_counts(auditors, pairs, attribute, notes, about, progress)


def _of_counts(
    auditors: list[Auditor],
    source: PairStream | SparkPairs,
    attribute: str | None,
    notes: list[str],
    data: dict[str, Any],
    progress: Progress,
) -> AuditResult:
    """Measure what was counted."""
    with step(progress, "measuring"):
        audits = [auditor.finish() for auditor in auditors]
    shares = {} if attribute is None else {attribute: auditors[0].shares}
    data = {
        "pairs": auditors[0].shares["pairs"],
        **data,
        "streamed": True,
    }
    notes = [*notes, *auditors[0].unknown_note()]
    return AuditResult(audits, source, shares, notes, data)


def _why_no_groups(data: Dataset | PairStream | SparkPairs, attribute: str | None) -> list[str]:
    return [] if attribute is not None else [f"only global figures: {data.why_no_groups()}"]


def _write(out: Path, result: AuditResult, request: AuditRequest, wall_time: float) -> None:
    """Write the numbers of an audit, and the settings it was made with."""
    audits, source = result.audits, result.source
    folder = output_folder(out)
    write_clusters(folder, [])  # of a benchmark that was here before
    write_results(folder, [row for audit in audits for row in audit.rows])
    write_curves(folder / CURVES, as_table(curve for audit in audits for curve in audit.curves))
    write_replicates(folder / REPLICATES, [row for audit in audits for row in audit.replicates()])
    write_matrix(folder, result.matrix)
    write_noise(folder, [row for each in result.label_noise for row in each.rows])
    settings = {
        "attribute": audits[0].attribute or None,
        **request.about,
        "features": [audit.feature for audit in audits],
        "threshold": request.threshold,
        "rates": list(request.rates),
        "label_noise": request.label_noise,
    }
    record = {
        "kind": "audit",
        "dataset": source.name,
        "simulated": bool(source.provenance.get("simulated", False)),
        "groups": result.shares,
        "people": audits[0].people,
        "effective_people": audits[0].effective_people(),
        "effective_people_genuine": audits[0].effective_people("fnr"),
        "attributes": list(result.shares),
        "interval_kind": audits[0].interval_kind,
        "settings": settings,
        "notes": result.notes,
        **without_nan(result.data),
        "wall_time_s": wall_time,
        "versions": versions(),
    }
    write_run(folder, record)
