"""``faircal benchmark``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from faircal.cli import options
from faircal.cli.help import Command, Part
from faircal.cli.printing import note, progress_bars, show_report

if TYPE_CHECKING:
    from faircal.data import PairFiles


@click.command(
    cls=Command,
    examples={
        "All methods that the data can serve": "faircal benchmark faces/ --out results/",
        "Some methods, by two attributes crossed": "faircal benchmark faces/ "
        "--methods baseline,faircal,oracle --attribute ethnicity+gender --out results/",
        "How much depends on the number of clusters": "faircal benchmark faces/ --methods faircal "
        "--clusters 10,25,50,100 --out sweep/",
        "Thresholds from the calibration folds, as in use": "faircal benchmark faces/ "
        "--threshold-on calibration --out results/",
        "As calibrated on strangers at random": "faircal benchmark faces/ "
        "--calibration-imposters random --out results/",
        "With a cohort of public people": "faircal benchmark faces/ --cohort cohort/ "
        "--cohort-attribute ethnicity --out results/",
        "With a cohort taken out of the calibration people": "faircal benchmark faces/ "
        "--draw-cohort 36 --out results/",
        "A method of your own": "faircal --plugin mine.py benchmark faces/ "
        "--methods baseline,faircal,mine --out results/",
        "Move to another population": "faircal benchmark --calibrate-on here/ --test-on there/ "
        "--labels 100,1000 --out moved/",
        "Go on with a run that was interrupted": "faircal benchmark faces/ --out results/ --resume",
    },
    tables={
        "Files": {
            **options.PAIR_FILES,
            **options.TABLE_FILES,
            "clusters.csv": "Clusters of methods that have them: pairs and groups in each.",
            "moving.csv": "With --test-on: how far calibration is off, by number of labels.",
            "parts/": "Cells that are done; --resume goes on from them.",
        },
    },
    see=(
        "methods",
        "compare",
        "report",
        "reproduce",
        "tutorials/own-method",
        "how-to/cohort",
        "how-to/moved-population",
        "how-to/trained-methods",
    ),
)
@options.reads_data(required=False)  # two options may say what to read
@options.out
@Part.MOVING.option(
    "--calibrate-on",
    type=click.Path(path_type=Path),
    metavar="DATA",
    show_default="none",
    help="In place of DATA: the population that methods are fitted on.",
)
@Part.MOVING.option(
    "--test-on",
    type=click.Path(path_type=Path),
    metavar="DATA",
    show_default="none",
    help="And another population, that they are tested on.",
)
@Part.MOVING.option(
    "--labels",
    type=options.CommaList(int),
    default=(),
    show_default="100, 300, … to all",
    help="Numbers of labelled pairs of that population to try, with commas.",
)
@Part.MOVING.option(
    "--people-apart",
    is_flag=True,
    help="People of one name in both populations are different people. Without it they are the "
    "same, and dropped where they would be tested.",
)
@Part.METHOD.option(
    "--methods",
    type=options.CommaList(),
    default=(),
    show_default="all installed ones that the data can serve",
    help="Methods to run, with commas; 'faircal methods' lists them.",
)
@Part.METHOD.option(
    "--calibrators",
    type=options.CommaList(),
    default="beta",
    help="Calibrators, with commas: beta, histogram, isotonic, platt, temperature, spline.",
)
@Part.METHOD.option(
    "--clusters",
    type=options.CommaList(int),
    default="100",
    help="Numbers of clusters (K), with commas: each is run.",
)
@options.features
@Part.MEASURE.option(
    "--attribute",
    "attributes",
    type=options.CommaList(),
    default=(),
    show_default="that of dataset.json, else all crossed",
    help="Attributes to measure by, with commas; a+b crosses two.",
)
@Part.MEASURE.option(
    "--threshold-on",
    type=click.Choice(["test", "calibration"]),
    default="test",
    help="Where thresholds come from: the test fold, as in the paper, or the calibration folds, as "
    "in use.",
)
@Part.METHOD.option(
    "--retune",
    is_flag=True,
    help="Fit FSN and GST, which are made for one FPR, anew for each of --rates.",
)
@options.rates
@Part.METHOD.option(
    "--n-init",
    type=click.IntRange(1),
    default=1,
    help="Starts of K-means, of which the best is taken.",
)
@Part.IMPOSTERS.option(
    "--calibration-imposters",
    type=click.Choice(["given", "random", "matched"]),
    default="given",
    help="Imposter pairs of the calibration folds: as they are; or as many drawn anew, of any two "
    "people or of people who are alike. Test pairs stay.",
)
@options.cohort
@Part.COHORT.option(
    "--draw-cohort",
    type=click.IntRange(1),
    metavar="N",
    show_default="none",
    help="Take at most N people of each group out of the calibration people of each fold, as the "
    "cohort of methods that use one.",
)
@Part.COHORT.option(
    "--cohort-attribute",
    metavar="A",
    show_default="with --draw-cohort the first of --attribute; else as the cohort has it",
    help="Attribute that makes the groups of the cohort; a+b crosses two.",
)
@options.parameters
@options.jobs
@options.resume
@options.seed
@options.as_json
def command(
    source: PairFiles,
    out: Path,
    calibrate_on: Path | None,
    test_on: Path | None,
    labels: tuple[int, ...],
    people_apart: bool,
    parameters: tuple[tuple[str, str, Any], ...],
    as_json: bool,
    **how: Any,
) -> None:
    """Compare methods by leave-one-fold-out.

    Reads the labelled pairs of DATA. Each method is fitted on all folds but one and tested on that
    one, in turn, with the paper's measurements: accuracy, calibration (KS) and error rates by
    group, and how unequal they are. Thresholds and rates at a global rate are interpolated between
    scores, as the paper's are; 'faircal audit' counts. Folds share no person.

    Prints the main tables and writes a report: open report.html next. 'faircal compare' tells
    whether two methods or two runs differ. Results are written as they come: an interrupted run
    goes on with --resume, a training too. The same seed gives the same results.csv, whatever the
    number of jobs (on the same device, where networks are trained).

    With --calibrate-on and --test-on methods move to another population: they are fitted on all of
    the first and tested on the second, fold by fold, as they are, recalibrated with more and more
    labelled pairs of its other folds (one map on top of the model), and fitted on those alone.
    moving.csv and a figure say how many of them restore calibration.
    """
    from faircal.workflows.benchmark import benchmark

    _check_ways(source, calibrate_on, test_on, moving_only=bool(labels or people_apart))
    if None not in (how["cohort"], how["draw_cohort"]):
        problem = "--cohort and --draw-cohort both give a cohort; give one of them"
        raise click.UsageError(problem, click.get_current_context())
    how["parameters"] = {
        of: {name: value for method, name, value in parameters if method == of}
        for of, _, _ in parameters
    }
    if calibrate_on is not None and test_on is not None:
        calibration, source = (replace(source, path=path) for path in (calibrate_on, test_on))
        how |= {"calibrate_on": calibration, "labels": labels, "people_apart": people_apart}
    with progress_bars() as update:
        report = benchmark(source, out, **how, progress=update, note=note)
    show_report(report, as_json)


def _check_ways(
    source: PairFiles, calibrate_on: Path | None, test_on: Path | None, moving_only: bool
) -> None:
    """Raise unless there is just one way to say what to read: DATA, or both options."""
    given: Path | None = source.path
    problem = ""
    if (calibrate_on is None) != (test_on is None):
        problem = "--calibrate-on and --test-on go together; give both"
    elif (given is None) == (calibrate_on is None):
        problem = "expected either DATA or --calibrate-on and --test-on; give one of them"
    elif moving_only and calibrate_on is None:
        problem = "--labels and --people-apart go with --calibrate-on and --test-on; leave them out"
    if problem:
        raise click.UsageError(problem, click.get_current_context())
