"""``faircal classify``: any classifier's probabilities, calibrated and measured by group."""

from __future__ import annotations

import click

from faircal.cli.classify_measure import audit, benchmark
from faircal.cli.classify_model import apply, fit
from faircal.cli.classify_rows import TABLE_COLUMNS
from faircal.cli.help import Group


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

    A TABLE (.csv, .parquet, .npz, or a folder) has a row for each input of the classifier. Begin
    with 'faircal classify benchmark', which says whether it helps on your rows.
    """


for _command in (fit, apply, audit, benchmark):
    command.add_command(_command)
