"""Fitting a method on labelled pairs, into a model file: in memory, part by part, or on Spark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from faircal._base.checkpoints import check_checkpoint, resumable
from faircal._base.errors import ParameterError
from faircal._base.files import check_output
from faircal._base.jobs import Progress, silent, step
from faircal.data import Cohort, PairFiles, PairParts, PairStream
from faircal.data.cohort_overlap import join_cohort
from faircal.data.dataset_folder import as_cohort
from faircal.data.pair_files import fold_named
from faircal.methods import METHODS, Method, make_method
from faircal.production.describe import describe
from faircal.production.monitoring import survey

if TYPE_CHECKING:
    from faircal.production.spark.session import SparkEngine


@dataclass(frozen=True)
class FittedFile:
    """A model that was fitted and written, and what there is to say of it."""

    model: Method
    out: Path
    notes: tuple[str, ...]


def fit_model(
    data: PairFiles | str | Path,
    out: str | Path,
    *,
    method: str = "faircal",
    clusters: int | None = None,
    calibrator: str | None = None,
    attribute: str | None = None,
    settings: Mapping[str, Any] | None = None,
    feature: str | None = None,
    cohort: Cohort | str | Path | None = None,
    cohort_attribute: str | None = None,
    leave_out: str | None = None,
    stream: bool = False,
    resume: bool = False,
    engine: SparkEngine | None = None,
    intended_use: str = "",
    limits: Sequence[str] = (),
    seed: int = 0,
    progress: Progress = silent,
) -> FittedFile:
    """Fit a method on labelled pairs and write a model file that says what it was made of.

    Parameters
    ----------
    data : PairFiles or path
    out : path
        Model file to write.
    method : str
        Name of the method.
    clusters, calibrator, attribute
        The method's own, where it takes them.
    settings : mapping, optional
        Any other parameter of the method.
    feature : str, optional
        Network or score column to use, where there are several.
    cohort : Cohort or path, optional
        People of known groups, for a method that compares with them.
    cohort_attribute : str, optional
        The attribute that makes the groups of a cohort in a folder.
    leave_out : str, optional
        Fold to keep for testing.
    stream : bool
        Count pairs part by part, as is done by itself where there are very many.
    resume : bool
        Go on with a training, or a streamed fit, that was interrupted.
    engine : SparkEngine, optional
        Count on Spark's workers.
    intended_use, limits
        What the model card is to say.
    seed : int
    progress : callable

    Examples
    --------
    >>> import faircal
    >>> faircal.fit_model("faces/", "m.faircal", clusters=20, leave_out="5")  # doctest: +SKIP
    """
    out, files = Path(out), PairFiles.of(data)
    if engine is not None:
        engine.check(files, resume=resume, stream=stream)
    check_output(out)
    files.check_kept(out)
    METHODS[method].needs.check_installed(method)
    taken = METHODS[method]._get_param_names()
    parameters: dict[str, Any] = {}
    options = {"clusters": clusters, "calibrator": calibrator, "attribute": attribute}
    for option, value in options.items():
        if value is not None:
            name = "n_clusters" if option == "clusters" else option
            if name not in taken:
                raise ParameterError(f"method {method} takes no --{option}; leave it out")
            parameters[name] = value
    if "random_state" in taken:
        parameters["random_state"] = seed
    if "device" in taken and files.device is not None:
        parameters["device"] = files.device
    parameters |= settings or {}
    model = make_method(method, **parameters)
    if cohort is not None and model.needs.cohort is None:
        raise ParameterError(f"method {method} takes no --cohort; leave it out")
    others = as_cohort(cohort, cohort_attribute)
    if engine is not None:
        model.check_streams(elsewhere=True)
    stream |= model.streams and engine is None and (resume or files.is_long())
    record = {
        **parameters,
        "method": method,
        "feature": feature,
        "leave_out": leave_out,
        "score_range": files.score_range,
        "raw": not files.normalize,
        "streamed": stream,
        "engine": None if engine is None else "spark",
    }
    checkpoint = out.with_name(f"{out.name}.checkpoint")
    with _opened(files, feature, others, leave_out, stream, engine, progress) as (pairs, notes):
        # A training, and a fit on a stream, keep their state until the model file is written.
        kept = model.needs.training or isinstance(pairs, PairStream)
        if kept:
            check_checkpoint(checkpoint, resume, "a fit")
        with resumable(checkpoint, "it") if kept else nullcontext():
            with step(progress, f"fitting {model.name}"):
                state = checkpoint if kept else None
                model.fit(pairs, progress=progress, checkpoint=state, resume=resume)
            with step(progress, "describing the calibration data"):
                describe(
                    model,
                    pairs,
                    intended_use=intended_use,
                    limits=limits,
                    settings={key: value for key, value in record.items() if value is not None},
                    progress=progress,
                )
            with step(progress, "surveying the calibration population"):
                survey(model, pairs)
        model.save(out)
        checkpoint.unlink(missing_ok=True)
        about_cohort = () if pairs.cohort is None else pairs.cohort.notes
    return FittedFile(model, out, (*notes, *about_cohort, *model.diagnostics_.notes))


@contextmanager
def _opened(
    files: PairFiles,
    feature: str | None,
    cohort: Cohort | None,
    leave_out: str | None,
    stream: bool,
    engine: SparkEngine | None,
    progress: Progress,
) -> Iterator[tuple[PairParts, tuple[str, ...]]]:
    """Give the pairs to fit on, and what was done to them: folds are drawn in memory only.

    Nobody of the cohort is in the fold that is left out.
    """
    if engine is not None:
        with engine.opened(files, feature, progress) as frame:
            pairs = frame if cohort is None else join_cohort(frame, cohort)
            yield pairs if leave_out is None else pairs.without(leave_out), ()
    elif stream:
        how: dict[str, Any] = {"leave_out": leave_out, "cohort": cohort, "progress": progress}
        yield files.open_one(feature, **how), ()
    else:
        data = files.load_one(feature, cohort=cohort, progress=progress)
        if leave_out is None:
            yield data, ()
        else:
            calibration = data.split(fold_named(data, leave_out))[0]
            yield calibration, calibration.notes
