"""``faircal benchmark``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from faircal.cli.engine import Engine, engine_options
from faircal.cli.options import (
    CommaList,
    check_folder,
    features_option,
    jobs_option,
    json_option,
    out_option,
    parse_methods,
    rates_option,
    resume_option,
    seed_option,
    set_option,
)
from faircal.cli.running import benchmark_and_show, goes_on
from faircal.cli.source import Source, reads_data

if TYPE_CHECKING:
    from faircal.benchmark import Moving
    from faircal.data import Dataset


@click.command(
    epilog="Example: faircal benchmark faces/ --attribute ethnicity+gender --out results/; "
    "faircal benchmark --calibrate-on here/ --test-on there/ --labels 100,1000 --out moved/"
)
@reads_data(required=False)  # two options may say what to read
@out_option
@click.option(
    "--calibrate-on",
    type=click.Path(path_type=Path),
    default=None,
    metavar="DATA",
    help="In place of DATA: the population that methods are fitted on.",
)
@click.option(
    "--test-on",
    type=click.Path(path_type=Path),
    default=None,
    metavar="DATA",
    help="And another population, that they are tested on.",
)
@click.option(
    "--labels",
    type=CommaList(int),
    default=(),
    help="Numbers of labelled pairs of that population to try  [default: 100, 300, … to all]",
)
@click.option(
    "--people-apart",
    is_flag=True,
    help="People of one name in both populations are different people  [default: the same, and "
    "dropped where they would be tested]",
)
@click.option(
    "--methods",
    type=CommaList(),
    default=(),
    help="Methods  [default: all that the data can serve]",
)
@click.option(
    "--calibrators", type=CommaList(), default="beta", show_default=True, help="Calibrators."
)
@click.option(
    "--clusters",
    type=CommaList(int),
    default="100",
    show_default=True,
    help="Numbers of clusters; a list sweeps.",
)
@features_option
@click.option(
    "--attribute",
    type=CommaList(),
    default=(),
    help="Attributes; a+b crosses  [default: all crossed]",
)
@click.option(
    "--threshold-on",
    type=click.Choice(["test", "calibration"]),
    default="test",
    show_default=True,
    help="Where thresholds come from.",
)
@click.option("--retune", is_flag=True, help="Fit FSN and GST anew for each reported FPR.")
@rates_option
@click.option(
    "--n-init", type=click.IntRange(1), default=1, show_default=True, help="Starts of K-means."
)
@set_option
@jobs_option
@engine_options
@resume_option
@seed_option
@json_option
def command(
    source: Source,
    out: Path,
    calibrate_on: Path | None,
    test_on: Path | None,
    labels: tuple[int, ...],
    people_apart: bool,
    methods: tuple[str, ...],
    calibrators: tuple[str, ...],
    clusters: tuple[int, ...],
    features: tuple[str, ...],
    attribute: tuple[str, ...],
    parameters: tuple[str, ...],
    jobs: int | None,
    engine: Engine,
    resume: bool,
    seed: int,
    as_json: bool,
    **more: Any,
) -> None:
    """Compare methods on DATA by leave-one-fold-out, with the paper's measurements.

    Results are written as they come: an interrupted run goes on with --resume, a training too. The
    same seed gives the same results.csv, whatever the number of jobs (on the same device, where
    networks are trained).

    With --calibrate-on and --test-on methods move to another population: they are fitted on all of
    the first and tested on the second, fold by fold, as they are, recalibrated with more and more
    labelled pairs of its other folds (one map on top of the model), and fitted on those alone.
    moving.csv and a figure say how many of them restore calibration.

    With --engine spark cells are fitted and measured by Spark's workers, with the same numbers; a
    training that is interrupted starts anew.
    """
    from faircal.benchmark import Settings

    check_folder(out)
    _check_ways(source, calibrate_on, test_on, moving_only=bool(labels or people_apart))
    engine.check(source, calibrate_on=calibrate_on, blocks=engine.blocks)
    moving = None
    if calibrate_on is None or test_on is None:
        loaded = source.load(features, seed=seed)
    else:
        here, there = (replace(source, path=path) for path in (calibrate_on, test_on))
        loaded, moving = _move(here, there, features, seed, labels, people_apart)
    settings = Settings(
        methods=methods,
        calibrators=calibrators,
        clusters=clusters,
        attributes=attribute,
        parameters=parse_methods(parameters),
        seed=seed,
        **more,
    )
    how = {**source.how(features, measuring=False), "seed": seed}
    with goes_on("the benchmark"), _where(engine, loaded, source.path, how, jobs) as where:
        benchmark_and_show(
            loaded, out, settings, resume=resume, as_json=as_json, moving=moving, **where
        )


@contextmanager
def _where(
    engine: Engine, data: Dataset, path: Path, how: Mapping[str, Any], jobs: int | None
) -> Iterator[dict[str, Any]]:
    """Give what `benchmark_and_show` is told of where cells are run."""
    if not engine.is_spark:
        yield {"jobs": jobs}
        return
    from faircal.scale.spark.benchmarking import Files, slots, workers
    from faircal.scale.spark.session import said

    with (
        engine.session() as spark,
        workers(spark, data, Files(path, how), engine.embeddings) as runner,
    ):
        yield {"jobs": jobs or slots(spark), "runner": runner, "more": said(spark)}


def _check_ways(
    source: Source, calibrate_on: Path | None, test_on: Path | None, moving_only: bool
) -> None:
    """Raise unless there is just one way to say what to read: DATA, or both options."""
    given: Path | None = source.path
    if (calibrate_on is None) != (test_on is None):
        lacking = "--test-on" if test_on is None else "--calibrate-on"
        raise click.UsageError(
            f"Missing option '{lacking}': --calibrate-on and --test-on go together",
            click.get_current_context(),
        )
    if given is not None and calibrate_on is not None:
        raise click.UsageError(
            f"expected DATA, or --calibrate-on and --test-on, found both; leave out {given}",
            click.get_current_context(),
        )
    if given is None and calibrate_on is None:
        raise click.UsageError(
            "Missing argument 'DATA': give it, or --calibrate-on and --test-on",
            click.get_current_context(),
        )
    if moving_only and calibrate_on is None:
        raise click.UsageError(
            "--labels and --people-apart go with --calibrate-on and --test-on; leave them out",
            click.get_current_context(),
        )


def _move(
    here: Source,
    there: Source,
    features: tuple[str, ...],
    seed: int,
    labels: tuple[int, ...],
    people_apart: bool,
) -> tuple[Dataset, Moving]:
    """Read both populations; return the one to test on, and how to move there."""
    from faircal.benchmark import move

    source, target = (one.load(features, seed=seed) for one in (here, there))
    return move(source, target, labels, people_apart=people_apart)
