"""An audit of a table or a dataset, into a folder: in memory, part by part, or on Spark."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from faircal._base.checkpoints import check_checkpoint, resumable
from faircal._base.errors import ParameterError
from faircal._base.files import check_output, file_digest, output_folder
from faircal._base.jobs import Job, Progress, silent, step
from faircal.data import Cohort, Dataset, PairFiles, PairStream
from faircal.data.pair_files import fold_named
from faircal.evaluation.audit import Audit, audit_parts, files_digest
from faircal.evaluation.audit.label_noise import LABEL_NOISE, LabelNoise, LabelNoiseRow, label_noise
from faircal.evaluation.audit.rates import MATRIX, MatrixRow, imposter_matrix
from faircal.evaluation.curves import CURVES, ScoreSource, as_table
from faircal.evaluation.thresholds.finding import OWN_PEOPLE, fitted_on
from faircal.evaluation.two_sources import CohortImposters
from faircal.methods import Method, load_method
from faircal.metrics.intervals import replicated_values
from faircal.metrics.measures import RATES
from faircal.metrics.results import (
    CLUSTERS,
    MEMBERS,
    REPLICATES,
    Replicated,
    write_parquet,
    write_replicates,
    write_results,
    write_rows,
    write_run,
)
from faircal.model import versions
from faircal.report.writing import WrittenReport, make_report

if TYPE_CHECKING:
    from faircal.production.spark import SparkPairs
    from faircal.production.spark.session import SparkEngine

    OpenedPairs: TypeAlias = Dataset | PairStream | SparkPairs

#: In the output folder: what was collected so far of an audit that takes long.
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
    cohort: Cohort | str | Path | None = None  # whose imposters are in place of the files' own


@dataclass(frozen=True)
class AuditResult:
    """What was measured, and what ``run.json`` says of the data.

    Attributes
    ----------
    audits : list of Audit
        One a feature.
    notes : list of str
    record : dict
        What ``run.json`` says of the data.
    label_noise : list of LabelNoise
    matrix : list of MatrixRow
        FPR of every two groups.
    """

    audits: list[Audit]
    notes: list[str]
    record: dict[str, Any]
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
    imposters_from: Cohort | str | Path | None = None,
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
    imposters_from : Cohort or path, optional
        Take the imposter pairs of this cohort in place of those of the data, and its groups, of
        `attribute`. See `faircal.evaluation.two_sources`.
    label_noise : float, optional
        Show how far figures move when this share of the labels of groups is wrong.
    stream : bool
        Go through the pairs part by part, as is done by itself where there are very many.
    resume : bool
        Go on where an interrupted audit stopped.
    all_files : bool
        Write the tables and figures of the report as files, too.
    engine : SparkEngine, optional
        Have Spark's workers go through the pairs.
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
        engine.check(files, resume=resume)
    check_output(out, folder=True)
    check_checkpoint(out / PARTIAL, resume, "an audit")
    fitted = None if model is None else load_method(Path(model))
    about: dict[str, Any] = {
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
    partial = out / PARTIAL
    streamed = stream or resume or files.is_long()
    if imposters_from is not None:
        if streamed or engine is not None:
            raise ParameterError(
                "--imposters-from: takes all pairs in memory; leave --stream, --resume and --engine"
                " out, or make a smaller table of pairs"
            )
        request = replace(request, cohort=imposters_from)
        about["imposters_from"] = getattr(imposters_from, "where", str(imposters_from))
    with _opened(request, streamed, engine) as (pairs, notes, hashed):
        going_on = isinstance(pairs, PairStream)
        job = Job(progress, partial if going_on else None, resume, notes)
        with resumable(partial, "the audit") if going_on else nullcontext():
            result = _measured(request, pairs, job, hashed)
    _write(out, result, request, round(time.perf_counter() - started, 3))
    (out / PARTIAL).unlink(missing_ok=True)
    return result, make_report(out, all_files=all_files, progress=progress)


@contextmanager
def _opened(
    request: AuditRequest, streamed: bool, engine: SparkEngine | None
) -> Iterator[tuple[OpenedPairs, list[str], dict[str, Any]]]:
    """Give the pairs, what is to be said of them, and the hash of the data."""
    files, fold = request.files, request.fold
    how: dict[str, Any] = {"measuring": request.model is None, "progress": request.progress}
    if engine is not None:
        from faircal.production.spark.session import engine_record, task_progress

        with engine.session(request.progress) as spark:
            pairs = engine.open(spark, files, request.features, **how)
            # Not of all that is in the files: they may be terabytes, and far away.
            hashed = {"data_sha256": pairs.fingerprint()}
            hashed |= {"data_sha256_of": "names, sizes and times of files", **engine_record(spark)}
            with task_progress(spark, request.progress):
                yield pairs if fold is None else pairs.only(fold), [], {"streamed": True, **hashed}
    elif streamed:
        stream = files.open(request.features, fold=fold, **how)
        with step(request.progress, f"hashing {files.path}"):
            hashed = {"data_sha256": files_digest(stream.files), "data_sha256_of": "files"}
        yield stream, [], {"streamed": True, **hashed}
    else:
        data, notes = files.load(request.features, **how), []
        own = request.model is not None and fitted_on(request.model, data, fold)
        if fold is not None:
            data, notes = data.only(fold_named(data, fold)), list(data.notes)
        hashed = {"data_sha256": data.hash(), "data_sha256_of": "values"}
        if request.cohort is not None:
            attribute = request.attribute
            source = CohortImposters.of(data, request.cohort, request.model, attribute)
            data, notes = source.data, [*notes, *source.notes()]
            hashed["imposters_from"] = source.as_json()
        elif own:
            notes += [f"WARNING: {OWN_PEOPLE}"]
        yield data, notes, hashed


def _measured(
    request: AuditRequest, pairs: OpenedPairs, job: Job, hashed: dict[str, Any]
) -> AuditResult:
    """Measure the pairs of each feature, and how far wrong labels would move that."""
    attribute = request.attribute or pairs.default_attribute
    if attribute is None:
        job.notes.append(f"only global figures: {pairs.why_no_groups()}")
    made = audit_parts(
        pairs,
        list(pairs.features),
        model=request.model,
        attribute=attribute,
        threshold=request.threshold,
        rates=request.rates,
        about=request.about,
        job=job,
    )
    noisy: list[LabelNoise] = []
    matrix: list[MatrixRow] = []
    if request.label_noise is not None and not made.pairs:
        raise ParameterError(
            "--label-noise: needs the pairs themselves, and of so many only counts are kept; "
            "audit a part of them (--fold)"
        )
    with step(request.progress, "measuring"):
        for audit, scored in zip(made.audits, made.pairs, strict=False):
            _ = audit.rows  # worked out once, here, where it shows that it takes its time
            matrix += imposter_matrix(scored, audit)
            if request.label_noise is not None:
                how: dict[str, Any] = {"threshold": request.threshold, "rates": request.rates}
                how |= {"feature": audit.feature, "attribute": audit.attribute}
                noisy.append(label_noise(scored, request.label_noise, **how))
    notes = [*job.notes, *made.notes, *dict.fromkeys(n for each in noisy for n in each.notes)]
    record = {
        "dataset": pairs.name,
        "simulated": bool(pairs.provenance.get("simulated", False)),
        "pairs": made.shares["pairs"],
        "groups": {} if attribute is None else {attribute: made.shares},
        **hashed,
    }
    return AuditResult(made.audits, notes, record, noisy, matrix)


def _write(out: Path, result: AuditResult, request: AuditRequest, wall_time: float) -> None:
    """Write the numbers of an audit, and the settings it was made with."""
    audits = result.audits
    folder = output_folder(out)
    for name in (CLUSTERS, MEMBERS):  # of a benchmark that was here before
        (folder / name).unlink(missing_ok=True)
    write_results(folder, [row for audit in audits for row in audit.rows])
    write_parquet(
        folder / CURVES, as_table(curve for audit in audits for curve in audit.curves.rows)
    )
    replicates: list[Replicated] = []
    for audit in audits:
        if audit.uncertainty is not None:  # else pairs were only counted
            source = ScoreSource(audit.feature, audit.method, attribute=audit.attribute)
            replicates += replicated_values(audit.uncertainty, audit.measures, source)
    write_replicates(folder / REPLICATES, replicates)
    write_rows(folder / MATRIX, MatrixRow, result.matrix)
    noisy = [row for each in result.label_noise for row in each.rows]
    write_rows(folder / LABEL_NOISE, LabelNoiseRow, noisy)
    settings = {
        "attribute": audits[0].attribute or None,
        **request.about,
        "features": [audit.feature for audit in audits],
        "threshold": request.threshold,
        "rates": list(request.rates),
        "label_noise": request.label_noise,
    }
    share = request.model and request.model.calibrated_at
    of_feature = ((audit.feature, audit.evidence(share)) for audit in audits)
    evidence = {
        name: {**measured[0]._asdict(), "calibrated_at": measured[1]}
        for name, measured in of_feature
        if measured is not None
    }
    record = {
        "kind": "audit",
        **result.record,
        "people": audits[0].people,
        "effective_people": audits[0].effective_people(),
        "effective_people_genuine": audits[0].effective_people("fnr"),
        "evidence": evidence,
        "attributes": list(result.record["groups"]),
        "interval_kind": audits[0].interval_kind,
        "ties": {audit.feature: dict(audit.ties) for audit in audits},
        "settings": settings,
        "notes": result.notes,
        "wall_time_s": wall_time,
        "versions": versions(),
    }
    write_run(folder, record)
