"""Any classifier's probabilities: a model file, calibrated rows, an audit and a benchmark."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from faircal._base.errors import DataError, ParameterError
from faircal._base.files import check_output, check_table_name, file_digest
from faircal._base.jobs import Progress, silent, step
from faircal.calibrators.classes import CLASS_CALIBRATORS
from faircal.data import ClassifierRows, load_classifier_rows
from faircal.data.tables import decoded, write_csv, write_parquet
from faircal.evaluation.classes import audit_classes, write_class_audit
from faircal.evaluation.classes.methods import (
    CLASS_METHODS,
    UNCALIBRATED,
    folds_of,
    out_of_fold,
    served,
)
from faircal.methods import load_model
from faircal.methods.classifier import FairCalClassifier
from faircal.methods.classifier.maps import Shrinkage
from faircal.metrics.measures import check_names
from faircal.metrics.results import CLUSTERS, MEMBERS
from faircal.production.describe import describe
from faircal.report.writing import WrittenReport, make_report

Float64 = NDArray[np.float64]

_NO_GROUPS = "only global figures: the table has no attribute of text; name one with --attribute"


@dataclass(frozen=True)
class LabelledFiles:
    """A table of a classifier's rows, or a folder, with the names of its columns.

    Attributes
    ----------
    path : Path
    label : str
        Column of true classes.
    probabilities : str
        What the columns of probabilities begin with.
    features : str
        What feature columns begin with; or their names, with commas; or an .npy file.
    identity : str
        Column with the person or unit that a row comes from, where there is one.

    Examples
    --------
    >>> LabelledFiles.of("rows.csv").label
    'label'
    """

    path: Path
    label: str = "label"
    probabilities: str = "p_"
    features: str = "feature_"
    identity: str = "identity"

    @classmethod
    def of(cls, rows: LabelledFiles | str | Path) -> LabelledFiles:
        """Return it, or the path as it is read by default."""
        return rows if isinstance(rows, LabelledFiles) else cls(Path(rows))

    def load(self, progress: Progress = silent, *, need_labels: bool = True) -> ClassifierRows:
        """Read the table."""
        with step(progress, f"reading {self.path}"):
            return load_classifier_rows(**asdict(self), need_labels=need_labels)

    def check_kept(self, out: Path, *others: Path) -> None:
        """Raise where `out` is a file that is read."""
        if out.resolve() in {path.resolve() for path in (self.path, Path(self.features), *others)}:
            raise ParameterError(f"--out {out}: is read by this command; choose another path")

    @property
    def columns(self) -> dict[str, str]:
        """What ``run.json`` says of how the table was read."""
        return {name: value for name, value in asdict(self).items() if name != "path"}


def classify_fit(
    rows: LabelledFiles | str | Path,
    out: str | Path,
    *,
    clusters: int = 20,
    calibrator: str = "dirichlet",
    shrinkage: Shrinkage = "cv",
    intended_use: str = "",
    limits: Sequence[str] = (),
    seed: int = 0,
    progress: Progress = silent,
) -> tuple[FairCalClassifier, ClassifierRows]:
    """Fit FairCal on a classifier's labelled rows and write a model file.

    Parameters
    ----------
    rows : LabelledFiles or path
        Rows that the classifier was not trained on.
    out : path
        Model file to write.
    clusters, calibrator, shrinkage, seed
        As for `faircal.FairCalClassifier`.
    intended_use, limits
        What the model card is to say.
    progress : callable

    Examples
    --------
    >>> import faircal
    >>> faircal.classify_fit("rows.csv", "classes.faircal", clusters=20)  # doctest: +SKIP
    """
    rows, out = LabelledFiles.of(rows), Path(out)
    check_output(out)
    rows.check_kept(out)
    CLASS_CALIBRATORS[calibrator]  # an unknown one is an error now, not after reading
    data = rows.load(progress)
    features = _features(data)
    if clusters > len(data):
        raise ParameterError(
            f"--clusters {clusters}: expected at most the {len(data)} rows of {rows.path}; "
            "use fewer"
        )
    settings: dict[str, Any] = {
        "n_clusters": clusters,
        "calibrator": calibrator,
        "shrinkage": shrinkage,
        "random_state": seed,
    }
    names = np.array(data.classes)
    progress(f"fitting on {len(data)} rows", 0, 1, "")
    model = FairCalClassifier(**settings).fit_calibration(
        data.probabilities,
        names[data.codes],
        features=features,
        feature_names=data.feature_names,
        classes=names,
        units=data.units,
        progress=progress,
    )
    describe(model, data, intended_use=intended_use, limits=limits, settings=settings)
    model.save(out)
    return model, data


def classify_apply(
    model: str | Path,
    rows: LabelledFiles | str | Path,
    out: str | Path,
    *,
    progress: Progress = silent,
) -> tuple[FairCalClassifier, ClassifierRows]:
    """Calibrate a classifier's rows with a model file and write a table of probabilities.

    Examples
    --------
    >>> import faircal
    >>> faircal.classify_apply("classes.faircal", "new.csv", "calibrated.csv")  # doctest: +SKIP
    """
    rows, model, out = LabelledFiles.of(rows), Path(model), Path(out)
    check_table_name(out)
    check_output(out)
    rows.check_kept(out, model)
    fitted = _load_classifier(model)
    data = rows.load(progress, need_labels=False)
    with step(progress, "calibrating"):
        probabilities = _calibrated(fitted, data, model)
        columns: dict[str, Any] = dict(
            zip((f"p_{name}" for name in fitted.classes_), probabilities.T, strict=True)
        )
        columns["predicted"] = fitted.classes_.astype(str)[probabilities.argmax(axis=1)]
        columns["cluster"] = fitted.clusters(_features(data), feature_names=data.feature_names)
        named = {"label": data.label, "identity": data.identity}
        columns |= {name: decoded(column) for name, column in named.items() if column is not None}
        columns |= {} if data.fold is None else {"fold": data.fold}
        others = sorted(data.attributes.keys() - columns.keys())
        columns |= {name: decoded(data.attributes[name]) for name in others}
        table = pa.table(columns)
    if out.suffix == ".csv":
        write_csv(out, table)
    else:
        write_parquet(out, iter([table]))
    return fitted, data


def classify_audit(
    rows: LabelledFiles | str | Path,
    out: str | Path,
    *,
    attribute: str | None = None,
    model: str | Path | None = None,
    all_files: bool = False,
    progress: Progress = silent,
) -> WrittenReport:
    """Measure a classifier's probabilities by group, into a folder with its report.

    Parameters
    ----------
    rows : LabelledFiles or path
    out : path
        Folder to write to.
    attribute : str, optional
        Attribute that makes the groups; the only one unless given.
    model : path, optional
        Model file whose probabilities are measured beside those of the table.
    all_files : bool
        Write the tables and figures of the report as files, too.
    progress : callable

    Examples
    --------
    >>> import faircal
    >>> faircal.classify_audit("rows.csv", "audit/", attribute="sex")  # doctest: +SKIP
    """
    started, rows, out = time.perf_counter(), LabelledFiles.of(rows), Path(out)
    check_output(out, folder=True)
    fitted = None if model is None else _load_classifier(Path(model))
    data = rows.load(progress)
    chosen = _attribute(data, attribute)
    settings: dict[str, Any] = {"model": model, "model_sha256": None}
    probabilities: Any = data.probabilities
    made, notes = {}, []
    if fitted is not None and model is not None:
        settings["model_sha256"] = file_digest(Path(model))
        with step(progress, "calibrating"):
            calibrated = _calibrated(fitted, data, Path(model))
        order = np.array([list(fitted.classes_.astype(str)).index(name) for name in data.classes])
        probabilities = {UNCALIBRATED: probabilities, "faircal": calibrated[:, order]}
        calibrator = fitted.calibrator if isinstance(fitted.calibrator, str) else "custom"
        made["faircal"] = _made(calibrator, fitted.n_clusters_, fitted.random_state)
        origin = fitted.about_.provenance
        if origin is not None and origin.data_sha256 == data.hash():
            notes.append(
                f"{model} was fitted on these very rows: its figures are too good; "
                "measure it on others"
            )
    record = {"settings": settings, "notes": notes}
    _measure(rows, data, chosen, probabilities, out, record, made, started, progress)
    return make_report(out, all_files=all_files, progress=progress)


def classify_benchmark(
    rows: LabelledFiles | str | Path,
    out: str | Path,
    *,
    attribute: str | None = None,
    methods: Sequence[str] = (),
    folds: int = 5,
    clusters: int = 20,
    calibrator: str = "dirichlet",
    shrinkage: Shrinkage = "cv",
    seed: int = 0,
    progress: Progress = silent,
) -> WrittenReport:
    """Compare FairCal with other ways to calibrate a classifier, into a folder with its report.

    Parameters
    ----------
    rows : LabelledFiles or path
    out : path
        Folder to write to.
    attribute : str, optional
        Attribute that makes the groups; the only one unless given.
    methods : sequence of str
        Of `CLASS_METHODS`; all that the table can serve unless given.
    folds : int
        Folds to draw where the table has none.
    clusters, calibrator, shrinkage, seed
        As for `faircal.FairCalClassifier`.
    progress : callable

    Examples
    --------
    >>> import faircal
    >>> faircal.classify_benchmark("rows.csv", "results/", attribute="sex")  # doctest: +SKIP
    """
    started, rows, out = time.perf_counter(), LabelledFiles.of(rows), Path(out)
    check_output(out, folder=True)
    CLASS_CALIBRATORS[calibrator]  # an unknown one is an error now, not after reading
    data = rows.load(progress)
    chosen = _attribute(data, attribute)
    names, left_out = served(data, tuple(methods), chosen)
    held = folds_of(data, folds, seed)
    settings: dict[str, Any] = {
        "calibrator": calibrator,
        "n_clusters": clusters,
        "shrinkage": shrinkage,
        "seed": seed,
    }
    probabilities = out_of_fold(
        data, names, attribute=chosen, folds=held, progress=progress, **settings
    )
    record = {
        "settings": {"methods": list(names), **settings},
        "left_out": left_out,
        "folds": list(held.names),
        "notes": list(held.notes),
    }
    made = {
        name: _made(calibrator, clusters if CLASS_METHODS[name].needs_features else "", seed)
        for name in names
        if name != UNCALIBRATED
    }
    _measure(rows, data, chosen, probabilities, out, record, made, started, progress)
    return make_report(out, progress=progress)


def _made(calibrator: str, clusters: int | str, seed: int) -> dict[str, str]:
    """Return how probabilities were made, as ``results.csv`` says it."""
    return {"calibrator": calibrator, "clusters": str(clusters), "seed": str(seed)}


def _measure(
    rows: LabelledFiles,
    data: ClassifierRows,
    attribute: str | None,
    probabilities: Any,
    out: Path,
    record: Mapping[str, Any],
    made: Mapping[str, Mapping[str, str]],
    started: float,
    progress: Progress,
) -> None:
    """Measure probabilities, by method where there are several, and write the results."""
    with step(progress, "measuring"):
        audit = audit_classes(
            probabilities,
            data.codes,
            groups=None if attribute is None else data.groups(attribute),
            identity=data.identity,
            classes=data.classes,
            dataset=data.name,
            attribute=attribute or "",
            made=made,
        )
        run = {
            **record,
            "settings": {"attribute": attribute, **rows.columns, **record["settings"]},
            "notes": [*record["notes"], *([_NO_GROUPS] if attribute is None else [])],
            "data_sha256": data.hash(),
            "data_sha256_of": "values",
            "wall_time_s": round(time.perf_counter() - started, 3),
        }
        write_class_audit(out, audit, run)
        for name in (CLUSTERS, MEMBERS):  # of a benchmark that was here before
            (out / name).unlink(missing_ok=True)


def _attribute(data: ClassifierRows, named: str | None) -> str | None:
    """Return the attribute to group by: the one named, or the only one; None where there is none.

    One that is not in the data, or has no groups, is an error.
    """
    if named is None and len(data.grouping) > 1:
        raise ParameterError(
            f"{data.name}: has several attributes ({', '.join(data.grouping)}); choose one with "
            "--attribute, a+b crosses two"
        )
    attribute = named or next(iter(data.grouping), None)
    if attribute is None:
        return None
    names = data.groups(attribute).names
    if not names:
        raise DataError(
            f"{data.name}: attribute '{attribute}' has no value in any row; choose another one"
        )
    check_names(names)
    return attribute


def _load_classifier(path: Path) -> FairCalClassifier:
    """Read a model file of `classify_fit`; one of face pairs is an error."""
    model: Any = load_model(path)
    if not isinstance(model, FairCalClassifier):
        raise ParameterError(
            f"{path}: expected a model of 'faircal classify fit', found one for pairs of faces "
            f"({type(model).__name__}); use 'faircal score' or 'faircal audit' with it"
        )
    return model


def _features(data: ClassifierRows) -> NDArray[np.float32]:
    """Return the features, which there must be."""
    if data.features is None:
        raise DataError(
            f"{data.name}: no features; add columns feature_…, or name them with --features "
            "(an .npy file will do)"
        )
    return data.features


def _calibrated(model: FairCalClassifier, data: ClassifierRows, path: Path) -> Float64:
    """Return the model's probabilities, in the order of its classes."""
    features, classes = _features(data), tuple(map(str, model.classes_))
    if set(classes) != set(data.classes):
        ours, of_model = (", ".join(names[:6]) for names in (data.classes, classes))
        raise DataError(
            f"{data.name}: expected the classes of {path} ({of_model}), found {ours}; "
            "use the table's own model or rename its columns"
        )
    given = data.probabilities[:, [data.classes.index(name) for name in classes]]
    return model.calibrate(given, features=features, feature_names=data.feature_names)
