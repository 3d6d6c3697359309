"""``faircal fit``."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from faircal.cli import options
from faircal.cli.help import Command, Part
from faircal.cli.printing import note, notes, print_json, progress_bars

if TYPE_CHECKING:
    from faircal.data import PairFiles


@click.command(
    cls=Command,
    examples={
        "FairCal, with one fold of people kept for testing": "faircal fit faces/ --clusters 100 "
        "--leave-out 5 --out faces.faircal",
        "With what the card is to say": "faircal fit faces/ --leave-out 5 --out faces.faircal "
        '--intended-use "Gate 4: is this the person on the badge?" '
        '--limit "Not tried on children"',
        "Another method, another calibrator": "faircal fit faces/ --method oracle "
        "--attribute ethnicity --calibrator isotonic --out oracle.faircal",
        "A method that compares with a cohort": "faircal fit faces/ --method asnorm "
        "--cohort cohort/ --cohort-attribute ethnicity --out asnorm.faircal",
        "A method that trains a network, for fewer epochs": "faircal fit faces/ --method ftc "
        "--attribute ethnicity --set epochs=20 --out ftc.faircal",
        "Go on with a training that was interrupted": "faircal fit faces/ --method ftc "
        "--attribute ethnicity --set epochs=20 --out ftc.faircal --resume",
        "On a Spark cluster": "faircal fit faces/ --out faces.faircal --engine spark "
        "--master spark://host:7077",
    },
    tables={
        "Files": {
            "OUT": "The model: numbers and JSON under a checksum, with what it was made of and "
            "counts of its population, for 'faircal monitor'. Nothing in it is ever executed.",
            "OUT.checkpoint": "State of a training or a streamed fit while it works; removed when "
            "the model is written.",
        },
    },
    see=(
        "methods",
        "choose",
        "threshold",
        "score",
        "card",
        "how-to/choose",
        "how-to/cohort",
        "how-to/trained-methods",
        "how-to/big-data",
        "how-to/spark",
    ),
)
@options.reads_data(engine=True)
@Part.METHOD.option(
    "--method",
    default="faircal",
    help="Which method to fit; 'faircal methods' lists them.",
)
@Part.METHOD.option(
    "--clusters",
    type=click.IntRange(1),
    show_default="100",
    help="Number of clusters (K) of methods that have them.",
)
@Part.METHOD.option(
    "--calibrator",
    show_default="beta",
    help="Map from score to probability: beta, histogram, isotonic, platt, temperature or spline.",
)
@Part.METHOD.option(
    "--attribute",
    show_default="that of dataset.json, else all crossed",
    help="Attribute of methods that need groups, such as gst and oracle; a+b crosses two.",
)
@Part.METHOD.option(
    "--set",
    "settings",
    type=options.Assignment(),
    multiple=True,
    metavar="NAME=VALUE",
    show_default="the method's own values",
    help="Any parameter of the method, such as epochs=20; VALUE is JSON or text. May be repeated.",
)
@options.cohort
@options.cohort_attribute
@options.feature
@options.leave_out
@options.model_out
@Part.WORK.option(
    "--resume",
    is_flag=True,
    help="Go on with a training, or a streamed fit, from OUT.checkpoint.",
)
@options.stream
@options.intended_use
@options.limit
@options.seed
@options.as_json
def command(
    source: PairFiles,
    method: str,
    out: Path,
    settings: tuple[tuple[str, Any], ...],
    as_json: bool,
    **how: Any,
) -> None:
    """Fit a method on labelled pairs and write a model file.

    Reads the pairs of DATA and fits a method on all of them, unless a fold is left out. Leave one
    out to find a threshold and to test on: on people whom it was fitted on, a model looks better
    than it is.

    The model file also says what it was made of and what for: data, people and groups, versions,
    what you intend and what limits it has. 'faircal card OUT' prints that. Next, 'faircal threshold
    OUT DATA --fold FOLD' finds where to decide, and 'faircal score' scores other pairs.

    More than 10 million pairs are read part by part, in bounded memory, and their scores counted in
    fine bins; it is said how wide these are. Such a fit, and a method that trains networks, keeps
    its state in OUT.checkpoint while it works: interrupted, it goes on with --resume.

    With --engine spark the pairs are counted by Spark's workers, with the same numbers; all
    machines must see DATA (see the guide 'On a Spark cluster' in the documentation). Spark itself
    repeats what was lost on the way: there is no checkpoint.
    """
    from faircal.workflows.fit import fit_model

    for name, value in settings:
        options.check_setting(method, name, value)
    with progress_bars() as update:
        fitted = fit_model(
            source,
            out,
            method=method,
            settings=dict(settings),
            progress=update,
            **how,
        )
    notes(fitted.notes)
    if as_json:
        figures = fitted.model.diagnostics_.figures
        print_json({"model": str(out), "method": method, "figures": figures})
    else:
        click.echo(str(out))
        made = fitted.model.about_.provenance
        imposters = made is None or made.counts["imposters"] != 0
        note(_next(out, source, how["feature"], how["leave_out"], imposters))


def _next(
    out: Path, source: PairFiles, feature: str | None, fold: str | None, imposters: bool
) -> str:
    """Say what comes after a fit: a threshold, found on people whom the model does not know."""
    data = ["DATA"] if fold is None else [str(source.path), "--fold", fold]
    read = [] if source.normalize else ["--raw"]
    if source.score_range is not None:
        read.append("--score-range={:g},{:g}".format(*source.score_range))
    if feature is not None:
        read += ["--feature", feature]
    if not imposters:
        read += ["--imposters-from", "COHORT"]
    end = ["--fpr", "0.01", "--out", str(out)]
    words = shlex.join(["faircal", "threshold", str(out), *data, *read, *end])
    return f"next: {words}" + ("" if fold is not None else ", on people left out")
