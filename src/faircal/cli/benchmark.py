"""``faircal benchmark``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

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


@click.command(
    epilog="Example: faircal benchmark faces/ --attribute ethnicity+gender --out results/"
)
@reads_data
@out_option
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
@resume_option
@seed_option
@json_option
def command(
    source: Source,
    out: Path,
    methods: tuple[str, ...],
    calibrators: tuple[str, ...],
    clusters: tuple[int, ...],
    features: tuple[str, ...],
    attribute: tuple[str, ...],
    parameters: tuple[str, ...],
    jobs: int | None,
    resume: bool,
    seed: int,
    as_json: bool,
    **more: Any,
) -> None:
    """Compare methods on DATA by leave-one-fold-out, with the paper's measurements.

    Results are written as they come: an interrupted run goes on with --resume, a training too. The
    same seed gives the same results.csv, whatever the number of jobs (on the same device, where
    networks are trained).
    """
    from faircal.benchmark import Settings

    check_folder(out)
    loaded = source.load(features, seed=seed)
    settings = Settings(
        methods=methods,
        calibrators=calibrators,
        clusters=clusters,
        attributes=attribute,
        parameters=parse_methods(parameters),
        seed=seed,
        **more,
    )
    with goes_on("the benchmark"):
        benchmark_and_show(loaded, out, settings, jobs=jobs, resume=resume, as_json=as_json)
