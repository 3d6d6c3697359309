"""``faircal classify audit`` and ``benchmark``: measure probabilities, compare methods."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from faircal.cli.classify_model import load_classifier, model_probabilities
from faircal.cli.classify_rows import (
    TABLE_COLUMNS,
    Rows,
    attribute_of,
    attribute_option,
    fits_maps,
    reads_rows,
)
from faircal.cli.classify_show import report_and_show
from faircal.cli.help import Command, Part, option
from faircal.cli.options import (
    CommaList,
    check_folder,
    json_option,
    note,
    out_option,
    progress_bars,
    seed_option,
    working,
)
from faircal.cli.running import REPORT_FILES, TABLE_FILES, all_files_option
from faircal.cli.values import registered

if TYPE_CHECKING:
    from faircal.data import ClassifierRows
    from faircal.evaluation.classes.audit import Made
    from faircal.methods.classifier.maps import Shrinkage

_NO_GROUPS = "only global figures: the table has no attribute of text; name one with --attribute"


_FILES = {**REPORT_FILES, "differences.csv": "Differences between methods, with intervals."}


@click.command(
    cls=Command,
    examples={
        "Probabilities as they come": "faircal classify audit rows.csv --attribute sex "
        "--out audit/",
        "A model's beside them, on rows it was not fitted on": "faircal classify audit test.csv "
        "--attribute sex --model classes.faircal --out audit/",
        "By two attributes crossed, rows of one patient together": "faircal classify audit "
        "rows.csv --attribute sex+site --identity patient --out audit/",
    },
    tables={"Columns of a table": TABLE_COLUMNS, "Files": _FILES},
    see=("classify", "report", "tutorials/classifier", "how-to/classifier-options"),
)
@reads_rows
@attribute_option
@out_option
@option(
    "--model",
    part=Part.MEASURE,
    type=click.Path(path_type=Path),
    metavar="FILE",
    show_default="the probabilities of TABLE alone",
    help="Model file whose probabilities are measured beside those of TABLE.",
)
@all_files_option
@json_option
def audit(
    rows: Rows,
    attribute: str | None,
    out: Path,
    model: Path | None,
    all_files: bool,
    as_json: bool,
) -> None:
    """Measure class probabilities by group.

    Reads the labelled rows of TABLE and measures accuracy, calibration, NLL and Brier score of all
    rows and of every group. With a model, its probabilities are measured on the same rows; they
    must not be those that it was fitted on. Intervals know that rows of one unit belong together,
    where a column names it (--identity).

    Prints the main tables and writes a report. Open report.html next.
    """
    from faircal._base.files import file_digest
    from faircal.evaluation.classes.audit import Made
    from faircal.evaluation.classes.methods import UNCALIBRATED

    started = time.perf_counter()
    check_folder(out)
    fitted = None if model is None else load_classifier(model)
    data = rows.load()
    chosen = attribute_of(data, attribute)
    found: Any = data.probabilities
    if fitted is not None and model is not None:
        with working("calibrating"):
            found = {UNCALIBRATED: found, "faircal": model_probabilities(fitted, data, model)}
    made = {}
    if fitted is not None:
        name = fitted.calibrator if isinstance(fitted.calibrator, str) else "custom"
        made["faircal"] = Made(name, str(fitted.n_clusters_), str(fitted.random_state))
    settings = {
        "model": model,
        "model_sha256": None if model is None else file_digest(model),
    }
    run: dict[str, Any] = {"settings": settings, "notes": []}
    told = None if fitted is None else fitted.about_.provenance
    if told is not None and told.data_sha256 == data.hash():
        run["notes"].append(
            f"{model} was fitted on these very rows: its figures are too good; measure it on others"
        )
    _measure(rows, data, chosen, found, out, run, started, made)
    report_and_show(out, as_json, all_files)


@click.command(
    cls=Command,
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
        "Files": {**_FILES, **TABLE_FILES},
    },
    see=("classify", "report", "tutorials/classifier", "how-to/classifier-options"),
)
@reads_rows
@attribute_option
@out_option
@option(
    "--methods",
    part=Part.METHOD,
    type=CommaList(),
    default=(),
    shell_complete=registered("faircal.evaluation.classes.methods", "CLASS_METHODS", commas=True),
    show_default="all that TABLE can serve",
    help="Methods to run, with commas: uncalibrated, global, faircal, groupwise, oracle.",
)
@option(
    "--folds",
    part=Part.DATA,
    type=click.IntRange(2),
    default=5,
    help="Folds to draw where TABLE has no column fold.",
)
@fits_maps
@seed_option
@json_option
def benchmark(
    rows: Rows,
    attribute: str | None,
    out: Path,
    methods: tuple[str, ...],
    folds: int,
    clusters: int,
    calibrator: str,
    shrinkage: Shrinkage,
    seed: int,
    as_json: bool,
) -> None:
    """Compare FairCal with other ways to calibrate.

    Reads the labelled rows of TABLE. Each fold is held out once, and methods are fitted on the
    others; what they say of the held-out rows is measured together. Folds are those of a column
    fold, or drawn: evenly by class, rows of one unit (--identity) together.

    Prints the main tables and writes a report. Open report.html next; where FairCal helps, 'faircal
    classify fit' makes a model.
    """
    from faircal.calibrators.classes import CLASS_CALIBRATORS
    from faircal.evaluation.classes.audit import Made
    from faircal.evaluation.classes.methods import CLASS_METHODS, UNCALIBRATED
    from faircal.evaluation.classes.run import folds_of, out_of_fold, served

    started = time.perf_counter()
    check_folder(out)
    CLASS_CALIBRATORS[calibrator]  # an unknown one is an error now, not after reading
    data = rows.load()
    chosen = attribute_of(data, attribute)
    names, left_out = served(data, methods, chosen)
    held = folds_of(data, folds, seed)
    settings: dict[str, Any] = {
        "calibrator": calibrator,
        "n_clusters": clusters,
        "shrinkage": shrinkage,
        "seed": seed,
    }
    with progress_bars() as update:
        found = out_of_fold(data, names, attribute=chosen, folds=held, progress=update, **settings)
    run = {
        "settings": {"methods": list(names), **settings},
        "left_out": left_out,
        "folds": list(held.names),
        "notes": list(held.notes),
    }
    made = {
        name: Made(
            calibrator, str(clusters) if CLASS_METHODS[name].needs_features else "", str(seed)
        )
        for name in names
        if name != UNCALIBRATED
    }
    _measure(rows, data, chosen, found, out, run, started, made)
    for method, why in left_out.items():
        note(f"note: {method} is left out: {why}")
    report_and_show(out, as_json)


def _measure(
    rows: Rows,
    data: ClassifierRows,
    attribute: str | None,
    found: Any,
    out: Path,
    run: Mapping[str, Any],
    started: float,
    made: Mapping[str, Made] | None = None,
) -> None:
    """Measure probabilities, by method where there are several, and write the results."""
    from faircal.evaluation.classes import audit_classes, write_class_audit
    from faircal.evaluation.classes.methods import CLASS_METHODS
    from faircal.metrics.results import read_run, write_clusters

    with working("measuring"):
        measured = audit_classes(
            found,
            data.codes,
            groups=None if attribute is None else data.groups(attribute),
            identity=data.identity,
            classes=data.classes,
            dataset=data.name,
            attribute=attribute or "",
            made=made,
        )
        methods = {
            name: {"title": CLASS_METHODS[name].title, "yardstick": CLASS_METHODS[name].yardstick}
            for name in measured.methods
            if name in CLASS_METHODS
        }
        measured.intervals()  # worked out once, here, so that the time is all of it
        record = {
            **run,
            **({"methods": methods} if methods else {}),
            "settings": {"attribute": attribute, **rows.about(), **run["settings"]},
            "notes": [*run["notes"], *([_NO_GROUPS] if attribute is None else [])],
            "data_sha256": data.hash(),
            "data_sha256_of": "values",
            "wall_time_s": round(time.perf_counter() - started, 3),
        }
        write_class_audit(out, measured, record)
        write_clusters(out, [])  # of a benchmark that was here before
    for text in read_run(out)["notes"]:
        note(text if text.startswith("warning") else f"note: {text}")
    note(f"intervals: {measured.interval_kind}")
