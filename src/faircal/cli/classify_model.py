"""``faircal classify fit`` and ``apply``: a model file, and probabilities from it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from faircal.cli.classify_rows import TABLE_COLUMNS, Rows, fits_maps, reads_rows
from faircal.cli.fit import intended_use_option, limit_option
from faircal.cli.help import Command, argument
from faircal.cli.options import (
    check_file,
    json_option,
    model_out_option,
    note,
    print_json,
    progress_bars,
    seed_option,
    table_out_option,
    working,
)

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from faircal.data import ClassifierRows
    from faircal.methods.classifier import FairCalClassifier
    from faircal.methods.classifier.maps import Shrinkage


@click.command(
    cls=Command,
    examples={
        "With 20 clusters": "faircal classify fit rows.csv --out classes.faircal",
        "Other clusters and calibrator, with what the card is to say": "faircal classify fit "
        "rows.csv --clusters 50 --calibrator temperature "
        '--intended-use "Triage of chest images" --out classes.faircal',
        "Columns of other names, features in a file": "faircal classify fit rows.csv "
        "--label diagnosis --identity patient --features features.npy --out classes.faircal",
    },
    tables={
        "Columns of a table": TABLE_COLUMNS,
        "Files": {"OUT": "The model: numbers and JSON under a checksum. 'faircal card' prints it."},
    },
    see=("classify", "card", "tutorials/classifier", "how-to/classifier-options"),
)
@reads_rows
@model_out_option
@fits_maps
@intended_use_option
@limit_option
@seed_option
@json_option
def fit(
    rows: Rows,
    out: Path,
    clusters: int,
    calibrator: str,
    shrinkage: Shrinkage,
    intended_use: str,
    limits: tuple[str, ...],
    seed: int,
    as_json: bool,
) -> None:
    """Fit FairCal on labelled rows and write a model file.

    Reads the rows of TABLE, which the classifier must not have been trained on. Features are
    clustered; each cluster gets a calibration map of its own, shrunk to the global one as far as
    cross-validation finds best. No attribute is used.

    Next: 'faircal classify apply OUT ROWS' calibrates other rows, 'faircal classify audit ROWS
    --model OUT' measures it on them.
    """
    import numpy as np

    from faircal._base.errors import ParameterError
    from faircal.calibrators.classes import CLASS_CALIBRATORS
    from faircal.methods.classifier import FairCalClassifier
    from faircal.production.describing import describe

    check_file(out)
    rows.check_kept(out)
    CLASS_CALIBRATORS[calibrator]  # an unknown one is an error now, not after reading
    data = rows.load()
    features = data.features_as((), str(out))
    if clusters > len(data):
        raise ParameterError(
            f"--clusters {clusters}: expected at most the {len(data)} rows of {rows.path}; "
            "use fewer"
        )
    model = FairCalClassifier(
        n_clusters=clusters, calibrator=calibrator, shrinkage=shrinkage, random_state=seed
    )
    names = np.array(data.classes)
    with progress_bars() as update:
        update(f"fitting on {len(data)} rows", 0, 1, "")
        model.fit_calibration(
            data.probabilities,
            names[data.codes],
            features=features,
            feature_names=data.feature_names,
            classes=names,
            units=data.units,
            progress=update,
        )
    settings = {"n_clusters": clusters, "shrinkage": shrinkage, "random_state": seed}
    describe(
        model,
        data,
        intended_use=intended_use,
        limits=limits,
        settings={**settings, "calibrator": calibrator},
    )
    model.save(out)
    if as_json:
        print_json(
            {
                "model": str(out),
                "rows": len(data),
                "classes": data.classes,
                "clusters": model.n_clusters_,
                "calibrator": calibrator,
                "shrinkage": model.shrinkage_,
                "seed": seed,
            }
        )
    else:
        note(
            f"{data.name}: {len(data):,} rows, {len(data.classes)} classes, "
            f"{model.n_clusters_} clusters, shrinkage {model.shrinkage_:g}"
        )
        click.echo(str(out))


@click.command(
    cls=Command,
    examples={
        "Calibrate rows": "faircal classify apply classes.faircal new-rows.csv "
        "--out calibrated.parquet",
        "The same, for machines": "faircal classify apply classes.faircal new-rows.csv "
        "--out calibrated.csv --json",
    },
    tables={
        "Columns that are written": {
            "p_CLASS": "The calibrated probability of each class.",
            "predicted": "The class with the highest one.",
            "cluster": "The cluster that the row lies in, from 0.",
            "label, identity, fold": "Carried over where they are there; attributes too. Features "
            "are not.",
        },
    },
    see=("classify", "card", "tutorials/classifier", "how-to/classifier-options"),
)
@argument(
    "model",
    type=click.Path(path_type=Path),
    help="Model file, as 'faircal classify fit' writes it.",
)
@reads_rows
@table_out_option
@json_option
def apply(model: Path, rows: Rows, out: Path, as_json: bool) -> None:
    """Calibrate rows with a model.

    Reads MODEL and the rows of TABLE, which need the same classes and features as those it was
    fitted on, and no labels. Writes a table with calibrated probabilities, rows in the same order.

    Next: 'faircal classify audit OUT' where there are labels.
    """
    from faircal._base.errors import ParameterError
    from faircal.data.tables import write_csv, write_parquet

    if out.suffix not in (".parquet", ".csv"):
        raise ParameterError(
            f"--out {out}: expected a name that ends in .parquet or .csv; choose one"
        )
    check_file(out)
    rows.check_kept(out, model)
    fitted = load_classifier(model)
    data = rows.load(need_labels=False)
    with working("calibrating"):
        table = _applied(fitted, data, model)
    if out.suffix == ".csv":
        write_csv(out, table)
    else:
        write_parquet(out, iter([table]))
    if as_json:
        print_json({"out": str(out), "rows": len(data), "classes": class_names(fitted)})
    else:
        click.echo(str(out))


def load_classifier(path: Path) -> FairCalClassifier:
    """Read a model file of ``faircal classify fit``; one of face pairs is an error."""
    import faircal
    from faircal._base.errors import ParameterError
    from faircal.methods.classifier import FairCalClassifier

    fitted: Any = faircal.load_model(path)
    if not isinstance(fitted, FairCalClassifier):
        raise ParameterError(
            f"{path}: expected a model of 'faircal classify fit', found one for pairs of faces "
            f"({type(fitted).__name__}); use 'faircal score' or 'faircal audit' with it"
        )
    return fitted


def class_names(model: FairCalClassifier) -> tuple[str, ...]:
    """Return the classes of a model, as text."""
    return tuple(str(name) for name in model.classes_)


def calibrated(model: FairCalClassifier, data: ClassifierRows, path: Path) -> NDArray[np.float64]:
    """Return the model's probabilities, in the order of the model's classes; checks the data."""
    from faircal._base.errors import DataError

    classes = class_names(model)
    if set(classes) != set(data.classes):
        raise DataError(
            f"{data.name}: expected the classes of {path} ({_few(classes)}), found "
            f"{_few(data.classes)}; use the table's own model or rename its columns"
        )
    features = data.features_as(model.feature_names_, str(path))
    wanted = model.cluster_centers_.shape[1]
    if features.shape[1] != wanted:
        raise DataError(
            f"{data.name}: expected {wanted} features, as {path} was fitted on, found "
            f"{features.shape[1]}; give the same ones"
        )
    return model.calibrate(data.ordered(classes), features=features)


def model_probabilities(
    model: FairCalClassifier, data: ClassifierRows, path: Path
) -> NDArray[np.float64]:
    """Return the model's probabilities, in the order of the data's classes."""
    classes = class_names(model)
    found = calibrated(model, data, path)
    return found[:, [classes.index(name) for name in data.classes]]


def _few(names: tuple[str, ...], most: int = 6) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if names[most:] else "")


def _applied(model: FairCalClassifier, data: ClassifierRows, path: Path) -> pa.Table:
    import pyarrow as pa

    from faircal.data.tables import decoded

    found, classes = calibrated(model, data, path), class_names(model)
    columns: dict[str, Any] = {f"p_{name}": found[:, i] for i, name in enumerate(classes)}
    best = pa.array(found.argmax(axis=1))
    columns["predicted"] = pa.DictionaryArray.from_arrays(best, list(classes)).dictionary_decode()
    columns["cluster"] = model.clusters(data.features_as(model.feature_names_, str(path)))
    if data.label is not None:
        columns["label"] = decoded(data.label)
    if data.identity is not None:
        columns["identity"] = decoded(data.identity)
    if data.fold is not None:
        columns["fold"] = data.fold
    for name in sorted(data.attributes.keys() - columns.keys()):
        columns[name] = decoded(data.attributes[name])
    return pa.table(columns)
