"""What the commands of ``faircal classify`` share: the argument TABLE and options of a fit."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from faircal.cli.help import Part, argument, option
from faircal.cli.options import working
from faircal.cli.values import among, registered

if TYPE_CHECKING:
    from faircal.data import ClassifierRows

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


@dataclass(frozen=True)
class Rows:
    """The argument TABLE with the options that say how to read it."""

    path: Path
    label: str
    probabilities: str
    features: str
    identity: str

    def load(self, *, need_labels: bool = True) -> ClassifierRows:
        """Read the table."""
        from faircal.data import load_classifier_rows

        with working(f"reading {self.path}"):
            return load_classifier_rows(
                self.path,
                label=self.label,
                probabilities=self.probabilities,
                features=self.features,
                identity=self.identity,
                need_labels=need_labels,
            )

    def check_kept(self, out: Path, *others: Path) -> None:
        """Raise where `out` is a file that is read: TABLE, a part of it, or one of `others`."""
        from faircal._base.errors import ParameterError

        target, table = out.resolve(), self.path.resolve()
        read = {path.resolve() for path in (self.path, Path(self.features), *others)}
        parts = ("rows", "probabilities", "features", "dataset")
        inside = target.parent == table and target.exists() and target.stem in parts
        if inside or target in read:
            raise ParameterError(f"--out {out}: is read by this command; choose another path")

    def about(self) -> dict[str, str]:
        """Return what ``run.json`` says of the options."""
        names = ("label", "probabilities", "features", "identity")
        return {name: getattr(self, name) for name in names}


def reads_rows(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the argument TABLE and the options that say how to read it; gives ``rows``."""

    @argument(
        "table",
        type=click.Path(path_type=Path),
        help="Rows of a classifier: a .csv, .parquet or .npz file, or a folder with rows, "
        "probabilities and features (see Columns of a table).",
    )
    @option(
        "--label",
        part=Part.DATA,
        default="label",
        metavar="COLUMN",
        help="Column of true classes.",
    )
    @option(
        "--probabilities",
        part=Part.DATA,
        default="p_",
        metavar="PREFIX",
        help="What the columns of probabilities begin with; the class follows.",
    )
    @option(
        "--features",
        part=Part.DATA,
        default="feature_",
        metavar="PREFIX|NAMES|FILE",
        help="What feature columns begin with; or their names, with commas; or an .npy file.",
    )
    @option(
        "--identity",
        part=Part.DATA,
        default="identity",
        metavar="COLUMN",
        help="Column with the person, patient or unit that a row comes from, where there is one.",
    )
    @wraps(function)
    def reading(
        table: Path, label: str, probabilities: str, features: str, identity: str, **rest: Any
    ) -> Any:
        return function(rows=Rows(table, label, probabilities, features, identity), **rest)

    return reading


class Shrinkage(click.ParamType[Any]):
    """``cv``, or as many rows as the map of all rows counts for in a cluster."""

    name = "cv|number"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float | str:
        """Read a number from 0, or the word."""
        if value == "cv":
            return "cv"
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if not number >= 0:  # nor NaN
            self.fail(f"expected cv or a number from 0, found {value!r}", param, ctx)
        return number


def fits_maps(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say how calibration maps are fitted."""
    options = (
        option(
            "--clusters",
            part=Part.METHOD,
            type=click.IntRange(1),
            default=20,
            help="Number of clusters (K) of the features.",
        ),
        option(
            "--calibrator",
            part=Part.METHOD,
            default="dirichlet",
            shell_complete=registered("faircal.calibrators.classes", "CLASS_CALIBRATORS"),
            help="Map from probabilities to calibrated ones: dirichlet, dirichlet-diagonal, "
            "temperature, vector, matrix, isotonic or histogram.",
        ),
        option(
            "--shrinkage",
            part=Part.METHOD,
            type=Shrinkage(),
            default="cv",
            metavar="N|cv",
            shell_complete=among("cv", "inf"),
            help="As many rows as the map of all rows counts for in a cluster: 0 fits each cluster "
            "by itself, inf is one map for all, cv finds it out.",
        ),
    )
    for each in reversed(options):
        function = each(function)
    return function


attribute_option = option(
    "--attribute",
    part=Part.MEASURE,
    show_default="the only one",
    help="Attribute that makes the groups; a+b crosses two.",
)


def attribute_of(data: ClassifierRows, named: str | None) -> str | None:
    """Return the attribute to group by: the one named, or the only one; None where there is none.

    One that is not in the data, or has no groups, is an error.
    """
    from faircal._base.errors import DataError, ParameterError
    from faircal.metrics.measures import check_names

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
