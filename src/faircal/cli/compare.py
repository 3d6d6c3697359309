"""``faircal compare``."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from faircal.cli import options
from faircal.cli.help import Command, Part, argument
from faircal.cli.printing import notes, number, print_json, print_table, printable

if TYPE_CHECKING:
    from faircal.evaluation.compare import Comparison

_GATES = ("worse", "noninferior")


@click.command(
    cls=Command,
    examples={
        "What an update changes": "faircal compare results-old/ results-new/",
        "Stop it where a value is worse, surely": "faircal compare results-old/ results-new/ "
        "--gate",
        "Stop it unless it is shown to be no worse by 0.002": "faircal compare results-old/ "
        "results-new/ --gate noninferior --margin 0.002",
        "Two methods of one run": "faircal compare results/ results/ --method baseline,faircal",
        "Other values, and differences below 0.001 are none": "faircal compare audit-old/ "
        "audit-new/ --metrics fpr,auroc --tolerance 0.001",
    },
    tables={
        "Files": {
            "RUN_A, RUN_B": "Read: results.csv, replicates.parquet, run.json.",
        },
    },
    exits={
        0: "Compared; with --gate, it passed.",
        1: "With --gate: it did not pass.",
    },
    see=("audit", "benchmark", "plan", "how-to/compare"),
)
@argument(
    "run_a",
    metavar="RUN_A",
    type=click.Path(path_type=Path),
    help="Folder of the old run, as 'faircal benchmark' or 'faircal audit' writes it.",
)
@argument(
    "run_b",
    metavar="RUN_B",
    type=click.Path(path_type=Path),
    help="Folder of the new run; or the same folder, with --method.",
)
@Part.MEASURE.option(
    "--method",
    "methods",
    type=options.CommaList(),
    metavar="A,B",
    show_default="each with itself",
    help="Method of RUN_A and method of RUN_B to compare.",
)
@Part.MEASURE.option(
    "--metrics",
    type=options.CommaList(),
    default=(),
    show_default="fpr,fnr,ks",
    help="What to compare, with commas, as named in results.csv.",
)
@Part.MEASURE.option(
    "--level",
    type=click.FloatRange(0.5, 1, max_open=True),
    default=0.95,
    help="Level of intervals; 1 minus the risk of any wrong verdict.",
)
@Part.MEASURE.option(
    "--tolerance",
    type=click.FloatRange(0),
    default=0.0,
    help="Size up to which a difference is none, as a share.",
)
@Part.MEASURE.option(
    "--unpaired",
    is_flag=True,
    help="People of the same name in both runs are not the same people.",
)
@Part.GATE.option(
    "--gate",
    type=click.Choice(_GATES),
    is_flag=False,
    flag_value=_GATES[0],
    show_default="no gate",
    help="Exit 1 where RUN_B is worse somewhere (worse, also --gate alone), or where it may be "
    "worse by --margin or more (noninferior).",
)
@Part.GATE.option(
    "--margin",
    type=click.FloatRange(0, min_open=True),
    show_default="none",
    help="For --gate noninferior: how much worse is still all right, such as 0.002.",
)
@options.as_json
def command(run_a: Path, run_b: Path, as_json: bool, **how: Any) -> int:
    """Tell what differs between two runs, and stop an update that is worse.

    Reads two runs, RUN_B being an update of RUN_A, and prints what differs, by how much, and how
    sure that is. Writes nothing. Both are of the same attribute, groups and operating points; or
    one folder is given twice, with two of its methods (--method baseline,faircal).

    Differences are B less A. People who are in both runs make them surer: it is known what a
    difference would have been with other people. Verdicts are corrected for the number of
    comparisons (Holm), so that with probability --level none of them is wrong.

    With --gate the exit code is 1 where a verdict is "worse". That none is does not make an update
    safe: it is told how large a worsening would have been noticed. --gate noninferior turns the
    burden of proof around: exit code 1 unless each value has been shown to be worse by less than
    --margin, if at all.
    """
    from faircal.evaluation.compare import compare_runs
    from faircal.report.changes import comparison_words

    compared = compare_runs(run_a, run_b, **how)
    notes(compared.notes)
    if as_json:
        family = int(compared.comparisons[0].family)
        print_json(
            {
                "a": run_a,
                "b": run_b,
                "correction": f"Holm, over the {family} comparisons that tell anything",
                "gate": how["gate"],
                "passed": None if compared.gate is None else compared.gate.passed,
                "comparisons": [each.record() for each in compared.comparisons],
            }
        )
    else:
        _show(compared.comparisons)
        for line in comparison_words(compared, how["margin"]):
            click.echo(printable(line))
    return 0 if compared.gate is None or compared.gate.passed else 1


def _show(comparisons: Sequence[Comparison]) -> None:
    """Print a table for each feature, attribute and couple of methods."""
    from faircal.evaluation.compare import group_title
    from faircal.report.wording import metric_title

    def where(each: Comparison) -> tuple[str, str, str, str]:
        return each.feature, each.attribute, each.method_a, each.method_b

    for _, group in groupby(comparisons, where):
        rows = list(group)
        titles = [metric_title(row.metric, row.condition) for row in rows]
        print_table(
            ["", rows[0].attribute or "pairs", "A", "B", "B − A", "interval", "p", ""],
            [
                [
                    "" if i and titles[i - 1] == titles[i] else titles[i],
                    group_title(row.group),
                    *_cells(row),
                    _verdict(row),
                ]
                for i, row in enumerate(rows)
            ],
            title=_title(rows),
            left=(0, 1, 7),
            names=2,
            blocks=[1, 1, 2, 1, 1],
        )


def _title(rows: Sequence[Comparison]) -> str:
    """Say what is compared, and what is printed in percent: all, or all but what is no share."""
    from faircal.report.wording import is_share, method_title, metric_title

    first = rows[0]
    methods = [method_title(name) for name in (first.method_a, first.method_b)]
    same = methods[0] if methods[0] == methods[1] else f"{methods[0]} (A) and {methods[1]} (B)"
    title = ", ".join(filter(None, (first.feature, same))) + ": A and B"
    if not any(is_share(row.metric) for row in rows):
        return title
    plain = dict.fromkeys(metric_title(row.metric) for row in rows if not is_share(row.metric))
    return f"{title}, percent" + (f" ({', '.join(plain)} as it is)" if plain else "")


def _cells(row: Comparison) -> list[str]:
    if not row.reportable:
        return ["–"] * 5
    metric = row.metric
    low, high = (_value(end, metric, "+") for end in (row.low, row.high))
    return [
        _value(row.a, metric),
        _value(row.b, metric),
        _value(row.difference, metric, "+"),
        f"{low} to {high}",
        "<0.001" if row.p_holm < 0.001 else f"{row.p_holm:.3f}",
    ]


def _verdict(row: Comparison) -> str:
    if row.no_errors:
        return "no error in either"
    return "the same" if row.same else row.verdict


def _value(value: float, metric: str, sign: str = "") -> str:
    from faircal.report.wording import is_share

    unit, digits = (100, 2) if is_share(metric) else (1, 4)
    return number(round(unit * value, digits) + 0.0, f"{sign}.{digits}f")  # no −0
