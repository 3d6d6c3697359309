"""What commands share: options, how their values are read, the argument DATA, help of files."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial, wraps
from pathlib import Path
from typing import Any, NoReturn

import click

from faircal._base.errors import ParameterError
from faircal.cli.help import Part, argument


class CommaList(click.ParamType[Any]):
    """A comma-separated list; each element is converted by `kind`."""

    name = "list"

    def __init__(self, kind: Callable[[str], Any] = str) -> None:
        self.kind = kind

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[Any, ...]:
        """Split and convert."""
        if isinstance(value, tuple):
            return value
        words = [word.strip() for word in str(value).split(",")]
        if not all(words):
            self.fail(f"expected values separated by commas, found {value!r}", param, ctx)
        try:
            return tuple(self.kind(word) for word in words)
        except ValueError:
            self.fail(
                f"expected {self.kind.__name__} values separated by commas, found {value!r}",
                param,
                ctx,
            )


class ScoreRange(click.ParamType[Any]):
    """``LOW,HIGH``."""

    name = "low,high"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[float, float]:
        """Split into two numbers."""
        if isinstance(value, tuple):
            return value
        try:
            low, high = map(float, str(value).split(","))
        except ValueError:
            self.fail(f"expected LOW,HIGH such as 0,100, found {value!r}", param, ctx)
        return low, high


class Assignment(click.ParamType[Any]):
    """``NAME=VALUE``: both; the value is JSON where it is JSON (3, 0.5, true), or else text.

    Parameters
    ----------
    text : bool
        Whether every value is text.
    """

    name = "name=value"

    def __init__(self, *, text: bool = False) -> None:
        self.text = text

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[Any, ...]:
        """Split at the first equals sign."""
        if isinstance(value, tuple):
            return value
        name, equals, words = str(value).partition("=")
        if not (name and equals and words):
            self._refuse(f"expected name=value, found {value!r}", param, ctx)
        if self.text:
            return name, words
        try:
            return name, json.loads(words)
        except ValueError:
            return name, words

    @staticmethod
    def _refuse(problem: str, param: click.Parameter | None, ctx: click.Context | None) -> NoReturn:
        """Raise for one of several values: what was found says which."""
        raise click.BadParameter(problem, ctx, param_hint=None if param is None else param.opts[-1])


class MethodSetting(Assignment):
    """``METHOD.NAME=VALUE``: method, parameter and value, which is of the parameter's kind."""

    name = "method.name=value"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[Any, ...]:
        """Split at the first equals sign, and what is before it at the first dot."""
        if isinstance(value, tuple):
            return value
        name, of_parameter = super().convert(value, param, ctx)
        method, _, parameter = name.partition(".")
        if not (method and parameter):
            self._refuse(f"expected method.name=value, found {name!r}", param, ctx)
        check_setting(method, parameter, of_parameter)
        return method, parameter, of_parameter


def check_setting(method: str, name: str, value: Any) -> None:
    """Raise where a parameter given by ``--set`` is not of the kind of its default."""
    from faircal.methods import METHODS

    kinds: dict[type, tuple[Any, str]] = {
        int: (int, "a whole number"),
        float: (int | float, "a number"),
        bool: (bool, "true or false"),
    }
    defaults = METHODS[method].defaults()
    default = defaults.get(name)
    # Lists, mappings, and what may be of two kinds, are the method's to check.
    if name not in defaults or isinstance(default, tuple | dict | None) or isinstance(value, dict):
        return
    kind, expected = kinds.get(type(default), (str, "text"))
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise ParameterError(
            f"--set {name}: expected {expected}, found {value!r}; {method}'s default is {default!r}"
        )


seed = Part.GENERAL.option(
    "--seed",
    type=click.IntRange(0),
    default=0,
    help="Seed of all that is drawn at random: the same one gives the same result.",
)
as_json = Part.GENERAL.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print the result as JSON, for machines, in place of tables and paths.",
)
jobs = Part.WORK.option(
    "--jobs",
    type=click.IntRange(1),
    show_default="the number of cores",
    help="Cells (a method on a fold) at a time. Results do not depend on it.",
)
resume = Part.WORK.option(
    "--resume",
    is_flag=True,
    help="Go on where an interrupted run of the same command stopped.",
)
out = Part.OUTPUT.option(
    "--out",
    type=click.Path(path_type=Path),
    required=True,
    metavar="DIR",
    help="Folder to write to. It is made where it is not there; results of an earlier run in it "
    "are replaced.",
)
model_out = Part.OUTPUT.option(
    "--out",
    type=click.Path(path_type=Path),
    required=True,
    metavar="FILE",
    help="Model file to write, such as faces.faircal; one that is there is replaced.",
)
table_out = Part.OUTPUT.option(
    "--out",
    type=click.Path(path_type=Path),
    required=True,
    metavar="FILE",
    help="Table to write: a name that ends in .parquet or .csv; one that is there is replaced.",
)
parameters = Part.METHOD.option(
    "--set",
    "parameters",
    type=MethodSetting(),
    multiple=True,
    metavar="METHOD.NAME=VALUE",
    show_default="the methods' own values",
    help="Any parameter of a method, such as ftc.epochs=20; VALUE is JSON or text. May be "
    "repeated.",
)
rates = Part.MEASURE.option(
    "--rates",
    type=CommaList(float),
    default="0.001,0.01",
    help="Global rates, as shares, with commas: groups are compared at the threshold where the FPR "
    "of all pairs is that, and where their FNR is.",
)
features = Part.DATA.option(
    "--features",
    type=CommaList(),
    default=(),
    show_default="all",
    help="Networks (names of embeddings) or score columns to use, with commas.",
)
feature = Part.DATA.option(
    "--feature",
    show_default="the only one",
    help="Network (name of embeddings) or score column to use, where there are several.",
)
fold = Part.DATA.option("--fold", show_default="all pairs", help="Use the pairs of this fold only.")
imposters_from = Part.DATA.option(
    "--imposters-from",
    type=click.Path(path_type=Path),
    metavar="COHORT",
    show_default="imposter pairs of DATA",
    help="Folder with a cohort, public people of known groups: count its strangers of each group "
    "as imposters beside the genuine pairs of DATA; --attribute is then the cohort's.",
)
leave_out = Part.DATA.option(
    "--leave-out",
    metavar="FOLD",
    show_default="all pairs are used",
    help="Fold to leave out, and so to keep for testing.",
)
attribute = Part.MEASURE.option(
    "--attribute",
    show_default="that of dataset.json, else all crossed",
    help="Attribute that makes the groups, such as ethnicity; a+b crosses two.",
)
attributes = Part.DATA.option(
    "--attributes",
    type=click.Path(path_type=Path),
    metavar="FILE",
    show_default="no attributes",
    help="Table (.csv, .parquet) with identity or image_id, and any columns of attributes.",
)
level = Part.DATA.option(
    "--level",
    type=click.IntRange(1),
    show_default="the folder a picture lies in",
    help="Which folder on the way to a picture names the person: 1 is the outermost.",
)
stream = Part.WORK.option(
    "--stream",
    is_flag=True,
    help="Read the pairs part by part; of many their scores are counted in fine bins, in bounded "
    "memory. Done by itself above 10,000,000 pairs.",
)
intended_use = Part.CARD.option(
    "--intended-use",
    metavar="TEXT",
    default="",
    show_default="nothing is said",
    help="What the model is for.",
)
limit = Part.CARD.option(
    "--limit",
    "limits",
    multiple=True,
    metavar="TEXT",
    show_default="those found by itself",
    help="What it is not for, or can't do. May be repeated.",
)
#: The option of audits, and of `report`, by which tables and figures become files.
all_files = Part.OUTPUT.option(
    "--all-files",
    is_flag=True,
    help="Write the tables of the report (Markdown, CSV) and its figures (PDF, PNG, CSV) as files, "
    "too: tables/ and figures/. Without it they are in report.html alone.",
)
cohort = Part.COHORT.option(
    "--cohort",
    type=click.Path(path_type=Path),
    metavar="DIR",
    show_default="none",
    help="Dataset folder of public people of known groups, through the same network, for methods "
    "that compare with a cohort. Its pairs are not looked at.",
)
cohort_attribute = Part.COHORT.option(
    "--cohort-attribute",
    metavar="A",
    show_default="that of its dataset.json, else all crossed",
    help="Attribute that makes the groups of the cohort; a+b crosses two.",
)
#: What benchmarks and audits leave in their folder, for the help of commands.
REPORT_FILES = {
    "report.html": "For people: one file that opens anywhere, offline.",
    "results.csv": "All numbers and how sure they are: a row for each value, fold and group.",
    "curves.parquet": "Scores counted in bins, which figures are drawn from.",
    "run.json": "Settings, versions, hash of the data, notes.",
}
TABLE_FILES = {
    "tables/, figures/": "The tables (Markdown, CSV) and figures (PDF, PNG, CSV) of the report. "
    "Figures need the extra figures.",
}
#: The same of pairs.
PAIR_FILES = {**REPORT_FILES, "replicates.parquet": "What 'faircal compare' needs."}


def combined(*options: Callable[..., Any]) -> Callable[..., Any]:
    """Return options that stand together, as one decorator."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        for each in reversed(options):
            function = each(function)
        return function

    return add


_reading_options = combined(
    Part.DATA.option(
        "--score-range",
        type=ScoreRange(),
        show_default="-1,1; any where scores are only measured",
        help="Lowest and highest value that ready-made scores can have, such as 0,100.",
    ),
    Part.DATA.option(
        "--raw",
        is_flag=True,
        help="Keep embeddings as stored. Otherwise each is scaled to unit length.",
    ),
    Part.WORK.option(
        "--device",
        show_default="cpu; to train a network, cuda where there is one",
        help="Where heavy work is done: cpu, or cuda (a GPU; extra torch).",
    ),
)
_engine_options = combined(
    Part.SPARK.option(
        "--engine",
        "where",
        type=click.Choice(["local", "spark"]),
        default="local",
        help="Where to run: on this machine, or on a Spark cluster (extra spark). The options "
        "below go with spark.",
    ),
    Part.SPARK.option(
        "--master",
        metavar="URL",
        show_default="Spark's own setting, else all cores here",
        help="Spark's master, such as local[4] or spark://host:7077.",
    ),
    Part.SPARK.option(
        "--conf",
        type=Assignment(text=True),
        multiple=True,
        metavar="KEY=VALUE",
        show_default="none",
        help="Setting of the Spark session, such as spark.executor.memory=8g. May be repeated.",
    ),
    Part.SPARK.option(
        "--embeddings",
        type=click.Choice(["auto", "map", "send"]),
        default="auto",
        help="How workers get at vectors: map them from shared files, or send them over the "
        "network. auto finds out.",
    ),
)


def reads_data(
    function: Callable[..., Any] | None = None, *, required: bool = True, engine: bool = False
) -> Callable[..., Any]:
    """Add the argument DATA and the options that say how to read it; gives ``source``.

    Where DATA is not `required` and left out, the path of ``source`` is None. With `engine` there
    are ``--engine`` and Spark's options, too: they give ``engine``, a `SparkEngine` or None.
    """
    if function is None:
        return partial(reads_data, required=required, engine=engine)

    @wraps(function)
    def reading(
        data: Path,
        score_range: tuple[float, float] | None,
        raw: bool,
        device: str | None,
        where: str = "local",
        master: str | None = None,
        conf: tuple[tuple[str, str], ...] = (),
        embeddings: str = "auto",
        **rest: Any,
    ) -> Any:
        from faircal.data import PairFiles

        rest["source"] = PairFiles(data, score_range, not raw, device)
        of_spark = {"--master": master, "--conf": conf, "--embeddings": embeddings != "auto"}
        given = [name for name, value in of_spark.items() if value]
        if where == "spark":
            from faircal.production.spark.session import SparkEngine

            rest["engine"] = SparkEngine(master, dict(conf), embeddings)
        elif given:
            raise ParameterError(f"{given[0]}: goes with --engine spark; add it")
        elif engine:
            rest["engine"] = None
        return function(**rest)

    data = argument(
        "data",
        type=click.Path(path_type=Path),
        required=required,
        help="A dataset folder (images, pairs, embeddings), as 'faircal import', 'embed', 'pairs' "
        "and 'simulate' write it; or a table of scores (.csv, .parquet).",
    )
    more = (_engine_options,) if engine else ()
    return combined(data, _reading_options, *more)(reading)  # type: ignore[no-any-return]
