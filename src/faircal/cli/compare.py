"""``faircal compare``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from faircal.cli.help import Command, Part, argument, option
from faircal.cli.options import CommaList, json_option, note, print_json, printable
from faircal.cli.values import registered

if TYPE_CHECKING:
    from faircal.evaluation.compare import Comparison, GateVerdict

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
            "RUN_A, RUN_B": "Read: results.csv, intervals.csv, replicates.parquet, run.json.",
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
@option(
    "--method",
    part=Part.MEASURE,
    type=CommaList(),
    metavar="A,B",
    shell_complete=registered("faircal.methods", "METHODS", commas=True),
    show_default="each with itself",
    help="Method of RUN_A and method of RUN_B to compare.",
)
@option(
    "--metrics",
    part=Part.MEASURE,
    type=CommaList(),
    default=(),
    show_default="fpr,fnr,ks",
    help="What to compare, with commas, as named in results.csv.",
)
@option(
    "--level",
    part=Part.MEASURE,
    type=click.FloatRange(0.5, 1, max_open=True),
    default=0.95,
    help="Level of intervals; 1 minus the risk of any wrong verdict.",
)
@option(
    "--tolerance",
    part=Part.MEASURE,
    type=click.FloatRange(0),
    default=0.0,
    help="Size up to which a difference is none, as a share.",
)
@option(
    "--unpaired",
    part=Part.MEASURE,
    is_flag=True,
    help="People of the same name in both runs are not the same people.",
)
@option(
    "--gate",
    part=Part.GATE,
    type=click.Choice(_GATES),
    is_flag=False,
    flag_value=_GATES[0],
    show_default="no gate",
    help="Exit 1 where RUN_B is worse somewhere (worse, also --gate alone), or where it may be "
    "worse by --margin or more (noninferior).",
)
@option(
    "--margin",
    part=Part.GATE,
    type=click.FloatRange(0, min_open=True),
    show_default="none",
    help="For --gate noninferior: how much worse is still all right, such as 0.002.",
)
@json_option
def command(
    run_a: Path,
    run_b: Path,
    method: tuple[str, ...] | None,
    metrics: tuple[str, ...],
    level: float,
    tolerance: float,
    gate: str | None,
    margin: float | None,
    unpaired: bool,
    as_json: bool,
) -> int:
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
    from faircal.cli.compare_table import conclude, show
    from faircal.evaluation.compare import (
        ComparedRun,
        can_pair,
        compare,
        no_worse,
        non_inferior,
        notes,
    )

    _check(gate, margin, method)
    a, b = ComparedRun.read(run_a), ComparedRun.read(run_b)
    paired = not unpaired and can_pair(a, b)
    found = compare(
        a,
        b,
        methods=None if method is None else (method[0], method[1]),
        metrics=metrics,
        level=level,
        tolerance=tolerance,
        paired=paired,
    )
    for text in notes(a, b, paired):
        note(f"note: {printable(text)}")
    result = None
    if gate is not None:
        result = no_worse(found) if margin is None else non_inferior(found, margin)
    if as_json:
        _print(run_a, run_b, found, gate, result)
    else:
        show(found)
        conclude(found, result, margin)
    return 0 if result is None or result.passed else 1


def _check(gate: str | None, margin: float | None, method: tuple[str, ...] | None) -> None:
    from faircal._base.errors import ParameterError
    from faircal.evaluation.compare import check_margin

    if (gate == "noninferior") != (margin is not None):
        raise ParameterError(
            "--gate noninferior and --margin go together; give both, such as --gate noninferior"
            " --margin 0.002"
        )
    if margin is not None:
        check_margin(margin)
    if method is not None and len(method) != 2:
        raise ParameterError(
            f"--method: expected one method of each run, A,B; found {','.join(method)}"
        )


def _print(
    run_a: Path, run_b: Path, found: list[Comparison], gate: str | None, result: GateVerdict | None
) -> None:
    records = [each.record() for each in found]
    passed = None if result is None else result.passed
    print_json(
        {
            "a": run_a,
            "b": run_b,
            "correction": f"Holm, over the {found[0].family} comparisons that tell anything",
            "gate": gate,
            "passed": passed,
            "comparisons": records,
        }
    )
