"""``faircal classify``: any classifier's probabilities, calibrated and measured by group."""

from __future__ import annotations

import click

from faircal.cli.classify_measure import audit, benchmark
from faircal.cli.classify_model import apply, fit


@click.group(
    epilog="Example: faircal classify benchmark rows.csv --attribute sex --out results/",
    no_args_is_help=False,
)
def command() -> None:
    """Calibrate and measure the class probabilities of any classifier, fairly.

    A TABLE (.csv, .parquet, .npz, or a folder) has a row for each input: its label, a column
    p_CLASS with the probability of each class, features (feature_…: what the classifier worked
    with, such as a network's last layer but one) and attributes. FairCal clusters the features and
    fits one calibration map a cluster; it needs no attribute. Those are for measuring.
    """


for _command in (fit, apply, audit, benchmark):
    command.add_command(_command)
