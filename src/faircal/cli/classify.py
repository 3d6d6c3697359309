"""``faircal classify``: any classifier's probabilities, calibrated and measured by group."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from faircal.cli import options
from faircal.cli.help import Group, Part, argument
from faircal.cli.printing import note, print_json, progress_bars, show_report

if TYPE_CHECKING:
    from faircal.workflows.classify import LabelledFiles

#: What a table has, for the help of commands.
TABLE_COLUMNS = {
    "label": "The true class. Not needed by apply.",
    "p_CLASS": "The probability of each class; those of a row add up to 1.",
    "feature_NAME": "Features: what the classifier worked with.",
    "identity": "Optional: person, patient or unit, whose rows belong together.",
    "fold": "Optional: part that a row is held out with.",
    "any other": "Attributes, which groups are made of: columns of text are found, others are "
    "named by --attribute.",
}
_FILES = {**options.REPORT_FILES, "differences.csv": "Differences between methods, with intervals."}
_SEE = ("classify", "report", "tutorials/classifier", "how-to/classifier-options")
_SEE_CARD = ("classify", "card", "tutorials/classifier", "how-to/classifier-options")


@click.group(
    cls=Group,
    examples={
        "Does FairCal help here?": "faircal classify benchmark rows.csv --attribute sex "
        "--out results/",
        "Fit it": "faircal classify fit rows.csv --out classes.faircal",
        "Calibrate other rows": "faircal classify apply classes.faircal new-rows.csv "
        "--out calibrated.parquet",
        "Measure what came of it": "faircal classify audit calibrated.parquet --attribute sex "
        "--out audit/",
    },
    tables={"Columns of a table": TABLE_COLUMNS},
    see=("report", "card", "tutorials/classifier", "how-to/classifier-options"),
)
def command() -> None:
    """Calibrate and measure the probabilities of any classifier.

    Not only faces: any classifier with features and class probabilities. FairCal clusters the
    features (such as a network's last layer but one) and fits one calibration map a cluster; it
    needs no attribute. Attributes are for measuring.

    A TABLE (.csv, .parquet) has a row for each input of the classifier. Begin
    with 'faircal classify benchmark', which says whether it helps on your rows.
    """


_row_options = options.combined(
    argument(
        "table",
        type=click.Path(path_type=Path),
        help="Rows of a classifier: a .csv or .parquet file (see Columns of a table).",
    ),
    Part.DATA.option(
        "--label",
        default="label",
        metavar="COLUMN",
        help="Column of true classes.",
    ),
    Part.DATA.option(
        "--probabilities",
        default="p_",
        metavar="PREFIX|FILE",
        help="What the columns of probabilities begin with, the class follows; or an .npy file.",
    ),
    Part.DATA.option(
        "--features",
        default="feature_",
        metavar="PREFIX|NAMES|FILE",
        help="What feature columns begin with; or their names, with commas; or an .npy file.",
    ),
    Part.DATA.option(
        "--identity",
        default="identity",
        metavar="COLUMN",
        help="Column with the person, patient or unit that a row comes from, where there is one.",
    ),
)


def reads_rows(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the argument TABLE and the options that say how to read it; gives ``rows``."""

    @wraps(function)
    def reading(
        table: Path, label: str, probabilities: str, features: str, identity: str, **rest: Any
    ) -> Any:
        from faircal.workflows.classify import LabelledFiles

        files = LabelledFiles(table, label, probabilities, features, identity)
        return function(rows=files, **rest)

    with_options: Callable[..., Any] = _row_options(reading)
    return with_options


def _shrinkage(_: click.Context, __: click.Parameter, value: str) -> float | str:
    """Read a number from 0, or ``cv``."""
    try:
        number = math.inf if value == "cv" else float(value)
    except ValueError:
        number = math.nan
    if not number >= 0:  # nor NaN
        raise click.BadParameter(f"expected cv or a number from 0, found {value!r}")
    return "cv" if value == "cv" else number


#: How calibration maps are fitted.
fits_maps = options.combined(
    Part.METHOD.option(
        "--clusters",
        type=click.IntRange(1),
        default=20,
        help="Number of clusters (K) of the features.",
    ),
    Part.METHOD.option(
        "--calibrator",
        default="dirichlet",
        help="Map from probabilities to calibrated ones: dirichlet, dirichlet-diagonal, "
        "temperature, vector, matrix, isotonic or histogram.",
    ),
    Part.METHOD.option(
        "--shrinkage",
        callback=_shrinkage,
        default="cv",
        metavar="N|cv",
        help="As many rows as the map of all rows counts for in a cluster: 0 fits each cluster "
        "by itself, inf is one map for all, cv finds it out.",
    ),
)
attribute = Part.MEASURE.option(
    "--attribute",
    show_default="the only one",
    help="Attribute that makes the groups; a+b crosses two.",
)


@command.command(
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
    see=_SEE_CARD,
)
@reads_rows
@options.model_out
@fits_maps
@options.intended_use
@options.limit
@options.seed
@options.as_json
def fit(rows: LabelledFiles, out: Path, as_json: bool, **settings: Any) -> None:
    """Fit FairCal on labelled rows and write a model file.

    Reads the rows of TABLE, which the classifier must not have been trained on. Features are
    clustered; each cluster gets a calibration map of its own, shrunk to the global one as far as
    cross-validation finds best. No attribute is used.

    Next: 'faircal classify apply OUT ROWS' calibrates other rows, 'faircal classify audit ROWS
    --model OUT' measures it on them.
    """
    from faircal.workflows.classify import classify_fit

    with progress_bars() as update:
        model, data = classify_fit(rows, out, **settings, progress=update)
    if as_json:
        print_json(
            {
                "model": str(out),
                "rows": len(data),
                "classes": data.classes,
                "clusters": model.n_clusters_,
                "calibrator": settings["calibrator"],
                "shrinkage": model.shrinkage_,
                "seed": settings["seed"],
            }
        )
    else:
        note(
            f"{data.name}: {len(data):,} rows, {len(data.classes)} classes, "
            f"{model.n_clusters_} clusters, shrinkage {model.shrinkage_:g}"
        )
        click.echo(str(out))


@command.command(
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
    see=_SEE_CARD,
)
@argument(
    "model",
    type=click.Path(path_type=Path),
    help="Model file, as 'faircal classify fit' writes it.",
)
@reads_rows
@options.table_out
@options.as_json
def apply(model: Path, rows: LabelledFiles, out: Path, as_json: bool) -> None:
    """Calibrate rows with a model.

    Reads MODEL and the rows of TABLE, which need the same classes and features as those it was
    fitted on, and no labels. Writes a table with calibrated probabilities, rows in the same order.

    Next: 'faircal classify audit OUT' where there are labels.
    """
    from faircal.workflows.classify import classify_apply

    with progress_bars() as update:
        fitted, data = classify_apply(model, rows, out, progress=update)
    if as_json:
        print_json({"out": str(out), "rows": len(data), "classes": list(map(str, fitted.classes_))})
    else:
        click.echo(str(out))


@command.command(
    examples={
        "Probabilities as they come": "faircal classify audit rows.csv --attribute sex "
        "--out audit/",
        "A model's beside them, on rows it was not fitted on": "faircal classify audit test.csv "
        "--attribute sex --model classes.faircal --out audit/",
        "By two attributes crossed, rows of one patient together": "faircal classify audit "
        "rows.csv --attribute sex+site --identity patient --out audit/",
    },
    tables={"Columns of a table": TABLE_COLUMNS, "Files": _FILES},
    see=_SEE,
)
@reads_rows
@attribute
@options.out
@Part.MEASURE.option(
    "--model",
    type=click.Path(path_type=Path),
    metavar="FILE",
    show_default="the probabilities of TABLE alone",
    help="Model file whose probabilities are measured beside those of TABLE.",
)
@options.all_files
@options.as_json
def audit(rows: LabelledFiles, out: Path, as_json: bool, **settings: Any) -> None:
    """Measure class probabilities by group.

    Reads the labelled rows of TABLE and measures accuracy, calibration, NLL and Brier score of all
    rows and of every group. With a model, its probabilities are measured on the same rows; they
    must not be those that it was fitted on. Intervals know that rows of one unit belong together,
    where a column names it (--identity).

    Prints the main tables and writes a report. Open report.html next.
    """
    from faircal.workflows.classify import classify_audit

    with progress_bars() as update:
        report = classify_audit(rows, out, **settings, progress=update)
    show_report(report, as_json)


@command.command(
    examples={
        "All ways that the table can serve": "faircal classify benchmark rows.csv --attribute sex "
        "--out results/",
        "FairCal against one map for all, with other settings": "faircal classify benchmark "
        "rows.csv --attribute sex --methods global,faircal --clusters 50 "
        "--calibrator temperature --out results/",
    },
    tables={
        "Methods": {
            "uncalibrated": "Probabilities as they come.",
            "global": "One map for all rows.",
            "faircal": "One map for each cluster of features; is never told the attribute.",
            "groupwise": "One map for each group, fitted by itself; is told the attribute.",
            "oracle": "One map for each group, pulled to that of all rows; is told the attribute: "
            "a yardstick.",
        },
        "Columns of a table": TABLE_COLUMNS,
        "Files": {**_FILES, **options.TABLE_FILES},
    },
    see=_SEE,
)
@reads_rows
@attribute
@options.out
@Part.METHOD.option(
    "--methods",
    type=options.CommaList(),
    default=(),
    show_default="all that TABLE can serve",
    help="Methods to run, with commas: uncalibrated, global, faircal, groupwise, oracle.",
)
@Part.DATA.option(
    "--folds",
    type=click.IntRange(2),
    default=5,
    help="Folds to draw where TABLE has no column fold.",
)
@fits_maps
@options.seed
@options.as_json
def benchmark(rows: LabelledFiles, out: Path, as_json: bool, **settings: Any) -> None:
    """Compare FairCal with other ways to calibrate.

    Reads the labelled rows of TABLE. Each fold is held out once, and methods are fitted on the
    others; what they say of the held-out rows is measured together. Folds are those of a column
    fold, or drawn: evenly by class, rows of one unit (--identity) together.

    Prints the main tables and writes a report. Open report.html next; where FairCal helps, 'faircal
    classify fit' makes a model.
    """
    from faircal.workflows.classify import classify_benchmark

    with progress_bars() as update:
        report = classify_benchmark(rows, out, **settings, progress=update)
    show_report(report, as_json)
